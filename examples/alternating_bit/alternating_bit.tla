---- MODULE alternating_bit ----
\* The alternating bit protocol over two lossy channels, as in alternating_bit.py, in idiomatic TLA+.
EXTENDS Naturals, Sequences
CONSTANTS Data, Room
VARIABLES bit, acknowledged, receivedBit, sent, received, packets, answers

vars == <<bit, acknowledged, receivedBit, sent, received, packets, answers>>

Init == /\ bit \in BOOLEAN
        /\ acknowledged = bit /\ receivedBit = bit
        /\ sent \in Data /\ received \in Data
        /\ packets = <<>> /\ answers = <<>>

SendNew(d) ==
    /\ acknowledged = bit /\ Len(packets) < Room
    /\ sent' = d /\ bit' = ~bit
    /\ packets' = Append(packets, <<bit', d>>)
    /\ UNCHANGED <<acknowledged, receivedBit, received, answers>>

SendAgain ==
    /\ acknowledged # bit /\ Len(packets) < Room
    /\ packets' = Append(packets, <<bit, sent>>)
    /\ UNCHANGED <<bit, acknowledged, receivedBit, sent, received, answers>>

Receive ==
    /\ packets # <<>>
    /\ receivedBit' = Head(packets)[1] /\ received' = Head(packets)[2]
    /\ packets' = Tail(packets)
    /\ UNCHANGED <<bit, acknowledged, sent, answers>>

Answer ==
    /\ Len(answers) < Room
    /\ answers' = Append(answers, receivedBit)
    /\ UNCHANGED <<bit, acknowledged, receivedBit, sent, received, packets>>

ReceiveAnswer ==
    /\ answers # <<>>
    /\ acknowledged' = Head(answers) /\ answers' = Tail(answers)
    /\ UNCHANGED <<bit, receivedBit, sent, received, packets>>

Without(q, i) == [j \in 1 .. Len(q) - 1 |-> IF j < i THEN q[j] ELSE q[j + 1]]

Lose ==
    \/ /\ \E i \in 1 .. Len(packets) : packets' = Without(packets, i)
       /\ UNCHANGED <<bit, acknowledged, receivedBit, sent, received, answers>>
    \/ /\ \E i \in 1 .. Len(answers) : answers' = Without(answers, i)
       /\ UNCHANGED <<bit, acknowledged, receivedBit, sent, received, packets>>

Next == (\E d \in Data : SendNew(d)) \/ SendAgain \/ Receive \/ Answer \/ ReceiveAnswer \/ Lose

Spec == Init /\ [][Next]_vars

Arrived == receivedBit = bit => received = sent \/ acknowledged = bit
====

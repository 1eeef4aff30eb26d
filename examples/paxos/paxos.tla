---- MODULE paxos ----
\* Paxos with a set of messages, as in paxos.py, in idiomatic TLA+.
EXTENDS Integers
CONSTANTS Acceptor, Quorum, Ballots, Value, None
VARIABLES msgs, latest, votedIn, votedFor

Ballot == 0 .. Ballots - 1
vars == <<msgs, latest, votedIn, votedFor>>

Init == /\ msgs = {}
        /\ latest = [a \in Acceptor |-> -1]
        /\ votedIn = [a \in Acceptor |-> -1]
        /\ votedFor = [a \in Acceptor |-> None]

Send(m) == msgs' = msgs \cup {m}

Prepare(b) == Send([type |-> "1a", bal |-> b]) /\ UNCHANGED <<latest, votedIn, votedFor>>

Promise(a) == \E m \in msgs :
    /\ m.type = "1a" /\ m.bal > latest[a]
    /\ latest' = [latest EXCEPT ![a] = m.bal]
    /\ Send([type |-> "1b", acc |-> a, bal |-> m.bal, in |-> votedIn[a], for |-> votedFor[a]])
    /\ UNCHANGED <<votedIn, votedFor>>

Propose(b, v) ==
    /\ ~\E m \in msgs : m.type = "2a" /\ m.bal = b
    /\ \E Q \in Quorum :
         LET told == {m \in msgs : m.type = "1b" /\ m.acc \in Q /\ m.bal = b}
             voted == {m \in told : m.in >= 0}
         IN /\ \A a \in Q : \E m \in told : m.acc = a
            /\ voted = {} \/ \E m \in voted : m.for = v /\ \A n \in voted : n.in <= m.in
    /\ Send([type |-> "2a", bal |-> b, val |-> v])
    /\ UNCHANGED <<latest, votedIn, votedFor>>

Vote(a) == \E m \in msgs :
    /\ m.type = "2a" /\ m.bal >= latest[a]
    /\ latest' = [latest EXCEPT ![a] = m.bal]
    /\ votedIn' = [votedIn EXCEPT ![a] = m.bal]
    /\ votedFor' = [votedFor EXCEPT ![a] = m.val]
    /\ Send([type |-> "2b", acc |-> a, bal |-> m.bal, val |-> m.val])

Next == \/ \E b \in Ballot : Prepare(b) \/ \E v \in Value : Propose(b, v)
        \/ \E a \in Acceptor : Promise(a) \/ Vote(a)

Spec == Init /\ [][Next]_vars

Chosen(v) == \E b \in Ballot, Q \in Quorum :
    \A a \in Q : [type |-> "2b", acc |-> a, bal |-> b, val |-> v] \in msgs
OneChosen == \A v, w \in Value : Chosen(v) /\ Chosen(w) => v = w
====

---- MODULE work_queue ----
\* A work queue at the end of a network that reorders, repeats and loses messages, as in work_queue.py.
EXTENDS Naturals, Sequences
CONSTANTS Job, Most
VARIABLES network, waiting, wanted, taken, times, answered

Message == [kind : {"asked", "done"}, job : Job]
Asked(j) == [kind |-> "asked", job |-> j]
Done(j) == [kind |-> "done", job |-> j]
vars == <<network, waiting, wanted, taken, times, answered>>

Init == /\ network = [m \in Message |-> 0]
        /\ waiting = <<>>
        /\ wanted = {} /\ taken = {} /\ answered = {}
        /\ times = [j \in Job |-> 0]

Want(j) == /\ j \notin wanted
           /\ wanted' = wanted \cup {j}
           /\ UNCHANGED <<network, waiting, taken, times, answered>>

Ask(j) == /\ j \in wanted \ answered
          /\ network[Asked(j)] < Most
          /\ network' = [network EXCEPT ![Asked(j)] = @ + 1]
          /\ UNCHANGED <<waiting, wanted, taken, times, answered>>

Enqueue(j) == /\ network[Asked(j)] > 0 /\ j \notin taken
              /\ network' = [network EXCEPT ![Asked(j)] = @ - 1]
              /\ waiting' = Append(waiting, j)
              /\ taken' = taken \cup {j}
              /\ UNCHANGED <<wanted, times, answered>>

AnswerAgain(j) == /\ network[Asked(j)] > 0 /\ times[j] > 0 /\ network[Done(j)] < Most
                  /\ network' = [network EXCEPT ![Asked(j)] = @ - 1, ![Done(j)] = @ + 1]
                  /\ UNCHANGED <<waiting, wanted, taken, times, answered>>

Work == /\ waiting # <<>>
        /\ waiting' = Tail(waiting)
        /\ times' = [times EXCEPT ![Head(waiting)] = @ + 1]
        /\ network' = [network EXCEPT ![Done(Head(waiting))] = @ + 1]
        /\ UNCHANGED <<wanted, taken, answered>>

Learn(j) == /\ network[Done(j)] > 0
            /\ network' = [network EXCEPT ![Done(j)] = @ - 1]
            /\ answered' = answered \cup {j}
            /\ UNCHANGED <<waiting, wanted, taken, times>>

Lose(m) == /\ network[m] > 0
           /\ network' = [network EXCEPT ![m] = @ - 1]
           /\ UNCHANGED <<waiting, wanted, taken, times, answered>>

Step == \/ \E j \in Job : Want(j) \/ Ask(j) \/ Enqueue(j) \/ AnswerAgain(j) \/ Learn(j)
        \/ Work
        \/ \E m \in Message : Lose(m)

Spec == Init /\ [][Step]_vars

DoneOnce == \A j \in Job : times[j] <= 1
====

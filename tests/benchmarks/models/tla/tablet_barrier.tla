---- MODULE tablet_barrier ----
\* Tablets behind barriers, as in tests/models/tablet_barrier.py.
EXTENDS Naturals
CONSTANTS Tablets, Nodes
VARIABLES stage, learned, up

Last == 6
vars == <<stage, learned, up>>

Init == /\ stage = [t \in Tablets |-> 0]
        /\ learned = [n \in Nodes |-> [t \in Tablets |-> 0]]
        /\ up = [n \in Nodes |-> TRUE]

Advance(t) ==
    /\ stage[t] < Last
    /\ \E n \in Nodes : up[n]
    /\ \A n \in Nodes : up[n] => learned[n][t] = stage[t]
    /\ stage' = [stage EXCEPT ![t] = @ + 1]
    /\ UNCHANGED <<learned, up>>

Learn(n, t) ==
    /\ up[n]
    /\ learned[n][t] # stage[t]
    /\ learned' = [learned EXCEPT ![n][t] = stage[t]]
    /\ UNCHANGED <<stage, up>>

Crash(n) ==
    /\ up[n]
    /\ up' = [up EXCEPT ![n] = FALSE]
    /\ learned' = [learned EXCEPT ![n] = [t \in Tablets |-> 0]]
    /\ UNCHANGED stage

Restart(n) ==
    /\ ~up[n]
    /\ up' = [up EXCEPT ![n] = TRUE]
    /\ learned' = [learned EXCEPT ![n] = stage]
    /\ UNCHANGED stage

Next ==
    \/ \E t \in Tablets : Advance(t)
    \/ \E n \in Nodes : Crash(n) \/ Restart(n) \/ \E t \in Tablets : Learn(n, t)

Spec == Init /\ [][Next]_vars

AtMostOneBehind == \A n \in Nodes, t \in Tablets : up[n] => stage[t] <= learned[n][t] + 1
====

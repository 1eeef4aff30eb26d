---- MODULE ewd840 ----
\* Termination detection in a ring (EWD 840), as in tests/models/ewd840.py.
EXTENDS Naturals
CONSTANT Size
VARIABLES busy, black, token, tokenBlack

Nodes == 0 .. Size - 1
vars == <<busy, black, token, tokenBlack>>

Init == /\ busy \in [Nodes -> BOOLEAN]
        /\ black \in [Nodes -> BOOLEAN]
        /\ token \in Nodes
        /\ tokenBlack = TRUE

InitiateProbe ==
    /\ token = 0
    /\ tokenBlack \/ black[0]
    /\ token' = Size - 1
    /\ tokenBlack' = FALSE
    /\ black' = [black EXCEPT ![0] = FALSE]
    /\ UNCHANGED busy

PassToken(n) ==
    /\ token = n
    /\ ~busy[n] \/ black[n] \/ tokenBlack
    /\ token' = n - 1
    /\ tokenBlack' = (tokenBlack \/ black[n])
    /\ black' = [black EXCEPT ![n] = FALSE]
    /\ UNCHANGED busy

Send(n, to) ==
    /\ busy[n]
    /\ busy' = [busy EXCEPT ![to] = TRUE]
    /\ black' = [black EXCEPT ![n] = @ \/ to > n]
    /\ UNCHANGED <<token, tokenBlack>>

Deactivate(n) ==
    /\ busy[n]
    /\ busy' = [busy EXCEPT ![n] = FALSE]
    /\ UNCHANGED <<black, token, tokenBlack>>

Next ==
    \/ InitiateProbe
    \/ \E n \in Nodes \ {0} : PassToken(n)
    \/ \E n \in Nodes : Deactivate(n) \/ \E to \in Nodes \ {n} : Send(n, to)

Spec == Init /\ [][Next]_vars

Detected == token = 0 /\ ~tokenBlack /\ ~busy[0] /\ ~black[0]
DetectionIsRight == Detected => \A n \in Nodes : ~busy[n]
====

---- MODULE chang_roberts ----
\* Chang and Roberts' election of a leader in a ring, as in chang_roberts.py, in idiomatic TLA+.
EXTENDS Naturals
CONSTANT N
VARIABLES standing, stood, role, inbox

Node == 0 .. N - 1
Next(n) == (n + 1) % N
vars == <<standing, stood, role, inbox>>

Init == /\ standing \in [Node -> BOOLEAN]
        /\ stood = [n \in Node |-> FALSE]
        /\ role = [n \in Node |-> "candidate"]
        /\ inbox = [n \in Node |-> {}]

Stand(n) ==
    /\ standing[n] /\ ~stood[n]
    /\ stood' = [stood EXCEPT ![n] = TRUE]
    /\ inbox' = [inbox EXCEPT ![Next(n)] = @ \cup {n}]
    /\ UNCHANGED <<standing, role>>

HandOn(n, who) ==
    /\ standing[n] => stood[n] /\ who < n
    /\ inbox' = [inbox EXCEPT ![n] = @ \ {who}, ![Next(n)] = @ \cup {who}]
    /\ role' = [role EXCEPT ![n] = "lost"]
    /\ UNCHANGED <<standing, stood>>

Drop(n, who) ==
    /\ standing[n] /\ stood[n] /\ n < who
    /\ inbox' = [inbox EXCEPT ![n] = @ \ {who}]
    /\ UNCHANGED <<standing, stood, role>>

Win(n) ==
    /\ inbox' = [inbox EXCEPT ![n] = @ \ {n}]
    /\ role' = [role EXCEPT ![n] = "won"]
    /\ UNCHANGED <<standing, stood>>

Step == \E n \in Node :
    \/ Stand(n)
    \/ \E who \in inbox[n] : HandOn(n, who) \/ Drop(n, who) \/ (who = n /\ Win(n))

Spec == Init /\ [][Step]_vars

LeastWins == \A n, m \in Node : role[n] = "won" /\ standing[m] => n <= m
====

---- MODULE bakery ----
\* Lamport's bakery with tickets up to T, as in bakery.py, in idiomatic TLA+.
EXTENDS Naturals
CONSTANTS N, T
VARIABLES at, ticket, seen

Process == 0 .. N - 1
vars == <<at, ticket, seen>>
Highest == CHOOSE i \in 0 .. T : (\E p \in Process : ticket[p] = i) /\ \A p \in Process : ticket[p] <= i

Init == /\ at = [p \in Process |-> "home"]
        /\ ticket = [p \in Process |-> 0]
        /\ seen = [p \in Process |-> 0]

Look(p) ==
    /\ at[p] = "home"
    /\ seen' = [seen EXCEPT ![p] = Highest]
    /\ at' = [at EXCEPT ![p] = "choosing"]
    /\ UNCHANGED ticket

Take(p) ==
    /\ at[p] = "choosing" /\ seen[p] < T
    /\ ticket' = [ticket EXCEPT ![p] = seen[p] + 1]
    /\ seen' = [seen EXCEPT ![p] = 0]
    /\ at' = [at EXCEPT ![p] = "waiting"]

Before(q, p) == ticket[q] < ticket[p] \/ (ticket[q] = ticket[p] /\ q < p)

Enter(p) ==
    /\ at[p] = "waiting"
    /\ \A q \in Process : at[q] # "choosing" /\ (ticket[q] = 0 \/ ~Before(q, p))
    /\ at' = [at EXCEPT ![p] = "served"]
    /\ UNCHANGED <<ticket, seen>>

Leave(p) ==
    /\ at[p] = "served"
    /\ ticket' = [ticket EXCEPT ![p] = 0]
    /\ at' = [at EXCEPT ![p] = "home"]
    /\ UNCHANGED seen

Step == \E p \in Process : Look(p) \/ Take(p) \/ Enter(p) \/ Leave(p)

Spec == Init /\ [][Step]_vars

OneAtATime == \A p, q \in Process : at[p] = "served" /\ at[q] = "served" => p = q
====

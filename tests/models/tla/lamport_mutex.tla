---- MODULE lamport_mutex ----
\* Lamport's mutual exclusion with clocks and channels, as in lamport_mutex.py, in idiomatic TLA+.
EXTENDS Naturals, Sequences
CONSTANTS N, Latest, Room
VARIABLES clock, asked, acknowledged, channel, inside

Process == 0 .. N - 1
vars == <<clock, asked, acknowledged, channel, inside>>
Max(a, b) == IF a < b THEN b ELSE a

Request(t) == [kind |-> "request", time |-> t]
Acknowledge == [kind |-> "acknowledge", time |-> 0]
Release == [kind |-> "release", time |-> 0]

Init == /\ clock = [p \in Process |-> 1]
        /\ asked = [p \in Process |-> [q \in Process |-> 0]]
        /\ acknowledged = [p \in Process |-> {}]
        /\ channel = [p \in Process |-> [q \in Process |-> <<>>]]
        /\ inside = {}

HasRoom(p) == \A q \in Process : Len(channel[p][q]) < Room
ToOthers(p, m) ==
    [channel EXCEPT ![p] = [q \in Process |-> IF q = p THEN @[q] ELSE Append(@[q], m)]]
Beats(p, q) ==
    \/ asked[p][q] = 0
    \/ asked[p][p] < asked[p][q]
    \/ asked[p][p] = asked[p][q] /\ p < q

Ask(p) ==
    /\ asked[p][p] = 0 /\ HasRoom(p)
    /\ asked' = [asked EXCEPT ![p][p] = clock[p]]
    /\ acknowledged' = [acknowledged EXCEPT ![p] = {p}]
    /\ channel' = ToOthers(p, Request(clock[p]))
    /\ UNCHANGED <<clock, inside>>

HearRequest(p, q) == LET m == Head(channel[q][p]) IN
    /\ m.kind = "request" /\ Len(channel[p][q]) < Room
    /\ Max(clock[p], m.time) < Latest
    /\ clock' = [clock EXCEPT ![p] = Max(@, m.time) + 1]
    /\ asked' = [asked EXCEPT ![p][q] = m.time]
    /\ channel' = [channel EXCEPT ![q][p] = Tail(@), ![p][q] = Append(@, Acknowledge)]
    /\ UNCHANGED <<acknowledged, inside>>

HearAcknowledgement(p, q) ==
    /\ Head(channel[q][p]).kind = "acknowledge"
    /\ acknowledged' = [acknowledged EXCEPT ![p] = @ \cup {q}]
    /\ channel' = [channel EXCEPT ![q][p] = Tail(@)]
    /\ UNCHANGED <<clock, asked, inside>>

HearRelease(p, q) ==
    /\ Head(channel[q][p]).kind = "release"
    /\ asked' = [asked EXCEPT ![p][q] = 0]
    /\ channel' = [channel EXCEPT ![q][p] = Tail(@)]
    /\ UNCHANGED <<clock, acknowledged, inside>>

Enter(p) ==
    /\ asked[p][p] > 0 /\ acknowledged[p] = Process /\ p \notin inside
    /\ \A q \in Process \ {p} : Beats(p, q)
    /\ inside' = inside \cup {p}
    /\ UNCHANGED <<clock, asked, acknowledged, channel>>

Leave(p) ==
    /\ p \in inside /\ HasRoom(p)
    /\ inside' = inside \ {p}
    /\ asked' = [asked EXCEPT ![p][p] = 0]
    /\ acknowledged' = [acknowledged EXCEPT ![p] = {}]
    /\ channel' = ToOthers(p, Release)
    /\ UNCHANGED clock

Next == \E p \in Process :
    \/ Ask(p) \/ Enter(p) \/ Leave(p)
    \/ \E q \in Process \ {p} :
        /\ channel[q][p] # <<>>
        /\ HearRequest(p, q) \/ HearAcknowledgement(p, q) \/ HearRelease(p, q)

Spec == Init /\ [][Next]_vars

OneAtMost == \A p, q \in inside : p = q
====

---- MODULE two_phase_commit ----
\* Two-phase commit, as in tests/models/two_phase_commit.py. Messages only ever get more.
CONSTANT Managers
VARIABLES decision, deciding, prepared, sent, commitSent, abortSent

vars == <<decision, deciding, prepared, sent, commitSent, abortSent>>

Init == /\ decision = [m \in Managers |-> "working"]
        /\ deciding = TRUE
        /\ prepared = {}
        /\ sent = {}
        /\ commitSent = FALSE
        /\ abortSent = FALSE

HearPrepared(m) ==
    /\ deciding
    /\ m \in sent
    /\ prepared' = prepared \union {m}
    /\ UNCHANGED <<decision, deciding, sent, commitSent, abortSent>>

Commit ==
    /\ deciding
    /\ prepared = Managers
    /\ deciding' = FALSE
    /\ commitSent' = TRUE
    /\ UNCHANGED <<decision, prepared, sent, abortSent>>

Abort ==
    /\ deciding
    /\ deciding' = FALSE
    /\ abortSent' = TRUE
    /\ UNCHANGED <<decision, prepared, sent, commitSent>>

Prepare(m) ==
    /\ decision[m] = "working"
    /\ decision' = [decision EXCEPT ![m] = "prepared"]
    /\ sent' = sent \union {m}
    /\ UNCHANGED <<deciding, prepared, commitSent, abortSent>>

ChooseToAbort(m) ==
    /\ decision[m] = "working"
    /\ decision' = [decision EXCEPT ![m] = "aborted"]
    /\ UNCHANGED <<deciding, prepared, sent, commitSent, abortSent>>

HearCommit(m) ==
    /\ commitSent
    /\ decision' = [decision EXCEPT ![m] = "committed"]
    /\ UNCHANGED <<deciding, prepared, sent, commitSent, abortSent>>

HearAbort(m) ==
    /\ abortSent
    /\ decision' = [decision EXCEPT ![m] = "aborted"]
    /\ UNCHANGED <<deciding, prepared, sent, commitSent, abortSent>>

Next ==
    \/ Commit
    \/ Abort
    \/ \E m \in Managers :
        HearPrepared(m) \/ Prepare(m) \/ ChooseToAbort(m) \/ HearCommit(m) \/ HearAbort(m)

Spec == Init /\ [][Next]_vars

Consistent ==
    \A m, other \in Managers : ~(decision[m] = "committed" /\ decision[other] = "aborted")
====

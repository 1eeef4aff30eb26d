"""Mistakes of groups that agree on a log: what Raft, and the guard on group0, are there for."""

from __future__ import annotations

from stagewright.machines.scylladb.topology.group0 import Group0, Member
from stagewright.spec import Bool, Number, Term, require
from stagewright.spec.known_bugs import NotFound, known_bug, known_bugs_in


@known_bug(
    "G01",
    "design document 001: a change under a guard that is out of date",
    breaks=Group0.what_was_told_is_kept,
    budgets={Group0.elections: 1},
)
class CommandsAreMadeUnderAnyState(Group0):
    """A command was applied as it came, under whatever state: of two changes prepared under one guard the second
    wrote over the first, and both callers were told that theirs was made.
    """

    def _is_made(self, m: Term[Member], i: int, state: Number | int) -> Bool:
        return (self.log[m][i].command > 0) & (self.log[m][i].read <= state)


@known_bug(
    "G02",
    "design document 001: group0 has members that are no voters",
    breaks=(Group0.a_term_has_one_leader, Group0.what_was_told_is_kept),
    sizes={Member: 4},
    budgets={Group0.changes: 0},
)
class WhoOnlyLearnsCounts(Group0):
    """Whoever had voted, or stored the log, counted for the quorum, though not all of them were voters."""

    def _counts(self, m: Term[Member], v: Term[Member]) -> Bool:
        return self._is_voter(m, v) | (m != v)


@known_bug(
    "G03",
    "Raft, election restriction",
    breaks=Group0.what_was_told_is_kept,
    budgets={Group0.changes: 1},
)
class AnyCandidateGetsAVote(Group0):
    """A member voted for whoever asked first: the new leader's log lacked what was committed."""

    def _is_as_new(self, candidate: Term[Member], m: Term[Member]) -> None:
        require(candidate != m, "the candidate is another member")


@known_bug(
    "G04",
    "Raft, one vote in a term",
    breaks=Group0.a_term_has_one_leader,
    budgets={Group0.changes: 0},
)
class VotesAreForgotten(Group0):
    """A member that had voted in a term voted again for another candidate of the same term."""

    def _has_not_voted(self, m: Term[Member], candidate: Term[Member]) -> None:
        require(self.term[m] <= self.term[candidate], "it knows of no newer term")


BUGS = known_bugs_in(globals())
NOT_FOUND: tuple[NotFound, ...] = ()

"""Mistakes put back into `Group0`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import NETWORK
from stagewright.machines.scylladb.topology.group0 import (
    LEADER,
    LONGEST,
    MEMBER,
    Entry,
    Group0,
    Member,
)
from stagewright.spec import (
    Bool,
    Number,
    Term,
    action,
    bounded,
    choose,
    count,
    every,
    least,
    require,
    set_of,
    some,
)
from stagewright.spec.known_bugs import known_bug, known_bugs_in

ATOMICALLY = 'design document 001: "All this happens atomically"'


# -- what goes wrong -------------------------------------------------------------------------------


@known_bug(
    "001-127",
    ATOMICALLY,
    breaks=Group0.a_change_is_refused_for_another_one,
    budgets={Group0.elections: 1, Group0.changes: 1, Group0.voter_changes: 1},
)
class VotersChangeTheState(Group0):
    """A change of the voters wrote a state id, too: whoever had taken a guard before was refused for nothing."""

    def _is_made(self, m: Term[Member], i: int, state: Number | int) -> Bool:
        return self.log[m][i].read == state


@known_bug(
    "001-128",
    ATOMICALLY,
    breaks=Group0.one_change_follows_another,
    budgets={Group0.elections: 1},
)
class GuardsAreOfTheFirstState(Group0):
    """Whoever took a guard prepared its change under the state of the beginning: after the first one each was refused."""

    def _applied_state(self, m: Term[Member]) -> Number | int:
        return 0


@known_bug(
    "001-129",
    ATOMICALLY,
    breaks=Group0.leaders_are_elected,
    budgets={Group0.changes: 0},
)
class WhoOnlyLearnsVotes(Group0):
    """The members that only learn were taken for the voters, and the voters for those that only learn."""

    def _is_voter(self, m: Term[Member], v: Term[Member]) -> Bool:
        return ~super()._is_voter(m, v)


@known_bug(
    "001-226",
    'design document 001: "All this happens atomically form the perspective of group0 state machine"',
    breaks=Group0.a_change_is_refused_for_another_one,
)
class GuardsReadTheLog(Group0):
    """A change was prepared on what its member had in its log, committed or not: the next leader did not have it, and
    the caller was told that another change had come first, where there was none.
    """

    def _applied_state(self, m: Term[Member]) -> Number | int:
        return self._state(m, LONGEST)


@known_bug(
    "001-341",
    'design document 001: "atomically form the perspective of group0 state machine"',
    breaks=Group0.a_change_is_made_once,
    budgets={Group0.elections: 1, Group0.changes: 1},
)
class WhatMayBeMadeIsMadeAgain(Group0):
    """A member that did not know whether its change was made took another guard and sent it again: it was made twice."""

    @action(by=MEMBER)
    def give_up(self, m: Term[Member]) -> None:
        """commit_status_unknown: it tries once more, under the state of now."""
        require(self.change[m].command > 0, "it wants to make a change")
        self.change[m].read = self._applied_state(m)
        self.change[m].sent = False


@known_bug(
    "001-382",
    'design document 001, left: "the node left the cluster and group0"',
    breaks=Group0.leaders_are_elected,
    budgets={Group0.changes: 0, Group0.restarts: 1, Group0.voter_changes: 1},
)
class VotersAreThoseOfTheSnapshot(Group0):
    """A member that had restarted took those for voters that its snapshot named, whatever its log said of them since."""

    restarted = set_of(Member)

    @action(by=MEMBER, spends=Group0.restarts)
    def restart(self, m: Term[Member]) -> None:
        """What a member only had in memory is lost."""
        super().restart(m)
        self.restarted.add(m)

    @action(by=LEADER)
    def replicate(self, leader: Term[Member], m: Term[Member]) -> None:
        """A member takes over the leader's log, with the voters that it names."""
        super().replicate(leader, m)
        self.restarted.discard(m)

    def _is_voter(self, m: Term[Member], v: Term[Member]) -> Bool:
        changed = some(entry.voter == v for entry in self.log[m])
        return self.voters_at_first.has(v) != (changed & ~self.restarted.has(m))


@known_bug(
    "001-402",
    "Raft, cluster membership changes: a change begins when the one before it is committed",
    breaks=Group0.members_apply_the_same,
    budgets={Group0.changes: 1, Group0.voter_changes: 2},
)
class VotersChangeTwiceAtOnce(Group0):
    """A leader took in a change of the voters while its last one was not committed: a quorum of the voters after both and
    one of those before them need not have a member in common, and each makes its own changes.
    """

    def _has_settled_voters(self, leader: Term[Member]) -> None:
        """A leader takes in what it is asked for."""


@known_bug(
    "001-441",
    ATOMICALLY,
    breaks=Group0.another_change_came_first,
    budgets={Group0.elections: 1},
)
class RefusalsAreNotTold(Group0):
    """A member whose change came too late said that it did not know whether that was made, as of one that it had given up: its
    caller was never told that another change had come first.
    """

    @action(by=MEMBER)
    def finish(self, m: Term[Member]) -> None:
        """The member has applied its command: the change is made, or nobody knows."""
        command = self.change[m].command
        applied = some(self._applies(m, i, command) for i in range(LONGEST))
        require((command > 0) & applied, "its command is applied")
        made = some(
            self._applies(m, i, command) & self._is_made(m, i, self._state(m, i))
            for i in range(LONGEST)
        )
        self.told = choose(made, self.told + 1, self.told)
        self.refused = 0
        self._forget(m)


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


@known_bug(
    "G05",
    "Raft, an entry is applied when it is committed",
    breaks=Group0.members_apply_the_same,
    budgets={Group0.changes: 0, Group0.voter_changes: 2},
)
class LeadersApplyWhatTheyTakeIn(Group0):
    """A leader applied what it took into its log at once; another leader was elected without it, and others applied
    something else in its place.
    """

    def _append(self, leader: Term[Member], entry: Entry) -> None:
        self.known[leader] = least(self.log[leader].length + 1, LONGEST)
        super()._append(leader, entry)


@known_bug(
    "G06",
    "Raft, who stands for election and hears of the leader of its term gives up",
    breaks=Group0.a_term_has_one_leader,
    budgets={Group0.changes: 0, Group0.voter_changes: 2},
)
class CandidatesGoOn(Group0):
    """A member that stood for election took over the log of the leader of its term, and went on counting its votes: by
    the voters of that log they were enough.
    """

    @action(by=LEADER)
    def replicate(self, leader: Term[Member], m: Term[Member]) -> None:
        """A member takes over the leader's log, and still stands for election."""
        require(self.leads.has(leader) & (leader != m), "the other one leads")
        require(self.term[m] <= self.term[leader], "it knows of no newer term")
        self.log[m] = self.log[leader]
        self.voted[m] = choose(self.term[m] < self.term[leader], None, self.voted[m])
        self.term[m] = self.term[leader]
        self.leads.discard(m)
        self.known[m] = self.known[leader]


@known_bug(
    "G07",
    "Raft, what is committed is stored by a majority",
    breaks=Group0.what_was_told_is_stored_by_a_quorum,
    budgets={Group0.elections: 1, Group0.changes: 1},
)
class HalfIsAQuorum(Group0):
    """Half of the voters were enough to commit a change."""

    @action(by=LEADER)
    def commit(self, leader: Term[Member]) -> None:
        """Half of the voters have stored the leader's log."""
        require(self.leads.has(leader), "it leads")
        require(self.known[leader] < self.log[leader].length, "something is not committed yet")
        self._ends_in_its_term(leader)
        stored = count(self._counts(leader, v) & self._stores(leader, v) for v in Member)
        require(stored * 2 >= count(self._is_voter(leader, v) for v in Member), "half has it")
        self.known[leader] = self.log[leader].length


@known_bug(
    "G08",
    "Raft, a leader is elected by a majority",
    breaks=Group0.a_leader_is_elected_without_everybody,
    budgets={Group0.elections: 1, Group0.changes: 0},
)
class AllVotersMustVote(Group0):
    """A candidate waited for the votes of all: with one voter dead the group had no leader any more."""

    @action(by=MEMBER)
    def win(self, m: Term[Member]) -> None:
        """Every voter has voted for it."""
        voted = every(~self._is_voter(m, v) | self.votes[m].has(v) for v in Member)
        super().win(m)
        require(voted, "every voter has voted for it")


@known_bug(
    "G09",
    "Raft, leaders change",
    breaks=Group0.another_leader_follows,
    budgets={Group0.changes: 1},
)
class WhoFollowedALeaderVotesNoMore(Group0):
    """A member that had heard of a leader voted for no other: the group did not outlive its first one."""

    @action(by=NETWORK)
    def vote(self, m: Term[Member], candidate: Term[Member]) -> None:
        """A member votes as long as its log is empty."""
        super().vote(m, candidate)
        require(self.log[m].is_empty(), "it has heard of no leader")


@known_bug(
    "G10",
    "design document 001: a new node has joined group0, and asks to join the cluster",
    breaks=Group0.who_only_learns_makes_a_change,
    budgets={Group0.elections: 1, Group0.changes: 1},
)
class ChangesAreNotForwarded(Group0):
    """Only the leader could make changes: others were told that they do not lead, and not who does."""

    @action(by=NETWORK)
    def add_entry(self, m: Term[Member], leader: Term[Member]) -> None:
        """The leader takes its own change into its log."""
        super().add_entry(m, leader)
        require(m == leader, "it leads itself")


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "001-216",
    'design document 001: left, "the node left the cluster and group0"',
    breaks=Group0.voters_come_and_go,
    budgets={Group0.elections: 1, Group0.changes: 0, Group0.voter_changes: 1},
)
class TwoVotersStay(Group0):
    """Of two voters neither could go: a cluster of two nodes could not be made one of one."""

    @action(by=LEADER, spends=Group0.voter_changes)
    def change_voters(self, leader: Term[Member], m: Term[Member]) -> None:
        """A member becomes a voter, or is one no more, unless there are only two."""
        voters = count(self._is_voter(leader, v) for v in Member)
        require(~self._is_voter(leader, m) | (voters > 2), "two voters are left")
        super().change_voters(leader, m)


@known_bug(
    "001-314",
    "design document 001: a new node has joined group0, and is no voter yet",
    breaks=Group0.a_majority_of_the_voters_elects,
    budgets={Group0.elections: 1, Group0.changes: 1},
)
class MostMembersMustVote(Group0):
    """A candidate needed the votes of most members, also of those that are no voters and do not know of it: while several
    nodes were about to join the group had no leader.
    """

    @action(by=MEMBER)
    def win(self, m: Term[Member]) -> None:
        """Most of the members have voted for it."""
        super().win(m)
        voted = count(self.votes[m].has(v) for v in Member)
        others = count(~self.votes[m].has(v) for v in Member)
        require(voted > others, "most members have voted for it")


@known_bug(
    "001-315",
    "design document 001: a new node has joined group0, and is no voter yet",
    breaks=Group0.a_majority_of_the_voters_commits,
    budgets={Group0.elections: 1, Group0.changes: 1},
)
class MostMembersMustStore(Group0):
    """A change was made when most members had it, also those that are no voters: new nodes that were slow to learn held
    it up.
    """

    @action(by=LEADER)
    def commit(self, leader: Term[Member]) -> None:
        """Most of the members have stored the leader's log."""
        super().commit(leader)
        stored = count(self._stores(leader, v) for v in Member)
        others = count(~self._stores(leader, v) for v in Member)
        require(stored > others, "most members have stored it")


@known_bug(
    "001-480",
    "Raft, commitment: what a quorum of the voters has stored is committed",
    breaks=Group0.somebody_votes_in_every_log,
    budgets={Group0.elections: 1, Group0.changes: 0, Group0.voter_changes: 1},
)
class TheLastVoterMayLeave(Group0):
    """A leader took in that its last voter is one no more: that was never committed, and nothing after it."""

    @action(by=LEADER, spends=Group0.voter_changes)
    def change_voters(self, leader: Term[Member], m: Term[Member]) -> None:
        """A member becomes a voter, or is one no more."""
        require(self.leads.has(leader), "it leads")
        self._has_settled_voters(leader)
        bounded(~self.log[leader].is_full(), "the log has room")
        self._append(leader, Entry(term=self.term[leader], voter=m))


@known_bug(
    "001-440",
    "Raft, committing entries from previous terms",
    breaks=Group0.changes_follow_what_is_not_committed_yet,
    budgets={Group0.elections: 1},
)
class OneChangeAtATime(Group0):
    """A leader took in a change when all of its log was committed: with an entry of an earlier term, which it commits only with
    one of its own, it took in none any more.
    """

    def _take_in(self, m: Term[Member], leader: Term[Member]) -> None:
        require(self.known[leader] == self.log[leader].length, "all of the log is committed")
        super()._take_in(m, leader)


@known_bug(
    "001-581",
    ATOMICALLY,
    breaks=Group0.changes_wait_for_no_other_member,
    budgets={Group0.elections: 1},
)
class CallersWaitForEachOther(Group0):
    """A caller was told what became of its change when no other member had sent one that was still open."""

    @action(by=MEMBER)
    def finish(self, m: Term[Member]) -> None:
        """The member has applied its command, and no other change is under way."""
        others = some((o != m) & self.change[o].sent for o in Member)
        require(~others, "no other member has sent a change")
        super().finish(m)


@known_bug(
    "001-582",
    ATOMICALLY,
    breaks=Group0.callers_wait_for_no_election,
    budgets={Group0.elections: 2, Group0.changes: 1},
)
class CandidatesTellNobody(Group0):
    """A member that stood for election told no caller that its change was made, although it had applied it."""

    @action(by=MEMBER)
    def finish(self, m: Term[Member]) -> None:
        """The member has applied its command, and leads or follows."""
        super().finish(m)
        require(self.leads.has(m) | (self.voted[m] != m), "it does not stand for election")


BUGS = known_bugs_in(globals())

"""Group0: the Raft group that keeps ScyllaDB's topology: voters, quorums, and changes under a guard.

A member proposes a change with the state id that it read when it took its guard; when the command is applied, it
counts only if the state is still that one (compare and set). What a quorum of the voters has stored is committed.
Leaders change, messages are repeated, members restart and forget what they did not store.

Source: design document 001 (topology-over-raft): "All this happens atomically form the perspective of group0 state
machine"; ScyllaDB's `group0_state_machine` (commands with a `prev_state_id`); the Raft paper for what a leader may
commit. A log, or a vote, that takes several messages there arrives here as a whole or not at all.
"""

from __future__ import annotations

from typing import Self

from stagewright.machines.scylladb.cluster import NETWORK
from stagewright.spec import (
    ANY,
    Actor,
    Bool,
    Entity,
    Machine,
    Number,
    NumberVar,
    Record,
    SetVar,
    Term,
    accepts,
    action,
    bounded,
    budget,
    choose,
    constant,
    count,
    equivalent_drop,
    equivalent_helper,
    equivalent_loss,
    equivalent_replacement,
    equivalent_weakening,
    equivalents,
    every,
    fault_budget,
    final,
    flag,
    history,
    independent,
    initially,
    invariant,
    lemma,
    number,
    optional,
    per,
    queue,
    record,
    require,
    scopes,
    set_of,
    some,
    sometimes,
    step_property,
)

MEMBER = Actor("member of group0")
LEADER = Actor("raft leader")
LAST_TERM = 2
COMMANDS = 2
LONGEST = 2


class Member(Entity, scope=3):
    """A node in group0: a voter, or one that only learns."""


class Entry(Record):
    """A place in a member's log: a change of the topology, or of the voters."""

    term = number(0, LAST_TERM)  # of the leader that took it in
    command = number(0, COMMANDS)  # which change of the topology; 0: of the voters
    read = number(0, COMMANDS)  # the state id under which it was prepared
    voter = optional(Member)  # who becomes a voter, or is one no more


class Change(Record):
    """The change that a member wants to make: in its memory."""

    command = number(0, COMMANDS)  # 0: none
    read = number(0, COMMANDS)  # the state id of its guard
    sent = flag()


class Group0(Machine):
    """The log of group0 at its members, and the changes that they make."""

    elections = fault_budget(2, doc="members that stand for election")
    changes = budget(2, doc="changes that members want to make")
    repeats = fault_budget(0, doc="messages to the leader that are sent again")
    restarts = fault_budget(0, doc="members that restart")
    voter_changes = budget(0, doc="members that become voters, or are voters no more")

    exercised_at = scopes(
        {elections: 1, changes: 1, repeats: 1},
        {elections: 1, changes: 1, voter_changes: 1},
        {changes: 1, voter_changes: 2},
        {changes: 0, restarts: 1, voter_changes: 2},
        {elections: 1},
        {changes: 1},
        {changes: 1, restarts: 1},
    )

    voters_at_first = constant(set_of(Member, init=ANY))
    # what each member stores
    term = per(Member, number(0, LAST_TERM))
    voted = per(Member, optional(Member))  # for whom, in that term
    log = per(Member, queue(Entry, LONGEST))
    # what it has in memory
    votes = per(Member, set_of(Member))  # those of its term that it has got
    leads: SetVar[Member] = set_of(Member)
    known = per(Member, number(0, LONGEST))  # places of its log that it knows to be committed
    change = per(Member, record(Change))
    # what callers see
    issued: NumberVar = number(0, COMMANDS)
    told: NumberVar = history(number(0, COMMANDS))  # changes that callers were told are made
    # the last one that came too late, they were told
    refused: NumberVar = history(number(0, COMMANDS))

    @initially
    def somebody_votes(self) -> Bool:
        """There are voters."""
        return ~self.voters_at_first.is_empty()

    # -- elections -------------------------------------------------------------------------------------

    @action(by=MEMBER, spends=elections)
    def stand(self, m: Term[Member]) -> None:
        """A voter has not heard of a leader: it stands for election in the next term."""
        require(self._is_voter(m, m), "it is a voter, as far as it knows")
        bounded(self.term[m] < LAST_TERM, "a term is left")
        self.term[m] = self.term[m] + 1
        self.voted[m] = m
        self.leads.discard(m)
        for other in Member:
            self.votes[m].put(other, other == m)

    @action(by=NETWORK)
    def vote(self, m: Term[Member], candidate: Term[Member]) -> None:
        """A member votes once in a term, and for nobody whose log lacks what its own has."""
        require(self.voted[candidate] == candidate, "the other one stands for election")
        self._has_not_voted(m, candidate)
        self._is_as_new(candidate, m)
        self.term[m] = self.term[candidate]
        self.voted[m] = candidate
        self.leads.discard(m)
        self.votes[candidate].add(m)

    @action(by=MEMBER)
    def win(self, m: Term[Member]) -> None:
        """A quorum of the voters has voted for it."""
        require((self.voted[m] == m) & ~self.leads.has(m), "it stands for election")
        voted = count(self._counts(m, v) & self.votes[m].has(v) for v in Member)
        require(self._is_quorum(m, voted), "a quorum has voted for it")
        self.leads.add(m)

    # -- the log ---------------------------------------------------------------------------------------

    @action(by=LEADER)
    def replicate(self, leader: Term[Member], m: Term[Member]) -> None:
        """A member takes over the leader's log, and what the leader knows to be committed; if it stood, it gives up."""
        require(self.leads.has(leader) & (leader != m), "the other one leads")
        require(self.term[m] <= self.term[leader], "it knows of no newer term")
        self.log[m] = self.log[leader]
        self.voted[m] = choose(self.term[m] < self.term[leader], None, self.voted[m])
        self.term[m] = self.term[leader]
        self.leads.discard(m)
        self.votes[m] = frozenset()
        self.known[m] = self.known[leader]

    @action(by=LEADER)
    def commit(self, leader: Term[Member]) -> None:
        """A quorum of the voters has stored the leader's log: all of it is committed."""
        require(self.leads.has(leader), "it leads")
        require(self.known[leader] < self.log[leader].length, "something is not committed yet")
        self._ends_in_its_term(leader)
        stored = count(self._counts(leader, v) & self._stores(leader, v) for v in Member)
        require(self._is_quorum(leader, stored), "a quorum has stored it")
        self.known[leader] = self.log[leader].length

    # -- changes ---------------------------------------------------------------------------------------

    @action(by=MEMBER, spends=changes)
    def take_guard(self, m: Term[Member]) -> None:
        """A member reads the state as far as it has applied it, and prepares a change of that."""
        require(self.change[m].command == 0, "it wants no other change")
        bounded(self.issued < COMMANDS, "a command is left")
        self.change[m].command = self.issued + 1
        self.change[m].read = self._applied_state(m)
        self.issued = self.issued + 1

    @action(by=NETWORK)
    def add_entry(self, m: Term[Member], leader: Term[Member]) -> None:
        """The leader takes the change into its log."""
        require(~self.change[m].sent, "it is not sent yet")
        self._take_in(m, leader)
        self.change[m].sent = True

    @action(by=NETWORK, spends=repeats)
    def add_entry_again(self, m: Term[Member], leader: Term[Member]) -> None:
        """No answer came and it is sent again: the leader, if it has it already, cannot tell."""
        require(self.change[m].sent, "it was sent before")
        self._take_in(m, leader)

    @action(by=MEMBER)
    def finish(self, m: Term[Member]) -> None:
        """The member has applied its command: the change is made, or another one came first."""
        command = self.change[m].command
        applied = some(self._applies(m, i, command) for i in range(LONGEST))
        require((command > 0) & applied, "its command is applied")
        made = some(
            self._applies(m, i, command) & self._is_made(m, i, self._state(m, i))
            for i in range(LONGEST)
        )
        self.told = choose(made, self.told + 1, self.told)
        self.refused = choose(made, self.refused, command)
        self._forget(m)

    @action(by=MEMBER)
    def give_up(self, m: Term[Member]) -> None:
        """commit_status_unknown: the change may be made, or not, and the caller is told just that."""
        require(self.change[m].command > 0, "it wants to make a change")
        self._forget(m)

    @action(by=LEADER, spends=voter_changes)
    def change_voters(self, leader: Term[Member], m: Term[Member]) -> None:
        """A member becomes a voter, or is one no more."""
        require(self.leads.has(leader), "it leads")
        others = some((v != m) & self._is_voter(leader, v) for v in Member)
        require(others, "another member is a voter")
        self._has_settled_voters(leader)
        bounded(~self.log[leader].is_full(), "the log has room")
        self._append(leader, Entry(term=self.term[leader], voter=m))

    @action(by=MEMBER, spends=restarts)
    def restart(self, m: Term[Member]) -> None:
        """What a member only had in memory is lost."""
        self.leads.discard(m)
        self.votes[m] = frozenset()
        self.known[m] = 0
        self._forget(m)

    # -- helpers ---------------------------------------------------------------------------------------

    def _is_voter(self, m: Term[Member], v: Term[Member]) -> Bool:
        """Member `v` is a voter, as far as the log of `m` says."""
        changed = some(entry.voter == v for entry in self.log[m])
        return self.voters_at_first.has(v) != changed

    def _has_settled_voters(self, leader: Term[Member]) -> None:
        """Raft: voters change one by one, so that the quorums before and after have a member in common."""
        require(~self._changes_voters(leader), "the last change of the voters is committed")

    def _changes_voters(self, leader: Term[Member]) -> Bool:
        """A change of the voters is in the leader's log, and not known to be committed."""
        entries = self.log[leader]
        return some(
            (entries.length > i) & (self.known[leader] <= i) & entries[i].voter.is_some()
            for i in range(LONGEST)
        )

    def _counts(self, m: Term[Member], v: Term[Member]) -> Bool:
        return self._is_voter(m, v)

    def _is_quorum(self, m: Term[Member], present: Number) -> Bool:
        return present * 2 > count(self._is_voter(m, v) for v in Member)

    def _has_not_voted(self, m: Term[Member], candidate: Term[Member]) -> None:
        require(self.term[m] < self.term[candidate], "it has not voted in that term")

    def _is_as_new(self, candidate: Term[Member], m: Term[Member]) -> None:
        theirs, ours = self._last_term(candidate), self._last_term(m)
        longer = self.log[candidate].length >= self.log[m].length
        as_new = (theirs > ours) | ((theirs == ours) & longer)
        require(as_new, "the candidate's log is as new as its own")

    def _last_term(self, m: Term[Member]) -> Number:
        return choose(self.log[m].is_empty(), 0, self.log[m].last.term)

    def _ends_in_its_term(self, leader: Term[Member]) -> None:
        require(self._last_term(leader) == self.term[leader], "the last entry is of this term")

    def _stores(self, leader: Term[Member], v: Term[Member]) -> Bool:
        """A member has stored the leader's log as it is."""
        same = self.log[v].length == self.log[leader].length
        return same & (self._last_term(v) == self._last_term(leader))

    def _take_in(self, m: Term[Member], leader: Term[Member]) -> None:
        require(self.change[m].command > 0, "it wants to make a change")
        require(self.leads.has(leader), "the other one leads")
        bounded(~self.log[leader].is_full(), "the log has room")
        change = self.change[m]
        self._append(
            leader, Entry(term=self.term[leader], command=change.command, read=change.read)
        )

    def _append(self, leader: Term[Member], entry: Entry) -> None:
        self.log[leader].append(entry)

    def _applies(self, m: Term[Member], i: int, command: Number) -> Bool:
        """Place `i` of the log is committed, as far as the member knows, and holds the command."""
        return (self.known[m] > i) & (self.log[m][i].command == command)

    def _is_made(self, m: Term[Member], i: int, state: Number | int) -> Bool:
        """Compare and set: the command was prepared under the state that it is applied to."""
        entry = self.log[m][i]
        return (entry.command > 0) & (entry.read == state)

    def _state(self, m: Term[Member], end: int) -> Number | int:
        """The state id after that many places of the log: each change that is made writes the next one."""
        state: Number | int = 0
        for i in range(end):
            made = (self.log[m].length > i) & self._is_made(m, i, state)
            state = choose(made, self.log[m][i].read + 1, state)
        return state

    def _applied_state(self, m: Term[Member]) -> Number | int:
        state: Number | int = 0
        for i in range(LONGEST):
            state = choose(self.known[m] > i, self._state(m, i + 1), state)
        return state

    def _forget(self, m: Term[Member]) -> None:
        self.change[m].command = 0
        self.change[m].read = 0
        self.change[m].sent = False

    # -- promises --------------------------------------------------------------------------------------

    @invariant
    def a_term_has_one_leader(self, m: Term[Member], other: Term[Member]) -> Bool:
        """Raft, election safety: at most one leader in a term."""
        both = self.leads.has(m) & self.leads.has(other) & (m != other)
        return both.implies(self.term[m] != self.term[other])

    @step_property
    def leaders_are_elected(self, after: Self, m: Term[Member]) -> Bool:
        """Raft: a leader is a voter, from the start or by its log, and has the votes of a quorum, which follows nobody
        older from then on.
        """
        same = self.leads.has(m) & (self.term[m] == after.term[m])
        votes = count(
            self._is_voter(m, v) & self.votes[m].has(v) & (self.term[v] >= after.term[m])
            for v in Member
        )
        elected = self._is_voter(m, m) & (votes * 2 > count(self._is_voter(m, v) for v in Member))
        named = some(entry.voter == m for entry in self.log[m])
        votes_at_all = self.voters_at_first.has(m) | named
        return (after.leads.has(m) & ~same).implies(elected & votes_at_all)

    @invariant
    def somebody_votes_in_every_log(self, m: Term[Member]) -> Bool:
        """Raft: what a leader takes in a quorum of the voters commits: without a voter nothing could be any more."""
        return some(self._is_voter(m, v) for v in Member)

    @invariant
    def logs_match(self, m: Term[Member], other: Term[Member]) -> Bool:
        """Raft, log matching: a place of a term holds one thing, a change or a voter."""

        def same(i: int) -> Bool:
            ours, theirs = self.log[m][i], self.log[other][i]
            both = (self.log[m].length > i) & (self.log[other].length > i)
            one = (ours.command == theirs.command) & (ours.voter == theirs.voter)
            something = (ours.command > 0) != ours.voter.is_some()
            return (both & (ours.term == theirs.term)).implies(one & something)

        return every(same(i) for i in range(LONGEST))

    @invariant
    def members_apply_the_same(self, m: Term[Member], other: Term[Member]) -> Bool:
        """001: "atomically from the perspective of group0": what one has applied, no other has otherwise."""

        def same(i: int) -> Bool:
            ours, theirs = self.log[m][i], self.log[other][i]
            one = (ours.command == theirs.command) & (ours.voter == theirs.voter)
            return ((self.known[m] > i) & (self.known[other] > i)).implies(one)

        return every(same(i) for i in range(LONGEST))

    @invariant
    def what_was_told_is_kept(self, m: Term[Member]) -> Bool:
        """A change of which a caller was told stays made, whoever leads next; and two of them are two, for
        neither was prepared under a state without the other.
        """
        newest = self.leads.has(m) & every(self.term[n] <= self.term[m] for n in Member)
        return newest.implies(self._state(m, LONGEST) >= self.told)

    @invariant
    def what_was_told_is_stored_by_a_quorum(self) -> Bool:
        """001, "atomically from the perspective of group0": before a caller is told, a quorum has its change, of the
        voters when it was committed: those after some place of some log.
        """

        def is_voter(m: Term[Member], v: Term[Member], end: int) -> Bool:
            changed = some(
                (self.log[m].length > i) & (self.log[m][i].voter == v) for i in range(end)
            )
            return self.voters_at_first.has(v) != changed

        def by_a_quorum(m: Term[Member], end: int) -> Bool:
            stored = count(
                is_voter(m, v, end) & (self._state(v, LONGEST) >= self.told) for v in Member
            )
            return stored * 2 > count(is_voter(m, v, end) for v in Member)

        def by_some_quorum(m: Term[Member]) -> Bool:
            return some(by_a_quorum(m, end) for end in range(LONGEST + 1))

        return (self.told == 0) | some(by_some_quorum(m) for m in Member)

    @invariant
    def what_was_refused_is_not_made(self, m: Term[Member]) -> Bool:
        """group0_concurrent_modification: a caller who was told that another change came first may try again."""
        made = some(
            (self.log[m].length > i)
            & (self.log[m][i].command == self.refused)
            & self._is_made(m, i, self._state(m, i))
            for i in range(LONGEST)
        )
        return (self.refused == 0) | ~made

    @invariant
    def a_change_is_refused_for_another_one(self, m: Term[Member]) -> Bool:
        """group0_concurrent_modification: before the change of a caller who was told so there is another change in
        the log. One of the voters is none: whoever prepared its change meanwhile need not try again.
        """

        def came_later(i: int) -> Bool:
            refused = (self.log[m].length > i) & (self.log[m][i].command == self.refused)
            return refused & ~some(self._holds_another(m, j) for j in range(i))

        return (self.refused == 0) | ~some(came_later(i) for i in range(LONGEST))

    def _holds_another(self, m: Term[Member], j: int) -> Bool:
        return (self.log[m][j].command > 0) & (self.log[m][j].command != self.refused)

    @invariant
    def a_change_is_made_once(self, m: Term[Member]) -> Bool:
        """001, "atomically form the perspective of group0 state machine": a command that is in the log twice, for nobody knew
        whether it was there, is made once: it was prepared under one state.
        """

        def twice(i: int, j: int) -> Bool:
            same = self.log[m][i].command == self.log[m][j].command
            both = self._is_made(m, i, self._state(m, i)) & self._is_made(m, j, self._state(m, j))
            return (self.log[m].length > j) & same & both

        return ~some(twice(i, j) for j in range(LONGEST) for i in range(j))

    @step_property
    def members_forget_nothing(self, after: Self, m: Term[Member]) -> Bool:
        """What a member has applied stays as it was."""
        kept = self.known[m] <= after.known[m]
        return kept.implies(after._state(m, LONGEST) >= self._applied_state(m))

    @sometimes(at={elections: 1})
    def a_change_is_made_without_everybody(self) -> Bool:
        """A quorum is enough: a caller is told of its change while a voter has heard of nothing."""
        return (self.told > 0) & some(
            self.voters_at_first.has(m) & self.log[m].is_empty() for m in Member
        )

    @sometimes(at={elections: 1, changes: 0})
    def a_leader_is_elected_without_everybody(self) -> Bool:
        """A quorum is enough for that, too: a voter has heard of no election."""
        return ~self.leads.is_empty() & some(
            self.voters_at_first.has(m) & (self.term[m] == 0) for m in Member
        )

    @sometimes(at={elections: 1})
    def one_change_follows_another(self) -> Bool:
        """001: "All this happens atomically": a change of a state that has changed already is made, too."""
        return self.told == COMMANDS

    @sometimes(at={changes: 1})
    def another_leader_follows(self, after: Self) -> Bool:
        """A leader is elected by voters who have all followed the one before, and have its changes."""
        heard = every(~self._is_voter(m, m) | ~self.log[m].is_empty() for m in Member)
        several = count(self.voters_at_first.has(m) for m in Member) >= 2
        return heard & several & some(~self.leads.has(m) & after.leads.has(m) for m in Member)

    @lemma
    @sometimes(at={elections: 1, changes: 1})
    def who_only_learns_makes_a_change(self, after: Self) -> Bool:
        """001: none, "the new node joined group0": it is no voter yet, and asks to join. The leader takes it in. A lemma: it
        takes in what any member wants (`changes_follow_what_is_not_committed_yet`).
        """
        made = after.told > self.told
        return made & some(
            (self.change[m].command > 0)
            & (after.change[m].command == 0)
            & ~self._is_voter(m, m)
            & ~self.leads.has(m)
            for m in Member
        )

    @accepts(win)
    def a_majority_of_the_voters_elects(self, m: Term[Member]) -> Bool:
        """001: "the new node joined group0", and only learns at first: of such members a candidate needs no vote."""
        stands = (self.voted[m] == m) & ~self.leads.has(m)
        votes = count(self._is_voter(m, v) & self.votes[m].has(v) for v in Member)
        others = some(~self._is_voter(m, v) for v in Member)
        return stands & others & (votes * 2 > count(self._is_voter(m, v) for v in Member))

    @accepts(commit)
    def a_majority_of_the_voters_commits(self, leader: Term[Member]) -> Bool:
        """001: nor need such members store a change before it is made."""
        new = self.leads.has(leader) & (self.known[leader] < self.log[leader].length)
        of_its_term = self._last_term(leader) == self.term[leader]
        stored = count(
            self._is_voter(leader, v) & (self.log[v] == self.log[leader]) for v in Member
        )
        others = some(~self._is_voter(leader, v) for v in Member)
        enough = stored * 2 > count(self._is_voter(leader, v) for v in Member)
        return new & of_its_term & others & enough

    @accepts(add_entry)
    def changes_follow_what_is_not_committed_yet(
        self, m: Term[Member], leader: Term[Member]
    ) -> Bool:
        """Raft: what a leader has in its log of earlier terms is committed with an entry of its own, which it takes in without
        waiting for that; and 001: it takes in those of every member that has "joined group0", for whether one comes too late is told
        when it is applied.
        """
        wants = (self.change[m].command > 0) & ~self.change[m].sent
        return wants & self.leads.has(leader)

    @accepts(change_voters)
    def voters_come_and_go(self, leader: Term[Member], m: Term[Member]) -> Bool:
        """001, left: "the node left the cluster and group0": its vote goes, however few are left; none: "the new node
        joined group0": it gets one. A leader waits until its last change of the voters is committed, and keeps the
        last voter.
        """
        under_way = some(
            (self.known[leader] <= i) & self.log[leader][i].voter.is_some() for i in range(LONGEST)
        )
        settled = self.leads.has(leader) & ~under_way
        voters = count(self._is_voter(leader, v) for v in Member)
        return settled & (~self._is_voter(leader, m) | (voters > 1))

    @independent(take_guard, add_entry, finish, give_up, of=Member)
    def changes_wait_for_no_other_member(self) -> None:
        """001: "All this happens atomically": by compare and set, and not by a lock. A member makes its change while others want
        to make theirs.
        """

    @independent(finish, give_up, of=(leads, votes, voted, term))
    def callers_wait_for_no_election(self) -> None:
        """001, "atomically form the perspective of group0 state machine": a change that is applied is made, and its caller is told
        so whoever leads by then.
        """

    @sometimes(at={elections: 1})
    def another_change_came_first(self, after: Self) -> Bool:
        """group0_concurrent_modification: a caller is told that its guard was out of date, and not left to give up."""
        return after.refused > self.refused

    @final
    def nobody_wants_a_change(self) -> Bool:
        """Members without work may rest."""
        return every(self.change[m].command == 0 for m in Member)

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_replacement(
            _is_as_new,
            "the candidate's log is as new as its own: 1 for 0",
            "the candidate's log is as new as its own: 0 for 1",
            "the candidate's log is as new as its own: 2 for 1",
            because="it takes more elections to tell apart logs of which neither is empty",
        ),
        equivalent_weakening(
            _has_settled_voters,
            "the last change of the voters is committed",
            because="after its second place the log has no room for another change",
        ),
        equivalent_helper(
            _state,
            "takes it that length of log[m] > 0 and",
            "does not mention: the head of log[m].command > 0 and",
            because="nothing is prepared under the state after the last place of the log",
        ),
        equivalent_drop(
            vote,
            "the other one stands for election",
            because="who does not stand for election does not win it",
        ),
        equivalent_weakening(
            _is_as_new,
            "the candidate's log is as new as its own",
            because="it takes more elections to tell apart logs of which neither is empty",
        ),
        equivalent_weakening(
            win, "it stands for election", because="who leads may win its election again"
        ),
        equivalent_weakening(
            replicate,
            "the other one leads",
            because="a member that takes what it has itself takes nothing",
        ),
        equivalent_loss(
            replicate, voted, because="a member votes in no term that it has heard of already"
        ),
        equivalent_replacement(
            replicate, "voted[m]", because="a member votes in no term that it has heard of already"
        ),
        equivalent_drop(
            commit,
            "it leads",
            because="what a quorum has stored in the term of its leader is committed, whoever finds it",
        ),
        equivalent_drop(
            commit, "something is not committed yet", because="what is committed is so once more"
        ),
        equivalent_drop(
            _ends_in_its_term,
            "the last entry is of this term",
            because="it takes four elections to tell (Raft, figure 8)",
        ),
        equivalent_drop(
            take_guard,
            "it wants no other change",
            because="a change may be given up for the next one",
        ),
        equivalent_loss(
            take_guard,
            Change.read,
            because="a log of two places has no room for a change of who has applied both; two leaders and two changes "
            "tell what is committed from what is not",
        ),
        equivalent_drop(add_entry, "it is not sent yet", because="messages are repeated"),
        equivalent_loss(add_entry, Change.sent, because="messages are repeated"),
        equivalent_replacement(add_entry, "sent", because="messages are repeated"),
        equivalent_drop(
            add_entry_again,
            "it was sent before",
            "it wants to make a change",
            "the other one leads",
            because="the message that is sent again may arrive first, and then as the first one does",
        ),
        equivalent_loss(add_entry_again, log, because="messages are lost"),
        equivalent_loss(finish, refused, because="nothing is promised to a caller who is not told"),
        equivalent_replacement(
            finish,
            "told becomes: 1 for 0 (8)",  # where no place before has made a change
            because="nothing is promised to a caller who is not told",
        ),
        equivalent_weakening(
            finish,
            "its command is applied",
            because="who wants no change is told nothing, and two places hold both commands",
        ),
        equivalent_drop(
            give_up, "it wants to make a change", because="who wants nothing gives up nothing"
        ),
        equivalent_loss(
            _forget,
            Change.command,
            Change.read,
            Change.sent,
            because="a change that is given up may be made all the same",
        ),
        equivalent_replacement(
            _forget,
            "read becomes",
            "sent becomes",
            because="who wants no change looks at neither, and a change may not reach the leader",
        ),
        equivalent_loss(change_voters, log, because="voters that do not change"),
        equivalent_loss(restart, leads, known, because="what a member remembers is so still"),
    )

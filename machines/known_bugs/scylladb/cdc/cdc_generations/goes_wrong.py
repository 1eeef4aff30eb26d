"""Mistakes put back into `CdcGenerations`: what goes wrong."""

from __future__ import annotations

from typing import Annotated

from stagewright.machines.scylladb.cdc.cdc_generations import (
    CLIENT,
    COORDINATOR,
    DELAY,
    END,
    LAST_COMMIT,
    LAST_TIMESTAMP,
    SKEW,
    WEAK,
    CdcGenerations,
    Fate,
    Generation,
    Known,
    Node,
)
from stagewright.spec import (
    Bool,
    BudgetName,
    Fairness,
    FlagVar,
    Number,
    Term,
    action,
    between,
    bounded,
    choose,
    every,
    flag,
    only_when,
    require,
    some,
)
from stagewright.spec.known_bugs import known_bug, known_bugs_in

CALM: dict[BudgetName, int | None] = {CdcGenerations.writes: 0, CdcGenerations.partitions: 0}
REACHED: dict[BudgetName, int | None] = {CdcGenerations.partitions: 0}


@known_bug(
    "003-7",
    "design document 003, Generation switching",
    breaks=CdcGenerations.log_writes_use_the_generation_that_operates,
    budgets={CdcGenerations.partitions: 1},
)
class TimestampComesWithTheCommit(CdcGenerations):
    """Nodes store a generation and get its timestamp afterwards: one that is cut off in between does not know of
    it, and goes on with the old one.
    """

    def _prepare(self, n: Term[Node], g: Term[Generation]) -> None:
        """Nobody is prepared."""


@known_bug(
    "003-8",
    "design document 003, Generation switching",
    breaks=CdcGenerations.log_writes_use_the_generation_that_operates,
    budgets={CdcGenerations.partitions: 1},
)
class CommittedHoweverLate(CdcGenerations):
    """A generation is committed although its timestamp has come meanwhile: a node that stored it late has taken
    writes with such timestamps.
    """

    def _is_in_time(self, n: Term[Node], g: Term[Generation], /) -> Bool:
        return (self.clock(n) < END + SKEW) | self.lacks[n].has(g)


@known_bug(
    "003-9",
    "design document 003, Generation switching",
    breaks=CdcGenerations.accepted_timestamps_find_a_stream,
    budgets={CdcGenerations.partitions: 1},
)
class ForgottenForAPreparedGeneration(CdcGenerations):
    """A node forgets the generation that operates for the sake of one that it is only prepared for: that one is
    given up, and the node has none.
    """

    def _is_sure_of(self, n: Term[Node], g: Term[Generation]) -> Bool:
        return self.knows(n, g)


@known_bug(
    "003-13",
    'design document 003: a generation operates until "the following generation\'s timestamp"',
    breaks=CdcGenerations.generations_start_in_the_order_of_their_introduction,
    sizes={Generation: 3},
    budgets={**CALM, CdcGenerations.joins: 2},
)
class TimestampsAreNotCompared(CdcGenerations):
    """A timestamp was taken from the clock, and not compared: two generations that are made at one time had the same."""

    def _give_timestamp(self, n: Term[Node], g: Term[Generation]) -> None:
        self.start[g] = self.clock(n) + DELAY


@known_bug(
    "003-14",
    'design document 003: "in the interval [T, C + generation_leeway)"',
    breaks=CdcGenerations.timestamps_are_in_the_window,
    budgets={CdcGenerations.partitions: 0},
)
class TheWindowIsATickTooWide(CdcGenerations):
    """A timestamp that is a tick further ahead than the leeway is let through."""

    def _accepts_with_previous(self, n: Term[Node], timestamp: Number) -> Bool:
        a_tick_less = timestamp - choose(timestamp > self.clock(n), 1, 0)
        return super()._accepts_with_previous(n, a_tick_less)


@known_bug(
    "003-17",
    "design document 003: a generation is described before its data goes",
    breaks=CdcGenerations.clients_can_read_what_is_cleared,
    sizes={Generation: 3},
    budgets={**CALM, CdcGenerations.joins: 2},
)
class WhatIsUnpublishedIsCleared(CdcGenerations):
    """Old generations were cleared by their age alone: CDC clients never saw one for which the publisher was late."""

    @action(by=COORDINATOR, fair=WEAK)
    def clear(self, n: Term[Node], g: Term[Generation], kept: Term[Generation]) -> None:
        """The publisher removes a generation after which one has operated for long enough."""
        require(self.stored.has(g) & self.introduced.has(kept), "both are in group0")
        require(self.follows(kept, g) & self._may_be_the_oldest(n, kept), "it is old")
        self.stored.discard(g)


@known_bug(
    "003-25",
    "design document 003: a node remembers that there is a new generation, and rejects writes that need it",
    breaks=CdcGenerations.log_writes_use_the_generation_that_operates,
    budgets={CdcGenerations.restarts: 1},
)
class RestartsForgetWhatIsPrepared(CdcGenerations):
    """A node that starts again loads what is committed: what it was prepared for it has forgotten. Cut off, it does not
    hear of the commit, and writes go to the generation before.
    """

    def _loads(self, n: Term[Node], g: Term[Generation]) -> Bool:
        return self._is_committed(g) & ~self.is_over(g, self._no_writes_since(n))


@known_bug(
    "003-28",
    'design document 003: clients learn "the time intervals they are operating at"',
    breaks=CdcGenerations.clients_see_a_generation_before_it_operates,
    budgets={**REACHED, CdcGenerations.writes: 0},
)
class QueuedWhenItOperates(CdcGenerations):
    """A generation came into the publisher's queue when it operated: until then clients read streams to which no change
    went any more.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def commit_prepared(self, n: Term[Node], g: Term[Generation]) -> None:
        """Every node is prepared for it: it is introduced, and not queued yet."""
        self._every_node_has_it(g)
        require(self._is_in_time(n, g), "its timestamp is far enough ahead")
        self.introduced.add(g)
        self.on_its_way = None

    @action(by=COORDINATOR, fair=WEAK)
    def queue(self, g: Term[Generation]) -> None:
        """A generation that operates is queued."""
        require(self.introduced.has(g) & ~self.described.has(g), "introduced, not published")
        require(~self.unpublished.has(g) & self.stored.has(g), "it is not queued")
        require(self.start[g] <= self.now, "it operates")
        self.unpublished.add(g)


@known_bug(
    "003-30",
    "design document 003: a two-phase-commit approach",
    breaks=CdcGenerations.log_writes_use_the_generation_that_operates,
    sizes={Node: 2},
    budgets=REACHED,
)
class OneNodeIsEnough(CdcGenerations):
    """A generation was committed when a node had stored it: another one, which had not heard of it, went on with the
    generation before.
    """

    def _every_node_has_it(self, g: Term[Generation]) -> None:
        require(self.on_its_way == g, "its data is written")
        require(some(~self.lacks[m].has(g) for m in Node), "a node has stored its data")


@known_bug(
    "003-33",
    "design document 003: reject writes that are supposed to use this new generation",
    breaks=CdcGenerations.writes_without_a_timestamp_are_accepted,
    budgets={**REACHED, CdcGenerations.writes: 0, CdcGenerations.restarts: 1},
)
class TheWindowIsOfWhatCanBeRead(CdcGenerations):
    """A node that had begun anew knew when a generation began to operate, and could not read it: every timestamp from then on
    was taken for too late, also those of writes that had none.
    """

    def lets_through(self, n: Term[Node], timestamp: Number) -> Bool:
        now = self.clock(n)
        read = some(
            self.operates(n, g, now) & (self.known[n][g] == Known.usable) for g in Generation
        )
        return super().lets_through(n, timestamp) & (read | (timestamp < now))


@known_bug(
    "003-40",
    'design document 003: the generation operates until "the following generation\'s timestamp"',
    breaks=CdcGenerations.log_writes_use_the_generation_that_operates,
    budgets={CdcGenerations.partitions: 0},
)
class TheOldestTakesTheWrite(CdcGenerations):
    """The generations were gone through from the wrong end: of those that had begun, the first took all writes."""

    def follows(self, later: Term[Generation], g: Term[Generation]) -> Bool:
        """The one that starts to operate before the other."""
        return self.start[later] < self.start[g]


@known_bug(
    "003-43",
    "design document 003: the timestamp is the node's local time and a minute or two",
    breaks=CdcGenerations.generations_do_not_wait_for_each_other,
    sizes={Generation: 3},
    budgets={**REACHED, CdcGenerations.joins: 2, CdcGenerations.writes: 0},
)
class JoinsWaitUntilAGenerationOperates(CdcGenerations):
    """No node joined before the generation that was made for the last one operated."""

    def _is_new(self, g: Term[Generation]) -> None:
        super()._is_new(g)
        operate = every(self.start[h] <= self.now for h in self.introduced)
        require(operate, "all that were introduced operate")


@known_bug(
    "003-44",
    "design document 003: a write is translated to a mutation, which holds a timestamp",
    breaks=CdcGenerations.decided_timestamps_are_kept,
)
class DecisionsAreAppliedWithTheTimeOfTheNode(CdcGenerations):
    """What Paxos had decided got a new timestamp at each node that applied it, so that none was ever too old: replicas had
    the same change at several times, in streams of several generations.
    """

    @action(fair=WEAK)
    def apply_decision(self, n: Term[Node], g: Term[Generation]) -> None:
        """A node applies what Paxos decided by its own clock, if it has what operates then."""
        require(self.write.fate == Fate.decided, "a decision is to be applied")
        now = self.clock(n)
        found = some(self.uses(n, h, now) for h in Generation)
        timestamp = choose(found, now, self.write.timestamp)
        self._write(n, g, timestamp)
        self.write.timestamp = timestamp


@known_bug(
    "003-63",
    "design document 003: remember that there is a new generation even though it does not yet know what it is",
    breaks=CdcGenerations.old_generations_are_not_prepared_again,
    budgets=CALM,
)
class TheTimestampStays(CdcGenerations):
    """A node freed the streams of an obsolete generation and kept its timestamp, as if it were to read them: it read what it
    had just forgotten, again and again, until that was cleared.
    """

    @action(fair=WEAK)
    def forget(self, n: Term[Node], g: Term[Generation]) -> None:
        """The node frees the streams alone."""
        require(self.knows(n, g) & self.is_obsolete(n, g), "it is obsolete")
        self.known[n][g] = Known.prepared


@known_bug(
    "003-64",
    'design document 003: the window is until "C + generation_leeway"',
    breaks=CdcGenerations.changes_are_written_ahead_of_their_generation,
    budgets={CdcGenerations.partitions: 0},
)
class WhatIsAheadIsPutOff(CdcGenerations):
    """A write with a timestamp in the future was accepted and put off until then, and was never seen again."""

    @action(by=CLIENT, spends=CdcGenerations.writes)
    def write_row(
        self,
        n: Term[Node],
        g: Term[Generation],
        timestamp: Annotated[Number, between(0, LAST_TIMESTAMP)],
    ) -> None:
        """The node writes what is not ahead of its clock."""
        bounded(self.write.fate == Fate.none, "one write is followed")
        require(self.lets_through(n, timestamp), "the node accepts the timestamp")
        require(self.uses(n, g, timestamp), "it has the generation that operates then")
        self.write.timestamp = timestamp
        self.write.fate = choose(timestamp <= self.clock(n), Fate.accepted, Fate.none)
        self.write.coordinator = n
        self.write.generation = g


@known_bug(
    "003-80",
    "design document 003: a timestamp describes the time point from which a generation starts operating",
    breaks=CdcGenerations.timestamps_are_kept,
    budgets={CdcGenerations.writes: 0, CdcGenerations.restarts: 1, CdcGenerations.partitions: 0},
)
class NewCoordinatorsCommitAgain(CdcGenerations):
    """A coordinator that took over committed the generation that was not published yet once more, with a timestamp by its own
    clock: nodes and clients had been told of another one.
    """

    @action(by=COORDINATOR, spends=CdcGenerations.restarts)
    def commit_again(self, n: Term[Node], g: Term[Generation]) -> None:
        """What waits to be published gets another timestamp."""
        only_when(self.release.group0)
        require(self.unpublished.has(g), "it is not published yet")
        require(self.now <= LAST_COMMIT, "nobody uses it yet")
        self.start[g] = self.clock(n) + DELAY


@known_bug(
    "003-81",
    "design document 003: a timestamp describes the time point from which a generation starts operating",
    breaks=CdcGenerations.timestamps_are_kept,
    budgets={CdcGenerations.writes: 0, CdcGenerations.partitions: 0},
)
class TheSecondPhaseBringsATimestamp(CdcGenerations):
    """Preparing nodes took long, and the commit gave the generation a later timestamp than that for which they were prepared."""

    @action(by=COORDINATOR, fair=Fairness.WEAK)
    def commit_prepared(self, n: Term[Node], g: Term[Generation]) -> None:
        """Every node is prepared: the generation gets its timestamp."""
        only_when(self.release.prepares)
        self._every_node_has_it(g)
        early = self.now <= LAST_COMMIT
        require(early | self._is_in_time(n, g), "its timestamp is far enough ahead")
        self.start[g] = choose(early, self.clock(n) + DELAY, self.start[g])
        self.introduced.add(g)
        self.unpublished.add(g)
        self.on_its_way = None


@known_bug(
    "C01",
    "scylladb #17184",
    breaks=CdcGenerations.accepted_timestamps_find_a_stream,
    budgets={
        CdcGenerations.writes: 0,
        CdcGenerations.partitions: 0,
        CdcGenerations.restarts: 1,
    },
)
class OnlyTheLastGenerationIsLoaded(CdcGenerations):
    """A node that starts loads the last committed generation alone.

    That one may not operate yet: until it does, the node has no stream for writes that the others accept.
    """

    def _loads(self, n: Term[Node], g: Term[Generation]) -> Bool:
        last = every(~(self._is_committed(h) & self.follows(h, g)) for h in Generation)
        return super()._loads(n, g) & last


@known_bug(
    "003-104",
    "design document 003: the table contains each generation's timestamp and the set of stream IDs",
    breaks=CdcGenerations.descriptions_have_streams,
    profile="seed",
    budgets=CALM,
)
class TimestampsAreDescribed(CdcGenerations):
    """A node described a generation when it had heard its timestamp, with the streams that it had read: none yet. The
    row was there, and nobody wrote it again.
    """

    @action(fair=WEAK)
    def describe(self, n: Term[Node], g: Term[Generation]) -> None:
        """Whoever has heard of a generation inserts it."""
        only_when(not self.release.group0)
        require(self.introduced.has(g) & ~self._is_missing(n, g), "it has heard of the generation")
        require(~self.described.has(g), "not there yet")
        self.described.add(g)


@known_bug(
    "003-105",
    "design document 003: the table contains each generation's timestamp",
    breaks=CdcGenerations.descriptions_are_kept,
    profile="seed",
    budgets=CALM,
)
class TheTableHasOneRow(CdcGenerations):
    """The table for CDC clients had the generation that was described last, and no other one."""

    @action(fair=WEAK)
    def describe(self, n: Term[Node], g: Term[Generation]) -> None:
        """A node puts a generation in the place of the one before it."""
        require(self.known[n][g] == Known.usable, "it has learned of the generation")
        require(self.introduced.has(g) & ~self.described.has(g), "not there yet")
        for h in Generation:
            self.described.put(h, g == h)


@known_bug(
    "003-106",
    "design document 003, TODO: expired generations: it is yet to be implemented",
    breaks=CdcGenerations.descriptions_are_kept,
    profile="seed",
    budgets=CALM,
)
class DescriptionsGoWithTheSwitch(CdcGenerations):
    """A generation's row was removed when the next one operated: who had not read all its changes by then lost them."""

    @action(fair=WEAK)
    def expire(self, n: Term[Node], g: Term[Generation], kept: Term[Generation]) -> None:
        """A node removes the row of a generation when another one operates."""
        require(self.described.has(g) & self.described.has(kept), "both are described")
        require(self.follows(kept, g), "the other one is later")
        require(self.start[kept] <= self.clock(n), "it operates")
        self.described.discard(g)


@known_bug(
    "003-130",
    "design document 003, TODO: expired generations: it is yet to be implemented",
    breaks=CdcGenerations.descriptions_are_kept,
    budgets=CALM,
)
class NewPublishersBeginAnew(CdcGenerations):
    """A publisher that began anew removed the row that had been written last, as it might not be whole, and wrote it again."""

    again: FlagVar = flag()

    @action(by=COORDINATOR)
    def begin_anew(self, g: Term[Generation]) -> None:
        """The row that was written last is removed, and its generation queued."""
        require(~self.again, "it begins anew once")
        require(self.described.has(g) & self.stored.has(g), "it is described")
        later = some(self.introduced.has(h) & self.follows(h, g) for h in Generation)
        require(~later, "it is the last one")
        self.again = True
        self.described.discard(g)
        self.unpublished.add(g)


BUGS = known_bugs_in(globals())

"""Mistakes about CDC generations that design documents 001 and 003 rule out."""

from __future__ import annotations

from typing import Annotated

from stagewright.machines.scylladb.cdc.cdc_generations import (
    CLIENT,
    COORDINATOR,
    DELAY,
    LAST_TIMESTAMP,
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
    Number,
    NumberVar,
    SetVar,
    Term,
    action,
    between,
    bounded,
    choose,
    number,
    require,
    set_of,
    some,
)
from stagewright.spec.known_bugs import known_bug, known_bugs_in

WEAK = Fairness.WEAK
CALM: dict[BudgetName, int | None] = {CdcGenerations.writes: 0, CdcGenerations.partitions: 0}
CUT_OFF: dict[BudgetName, int | None] = {CdcGenerations.writes: 0}


@known_bug(
    "003-12",
    'design document 001: "create a timestamp for it and tell every node"',
    breaks=CdcGenerations.prepared_generations_become_usable,
    budgets=CUT_OFF,
)
class GivingUpIsForTheUnprepared(CdcGenerations):
    """The coordinator gives up what some node has not stored: where all have, and it is too late, the generation is neither
    introduced nor given up, and no other one can follow.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def abandon(self, n: Term[Node], g: Term[Generation]) -> None:
        """Some node was not prepared in time."""
        require(some(self.lacks[m].has(g) for m in Node), "a node is not prepared")
        super().abandon(n, g)


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
    "003-15",
    'design document 003: a node tries "to read the generation\'s data in background until it succeeds"',
    breaks=CdcGenerations.prepared_generations_become_usable,
    budgets=CUT_OFF,
)
class NobodyIsToldOfWhatIsGivenUp(CdcGenerations):
    """A generation was given up, and a node that was prepared for it went on to refuse writes for its sake."""

    @action
    def learn_that_it_is_abandoned(self, n: Term[Node], g: Term[Generation]) -> None:
        """Somebody restarts the node, perhaps."""
        super().learn_that_it_is_abandoned(n, g)


@known_bug(
    "003-16",
    'design document 003, Streams description table: clients learn "about available sets of streams"',
    breaks=CdcGenerations.generations_are_described,
    budgets=CALM,
)
class ThePublisherMayStop(CdcGenerations):
    """The publisher ended with its first error, and nobody started it again: clients saw no new streams."""

    @action(by=COORDINATOR)
    def publish(self, g: Term[Generation]) -> None:
        """The publisher describes a generation, if it runs."""
        super().publish(g)


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
    "003-18",
    "scylladb #15163",
    breaks=CdcGenerations.old_generations_are_cleared,
    budgets=CALM,
)
class OldGenerationsStay(CdcGenerations):
    """Nothing removed obsolete generations from group0, whose snapshots grew endlessly."""

    @action(by=COORDINATOR)
    def clear(self, n: Term[Node], g: Term[Generation], kept: Term[Generation]) -> None:
        """An operator may remove a generation by hand."""
        super().clear(n, g, kept)


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
    "003-26",
    'design document 001: every node starts "using it for CDC log table writes"',
    breaks=CdcGenerations.nodes_learn_of_generations,
    budgets={**CALM, CdcGenerations.restarts: 1},
)
class NodesLearnWhenTheyStart(CdcGenerations):
    """A node that started while a generation was prepared, and did not know of it, was told of it at its next start."""

    def _loads(self, n: Term[Node], g: Term[Generation]) -> Bool:
        return self._is_committed(g) & ~self.is_over(g, self._no_writes_since(n))

    @action
    def learn(self, n: Term[Node], g: Term[Generation]) -> None:
        """An operator has it look again."""
        super().learn(n, g)


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
    "003-41",
    'design document 003: a generation "was superseded by some new generation and will soon be removed"',
    breaks=CdcGenerations.obsolete_generations_are_forgotten,
    budgets=CALM,
)
class WhatWasReadIsKept(CdcGenerations):
    """A node freed what it had never read of obsolete generations, and kept in memory what it had."""

    def is_obsolete(self, n: Term[Node], g: Term[Generation]) -> Bool:
        """The node needs neither the generation nor what it is to read of it."""
        return super().is_obsolete(n, g) & (self.known[n][g] == Known.prepared)


@known_bug(
    "003-42",
    'design document 003: a generation "was superseded by some new generation and will soon be removed"',
    breaks=CdcGenerations.old_generations_are_cleared,
    budgets=CALM,
)
class TheOldestWaitsForThoseBefore(CdcGenerations):
    """A generation could be the oldest in group0 once there was none before it, which was to be removed for its sake."""

    def _may_be_the_oldest(self, n: Term[Node], kept: Term[Generation]) -> Bool:
        """Nothing is there before it, published or not."""
        earlier = some(self.stored.has(h) & self.follows(kept, h) for h in Generation)
        return super()._may_be_the_oldest(n, kept) & ~earlier


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
    breaks=CdcGenerations.nodes_are_prepared_for_what_is_new,
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
    "003-65",
    'design document 003: "we only allow the write if its timestamp is in the interval"',
    breaks=CdcGenerations.decisions_in_the_window_are_applied,
    sizes={Node: 2},
    budgets={CdcGenerations.partitions: 0},
)
class DecisionsOfFasterClocksWait(CdcGenerations):
    """A node whose clock was behind that of the node which had decided a write refused it as one from the future."""

    @action(fair=WEAK)
    def apply_decision(self, n: Term[Node], g: Term[Generation]) -> None:
        """A node applies what was decided before its own time."""
        super().apply_decision(n, g)
        require(self.write.timestamp <= self.clock(n), "its time has come")


@known_bug(
    "003-66",
    'design document 003: a write "is translated to a mutation, which holds a timestamp"',
    breaks=CdcGenerations.decisions_of_paxos_are_applied,
    budgets={CdcGenerations.partitions: 0},
)
class NobodyAppliesTheDecisionAgain(CdcGenerations):
    """What Paxos had decided was applied once its client asked again, and by nobody if that had gone."""

    @action
    def apply_decision(self, n: Term[Node], g: Term[Generation]) -> None:
        """The client asks again, perhaps."""
        super().apply_decision(n, g)


# -- more than one is given up --------------------------------------------------------------------------

THREE_JOINS: dict[BudgetName, int | None] = {**CALM, CdcGenerations.joins: 3}


@known_bug(
    "003-90",
    "design document 003: when a new node joins the cluster, it will introduce a new CDC generation",
    breaks=CdcGenerations.nodes_join_whatever_is_published,
    sizes={Node: 2},
    budgets=THREE_JOINS,
)
class TwoAreGivenUpAndNoMoreAreTried(CdcGenerations):
    """A coordinator that had given up two generations refused all requests to join."""

    tried: NumberVar = number(0, 2)

    @action(by=COORDINATOR, fair=WEAK)
    def abandon(self, n: Term[Node], g: Term[Generation]) -> None:
        """The generation is given up, and counted."""
        super().abandon(n, g)
        self.tried = choose(self.tried < 2, self.tried + 1, 2)

    @action(by=COORDINATOR, spends=CdcGenerations.joins)
    def prepare_generation(self, n: Term[Node], g: Term[Generation]) -> None:
        """The first phase, of one of the first requests."""
        super().prepare_generation(n, g)
        require(self.tried < 2, "not too many were tried")


@known_bug(
    "003-91",
    "design document 003: until it succeeds or sees that it's not necessary anymore",
    breaks=CdcGenerations.what_is_given_up_is_refused_no_longer,
    sizes={Node: 2},
    budgets=THREE_JOINS,
)
class NodesAreToldOnce(CdcGenerations):
    """A node that had learned once that a generation was abandoned did not ask again: from the next one's timestamp on it
    rejected writes.
    """

    told: SetVar[Node] = set_of(Node)

    @action(fair=WEAK)
    def learn_that_it_is_abandoned(self, n: Term[Node], g: Term[Generation]) -> None:
        """A node that was not told yet need no longer reject writes."""
        super().learn_that_it_is_abandoned(n, g)
        require(~self.told.has(n), "it was not told yet")
        self.told.add(n)


BUGS = known_bugs_in(globals())

"""Mistakes put back into `CdcGenerations`: what is never done."""

from __future__ import annotations

from stagewright.machines.scylladb.cdc.cdc_generations import (
    COORDINATOR,
    SEED,
    WEAK,
    CdcGenerations,
    Generation,
    Known,
    Node,
)
from stagewright.spec import Bool, BudgetName, Number, Term, action, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

CUT_OFF: dict[BudgetName, int | None] = {CdcGenerations.writes: 0}
CALM: dict[BudgetName, int | None] = {CdcGenerations.writes: 0, CdcGenerations.partitions: 0}
REACHED: dict[BudgetName, int | None] = {CdcGenerations.partitions: 0}
TWO_JOIN: dict[BudgetName, int | None] = {**REACHED, CdcGenerations.joins: 2}


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
    "003-31",
    'design document 003: the node "will keep trying to read the generation\'s data in background"',
    breaks=CdcGenerations.decisions_of_paxos_are_applied,
    sizes={Generation: 3},
    budgets=TWO_JOIN,
)
class DecisionsDoNotWaitForData(CdcGenerations):
    """A node that was prepared for a generation read its data when the next one operated: what Paxos had decided in
    between was too old by then, and refused for ever.
    """

    def _reads(self, n: Term[Node], g: Term[Generation], /) -> Bool:
        operates = some(self.operates(n, h, self.clock(n)) & self.follows(h, g) for h in Generation)
        return super()._reads(n, g) & (operates | ~self.knows(n, g))


@known_bug(
    "003-32",
    "design document 003: nodes describe a generation when they learn about it",
    breaks=CdcGenerations.generations_are_described,
    profile=SEED.name,
    sizes={Generation: 3},
    budgets={**TWO_JOIN, CdcGenerations.writes: 0},
)
class WhatIsForgottenIsNotDescribed(CdcGenerations):
    """Nodes described what they had in memory: of two generations that were learned together clients never heard of the
    first.
    """

    @action(fair=WEAK)
    def describe(self, n: Term[Node], g: Term[Generation]) -> None:
        """A node describes a generation that it still needs."""
        super().describe(n, g)
        require(self.known[n][g] == Known.usable, "it has the generation in memory")


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


@known_bug(
    "C04",
    "scylladb PR #17134",
    breaks=CdcGenerations.decisions_of_paxos_are_applied,
    sizes={Node: 1},
    budgets={CdcGenerations.partitions: 0, CdcGenerations.restarts: 0},
)
class PreviousGenerationsAreRefused(CdcGenerations):
    """Only timestamps from the start of the operating generation on are accepted.

    What Paxos decided just before a generation switch keeps its timestamp, and is refused for ever after it.
    """

    def _accepts_with_previous(self, n: Term[Node], timestamp: Number) -> Bool:
        return self._accepts_from_the_start(n, timestamp)


BUGS = known_bugs_in(globals())

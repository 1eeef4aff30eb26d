"""Mistakes by which writes or CDC clients wait for a generation, or nobody does who should (design document 003)."""

from __future__ import annotations

from typing import Annotated

from stagewright.machines.scylladb.cdc.cdc_generations import (
    CLIENT,
    COORDINATOR,
    LAST_TIMESTAMP,
    SEED,
    WEAK,
    CdcGenerations,
    Generation,
    Known,
    Node,
)
from stagewright.machines.scylladb.cdc.cdc_log import CdcLog
from stagewright.machines.scylladb.cdc.cdc_publication import (
    COMMIT,
    NONE,
    OPERATOR,
    ROLLED_BACK,
    WRITE_BOTH,
    CdcPublication,
    Generation as NumberedGeneration,
)
from stagewright.spec import Bool, BudgetName, Number, Term, action, between, every, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

REACHED: dict[BudgetName, int | None] = {CdcGenerations.partitions: 0}


@known_bug(
    "003-27",
    "design document 003: reject writes that are supposed to use this new generation",
    breaks=CdcGenerations.timestamps_in_the_window_are_accepted,
    budgets=REACHED,
)
class AllWritesWaitForWhatIsPrepared(CdcGenerations):
    """A node that knew of a generation which it could not read rejected all writes, and not those alone that need it."""

    @action(by=CLIENT, spends=CdcGenerations.writes)
    def write_row(
        self,
        n: Term[Node],
        g: Term[Generation],
        timestamp: Annotated[Number, between(0, LAST_TIMESTAMP)],
    ) -> None:
        """A client writes through a node that has the data of all that it knows."""
        waits = some(self.known[n][h] == Known.prepared for h in Generation)
        require(~waits, "the node is prepared for nothing")
        super().write_row(n, g, timestamp)


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
    "003-29",
    "design document 003: nodes describe a generation when they learn about it",
    breaks=CdcPublication.clients_see_a_generation_while_its_node_joins,
)
class PublishedWhenTheNodeHasJoined(CdcPublication):
    """The publisher waited until the topology was at rest: a node streams for hours while its generation operates."""

    @action(by=COORDINATOR, fair=WEAK)
    def describe(self, g: Term[NumberedGeneration]) -> None:
        """The publisher writes the oldest generation of the queue to the tables, at rest."""
        require(self.transition == NONE, "no topology change is going on")
        super().describe(g)


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


TWO_JOIN: dict[BudgetName, int | None] = {**REACHED, CdcGenerations.joins: 2}


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
    "003-47",
    "design document 003: reject writes that are supposed to use this new generation",
    breaks=CdcGenerations.conditional_writes_are_decided_at_any_time,
    budgets=REACHED,
)
class ConditionalWritesWaitForWhatIsPrepared(CdcGenerations):
    """Paxos decided nothing while a node was prepared for a generation, though that was to operate minutes later."""

    @action(by=CLIENT, spends=CdcGenerations.writes)
    def decide_by_paxos(self, n: Term[Node]) -> None:
        """Paxos decides a conditional write at a node that has the data of all that it knows."""
        waits = some(self.known[n][g] == Known.prepared for g in Generation)
        require(~waits, "the node is prepared for nothing")
        super().decide_by_paxos(n)


@known_bug(
    "003-48",
    "design document 003: nodes race to update the description table",
    breaks=CdcPublication.clusters_are_upgraded_at_any_time,
)
class UpgradesWaitForTheDescription(CdcPublication):
    """Topology was not moved to group0 before a node had described the generation that was gossiped, for which its tables
    had to be there.
    """

    @action(by=OPERATOR, fair=WEAK)
    def upgrade(self) -> None:
        """A cluster whose generation clients can see moves its topology to group0."""
        require(self.described.has(NumberedGeneration.first), "it is described")
        super().upgrade()


@known_bug(
    "003-49",
    "design document 003: nodes describe a generation when they learn about it",
    breaks=CdcPublication.generations_are_published_whatever_the_topology_does,
)
class PublishedBetweenCommits(CdcPublication):
    """The publisher waited while a generation was about to be committed, so that it would describe both: a commit that
    waits for a dead node held up the one before.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def describe(self, g: Term[NumberedGeneration]) -> None:
        """The publisher writes the oldest generation of the queue to the tables while none is being committed."""
        require(self.transition != COMMIT, "none is being committed")
        super().describe(g)


@known_bug(
    "003-52",
    "design document 003: a two-phase-commit approach",
    breaks=CdcGenerations.prepared_generations_are_committed,
    budgets={CdcGenerations.writes: 0},
)
class TheSecondPhaseNeedsAllNodes(CdcGenerations):
    """A generation for which all nodes were prepared was committed while all could be reached: one that was cut off after
    the first phase had it given up, and the join with it.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def commit_prepared(self, n: Term[Node], g: Term[Generation]) -> None:
        """The second phase: every node is prepared, and is reached."""
        require(self.unreachable.is_empty(), "every node is reached")
        super().commit_prepared(n, g)


@known_bug(
    "003-53",
    "design document 003: the timestamp is the node's local time and a minute or two",
    breaks=CdcLog.generations_get_their_timestamp_at_once,
)
class CommitsWaitForWrites(CdcLog):
    """A generation got its timestamp when no write was under way, though it was to operate after them."""

    @action(by=COORDINATOR, fair=WEAK)
    def commit_generation(self, g: Term[NumberedGeneration]) -> None:
        """It gets a timestamp when writes that were under way have ended."""
        require(self._nothing_is_under_way(), "nothing is under way")
        super().commit_generation(g)


DESCRIBED = "design document 003: nodes describe a generation when they learn about it"


@known_bug("003-54", DESCRIBED, breaks=CdcPublication.joins_are_committed_whatever_is_published)
class JoinsWaitForTheQueue(CdcPublication):
    """The generation of a join was committed when the one before had left the publisher's queue, if that could be."""

    @CdcPublication.transition.step(COMMIT, WRITE_BOTH, by=COORDINATOR, fair=WEAK)
    def commit_for_join(self, g: Term[NumberedGeneration]) -> None:
        """The generation gets its timestamp and is queued, alone."""
        require(self.joins, "a node joins")
        require(self.unpublished.is_empty() | ~self.writable, "the queue is empty")
        self._commit(g)
        self._queue(g)
        self.tokens.add(g)


@known_bug("003-55", DESCRIBED, breaks=CdcPublication.requests_are_committed_whatever_is_published)
class RequestsWaitForTheQueue(CdcPublication):
    """The same of a generation that a user asked for."""

    @CdcPublication.transition.step(COMMIT, NONE, by=COORDINATOR, fair=WEAK)
    def commit_for_request(self, g: Term[NumberedGeneration]) -> None:
        """The generation gets its timestamp and is queued, alone."""
        require(~self.joins, "no node joins")
        require(self.unpublished.is_empty() | ~self.writable, "the queue is empty")
        self._commit(g)
        self._queue(g)
        self.new_generation = None


@known_bug("003-56", DESCRIBED, breaks=CdcPublication.joins_end_whatever_is_published)
class NodesHaveJoinedWhenClientsKnow(CdcPublication):
    """A node counted as joining until clients could read of its generation, if the tables could be written."""

    @CdcPublication.transition.step(WRITE_BOTH, NONE, by=COORDINATOR, fair=WEAK)
    def finish_join(self) -> None:
        """Data is streamed, and the generation is described."""
        require(self.unpublished.is_empty() | ~self.writable, "the queue is empty")
        self._end()


@known_bug("003-57", DESCRIBED, breaks=CdcPublication.rollbacks_end_whatever_is_published)
class RollbacksWaitForTheQueue(CdcPublication):
    """A join was rolled back when the generation that it had brought was published."""

    @CdcPublication.transition.step(ROLLED_BACK, NONE, by=COORDINATOR, fair=WEAK)
    def finish_rollback(self) -> None:
        """The node has left, and clients see its generation."""
        require(self.unpublished.is_empty(), "the queue is empty")
        self._end()


@known_bug(
    "003-70",
    "design document 003: when a new node joins the cluster, it will introduce a new CDC generation",
    breaks=CdcGenerations.nodes_join_whatever_is_published,
    sizes={Generation: 3},
    budgets={
        CdcGenerations.joins: 2,
        CdcGenerations.writes: 0,
        CdcGenerations.partitions: 0,
    },
)
class JoinsWaitForThePublisher(CdcGenerations):
    """No generation was prepared while the publisher had one in its queue: as its tables could not be written, no node joined."""

    @action(by=COORDINATOR, spends=CdcGenerations.joins)
    def prepare_generation(self, n: Term[Node], g: Term[Generation]) -> None:
        """The first phase, once all that was committed is published."""
        super().prepare_generation(n, g)
        require(self.unpublished.is_empty(), "the publisher has nothing to do")


BUGS = known_bugs_in(globals())

"""Mistakes put back into `CdcGenerations`: who is refused, or waits."""

from __future__ import annotations

from typing import Annotated

from stagewright.machines.scylladb.cdc.cdc_generations import (
    CLIENT,
    COORDINATOR,
    DELAY,
    END,
    LAST_COMMIT,
    LAST_TIMESTAMP,
    LEEWAY,
    NETWORK,
    WEAK,
    CdcGenerations,
    Fate,
    Generation,
    Known,
    Node,
)
from stagewright.spec import (
    BudgetName,
    Fairness,
    Number,
    NumberVar,
    SetVar,
    Term,
    action,
    between,
    choose,
    every,
    number,
    require,
    set_of,
    some,
)
from stagewright.spec.known_bugs import known_bug, known_bugs_in

CALM: dict[BudgetName, int | None] = {CdcGenerations.writes: 0, CdcGenerations.partitions: 0}
THREE_JOINS: dict[BudgetName, int | None] = {**CALM, CdcGenerations.joins: 3}
JOINS = "design document 003: before a node joins it will introduce a new CDC generation"
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


@known_bug(
    "003-82",
    "design document 003, Streams description table; scylladb #15163",
    breaks=CdcGenerations.old_generations_are_cleared_whoever_is_cut_off,
    budgets={CdcGenerations.writes: 0},
)
class ClearingWaitsForAllNodes(CdcGenerations):
    """A generation was removed from group0 when no node had it in memory: one that was down kept all of them."""

    @action(by=COORDINATOR, fair=Fairness.WEAK)
    def clear(self, n: Term[Node], g: Term[Generation], kept: Term[Generation]) -> None:
        """No node has the generation in memory, and another one has operated for long enough."""
        super().clear(n, g, kept)
        require(every(~self.knows(m, g) for m in Node), "no node has it in memory")


@known_bug(
    "003-83",
    "design document 003, Streams description table: it allows clients to learn about available sets of streams",
    breaks=CdcGenerations.generations_are_described_whatever_is_on_its_way,
    sizes={Generation: 3},
    budgets={CdcGenerations.joins: 2, CdcGenerations.writes: 0, CdcGenerations.partitions: 0},
)
class PublishedBetweenJoins(CdcGenerations):
    """The publisher waited while another generation was on its way, which takes as long as the slowest node."""

    @action(by=COORDINATOR, fair=Fairness.WEAK)
    def publish(self, g: Term[Generation]) -> None:
        """The publisher describes the oldest generation while none is on its way."""
        super().publish(g)
        require(self.on_its_way.is_none(), "none is on its way")


@known_bug(
    "003-85",
    'design document 003: the node will "keep trying to read the generation\'s data in background until it succeeds"',
    breaks=CdcGenerations.nodes_are_prepared_when_they_are_reached,
    budgets={CdcGenerations.writes: 0},
)
class NodesThatWereCutOffAreLeftOut(CdcGenerations):
    """A node that had been cut off was taken for dead: no generation was sent to it, each was given up, and no node could join."""

    left_out: SetVar[Node] = set_of(Node)

    @action(by=NETWORK, spends=CdcGenerations.partitions)
    def cut_off(self, n: Term[Node]) -> None:
        """The node is cut off, which is noted."""
        super().cut_off(n)
        self.left_out.add(n)

    @action(fair=Fairness.WEAK)
    def store_data(self, n: Term[Node], g: Term[Generation]) -> None:
        """A node that was never cut off stores the data."""
        super().store_data(n, g)
        require(~self.left_out.has(n), "it was never cut off")


@known_bug(
    "003-87",
    "design document 003: until it succeeds or sees that it's not necessary anymore",
    breaks=CdcGenerations.what_is_given_up_is_refused_no_longer,
    budgets={CdcGenerations.writes: 0},
)
class ToldWithTheNextGeneration(CdcGenerations):
    """Nodes were told what had been given up with the next generation, or when the time of the last join was over: until then
    they refused writes for its sake.
    """

    @action(fair=Fairness.WEAK)
    def learn_that_it_is_abandoned(self, n: Term[Node], g: Term[Generation]) -> None:
        """Another generation is on its way, or none can be any more."""
        super().learn_that_it_is_abandoned(n, g)
        told = self.on_its_way.is_some() | (self.now > LAST_COMMIT + DELAY)
        require(told, "another one is on its way")


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


@known_bug(
    "003-97",
    "design document 003: nodes race to update the description table",
    breaks=CdcGenerations.whoever_has_learned_describes,
    profile="seed",
    budgets={CdcGenerations.writes: 0},
)
class DescriptionsWaitForEveryNode(CdcGenerations):
    """A node wrote to the table for CDC clients at consistency level ALL: while another one was cut off they saw no new
    generation.
    """

    @action(fair=WEAK)
    def describe(self, n: Term[Node], g: Term[Generation]) -> None:
        """A node describes a generation while all are reached."""
        super().describe(n, g)
        require(self.unreachable.is_empty(), "every node is reached")


@known_bug(
    "003-98",
    "design document 003: keep trying to read the generation's data in background until it succeeds",
    breaks=CdcGenerations.data_is_read_whoever_is_cut_off,
    profile="seed",
    budgets={CdcGenerations.writes: 0, CdcGenerations.partitions: 0},
)
class DataIsReadWhenItIsNeeded(CdcGenerations):
    """A node that could not read a generation's data tried again when that was about to operate, and not before."""

    @action(fair=WEAK)
    def read_data(self, n: Term[Node], g: Term[Generation]) -> None:
        """A node reads the data of what is about to operate."""
        super().read_data(n, g)
        require(self.start[g] <= self.clock(n) + LEEWAY, "it is about to operate")


@known_bug(
    "003-99",
    "design document 003: keep trying to read the generation's data in background until it succeeds",
    breaks=CdcGenerations.nodes_start_without_the_data,
    profile="seed",
    budgets={**CALM, CdcGenerations.restarts: 1},
)
class NodesStartWithTheData(CdcGenerations):
    """A node did not start while it knew no more of a generation than its timestamp."""

    @action(spends=CdcGenerations.restarts)
    def restart(self, n: Term[Node]) -> None:
        """A node starts that has read what it knows of."""
        waits = some(self.known[n][g] == Known.prepared for g in Generation)
        require(~waits, "all is read")
        super().restart(n)


@known_bug(
    "003-100",
    JOINS,
    breaks=CdcGenerations.data_is_written_whatever_is_published,
    profile="scylla-2026.2",
    sizes={Generation: 3},
    budgets={**CALM, CdcGenerations.joins: 2},
)
class DataWaitsForThePublisher(CdcGenerations):
    """No node joined until CDC clients had been told of the generation of the last one."""

    @action(by=COORDINATOR, spends=CdcGenerations.joins)
    def write_data(self, g: Term[Generation]) -> None:
        """The data of a generation is written when there is nothing to publish."""
        super().write_data(g)
        require(self.unpublished.is_empty(), "there is nothing to publish")


@known_bug(
    "003-101",
    JOINS,
    breaks=CdcGenerations.generations_are_committed_whatever_is_published,
    profile="scylla-2026.2",
    sizes={Generation: 3},
    budgets={**CALM, CdcGenerations.joins: 2},
)
class CommitsWaitForThePublisher(CdcGenerations):
    """The topology coordinator published what it had committed before it committed another one."""

    @action(by=COORDINATOR, fair=WEAK)
    def commit_generation(self, n: Term[Node], g: Term[Generation]) -> None:
        """The generation gets a timestamp when there is nothing to publish."""
        require(self.unpublished.is_empty(), "there is nothing to publish")
        super().commit_generation(n, g)


@known_bug(
    "003-102",
    JOINS,
    breaks=CdcGenerations.nodes_gossip_whatever_is_published,
    profile="seed",
    sizes={Generation: 3},
    budgets={**CALM, CdcGenerations.joins: 2},
)
class GossipWaitsForClients(CdcGenerations):
    """A joining node gossiped its tokens when the generation before its own was described."""

    @action(spends=CdcGenerations.joins)
    def gossip_generation(self, n: Term[Node], g: Term[Generation]) -> None:
        """A joining node whose predecessors are described gossips a generation."""
        require(self.introduced <= self.described, "all others are described")
        super().gossip_generation(n, g)


@known_bug(
    "003-111",
    "design document 003: reject writes that are supposed to use this new generation",
    breaks=CdcGenerations.generations_wait_for_no_write,
    profile="seed",
    budgets={CdcGenerations.partitions: 0},
)
class NodesLearnBetweenDecisions(CdcGenerations):
    """A node learned of no generation while a conditional write that Paxos had decided was still to be applied."""

    @action(fair=WEAK)
    def learn(self, n: Term[Node], g: Term[Generation]) -> None:
        """A node learns of a generation, when no decision is to be applied."""
        require(self.write.fate != Fate.decided, "no decision is to be applied")
        super().learn(n, g)


@known_bug(
    "003-112",
    JOINS,
    breaks=CdcGenerations.nodes_learn_whatever_is_published,
    sizes={Generation: 3},
    budgets={**CALM, CdcGenerations.joins: 2},
)
class GivenUpWhenAllIsPublished(CdcGenerations):
    """A generation that could not be committed any more was given up when the publisher's queue was empty: until then no other
    node joined.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def abandon(self, n: Term[Node], g: Term[Generation]) -> None:
        """The generation is given up when there is nothing to publish."""
        require(self.unpublished.is_empty(), "there is nothing to publish")
        super().abandon(n, g)


@known_bug(
    "003-113",
    "design document 003: when other nodes learn about the generation, they will save it",
    breaks=CdcGenerations.nodes_learn_whoever_else_does,
    profile="seed",
    sizes={Node: 2},
    budgets={CdcGenerations.writes: 0},
)
class NodesLearnTogether(CdcGenerations):
    """No node learned of a generation while another one was cut off, so that all would have it at once."""

    @action(fair=WEAK)
    def learn(self, n: Term[Node], g: Term[Generation]) -> None:
        """A node learns of a generation while all are reached."""
        require(self.unreachable.is_empty(), "every node is reached")
        super().learn(n, g)


@known_bug(
    "003-126",
    JOINS,
    breaks=CdcGenerations.nodes_learn_whoever_else_does,
    budgets={CdcGenerations.writes: 0},
)
class GivenUpWhenAllAreReached(CdcGenerations):
    """A generation that was too late was given up when every node could be told: until then the others refused writes for its
    sake.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def abandon(self, n: Term[Node], g: Term[Generation]) -> None:
        """The generation is given up when all nodes are reached."""
        super().abandon(n, g)
        require(self.unreachable.is_empty(), "every node is reached")


@known_bug(
    "003-127",
    "design document 003: reject writes that are supposed to use this new generation",
    breaks=CdcGenerations.generations_wait_for_no_write,
)
class GivenUpBetweenDecisions(CdcGenerations):
    """No generation was given up in the moment of a conditional write, however late it was: its node refused others meanwhile."""

    @action(by=COORDINATOR, fair=WEAK)
    def abandon(self, n: Term[Node], g: Term[Generation]) -> None:
        """The generation is given up when nothing has just been decided."""
        super().abandon(n, g)
        decided = (self.write.fate == Fate.decided) & ~self.write.waited
        require(~decided | (self.now == END), "nothing has just been decided")


@known_bug(
    "003-128",
    "design document 003: keep trying to read the generation's data in background until it succeeds",
    breaks=CdcGenerations.data_is_read_whoever_is_cut_off,
    budgets={CdcGenerations.writes: 0, CdcGenerations.partitions: 0},
)
class CommitsAreHeardWhenTheyAreNeeded(CdcGenerations):
    """A node that was prepared for a generation asked whether it had been committed when that was about to operate."""

    @action(fair=WEAK)
    def read_data(self, n: Term[Node], g: Term[Generation]) -> None:
        """A node learns of the commit of what is about to operate."""
        super().read_data(n, g)
        require(self.start[g] <= self.clock(n) + LEEWAY, "it is about to operate")


@known_bug(
    "003-129",
    JOINS,
    breaks=CdcGenerations.nodes_learn_whatever_is_published,
    sizes={Generation: 3},
    budgets={**CALM, CdcGenerations.joins: 2},
)
class ForgottenWhenClientsKnow(CdcGenerations):
    """A node kept an obsolete generation in memory until CDC clients could read of it, for which their tables had to be up."""

    @action(fair=WEAK)
    def forget(self, n: Term[Node], g: Term[Generation]) -> None:
        """A node frees the memory of an obsolete generation that is described."""
        super().forget(n, g)
        require(self.described.has(g), "clients can read of it")


BUGS = known_bugs_in(globals())

"""Bugs of ScyllaDB's CDC generations, and mistakes that design document 003 warns of (`003-1` and on)."""

from __future__ import annotations

from stagewright.machines.scylladb.cdc.cdc_generations import (
    COORDINATOR as TOPOLOGY,
    DELAY,
    END,
    LAST_COMMIT,
    NETWORK,
    SKEW,
    CdcGenerations,
    Generation,
    Node,
)
from stagewright.machines.scylladb.cdc.cdc_log import LEEWAY, CdcLog, Row
from stagewright.machines.scylladb.cdc.cdc_mapping import (
    CdcMapping,
    Ends,
    Node as Joining,
    Shard,
    Token,
)
from stagewright.machines.scylladb.cdc.cdc_publication import (
    COORDINATOR,
    OPERATOR,
    CdcPublication,
    Generation as NumberedGeneration,
)
from stagewright.spec import (
    Bool,
    Fairness,
    Number,
    SetVar,
    Term,
    action,
    choose,
    every,
    only_when,
    require,
    set_of,
    some,
)
from stagewright.spec.known_bugs import NotFound, known_bug, known_bugs_in, released_bug


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
    "C02",
    "scylladb #17288",
    breaks=(CdcPublication.generations_are_described, CdcPublication.the_queue_loses_nothing),
)
class UpgradeForgetsToPublish(CdcPublication):
    """The upgrade to topology on group0 commits a generation and does not queue it for the publisher."""

    @action(by=OPERATOR, fair=Fairness.WEAK)
    def upgrade(self) -> None:
        only_when(self.release.publisher)
        require(~self.in_group0, "topology is gossiped")
        self.in_group0 = True
        self.committed.add(NumberedGeneration.first)


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


@known_bug(
    "C06",
    "scylladb #7961 #7993 #7985",
    breaks=CdcMapping.base_and_log_rows_are_on_one_shard,
)
class NumberOfStreamsIsLimited(CdcMapping):
    """A generation that would be too large gets fewer streams for a range than its owner has shards."""

    def _has_stream(self, shard: Shard, two_shards: Bool) -> Bool:
        return super()._has_stream(shard, two_shards) & (shard is Shard.first)


PUBLISHING_IS_A_STATE_OF_THE_TOPOLOGY = released_bug(
    "C07",
    "scylladb #15194, PR #15281",
    "Publishing is a state that a join goes through: while the tables for CDC clients cannot be written it "
    "can be neither finished nor aborted, and every other topology change waits.",
    machine=CdcPublication,
    profile="seed",
    breaks=CdcPublication.topology_changes_end,
    mended_in="scylla-2026.2",
)


@known_bug(
    "003-1",
    "design document 003, Generations",
    breaks=CdcLog.changes_are_read_with_the_rows,
    budgets={CdcLog.losses: 0},
)
class TheNewestGenerationTakesTheWrite(CdcLog):
    """A change goes to a stream of the generation that was committed last, which does not operate yet: clients
    look for it in the streams of the one that operated at its timestamp.
    """

    def _takes(self, g: Term[NumberedGeneration], _timestamp: Number, /) -> Bool:
        return self.committed.has(g) & ~some(self.start[g] < self.start[h] for h in self.committed)


@known_bug(
    "003-2",
    "design document 003, The generation's mapping",
    breaks=CdcLog.replicas_receive_both_writes_or_none,
    budgets={CdcLog.losses: 0},
)
class BaseAndLogWriteAreSentApart(CdcLog):
    """The two writes are messages of their own also where a replica is to get both."""

    @action
    def receive_base_write(self, n: Term[Joining]) -> None:
        """The replica receives the base write alone."""
        require(self.under_way[Row.base].has(n), "the base write is on its way to it")
        self.under_way[Row.base].discard(n)
        self.stored[Row.base].add(n)


@known_bug(
    "003-3",
    "design document 003, Generation switching",
    breaks=CdcLog.replicas_receive_both_writes_or_none,
    budgets={CdcLog.losses: 0},
)
class WritesBeforeTheGenerationAreAllowed(CdcLog):
    """A write with a timestamp before the start of the generation that operates is let through.

    "They belong to the old generation whose token ranges might no longer refine the current vnodes."
    """

    def _accepts(self, timestamp: Number) -> Bool:
        return (timestamp < self.now + LEEWAY) & (self.now - LEEWAY < timestamp)


@known_bug(
    "003-4",
    "design document 003, Generation switching",
    breaks=CdcLog.changes_are_read_with_the_rows,
    budgets={CdcLog.losses: 0},
)
class GenerationOperatesAtOnce(CdcLog):
    """The timestamp of a generation is the time at which it is committed: writes with a timestamp a little
    ahead have gone to the generation before it.
    """

    def _start(self) -> Number:
        return self.now


@known_bug(
    "003-5",
    "design document 003, Generation switching",
    breaks=CdcMapping.base_and_log_rows_are_in_one_vnode,
)
class GenerationRefinesTheOldVnodes(CdcMapping):
    """The joining node makes its generation for the vnodes that there are, without its own tokens."""

    def _vnodes_with(self, _t: Term[Token], /) -> Ends:
        return {end: self.ring[end].is_some() for end in Token}


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
    "003-10",
    "design document 001, after a request from the user to create a new CDC generation",
    breaks=CdcPublication.a_request_leaves_the_ring_alone,
)
class ARequestedGenerationBringsTokens(CdcPublication):
    """What commits a generation inserts the tokens for which it was made, whoever asked for it."""

    @action(by=COORDINATOR, fair=Fairness.WEAK)
    def commit_for_request(self, g: Term[NumberedGeneration]) -> None:
        """The generation is committed like that of a join."""
        super().commit_for_request(g)
        self.tokens.add(g)


@known_bug(
    "003-11",
    "design document 001: publish_cdc_generation",
    breaks=CdcPublication.topology_changes_do_not_wait_for_clients,
)
class TheNextChangeWaitsForThePublisher(CdcPublication):
    """No node joins while a generation is in the publisher's queue, which CDC clients' tables may hold up."""

    @action(by=COORDINATOR)
    def begin(self, g: Term[NumberedGeneration], join: Bool) -> None:
        """A topology change begins once everything is published."""
        super().begin(g, join)
        require(self.unpublished.is_empty(), "nothing is to be published")


@known_bug(
    "003-24",
    'design document 003: "in the interval [T, C + generation_leeway)"',
    breaks=CdcLog.writes_are_accepted_while_nodes_join,
    budgets={CdcLog.losses: 0},
)
class NothingIsAheadOfASwitch(CdcLog):
    """Before a generation operated, no timestamp was let through that is ahead of the coordinator's clock."""

    def _accepts(self, timestamp: Number) -> Bool:
        switches = some(self.now < self.start[g] for g in self.committed)
        return super()._accepts(timestamp) & ~(switches & (self.now < timestamp))


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

    @action(by=TOPOLOGY, spends=CdcGenerations.restarts)
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

    @action(by=TOPOLOGY, fair=Fairness.WEAK)
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
    "003-82",
    "design document 003, Streams description table; scylladb #15163",
    breaks=CdcGenerations.old_generations_are_cleared_whoever_is_cut_off,
    budgets={CdcGenerations.writes: 0},
)
class ClearingWaitsForAllNodes(CdcGenerations):
    """A generation was removed from group0 when no node had it in memory: one that was down kept all of them."""

    @action(by=TOPOLOGY, fair=Fairness.WEAK)
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

    @action(by=TOPOLOGY, fair=Fairness.WEAK)
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


COLOCATION_IS_LOST_FOR_A_WHILE = released_bug(
    "003-6",
    "design document 003, Generation switching",
    "Nodes write to a joining node as soon as they know its tokens, while the old generation still operates: "
    "a log row of that one may belong to another vnode than its base row, and other replicas.",
    machine=CdcLog,
    profile="scylla-2026.2",
    breaks=CdcLog.replicas_receive_both_writes_or_none,
    mended_in="two-phase",
)

BUGS = known_bugs_in(globals())
NOT_FOUND: tuple[NotFound, ...] = ()

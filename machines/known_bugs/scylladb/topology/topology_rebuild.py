"""Mistakes put back into `TopologyRebuild`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.scylladb import cluster
from stagewright.machines.scylladb.cluster import CLIENT, NETWORK, Node
from stagewright.machines.scylladb.topology import topology_rebuild
from stagewright.machines.scylladb.topology.topology_rebuild import (
    COORDINATOR,
    OPERATOR,
    Datacenter,
    TopologyRebuild,
    Write,
)
from stagewright.spec import Bool, Fairness, Term, action, choose, count, every, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

REBUILD = {TopologyRebuild.losses: 1, TopologyRebuild.crashes: 0, TopologyRebuild.failovers: 0}
WEAK = Fairness.WEAK
SUCCESS = "design document 001, stage 3: writes are executed on behalf of successful requests"
SOURCES = 'design document 001: a node that is rebuilt "is streaming data from other replicas"'


# -- what goes wrong -------------------------------------------------------------------------------


@known_bug(
    "001-63",
    "design document 001: rebuild_option is used as a rebuild source",
    breaks=TopologyRebuild.the_named_datacenter_is_the_source,
    sizes={Node: 3},
    budgets={TopologyRebuild.crashes: 0, TopologyRebuild.failovers: 0},
)
class TheNamedDatacenterIsForgotten(TopologyRebuild):
    """A rebuild streamed from all datacenters, also where the operator had named a whole one: the rows are the same, but
    they came over the slow link.
    """

    def _is_source(self, m: Term[Node], n: Term[Node]) -> Bool:
        return m != n


@known_bug(
    "001-600",
    'design document 001: rebuild_option, "if the node is being rebuild"',
    breaks=TopologyRebuild.sources_are_named_for_one_rebuild,
    budgets=REBUILD,
)
class TheSourceOutlivesItsRebuild(TopologyRebuild):
    """What the operator had named for a rebuild stayed in the node's row: the next one, for which nothing was named,
    streamed from there, too.
    """

    def _forget_the_source(self) -> None:
        """The row keeps what was named."""


@known_bug(
    "001-125",
    'design document 001, stage 3: writes "will reach CL"',
    breaks=TopologyRebuild.acknowledged_rows_survive_a_loss,
)
class HalfOfTheReplicasAreAQuorum(TopologyRebuild):
    """Of two nodes one was enough to acknowledge a write: when it lost its volume, the row was gone."""

    def _has_quorum(self, dc: Datacenter) -> Bool:
        storing = count((self.datacenter[n] == dc) & self.stored.has(n) for n in Node)
        return storing * 2 >= count(self.datacenter[n] == dc for n in Node)


@known_bug(
    "001-126",
    'design document 001: rebuild_option is "used as a rebuild source"',
    breaks=TopologyRebuild.the_named_datacenter_is_the_source,
    sizes={Node: 3},
    budgets={TopologyRebuild.crashes: 0, TopologyRebuild.failovers: 0},
)
class OneLostNodeMakesAllUnsafe(TopologyRebuild):
    """A datacenter was no safe source while any node had lost its rows, and one always had: the node that was rebuilt.
    What the operator named was ignored.
    """

    def _is_safe(self, dc: Datacenter | Term[Datacenter]) -> Bool:
        return super()._is_safe(dc) & every(~self._is_lost(m) for m in Node)


@known_bug("001-305", SUCCESS, breaks=TopologyRebuild.acknowledged_rows_are_in_each_datacenter)
class WritesAreAcknowledgedWhenSent(TopologyRebuild):
    """A client was told of its write when it was sent, for replicas that do not answer get it as a hint later; the row was
    nowhere.
    """

    @action(by=CLIENT)
    def send(self) -> None:
        """A client writes the row, and is told that it is written."""
        require(self.write == Write.none, "the row is not written yet")
        self.write = Write.acknowledged


@known_bug(
    "001-306",
    "design document 001: rebuilding does not change the topology",
    breaks=TopologyRebuild.a_write_succeeds_while_a_node_is_rebuilt,
)
class WritesAreDroppedUntilAllIsRebuilt(TopologyRebuild):
    """While a node was to be rebuilt, replicas dropped what they were sent, without an error: no write succeeded until
    the node was normal again.
    """

    @action(fair=WEAK)
    def store(self, n: Term[Node]) -> None:
        """A replica stores it where no node has lost its rows."""
        require(self.write == Write.sent, "the write is on its way")
        require(~self.stored.has(n), "the replica does not store it yet")
        require(~self.down.has(n), "the replica is up")
        self.stored.put(n, every(~self._is_lost(m) for m in Node))


@known_bug(
    "001-307",
    "design document 001: a node that is rebuilt streams data from other replicas",
    breaks=TopologyRebuild.rebuilds_fail_for_a_reason,
    budgets={TopologyRebuild.losses: 2, TopologyRebuild.crashes: 0},
)
class BrokenStreamsOutliveTheCoordinator(TopologyRebuild):
    """Another node became the topology coordinator and had everything streamed again, but took it from the last one that
    a stream had broken off: the rebuild failed all the same.
    """

    @action(by=COORDINATOR, spends=TopologyRebuild.failovers)
    def fail_over(self) -> None:
        """Another node becomes the topology coordinator, and knows that a stream broke off."""
        self.sources = frozenset()
        self.streamed = frozenset()


@known_bug(
    "001-342",
    'design document 001: `rebuild_option`, "if the node is being rebuild contains datacenter name"',
    breaks=TopologyRebuild.each_node_has_its_own_source,
    budgets={
        TopologyRebuild.losses: 1,
        TopologyRebuild.crashes: 0,
        TopologyRebuild.failovers: 0,
    },
)
class OneSourceForAll(TopologyRebuild):
    """The source that an operator named for one node was kept for the cluster: others streamed from it, too."""

    @action(by=OPERATOR, spends=TopologyRebuild.losses)
    def lose_volume_naming(self, n: Term[cluster.Node], source: Term[Datacenter]) -> None:
        """A node comes back with an empty volume; the operator names the datacenter to stream from."""
        self._lose_rows(n)
        for m in cluster.Node:
            self.rebuild_option[m] = source


@known_bug(
    "001-366",
    SOURCES,
    breaks=TopologyRebuild.a_rebuilt_node_has_every_row,
    sizes={Node: 3},
    budgets={TopologyRebuild.losses: 2, TopologyRebuild.crashes: 0},
)
class ABrokenStreamIsForgotten(TopologyRebuild):
    """What had streamed was noted in group0, but not that a source came back empty: the next coordinator went on."""

    @action(by=topology_rebuild.COORDINATOR, spends=TopologyRebuild.failovers)
    def fail_over(self) -> None:
        """Another node becomes the topology coordinator: it has the rest streamed."""
        self.broken = False


@known_bug(
    "R05",
    "design document 001: rebuilding is streaming from other replicas",
    breaks=(TopologyRebuild.a_rebuilt_node_has_every_row, TopologyRebuild.a_rebuild_has_a_source),
    budgets={**REBUILD, TopologyRebuild.crashes: 1},
)
class SourcesThatAreDownAreLeftOut(TopologyRebuild):
    """Sources that had died were left out, and where none was left, the rebuild was done with nothing."""

    def _all_have_sent(self) -> None:
        require(~self.sources.is_empty(), "it streams")
        require(self.sources <= (self.streamed | self.down), "every source that is up has sent")


@known_bug(
    "R06",
    "ScyllaDB's docs/dev/repair_based_node_ops.md: rebuild",
    breaks=TopologyRebuild.a_rebuilt_node_has_every_row,
    sizes={Node: 3},
    budgets={**REBUILD, TopologyRebuild.losses: 2},
)
class OneReplicaIsStreamedFrom(TopologyRebuild):
    """Before repair was used, a rebuild pulled each range "from only one of the replicas which might not be the
    latest copy".
    """

    def _all_have_sent(self) -> None:
        require(~self.streamed.is_empty(), "a source has sent its rows")


@known_bug(
    "R07",
    "scylladb PR #16827",
    breaks=TopologyRebuild.a_rebuilt_node_has_every_row,
    sizes={Node: 3},
    budgets={**REBUILD, TopologyRebuild.losses: 2},
)
class NamedDatacenterIsTakenUnseen(TopologyRebuild):
    """Rows came from the named datacenter alone, although its nodes had lost theirs: the other one had them."""

    def _is_safe(self, dc: Datacenter | Term[Datacenter]) -> Bool:
        return some(self._stands_in(m, dc) for m in Node)


@known_bug(
    "R08",
    "scylladb #16741",
    breaks=(
        TopologyRebuild.a_rebuilt_node_has_every_row,
        TopologyRebuild.quorum_reads_see_the_row,
    ),
    budgets=REBUILD,
)
class RowsAreRefusedWithoutSession(TopologyRebuild):
    """P06 seen by a client: a rebuild began without a session, every row that it streamed was rejected, and the
    node was normal again with the holes that it had.
    """

    def _open_session(self) -> None:
        """Forgotten."""


@known_bug(
    "001-719",
    'design document 001: "When a request is issued to a node the entry is added to the map"',
    breaks=TopologyRebuild.nodes_are_rebuilt_on_request,
    budgets={TopologyRebuild.losses: 0, TopologyRebuild.failovers: 0},
)
class WhoComesBackIsRebuilt(TopologyRebuild):
    """A node that had been dead was rebuilt when it came back, as if its rows were gone: meanwhile no other operation could
    begin.
    """

    @action(by=OPERATOR)
    def restart(self, n: Term[Node]) -> None:
        """A node comes back, and is to be rebuilt."""
        super().restart(n)
        self.waits.put(n, ~self.failed.has(n) & (self.rebuilding != n))


@known_bug(
    "001-726",
    "design document 001: the rebuilding state does not change the topology",
    breaks=TopologyRebuild.writes_go_on_while_nodes_are_rebuilt,
    budgets=REBUILD,
)
class RebuildsBeginWithATimeout(TopologyRebuild):
    """A rebuild that began took the writes that were on their way for lost: their clients were told of a timeout."""

    @action(by=COORDINATOR, fair=WEAK)
    def start_rebuild(self, n: Term[Node]) -> None:
        """The request is taken up, and what is on its way given up."""
        super().start_rebuild(n)
        self.write = choose(self.write == Write.sent, Write.timed_out, self.write)


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "001-21",
    "design document 001: streaming data from other replicas",
    breaks=TopologyRebuild.nobody_waits_for_a_rebuild,
)
class WritesWaitForTheRebuild(TopologyRebuild):
    """No client writes while a node is rebuilt."""

    @action(by=CLIENT)
    def send(self) -> None:
        """A client writes when no node is rebuilt."""
        super().send()
        require(self.rebuilding.is_none(), "no node is rebuilt")


@known_bug(
    "001-87",
    "design document 001: a node that is rebuilt streams data, and serves its slice of the ring",
    breaks=TopologyRebuild.nobody_waits_for_a_rebuild,
)
class WhoIsRebuiltTakesNoWrites(TopologyRebuild):
    """A node took no writes while it was rebuilt, and lacked them when it was done."""

    @action(fair=WEAK)
    def store(self, n: Term[Node]) -> None:
        """A replica stores it, unless it is rebuilt."""
        super().store(n)
        require(self.rebuilding != n, "it is not rebuilt")


@known_bug("001-88", SUCCESS, breaks=TopologyRebuild.writes_succeed_while_nodes_are_rebuilt)
class WritesAreAcknowledgedWhenAllIsRebuilt(TopologyRebuild):
    """A write that a quorum of each datacenter had stored was acknowledged when no node was rebuilt any more."""

    @action(fair=WEAK)
    def acknowledge(self) -> None:
        """A quorum of each datacenter has stored it, and no node is rebuilt."""
        super().acknowledge()
        require(self.rebuilding.is_none(), "no node is rebuilt")


@known_bug(
    "001-124",
    "design document 001, stage 3: writes are executed on behalf of successful requests",
    breaks=TopologyRebuild.writes_succeed_while_nodes_are_rebuilt,
)
class EachQuorumIsOfTwoDatacenters(TopologyRebuild):
    """EACH_QUORUM took it that each datacenter has nodes: where all of them stood in one, no write succeeded."""

    def _has_quorum(self, dc: Datacenter) -> Bool:
        return super()._has_quorum(dc) & some(self.datacenter[n] == dc for n in Node)


@known_bug(
    "001-218",
    "design document 001: rebuilding does not change the topology",
    breaks=TopologyRebuild.clients_need_not_wait_for_rebuilds,
)
class RebuildsStopTheClock(TopologyRebuild):
    """A write that a replica had missed did not time out while a node was rebuilt: it might still be stored."""

    @action(by=NETWORK, fair=WEAK)
    def time_out(self) -> None:
        """The write ends, when no node is rebuilt."""
        super().time_out()
        require(self.rebuilding.is_none(), "no node is rebuilt")


@known_bug(
    "001-232",
    'design document 001: "streaming data from other replicas"',
    breaks=TopologyRebuild.nobody_waits_for_a_rebuild,
)
class RebuildsKeepOthersOut(TopologyRebuild):
    """A node that had died was let in when no node was rebuilt: the rebuild waited for it as a source."""

    @action(by=OPERATOR)
    def restart(self, n: Term[Node]) -> None:
        """The node comes back, when no node is rebuilt."""
        require(self.rebuilding.is_none(), "no node is rebuilt")
        super().restart(n)


@known_bug(
    "001-233",
    'design document 001: "When a request is issued to a node the entry is added to the map"',
    breaks=TopologyRebuild.rebuilds_are_asked_for_at_any_time,
    budgets={TopologyRebuild.losses: 2},
)
class OneRequestToRebuild(TopologyRebuild):
    """While a node was rebuilt, or waited for it, no other rebuild was taken into the map."""

    @action(by=OPERATOR)
    def ask_again(self, n: Term[Node]) -> None:
        """The operator asks for another one, if nobody else has."""
        require(self.waits.is_empty() & self.rebuilding.is_none(), "no rebuild is asked for")
        super().ask_again(n)


@known_bug(
    "001-500",
    'design document 001: rebuilding "does not change the topology"',
    breaks=TopologyRebuild.no_step_waits_for_clients,
    budgets=REBUILD,
)
class RebuildsBeginWhenNobodyWrites(TopologyRebuild):
    """A request to rebuild was taken up when no client's write was on its way: on a busy cluster it waited for ever."""

    @action(by=COORDINATOR, fair=WEAK)
    def start_rebuild(self, n: Term[Node]) -> None:
        """The request is taken up between two writes."""
        super().start_rebuild(n)
        require(self.write != Write.sent, "no write is on its way")


@known_bug(
    "001-501",
    'design document 001: rebuilding "does not change the topology"',
    breaks=TopologyRebuild.no_step_waits_for_clients,
    budgets=REBUILD,
)
class RebuildsEndWhenNobodyWrites(TopologyRebuild):
    """A node to which all rows had been streamed stayed in the state of its rebuild as long as clients wrote."""

    @action(by=COORDINATOR, fair=WEAK)
    def finish_rebuild(self, n: Term[Node]) -> None:
        """Every source has sent its rows, and nobody writes."""
        super().finish_rebuild(n)
        require(self.write != Write.sent, "no write is on its way")


@known_bug(
    "001-502",
    'design document 001: "When a request is issued to a node the entry is added to the map"',
    breaks=TopologyRebuild.nodes_are_to_be_rebuilt_while_others_are,
    sizes={Node: 3},
    budgets={TopologyRebuild.losses: 2, TopologyRebuild.crashes: 0},
)
class OneRebuildIsAskedForAtATime(TopologyRebuild):
    """A request to rebuild a node was refused, and did not wait, while another node was rebuilt."""

    @action(by=OPERATOR, spends=TopologyRebuild.losses)
    def lose_volume(self, n: Term[Node]) -> None:
        """A node comes back with an empty volume, while nothing is rebuilt."""
        super().lose_volume(n)
        require(self.rebuilding.is_none(), "no node is rebuilt")


@known_bug(
    "001-503",
    SOURCES,
    breaks=TopologyRebuild.replicas_send_their_rows_each_for_itself,
    sizes={Node: 3},
    budgets={TopologyRebuild.failovers: 0},
)
class ADeadNodeStopsEveryStream(TopologyRebuild):
    """A replica that was up, and had been asked, sent nothing as long as any other node was down."""

    @action(fair=WEAK)
    def stream(self, n: Term[Node], source: Term[Node]) -> None:
        """A source sends its rows, if all nodes are up."""
        super().stream(n, source)
        require(self.down.is_empty(), "no node is down")


@known_bug(
    "001-549",
    'design document 001: rebuilding "does not change the topology but requires streaming data"',
    breaks=TopologyRebuild.no_step_waits_for_clients,
    budgets=REBUILD,
)
class SourcesAreChosenWhenNobodyWrites(TopologyRebuild):
    """A node looked for its sources when no write was on its way to any replica: as if a row that comes later were
    lost.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def begin_streaming(self, n: Term[Node]) -> None:
        """The node looks for sources, while nobody writes."""
        require(self.write != Write.sent, "no write is on its way")
        super().begin_streaming(n)


BUGS = known_bugs_in(globals())

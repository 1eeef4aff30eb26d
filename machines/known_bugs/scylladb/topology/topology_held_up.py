"""Mistakes by which an operation that is over, or that goes on beside, holds somebody up, or still has effects."""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import CLIENT, Node
from stagewright.machines.scylladb.topology.control.topology_record import (
    COORDINATOR,
    OPERATOR,
    TopologyRecord,
)
from stagewright.machines.scylladb.topology.shared_fence import Kind, SharedFence, Stage
from stagewright.machines.scylladb.topology.topology_control import TopologyControl
from stagewright.machines.scylladb.topology.topology_rebuild import TopologyRebuild, Write
from stagewright.machines.scylladb.topology.topology_sessions import Session, TopologySessions
from stagewright.machines.scylladb.topology.topology_states import NodeState, TransitionState
from stagewright.spec import Bool, Fairness, Term, action, every, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

WEAK = Fairness.WEAK
SUCCESS = "design document 001, stage 3: writes are executed on behalf of successful requests"


@known_bug(
    "001-80",
    'design document 001: "When a request is issued to a node the entry is added to the map"',
    breaks=TopologyControl.nodes_can_be_rebuilt_at_any_time,
    budgets={TopologyControl.requests: 2, TopologyControl.faults: 1},
)
class AFailedReplaceLeavesItsMark(TopologyControl):
    """A node that was to be replaced came back, and the one that was to take its place had been refused: it counted as
    one that is to go, for ever.
    """

    def stays(self, n: Term[Node]) -> Bool:
        """Normal, and neither asked to go nor named by a node that came to replace it."""
        named = some(self.replaced_id[m] == n for m in Node)
        return self._is(n, NodeState.normal) & ~self._wants_to_go(n) & ~named


@known_bug(
    "001-109",
    'design document 001: "Tablets are migrated in parallel and independently"',
    breaks=TopologyControl.nodes_are_emptied_independently,
    sizes={Node: 3},
    budgets={TopologyControl.requests: 3, TopologyControl.faults: 0},
)
class OneNodeIsEmptiedAtATime(TopologyControl):
    """Two nodes were drained, and their last tablets came to rest at once: of one of them the topology took no notice."""

    def _is_drained_last(self, n: Term[Node]) -> Bool:
        """It still goes, whoever else does."""
        return self._still_goes(n)


@known_bug(
    "001-111",
    'design document 000: tasks are "aborted due to keyspace/view drop", in whatever state',
    breaks=TopologyControl.tables_are_dropped_at_any_time,
    budgets={TopologyControl.requests: 1, TopologyControl.faults: 0},
)
class NoNodeIsLeftWithoutTablets(TopologyControl):
    """A view was not dropped while some node had tablets of it alone: where loads are equal, nothing moves, and the drop
    was refused until an operator moved a tablet there.
    """

    @action(by=OPERATOR, spends=TopologyRecord.requests)
    def drop_table(self, n: Term[Node]) -> None:
        """No table is the last of a node, while another one has any."""
        others = some((m != n) & self.tablet_hosts.has(m) for m in Node)
        require(~others, "no other node holds tablets")
        super().drop_table(n)


@known_bug(
    "001-113",
    'design document 001: normal, "serves the slice of the ring that belongs to it"',
    breaks=TopologyControl.tables_are_created_at_any_time,
    budgets={TopologyRecord.requests: 2, TopologyRecord.faults: 0},
)
class NoTableIsMadeWhileReadsMove(TopologyControl):
    """While reads moved to the new ring for one node, no table could be made whose tablets were to lie on another one."""

    @action(by=OPERATOR, spends=TopologyRecord.requests)
    def create_table(self, n: Term[Node]) -> None:
        """Nobody joins or leaves."""
        super().create_table(n)
        require(self.transition_state != TransitionState.write_both_read_new, "reads do not move")


@known_bug(
    "001-112",
    "design document 001: a tablet migrates from one replica to another",
    breaks=TopologyControl.tablets_leave_a_node_by_moving,
    budgets={TopologyControl.requests: 2, TopologyControl.faults: 0},
)
class NobodyTakesOver(TopologyControl):
    """The last tablet of a node left it for balance, and the commit did not say where it is now."""

    def _hand_over(self, n: Term[Node], heir: Term[Node]) -> None:
        """It is gone, unless it has stayed."""
        self.tablet_hosts.put(n, n == heir)


@known_bug(
    "001-81",
    'design document 001: normal, "serves the slice of the ring that belongs to it"',
    breaks=TopologyControl.who_stays_is_not_shut_down,
    budgets={TopologyControl.requests: 1, TopologyControl.faults: 1},
)
class WhoWasToLeaveShutsDown(TopologyControl):
    """The decommission of a node was rolled back, and the node shut down as it would have at its end."""

    @action(by=COORDINATOR, fair=WEAK)
    def complete_rollback(self, n: Term[Node]) -> None:
        """The node is normal again, and is told to shut down."""
        super().complete_rollback(n)
        self.down.add(n)


@known_bug("001-85", SUCCESS, breaks=SharedFence.writes_are_stored_while_both_change)
class WhoIsAheadRefuses(SharedFence):
    """A replica refused whatever began before its own version, fenced or not: every change, of either kind, failed the
    writes of those who learned of it later.
    """

    def _passes_the_fence(self, r: Term[Node]) -> Bool:
        return self.request.version >= self.known_version[r]


@known_bug("001-86", SUCCESS, breaks=SharedFence.writes_succeed_while_both_change)
class WritesAreAcknowledgedWhenNothingChanges(SharedFence):
    """A write that all replicas had stored was acknowledged when no change, of either kind, went on any more."""

    @action(fair=WEAK)
    def acknowledge(self, k: Term[Kind]) -> None:
        """All replicas have stored it, and nothing moves."""
        super().acknowledge(k)
        moves = (Stage.write_both_read_old, Stage.write_both_read_new)
        require(every(~self.stage[m].any_of(*moves) for m in Kind), "nothing moves")


@known_bug("001-302", SUCCESS, breaks=SharedFence.a_write_succeeds_while_its_replicas_change)
class AnswersOfReplicasAreDropped(SharedFence):
    """An answer counted only if nothing had ever changed: of a write that began under a later version all replicas stored
    the row, and the client was told that it had timed out.
    """

    @action(fair=WEAK)
    def store(self, r: Term[Node], k: Term[Kind]) -> None:
        """A replica stores the row; its answer counts as long as nothing has changed."""
        request = self.request
        require(request.targets.has(r) & (request.kind == k), "it is sent to the replica")
        require(~request.reached.has(r), "the replica has not stored it yet")
        require(self._passes_the_fence(r), "it is not below the replica's fence")
        self.stored[k].add(r)
        request.reached.put(r, request.version == 1)


@known_bug(
    "001-87",
    "design document 001: a node that is rebuilt streams data, and serves its slice of the ring",
    breaks=TopologyRebuild.writes_are_stored_while_nodes_are_rebuilt,
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
    "001-93",
    "design document 001: streaming is of one operation, and over before the next begins",
    breaks=TopologySessions.work_was_sent_and_let_in,
    budgets={TopologySessions.failures: 1},
)
class AnyOpenSessionLetsIn(TopologySessions):
    """A node asked whether a session is open, and not which: a stream of an operation that was over went on in the
    session of a TRUNCATE.
    """

    @action(fair=WEAK)
    def admit(self, n: Term[Node], s: Term[Session]) -> None:
        """A session is open, as far as the node knows."""
        require(self.message[n] == s, "work has arrived")
        require(self.known[n].is_some(), "a session is open")
        self.message[n] = None
        self.guard[n] = s
        self.driven.add(n)


@known_bug(
    "001-303",
    'design document 001: "After the entire cluster learns about it, streaming starts"',
    breaks=TopologySessions.streaming_starts_when_all_have_learned,
)
class StreamingStartsWhereItIsKnown(TopologySessions):
    """A node was sent its work as soon as it had learned the session itself: it streamed from nodes that did not write to
    both rings yet.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def send(self, n: Term[Node], s: Term[Session]) -> None:
        """The node has learned the session: work is sent to it."""
        require((self.running == s) & self.session.is_some(), "a request streams")
        require(~self.worked[n].has(s), "the node has work to do")
        require(self.message[n].is_none() & self.guard[n].is_none(), "the node is free")
        require(self._has_learned(n), "the node has learned the session")
        self.message[n] = s


BUGS = known_bugs_in(globals())

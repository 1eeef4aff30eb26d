"""Bugs of ScyllaDB's topology state machine."""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.topology.control.topology_record import (
    COORDINATOR,
    OPERATOR,
    WEAK,
    T,
)
from stagewright.machines.scylladb.topology.topology import TopologyCluster
from stagewright.machines.scylladb.topology.topology_announced import TopologyAnnounced
from stagewright.machines.scylladb.topology.topology_control import TopologyControl
from stagewright.machines.scylladb.topology.topology_coordinator import (
    Coordinator,
    TopologyCoordinator,
)
from stagewright.machines.scylladb.topology.topology_rebuild import Datacenter, TopologyRebuild
from stagewright.machines.scylladb.topology.topology_sessions import Session, TopologySessions
from stagewright.machines.scylladb.topology.topology_states import (
    TransitionState,
)
from stagewright.spec import Bool, Term, action, every, require, some
from stagewright.spec.known_bugs import NotFound, known_bug, known_bugs_in

ONE = {TopologyControl.requests: 1, TopologyControl.faults: 0}


@known_bug(
    "T17",
    "scylladb PR #23751",
    breaks=(TopologyControl.node_state_fits_transition_state, TopologyControl.every_request_ends),
    profile="scylla-2025.4",
    budgets={TopologyControl.requests: 2, TopologyControl.faults: 0},
)
class TabletIsMovedWhileANodeLeaves(TopologyControl):
    """move_tablet set the tablet migration track without looking whether the topology was busy: called
    while tablets drained from a node, it threw the state of the decommission away, which never went on.
    """

    def _not_busy(self) -> None:
        free = self.transition_state.any_of(T.null, T.tablet_migration, T.tablet_draining)
        require(free, "nothing but draining goes on")


@known_bug(
    "P02",
    "scylladb #20865",
    breaks=TopologyControl.nobody_waits_for_a_node_that_was_told_to_shut_down,
    budgets={TopologyControl.requests: 1, TopologyControl.faults: 1},
)
class LeftTokenRingStartsAgain(TopologyControl):
    """A commit raced, the coordinator entered left_token_ring again and began from its top: its barrier
    asked the node that had been told to shut down, and failed.
    """

    def _still_matters(self) -> None:
        """It was not looked at whether the request was reported as done already."""


@known_bug(
    "P06",
    "scylladb #16741",
    breaks=TopologyControl.what_streams_has_an_open_session,
    budgets=ONE,
)
class RebuildWithoutSession(TopologyControl):
    """A rebuild began without a session: every mutation that it streamed was rejected."""

    def _open_rebuild_session(self) -> None:
        """Forgotten."""


@known_bug(
    "P10",
    "scylladb #16461",
    breaks=TopologyControl.every_request_ends,
    budgets={TopologyControl.requests: 1, TopologyControl.faults: 1},
)
class CommitOfAGenerationIsTriedForEver(TopologyControl):
    """A node died, the barrier of commit_cdc_generation failed, and was tried again and again."""

    def _gives_up(self) -> Bool:
        return super()._gives_up() & (
            self.transition_state != TransitionState.commit_cdc_generation
        )


@known_bug(
    "P14",
    "scylladb #14885",
    breaks=TopologyControl.left_nodes_are_out_of_group0,
    budgets={TopologyControl.requests: 1, TopologyControl.faults: 1},
)
class ReplacedNodeStaysInGroup0(TopologyControl):
    """The replaced node was left before it was removed from the raft configuration, which was done now and
    then only: the coordinator could sleep with a dead member.
    """

    def _replaced_is_out(self, n: Term[Node]) -> None:
        """It was not waited for."""


@known_bug(
    "R04",
    "design document 001: rebuilding is streaming from other replicas",
    breaks=TopologyControl.a_rebuild_is_done_when_it_has_streamed,
    budgets=ONE,
)
class NodeIsRebuiltFromNobody(TopologyControl):
    """Nobody looked whether there is another replica: a node is rebuilt in a cluster of one."""

    def _has_source(self, n: Term[Node]) -> Bool:
        return super()._has_source(n) | self.in_old_ring(n)


REBUILD = {TopologyRebuild.losses: 1, TopologyRebuild.crashes: 0, TopologyRebuild.failovers: 0}


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


ONE_DEAD = {TopologyControl.requests: 1, TopologyControl.faults: 1}


@known_bug(
    "R01",
    "design document 001: tablets of a node that is replaced",
    breaks=TopologyControl.tablets_leave_a_node_by_moving,
    budgets=ONE_DEAD,
)
class TabletsVanishWithTheReplacedNode(TopologyControl):
    """The commit that made the replaced node left took its replicas out of the tablet map, with nothing in their
    place.
    """

    def _take_the_place(self, n: Term[Node]) -> None:
        super()._take_the_place(n)
        for m in Node:
            dead = self.replaced_id[n] == m
            self.tablet_hosts.put(m, self.tablet_hosts.has(m) & ~dead)


@known_bug(
    "R02",
    "design document 001: tablets of a node that is replaced",
    breaks=TopologyControl.left_nodes_hold_no_tablets,
    profile="scylla-2025.4",
    budgets=ONE_DEAD,
)
class NothingDrainsFromTheReplacedNode(TopologyControl):
    """Tablets drained from nodes that leave alone; the node that was replaced was left while it held some."""

    def _must_be_empty(self, n: Term[Node]) -> Bool:
        return super()._must_be_empty(n) & ~self._being_replaced(n)


@known_bug(
    "R03",
    "design document 001: tablets of a node that is replaced",
    breaks=TopologyControl.tablets_of_replaced_nodes_are_rebuilt,
    budgets=ONE_DEAD,
)
class NobodyRebuildsForTheReplacedNode(TopologyControl):
    """The balancer drained nodes whose request was paused, and forgot those that had been replaced."""

    def _to_be_drained(self, n: Term[Node]) -> Bool:
        return self._paused(n)


@known_bug(
    "001-11",
    "design document 001, Topology states: a node leaves when its tablets have moved away",
    breaks=(TopologyControl.every_request_ends, TopologyControl.can_come_to_rest),
    profile="scylla-6.0",
    budgets={TopologyControl.faults: 0},
)
class ADrainWaitsForWhatIsGone(TopologyControl):
    """The last tablet of a node that was being drained for its decommission was moved by hand, or dropped with its table:
    the drain, which was to move it, waited for it for ever.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def settle_tablets(self) -> None:
        """What is not moved by the drain comes to rest in the tablet migration track alone."""
        super().settle_tablets()
        require(self.transition_state == T.tablet_migration, "in the tablet migration track")


@known_bug(
    "P01",
    "scylladb #16568",
    breaks=TopologyCoordinator.node_state_fits_transition_state,
    budgets={
        TopologyCoordinator.migrations: 0,
        TopologyCoordinator.drops: 0,
        TopologyCoordinator.failures: 1,
        TopologyCoordinator.failovers: 1,
    },
)
class StaleNodeAfterTheBarrier(TopologyCoordinator):
    """After a barrier the coordinator took its guard again, but went on with the node as it had read it
    before: it moved the topology on for a node that was being rolled back.
    """

    def _looks_again(self, c: Term[Coordinator]) -> None:
        """What was read before the barrier is taken for the truth."""


@known_bug(
    "001-12",
    "design document 001, Tablet migration: a stage is advanced when its invariants hold",
    breaks=TopologyCoordinator.stages_are_left_when_they_are_done,
    budgets={
        TopologyCoordinator.requests: 0,
        TopologyCoordinator.failures: 0,
        TopologyCoordinator.migrations: 2,
    },
)
class NobodyChecksTheTerm(TopologyCoordinator):
    """A coordinator whose term is over could take a guard, and took a stage of the next migration for the one that it
    had done.
    """

    def _is_in_its_term(self, c: Term[Coordinator]) -> Bool:
        return (self.leader == c) | (self.leader != c)


@known_bug(
    "001-13",
    "design document 001, Topology states: the coordinator reads, decides and commits",
    breaks=(
        TopologyCoordinator.tablets_move_in_their_track,
        TopologyCoordinator.dropped_tables_have_no_transitions,
    ),
    budgets={TopologyCoordinator.requests: 0, TopologyCoordinator.failures: 0},
)
class CommitsLeaveGuardsAlone(TopologyCoordinator):
    """A commit overwrote what others had committed since its guard was taken: the stage of a table that was dropped."""

    def _outdate_guards(self) -> None:
        """Whoever has a guard may commit."""


@known_bug(
    "P13",
    "scylladb #27958",
    breaks=TopologyCoordinator.work_is_noticed,
    budgets={
        TopologyCoordinator.migrations: 0,
        TopologyCoordinator.drops: 0,
        TopologyCoordinator.failures: 0,
        TopologyCoordinator.failovers: 0,
    },
)
class EventBetweenLookAndWait(TopologyCoordinator):
    """A request came after the coordinator had looked for work and before it waited for the event, which
    had fired by then: it slept over the request.
    """

    def _nothing_happened(self, c: Term[Coordinator]) -> None:
        """It was not looked at again."""


@known_bug(
    "P05",
    "scylladb #22613",
    breaks=(
        TopologySessions.only_the_owner_replaces_the_session,
        TopologySessions.streams_find_their_session,
    ),
    budgets={TopologySessions.failures: 0},
)
class TruncateOpensItsSessionWhenItIsQueued(TopologySessions):
    """TRUNCATE set the session of the topology when it was queued: the decommission that streamed lost its
    own, and its streams were told "Session not found".
    """

    def _queue(self, s: Term[Session]) -> None:
        self.session = s


@known_bug(
    "P12",
    "scylladb SCYLLADB-1805",
    breaks=TopologySessions.every_request_ends,
    budgets={TopologySessions.truncations: 0},
)
class ClosedSessionIsHeldForEver(TopologySessions):
    """The node that drove a repair restarted before anybody saw it down; at the other nodes its work held
    the guard of a session that was closed since, and the barrier waited for it for ever.
    """

    def _aborts(self, n: Term[Node]) -> None:
        require(self.driven.has(n), "its driver gives it up")


@known_bug(
    "P08",
    "scylladb #18678",
    breaks=TopologyAnnounced.done_means_normal_everywhere,
    budgets={
        TopologyAnnounced.operations: 1,
        TopologyAnnounced.writes: 0,
        TopologyAnnounced.reads: 0,
    },
)
class DoneWhenCommitted(TopologyAnnounced):
    """The transition state is removed with no barrier after it, in the design document and in every release:
    the client is told that the bootstrap is done while other nodes take the node for one that joins.
    """

    def _all_have_learned(self) -> None:
        """The commit was all that was waited for."""


@known_bug(
    "001-14",
    'design document 001: barriers wait until "the entire cluster learns about it"',
    breaks=TopologyCluster.a_passed_barrier_means_a_learned_fence,
    budgets={TopologyCluster.crashes: 1, TopologyCluster.writes: 0, TopologyCluster.reads: 0},
)
class RestartedNodesServeAtOnce(TopologyCluster):
    """A dead node was being removed, so that no barrier waited for it, and came back: it served by the topology of
    before its crash, as if what the barrier had waited for were still to come.
    """

    @action(by=OPERATOR)
    def restart(self, n: Term[Node]) -> None:
        """The node comes back, as it went."""
        self.topology.restart(n)
        require(self.topology.members.has(n), "the node is in group0")


@known_bug(
    "001-105",
    'design document 001: "make sure that no reads that started before this point exist in the system"',
    breaks=(
        TopologyCluster.a_barrier_waits_for_older_requests,
        TopologyCluster.reads_succeed_while_the_ring_changes,
    ),
    budgets={TopologyCluster.crashes: 0, TopologyCluster.writes: 0, TopologyCluster.reads: 1},
)
class CleanupWaitsForVersionsAlone(TopologyCluster):
    """Rows were removed once all nodes had the version of the topology, whatever they had asked for with an older one."""

    @action(by=COORDINATOR, fair=WEAK)
    def fence_before_cleanup(self) -> None:
        """The versions are compared, and nothing else."""
        learned = every(
            (self.topology.members.has(n) & ~self.topology.down.has(n)).implies(
                self.view[n].version == self.topology.version
            )
            for n in Node
        )
        require(learned, "all that are up have learned")
        self.topology.fence_before_cleanup()


BUGS = known_bugs_in(globals())
NOT_FOUND: tuple[NotFound, ...] = ()

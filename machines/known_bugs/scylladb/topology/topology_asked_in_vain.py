"""Mistakes by which what an operator, the balancer or the coordinator may do waits for what is not in its way."""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import NETWORK, Node
from stagewright.machines.scylladb.topology.control.topology_record import (
    COORDINATOR,
    OPERATOR,
    TopologyRecord,
)
from stagewright.machines.scylladb.topology.fencing import (
    API,
    Fencing,
    Node as FencedNode,
    Phase,
)
from stagewright.machines.scylladb.topology.group0 import LEADER, LONGEST, Group0, Member
from stagewright.machines.scylladb.topology.topology_control import TopologyControl
from stagewright.machines.scylladb.topology.topology_coordinator import (
    API as COORDINATORS_API,
    At,
    Coordinator,
    Tablet,
    TopologyCoordinator,
    Transition,
)
from stagewright.machines.scylladb.topology.topology_rebuild import TopologyRebuild
from stagewright.machines.scylladb.topology.topology_states import Work
from stagewright.spec import Bool, Fairness, Number, Term, action, count, every, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

WEAK = Fairness.WEAK
INDEPENDENTLY = 'design document 001: "Tablets are migrated in parallel and independently"'
ALIVE = 'design document 001: "streamed to nodes that took over from still alive owners"'
NO_WORK = 'design document 001: "If there is no work for the state machine"'
FENCE = {Fencing.writes: 1, Fencing.bumps: 0, Fencing.failures: 0, Fencing.cleanups: 0}
ONE_REQUEST = {TopologyRecord.requests: 1, TopologyRecord.faults: 0}
TWO_REQUESTS = {TopologyRecord.requests: 2, TopologyRecord.faults: 0}


@known_bug(
    "001-211",
    INDEPENDENTLY,
    breaks=Fencing.versions_are_committed_at_any_time,
    budgets={**FENCE, Fencing.writes: 0, Fencing.bumps: 1},
)
class TheApiWaitsForBarriers(Fencing):
    """`move_tablet` waited until no barrier ran: on a busy cluster, as long as it was busy."""

    @action(by=API, spends=Fencing.bumps)
    def bump(self) -> None:
        """A request of the API commits a version between barriers."""
        super().bump()
        require(self.phase == Phase.none, "no barrier runs")


@known_bug(
    "001-212",
    'design document 001: decommissioning, "the node is being decomissioned"',
    breaks=Fencing.nodes_begin_to_leave_whatever_is_fenced,
    budgets={**FENCE, Fencing.decommissions: 1},
)
class WhoHasRequestsStays(Fencing):
    """A node began to leave when it coordinated no request: under clients, never."""

    @action(by=COORDINATOR, spends=Fencing.decommissions)
    def decommission(self, n: Term[FencedNode]) -> None:
        """A node that has nothing to do begins to leave."""
        super().decommission(n)
        require(self.request[n].replica.is_none(), "it coordinates no request")


@known_bug(
    "001-213",
    'design document 001, stage 6: "No write request will reach tablet replica"',
    breaks=Fencing.replicas_are_cleaned_up_after_their_barrier,
    budgets={**FENCE, Fencing.cleanups: 1},
)
class CleanupsWaitForAllRequests(Fencing):
    """A replica was cleaned up when no request was on its way to it, not even one that the fence lets pass."""

    @action(by=COORDINATOR, spends=Fencing.cleanups)
    def clean_up(self, r: Term[FencedNode]) -> None:
        """A replica to which nobody writes is cleaned up."""
        super().clean_up(r)
        require(every(self.request[n].replica != r for n in FencedNode), "nobody writes to it")


@known_bug(
    "001-214",
    ALIVE,
    breaks=Fencing.dead_nodes_are_given_up_at_any_time,
    budgets={**FENCE, Fencing.writes: 0, Fencing.exclusions: 1},
)
class NobodyIsGivenUpDuringABarrier(Fencing):
    """The operator could not give a node up while a barrier waited for it, which is when one does."""

    @action(by=OPERATOR, spends=Fencing.exclusions)
    def exclude(self, n: Term[FencedNode]) -> None:
        """The node is gone for good, and no barrier waits."""
        super().exclude(n)
        waits = self.phase.any_of(Phase.draining, Phase.informing)
        require(~waits, "no barrier waits for nodes")


@known_bug(
    "001-215",
    "design document 001: what runs before a barrier has run out after it, locks of the row included",
    breaks=Fencing.transactions_run_where_nobody_holds_the_row,
    budgets={**FENCE, Fencing.writes: 0, Fencing.transactions: 2},
)
class OneLockInTheCluster(Fencing):
    """A transaction waited for those on all replicas, not on its own alone: two of them for each other, for ever."""

    @action(fair=WEAK)
    def take_locks(self, n: Term[FencedNode], r: Term[FencedNode]) -> None:
        """A replica locks the row when nobody has."""
        super().take_locks(n, r)
        require(every(self.request[m].executed == 0 for m in FencedNode), "no row is locked")


@known_bug(
    "001-216",
    'design document 001: left, "the node left the cluster and group0"',
    breaks=Group0.voters_come_and_go,
    budgets={Group0.elections: 1, Group0.changes: 0, Group0.voter_changes: 1},
)
class TwoVotersStay(Group0):
    """Of two voters neither could go: a cluster of two nodes could not be made one of one."""

    @action(by=LEADER, spends=Group0.voter_changes)
    def change_voters(self, leader: Term[Member], m: Term[Member]) -> None:
        """A member becomes a voter, or is one no more, unless there are only two."""
        voters = count(self._is_voter(leader, v) for v in Member)
        require(~self._is_voter(leader, m) | (voters > 2), "two voters are left")
        super().change_voters(leader, m)


@known_bug(
    "001-217",
    NO_WORK,
    breaks=TopologyCoordinator.coordinators_rest_where_there_is_no_work,
)
class OnlyTabletsAreWaitedFor(TopologyCoordinator):
    """A coordinator slept while tablets moved; at rest it read the topology again and again."""

    def _saw_no_work(self, c: Term[Coordinator]) -> Bool:
        return super()._saw_no_work(c) & (self.at[c] == At.decided) & self._tablets_move()


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
    "001-219",
    'design document 001: "allow pending topology operation to start"',
    breaks=TopologyControl.requests_are_refused_when_their_turn_comes,
    budgets=ONE_REQUEST,
)
class WhoIsDrainedIsNotRefused(TopologyControl):
    """To leave was refused at rest alone: where the drain could not end without the node, there was no such time."""

    @action(by=COORDINATOR)
    def reject(self, n: Term[Node]) -> None:
        """A request is refused where it would be taken up."""
        super().reject(n)
        require(self.is_at_rest(), "the topology is at rest")


@known_bug(
    "001-220",
    'design document 001: the track "excludes with other topology changes"',
    breaks=TopologyControl.tablets_are_moved_by_hand_where_no_node_is_in_the_way,
    budgets=TWO_REQUESTS,
)
class NobodyMovesTabletsWhileARequestWaits(TopologyControl):
    """What the balancer must not do, an operator could not, either: move a tablet off a node that is asked to leave."""

    @action(by=OPERATOR, spends=TopologyRecord.requests)
    def move_tablet(self) -> None:
        """An operator moves a tablet by hand, if no topology change waits."""
        super().move_tablet()
        require(every(self.topology_request[n].is_none() for n in Node), "no request waits")


@known_bug(
    "001-221",
    INDEPENDENTLY,
    breaks=TopologyControl.tablets_come_to_rest_independently,
    budgets=TWO_REQUESTS,
)
class ADrainEndsAtOnce(TopologyControl):
    """While a node was drained, its tablets came to rest together, with the last of them."""

    @action(by=COORDINATOR, spends=TopologyRecord.requests)
    def settle_tablets_on(self, n: Term[Node]) -> None:
        """Tablets that move for balance, or by hand, come to rest on a node that had none."""
        super().settle_tablets_on(n)
        require(self.tablet_work != Work.draining, "no node is drained")


@known_bug(
    "001-222",
    'design document 001: "The load balancer is invoked on transition of tablet stages"',
    breaks=TopologyControl.stages_change_while_tablets_move,
    budgets={**ONE_REQUEST, TopologyRecord.stages: 2},
)
class OneStageAtATime(TopologyControl):
    """A tablet came to its next stage when nothing older than the last change of any tablet was left to be fenced."""

    @action(by=COORDINATOR, spends=TopologyRecord.stages)
    def change_stages(self) -> None:
        """Tablets enter other stages, after the barrier of all that were before."""
        require(self.fence_version == self.version, "older requests are fenced")
        super().change_stages()


@known_bug(
    "001-223",
    'design document 001: "share the infrastructure for fencing"',
    breaks=TopologyControl.stages_are_fenced_while_tablets_move,
    budgets={**ONE_REQUEST, TopologyRecord.stages: 2},
)
class DrainedTabletsAreNotFenced(TopologyControl):
    """The barriers of tablets that drain from a node were left to the operation on that node, which waits for them."""

    @action(by=COORDINATOR, spends=TopologyRecord.stages)
    def fence_stages(self) -> None:
        """What began before the stages of tablets is fenced, if no node is drained."""
        super().fence_stages()
        require(self.tablet_work != Work.draining, "no node is drained")


@known_bug(
    "001-224",
    NO_WORK,
    breaks=TopologyControl.tablets_are_resized_where_there_is_no_work,
    budgets={TopologyRecord.requests: 1, TopologyRecord.faults: 1},
)
class NothingIsResizedWhileANodeIsDown(TopologyControl):
    """Tables were not split while a node was down, though no tablet moves then, and tablets grew."""

    @action(by=COORDINATOR, spends=TopologyRecord.requests)
    def start_resize_finalization(self) -> None:
        """Tablets are split or merged for good in a cluster that is whole."""
        super().start_resize_finalization()
        dead = some(self.takes_part(n) & self.down.has(n) for n in Node)
        require(~dead, "no node is down")


@known_bug(
    "001-225",
    'design document 001: "the entry is added to the map", and the topology stays as it is',
    breaks=TopologyControl.the_topology_can_be_locked_at_rest,
    budgets=TWO_REQUESTS,
)
class LocksWaitForRequests(TopologyControl):
    """The lock was given when no request waited; and a request that was made under it was to wait for the lock."""

    @action(by=OPERATOR, spends=TopologyRecord.requests)
    def lock(self) -> None:
        """Somebody locks the topology, which nobody wants to change."""
        super().lock()
        require(every(self.topology_request[n].is_none() for n in Node), "no request waits")


@known_bug(
    "001-226",
    'design document 001: "All this happens atomically form the perspective of group0 state machine"',
    breaks=Group0.a_change_is_refused_for_another_one,
)
class GuardsReadTheLog(Group0):
    """A change was prepared on what its member had in its log, committed or not: the next leader did not have it, and
    the caller was told that another change had come first, where there was none.
    """

    def _applied_state(self, m: Term[Member]) -> Number | int:
        return self._state(m, LONGEST)


@known_bug(
    "001-227",
    'design document 001: "share the infrastructure for fencing"',
    breaks=Fencing.fences_wait_for_no_request,
    budgets={**FENCE, Fencing.failures: 1, Fencing.bumps: 1},
)
class TheFenceWaitsForTheDrain(Fencing):
    """A node acknowledged the fence when it had drained as well: what did not drain held up each topology change."""

    @action(fair=WEAK)
    def acknowledge_fence(self, n: Term[FencedNode]) -> None:
        """A node has learned the fence, and holds no older version."""
        super().acknowledge_fence(n)
        require(~self._holds_older(n), "older versions are released")


@known_bug(
    "001-228",
    'design document 001: "When stage is advanced, it means that expected invariants … hold"',
    breaks=Fencing.stages_wait_for_their_barrier_alone,
    budgets=FENCE,
)
class StagesWaitForSilence(Fencing):
    """After its barrier a stage waited for a moment without requests: under clients there is none."""

    @action(by=COORDINATOR)
    def advance(self) -> None:
        """The barrier of the stage has passed, and nobody asks for anything."""
        require(every(self.request[n].replica.is_none() for n in FencedNode), "no request")
        super().advance()


@known_bug(
    "001-229",
    'design document 001: "When a request is issued to a node the entry is added to the map"',
    breaks=TopologyCoordinator.requests_are_committed_at_any_time,
    budgets={TopologyCoordinator.requests: 1, TopologyCoordinator.migrations: 1},
)
class RequestsWaitForTheTrack(TopologyCoordinator):
    """A request was committed when no tablet moved: the balancer, which sees none, moved the next."""

    @action(by=OPERATOR, spends=TopologyCoordinator.requests)
    def ask_to_leave(self) -> None:
        """A request is committed at rest."""
        require(self.transition_state == Transition.null, "the topology is at rest")
        super().ask_to_leave()


@known_bug(
    "001-230",
    INDEPENDENTLY,
    breaks=TopologyCoordinator.tablets_are_moved_beside_others,
    sizes={Tablet: 2},
    budgets={TopologyCoordinator.requests: 0, TopologyCoordinator.migrations: 2},
)
class TheApiWaitsForTheTrack(TopologyCoordinator):
    """The API moved a tablet when the track of the last one had been left."""

    @action(by=COORDINATORS_API, spends=TopologyCoordinator.migrations)
    def start_migration(self, t: Term[Tablet]) -> None:
        """A request of the API moves a tablet at rest."""
        require(self.transition_state == Transition.null, "the topology is at rest")
        super().start_migration(t)


@known_bug(
    "001-231",
    'design document 000: tasks are "aborted due to keyspace/view drop", in whatever state',
    breaks=TopologyCoordinator.tables_are_dropped_at_any_time,
    budgets={TopologyCoordinator.requests: 0},
)
class WhatIsDoneIsNotDropped(TopologyCoordinator):
    """A table was not dropped while a stage of its tablet was done and not yet left."""

    @action(by=COORDINATORS_API, spends=TopologyCoordinator.drops)
    def drop_table(self, t: Term[Tablet]) -> None:
        """The table is dropped between two stages."""
        require(~self.ready.has(t), "nothing is to be committed of it")
        super().drop_table(t)


@known_bug(
    "001-232",
    'design document 001: "streaming data from other replicas"',
    breaks=TopologyRebuild.dead_nodes_come_back_while_others_are_rebuilt,
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


BUGS = known_bugs_in(globals())

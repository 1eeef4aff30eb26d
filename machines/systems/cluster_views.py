"""A view is built on a tablet that moves, in a cluster that a node leaves: three machines as one system.

The topology state machine (001), the migration of a tablet (001) and view building (000) are driven
by coordinators that run on the raft leader and share one group0: a step that concerns several of
them is one commit. What each of them promises by itself is checked here, too; the promises of this
file are those that none of them could make alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.tablets.tablet_migration import Progress, TabletMigration
from stagewright.machines.scylladb.tablets.tablet_stages import Kind, Stage
from stagewright.machines.scylladb.topology.control.topology_record import TopologyRecord as Record
from stagewright.machines.scylladb.topology.topology_control import TopologyControl
from stagewright.machines.scylladb.topology.topology_states import (
    NodeState,
    Request,
    TransitionState,
    Work,
)
from stagewright.machines.scylladb.views import view_building as views
from stagewright.machines.scylladb.views.view_building import Task, ViewBuilding
from stagewright.machines.scylladb.views.view_coordinator import ViewStatus
from stagewright.machines.scylladb.views.view_task import Life, ViewTask
from stagewright.machines.systems.sound_migration import RESTRICTED
from stagewright.spec import (
    Actor,
    Bool,
    Fairness,
    FlagVar,
    Machine,
    NumberVar,
    Profile,
    Term,
    accepts,
    action,
    always_reachable,
    budget,
    checked_alone,
    choose,
    equivalent_drop,
    equivalent_loss,
    equivalent_replacement,
    equivalent_value,
    equivalent_without,
    equivalents,
    every,
    fault_budget,
    final,
    flag,
    history,
    independent,
    initially,
    invariant,
    lemma,
    never_happens,
    number,
    observed,
    only_when,
    part,
    profiles,
    require,
    restricted,
    scopes,
    some,
    sometimes,
    step_property,
    unexercised,
    vacuous,
)

LEADER = Actor("raft leader")
BALANCER = Actor("load balancer")
OPERATOR = Actor("operator")
DISK = Actor("disk")
WEAK = Fairness.WEAK


@dataclass(frozen=True)
class ClusterRelease(Profile):
    """How a version drains a leaving node of its tablets."""

    parallel_draining: (
        bool  # while its request is paused; earlier: in a transition state of its own
    )


SCYLLA_2025_4 = ClusterRelease("scylla-2025.4", parallel_draining=False)
SCYLLA_2026_2 = ClusterRelease("scylla-2026.2", parallel_draining=True)


SEEN_BY_VIEWS = {
    Stage.none: views.Stage.none,
    Stage.allow_write_both_read_old: views.Stage.allow_write_both_read_old,
    Stage.write_both_read_old: views.Stage.write_both_read_old,
    Stage.streaming: views.Stage.streaming,
    Stage.write_both_read_new: views.Stage.streaming,
    Stage.use_new: views.Stage.streaming,
    Stage.cleanup: views.Stage.cleanup,
    Stage.end_migration: views.Stage.end_migration,
    Stage.cleanup_target: views.Stage.cleanup_target,
    Stage.revert_migration: views.Stage.revert_migration,
}
"""The stages as view building distinguishes them."""


class ClusterViews(Machine):
    """One tablet with one view, on nodes one of which may be asked to leave."""

    release = profiles(SCYLLA_2025_4, SCYLLA_2026_2)
    leader_changes = fault_budget(
        1, doc="changes of the raft leader, with all coordinators that run on it"
    )
    requests = budget(1, doc="requests to leave")
    migrations = budget(0, doc="migrations for balance")
    failures = fault_budget(0, doc="barriers and actions of the tablet that fail")
    faults = fault_budget(0, doc="failed steps of the topology")
    drops = budget(0, doc="drops of the view")
    lost_calls = fault_budget(0, doc="calls whose request or answer is lost")
    restarts = fault_budget(0, doc="restarts of a worker")
    full_disks = fault_budget(0, doc="disks that are nearly full while a tablet comes")

    exercised_at = scopes(
        {},
        {Task: 3, failures: 1, drops: 1, leader_changes: 0},
        {requests: 0, migrations: 1, failures: 1, full_disks: 1},
        {faults: 1, leader_changes: 0},
        {Task: 3, migrations: 1, leader_changes: 0},
        {restarts: 1, lost_calls: 1, leader_changes: 0},
        {
            Task: 3,
            requests: 0,
            migrations: 2,
            failures: 2,
            full_disks: 2,
            leader_changes: 0,
        },
    )

    topology = part(
        TopologyControl,
        without=(
            # other requests, and other work on the topology
            TopologyControl.ask_to_join,
            TopologyControl.ask_to_replace,
            TopologyControl.ask_to_remove,
            TopologyControl.ask_to_rebuild,
            TopologyControl.ask_globally,
            TopologyControl.move_tablet,
            TopologyControl.create_table,
            TopologyControl.drop_table,
            TopologyControl.start_resize_finalization,
            TopologyControl.lock,
            TopologyControl.crash,
            # what follows from the tablet here
            TopologyControl.settle_tablets_on,
            TopologyControl.finish_draining_node,
            TopologyControl.move_last_tablet,
        ),
        restricts=(
            restricted(
                TopologyControl.tablets_are_balanced_where_there_is_no_work,
                because="a plan moves the one tablet here: the balancer needs a normal node without a replica of it",
            ),
        ),
    )
    tablet = part(
        TabletMigration,
        without=(
            TabletMigration.start_repair,
            TabletMigration.exclude,
            TabletMigration.give_up_before_streaming,
        ),
        restricts=RESTRICTED,
    )
    views = part(
        ViewBuilding,
        without=(
            ViewBuilding.add_replica,
            ViewBuilding.remove_replica,
            ViewBuilding.create_view_on_two,
            ViewBuilding.finish_with_copy,
            ViewBuilding.finish_without_replica,
        ),
        restricts=(
            restricted(
                ViewBuilding.tablets_are_moved_at_any_time,
                because="001: the topology moves tablets if it has no other work, and to nodes that stay",
            ),
            restricted(
                ViewBuilding.aborts_wait_for_no_batch,
                ViewBuilding.streaming_waits_for_no_batch,
                ViewBuilding.cleanup_waits_for_no_batch,
                ViewBuilding.replicas_are_left_whatever_is_executed,
                ViewBuilding.operations_end_whatever_is_executed,
                ViewBuilding.operations_without_tasks_end_whatever_is_executed,
                because="001: a stage is left when its barrier has passed and its action is done",
            ),
            restricted(
                ViewBuilding.operations_are_undone_at_any_time,
                because="001: a migration is undone when streaming has failed and need not succeed",
            ),
            restricted(
                ViewBuilding.targets_are_cleaned_up_whatever_is_executed,
                ViewBuilding.rollbacks_end_whatever_is_executed,
                ViewBuilding.rollbacks_without_tasks_end_whatever_is_executed,
                because="001: on the way back, too, a stage is left when its barrier has passed and its action is done",
                at={requests: 0, migrations: 1, failures: 1, full_disks: 1},
            ),
        ),
    )

    full: FlagVar = observed(flag(), of=DISK)  # that of the node that the tablet comes to, nearly
    undone: NumberVar = history(number(0, 2))  # migrations that were undone, two or more

    each_alone = checked_alone(topology, tablet, views)

    @initially
    def the_tablet_is_on_a_normal_node(self) -> Bool:
        """All nodes are normal; one of them holds the tablet."""
        normal = every(self.topology.node_state[n] == NodeState.normal for n in Node)
        return normal & (self.topology.tablet_hosts == self.views.replicas)

    # -- a migration begins ------------------------------------------------------------------------------

    @action(by=BALANCER, spends=migrations)
    def start_balancing(self, leaving: Term[Node], pending: Term[Node]) -> None:
        """The load balancer persists its plan: the topology enters the track and the tablet a
        transition, in one commit.
        """
        self.topology.start_balancing()
        self._move_tablet(leaving, pending)

    @action(by=BALANCER, fair=WEAK)
    def start_draining(self, leaving: Term[Node], pending: Term[Node]) -> None:
        """The request of a node to leave is paused, and its tablet is moved away."""
        only_when(self.release.parallel_draining)
        self.topology.start_draining(leaving)
        self._move_tablet(leaving, pending)

    @action(by=BALANCER, fair=WEAK)
    def drain(self, leaving: Term[Node], pending: Term[Node]) -> None:
        """The node is being decommissioned, and its tablet is moved away meanwhile."""
        only_when(not self.release.parallel_draining)
        draining = self.topology.transition_state == TransitionState.tablet_draining
        require(draining & ~self.topology.giving_up, "the topology drains tablets")
        require(self.topology.tablet_work == Work.draining, "a node has tablets")
        self._move_tablet(leaving, pending)

    def _move_tablet(self, leaving: Term[Node], pending: Term[Node]) -> None:
        self._is_to_stay(pending)
        self.tablet.start(Term.of(Kind.migration))
        self.views.migrate(leaving, pending)
        self.full = False

    def _is_to_stay(self, n: Term[Node]) -> None:
        """No tablet is moved to a node that is about to leave."""
        normal = self.topology.node_state[n] == NodeState.normal
        require(normal, "the pending node is normal")
        leaves = self.topology.topology_request[n] == Request.leave
        require(~leaves, "the pending node is to stay")

    # -- its stages --------------------------------------------------------------------------------------

    @action(by=LEADER, fair=WEAK)
    def write_both(self) -> None:
        """Writes go to both replicas; the tasks of the leaving one are aborted in the same commit."""
        self.tablet.write_both()
        self.views.write_both()

    @action(by=LEADER, fair=WEAK)
    def begin_streaming(self) -> None:
        """Every write reaches both replicas."""
        self.tablet.begin_streaming()
        self.views.begin_streaming()

    @action(fair=WEAK)
    def stream(self, n: Term[Node]) -> None:
        """The pending replica gets the row; a stream that failed may still bring it."""
        require(self.tablet.operation != Progress.none, "a stream was started")
        self.views.stream(n)

    @action(by=LEADER, fair=WEAK)
    def finish_operation(self) -> None:
        """The replica answers that its stream, or its cleanup, is done."""
        streams = self.tablet.stage == Stage.streaming
        complete = self.views.next <= self.views.base
        require(streams.implies(complete), "what is streamed has arrived")
        self.tablet.finish_operation()

    @action(by=LEADER, fair=WEAK)
    def begin_cleanup(self) -> None:
        """Nobody reads or writes the leaving replica any more: clean it up."""
        self.tablet.begin_cleanup()
        self.views.read_new()

    @action(by=LEADER, fair=WEAK)
    def end(self) -> None:
        """The leaving replica has removed its rows."""
        self.tablet.end()
        self.views.end()

    @action(by=LEADER, fair=WEAK)
    def finish(self) -> None:
        """The migration ends, without a task to adjust."""
        self.tablet.finish()
        self.views.finish()
        self._settle_where_it_went()

    @action(by=LEADER, fair=WEAK)
    def finish_with_task(self, t: Term[Task], new: Term[Task], pending: Term[Node]) -> None:
        """The same commit ends the migration, and replaces the old task by a new one on the new replica."""
        self.tablet.finish()
        self.views.finish_with_task(t, new, pending)
        self._settle_where_it_went()

    @action(by=LEADER, fair=WEAK)
    def settle_tablets(self) -> None:
        """The node that was to leave stays, because draining failed before its tablet began to move."""
        require(self.tablet.stage == Stage.none, "the tablet is at rest")
        self.topology.settle_tablets()

    def _settle_where_it_went(self) -> None:
        self.topology.tablet_hosts = self.views.next
        self.topology.tablet_work = None

    # -- the way back ------------------------------------------------------------------------------------

    @action(by=OPERATOR)
    def make_unwanted(self, leaving: Term[Node]) -> None:
        """The node that the tablet leaves is itself asked to leave: streaming that fails is not retried."""
        asked = self.topology.topology_request[leaving] == Request.leave
        require(asked & self.views.replicas.has(leaving), "the leaving node is asked to leave")
        self.tablet.make_unwanted()

    @action(by=DISK, spends=full_disks)
    def fill_up(self) -> None:
        """The disk of the node that the tablet comes to is nearly full: streaming that fails is not tried again, either."""
        self.tablet.make_unwanted()
        self.full = True

    @action(by=LEADER, fair=WEAK)
    def give_up_streaming(self) -> None:
        """Streaming failed and need not succeed: the migration is undone."""
        self.tablet.give_up_streaming()
        self.views.give_up()

    @action(by=LEADER, fair=WEAK)
    def revert(self) -> None:
        """The pending replica has removed its rows."""
        self.tablet.revert()
        self.views.revert()

    @action(by=LEADER, fair=WEAK)
    def finish_revert(self) -> None:
        """The tablet stays where it was; no task was aborted."""
        self.tablet.finish_revert()
        self.views.finish_revert()
        self._stay()

    @action(by=LEADER, fair=WEAK)
    def finish_revert_with_task(self, t: Term[Task], new: Term[Task], n: Term[Node]) -> None:
        """The same commit also rolls back the aborted task: it is created again, with a new id."""
        self.tablet.finish_revert()
        self.views.finish_revert_with_task(t, new, n)
        self._stay()

    def _stay(self) -> None:
        self.topology.tablet_work = None
        self.undone = choose(self.undone < 2, self.undone + 1, 2)

    # -- the leader --------------------------------------------------------------------------------------

    @action(by=LEADER, spends=leader_changes)
    def change_leader(self) -> None:
        """Another node becomes the raft leader: all coordinators start over from what group0 stores."""
        self.topology.fail_over()
        self.tablet.fail_over()
        self.views.change_leader()

    # -- promises ----------------------------------------------------------------------------------------

    @invariant
    def built_views_are_complete(self) -> Bool:
        """When the view is built, every row of the base table is in it, even across a migration and a leader change."""
        built = self.views.status == ViewStatus.success
        return built.implies(every(self.views.view.has(n) for n in self.views.replicas))

    @invariant
    def tablets_move_only_in_their_track(self) -> Bool:
        """001: "When the topology state machine is not in the tablet_migration track, it is
        guaranteed that there are no tablet transitions in the system"; before 2026.1 they also
        drain in tablet_draining.
        """
        tracks = [TransitionState.tablet_migration]
        if not self.release.parallel_draining:
            tracks += [TransitionState.tablet_draining, TransitionState.rollback_to_normal]
        in_track = self.topology.transition_state.any_of(*tracks)
        return (self.tablet.stage != Stage.none).implies(in_track)

    @step_property
    def rows_are_streamed_when_asked_for(self, after: Self, n: Term[Node]) -> Bool:
        """001, stage streaming: a replica gets rows only from a stream that the coordinator has started."""
        comes = ~self.views.base.has(n) & after.views.base.has(n)
        asked = (self.tablet.stage == Stage.streaming) & (self.tablet.operation != Progress.none)
        return comes.implies(asked)

    @step_property
    def migrations_are_unwanted_when_their_node_leaves(self, after: Self) -> Bool:
        """ScyllaDB's code: streaming that fails is given up only for "a pending `leave` request of
        the leaving host", or because of what the balancer sees of disks; otherwise "the action is
        retried for ever".
        """
        becomes = ~self.tablet.unwanted & after.tablet.unwanted
        asked = some(
            self.topology.topology_request[n] == Request.leave
            for n in self.views.replicas - self.views.next
        )
        return becomes.implies(asked | after.full)

    @invariant
    def one_stage_for_all(self) -> Bool:
        """The tablet's stage is one value in group0: tasks are aborted and adjusted in its commits."""
        return every(
            (self.tablet.stage == stage).implies(self.views.stage == seen)
            for stage, seen in SEEN_BY_VIEWS.items()
        )

    @invariant
    def the_topology_knows_where_tablets_are(self) -> Bool:
        """A request to leave is paused as long as the node holds a replica, so the topology has to
        know where replicas are.
        """
        settled = self.topology.tablet_hosts == self.views.replicas
        return (self.tablet.stage == Stage.none).implies(settled)

    @lemma
    def nodes_that_left_keep_nothing(self, n: Term[Node]) -> Bool:
        """001: in state left "the node left the cluster": it has no replica, and no view building
        task. A lemma: a node leaves outside of the track, when the topology knows where tablets are
        and tasks belong to replicas; and no migration to a node that has left can end.
        """
        task = some(self.views.is_stored(t) & (self.views.replica[t] == n) for t in Task)
        holds = self.views.replicas.has(n) | self.views.next.has(n) | self.views.base.has(n)
        left = self.topology.node_state[n] == NodeState.left
        return left.implies(~holds & ~task)

    @accepts(start_balancing)
    def tablets_are_balanced_while_views_are_built(
        self, leaving: Term[Node], pending: Term[Node]
    ) -> Bool:
        """000: the coordinator "needs to react to following tablet operations"; 001: "If there is
        no work for the state machine, tablet load balancer is invoked": a view that is being built
        is no such work.
        """
        asked = some(self.topology.topology_request[n].is_some() for n in Node)
        return ~asked & self._could_move(leaving, pending)

    @lemma
    @accepts(start_draining)
    def nodes_are_drained_while_views_are_built(
        self, leaving: Term[Node], pending: Term[Node]
    ) -> Bool:
        """The same for the tablet of a node that is asked to leave. A lemma: `topology-control`
        promises it, whatever happens to views.
        """
        only_when(self.release.parallel_draining)
        asked = self.topology.topology_request[leaving] == Request.leave
        stays = self.topology.topology_request[pending].is_none()
        return asked & stays & self._could_move(leaving, pending)

    @accepts(make_unwanted)
    def migrations_need_not_succeed_when_their_node_leaves(self, leaving: Term[Node]) -> Bool:
        """ScyllaDB's code: a stream is not retried for ever with "a pending `leave` request of the
        leaving host", whatever happens to views.
        """
        asked = self.topology.topology_request[leaving] == Request.leave
        leaves = self.views.replicas.has(leaving) & ~self.views.next.has(leaving)
        streams = (self.tablet.stage == Stage.streaming) & ~self.tablet.unwanted
        return asked & leaves & streams

    @accepts(settle_tablets)
    def the_track_is_left_when_draining_has_failed(self) -> Bool:
        """001: a node whose draining failed is normal again, and keeps its tablet: the topology
        leaves the track, and goes on with the next request, whatever becomes of the view.
        """
        only_when(not self.release.parallel_draining)
        stays = every(self.topology.node_state[n] == NodeState.normal for n in Node)
        in_track = self.topology.transition_state == TransitionState.tablet_migration
        rests = self.topology.tablet_work.is_some() & (self.tablet.stage == Stage.none)
        return stays & in_track & rests

    @accepts(write_both)
    def aborts_wait_for_the_barrier_alone(self) -> Bool:
        """000: "the tasks are aborted at the start of the operation": once its first barrier has
        passed, whatever workers execute.
        """
        ready = self.tablet.stage == Stage.allow_write_both_read_old
        return ready & (self.tablet.barrier == Progress.done)

    @accepts(begin_streaming)
    def streaming_waits_for_the_barrier_alone(self) -> Bool:
        """000, the same: what a worker still executes for an aborted task is wasted, and nobody waits for its end."""
        drained = self.tablet.barrier == Progress.done
        return (self.tablet.stage == Stage.write_both_read_old) & drained

    @accepts(revert)
    def targets_are_cleaned_up_whatever_is_executed(self) -> Bool:
        """000, the same on the way back: "In case of failure, new copies of aborted tasks are
        created during rollback".
        """
        drained = self.tablet.barrier == Progress.done
        cleaned = drained & (self.tablet.operation == Progress.done)
        return (self.tablet.stage == Stage.cleanup_target) & cleaned

    @accepts(end)
    def leaving_replicas_are_cleaned_up_whatever_is_executed(self) -> Bool:
        """000: what a worker still executes for an aborted task is wasted; 001, stage 6: once the
        replica is cleaned up, the stage is over.
        """
        return (self.tablet.stage == Stage.cleanup) & (self.tablet.operation == Progress.done)

    @accepts(finish_with_task)
    def migrations_end_whatever_is_executed(
        self, t: Term[Task], new: Term[Task], pending: Term[Node]
    ) -> Bool:
        """000: "new tasks are created at the end" of the operation, which waits for its last
        barrier, but not for calls of aborted tasks.
        """
        ends = (self.tablet.stage == Stage.end_migration) & (self.tablet.barrier == Progress.done)
        moves = self.views.next.has(pending) & ~self.views.replicas.has(pending)
        stored = self.views.is_stored(t) & (self.views.tasks[new].life == Life.absent)
        return ends & moves & stored

    @accepts(finish_revert_with_task)
    def rollbacks_end_whatever_is_executed(
        self, t: Term[Task], new: Term[Task], n: Term[Node]
    ) -> Bool:
        """000, the same: copies of aborted tasks "are created during rollback", once its barrier has passed."""
        drained = self.tablet.barrier == Progress.done
        ends = (self.tablet.stage == Stage.revert_migration) & drained
        aborted = (self.views.tasks[t].life == Life.aborted) & (self.views.replica[t] == n)
        return ends & aborted & (self.views.tasks[new].life == Life.absent)

    @independent(begin_cleanup, give_up_streaming, of=views)
    def stages_wait_for_no_task(self) -> None:
        """000, "Tablet operations": tasks "are aborted at the start of the operation and new tasks are created at the end": the
        stages between the two are left, or given up, whatever workers execute.
        """

    @independent(
        finish,
        finish_revert,
        finish_operation,
        stream,
        of=(ViewTask.work, ViewTask.call, ViewTask.late),
    )
    def operations_wait_for_no_worker(self) -> None:
        """000, the same: what a worker executes for a task that was aborted, or that is gone, is for nothing: rows are streamed and
        cleaned up, and operations end without tasks, though it has not noticed.
        """

    def _could_move(self, leaving: Term[Node], pending: Term[Node]) -> Bool:
        """Nodes and the tablet are at rest, and only the first of the two nodes has the tablet."""
        work = ~self.topology.cleanup_needed.is_empty() | self.topology.global_request.is_some()
        rests = self.topology.is_at_rest() & (self.tablet.stage == Stage.none) & ~work
        normal = self.topology.node_state[pending] == NodeState.normal
        moves = self.views.replicas.has(leaving) & ~self.views.replicas.has(pending)
        return rests & normal & moves

    @final
    def at_rest(self) -> Bool:
        """A cluster may stay as it is when its tablet is at rest, and so are topology and views."""
        return self.tablet.stage == Stage.none

    @lemma
    @sometimes(
        at={
            Task: 3,
            requests: 0,
            migrations: 2,
            failures: 2,
            full_disks: 2,
            leader_changes: 0,
        }
    )
    def views_are_built_after_migrations_were_undone(self) -> Bool:
        """000: "In case of failure, new copies of aborted tasks are created during rollback": copies of copies, too, with which
        the view is built. A lemma: rollbacks end with a task, whichever is the second, and views with tasks are built.
        """
        return (self.undone == 2) & (self.views.status == ViewStatus.success)

    @always_reachable
    def the_view_can_be_built(self) -> Bool:
        """Whatever has happened to tablet and nodes, the view can still be built, or was dropped."""
        return self.views.status.any_of(ViewStatus.success, ViewStatus.dropped)

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_without(
            TopologyControl.fail_over,
            TabletMigration.fail_over,
            ViewBuilding.change_leader,
            because="what a new leader would know of its predecessor's work is still true",
        ),
        equivalent_loss(
            _stay, undone, because="how many were undone is counted for a witness alone"
        ),
        equivalent_replacement(
            _stay,
            "undone becomes",
            because="how many were undone is counted for a witness alone",
        ),
        equivalent_loss(
            _settle_where_it_went,
            Record.tablet_work,
            because="a topology that does not know yet that its tablet is at rest settles it in a step of its own",
        ),
        equivalent_loss(
            _move_tablet, full, because="then more is excused by a disk that was full before"
        ),
        equivalent_replacement(
            _move_tablet,
            "full becomes",
            because="then more is excused by a disk that was full before",
        ),
        equivalent_value(
            (
                NodeState.absent,
                NodeState.none,
                NodeState.bootstrapping,
                NodeState.replacing,
                NodeState.rebuilding,
                NodeState.removing,
            ),
            lambda state: state.in_transition,
            because="no node is in this state here: topology-control has joins, removals and rebuilds",
        ),
        equivalent_drop(
            start_draining,
            "the pending node is normal",
            because="one of two nodes asks to leave, and the other one is normal",
        ),
        equivalent_drop(
            _is_to_stay,
            "the pending node is to stay",
            because="a tablet that moves to a node that is to leave is moved away before it does",
        ),
        equivalent_replacement(
            start_balancing,
            "leaving for pending",
            because="a tablet that moves to a node that is to leave is moved away again, and what it holds is drained",
        ),
    )

    beyond_the_default_scope = unexercised(
        never_happens(
            settle_tablets,
            because="draining starts with the first tablet and ends with the last one, even if it fails",
        ),
        vacuous(
            ViewTask.completed_tasks_are_not_executed_again,
            ViewTask.work_goes_on_for_whoever_asks,
            ViewBuilding.workers_forget_their_own_tasks_alone,
            because="a worker forgets what it has done only where there are `restarts`",
        ),
        never_happens(
            TopologyControl.accept_join,
            TopologyControl.accept_replace,
            TopologyControl.fail_to_accept,
            TopologyControl.join_group0,
            TopologyControl.insert_tokens,
            TopologyControl.commit_cdc_generation,
            TopologyControl.take_tokens,
            TopologyControl.finish_bootstrap,
            TopologyControl.finish_replace,
            TopologyControl.remove_replaced,
            TopologyControl.roll_back_join,
            TopologyControl.prepare_generation,
            TopologyControl.commit_generation,
            TopologyControl.publish_generation,
            because="no node asks to join or to replace another one here: topology-control has that",
        ),
        vacuous(
            TopologyControl.joins_begin,
            TopologyControl.replacements_begin,
            TopologyControl.a_dead_node_is_replaced,
            TopologyControl.joined_means_normal,
            TopologyControl.refused_means_left,
            TopologyControl.replaced_nodes_are_left,
            TopologyControl.tablets_are_on_nodes_that_serve,
            TopologyControl.left_nodes_hold_no_tablets,
            TopologyControl.tablets_of_replaced_nodes_are_rebuilt,
            TopologyControl.a_node_bootstraps_with_a_committed_generation,
            TopologyControl.generations_are_published_at_any_time,
            TopologyControl.what_is_committed_is_to_be_published,
            TopologyControl.what_is_committed_stays_until_it_is_published,
            TopologyControl.generations_are_published,
            because="no node asks to join or to replace another one here: topology-control has that",
        ),
        never_happens(
            TopologyControl.restart,
            TopologyControl.fail_barrier,
            TopologyControl.start_remove,
            TopologyControl.stream_with_dead_node,
            TopologyControl.start_rebuild,
            TopologyControl.finish_rebuild,
            TopologyControl.fail_to_rebuild,
            because="no node is dead here: topology-control has crashes, removals and rebuilds",
        ),
        vacuous(
            TopologyControl.removals_begin,
            TopologyControl.rebuilds_begin,
            TopologyControl.dead_nodes_come_back,
            TopologyControl.a_node_that_is_removed_is_dead,
            TopologyControl.a_rebuild_is_done_when_it_has_streamed,
            TopologyControl.rebuilds_fail_where_nodes_are_missing,
            TopologyControl.no_range_comes_back_to_a_node_with_old_rows,
            because="no node is dead here: topology-control has crashes, removals and rebuilds",
        ),
        never_happens(
            TopologyControl.cancel,
            because="the only request is one to leave, and the other node serves: it is not refused",
        ),
        vacuous(
            TopologyControl.requests_are_refused_at_rest,
            TopologyControl.requests_are_cancelled_when_none_can_proceed,
            because="the only request is one to leave, and the other node serves: it is not refused",
        ),
        never_happens(
            TopologyControl.finish_resize,
            TopologyControl.start_truncating,
            TopologyControl.start_snapshots,
            TopologyControl.clear_request_session,
            TopologyControl.finish_global_request,
            TopologyControl.finish_cleanup,
            TopologyControl.unlock,
            because="nobody asks for work on the whole cluster here: topology-control has that",
        ),
        vacuous(
            TopologyControl.requests_on_tables_have_states_of_their_own,
            TopologyControl.requests_on_tables_open_a_session,
            TopologyControl.global_requests_are_done,
            TopologyControl.global_requests_are_not_overwritten,
            TopologyControl.global_requests_come_after_those_of_nodes,
            TopologyControl.global_requests_end,
            because="nobody asks for work on the whole cluster here: topology-control has that",
        ),
        never_happens(
            TopologyControl.wait_ring_delay,
            TopologyControl.fence_before_cleanup,
            TopologyControl.clean_up,
            TopologyControl.give_up,
            TopologyControl.roll_back_leave,
            TopologyControl.complete_rollback,
            because="an operation on a node is undone only where there are `faults`",
        ),
        vacuous(
            TopologyControl.only_operations_on_nodes_are_given_up,
            TopologyControl.what_is_given_up_is_undone,
            TopologyControl.operations_are_given_up_by_who_saw_them_fail,
            TopologyControl.rows_of_lost_ranges_are_remembered,
            TopologyControl.rows_are_removed_when_nothing_can_write_them,
            because="an operation on a node is undone only where there are `faults`",
        ),
        never_happens(
            TopologyControl.retry_barrier,
            because="only an operation on a node needs a barrier here, and it is undone instead",
        ),
        never_happens(
            TopologyControl.give_up_with_tablets,
            because="since 2026.1 tablets drain while the request of their node is paused",
        ),
        vacuous(
            TopologyControl.tablets_are_drained_where_a_node_leaves,
            TopologyControl.paused_requests_do_not_begin,
            because="since 2026.1 tablets drain while the request of their node is paused",
        ),
        never_happens(
            TabletMigration.begin_rebuild_repair,
            TabletMigration.stream_after_repair,
            TabletMigration.end_repair,
            TabletMigration.finish_repair,
            because="the tablet is neither repaired nor rebuilt here: tablet-migration has that",
        ),
        vacuous(
            TabletMigration.only_rebuild_v2_repairs,
            TabletMigration.a_failed_repair_is_drained_after_it_failed,
            because="the tablet is neither repaired nor rebuilt here: tablet-migration has that",
        ),
        never_happens(
            TabletMigration.fall_back,
            TabletMigration.give_up_after_fall_back,
            because="it takes more excluded replicas than this tablet has: tablet-migration has that",
        ),
        never_happens(
            TabletMigration.retry_barrier,
            TabletMigration.retry_operation,
            because="a migration is undone only where there are `failures`",
        ),
        never_happens(
            fill_up,
            give_up_streaming,
            revert,
            finish_revert,
            finish_revert_with_task,
            because="a migration is undone only where there are `failures`",
        ),
        vacuous(
            rollbacks_end_whatever_is_executed,
            targets_are_cleaned_up_whatever_is_executed,
            TabletMigration.what_failed_is_tried_again,
            TabletMigration.barriers_that_failed_are_tried_again,
            TabletMigration.the_target_is_cleaned_up_after_a_barrier,
            TabletMigration.a_transition_is_undone_only_for_a_reason,
            TabletMigration.what_is_undone_is_not_taken_up_again,
            because="a migration is undone only where there are `failures`",
        ),
        vacuous(
            TabletMigration.nobody_waits_for_a_leaving_replica_that_is_gone,
            TabletMigration.nobody_waits_for_a_pending_replica_that_is_gone,
            because="no replica's node is gone for good here: tablet has that",
        ),
        never_happens(
            ViewBuilding.start_late,
            because="a request arrives late only where there are `lost_calls`",
        ),
        vacuous(
            ViewBuilding.dropped_views_have_no_tasks,
            because="the view is dropped only where there are `drops`",
        ),
    )

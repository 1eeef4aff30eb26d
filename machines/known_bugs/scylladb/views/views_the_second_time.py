"""Mistakes that show the second time only, or where a fault meets a second replica, shard, view or a drop."""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.views.view_building import Task, ViewBuilding
from stagewright.machines.scylladb.views.view_coordinator import (
    CLIENT,
    WEAK,
    Base,
    Shard,
    Tablet,
    View,
    ViewCoordinator,
    ViewStatus,
)
from stagewright.machines.scylladb.views.view_range import Token, ViewRange
from stagewright.machines.scylladb.views.view_staging import Standing, ViewStaging
from stagewright.machines.scylladb.views.view_task import (
    COORDINATOR,
    TOPOLOGY,
    WORKER,
    Life,
    ViewTask,
    Work,
)
from stagewright.machines.scylladb.views.view_worker import ViewWorker
from stagewright.machines.systems.cluster_views import LEADER, ClusterViews
from stagewright.machines.systems.tablet_views import Tablet as Half, TabletViews
from stagewright.spec import (
    FlagVar,
    NumberVar,
    Term,
    action,
    choose,
    every,
    flag,
    number,
    require,
    some,
)
from stagewright.spec.known_bugs import known_bug, known_bugs_in

LOCALLY = "design document 000: each view building worker keeps track of finished tasks locally"
EVENTUALLY = "design document 000: the worker will eventually reply that the task was finished"
TWO_REPLICAS = {
    ViewBuilding.replica_changes: 1,
    ViewBuilding.migrations: 0,
    ViewBuilding.failures: 0,
    ViewTask.lost_calls: 0,
}


# -- a restart or another leader, and two shards or replicas -----------------------------------------


@known_bug(
    "000-230",
    "design document 000: it can execute only one batch per shard",
    breaks=ViewCoordinator.work_goes_on_for_whoever_asks,
    sizes={Base: 1, View: 1},
    budgets={
        ViewCoordinator.restarts: 1,
        ViewCoordinator.drops: 0,
        ViewCoordinator.leader_changes: 0,
    },
)
class OneRestartEndsAllBatches(ViewCoordinator):
    """A call that failed, as the node of its shard had restarted, ended the coordinator's round: the batches of all shards were
    begun anew.
    """

    @action(by=WORKER, spends=ViewCoordinator.restarts)
    def restart(self, s: Term[Shard]) -> None:
        """A shard's node restarts, and all shards lose their batches."""
        require(self.batch[s].tablet.is_some(), "the shard has a batch")
        self.restarted.add(s)
        for other in Shard:
            self._end_batch(other)


@known_bug(
    "000-231",
    "design document 000, RPC: the handler attaches to the tasks and waits for the result",
    breaks="tasks.work_goes_on_for_whoever_asks",
    budgets={**TWO_REPLICAS, ViewTask.restarts: 0},
)
class NewLeadersTakeOneOfTwoBatches(ViewBuilding):
    """A coordinator that took over found the batches of two replicas, where its list had one for a tablet: it gave both up."""

    @action(by=COORDINATOR, spends=ViewTask.leader_changes)
    def change_leader(self) -> None:
        """The raft leader changes: what both replicas execute is given up."""
        super().change_leader()
        both = some(
            (t != u)
            & (self.tasks[t].work == Work.executing)
            & (self.tasks[u].work == Work.executing)
            for t in Task
            for u in Task
        )
        for t in Task:
            given_up = both & (self.tasks[t].work == Work.executing)
            self.tasks[t].work = choose(given_up, Work.none, self.tasks[t].work)


@known_bug(
    "000-232",
    LOCALLY,
    breaks=ViewBuilding.workers_forget_their_own_tasks_alone,
    budgets={**TWO_REPLICAS, ViewTask.leader_changes: 0},
)
class OneRestartIsTakenForAll(ViewBuilding):
    """The list of completed tasks was of the tablet: where the node of one replica restarted, the other one began anew, too."""

    @action(by=WORKER, spends=ViewTask.restarts)
    def restart(self, n: Term[Node]) -> None:
        """A node restarts, and what the tablet's workers know is lost."""
        known = some((self.replica[t] == n) & (self.tasks[t].work != Work.none) for t in Task)
        require(known, "the worker knows of a task")
        for t in Task:
            task = self.tasks[t]
            task.forgotten = task.forgotten | (task.work != Work.none)
            task.work = Work.none


@known_bug(
    "000-233",
    "design document 000: it can execute only one batch per shard",
    breaks=ViewCoordinator.shards_work_at_once,
    sizes={Base: 1, View: 1},
    budgets={
        ViewCoordinator.restarts: 1,
        ViewCoordinator.drops: 0,
        ViewCoordinator.leader_changes: 0,
        ViewCoordinator.staging_sstables: 0,
    },
)
class OneShardAtATimeAfterARestart(ViewCoordinator):
    """Once a node had restarted the coordinator called one shard after the other."""

    careful: FlagVar = flag()

    @action(by=WORKER, spends=ViewCoordinator.restarts)
    def restart(self, s: Term[Shard]) -> None:
        """The shard's node restarts, which the coordinator remembers."""
        super().restart(s)
        self.careful = True

    def _may_send(self, s: Term[Shard], t: Term[Tablet], b: Term[Base]) -> None:
        idle = every(self.batch[other].tablet.is_none() for other in Shard)
        require(~self.careful | idle, "no other shard has a batch")
        super()._may_send(s, t, b)


# -- the second time ---------------------------------------------------------------------------------


@known_bug(
    "000-234",
    "design document 000: a keyspace/view was dropped",
    breaks=(ViewCoordinator.views_are_built, "no deadlock"),
    sizes={Base: 1, View: 3, Tablet: 1, Shard: 1},
    budgets={
        ViewCoordinator.drops: 2,
        ViewCoordinator.staging_sstables: 0,
        ViewCoordinator.leader_changes: 0,
    },
)
class TheSecondDropEndsTheLoop(ViewCoordinator):
    """The coordinator's loop was started anew after an error once: the second view that was dropped under it ended it."""

    errors: NumberVar = number(0, 2)

    @action(by=CLIENT, spends=ViewCoordinator.drops)
    def drop_view(self, v: Term[View]) -> None:
        """A view is dropped, which is an error to the loop."""
        super().drop_view(v)
        self.errors = choose(self.errors < 2, self.errors + 1, self.errors)

    @action(by=COORDINATOR, fair=WEAK)
    def choose_base(self, b: Term[Base]) -> None:
        """The loop runs: it chooses a base table."""
        require(self.errors < 2, "the loop runs")
        super().choose_base(b)


@known_bug(
    "000-235",
    "design document 000, In case of failure, new copies of aborted tasks are created during rollback",
    breaks=(
        ViewStaging.tasks_are_finished_or_deleted,
        ViewStaging.registered_sstables_have_a_task,
    ),
    budgets={ViewStaging.moves: 3, ViewStaging.restarts: 0},
)
class TasksAreRolledBackOnce(ViewStaging):
    """A tablet whose migration had failed before got no copy of its tasks when another one failed."""

    rolled_back: FlagVar = flag()

    @ViewStaging.standing.step(Standing.leaving, Standing.replica, by=TOPOLOGY)
    def give_up_leaving(self) -> None:
        """The first time the migration is undone, tasks with new ids take the places of the aborted ones."""
        again = self.aborted & ~self.rolled_back
        self.waiting = choose(again, self._one_more(), self.waiting)
        self.aborted = False
        self.rolled_back = True


@known_bug(
    "000-236",
    "design document 000: a staging sstable was registered to view_building_worker",
    breaks=(
        ViewStaging.sstables_are_registered_at_any_time,
        ViewStaging.staging_sstables_are_processed,
    ),
    budgets={ViewStaging.moves: 3, ViewStaging.restarts: 0},
)
class TabletsThatComeBackAreNotRegistered(ViewStaging):
    """The registrator kept in mind which tablets had left, and passed over what was staged of one that came back."""

    left: FlagVar = flag()

    @ViewStaging.standing.step(Standing.leaving, Standing.absent, by=TOPOLOGY, fair=WEAK)
    def end_leaving(self) -> None:
        """The replica is cleaned up, and its tablet has left."""
        self._clean_up()
        self.aborted = False
        self.waiting = 0
        self.left = True

    @action(by=WORKER, fair=WEAK)
    def begin_registering(self) -> None:
        """The registrator takes what there is of tablets that have not left."""
        require(~self.left, "the tablet has not left")
        super().begin_registering()


@known_bug(
    "000-237",
    "design document 000: node-local view builder",
    breaks=(ViewRange.built_views_are_complete, ViewRange.progress_is_true),
    budgets={ViewRange.reshardings: 2},
)
class TheSecondReshardingKeepsItsFirstToken(ViewRange):
    """Where a scan began was written when it began anew for the first time: after another change of the shards the scan was
    through when it came to the old token.
    """

    resharded: FlagVar = flag()

    @action(by=WORKER, spends=ViewRange.reshardings)
    def reshard(self, t: Term[Token]) -> None:
        """The shard's scan begins anew, at its own token."""
        self.first = choose(self.resharded, self.first, self._number(t))
        self.resharded = True
        for progress in (self.scan, self.saved):
            progress.next = self._number(t)
            progress.wrapped = False


@known_bug(
    "000-238",
    EVENTUALLY,
    breaks=(ViewWorker.views_are_built, "no deadlock"),
    budgets={ViewWorker.leader_changes: 2, ViewWorker.restarts: 0},
)
class TheThirdLeaderAsksForDroppedViews(ViewWorker):
    """The second coordinator that took over after a drop had the ids of all views, and gave up as one of them was gone."""

    changes: NumberVar = number(0, 2)

    @action(by=COORDINATOR, spends=ViewWorker.leader_changes)
    def change_leader(self) -> None:
        """The raft leader changes, for the first or the second time."""
        super().change_leader()
        self.changes = choose(self.changes < 2, self.changes + 1, self.changes)

    @action(by=COORDINATOR, fair=WEAK)
    def ask(self) -> None:
        """The coordinator calls the worker, if every id is there."""
        require((self.changes < 2) | self.dropped.is_empty(), "every id is there")
        super().ask()


# -- systems -----------------------------------------------------------------------------------------


@known_bug(
    "000-239",
    "design document 000: the view building coordinator needs to react to following tablet operations",
    breaks=TabletViews.migrations_end,
    budgets={TabletViews.migrations: 2, TabletViews.splits: 1, TabletViews.repairs: 0},
)
class NewLeadersTakeUpOneMigration(TabletViews):
    """A new leader took up one of the two migrations that it found: the other tablet stayed where it was, its task aborted."""

    left_out: FlagVar = flag()

    @action(by=TOPOLOGY, spends=TabletViews.leader_changes)
    def change_leader(self) -> None:
        """Another node becomes the raft leader, and finds one tablet or both in transition."""
        super().change_leader()
        self.left_out = every(~self._is_at_rest(Term.of(t)) for t in Half)

    @action(by=TOPOLOGY, fair=WEAK)
    def write_both(self, t: Term[Half]) -> None:
        """A migration that the leader knows goes on."""
        require(~self.left_out | (t == Half.t0), "the leader knows of it")
        super().write_both(t)


@known_bug(
    "000-241",
    "design document 000: the tasks are aborted at the start of the operation",
    breaks=TabletViews.aborts_wait_for_the_barrier_alone,
    budgets={TabletViews.migrations: 2, TabletViews.splits: 1, TabletViews.repairs: 0},
)
class NewLeadersTakeOneMigrationAfterTheOther(TabletViews):
    """A leader that took over went on with one migration at a time: the other tablet waited until it was over."""

    taken_over: FlagVar = flag()

    @action(by=TOPOLOGY, spends=TabletViews.leader_changes)
    def change_leader(self) -> None:
        """Another node becomes the raft leader."""
        super().change_leader()
        self.taken_over = True

    @action(by=TOPOLOGY, fair=WEAK)
    def write_both(self, t: Term[Half]) -> None:
        """The second half's migration goes first."""
        first = (t == Half.t1) | self._is_at_rest(Term.of(Half.t1))
        require(~self.taken_over | first, "no other migration is under way")
        super().write_both(t)


@known_bug(
    "000-240",
    "design document 000: a keyspace/view was dropped",
    breaks="topology.every_request_ends",
    sizes={Task: 3},
    budgets={ClusterViews.failures: 1, ClusterViews.drops: 1, ClusterViews.leader_changes: 0},
)
class DropsKeepTheTopologyBusy(ClusterViews):
    """A migration that was undone ended with the copy of its task: where the view had been dropped on the way back, its node
    never left.
    """

    @action(by=LEADER, fair=WEAK)
    def finish_revert(self) -> None:
        """The tablet stays where it was; the topology has work until a task is rolled back, if there was a view."""
        self.tablet.finish_revert()
        self.views.finish_revert()
        dropped = self.views.status == ViewStatus.dropped
        work = self.topology.tablet_work
        self.topology.tablet_work = choose(dropped, work, None)


@known_bug(
    "000-242",
    'design document 000: "Each task is associated with particular tablet replica"',
    breaks=ViewBuilding.one_task_for_a_replica,
    budgets={ViewBuilding.migrations: 0, ViewBuilding.failures: 0, ViewTask.lost_calls: 0},
)
class TasksAreCreatedAgain(ViewBuilding):
    """CREATE that is sent again, as its answer was lost, creates a second task of a replica that waits for its first."""

    @action(by=COORDINATOR)
    def create_again(self, t: Term[Task], u: Term[Task], n: Term[Node]) -> None:
        """Another task of a replica whose task is not sent yet."""
        waits = self.tasks[t].life == Life.normal
        require((t != u) & (self.replica[t] == n) & waits, "the replica has a task")
        self._create(u, n)


BUGS = known_bugs_in(globals())

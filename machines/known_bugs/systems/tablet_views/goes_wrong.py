"""Mistakes put back into `TabletViews`: what goes wrong."""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.tablets.tablet_stages import Stage
from stagewright.machines.scylladb.views.view_coordinator import ViewStatus
from stagewright.machines.scylladb.views.view_destinations import Destination
from stagewright.machines.scylladb.views.view_resize import Type
from stagewright.machines.scylladb.views.view_task import COORDINATOR, TOPOLOGY, WORKER, Life
from stagewright.machines.systems.tablet_views import WEAK, Row, Tablet, TabletViews
from stagewright.spec import (
    Bool,
    BudgetName,
    SetVar,
    Term,
    action,
    choose,
    every,
    require,
    set_of,
    some,
)
from stagewright.spec.known_bugs import known_bug, known_bugs_in

STORED = "design document 000: group0 state stores only tasks that haven't been completed yet"
ONE_MOVE: dict[BudgetName, int | None] = {
    TabletViews.splits: 0,
    TabletViews.repairs: 0,
    TabletViews.leader_changes: 0,
}
OPERATIONS = "design document 000, Tablet operations"
REMEMBERED = "design document 000: each view building worker keeps track of finished tasks locally"
EACH_TASK = (
    "design document 000, Tablet operations: a new task is created for each that was aborted"
)
REGISTERED = (
    "design document 000: process_staging tasks are created when a staging sstable was registered"
)
BUILT = "design document 000, Schema: once the view is built, an entry is created"
ATTACHED = "design document 000, RPC: the handler attaches to the tasks and waits for the result"
OBSERVED = (
    "design document 000: the worker observes the group0 state to notice when tasks are aborted"
)


@known_bug(
    "000-11",
    "design document 000, Tablet operations",
    breaks=(TabletViews.built_views_are_complete, TabletViews.staged_rows_have_a_task),
    budgets={TabletViews.migrations: 0, TabletViews.leader_changes: 0},
)
class StagingDoesNotSplit(TabletViews):
    """When a tablet splits only its build_range tasks become two: a staging sstable of the upper half has no task
    any more, and the view is built without its row.
    """

    def _task_of_second_half(self, k: Type) -> Term[Life]:
        if k is Type.process_staging:
            return Term.of(Life.absent)
        return super()._task_of_second_half(k)


@known_bug(
    "000-12",
    "design document 000, Staging sstables",
    breaks=(TabletViews.built_views_are_complete, TabletViews.missing_rows_have_a_task),
    budgets={TabletViews.splits: 0, TabletViews.leader_changes: 0},
)
class StagedRowsMoveToTheBaseDirectory(TabletViews):
    """A repaired row waits in staging, its tablet migrates, and its copy goes to the base directory: the task that
    comes with the tablet finds nothing, and the view, whose range was built before, is built without the row.
    """

    def _stays_staged(self) -> Bool:
        return super()._stays_staged() & (self.status == ViewStatus.none)


@known_bug(
    "000-13",
    "design document 000, Tablet operations",
    breaks=TabletViews.built_views_are_complete,
    budgets={TabletViews.repairs: 2, TabletViews.splits: 0, TabletViews.leader_changes: 0},
)
class NewTasksHaveTheOldIds(TabletViews):
    """A task that takes the place of an aborted one keeps its id: what the old replica's worker has finished counts for
    the new replica, where another sstable has been staged meanwhile.
    """

    def _is_batch(self, n: Term[Node], t: Term[Tablet], k: Term[Type]) -> Bool:
        return (self.batch[n].tablet == t) & (self.batch[n].type == k)


@known_bug(
    "000-26",
    OPERATIONS,
    breaks=TabletViews.aborted_tasks_are_of_tablets_in_transition,
    budgets=ONE_MOVE,
)
class NewTasksComeLater(TabletViews):
    """The migration ended with a commit of its own, and its tasks stayed aborted until a later one."""

    @action(by=TOPOLOGY, fair=WEAK)
    def finish(self, t: Term[Tablet], new: Term[Node]) -> None:
        """The tablet is where it was to go."""
        self.tablets[t].finish()
        require(self.pending[t] == new, "the pending node")
        self.host[t] = new
        self.pending[t] = None
        self._replace_batches(t)

    @action(by=COORDINATOR, fair=WEAK)
    def create_new_task(self, t: Term[Tablet], k: Term[Type]) -> None:
        """The coordinator finds an aborted task of a tablet at rest."""
        aborted = self.tasks[t][k] == Life.aborted
        require(aborted & self._is_at_rest(t), "an aborted task is left")
        self.tasks[t][k] = Life.normal


@known_bug(
    "000-27",
    'design document 000: not "prematurely, before the writes are directed to the new replica"',
    breaks=TabletViews.batches_begin_at_rest,
    budgets=ONE_MOVE,
)
class BatchesBeginUntilWritesMove(TabletViews):
    """A tablet was taken to be in transition when its tasks were aborted, one stage after the transition began."""

    def _may_call(self, n: Term[Node], t: Term[Tablet], k: Term[Type]) -> None:
        early = (Stage.none, Stage.allow_write_both_read_old)
        require(self.tasks[t][k] == Life.normal, "the task is alive")
        require(self.host[t] == n, "the tablet is on the node")
        require(self.tablets[t].stage.any_of(*early), "no task of the tablet is aborted")
        require(~self.called.has(n), "no call to the node is under way")
        self.called.add(n)


@known_bug(
    "000-28",
    'design document 000: "we need the task information to create new adjusted tasks"',
    breaks=TabletViews.missing_rows_have_a_task,
    budgets=ONE_MOVE,
)
class TheCoordinatorKeepsTasksInMind(TabletViews):
    """Tasks of a tablet that moves were deleted, and the coordinator remembered that they are to be made again."""

    owed = set_of(Tablet)

    @action(by=TOPOLOGY, fair=WEAK)
    def write_both(self, t: Term[Tablet]) -> None:
        """The replicas are ready for writes; the task of the leaving one is deleted."""
        kind = Type.build_range
        self.tablets[t].write_both()
        self.owed.put(t, self.tasks[t][kind] != Life.absent)
        self.tasks[t][kind] = Life.absent
        self._replace_batches(t)

    @action(by=TOPOLOGY, fair=WEAK)
    def finish(self, t: Term[Tablet], new: Term[Node]) -> None:
        """The migration ends, and the task that is owed is created."""
        self.tablets[t].finish()
        require(self.pending[t] == new, "the pending node")
        self.host[t] = new
        self.pending[t] = None
        owed = self.owed.has(t) | (self.tasks[t][Type.build_range] != Life.absent)
        self.tasks[t][Type.build_range] = choose(owed, Life.normal, Term.of(Life.absent))
        self.owed.discard(t)
        self._replace_batches(t)

    @action(by=COORDINATOR, fair=WEAK)
    def mark_view_built(self) -> None:
        """No task is left, and no tablet is on its way."""
        super().mark_view_built()
        require(every(self._is_at_rest(Term.of(t)) for t in Tablet), "no tablet is in transition")


@known_bug(
    "000-61",
    "design document 001: a tablet is in the storage layer of its replicas only",
    breaks=TabletViews.tablets_are_stored_by_their_replicas,
    budgets={TabletViews.splits: 0, TabletViews.leader_changes: 0},
)
class StagingFilesStayBehind(TabletViews):
    """Cleanup removes the base directory of the replica that a tablet has left, and not what waits in staging."""

    @action(by=TOPOLOGY, fair=WEAK)
    def finish_operation(self, t: Term[Tablet], old: Term[Node]) -> None:
        """What is streamed has arrived; or the base directory of the leaving replica is empty."""
        require(self.host[t] == old, "the leaving node")
        streams = self.tablets[t].stage == Stage.streaming
        self.tablets[t].finish_operation()
        for n in Node:
            comes, goes = streams & (self.pending[t] == n), ~streams & (n == old)
            for r in Row:
                own = self._owner(Term.of(r)) == t
                base, staged = own & self.base[old].has(r), own & self.staged[old].has(r)
                self.base[n].put(r, (self.base[n].has(r) & ~(goes & own)) | (comes & base))
                self.staged[n].put(r, self.staged[n].has(r) | (comes & staged))


@known_bug(
    "000-62",
    "design document 000: this cannot be revoked",
    breaks=TabletViews.aborts_are_not_revoked,
    budgets={TabletViews.splits: 0, TabletViews.repairs: 0},
)
class NewLeadersReviveTasks(TabletViews):
    """A view building coordinator that takes over takes aborted tasks for tasks that nobody has done."""

    @action(by=TOPOLOGY, spends=TabletViews.leader_changes)
    def change_leader(self) -> None:
        """Another node becomes the raft leader, and begins with all tasks."""
        super().change_leader()
        for t in Tablet:
            for k in Type:
                aborted = self.tasks[t][k] == Life.aborted
                self.tasks[t][k] = choose(aborted, Life.normal, self.tasks[t][k])


@known_bug(
    "000-69",
    "design document 000: the worker can execute only one batch per shard",
    breaks=TabletViews.one_batch_on_a_shard,
    budgets={TabletViews.migrations: 0, TabletViews.leader_changes: 1, TabletViews.restarts: 0},
)
class AnotherBatchTakesThePlace(TabletViews):
    """A worker that was called for another task by a new coordinator left the batch that it had begun."""

    @action(by=COORDINATOR, fair=WEAK)
    def send(self, n: Term[Node], t: Term[Tablet], k: Term[Type]) -> None:
        """The coordinator has a task executed where its tablet is."""
        self._may_call(n, t, k)
        built = self.tasks[t][Type.build_range] == Life.absent
        require((k == Type.build_range) | built, "ranges are built first")
        self.batch[n].tablet = t
        self.batch[n].type = k
        self.batch[n].done = False
        self.batch[n].stale = False
        for r in Row:
            self.batch[n].rows.put(r, self._owner(Term.of(r)) == t)


@known_bug(
    "000-91",
    EACH_TASK,
    breaks=TabletViews.ranges_are_built_once,
    budgets={TabletViews.migrations: 0, TabletViews.leader_changes: 0},
)
class BothHalvesAreBuiltAgain(TabletViews):
    """A tablet that split while a view was built had its upper half built, whether it was done or not."""

    def _task_of_second_half(self, k: Type) -> Term[Life]:
        if k is Type.process_staging:
            return super()._task_of_second_half(k)
        return choose(self.status == ViewStatus.started, Life.normal, Term.of(Life.absent))


@known_bug(
    "000-96",
    BUILT,
    breaks=TabletViews.built_views_stay_built,
    budgets={TabletViews.migrations: 0, TabletViews.leader_changes: 0},
)
class ASplitStartsTheView(TabletViews):
    """The view of a table whose tablet had split counted as started."""

    @action(by=TOPOLOGY, spends=TabletViews.splits)
    def split_tablet(self) -> None:
        """The tablet splits, and the view is looked at again."""
        super().split_tablet()
        built = self.status == ViewStatus.success
        self.status = choose(built, ViewStatus.started, self.status)


@known_bug(
    "000-100",
    STORED,
    breaks=TabletViews.missing_rows_have_a_task,
    budgets={TabletViews.migrations: 0, TabletViews.splits: 0, TabletViews.leader_changes: 0},
)
class StagingTasksEndBeforeTheirUpdates(TabletViews):
    """The same of a worker that had moved what was staged to the base directory, and had not updated the view yet."""

    on_the_way: SetVar[Row] = set_of(Row)  # rows of which the view gets updates

    @action(by=WORKER, fair=WEAK)
    def finish_batch(self, n: Term[Node]) -> None:
        """The worker has read its replica, and sent the updates."""
        batch = self.batch[n]
        require(batch.tablet.is_some() & ~batch.done, "a batch is executed")
        batch.done = True
        processes = batch.type == Type.process_staging
        for r in Row:
            base, staged = self.base[n].has(r), self.staged[n].has(r)
            read = batch.rows.has(r) & choose(processes, staged, base)
            paired = self.host[self._owner(Term.of(r))] == n
            sent = read & paired & ~self.view.has(r)
            later = sent & processes
            self.on_the_way.put(r, self.on_the_way.has(r) | later)
            self.view.put(r, self.view.has(r) | (sent & ~later))
            self.base[n].put(r, base | (read & processes))
            self.staged[n].put(r, staged & ~(read & processes))

    @action(by=WORKER, fair=WEAK)
    def update_view(self) -> None:
        """The updates arrive."""
        require(~self.on_the_way.is_empty(), "updates are on their way")
        self.view = self.view | self.on_the_way
        self.on_the_way = frozenset()

    @action(by=COORDINATOR, fair=WEAK)
    def mark_view_built(self) -> None:
        """No task is left, and no update is on its way."""
        super().mark_view_built()
        require(self.on_the_way.is_empty(), "no update is on its way")


@known_bug(
    "000-116",
    'design document 000: a new coordinator sends "the same view building tasks"',
    breaks=TabletViews.tasks_keep_their_ids,
    budgets={TabletViews.migrations: 0, TabletViews.splits: 0},
)
class ANewLeaderStoresTasksAnew(TabletViews):
    """A coordinator that took over gave the tasks new ids, so that no late request of the old one counts: what workers had
    executed for these was to be done again.
    """

    @action(by=TOPOLOGY, spends=TabletViews.leader_changes)
    def change_leader(self) -> None:
        """All tasks get new ids."""
        super().change_leader()
        for n in Node:
            self.batch[n].stale = self.batch[n].stale | self.batch[n].tablet.is_some()


@known_bug(
    "000-137",
    OBSERVED,
    breaks=TabletViews.workers_notice_aborts,
    budgets={TabletViews.splits: 0, TabletViews.repairs: 0, TabletViews.leader_changes: 0},
)
class TheLeavingReplicaReadsOn(TabletViews):
    """The batch of a tablet that had begun to move read its replica to the end, while that was streamed."""

    @action(by=WORKER, fair=WEAK)
    def observe_abort(self, n: Term[Node], t: Term[Tablet], k: Term[Type]) -> None:
        """The worker sees that the task of its batch is gone."""
        require(self.batch[n].stale | self.batch[n].done, "it is gone, or done")
        super().observe_abort(n, t, k)


@known_bug(
    "000-173",
    "design document 000, Staging sstables: use normal directory, or use staging directory",
    breaks=TabletViews.sstables_go_to_one_directory,
    budgets={
        TabletViews.migrations: 0,
        TabletViews.splits: 0,
        TabletViews.leader_changes: 0,
    },
)
class RepairedSstablesAreLinkedIntoStaging(TabletViews):
    """A repair wrote its sstable to the base directory, and a link to it to the staging directory: a batch that built the
    range made the same view updates as the one that processed what is staged.
    """

    @action(by=TOPOLOGY, spends=TabletViews.repairs)
    def repair(self, r: Term[Row], n: Term[Node]) -> None:
        """A repair brings a row, which is staged as well where a view is being built."""
        require(self._is_new(r), "a new row")
        t = self._owner(r)
        require(self._is_at_rest(t) & (self.host[t] == n), "the tablet's replica, at rest")
        require(self.status != ViewStatus.success, "the view is not built")
        self.written.add(r)
        self.base[n].add(r)
        staged = self._destination() != Destination.normal_directory
        self.staged[n].put(r, staged)
        self._register(t, staged)


@known_bug(
    "000-183",
    ATTACHED,
    breaks=TabletViews.work_goes_on_for_whoever_asks,
    budgets={TabletViews.repairs: 0, TabletViews.splits: 0, TabletViews.migrations: 0},
)
class NewLeadersBeginAnew(TabletViews):
    """A new leader had all workers forget their batches, those that were done among them."""

    @action(by=TOPOLOGY, spends=TabletViews.leader_changes)
    def change_leader(self) -> None:
        """Another node becomes the raft leader: no worker has a batch."""
        for t in Tablet:
            self.tablets[t].fail_over()
        for n in Node:
            self._end_batch(n)


@known_bug(
    "000-206",
    "design document 000: not prematurely, before the writes are directed to the new replica",
    breaks=(TabletViews.built_views_are_complete, TabletViews.missing_rows_have_a_task),
    budgets={TabletViews.migrations: 2, TabletViews.splits: 0, TabletViews.leader_changes: 0},
)
class BatchesOutliveTheirReplica(TabletViews):
    """A batch of staging sstables went on when its tablet had left and was cleaned up: when that came back, it processed what was
    streamed, on a replica that is not paired yet, and the task that came with it found nothing.
    """

    def _leave_batch(self, n: Term[Node], r: Row, gone: Bool) -> None:
        """The batch looks into the staging directory when it processes it."""


@known_bug(
    "000-209",
    REMEMBERED,
    breaks=TabletViews.work_goes_on_for_whoever_asks,
    budgets={TabletViews.restarts: 1, TabletViews.splits: 0, TabletViews.repairs: 0},
)
class RestartedNodesAreInterrupted(TabletViews):
    """The same of a node whose tablets move."""

    unsafe: SetVar[Node] = set_of(Node)

    @action(by=WORKER, spends=TabletViews.restarts)
    def restart(self, n: Term[Node]) -> None:
        """The node restarts, which is noted."""
        super().restart(n)
        self.unsafe.add(n)

    @action(by=TOPOLOGY, spends=TabletViews.leader_changes)
    def change_leader(self) -> None:
        """The new coordinator interrupts nodes that have restarted."""
        super().change_leader()
        for n in Node:
            batch, lost = self.batch[n], self.unsafe.has(n)
            batch.tablet = choose(lost, None, batch.tablet)
            batch.type = choose(lost, None, batch.type)
            for r in Row:
                batch.rows.put(r, batch.rows.has(r) & ~lost)
            batch.done = batch.done & ~lost
            batch.stale = batch.stale & ~lost


@known_bug("000-282", STORED, breaks=TabletViews.built_views_have_no_task, budgets=ONE_MOVE)
class AnsweredViewsAreBuilt(TabletViews):
    """A coordinator marked a view built when a worker had answered for its last task: a tablet that moved before the
    task was removed had it aborted, and created anew.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def mark_view_built(self) -> None:
        """No task is left but those that are known to be finished."""
        require(self.status == ViewStatus.started, "the view is being built")

        def is_finished(t: Tablet, k: Type) -> Bool:
            answered = some(
                self._is_batch(n, Term.of(t), Term.of(k)) & self.batch[n].done & self.called.has(n)
                for n in Node
            )
            return answered & (self.tasks[t][k] == Life.normal)

        left = some(
            (self.tasks[t][k] != Life.absent) & ~is_finished(t, k) for t in Tablet for k in Type
        )
        require(~left, "no other task is left")
        self.status = ViewStatus.success


@known_bug(
    "000-332",
    "design document 000, tablet resize: abort the task and create new tasks with new tablet ids",
    breaks=TabletViews.tasks_of_tablets_that_split_are_aborted,
    budgets={
        TabletViews.migrations: 0,
        TabletViews.repairs: 0,
        TabletViews.leader_changes: 0,
    },
)
class TheLowerHalfKeepsItsTasks(TabletViews):
    """When a tablet split its tasks stayed those of the lower half, executed or not, and the upper one got new ones."""

    @action(by=TOPOLOGY, spends=TabletViews.splits)
    def split_tablet(self) -> None:
        """The tablet splits, at rest: there are new tasks for the upper half."""
        require(~self.split, "not split yet")
        require(self._is_at_rest(Term.of(Tablet.t0)), "the tablet is not in transition")
        self.split = True
        self.host[Tablet.t1] = self.host[Tablet.t0]
        for k in Type:
            self.tasks[Tablet.t1][k] = self._task_of_second_half(k)


@known_bug(
    "000-347",
    'design document 000: a new coordinator sends "the same view building tasks"',
    breaks=TabletViews.tasks_keep_their_ids,
)
class RepairsBeginTheRangeAnew(TabletViews):
    """What a repair staged gave all tasks of its tablet new ids, so that one batch would see it: a range that was being read was
    begun anew.
    """

    def _register(self, t: Term[Tablet], staged: Bool) -> None:
        kind = Type.process_staging
        self.tasks[t][kind] = choose(staged, Life.normal, self.tasks[t][kind])
        for n in Node:
            self.batch[n].stale = self.batch[n].stale | ((self.batch[n].tablet == t) & staged)


@known_bug(
    "000-348",
    REGISTERED,
    breaks=TabletViews.staging_tasks_are_created_for_something,
)
class RepairsStoreATaskForEachTablet(TabletViews):
    """A worker that was told of a staging sstable had a task stored for each tablet that it has of the table: where the other
    one had just been processed it was again.
    """

    def _register(self, t: Term[Tablet], staged: Bool) -> None:
        kind = Type.process_staging
        for other in Tablet:
            beside = self.split & (self.host[other] == self.host[t])
            rests = self._is_at_rest(Term.of(other))
            stored = staged & ((t == other) | (beside & rests))
            self.tasks[other][kind] = choose(stored, Life.normal, self.tasks[other][kind])
        for n in Node:
            begun = (self.host[t] == n) & (self.batch[n].type == kind)
            self.batch[n].stale = self.batch[n].stale | (begun & staged)


@known_bug(
    "000-349",
    EACH_TASK,
    breaks=TabletViews.staging_tasks_are_created_for_something,
)
class UpperHalvesAreProcessed(TabletViews):
    """When a tablet split its upper half got tasks of both types if it had any: of staging sstables, too, where there were none."""

    def _task_of_second_half(self, k: Type) -> Term[Life]:
        has_any = some(self.tasks[Tablet.t0][kind] != Life.absent for kind in Type)
        return choose(has_any, Life.normal, Term.of(Life.absent))


BUGS = known_bugs_in(globals())

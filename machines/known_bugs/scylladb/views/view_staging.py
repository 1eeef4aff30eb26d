"""Mistakes about staging sstables, and tasks of tablets that split and merge, which design document 000 rules out."""

from __future__ import annotations

from stagewright.machines.scylladb.views.view_coordinator import ViewStatus
from stagewright.machines.scylladb.views.view_destinations import (
    Migration,
    Place as At,
    Replica,
    Sstable as Row,
    View,
    ViewDestinations,
    Views,
)
from stagewright.machines.scylladb.views.view_resize import (
    Becomes,
    Id,
    Slot,
    Type,
    ViewResize,
)
from stagewright.machines.scylladb.views.view_staging import Sstable, Standing, ViewStaging
from stagewright.machines.scylladb.views.view_task import COORDINATOR, TOPOLOGY, WORKER, Work
from stagewright.spec import (
    Bool,
    Fairness,
    Number,
    Term,
    action,
    choose,
    require,
    some,
)
from stagewright.spec.known_bugs import known_bug, known_bugs_in

WEAK = Fairness.WEAK
REGISTERED = (
    "design document 000: process_staging tasks are created when a staging sstable was registered"
)


@known_bug(
    "000-44",
    "design document 000: a task is associated with a tablet id",
    breaks=ViewResize.tasks_are_of_tablets,
    budgets={ViewResize.resizes: 1},
)
class AMergeLeavesTheOldTasks(ViewResize):
    """A merge stored the process_staging tasks of the new tablets, and did not delete those of the old ones: some were of
    no tablet, and stayed until their view was built.
    """

    def _is_to_process(self, new: Number, becomes: Becomes) -> Bool:
        return super()._is_to_process(new, becomes) | self.staging[new]

    def _start(self, t: Number, kind: Type) -> None:
        super()._start(t, kind)
        require(self._is_tablet(t), "there is such a tablet")

    @action(by=COORDINATOR, fair=WEAK)
    def mark_view_built(self) -> None:
        """No tablet has a task."""
        left = some(self.building[self.id[s]] | self.staging[self.id[s]] for s in Slot)
        require(~left, "no tablet has a task")
        require(self.batch == Work.none, "none is executed")
        require(~self.built, "not built yet")
        self.built = True


@known_bug(
    "000-45",
    "design document 000: it can execute only one batch per shard",
    breaks=ViewResize.one_batch_on_the_shard,
    budgets={ViewResize.staging_sstables: 0},
)
class ACallEndsTheBatch(ViewResize):
    """A call for another tablet made the worker give up the batch that it executed, and begin that one."""

    def _is_idle(self) -> None:
        require(self.batch != Work.done, "the last batch has been answered")
        self.stale = False


@known_bug(
    "000-46",
    "design document 000: the group0 state stores tasks that haven't been completed yet",
    breaks=ViewResize.missing_ranges_have_a_task,
    budgets={ViewResize.resizes: 0, ViewResize.staging_sstables: 0},
)
class TasksAreRemovedWhenTheyBegin(ViewResize):
    """The row of a task was deleted when its batch began: no resize that came then knew that there was anything to do."""

    @action(by=COORDINATOR, fair=WEAK)
    def start_building(self, t: Id) -> None:
        """The shard gets the task to build the view from a tablet, and group0 stores it no longer."""
        super().start_building(t)
        self.building[t] = False


@known_bug(
    "000-47",
    REGISTERED,
    breaks=ViewStaging.registered_sstables_have_a_task,
    sizes={Sstable: 1},
    budgets={ViewStaging.moves: 1},
)
class SstablesWaitBeforeTheirTaskIsStored(ViewStaging):
    """The worker took sstables off its queue when it sent the command that stores their task, not when that was applied."""

    @action(by=WORKER, fair=WEAK)
    def begin_registering(self) -> None:
        """The worker sends the command for what there is to register."""
        require(~self.to_register.is_empty(), "there is something to register")
        require(self.registering.is_empty(), "no command is under way")
        self.registering = self.to_register
        self.staging = self.staging | self.to_register
        self.to_register = frozenset()

    @action(by=WORKER, fair=WEAK)
    def register(self) -> None:
        """The command is applied: a task is stored."""
        require(~self.registering.is_empty(), "a command is under way")
        self.waiting = choose(self._needs_no_task(), self.waiting, self._one_more())
        self.registering = frozenset()


@known_bug(
    "000-48",
    'design document 000: process_staging is to "generate view updates and move to base directory"',
    breaks=ViewDestinations.processed_sstables_are_in_the_views,
)
class OnlyScannedViewsAreUpdated(ViewDestinations):
    """A process_staging task updated the views whose range had been built: for the others, it was said, that will find
    the sstable in the base directory.
    """

    def _process(self, r: Term[Replica], s: Term[Row]) -> None:
        self.place[r][s] = At.base
        paired = (r == Replica.leaving) | (self.migration == Migration.over)
        for v in View:
            self.view[v].put(s, self.view[v].has(s) | (paired & self.scanned.has(v)))


@known_bug(
    "001-54",
    "design document 001: the new replica set will reflect all successful writes",
    breaks=ViewDestinations.nothing_is_lost_by_a_migration,
    sizes={View: 1},
)
class StagingStaysBehind(ViewDestinations):
    """A migration streamed no sstable that waited for a task: they stayed behind, and were removed with their replica,
    though the tasks for them went along.
    """

    @action(by=TOPOLOGY, fair=WEAK)
    def stream(self, s: Term[Row]) -> None:
        """The pending replica gets a copy of an sstable without a task."""
        super().stream(s)
        require(self.place[Replica.leaving][s] != At.with_task, "it waits for no task")

    def _is_streamed(self, s: Term[Row]) -> Bool:
        return super()._is_streamed(s) | (self.place[Replica.leaving][s] == At.with_task)


@known_bug(
    "000-53",
    REGISTERED,
    breaks=ViewStaging.sstables_are_staged_at_any_time,
)
class StreamsWaitForTheBatch(ViewStaging):
    """Nothing is written to the staging directory while a batch reads it."""

    @action(by=WORKER)
    def write_staging(self, s: Term[Sstable]) -> None:
        """Streaming or repair writes an sstable when no batch is executed."""
        require(self.batch == Work.none, "no batch is executed")
        super().write_staging(s)


@known_bug(
    "000-54",
    "design document 000, Tablet operations: the tasks are aborted at the start of the operation",
    breaks=ViewStaging.tablets_leave_at_any_time,
)
class StagedTabletsStay(ViewStaging):
    """A tablet is moved when its staging sstables have been processed, so that no task has to be aborted."""

    @ViewStaging.standing.step(
        Standing.replica, Standing.leaving, by=TOPOLOGY, spends=ViewStaging.moves
    )
    def leave(self) -> None:
        """The tablet migrates away, without tasks."""
        require(~self.started & (self.waiting == 0), "the tablet has no task")
        self.aborted = False


@known_bug(
    "000-59",
    "design document 000: Is any view started but not finished yet?",
    breaks=ViewDestinations.sstables_have_a_task_while_a_view_is_built,
)
class BuiltViewsAreAskedForFirst(ViewDestinations):
    """The decision took a table with a built view for built, whatever became of its other views."""

    def how_far(self) -> Term[Views]:
        """Are all views built? Is any? Else some are started, or none."""
        some_built = some(self.status[v] == ViewStatus.success for v in View)
        return choose(some_built, Views.built, super().how_far())


@known_bug(
    "000-60",
    "design document 000, Tablet operations: the coordinator needs to react to them",
    breaks=ViewDestinations.tablets_move_at_any_time,
)
class MigrationsWaitForStagedRows(ViewDestinations):
    """A tablet is not moved while an sstable of it waits for a task."""

    @ViewDestinations.migration.step(Migration.ahead, Migration.under_way, by=TOPOLOGY)
    def start_migration(self) -> None:
        """The tablet migrates, with no sstable in the staging directory."""
        waits = some(self.place[r][s] == At.with_task for r in Replica for s in Row)
        require(~waits, "no sstable waits")


BUGS = known_bugs_in(globals())

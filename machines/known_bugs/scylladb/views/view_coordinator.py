"""Mistakes that design document 000 invites in the view building coordinator."""

from __future__ import annotations

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
from stagewright.machines.scylladb.views.view_task import COORDINATOR, WORKER, Call
from stagewright.spec import Bool, Term, action, choose, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in


@known_bug(
    "000-8",
    "design document 000, Schema",
    breaks=ViewCoordinator.bases_are_left_when_done,
)
class ProcessedTableIsNotStored(ViewCoordinator):
    """The coordinator keeps in memory which base table it processes: a new one chooses another, in the midst."""

    @action(by=COORDINATOR, spends=ViewCoordinator.leader_changes)
    def change_leader(self) -> None:
        super().change_leader()
        self.processed = None


@known_bug(
    "000-9",
    "design document 000, Lifetime of a task",
    breaks=(ViewCoordinator.views_are_built, ViewCoordinator.batches_end),
)
class ResultsAreForTheCallerOnly(ViewCoordinator):
    """The worker answers the call that has started a batch, and no later one for tasks that it has completed: when
    the leader changes in between, they stay in group0 for ever.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def attach(self, s: Term[Shard], t: Term[Tablet], b: Term[Base]) -> None:
        super().attach(s, t, b)
        require(~self.batch[s].done, "the batch is executed")


@known_bug(
    "000-10",
    "design document 000, View building worker",
    breaks=(ViewCoordinator.views_are_built, ViewCoordinator.batches_end),
)
class DeletionsAreNotObserved(ViewCoordinator):
    """The worker does not look at group0 once a batch has begun: that of a table which was dropped stays on its shard,
    as nobody calls for it again, and no other batch comes.
    """

    @action(by=WORKER, fair=WEAK)
    def observe_deletion(self, s: Term[Shard], t: Term[Tablet], b: Term[Base]) -> None:
        require(self.called.has(s), "a coordinator waits for it")
        super().observe_deletion(s, t, b)


@known_bug(
    "000-41",
    "design document 000: at most only one base table at the time",
    breaks=ViewCoordinator.one_base_at_a_time,
    sizes={View: 1},
)
class WorkersProcessStagingByThemselves(ViewCoordinator):
    """A worker processed a staging sstable as soon as it was registered, where its shard was idle and no range of the
    tablet was to be built, whatever table the coordinator had chosen.
    """

    @action(by=WORKER, spends=ViewCoordinator.staging_sstables)
    def register_staging(self, b: Term[Base], t: Term[Tablet]) -> None:
        """A staging sstable is registered; its shard, where it is idle, begins with it."""
        super().register_staging(b, t)
        builds = some(self._is_to_build(v, t) for v in View)
        for s in Shard:
            begins = (self.shard[t] == s) & self.batch[s].tablet.is_none() & ~builds
            self.batch[s].base = choose(begins, b, self.batch[s].base)
            self.batch[s].tablet = choose(begins, t, self.batch[s].tablet)

    @action(by=WORKER, fair=WEAK)
    def forget(self, s: Term[Shard]) -> None:
        """The worker is done with what nobody has called for."""
        require(self.batch[s].done & ~self.called.has(s), "a batch is done, for nobody")
        self._end_batch(s)


@known_bug(
    "000-42",
    "design document 000: it can execute only one batch per shard",
    breaks=ViewCoordinator.running_batches_are_not_replaced,
    sizes={Base: 1},
)
class ACallReplacesTheBatch(ViewCoordinator):
    """The call of a new coordinator for other tasks was not refused while a batch ran: it took the batch's place."""

    def _may_send(self, s: Term[Shard], t: Term[Tablet], b: Term[Base]) -> None:
        require(self.processed == b, "the table is processed")
        require(self.shard[t] == s, "the tablet is on the shard")
        require(~self.called.has(s), "no call to the shard is under way")
        self.batch[s].base = b
        self.batch[s].tablet = t
        self.batch[s].done = False
        self.called.add(s)

    @action(by=COORDINATOR, fair=WEAK)
    def send_process_staging(self, s: Term[Shard], t: Term[Tablet], b: Term[Base]) -> None:
        """A shard gets the process_staging tasks of one tablet."""
        super().send_process_staging(s, t, b)
        self.batch[s].views = frozenset()


@known_bug(
    "000-43",
    "design document 000: the worker observes the group0 state to notice when tasks are aborted",
    breaks=ViewCoordinator.batches_end,
)
class TheNextCallEndsTheBatch(ViewCoordinator):
    """The worker looked whether the tasks of its batch were still stored when the next call came: with none to come, it
    stayed in the batch of a view that had been dropped.
    """

    @action(by=WORKER, fair=WEAK)
    def observe_deletion(self, s: Term[Shard], t: Term[Tablet], b: Term[Base]) -> None:
        """The coordinator waits for the batch, or has a task for the shard."""
        waits = some((self.shard[other] == s) & self._waits(other) for other in Tablet)
        require(self.called.has(s) | waits, "a call comes, or waits")
        super().observe_deletion(s, t, b)

    def _waits(self, t: Term[Tablet]) -> Bool:
        """A task of the tablet is to be called for."""
        builds = some(self._is_to_build(v, t) for v in View)
        return builds | some(self.staging[b].has(t) for b in self.processed)


@known_bug(
    "000-56",
    "design document 000: we simply delete relevant view building tasks",
    breaks=ViewCoordinator.dropped_tables_have_no_tasks,
    sizes={Tablet: 1, Shard: 1},
)
class OnlyTasksOfViewsAreDeleted(ViewCoordinator):
    """With a keyspace the tasks of its views were deleted, and process_staging tasks, which are of no view, left."""

    @action(by=CLIENT, spends=ViewCoordinator.drops)
    def drop_table(self, b: Term[Base]) -> None:
        """A table is dropped, and the tasks of its views."""
        require(self._has_views(b), "the table has a view")
        self.dropped_tables.add(b)
        for v in View:
            dropped = (self.table[v] == b) & self._exists(v)
            self.status[v] = choose(dropped, ViewStatus.dropped, self.status[v])
            for t in Tablet:
                self.building[v].put(t, self.building[v].has(t) & (self.table[v] != b))
        self.staged[b] = frozenset()


@known_bug(
    "000-57",
    "design document 000: a keyspace was dropped",
    breaks=ViewCoordinator.tables_are_dropped_at_any_time,
    sizes={Tablet: 1, Shard: 1},
)
class DropsWaitForOtherTables(ViewCoordinator):
    """A keyspace is not dropped while the views of another one are built."""

    @action(by=CLIENT, spends=ViewCoordinator.drops)
    def drop_table(self, b: Term[Base]) -> None:
        """A table is dropped when no other one is processed."""
        require(self.processed.is_none() | (self.processed == b), "no other one is processed")
        super().drop_table(b)


@known_bug(
    "000-58",
    "design document 000: process_staging tasks are created when a staging sstable was registered",
    breaks=ViewCoordinator.sstables_are_staged_at_any_time,
    sizes={Tablet: 1, Shard: 1},
)
class ShardsRegisterWhenTheyAreIdle(ViewCoordinator):
    """A staging sstable is not registered while its shard executes a batch."""

    @action(by=WORKER, spends=ViewCoordinator.staging_sstables)
    def register_staging(self, b: Term[Base], t: Term[Tablet]) -> None:
        """A staging sstable is registered at an idle shard."""
        busy = some((self.shard[t] == s) & self.batch[s].tablet.is_some() for s in Shard)
        require(~busy, "the shard is idle")
        super().register_staging(b, t)


@known_bug(
    "000-102",
    "design document 000: one batch per shard",
    breaks=ViewCoordinator.shards_work_at_once,
    sizes={Base: 1, View: 1},
)
class RangesWaitForStagingSstables(ViewCoordinator):
    """No range was built while another shard processed staging sstables, so that two would not update one view."""

    @action(by=COORDINATOR, fair=WEAK)
    def send_build_range(self, s: Term[Shard], t: Term[Tablet], b: Term[Base]) -> None:
        """A shard gets the build_range tasks of one tablet, unless one processes staging sstables."""
        super().send_build_range(s, t, b)
        require(~_processes_staging(self), "no shard processes staging sstables")


@known_bug(
    "000-103",
    "design document 000: a view or index is created",
    breaks=ViewCoordinator.views_are_created_at_any_time,
    sizes={Base: 1},
)
class CreatingWaitsForStagingSstables(ViewCoordinator):
    """CREATE MATERIALIZED VIEW waits until no staging sstable is processed: those tasks are of the views that there are."""

    @action(by=CLIENT)
    def create_view(self, v: Term[View]) -> None:
        """A view is created, unless staging sstables are processed."""
        super().create_view(v)
        require(~_processes_staging(self), "no shard processes staging sstables")


@known_bug(
    "000-104",
    'design document 000: "Does the table have any views?"',
    breaks=ViewCoordinator.staging_tasks_are_of_tables_with_views,
    sizes={Tablet: 1, Shard: 1},
)
class TheKeyspaceIsAskedForViews(ViewCoordinator):
    """Staging sstables of any table became tasks as soon as another table of the keyspace had a view."""

    def _has_views(self, b: Term[Base]) -> Bool:
        del b
        return some(self._exists(v) for v in View)


@known_bug(
    "000-105",
    "design document 000: at most only one base table at the time",
    breaks=ViewCoordinator.staging_alone_comes_first,
    sizes={Tablet: 1, Shard: 1},
)
class OnlyTablesWithoutViewsComeFirst(ViewCoordinator):
    """Taken for tables with staging tasks alone were those whose views are dropped: where the views are built, a repair
    waited for the views of other tables.
    """

    def _has_only_staging(self, b: Term[Base]) -> Bool:
        return ~self._has_views(b) & ~self.staging[b].is_empty()


@known_bug(
    "000-106",
    "design document 000: the coordinator's responsibility to schedule only one batch per tablet replica",
    breaks=ViewBuilding.one_call_for_a_replica,
)
class ReplicasAreIdleWhenTheyHaveBegun(ViewBuilding):
    """A call that waits for its result was not counted: the coordinator called for another task of the replica."""

    def _is_called(self, t: Term[Task]) -> Bool:
        return self.tasks[t].call == Call.sent


def _processes_staging(machine: ViewCoordinator) -> Bool:
    batch = machine.batch
    return some(batch[s].tablet.is_some() & batch[s].views.is_empty() for s in Shard)


BUGS = known_bugs_in(globals())

"""Mistakes put back into `ViewCoordinator`: who is refused, or waits."""

from __future__ import annotations

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
from stagewright.machines.scylladb.views.view_task import COORDINATOR, WORKER
from stagewright.spec import Bool, Entity, FlagVar, Term, action, every, flag, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

ONE_BASE: dict[type[Entity], int] = {Base: 1, View: 1}
REMOVED = "design document 000: it removes those tasks from group0 state in 200ms intervals"


@known_bug(
    "000-15",
    "design document 000: one batch per shard",
    breaks=ViewCoordinator.shards_work_at_once,
    sizes=ONE_BASE,
)
class OneBatchInTheCluster(ViewCoordinator):
    """The coordinator sends the next batch when the last one is done, wherever that was."""

    def _may_send(self, s: Term[Shard], t: Term[Tablet], b: Term[Base]) -> None:
        super()._may_send(s, t, b)
        free = every(self.batch[other].tablet.is_none() for other in Shard)
        require(free, "no shard has a batch")


@known_bug(
    "000-16",
    "design document 000: a view or index is created",
    breaks=ViewCoordinator.views_are_created_at_any_time,
    sizes={Base: 1},
)
class ViewsAreCreatedOneAfterTheOther(ViewCoordinator):
    """CREATE MATERIALIZED VIEW waits until no view is built."""

    @action(by=CLIENT)
    def create_view(self, v: Term[View]) -> None:
        """A view is created, unless one is built."""
        super().create_view(v)
        require(self.processed.is_none(), "no base table is processed")


@known_bug(
    "000-17",
    "design document 000: we simply delete relevant view building tasks",
    breaks=ViewCoordinator.views_are_dropped_at_any_time,
    sizes=ONE_BASE,
)
class DropWaitsForTheBatch(ViewCoordinator):
    """DROP MATERIALIZED VIEW waits until no shard builds the view."""

    @action(by=CLIENT, spends=ViewCoordinator.drops)
    def drop_view(self, v: Term[View]) -> None:
        """A view is dropped that no shard builds."""
        super().drop_view(v)
        require(every(~self.batch[s].views.has(v) for s in Shard), "no batch is for it")


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
    "000-70",
    "design document 000: it can execute only one batch per shard",
    breaks=ViewCoordinator.shards_process_staging_at_once,
    sizes={Base: 1, View: 1},
    budgets={ViewCoordinator.staging_sstables: 2},
)
class OneStagingBatchInTheCluster(ViewCoordinator):
    """Ranges were built by all shards at once, and staging sstables processed by one after the other."""

    @action(by=COORDINATOR, fair=WEAK)
    def send_process_staging(self, s: Term[Shard], t: Term[Tablet], b: Term[Base]) -> None:
        """A shard gets the process_staging tasks of one tablet when no shard has a batch."""
        super().send_process_staging(s, t, b)
        require(every(self.batch[o].tablet.is_none() for o in Shard), "no shard has a batch")


@known_bug(
    "000-71",
    REMOVED,
    breaks=ViewCoordinator.finished_tasks_are_removed_at_any_time,
    sizes={Base: 1, View: 1},
)
class RemovalWaitsForTheSlowestShard(ViewCoordinator):
    """Finished tasks were removed when all shards that had been called had answered: one long batch kept the others idle."""

    @action(by=COORDINATOR, fair=WEAK)
    def remove_finished(self, s: Term[Shard], t: Term[Tablet], b: Term[Base]) -> None:
        """Every worker has answered: the coordinator removes the batch's tasks from group0."""
        answered = every(self.batch[o].tablet.is_none() | self.batch[o].done for o in Shard)
        require(answered, "every shard has answered")
        super().remove_finished(s, t, b)


def _processes_staging(machine: ViewCoordinator) -> Bool:
    batch = machine.batch
    return some(batch[s].tablet.is_some() & batch[s].views.is_empty() for s in Shard)


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
    "000-138",
    "design document 000: it is building all views for this base table",
    breaks=ViewCoordinator.views_of_the_table_are_started_at_any_time,
    sizes={Base: 1},
)
class ALaterViewWaitsForTheFirst(ViewCoordinator):
    """A view that was created of a table while another one was built was started when that was done: the table's tablets
    were read twice.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def start_view(self, v: Term[View]) -> None:
        """A view was created on the table that is processed, of which no other is being built."""
        started = some(self.status[u] == ViewStatus.started for u in View)
        require(~started, "no other view is being built")
        super().start_view(v)


@known_bug(
    "000-159",
    "design document 000, RPC: it attaches to the tasks and waits for the result",
    breaks=ViewCoordinator.a_new_coordinator_waits_for_a_running_batch,
    sizes={Base: 1, Tablet: 1, Shard: 1},
)
class OnlyResultsAreAskedFor(ViewCoordinator):
    """A coordinator that took over was refused by workers that executed a batch: it asked every second, all of them."""

    @action(by=COORDINATOR, fair=WEAK)
    def attach(self, s: Term[Shard], t: Term[Tablet], b: Term[Base]) -> None:
        """The call finds a batch that is done."""
        require(self.batch[s].done, "the batch is done")
        super().attach(s, t, b)


@known_bug(
    "000-160",
    "design document 000, Schema: once the view is built, an entry is created",
    breaks=ViewCoordinator.views_are_built_while_shards_work,
    sizes={Base: 1},
)
class ViewsAreMarkedWhenAllShardsRest(ViewCoordinator):
    """A view was marked as built when no shard had a batch, of whichever view."""

    @action(by=COORDINATOR, fair=WEAK)
    def mark_view_built(self, v: Term[View]) -> None:
        """The view has no task, and no shard a batch."""
        require(every(self.batch[s].tablet.is_none() for s in Shard), "no shard has a batch")
        super().mark_view_built(v)


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


@known_bug(
    "000-265",
    "design document 000: the coordinator processes at most only one base table at the time",
    breaks=ViewCoordinator.tables_are_chosen_whatever_is_executed,
)
class TablesAreChosenWhenAllShardsAreIdle(ViewCoordinator):
    """No table was chosen while a shard executed a batch of one that was dropped: the other shards had nothing to do."""

    @action(by=COORDINATOR, fair=WEAK)
    def choose_base(self, b: Term[Base]) -> None:
        """The coordinator chooses a base table when no shard has a batch."""
        super().choose_base(b)
        require(every(self.batch[s].tablet.is_none() for s in Shard), "no shard has a batch")


@known_bug(
    "000-300",
    "design document 000: each view building worker keeps track of finished tasks locally",
    breaks=ViewCoordinator.workers_wait_for_no_coordinator,
    sizes=ONE_BASE,
)
class BatchesWaitForWhoCalls(ViewCoordinator):
    """A batch whose coordinator was gone stood still at its end until the new one had called for its tasks."""

    @action(by=WORKER, fair=WEAK)
    def finish_batch(self, s: Term[Shard], t: Term[Tablet], b: Term[Base]) -> None:
        """The shard has updated the views, and somebody waits for that."""
        require(self.called.has(s), "a call waits for it")
        super().finish_batch(s, t, b)


@known_bug(
    "000-301",
    "design document 000: it can execute only one batch per shard",
    breaks=ViewCoordinator.shards_wait_for_no_other,
    sizes=ONE_BASE,
)
class ResultsAreTakenOneByOne(ViewCoordinator):
    """A shard did not finish its batch while the result of another one was still to be removed."""

    @action(by=WORKER, fair=WEAK)
    def finish_batch(self, s: Term[Shard], t: Term[Tablet], b: Term[Base]) -> None:
        """The shard has updated the views, and no other one's result is left."""
        require(every(~self.batch[other].done for other in Shard), "no other result is left")
        super().finish_batch(s, t, b)


@known_bug(
    "000-322",
    "design document 000: the coordinator processes at most only one base table at the time",
    breaks=ViewCoordinator.tables_are_left_whatever_is_executed,
)
class TablesAreLeftWhenAllShardsAreIdle(ViewCoordinator):
    """A table that was dropped while it was processed kept all others waiting until each shard had given up its batch."""

    @action(by=COORDINATOR, fair=WEAK)
    def leave_base(self, b: Term[Base]) -> None:
        """No task of the table is left, and no shard executes a batch."""
        super().leave_base(b)
        idle = every(self.batch[s].tablet.is_none() for s in Shard)
        require(idle, "no shard has a batch")


BUGS = known_bugs_in(globals())

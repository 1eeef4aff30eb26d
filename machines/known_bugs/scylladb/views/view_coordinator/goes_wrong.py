"""Mistakes put back into `ViewCoordinator`: what goes wrong."""

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
from stagewright.spec import (
    ANY,
    Bool,
    SetVar,
    Term,
    action,
    choose,
    constant,
    initially,
    require,
    set_of,
    some,
)
from stagewright.spec.known_bugs import known_bug, known_bugs_in

REMEMBERED = "design document 000: each view building worker keeps track of finished tasks locally"
BUILT = "design document 000, Schema: once the view is built, an entry is created"
ATTACHED = "design document 000, RPC: the handler attaches to the tasks and waits for the result"
OBSERVED = (
    "design document 000: the worker observes the group0 state to notice when tasks are aborted"
)
FINISHED = 'design document 000: tasks are removed, "permanently marking them as finished"'
REGISTERED = (
    "design document 000: process_staging tasks are created when a staging sstable was registered"
)
BATCH = "design document 000: the worker groups multiple view building tasks into a batch"


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
    "000-361",
    "design document 000: tasks are created when a view is created",
    breaks=ViewCoordinator.tasks_are_of_views,
    sizes={Base: 1},
    budgets={ViewCoordinator.staging_sstables: 0},
)
class RowsComeBeforeTheirView(ViewCoordinator):
    """The first batch wrote rows also for a view of the table that did not exist yet, and whose creation counted them as
    built.
    """

    @action(by=WORKER, fair=WEAK)
    def finish_batch(self, s: Term[Shard], t: Term[Tablet], b: Term[Base]) -> None:
        """The shard has updated the views, and one that is not there yet."""
        batch = self.batch[s]
        require(self._is_batch(s, t, b), "the shard has a batch")
        require(~batch.done, "it is executed")
        batch.done = True
        for v in View:
            early = (self.table[v] == b) & (self.status[v] == ViewStatus.none)
            early = early & self.scanned[v].is_empty()
            self.scanned[v].put(t, self.scanned[v].has(t) | batch.views.has(v) | early)
        self.staged[b].put(t, self.staged[b].has(t) & ~batch.views.is_empty())

    @action(by=CLIENT)
    def create_view(self, v: Term[View]) -> None:
        """A view is created, with a task for every tablet of which it has no rows."""
        require(self.status[v] == ViewStatus.none, "not created yet")
        require(~self._is_dropped_with_its_table(v), "its table is there")
        self.status[v] = ViewStatus.created
        for t in Tablet:
            self.building[v].put(t, ~self.scanned[v].has(t))


@known_bug(
    "000-362",
    BATCH,
    breaks=ViewCoordinator.batches_are_of_one_table_and_tablet,
)
class BatchesAreOfAllThatIsBuilt(ViewCoordinator):
    """A batch was for all views that were being built, also for those that had the tablet's rows: they were read for them
    once more.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def send_build_range(self, s: Term[Shard], t: Term[Tablet], b: Term[Base]) -> None:
        """A shard gets one tablet for all views that are being built."""
        self._may_send(s, t, b)
        require(some(self._is_to_build(v, t) for v in View), "a view has a task for the tablet")
        for v in View:
            started = (self.table[v] == b) & (self.status[v] == ViewStatus.started)
            self.batch[s].views.put(v, started)


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
    "000-72",
    BUILT,
    breaks=ViewCoordinator.views_are_built_one_by_one,
    sizes={Base: 1},
    budgets={ViewCoordinator.staging_sstables: 0},
)
class ViewsAreMarkedWithTheirTable(ViewCoordinator):
    """The views of a table were marked as built together, when the table had no task: the first one waited for any that
    was created meanwhile.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def mark_view_built(self, v: Term[View]) -> None:
        """The view has no task, and neither has another one of its table."""
        super().mark_view_built(v)
        left = some((self.table[v] == b) & self._has_to_build(b) for b in Base)
        require(~left, "its table has no task")


@known_bug(
    "000-93",
    BUILT,
    breaks=ViewCoordinator.built_views_stay_built,
    sizes={Base: 1, Tablet: 1, Shard: 1},
)
class ProcessedTablesHaveStartedViews(ViewCoordinator):
    """When a table was chosen for a staging sstable all its views were STARTED, also those that had been built."""

    @action(by=COORDINATOR, fair=WEAK)
    def choose_base(self, b: Term[Base]) -> None:
        """The coordinator chooses a base table with tasks."""
        require(self.processed.is_none(), "no base table is processed")
        require(self._has_tasks(b), "the table has tasks")
        self.processed = b
        for v in View:
            starts = (self.table[v] == b) & self._exists(v)
            self.status[v] = choose(starts, ViewStatus.started, self.status[v])


@known_bug(
    "000-104",
    'design document 000: "Does the table have any views?"',
    breaks=ViewCoordinator.staging_tasks_are_of_tables_with_views,
    sizes={Tablet: 1, Shard: 1},
)
class TheKeyspaceIsAskedForViews(ViewCoordinator):
    """Staging sstables of any table became tasks as soon as another table of the keyspace had a view."""

    def _has_views(self, b: Term[Base]) -> Bool:
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
    "000-107",
    BATCH,
    breaks=ViewCoordinator.ranges_are_built_for_all_views,
    sizes={Base: 1, Tablet: 1, Shard: 1},
)
class ABatchBuildsOneView(ViewCoordinator):
    """Each batch was of one view: a tablet of a table with ten views was read ten times."""

    first: SetVar[View] = constant(set_of(View, init=ANY))  # whose tasks come first

    @initially
    def one_is_the_first(self) -> Bool:
        """Tasks have an order."""
        return self.first.size() == 1

    @action(by=COORDINATOR, fair=WEAK)
    def send_build_range(self, s: Term[Shard], t: Term[Tablet], b: Term[Base]) -> None:
        """A shard gets the first build_range task of one tablet."""
        self._may_send(s, t, b)
        require(some(self._is_to_build(v, t) for v in View), "a view has a task for the tablet")
        waits = some(self._is_to_build(v, t) & self.first.has(v) for v in View)
        for v in View:
            self.batch[s].views.put(v, self._is_to_build(v, t) & (self.first.has(v) | ~waits))


@known_bug(
    "000-110",
    "design document 000: tasks can be in one batch only if they have the same type",
    breaks=ViewCoordinator.batches_are_of_one_type,
    sizes={View: 1, Tablet: 1, Shard: 1},
)
class WhoReadsTheTabletProcessesStagingToo(ViewCoordinator):
    """A batch that built a range processed what was staged at the tablet, too, and both tasks were removed."""

    @action(by=WORKER, fair=WEAK)
    def finish_batch(self, s: Term[Shard], t: Term[Tablet], b: Term[Base]) -> None:
        """The shard has updated the views, from the tablet and from its staging sstables."""
        batch = self.batch[s]
        require(self._is_batch(s, t, b), "the shard has a batch")
        require(~batch.done, "it is executed")
        batch.done = True
        for v in batch.views:
            self.scanned[v].add(t)
        self.staged[b].discard(t)

    @action(by=COORDINATOR, fair=WEAK)
    def remove_finished(self, s: Term[Shard], t: Term[Tablet], b: Term[Base]) -> None:
        """The coordinator removes the batch's tasks, and that of what is staged no more."""
        batch = self.batch[s]
        require(self._is_batch(s, t, b) & batch.done, "the batch is done")
        require(self.called.has(s), "the coordinator waits for it")
        for v in batch.views:
            self.building[v].discard(t)
        self.staging[b].put(t, self.staging[b].has(t) & self.staged[b].has(t))
        self._end_batch(s)


@known_bug("000-135", OBSERVED, breaks=ViewCoordinator.workers_notice_deletions)
class ShardsExecuteWhatIsDeleted(ViewCoordinator):
    """A shard looked which tasks of its batch had been deleted when it had executed them."""

    @action(by=WORKER, fair=WEAK)
    def observe_deletion(self, s: Term[Shard], t: Term[Tablet], b: Term[Base]) -> None:
        """The worker sees that no task of its batch, which is done, is in group0 any more."""
        require(self.batch[s].done, "the batch is done")
        super().observe_deletion(s, t, b)


@known_bug(
    "000-158",
    "design document 000: we simply delete relevant view building tasks",
    breaks=ViewCoordinator.others_stay_in_their_batch,
    sizes={Base: 1, Tablet: 1, Shard: 1},
)
class TheBatchOfADroppedViewIsAborted(ViewCoordinator):
    """A batch was aborted with the view that was dropped: the tablet was read anew for the others."""

    @action(by=CLIENT, spends=ViewCoordinator.drops)
    def drop_view(self, v: Term[View]) -> None:
        """A view is dropped, and the batches that are for it are aborted."""
        super().drop_view(v)
        for s in Shard:
            mine = self.batch[s].views.has(v)
            self.batch[s].base = choose(mine, None, self.batch[s].base)
            self.batch[s].tablet = choose(mine, None, self.batch[s].tablet)
            self.batch[s].done = self.batch[s].done & ~mine
            self.called.put(s, self.called.has(s) & ~mine)
            for u in View:
                self.batch[s].views.put(u, self.batch[s].views.has(u) & ~mine)


@known_bug(
    "000-182",
    ATTACHED,
    breaks=ViewCoordinator.work_goes_on_for_whoever_asks,
    sizes={Base: 1, Tablet: 1, Shard: 1},
    budgets={ViewCoordinator.staging_sstables: 0},
)
class OneDroppedViewEndsTheBatch(ViewCoordinator):
    """When one view of a batch was dropped the batch was given up, and begun anew for the others: who dropped one view a day
    never had the others built.
    """

    @action(by=WORKER, fair=WEAK)
    def observe_deletion(self, s: Term[Shard], t: Term[Tablet], b: Term[Base]) -> None:
        """The worker sees that a task of its batch is not in group0 any more."""
        require(self._is_batch(s, t, b), "the shard has a batch")
        gone = some(~self.building[v].has(t) for v in self.batch[s].views)
        require(gone | ~self._is_still_wanted(s, t, b), "a task of it is not in group0")
        self._end_batch(s)


@known_bug(
    "000-208",
    REMEMBERED,
    breaks=ViewCoordinator.work_goes_on_for_whoever_asks,
    sizes={Base: 1, Tablet: 1, Shard: 1},
    budgets={ViewCoordinator.restarts: 1, ViewCoordinator.staging_sstables: 0},
)
class RestartedShardsAreInterrupted(ViewCoordinator):
    """A shard whose node had once restarted gave its batch up for each new coordinator."""

    unsafe: SetVar[Shard] = set_of(Shard)

    @action(by=WORKER, spends=ViewCoordinator.restarts)
    def restart(self, s: Term[Shard]) -> None:
        """The shard's node restarts, which is noted."""
        super().restart(s)
        self.unsafe.add(s)

    @action(by=COORDINATOR, spends=ViewCoordinator.leader_changes)
    def change_leader(self) -> None:
        """The new coordinator interrupts shards whose node has restarted."""
        super().change_leader()
        for s in Shard:
            batch, lost = self.batch[s], self.unsafe.has(s)
            batch.base = choose(lost, None, batch.base)
            batch.tablet = choose(lost, None, batch.tablet)
            for v in View:
                batch.views.put(v, batch.views.has(v) & ~lost)
            batch.done = batch.done & ~lost


@known_bug(
    "000-212",
    "design document 000: it can execute only one batch per shard",
    breaks=ViewCoordinator.running_batches_are_not_replaced,
    sizes={Base: 1, Tablet: 1, Shard: 1},
    budgets={ViewCoordinator.staging_sstables: 0},
)
class ALaterViewJoinsTheBatch(ViewCoordinator):
    """A view that was started while a batch of its table ran joined that: what the batch had read by then was never in it."""

    @action(by=COORDINATOR, fair=WEAK)
    def start_view(self, v: Term[View]) -> None:
        """The view is started, and its tasks join the batches that run."""
        super().start_view(v)
        for s in Shard:
            batch = self.batch[s]
            of_table = some((batch.base == self.table[v]) & (batch.tablet == t) for t in Tablet)
            joins = of_table & ~batch.views.is_empty() & ~batch.done
            batch.views.put(v, batch.views.has(v) | joins)


@known_bug(
    "000-217",
    "design document 000: is any view started but not finished yet?",
    breaks=ViewCoordinator.views_that_were_started_are_built,
    sizes={Base: 1, Tablet: 1, Shard: 1},
    budgets={ViewCoordinator.staging_sstables: 0},
)
class NewLeadersStartViewsAnew(ViewCoordinator):
    """A coordinator that took over found the processed table's views CREATED, and started them: to the eyes of who asked they
    had not begun, and what was streamed meanwhile went to the normal directory.
    """

    @action(by=COORDINATOR, spends=ViewCoordinator.leader_changes)
    def change_leader(self) -> None:
        """The raft leader changes: views that are being built are to be started."""
        super().change_leader()
        for v in View:
            started = self.status[v] == ViewStatus.started
            self.status[v] = choose(started, ViewStatus.created, self.status[v])


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
    "000-334",
    "design document 000, View building worker: it does no group0 operation to mark tasks as finished",
    breaks=ViewCoordinator.tasks_are_finished_by_answers,
    sizes={Base: 1, View: 1, Tablet: 1, Shard: 1},
)
class WorkersRemoveStagingTasks(ViewCoordinator):
    """A worker, whose registrator stores process_staging tasks, removed them as well when they were done, and nobody had
    called for them.
    """

    @action(by=WORKER, fair=WEAK)
    def remove_processed(self, s: Term[Shard], t: Term[Tablet], b: Term[Base]) -> None:
        """The worker removes the task of its batch."""
        batch = self.batch[s]
        require(self._is_batch(s, t, b) & batch.done, "the batch is done")
        require(batch.views.is_empty() & ~self.called.has(s), "of staging sstables, for nobody")
        self.staging[b].discard(t)
        self._end_batch(s)


@known_bug("000-335", FINISHED, breaks=ViewCoordinator.ranges_are_built_once, sizes={Base: 1})
class NewLeadersStoreAllRanges(ViewCoordinator):
    """A coordinator that took over stored a task for each tablet of the views that were being built, also for those that were
    in them: a large view was begun anew with each leader.
    """

    @action(by=COORDINATOR, spends=ViewCoordinator.leader_changes)
    def change_leader(self) -> None:
        """The raft leader changes: all ranges of the started views have tasks."""
        super().change_leader()
        for v in View:
            for t in Tablet:
                again = self.status[v] == ViewStatus.started
                self.building[v].put(t, self.building[v].has(t) | again)


@known_bug("000-336", FINISHED, breaks=ViewCoordinator.ranges_are_built_once, sizes={Base: 1})
class ANewViewBeginsTheTableAnew(ViewCoordinator):
    """CREATE MATERIALIZED VIEW stored the tasks of all views of the table that were not built, so that a tablet was read once
    for all of them: the others lost what they had.
    """

    @action(by=CLIENT)
    def create_view(self, v: Term[View]) -> None:
        """A view is created, with tasks for all views of its table."""
        require(self.status[v] == ViewStatus.none, "not created yet")
        require(~self._is_dropped_with_its_table(v), "its table is there")
        self.status[v] = ViewStatus.created
        for u in View:
            again = (self.table[u] == self.table[v]) & (self.status[u] == ViewStatus.started)
            for t in Tablet:
                self.building[u].put(t, self.building[u].has(t) | again | (u == v))


@known_bug(
    "000-337",
    REGISTERED,
    breaks=ViewCoordinator.staging_tasks_are_created_for_something,
    sizes={Base: 1, View: 1},
)
class TheWholeTableIsProcessed(ViewCoordinator):
    """A staging sstable that was registered made a task for each tablet of its table: most of them found none."""

    @action(by=WORKER, spends=ViewCoordinator.staging_sstables)
    def register_staging(self, b: Term[Base], t: Term[Tablet]) -> None:
        """A staging sstable is registered, and a task for every tablet of the table."""
        require(~self.staging[b].has(t), "no such task waits")
        require(self._has_views(b), "the table has a view")
        for other in Tablet:
            self.staging[b].add(other)
        self.staged[b].add(t)


@known_bug(
    "000-338",
    REGISTERED,
    breaks=ViewCoordinator.staging_tasks_are_created_for_something,
    sizes={Base: 1, View: 1},
)
class NewLeadersProcessAllTablets(ViewCoordinator):
    """A coordinator that took over had the staging directories of all tablets of the table looked at, as it did not know which
    ones had been.
    """

    @action(by=COORDINATOR, spends=ViewCoordinator.leader_changes)
    def change_leader(self) -> None:
        """The raft leader changes: every tablet of the table that is processed has a process_staging task."""
        super().change_leader()
        for b in Base:
            for t in Tablet:
                looked_at = (self.processed == b) & self._has_views(b)
                self.staging[b].put(t, self.staging[b].has(t) | looked_at)


BUGS = known_bugs_in(globals())

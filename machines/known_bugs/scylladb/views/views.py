"""Bugs of ScyllaDB's view building, and mistakes that design document 000 invites (`000-1` and on)."""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.views.view_building import Task, ViewBuilding
from stagewright.machines.scylladb.views.view_coordinator import (
    ViewStatus,
)
from stagewright.machines.scylladb.views.view_destinations import (
    Destination,
    Migration,
    Place as SstablePlace,
    Replica,
    Sstable,
    View,
    ViewDestinations,
)
from stagewright.machines.scylladb.views.view_range import ViewRange
from stagewright.machines.scylladb.views.view_resize import (
    Ids,
    Slot,
    ViewResize,
)
from stagewright.machines.scylladb.views.view_staging import (
    WEAK,
    Place,
    Sstable as StagingSstable,
    ViewStaging,
)
from stagewright.machines.scylladb.views.view_task import TOPOLOGY, WORKER, Life, ViewTask, Work
from stagewright.machines.scylladb.views.view_updates import Key, ViewUpdates
from stagewright.machines.scylladb.views.view_wakeups import ViewWakeups
from stagewright.machines.scylladb.views.view_worker import ViewWorker
from stagewright.spec import Bool, FlagVar, Number, Term, action, choose, every, flag, require, some
from stagewright.spec.known_bugs import NotFound, known_bug, known_bugs_in


@known_bug(
    "V01",
    "scylladb #19149",
    breaks=ViewStaging.processed_sstables_are_in_the_view,
    budgets={ViewStaging.moves: 1, ViewStaging.restarts: 0},
)
class StagingIsProcessedInTransition(ViewStaging):
    """A pending replica processes a staging sstable as it comes, before it is paired with a view replica:
    its view updates are dropped silently, and the sstable leaves the staging directory.
    """

    def _is_at_rest(self) -> None:
        """Nobody asks."""


@known_bug(
    "V02",
    "scylladb #26204",
    breaks=ViewWakeups.finished_batches_are_reported,
    budgets={ViewWakeups.sstables: 0, ViewWakeups.changes: 0},
)
class ObserverSleepsWithoutLooking(ViewWakeups):
    """A batch finishes while the observer updates its state, and its broadcast wakes nobody: the observer
    then goes to sleep, and the batch is never reported.
    """

    def _observer_may_sleep(self) -> None:
        """The wait has no predicate."""


@known_bug(
    "V04",
    "scylladb #26691",
    breaks=(ViewBuilding.aborted_tasks_are_of_tablets_in_transition, ViewBuilding.views_are_built),
    budgets={ViewTask.lost_calls: 0, ViewTask.leader_changes: 0, ViewTask.restarts: 0},
)
class RollbackOfThePendingReplica(ViewBuilding):
    """A migration that is undone rolls back the tasks of the pending replica, which has none. Those of the
    leaving replica stay aborted, and the view is never built.
    """

    def _is_rolled_back(self, t: Term[Task]) -> Bool:
        of_pending = some(self._is_pending(n) & (self.replica[t] == n) for n in Node)
        return (self.tasks[t].life == Life.aborted) & of_pending


@known_bug(
    "V06",
    "SCYLLADB-2312",
    breaks=ViewStaging.no_reference_to_removed_sstables,
    sizes={StagingSstable: 1},
    budgets={ViewStaging.restarts: 0},
)
class CleanupForgetsOneQueue(ViewStaging):
    """The cleanup of a tablet purges the staging sstables that have a task, not those that are queued: the
    registrator creates a task for an sstable which is gone, and that is tried again for ever.
    """

    def _forget_unregistered(self) -> None:
        """The queue is left as it is."""


@known_bug(
    "V07",
    "SCYLLADB-2781",
    breaks=ViewWorker.built_views_are_complete,
    budgets={ViewWorker.restarts: 0},
)
class ViewsAreReadAfterTheFlush(ViewWorker):
    """The worker flushes the base table and only then reads which views there are. A row written after the
    flush and before the newest view is neither in an sstable nor had it an update for that view.
    """

    def _note_flushed(self) -> None:
        self.flushed_views = self.flushed_views | self.created


@known_bug(
    "V09",
    "scylladb #26244",
    breaks=(ViewResize.staging_sstables_have_a_task, ViewResize.staging_sstables_are_processed),
    budgets={ViewResize.resizes: 1},
)
class StagingStaysUnderTheOldToken(ViewResize):
    """Two tablets merge, and their tasks become one with a new last token. The worker still holds staging
    sstables under the old one, where no task looks.
    """

    def _find_anew(self, after: Ids) -> None:
        """The worker's map is left as it is."""


@known_bug(
    "V11",
    "SCYLLADB-3772",
    breaks=ViewWakeups.queued_sstables_get_a_task,
    budgets={ViewWakeups.batches: 0, ViewWakeups.changes: 0},
)
class RegistratorSleepsWithoutLooking(ViewWakeups):
    """An sstable is queued after the registrator has released the mutex and before it waits: the wait has
    no predicate, and the sstable gets no task.
    """

    def _registrator_may_sleep(self) -> None:
        """The wait has no predicate."""


@known_bug(
    "V12",
    "SCYLLADB-2879",
    breaks=ViewWakeups.fibers_do_not_wait_for_each_other,
    budgets={ViewWakeups.batches: 0},
)
class RegistratorKeepsTheMutex(ViewWakeups):
    """The registrator holds the staging mutex while it waits for group0 to apply its command; the observer
    holds group0's mutex while it waits for the staging mutex.
    """

    def _release_before_adding(self) -> None:
        """The mutex is kept."""


@known_bug(
    "V19",
    "scylladb #27298",
    breaks=ViewWakeups.stored_tasks_are_worked_on,
    budgets={ViewWakeups.sstables: 0, ViewWakeups.batches: 0, ViewWakeups.changes: 0},
)
class CoordinatorSleepsWithoutLooking(ViewWakeups):
    """The coordinator's loop releases the group0 guard and only then waits: what happens in between wakes nobody, and
    a task that is stored then is not worked on.
    """

    def _loop_may_sleep(self) -> None:
        """The wait has no predicate."""


@known_bug(
    "V15",
    "scylladb bc4a4cc075",
    breaks=(ViewResize.missing_ranges_have_a_task, ViewResize.built_views_are_complete),
    budgets={ViewResize.staging_sstables: 0},
)
class MergedTaskByHalving(ViewResize):
    """Where only some tablets merge, the new id of a tablet is not half of the old one: the task is created
    for the wrong tablet.
    """

    def _becomes_in_merge(self, s: Term[Slot], new: Number, _after: Ids) -> Bool:
        return self._halves(s, new)


@known_bug(
    "V16",
    "scylladb #27956",
    breaks=(ViewStaging.staging_sstables_are_known, ViewStaging.staging_sstables_are_processed),
    sizes={StagingSstable: 1},
    budgets={ViewStaging.moves: 1},
)
class DiscoveryBeforeLoading(ViewStaging):
    """After a restart the worker looks for staging sstables before the tables' sstables are loaded: it
    finds none, and does not look again.
    """

    def _is_loaded(self) -> None:
        """Nobody asks."""


@known_bug(
    "V17",
    "scylladb #26523",
    breaks=ViewRange.built_views_are_complete,
    budgets={ViewRange.restarts: 0},
)
class EmptyBatchMeansBuilt(ViewRange):
    """After a reshard the reader returns no partitions up to the end of the ring, which is taken for the
    end of the scan: the view is marked as built although it has not come round.
    """

    def _whole_range_is_scanned(self) -> None:
        require(~some(self._is_ahead(t) for t in self.rows), "no partition is returned")


@known_bug(
    "V18",
    "scylladb PR #25776",
    breaks=ViewDestinations.built_views_are_complete,
)
class StagingIsForgottenOnTheWay(ViewDestinations):
    """A tablet migrates with staging sstables by file streaming: the destination ignores that they were in
    staging, puts them into the base directory, and their view updates are never generated.
    """

    def _after_migration(self, _s: Term[Sstable], /) -> Term[Destination]:
        return self.how_far().column(lambda views: views.other)


@known_bug(
    "000-1",
    "design document 000, Staging sstables",
    breaks=ViewDestinations.built_views_are_complete,
    sizes={View: 2},
)
class OnlyWhereAllViewsAreBuilt(ViewDestinations):
    """The last question is read as it is written, "All views built": a repaired sstable of a table with a view
    that is built and one that is not started yet goes to the normal directory.
    """

    def _after_repair(self) -> Term[Destination]:
        all_built = every(self.status[v].any_of(ViewStatus.none, ViewStatus.success) for v in View)
        started = some(self.status[v] == ViewStatus.started for v in View)
        decided = super()._after_repair()
        return choose(all_built | started, decided, Destination.normal_directory)


@known_bug(
    "000-172",
    "design document 000, Staging sstables: create view building tasks for this sstable",
    breaks=ViewDestinations.sstables_are_staged_while_a_view_is_built,
)
class RepairedRowsOfUnfinishedViewsAreRefused(ViewDestinations):
    """While a view was being built, a repair took its rows for those that the builder is about to read, and wrote none."""

    @action(by=TOPOLOGY)
    def repair(self, r: Term[Replica], s: Term[Sstable]) -> None:
        """A repair brings rows, and they are written where no view is being built."""
        require(self._serves(r), "the tablet is not in transition")
        require(self._is_nowhere(s), "a new sstable")
        building = some(self.status[v] == ViewStatus.started for v in View)
        self.place[r][s] = choose(building, SstablePlace.nowhere, self._put(self._after_repair()))


@known_bug(
    "000-2",
    "design document 000, Staging sstables",
    breaks=ViewDestinations.built_views_are_complete,
)
class PendingReplicaExecutesTasks(ViewDestinations):
    """The tasks of staging sstables that were streamed are executed at once, while the replica is pending: it is
    not paired with a view replica, and its updates are dropped.
    """

    def _serves(self, r: Term[Replica], /) -> Bool:
        pending = (self.migration == Migration.under_way) & (r == Replica.pending)
        return pending | super()._serves(r)


@known_bug(
    "000-3",
    "design document 000, Lifetime of a task",
    breaks=ViewUpdates.the_view_is_what_the_base_row_says,
    budgets={ViewUpdates.redos: 0},
)
class UpdatesHaveTheTimeOfTheBatch(ViewUpdates):
    """The batch gives its updates the time at which it ends, not that of the row which it has read: the view
    row of a value that was overwritten meanwhile comes back.
    """

    def _batch_timestamp(self) -> Number:
        return self._now()


@known_bug(
    "000-4",
    "design document 000, View building task",
    breaks=ViewUpdates.the_view_is_what_the_base_row_says,
    budgets={ViewUpdates.redos: 0},
)
class WritesDoNotReadBefore(ViewUpdates):
    """A write updates the view without reading the row before: the view row of the old value stays."""

    def _is_replaced(self, old: Key) -> Bool:
        return (self.value == old) & ~self.created


@known_bug(
    "000-5",
    "design document 000, View building task",
    breaks=(
        ViewUpdates.the_view_is_what_the_base_row_says,
        ViewUpdates.rows_come_into_the_view,
    ),
    budgets={ViewUpdates.redos: 0},
)
class OnlyBuiltViewsHaveLiveUpdates(ViewUpdates):
    """A write updates the view only if its task is done: what comes after the batch has read is in no update."""

    def _has_live_updates(self) -> Bool:
        return self.work == Work.done


@known_bug(
    "000-6",
    "design document 000, View building worker",
    breaks=ViewBuilding.one_batch_on_a_shard,
    budgets={ViewTask.lost_calls: 0, ViewTask.leader_changes: 0, ViewTask.restarts: 0},
)
class OneBatchIsLeftToTheCoordinator(ViewBuilding):
    """The worker starts a batch for whatever call comes, as the text has it: while a task is executed that was
    aborted meanwhile, the coordinator calls for the one that has taken its place.
    """

    def _has_no_batch(self, t: Term[Task], n: Term[Node]) -> None:
        require(self.replica[t] == n, "the task is the replica's")


@known_bug(
    "000-7",
    "design document 000, RPC",
    breaks=ViewTask.only_the_current_coordinator_starts_work,
    budgets={ViewTask.restarts: 0},
)
class TermsAreNotCompared(ViewTask):
    """A request of a coordinator whose term is over starts a batch."""

    def _has_current_term(self) -> None:
        require(~self.late.is_empty(), "a request arrives, of whatever term")


@known_bug(
    "000-14",
    "design document 000, View building task",
    breaks=(
        ViewStaging.staging_sstables_are_known,
        ViewStaging.staging_sstables_are_processed,
    ),
    sizes={StagingSstable: 1},
    budgets={ViewStaging.moves: 1, ViewStaging.restarts: 0},
)
class TasksAreStoredBeforeTheirSstablesAreHeld(ViewStaging):
    """The registrator takes sstables off its queue when their task is stored, and holds them for the task a step
    later: a batch that begins in between finds none, its task is removed, and they wait for ever.
    """

    stored: FlagVar = flag()

    @action(by=WORKER, fair=WEAK)
    def register(self) -> None:
        require(~self.registering.is_empty() & ~self.stored, "a command is under way")
        self.waiting = choose(self._needs_no_task(), self.waiting, self._one_more())
        self.to_register = self.to_register - self.registering
        self.stored = True

    @action(by=WORKER, fair=WEAK)
    def hold(self) -> None:
        """What was to be registered waits for the batch."""
        require(self.stored, "the task is stored")
        for s in StagingSstable:
            there = self.registering.has(s) & (self.place[s] == Place.staging)
            self.staging.put(s, self.staging.has(s) | there)
        self.registering = frozenset()
        self.stored = False


BUGS = known_bugs_in(globals())
NOT_FOUND: tuple[NotFound, ...] = ()

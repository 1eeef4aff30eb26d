"""Mistakes put back into `ViewDestinations`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.scylladb.views.view_coordinator import ViewStatus
from stagewright.machines.scylladb.views.view_destinations import (
    CLIENT,
    WEAK,
    Destination,
    Migration,
    Place,
    Replica,
    Sstable,
    View,
    ViewDestinations,
    Views,
)
from stagewright.machines.scylladb.views.view_task import COORDINATOR, TOPOLOGY, WORKER
from stagewright.spec import (
    Bool,
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

MARKED = "design document 000, Schema: once the view is built, an entry is created"
DROPPED = "design document 000: we simply delete relevant view building tasks"
ALL_STAGING = "design document 000: process all staging sstables associated with the tablet replica"
FINISHED = 'design document 000: tasks are removed, "permanently marking them as finished"'
CREATED = "design document 000: tasks are created when a view or index is created"


# -- what goes wrong -------------------------------------------------------------------------------


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
    "000-48",
    'design document 000: process_staging is to "generate view updates and move to base directory"',
    breaks=ViewDestinations.processed_sstables_are_in_the_views,
)
class OnlyScannedViewsAreUpdated(ViewDestinations):
    """A process_staging task updated the views whose range had been built: for the others, it was said, that will find
    the sstable in the base directory.
    """

    def _process(self, r: Term[Replica], s: Term[Sstable]) -> None:
        self.place[r][s] = Place.base
        paired = (r == Replica.leaving) | (self.migration == Migration.over)
        for v in View:
            self.view[v].put(s, self.view[v].has(s) | (paired & self.scanned.has(v)))


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
    "000-117",
    "design document 000, Schema: once the view is built, an entry is created",
    breaks=ViewDestinations.views_are_built_one_by_one,
)
class ViewsWaitForEachOther(ViewDestinations):
    """A view was built when the ranges of all views of its table that had been started were."""

    @action(by=COORDINATOR, fair=WEAK)
    def mark_view_built(self, v: Term[View]) -> None:
        """No view of the table has a task left."""
        super().mark_view_built(v)
        scanned = every((self.status[u] != ViewStatus.started) | self.scanned.has(u) for u in View)
        require(scanned, "the ranges of all views are built")


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
        self.place[r][s] = choose(building, Place.nowhere, self._put(self._after_repair()))


@known_bug(
    "000-252",
    "design document 000: Does the table have any views?",
    breaks=ViewDestinations.sstables_without_need_are_not_staged,
)
class DroppedViewsAreCounted(ViewDestinations):
    """The decision asked whether a view had been created, and counted those that were dropped since: a table whose views
    were all dropped was one whose views are built, and its repaired sstables were staged.
    """

    def how_far(self) -> Term[Views]:
        """The questions of 000, of every view that there ever was."""
        none = every(self.status[v] == ViewStatus.none for v in View)
        exists = some(self._exists(v) for v in View)
        return choose(none | exists, super().how_far(), Views.built)


@known_bug(
    "001-54",
    "design document 001: the new replica set will reflect all successful writes",
    breaks=ViewDestinations.nothing_is_lost_by_a_migration,
    sizes={View: 1},
)
class StagingStaysBehind(ViewDestinations):
    """A migration did not wait until sstables that waited for a task were streamed: some stayed behind, and were removed with
    their replica, though the tasks for them went along.
    """

    def _is_streamed(self, s: Term[Sstable]) -> Bool:
        return super()._is_streamed(s) | (self.place[Replica.leaving][s] == Place.with_task)


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


# -- what is never done ----------------------------------------------------------------------------


@known_bug("000-251", ALL_STAGING, breaks=ViewDestinations.staging_sstables_are_processed)
class TablesWithoutViewsAreNotProcessed(ViewDestinations):
    """The coordinator chose among tables that have views: what waited in staging when the last one was dropped was read by
    nobody, and never came into the base directory.
    """

    @action(by=WORKER, fair=WEAK)
    def process_staging(self, r: Term[Replica], s: Term[Sstable]) -> None:
        """The sstable's task is executed, as the table has a view."""
        super().process_staging(r, s)
        require(some(self._exists(v) for v in View), "the table has a view")


@known_bug("000-253", DROPPED, breaks=ViewDestinations.staging_sstables_are_processed)
class AllTasksGoWithAView(ViewDestinations):
    """Whoever dropped a view deleted the tasks of its table, of either type: sstables that waited for the sake of another
    view had no task any more.
    """

    without_task: SetVar[Sstable] = set_of(Sstable)

    @action(by=CLIENT, spends=ViewDestinations.drops)
    def drop_view(self, v: Term[View]) -> None:
        """A view is dropped, with all process_staging tasks of its table."""
        super().drop_view(v)
        for s in Sstable:
            waits = some(self.place[r][s] == Place.with_task for r in Replica)
            self.without_task.put(s, self.without_task.has(s) | waits)

    @action(by=WORKER, fair=WEAK)
    def process_staging(self, r: Term[Replica], s: Term[Sstable]) -> None:
        """The sstable's task is executed, if there is one."""
        super().process_staging(r, s)
        require(~self.without_task.has(s), "there is a task")

    @action(by=COORDINATOR, fair=WEAK)
    def mark_view_built(self, v: Term[View]) -> None:
        """The view has no task left, and the table none in group0."""
        require(self.status[v] == ViewStatus.started, "the view is being built")
        require(self.scanned.has(v), "the range is built")
        waits = some(
            (self.place[r][s] == Place.with_task) & ~self.without_task.has(s)
            for r in Replica
            for s in Sstable
        )
        require(~waits, "no staging task is left")
        self.status[v] = ViewStatus.success


@known_bug("000-343", FINISHED, breaks=ViewDestinations.ranges_are_built_once)
class MovedRangesAreBuiltAgain(ViewDestinations):
    """A tablet that had moved got build_range tasks for all views that were being built, as if none of them had been read at its
    old replica.
    """

    @ViewDestinations.migration.step(Migration.under_way, Migration.over, by=TOPOLOGY, fair=WEAK)
    def end_migration(self) -> None:
        """Everything is streamed: the tablet is to be read for every view that is being built."""
        require(every(self._is_streamed(s) for s in Sstable), "everything is streamed")
        for s in Sstable:
            self.place[Replica.leaving][s] = Place.nowhere
        for v in View:
            self.scanned.put(v, self.scanned.has(v) & (self.status[v] != ViewStatus.started))


@known_bug("000-344", FINISHED, breaks=ViewDestinations.ranges_are_built_once)
class ADropBeginsTheOthersAnew(ViewDestinations):
    """When a view was dropped the tasks of its table were deleted, and those of the others stored once more, finished or not."""

    @action(by=CLIENT, spends=ViewDestinations.drops)
    def drop_view(self, v: Term[View]) -> None:
        """A view is dropped: the tablet is to be read for the others."""
        require(self._exists(v), "there is such a view")
        self.status[v] = ViewStatus.dropped
        for u in View:
            kept = (u != v) & (self.status[u] == ViewStatus.success)
            self.scanned.put(u, self.scanned.has(u) & kept)
        self.view[v] = frozenset()


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "000-21",
    "design document 000: Is any view started but not finished yet?",
    breaks=ViewDestinations.tables_are_repaired_while_views_are_built,
)
class RepairWaitsForViews(ViewDestinations):
    """A table is not repaired until what builds one of its views has read it."""

    @action(by=TOPOLOGY)
    def repair(self, r: Term[Replica], s: Term[Sstable]) -> None:
        """A repair brings rows, if no view is about to be built of them."""
        super().repair(r, s)
        read = every((self.status[v] != ViewStatus.started) | self.scanned.has(v) for v in View)
        require(read, "no range is to be built")


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
        waits = some(self.place[r][s] == Place.with_task for r in Replica for s in Sstable)
        require(~waits, "no sstable waits")


@known_bug("000-83", CREATED, breaks=ViewDestinations.views_are_created_at_any_time)
class CreatingWaitsForStagedRows(ViewDestinations):
    """CREATE MATERIALIZED VIEW waited until no sstable of the table was in the staging directory."""

    @action(by=CLIENT)
    def create_view(self, v: Term[View]) -> None:
        """A view is created of a table without staging sstables."""
        require(~some(self._waits_anywhere(s) for s in Sstable), "nothing is staged")
        super().create_view(v)


@known_bug("000-127", MARKED, breaks=ViewDestinations.views_are_built_while_the_tablet_moves)
class ViewsOfMovingTabletsAreNotMarked(ViewDestinations):
    """A view whose ranges were built was marked when the tablet had moved."""

    @action(by=COORDINATOR, fair=WEAK)
    def mark_view_built(self, v: Term[View]) -> None:
        """The view has no task left, and no tablet moves."""
        super().mark_view_built(v)
        require(self.migration != Migration.under_way, "the tablet is not in transition")


@known_bug(
    "000-128",
    "design document 000: a task is stored in group0 state to be processed in the future",
    breaks=ViewDestinations.views_are_started_at_any_time,
)
class ViewsStartWhenNothingMoves(ViewDestinations):
    """No view was started while a tablet moved: what it streamed went to the normal directory, as for a view not started."""

    @action(by=COORDINATOR, fair=WEAK)
    def start_view(self, v: Term[View]) -> None:
        """The coordinator starts to build the view, at rest."""
        super().start_view(v)
        require(self.migration != Migration.under_way, "the tablet is not in transition")


@known_bug(
    "000-129",
    'design document 000: build_range is to "generate view updates from the tablet replica"',
    breaks=ViewDestinations.ranges_are_built_whatever_is_staged,
)
class RangesWaitForStagedRows(ViewDestinations):
    """A range was built when all that was staged at its tablet had been processed, so that it was read once for all."""

    @action(by=WORKER, fair=WEAK)
    def build_range(self, r: Term[Replica], v: Term[View]) -> None:
        """The view's task is executed: no sstable is staged."""
        super().build_range(r, v)
        require(~some(self._waits_anywhere(s) for s in Sstable), "nothing is staged")


@known_bug("000-250", DROPPED, breaks=ViewDestinations.views_are_dropped_at_any_time)
class DropsWaitForStagedRows(ViewDestinations):
    """A view was not dropped while an sstable of its table waited in staging, which was there to update it."""

    @action(by=CLIENT, spends=ViewDestinations.drops)
    def drop_view(self, v: Term[View]) -> None:
        """A view is dropped when nothing of its table waits."""
        super().drop_view(v)
        require(every(~self._waits_anywhere(s) for s in Sstable), "no sstable is staged")


@known_bug(
    "000-277",
    "design document 000, Tablet operations: new tasks are created at the end",
    breaks=ViewDestinations.migrations_end_whatever_waits_for_them,
)
class MigrationsWaitForNewViews(ViewDestinations):
    """A migration did not end while a view of the table was created, but not started yet."""

    @ViewDestinations.migration.step(Migration.under_way, Migration.over, by=TOPOLOGY, fair=WEAK)
    def end_migration(self) -> None:
        """Everything is streamed, and every view is started."""
        require(every(self._is_streamed(s) for s in Sstable), "everything is streamed")
        new = some(self.status[v] == ViewStatus.created for v in View)
        require(~new, "every view is started")
        for s in Sstable:
            self.place[Replica.leaving][s] = Place.nowhere


@known_bug(
    "000-278",
    "design document 000: at some point, the coordinator will decide to process it",
    breaks=ViewDestinations.sstables_are_processed_when_their_ranges_are_built,
)
class StagingWaitsForNewViews(ViewDestinations):
    """A coordinator had staging sstables processed for all views at once, when all of them were started."""

    @action(by=WORKER, fair=WEAK)
    def process_staging(self, r: Term[Replica], s: Term[Sstable]) -> None:
        """The sstable's task is executed for views that are all started."""
        new = some(self.status[v] == ViewStatus.created for v in View)
        require(~new, "every view is started")
        super().process_staging(r, s)


@known_bug(
    "000-279",
    "design document 000, Tablet operations: the coordinator needs to react to a migration",
    breaks=ViewDestinations.sstables_are_streamed_whatever_waits_for_them,
)
class SstablesAreStreamedWhenTheirViewsAreMarked(ViewDestinations):
    """Streaming waited until a view whose rows were all there was marked as built, so as to stage nothing for it."""

    @action(by=TOPOLOGY, fair=WEAK)
    def stream(self, s: Term[Sstable]) -> None:
        """The pending replica gets a copy of an sstable that no view is about to have been built from."""
        waits = some(self._waits_anywhere(u) for u in Sstable)
        about = some(
            (self.status[v] == ViewStatus.started) & self.scanned.has(v) & ~waits for v in View
        )
        require(~about, "no view is about to be built")
        super().stream(s)


@known_bug(
    "000-324",
    "design document 000, Staging sstables: staging_directly_to_generator",
    breaks=ViewDestinations.generators_wait_for_no_view,
)
class TheGeneratorWaitsForTheBuilder(ViewDestinations):
    """The view update generator rested while a view of the table was built, so that no two updated one view: what a repair had
    brought for the others waited for days.
    """

    @action(by=WORKER, fair=WEAK)
    def generate(self, r: Term[Replica], s: Term[Sstable]) -> None:
        """The generator generates the updates of a table of which no view is built."""
        super().generate(r, s)
        built = some(self.status[v] == ViewStatus.started for v in View)
        require(~built, "no view is being built")


@known_bug(
    "000-325",
    "design document 000, Staging sstables: staging_directly_to_generator",
    breaks=ViewDestinations.generators_wait_for_no_view,
)
class TheGeneratorRestsInTransition(ViewDestinations):
    """What the generator had of a tablet that moved it generated when that was over."""

    @action(by=WORKER, fair=WEAK)
    def generate(self, r: Term[Replica], s: Term[Sstable]) -> None:
        """The generator generates the updates of a tablet at rest."""
        super().generate(r, s)
        require(self.migration != Migration.under_way, "the tablet is not in transition")


BUGS = known_bugs_in(globals())

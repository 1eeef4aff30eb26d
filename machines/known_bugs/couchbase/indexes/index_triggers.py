"""Mistakes put back into `IndexTriggers`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.couchbase.indexes.index_triggers import (
    CHANGES,
    CLIENT,
    FRAGMENTATION,
    MANAGER,
    TIME,
    WEAK,
    IndexTriggers,
)
from stagewright.spec import Bool, action, least, require
from stagewright.spec.known_bugs import known_bug, known_bugs_in

BY = "design document 004: by time duration or number of changes threshold"
ANYTIME = 'design document 004: "updates can happen to the index file anytime"'
REQUESTS = 'design document 004: the view engine "just performs such requests"'


# -- what goes wrong -------------------------------------------------------------------------------


@known_bug(
    "004-14",
    'design document 004: removed "during the next cleanup cycle"',
    breaks=IndexTriggers.a_cleanup_has_something_to_do,
    budgets={IndexTriggers.writes: 0},
)
class EveryCycleCleansUp(IndexTriggers):
    """The cleaner walks the trees in every cycle, whether or not a partition is to be removed."""

    @action(by=MANAGER, fair=WEAK)
    def trigger_cleanup(self) -> None:
        """It is time for it."""
        require(~self.updater & ~self.compactor & ~self.cleaner, "no worker runs")
        self.cleaner = True
        self.all_known = True


@known_bug(
    "004-43",
    "design document 004: all the updates that happened since the last time the updater ran",
    breaks=IndexTriggers.what_is_not_loaded_waits,
)
class AnUpdateLeavesNothing(IndexTriggers):
    """When an update ends no change waits, for it was the last: what came while it ran is never indexed."""

    @action(fair=WEAK)
    def finish_update(self) -> None:
        """The index counts as up to date; the file has grown."""
        require(self.updater, "updater runs")
        self.updater = False
        self.waiting = 0
        self.loaded = 0
        self.waited = 0
        self._append()


@known_bug(
    "004-50",
    "design document 004: the cleanup is a job that is run periodically",
    breaks=IndexTriggers.what_is_to_be_removed_waits,
)
class UpdatesEndTheCleanup(IndexTriggers):
    """An update drops what it meets of partitions in cleanup, and when it ends they count as removed, met or not."""

    @action(fair=WEAK)
    def finish_update(self) -> None:
        """Nothing is to be cleaned up any more."""
        super().finish_update()
        self.to_clean = False


@known_bug("004-51", BY, breaks=IndexTriggers.no_update_comes_too_early)
class TheClockGoesOn(IndexTriggers):
    """The time was not taken back with an update: once it was over, every change had one of its own."""

    @action(by=MANAGER, fair=WEAK)
    def trigger_update(self) -> None:
        """Since the first update some time has gone by."""
        require(~self.updater, "updater does not run")
        require(self._has_many_changes() | self._has_old_changes(), "an update is due")
        self.updater = True
        self.cleaner = False
        self.loaded = self.waiting
        self.since_start = 0


@known_bug(
    "004-55",
    "design document 004: all the updates that happened since the last time the updater ran",
    breaks=IndexTriggers.an_update_loads_all_that_waits,
)
class UpdatesLoadWhatTriggersThem(IndexTriggers):
    """An update loads as many changes as trigger one; what else had been there waits for the next."""

    @action(by=MANAGER, fair=WEAK)
    def trigger_update(self) -> None:
        """The threshold is a limit, too."""
        require(~self.updater, "updater does not run")
        require(self._has_many_changes() | self._has_old_changes(), "an update is due")
        self.updater = True
        self.cleaner = False
        self.loaded = least(self.waiting, CHANGES)
        self.came = 0
        self.elapsed = 0
        self.since_start = 0


@known_bug(
    "004-78",
    "design document 004: after cleanup a partition will not be part of the index any more",
    breaks=IndexTriggers.a_cleanup_removes_all_that_is_to_be_removed,
)
class WorkersGoOnWithLess(IndexTriggers):
    """A partition moved away while the file was compacted, with its rows: when that was done nothing was to be removed."""

    def _stop_workers(self) -> None:
        """They go on with what they know."""


@known_bug(
    "004-150",
    'design document 004: "While doing the compaction, new changes would be happening"',
    breaks=IndexTriggers.updates_stop_no_compaction,
)
class UpdatesStopTheCompactor(IndexTriggers):
    """An update stopped the compactor as it stops the cleaner: a file that was always written to was never compacted."""

    @action(by=MANAGER, fair=WEAK)
    def trigger_update(self) -> None:
        """The updater starts; no other worker goes on."""
        super().trigger_update()
        self.compactor = False
        self.all_known = False


@known_bug(
    "004-259",
    ANYTIME,
    breaks=IndexTriggers.what_comes_to_be_indexed_stops_no_cleaner,
)
class ChangesStopTheCleaner(IndexTriggers):
    """A cleaner was stopped as soon as there was something to index, whether or not an update was due."""

    @action(by=CLIENT, spends=IndexTriggers.writes)
    def write(self) -> None:
        """A document changes, and is to be indexed."""
        super().write()
        self.cleaner = False


# -- what is never done ----------------------------------------------------------------------------


@known_bug(
    "K12-asked",
    "design document 004: by fragmentation threshold",
    breaks=IndexTriggers.fragmented_files_are_compacted,
)
class CompactionWaitsToBeAsked(IndexTriggers):
    """A file could be compacted when it was fragmented, but nobody looked whether one was."""

    @action(by=MANAGER)
    def trigger_compaction(self) -> None:
        """Somebody asks for a compaction, or nobody does."""
        require(~self.compactor, "compactor does not run")
        require(self._is_fragmented(), "the file is fragmented")
        self.compactor = True
        self.cleaner = False
        self.all_known = True


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "004-13",
    'design document 004: by time duration "or" number of changes',
    breaks=IndexTriggers.time_triggers_an_update,
)
class CompactionStopsTheClock(IndexTriggers):
    """A few old changes are not indexed while the file is compacted, however long that takes."""

    def _has_old_changes(self) -> Bool:
        return super()._has_old_changes() & ~self.compactor


@known_bug("004-70", BY, breaks=IndexTriggers.cleanups_wait_only_for_other_workers)
class TheCleanerWaitsForTheUpdater(IndexTriggers):
    """The cleaner ran when all changes were indexed: where some always wait, the rows of partitions that had moved away
    stayed.
    """

    @action(by=MANAGER, fair=WEAK)
    def trigger_cleanup(self) -> None:
        """The cleanup cycle finds a partition in cleanup, and nothing else to do."""
        super().trigger_cleanup()
        require(self.waiting == 0, "no change waits")


@known_bug("004-88", ANYTIME, breaks=IndexTriggers.documents_change_while_workers_run)
class DocumentsWaitForTheUpdate(IndexTriggers):
    """No document changes while an update runs, so that it ends with all changes."""

    @action(by=CLIENT, spends=IndexTriggers.writes)
    def write(self) -> None:
        """A document changes."""
        require(~self.updater, "updater does not run")
        super().write()


@known_bug("004-89", REQUESTS, breaks=IndexTriggers.partitions_move_away_while_workers_run)
class PartitionsStayUntilTheyAreCleanedUp(IndexTriggers):
    """A partition moves away when the cleaner is done with the last one, which it would have to begin again."""

    @action(by=MANAGER, spends=IndexTriggers.moves)
    def remove_partition(self) -> None:
        """A partition has moved to another node."""
        require(~self.cleaner, "cleaner does not run")
        super().remove_partition()


@known_bug(
    "004-122",
    'design document 004: "We cannot stop the view engine updates from happening"',
    breaks=IndexTriggers.compactions_end_while_it_is_updated,
)
class CompactionsEndBetweenUpdates(IndexTriggers):
    """The group went over to the new file when no update ran."""

    @action(fair=WEAK)
    def finish_compaction(self) -> None:
        """The index has a new file."""
        super().finish_compaction()
        require(~self.updater, "updater does not run")


@known_bug(
    "004-128",
    'design document 004: updates are triggered "by time duration"',
    breaks=IndexTriggers.time_triggers_an_update,
)
class EveryChangeBeginsTheTimeAnew(IndexTriggers):
    """An update was triggered when there had been no change for so long: of a document that changed now and then, never."""

    @action(by=CLIENT, spends=IndexTriggers.writes)
    def write(self) -> None:
        """A document changes."""
        super().write()
        self.elapsed = 0


@known_bug(
    "004-222",
    ANYTIME,
    breaks=IndexTriggers.updates_end_while_it_is_compacted,
)
class UpdatesEndWithTheCompaction(IndexTriggers):
    """What was indexed while the file was compacted was seen when that was done, in the new file."""

    @action(fair=WEAK)
    def finish_update(self) -> None:
        """What was there when the updater started is indexed, and no compactor runs."""
        super().finish_update()
        require(~self.compactor, "compactor does not run")


@known_bug("K12-changes", BY, breaks=IndexTriggers.many_changes_trigger_an_update)
class ManyChangesWait(IndexTriggers):
    """However many changes there were, an update was triggered by the time alone."""

    def _has_many_changes(self) -> Bool:
        return (self.waiting >= CHANGES) & self._has_old_changes()


@known_bug(
    "K12-fragmentation",
    "design document 004: by fragmentation threshold",
    breaks=IndexTriggers.fragmentation_triggers_a_compaction,
)
class CompactionWaitsForTheUpdater(IndexTriggers):
    """A file was not compacted while its updater ran: that of a busy index never was."""

    def _is_fragmented(self) -> Bool:
        return (self.fragmentation >= FRAGMENTATION) & ~self.updater


@known_bug("K12-time", BY, breaks=IndexTriggers.time_triggers_an_update)
class FewChangesAreNotIndexed(IndexTriggers):
    """The server asks for both, the time and the number: fewer changes than that stay away for ever."""

    def _has_old_changes(self) -> Bool:
        return super()._has_old_changes() & self._has_many_changes()


@known_bug(
    "004-235",
    ANYTIME,
    breaks=IndexTriggers.cleanups_end_while_documents_change,
)
class CleanupsEndWhenAllIsIndexed(IndexTriggers):
    """The cleaner was done when no change waited: where documents change all the time, it was always stopped before."""

    @action(fair=WEAK)
    def finish_cleanup(self) -> None:
        """The rows of the partition are removed, and nothing is left to index."""
        super().finish_cleanup()
        require(self.waiting == 0, "no change waits")


@known_bug(
    "004-244",
    BY,
    breaks=IndexTriggers.time_goes_by_during_cleanups_and_compactions,
)
class TheClockStandsDuringACompaction(IndexTriggers):
    """The daemon that triggers updates calls the compactor, and counts on when that is done: changes wait longer."""

    @action(by=TIME, fair=WEAK)
    def tick(self) -> None:
        """Nothing is compacted."""
        require(~self.compactor, "compactor does not run")
        super().tick()


BUGS = known_bugs_in(globals())

"""Mistakes put back into `IndexCompaction`: who is refused, or waits."""

from __future__ import annotations

from stagewright.machines.couchbase.indexes.index_compaction import (
    CLEANER,
    CLIENT,
    COMPACTOR,
    UPDATER,
    WEAK,
    Compactor,
    FileNumber,
    IndexCompaction,
)
from stagewright.machines.couchbase.partitions.group_states import Partition
from stagewright.machines.couchbase.partitions.partition_states import MANAGER
from stagewright.spec import Term, action, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

COMPACTION = 'design document 004, "Index compaction in view engine"'
NO_CRASH = {IndexCompaction.crashes: 0, IndexCompaction.lost_headers: 0}
REQUESTS = 'design document 004: the view engine "just performs such requests"'


@known_bug(
    "004-21",
    'design document 004: "switching to the new index file and previous one is removed"',
    breaks=IndexCompaction.previous_files_are_removed_at_once,
)
class TheNextCompactionRemovesIt(IndexCompaction):
    """The previous file is removed as the next compaction is due: until then the disk has both."""

    @action(fair=WEAK)
    def remove_previous(self, f: Term[FileNumber]) -> None:
        """It makes room for the next file."""
        super().remove_previous(f)
        require(self._is_fragmented(), "the next compaction is due")


@known_bug(
    "004-39",
    REQUESTS,
    breaks=IndexCompaction.partitions_are_added_while_it_compacts,
    sizes={Partition: 1},
    budgets=NO_CRASH,
)
class AddedAfterTheCompaction(IndexCompaction):
    """No partition is added to an index while that is compacted."""

    @action(by=MANAGER, spends=IndexCompaction.requests)
    def set_active(self, p: Term[Partition]) -> None:
        """Nothing is compacted, or the index has the partition already."""
        compacts = self.compactor != Compactor.none
        require(self._is_indexed(p) | ~compacts, "no compactor runs without the partition")
        super().set_active(p)


@known_bug(
    "004-40",
    REQUESTS,
    breaks=IndexCompaction.partitions_are_removed_while_it_compacts,
    sizes={Partition: 1},
    budgets=NO_CRASH,
)
class RemovedAfterTheCompaction(IndexCompaction):
    """No partition is removed from an index while that is compacted."""

    @action(by=MANAGER, spends=IndexCompaction.requests)
    def set_cleanup(self, p: Term[Partition]) -> None:
        """Nothing is compacted."""
        require(self.compactor == Compactor.none, "compactor does not run")
        super().set_cleanup(p)


@known_bug(
    "004-75",
    "design document 004: updates can happen to the index file anytime",
    breaks=IndexCompaction.compactions_start_while_it_is_updated,
    sizes={Partition: 1},
    budgets=NO_CRASH,
)
class CompactionsWaitForTheUpdater(IndexCompaction):
    """A file was compacted when its updater had come to an end: of an index that is always behind, never."""

    @action(by=COMPACTOR, fair=WEAK)
    def start_compactor(self) -> None:
        """The fragmentation exceeds the threshold, and no updater runs."""
        super().start_compactor()
        require(self.updating.is_none(), "updater does not run")


@known_bug(
    "004-81",
    'design document 004: a partition in cleanup is removed "during the next cleanup cycle"',
    breaks=IndexCompaction.partitions_are_cleaned_up_while_documents_change,
    budgets=NO_CRASH,
)
class CleanupsWaitForTheUpdater(IndexCompaction):
    """The cleaner ran when nothing was left to index: never, where documents change all the time."""

    @action(by=CLEANER, fair=WEAK)
    def clean(self, p: Term[Partition]) -> None:
        """The index is up to date."""
        super().clean(p)
        require(~some(self._is_behind(q) for q in Partition), "nothing is left to index")


@known_bug(
    "004-123",
    'design document 004: "While doing the compaction, new changes would be happening"',
    breaks=IndexCompaction.compactors_wait_for_no_updater,
    sizes={Partition: 1},
    budgets={IndexCompaction.crashes: 0, IndexCompaction.lost_headers: 0},
)
class CopiesWaitForABatch(IndexCompaction):
    """The trees were copied when no batch was written that the group had yet to take over."""

    @action(by=COMPACTOR, fair=WEAK)
    def copy(self) -> None:
        """Every tree is rebuilt in the new file."""
        super().copy()
        require(self.written.is_empty(), "what is written is taken over")


@known_bug(
    "004-133",
    'design document 004: "Compactor repeats this process until the updater completes all batch of updates"',
    breaks=IndexCompaction.compactions_are_completed_immediately,
    sizes={Partition: 1},
    budgets={IndexCompaction.crashes: 0, IndexCompaction.lost_headers: 0},
)
class CompletedWhenTheIndexIsUpToDate(IndexCompaction):
    """A compaction was completed when no document had changed since the last update."""

    @action(by=COMPACTOR, fair=WEAK)
    def complete(self) -> None:
        """The new file gets its header."""
        super().complete()
        behind = some(self._is_behind(p) for p in Partition)
        require(~behind, "the index is up to date")


@known_bug(
    "004-181",
    COMPACTION,
    breaks=IndexCompaction.previous_files_are_removed_at_once,
    budgets={IndexCompaction.crashes: 0, IndexCompaction.lost_headers: 0},
)
class PreviousFilesWaitForTheUpdater(IndexCompaction):
    """The previous file is removed when the index is up to date: where documents always change it stays, and no other follows."""

    @action(fair=WEAK)
    def remove_previous(self, f: Term[FileNumber]) -> None:
        super().remove_previous(f)
        require(~some(self._is_behind(p) for p in Partition), "nothing is left to index")


@known_bug(
    "004-223",
    COMPACTION,
    breaks=IndexCompaction.updates_go_on_while_it_catches_up,
    sizes={Partition: 1},
    budgets=NO_CRASH,
)
class TheUpdaterRestsForTheCompactor(IndexCompaction):
    """The updater wrote nothing once the trees were copied, so that the compactor caught up."""

    @action(by=UPDATER, fair=WEAK)
    def write_batch(self, p: Term[Partition]) -> None:
        """The updater appends the new nodes to the file, unless the compactor catches up."""
        super().write_batch(p)
        require(self.compactor != Compactor.catching_up, "compactor does not catch up")


@known_bug(
    "K11-documents",
    "design document 004: while doing the compaction, new changes would be happening",
    breaks=IndexCompaction.documents_change_at_any_time,
    sizes={Partition: 1},
    budgets=NO_CRASH,
)
class DocumentsWaitForTheCompactor(IndexCompaction):
    """No document of an index changes while that is compacted."""

    @action(by=CLIENT, spends=IndexCompaction.writes)
    def write(self, p: Term[Partition]) -> None:
        """A document changes when nothing is compacted."""
        super().write(p)
        require(self.compactor == Compactor.none, "compactor does not run")


@known_bug(
    "K11-online",
    "design document 004: we cannot stop the view engine updates from happening",
    breaks=IndexCompaction.updates_start_while_it_compacts,
    sizes={Partition: 1},
    budgets=NO_CRASH,
)
class UpdatesWaitForTheCompactor(IndexCompaction):
    """An index is not updated until its compaction is done."""

    @action(fair=WEAK)
    def start_updater(self) -> None:
        """An updater starts when nothing is compacted."""
        super().start_updater()
        require(self.compactor == Compactor.none, "compactor does not run")


@known_bug(
    "004-237",
    'design document 004: "queries will see updates applied to btree at shortest intervals"',
    breaks=IndexCompaction.updates_are_seen_while_it_compacts,
    budgets=NO_CRASH,
)
class BatchesWaitForTheDeltas(IndexCompaction):
    """No batch was taken over while the compactor applied those before it, so that it would come to an end."""

    @action(fair=WEAK)
    def take_over(self, p: Term[Partition]) -> None:
        """The group takes over the new roots, unless the compactor catches up."""
        super().take_over(p)
        require(self.compactor != Compactor.catching_up, "the compactor does not catch up")


@known_bug(
    "004-238",
    COMPACTION,
    breaks=IndexCompaction.compactors_wait_for_no_updater,
    sizes={Partition: 1},
    budgets=NO_CRASH,
)
class SortFilesAreReadWhenTheUpdaterIsDone(IndexCompaction):
    """The compactor reads the list of sort record files when the updater has sent the last of them: it has all to do then."""

    @action(by=COMPACTOR, fair=WEAK)
    def apply_sort_files(self, p: Term[Partition]) -> None:
        """The updater sends no more."""
        super().apply_sort_files(p)
        require(self.updating.is_none(), "updater does not run")


@known_bug(
    "004-239",
    COMPACTION,
    breaks=IndexCompaction.updaters_wait_for_no_compactor,
    sizes={Partition: 1},
    budgets=NO_CRASH,
)
class UpdatersStayForTheCompactor(IndexCompaction):
    """An updater stays for the compactor that was sent its sort record files, and is stopped for the switch."""

    @action(fair=WEAK)
    def finish_updater(self) -> None:
        """Nothing is compacted."""
        super().finish_updater()
        require(self.compactor == Compactor.none, "compactor does not run")


@known_bug(
    "004-254",
    COMPACTION,
    breaks=IndexCompaction.updaters_wait_for_no_compactor,
    sizes={Partition: 1},
    budgets=NO_CRASH,
)
class UpdatersStayForTheirSortFiles(IndexCompaction):
    """An updater removes its sort record files itself, and stays until the compactor has applied the last of them."""

    @action(fair=WEAK)
    def finish_updater(self) -> None:
        """All is indexed, and applied."""
        super().finish_updater()
        require(self.sort_files.is_empty(), "no sort record file is left")


BUGS = known_bugs_in(globals())

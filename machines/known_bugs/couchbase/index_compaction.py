"""Bugs of compaction: what becomes of the updater, of its sort record files, and of the old file."""

from __future__ import annotations

from stagewright.machines.couchbase.indexes.index_compaction import (
    CLEANER,
    COMPACTOR,
    THRESHOLD,
    UPDATER,
    WEAK,
    Compactor,
    FileNumber,
    IndexCompaction,
)
from stagewright.machines.couchbase.partitions.group_states import Partition, PartitionState
from stagewright.machines.couchbase.partitions.partition_states import LAST_SEQ, MANAGER
from stagewright.spec import (
    Bool,
    Fairness,
    Number,
    Term,
    action,
    choose,
    greatest,
    least,
    number,
    one_of,
    per,
    require,
    some,
)
from stagewright.spec.known_bugs import NotFound, known_bug, known_bugs_in

NO_CRASH = {IndexCompaction.crashes: 0, IndexCompaction.lost_headers: 0}


@known_bug(
    "Z24",
    "MB-7702",
    breaks=IndexCompaction.a_switch_changes_no_state,
    sizes={Partition: 1},
    budgets=NO_CRASH,
)
class SwitchTakesOverStates(IndexCompaction):
    """The compacted group was used as it was, with the states of the time when it was copied.

    A partition that has become passive since was active again.
    """

    copied_state = per(Partition, one_of(PartitionState, init=PartitionState.active))

    def _copy_rows(self, p: Term[Partition]) -> None:
        super()._copy_rows(p)
        self.copied_state[p] = self.state[p]

    def _take_over_state(self, p: Term[Partition]) -> None:
        self.state[p] = self.copied_state[p]


@known_bug(
    "Z28",
    "MB-15274",
    breaks=IndexCompaction.an_index_has_the_rows_of_its_sequence_numbers,
    sizes={Partition: 1},
)
class CompactFileStartsWithSequenceNumbers(IndexCompaction):
    """The first header of a new file had the sequence numbers of the index that was to be copied.

    When no later header can be read, the empty index looks up to date, and is never built again.
    """

    first_seq = per(Partition, number(0, LAST_SEQ))

    def _copy_rows(self, p: Term[Partition]) -> None:
        super()._copy_rows(p)
        self.first_seq[p] = self.seqs[p]

    def _first_seq(self, p: Term[Partition]) -> Number:
        return self.first_seq[p]


@known_bug(
    "K11-start",
    "design document 004, index compaction",
    breaks=IndexCompaction.a_fragmented_index_is_compacted,
    sizes={Partition: 1},
    budgets=NO_CRASH,
)
class CompactionNeverStarts(IndexCompaction):
    """The fragmentation is compared with a threshold that it never exceeds: the file grows for ever."""

    def _is_fragmented(self) -> Bool:
        return self.fragmentation < 0


@known_bug(
    "K11-apply",
    "design document 004, index compaction",
    breaks=IndexCompaction.a_fragmented_index_is_compacted,
    budgets=NO_CRASH,
)
class LastSortFilesAreNotApplied(IndexCompaction):
    """The compactor waits for a full list of sort record files: the last ones are never applied."""

    def _is_sent_sort_files(self) -> Bool:
        return self.sort_files.is_full()


@known_bug(
    "K11-switch",
    "design document 004, index compaction",
    breaks=IndexCompaction.a_fragmented_index_is_compacted,
    sizes={Partition: 1},
    budgets=NO_CRASH,
)
class SwitchWaitsForTheUpdater(IndexCompaction):
    """The updater was stopped for the switch, and the switch waited until it had indexed all documents."""

    def _is_complete(self) -> Bool:
        return super()._is_complete() & ~some(self._is_behind(p) for p in Partition)


@known_bug(
    "K11-cleanup",
    "design document 004, index compaction",
    breaks=IndexCompaction.a_new_file_has_no_rows_to_clean_up,
    budgets=NO_CRASH,
)
class RowsToCleanUpAreCopied(IndexCompaction):
    """The compactor copied all nodes as they were, with the rows of partitions in cleanup."""

    def _is_copied(self, p: Term[Partition]) -> Bool:
        return self.state[p] != PartitionState.not_present


@known_bug(
    "K11-updater",
    "design document 004, index compaction",
    breaks=IndexCompaction.the_roots_are_offsets_in_the_open_file,
    sizes={Partition: 1},
    budgets=NO_CRASH,
)
class UpdaterGoesOnOverTheSwitch(IndexCompaction):
    """The updater was not stopped for the switch: its next roots are offsets in the file that is gone."""

    def _stop_updater_for_switch(self) -> None:
        pass


@known_bug(
    "Z27",
    "design document 004: we cannot switch to the newly created compacted index file",
    breaks=IndexCompaction.an_index_has_the_rows_of_its_sequence_numbers,
    sizes={Partition: 1},
    budgets=NO_CRASH,
)
class SwitchesBeforeItHasCaughtUp(IndexCompaction):
    """The group went over to the new file as soon as its trees were copied."""

    def _has_caught_up(self) -> None:
        pass


@known_bug(
    "K11-aware",
    "design document 004, index compaction",
    breaks=IndexCompaction.an_index_has_the_rows_of_its_sequence_numbers,
    sizes={Partition: 1},
    budgets=NO_CRASH,
)
class SortFilesAreRemoved(IndexCompaction):
    """The updater was not told of the compactor: it removed its sort record files, as ever."""

    def _is_aware_of_compactor(self) -> Bool:
        return self.compactor == Compactor.complete


@known_bug(
    "MB-11504",
    "MB-11504",
    breaks=IndexCompaction.an_index_has_the_rows_of_its_sequence_numbers,
    budgets=NO_CRASH,
)
class OldSortFilesAreReplayed(IndexCompaction):
    """A compaction that was stopped left its sort record files: the next one applied them to newer rows."""

    def _forget_sort_files(self) -> None:
        pass


@known_bug(
    "Z60",
    "MB-15274",
    breaks=IndexCompaction.what_is_indexed_is_on_disk,
    sizes={Partition: 1},
    budgets=NO_CRASH,
)
class OldFileIsRemovedFirst(IndexCompaction):
    """The old file was removed before the new one was renamed: a crash in between lost the index."""

    @action(fair=Fairness.WEAK)
    def make_room(self) -> None:
        """The number of the old file is free for the new one."""
        require(self.compactor == Compactor.complete, "the new file is complete")
        self._remove(self.file)


@known_bug(
    "004-52",
    "design document 004: the latest snapshot is obtained by locating a valid header",
    breaks=IndexCompaction.what_is_indexed_is_found_again,
    sizes={Partition: 1},
    budgets={IndexCompaction.lost_headers: 0},
)
class RestartsBeginAnew(IndexCompaction):
    """A group process that had died began with an empty index, and indexed all documents again."""

    @action(spends=IndexCompaction.crashes)
    def crash(self, f: Term[FileNumber]) -> None:
        """It has the file, and looks for no header in it."""
        super().crash(f)
        for p in Partition:
            self.seqs[p] = 0
            self.rows[f][p] = 0


@known_bug(
    "004-53",
    "design document 004: fragmentation is found by comparing data sizes with the file size",
    breaks=IndexCompaction.fragmentation_falls_only_with_a_new_file,
    sizes={Partition: 1},
    budgets={IndexCompaction.lost_headers: 0},
)
class BatchesAreCountedInMemory(IndexCompaction):
    """What was appended since the last compaction was counted by the group process, and forgotten with it."""

    @action(spends=IndexCompaction.crashes)
    def crash(self, f: Term[FileNumber]) -> None:
        """It dies, and begins to count."""
        super().crash(f)
        self.fragmentation = 0


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
    "004-79",
    'design document 004: "If a compactor process exists, the updater will not remove the sort record files"',
    breaks=IndexCompaction.sort_files_are_kept_for_a_compactor,
    sizes={Partition: 1},
    budgets=NO_CRASH,
)
class SortFilesAreNeverRemoved(IndexCompaction):
    """The updater kept its sort record files for a compactor that did not run."""

    def _is_aware_of_compactor(self) -> Bool:
        return self.compactor.any_of(*Compactor)


@known_bug(
    "004-80",
    'design document 004: a batch has mutations "between last indexed sequence and latest mutation sequence"',
    breaks=IndexCompaction.an_index_has_the_rows_of_its_sequence_numbers,
    sizes={Partition: 1},
    budgets={IndexCompaction.crashes: 0},
)
class BatchOfAnEarlierHeaderIsTakenOver(IndexCompaction):
    """A batch that was written before the headers were lost was taken over: the index had it alone, and said that it had
    all before it, too.
    """

    def _stop_updater(self) -> None:
        self.updating = None


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
    "004-127",
    "design document 004: the header has the sequence numbers of the vbuckets",
    breaks=IndexCompaction.an_index_has_the_rows_of_its_sequence_numbers,
    sizes={Partition: 1},
    budgets={IndexCompaction.crashes: 0},
)
class TreesOutliveTheirHeaders(IndexCompaction):
    """An index whose headers were lost began again with no sequence number, in the trees as they were: it had rows of
    documents that it said it had not indexed. What is inserted once more changes nothing.
    """

    @action(fair=WEAK)
    def take_over(self, p: Term[Partition]) -> None:
        """The rows of a batch are there, or are so already."""
        require(self.has_written(p), "updater has written a batch")
        newer, written_to = self.written.head.seq, self.updating.or_else(self.file)
        self.written.drop_head()
        self.seqs[p] = newer
        self.roots = written_to
        self.rows[written_to][p] = greatest(self.rows[written_to][p], newer)
        self.fragmentation = least(self.fragmentation + 1, THRESHOLD)
        self._keep_sort_file(p, newer)

    @action(spends=IndexCompaction.lost_headers)
    def lose_headers(self, f: Term[FileNumber]) -> None:
        """No header but the first of the file is valid."""
        self._open(f)
        self.unreadable = True
        for p in Partition:
            self.seqs[p] = self._first_seq(p)


@known_bug(
    "004-142",
    'design document 004: the view engine "just performs such requests"',
    breaks=IndexCompaction.partitions_become_active_while_it_copies,
    budgets=NO_CRASH,
)
class StatesAreThoseOfTheSnapshot(IndexCompaction):
    """The compactor was at work with the states of the snapshot, so a partition that it had as passive stayed so."""

    @action(by=MANAGER, spends=IndexCompaction.requests)
    def set_active(self, p: Term[Partition]) -> None:
        """It is taken note of that the partition is to be queried."""
        self._is_not_in_cleanup(p)
        keeps = (self.state[p] == PartitionState.passive) & (self.compactor != Compactor.none)
        self.state[p] = choose(keeps, self.state[p], PartitionState.active)


@known_bug(
    "004-143",
    "design document 004: the updater sends a message to the compactor with the list of sort record files",
    breaks=IndexCompaction.updates_go_on_while_it_copies,
    budgets=NO_CRASH,
)
class OneBatchIsKept(IndexCompaction):
    """The sort record files of one batch were kept: the updater waited with the next until the compactor had applied them,
    and that until all trees were copied.
    """

    @action(by=UPDATER, fair=WEAK)
    def write_batch(self, p: Term[Partition]) -> None:
        """The files of the last batch are not needed any more."""
        require(self.sort_files.is_empty(), "the compactor has applied the last batch")
        super().write_batch(p)


@known_bug(
    "004-155",
    'design document 004: "we cannot stop the view engine updates from happening"',
    breaks=IndexCompaction.updates_and_compactions_go_on_together,
    sizes={Partition: 1},
)
class CompactorsStopTheUpdater(IndexCompaction):
    """A compaction began with the updater stopped, whose last batch was written once more."""

    @action(by=COMPACTOR, fair=WEAK)
    def start_compactor(self) -> None:
        """Nothing is written to the file as its last header is read."""
        super().start_compactor()
        self._stop_updater()


@known_bug(
    "004-156",
    'design document 004: "While doing the compaction, new changes would be happening"',
    breaks=IndexCompaction.updates_and_compactions_go_on_together,
    sizes={Partition: 1},
)
class UpdatersStopTheCompactor(IndexCompaction):
    """Each updater that started stopped the compactor: a file that was always written to was never compacted."""

    @action(fair=WEAK)
    def start_updater(self) -> None:
        """The file is written to."""
        super().start_updater()
        self._stop_compactor()


BUGS = known_bugs_in(globals())
NOT_FOUND: tuple[NotFound, ...] = ()

"""Mistakes put back into `IndexCompaction`: what goes wrong."""

from __future__ import annotations

from stagewright.machines.couchbase.indexes.index_compaction import (
    COMPACTOR,
    THRESHOLD,
    UPDATER,
    WEAK,
    Batch,
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
)
from stagewright.spec.known_bugs import known_bug, known_bugs_in

COMPACTION = 'design document 004, "Index compaction in view engine"'
NO_CRASH = {IndexCompaction.crashes: 0, IndexCompaction.lost_headers: 0}


@known_bug(
    "004-18",
    "design document 004, partition states: cleanup",
    breaks=IndexCompaction.a_new_file_has_no_rows_to_clean_up,
)
class CompactionLeavesTheRestToTheCleaner(IndexCompaction):
    """All rows are copied, and the cleaner removes in the new file what it has not yet removed in the old one."""

    def _copy_rows(self, p: Term[Partition]) -> None:
        self.copied[p] = self.snapshot[p]

    def _take_over_state(self, p: Term[Partition]) -> None:
        """The partition is still in cleanup."""


@known_bug(
    "004-19",
    'design document 004: the view engine "just performs such requests"',
    breaks=IndexCompaction.a_switch_changes_no_state,
)
class PassiveRowsBecomeActive(IndexCompaction):
    """The header of a new file lists the partitions that it has rows of as active."""

    def _take_over_state(self, p: Term[Partition]) -> None:
        gone = self.state[p] == PartitionState.cleanup
        self.state[p] = choose(
            gone,
            PartitionState.not_present,
            choose(self.state[p] == PartitionState.passive, PartitionState.active, self.state[p]),
        )


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


@known_bug(
    "004-180",
    COMPACTION,
    breaks=IndexCompaction.trees_are_copied_once,
    budgets={IndexCompaction.crashes: 0, IndexCompaction.lost_headers: 0},
)
class TreesAreCopiedAgain(IndexCompaction):
    """An updater ends while the compactor catches up: it copies the trees again, and never comes to an end under updates."""

    @action(fair=WEAK)
    def finish_updater(self) -> None:
        super().finish_updater()
        again = self.compactor == Compactor.catching_up
        self.compactor = choose(again, Compactor.copying, self.compactor)
        for p in Partition:
            rows = self.rows[self.roots][p]
            self.snapshot[p] = choose(again, rows, self.snapshot[p])


@known_bug(
    "004-204",
    'design document 004, "Index compaction in view engine"',
    breaks=IndexCompaction.updates_and_compactions_go_on_together,
)
class CompactionsAreGivenUp(IndexCompaction):
    """The compactor is given up, and begins anew, when more sort record files are there for it than it can keep."""

    @action(by=UPDATER, fair=WEAK)
    def write_batch(self, p: Term[Partition]) -> None:
        require(self.updating.is_some(), "updater runs")
        require(self.written.is_empty(), "the last batch is taken over")
        require(self._is_behind(p), "a mutation is left")
        self.written.append(Batch(partition=p, seq=self.seqs[p] + 1))

    @action(fair=WEAK)
    def take_over(self, p: Term[Partition]) -> None:
        require(~self.sort_files.is_full(), "there is room for its sort record files")
        super().take_over(p)

    @action(fair=WEAK)
    def give_up(self) -> None:
        """It will never keep pace."""
        require(self.sort_files.is_full() & ~self.written.is_empty(), "there is no room")
        self._stop_compactor()


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


BUGS = known_bugs_in(globals())

"""Compaction of an index: its trees are rebuilt in a new file, which catches up with the updater before the switch.

The index file is append only, so its fragmentation grows with every batch of the updater. The
compactor rewrites the trees of an earlier snapshot, and then applies what the updater has written
in the meantime, from the sort record files that the updater keeps for it. A root is an offset in
one file: the old file's mean nothing in the new one.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Self

from stagewright.machines.couchbase.partitions.group_states import (
    COUCHBASE,
    SEED,
    Partition,
    PartitionState,
)
from stagewright.machines.couchbase.partitions.partition_states import LAST_SEQ, MANAGER
from stagewright.spec import (
    Actor,
    Bool,
    Entity,
    Fairness,
    FlagVar,
    LeadsTo,
    Machine,
    Number,
    NumberVar,
    OneVar,
    OptionalVar,
    Record,
    Term,
    accepts,
    action,
    bounded,
    budget,
    choose,
    equivalent_drop,
    equivalent_loss,
    equivalent_replacement,
    equivalent_value,
    equivalent_weakening,
    equivalents,
    every,
    fault_budget,
    final,
    flag,
    history,
    independent,
    invariant,
    leads_to,
    least,
    lemma,
    liveness,
    number,
    one_of,
    optional,
    per,
    profiles,
    queue,
    require,
    scopes,
    some,
    sometimes,
    step_property,
)

WEAK = Fairness.WEAK
CLIENT = Actor("client")
UPDATER = Actor("updater")
CLEANER = Actor("cleaner")
COMPACTOR = Actor("compactor")
THRESHOLD = 2  # batches that are appended to a file before it is compacted
BATCHES = 2  # whose sort record files may wait for the compactor


TOO_EARLY = "compacting too early only wastes work: index-triggers has that"
CLEAN_ALREADY = "the cleaner would find the rows already removed"
REMOVED = "nobody reads a removed file"
COPIED_AGAIN = "the next compactor copies the trees again"


class FileNumber(Entity, scope=3, ring=True):
    """The number at the end of an index file's name: `main_….view.1`, then `.view.2`.

    A check reuses its numbers: after the last comes the first, whose file has been removed by then.
    """


class Compactor(Enum):
    """How far the compactor has got."""

    none = auto()
    copying = auto()
    catching_up = auto()
    complete = auto()  # the new file has its header
    renamed = auto()  # the new file has the next number


class Batch(Record):
    """The sort record files of a batch: the operations that bring a partition's rows up to a mutation."""

    partition = one_of(Partition)
    seq = number(0, LAST_SEQ)


class IndexCompaction(Machine):
    """An index whose file is compacted while its updater, its cleaner and the cluster manager carry on.

    Under `seed` the switch waits for the updater: the compactor repeats "until the updater
    completes all batch of updates". Under `couchbase` the updater is stopped for the switch, and
    continues in the new file.

    A partition that is still in cleanup is not added again here: `partition-states` covers that.
    """

    release = profiles(SEED, COUCHBASE)
    writes = budget(3, doc="mutations of documents")
    requests = budget(2, doc="requests of the cluster manager")
    crashes = fault_budget(1, doc="crashes of the group process")
    lost_headers = fault_budget(
        1, doc="crashes after which only the first header of the file can be read"
    )

    exercised_at = scopes({}, {Partition: 1, writes: 4, requests: 3, crashes: 2, lost_headers: 2})

    source = per(Partition, number(0, LAST_SEQ))  # the highest sequence number of the partition
    # the group process
    state = per(Partition, one_of(PartitionState, init=PartitionState.active))
    seqs = per(Partition, number(0, LAST_SEQ))  # as the last header says
    file: OneVar[FileNumber] = one_of(FileNumber, init=FileNumber.first)  # the one it has open
    # the file that the roots are offsets in
    roots: OneVar[FileNumber] = one_of(FileNumber, init=FileNumber.first)
    # the files
    there = per(FileNumber, flag(), init=lambda file: file.is_first)
    rows = per(FileNumber, per(Partition, number(0, LAST_SEQ)))  # of documents up to this number
    fragmentation: NumberVar = number(0, THRESHOLD)
    unreadable: FlagVar = history(flag())  # headers have been lost
    # the updater
    # the file it writes to; none if it does not run
    updating: OptionalVar[FileNumber] = optional(FileNumber)
    written = queue(Batch, 1)  # a batch that the group has not taken over yet
    # the compactor
    compactor: OneVar[Compactor] = one_of(Compactor, init=Compactor.none)
    snapshot = per(Partition, number(0, LAST_SEQ))  # the rows in the header that it has read
    copied = per(Partition, number(0, LAST_SEQ))  # the rows in the new file
    sort_files = queue(Batch, BATCHES)  # those that the updater keeps for it

    @action(by=CLIENT, spends=writes)
    def write(self, p: Term[Partition]) -> None:
        """A document of the partition changes."""
        bounded(self.source[p] < LAST_SEQ, "a sequence number is left")
        self.source[p] = self.source[p] + 1

    # -- requests of the cluster manager -----------------------------------------------------------------

    @action(by=MANAGER, spends=requests)
    def set_active(self, p: Term[Partition]) -> None:
        """The partition is to be indexed and queried; a new one is indexed from the beginning."""
        self._is_not_in_cleanup(p)
        self.state[p] = PartitionState.active

    @action(by=MANAGER, spends=requests)
    def set_passive(self, p: Term[Partition]) -> None:
        """The partition is to be indexed, but not queried. To workers, active and passive are the same."""
        self._is_not_in_cleanup(p)
        self.state[p] = PartitionState.passive

    @action(by=MANAGER, spends=requests)
    def set_cleanup(self, p: Term[Partition]) -> None:
        """The partition is to be removed: workers that know of it are stopped."""
        require(self._is_indexed(p), "partition is active or passive")
        self.leave(p)

    # -- the updater -------------------------------------------------------------------------------------

    @action(fair=WEAK)
    def start_updater(self) -> None:
        """The index is behind: an updater starts from the roots that the group has."""
        self._is_not_switching()
        require(self.updating.is_none(), "updater does not run")
        require(some(self._is_behind(p) for p in Partition), "index is behind")
        self.updating = self.file

    @action(by=UPDATER, fair=WEAK)
    def write_batch(self, p: Term[Partition]) -> None:
        """The updater sorts the operations of a batch and appends the new nodes to the file."""
        require(self.updating.is_some(), "updater runs")
        require(self.written.is_empty(), "the last batch is taken over")
        require(self._is_behind(p), "a mutation is left")
        require(~self.sort_files.is_full(), "the compactor keeps pace")
        self.written.append(Batch(partition=p, seq=self.seqs[p] + 1))

    @action(fair=WEAK)
    def take_over(self, p: Term[Partition]) -> None:
        """The group takes over the new roots and writes a header. The sort record files are kept
        for a compactor, if any.
        """
        require(self.has_written(p), "updater has written a batch")
        newer, written_to = self.written.head.seq, self.updating.or_else(self.file)
        self.written.drop_head()
        self.seqs[p] = newer
        self.roots = written_to
        self.rows[written_to][p] = self.rows[written_to][p] + 1
        self.fragmentation = least(self.fragmentation + 1, THRESHOLD)
        self._keep_sort_file(p, newer)

    @action(fair=WEAK)
    def finish_updater(self) -> None:
        """The updater has reached the end of every partition."""
        require(self.updating.is_some(), "updater runs")
        require(~some(self._is_behind(p) for p in Partition), "nothing is left to index")
        self.updating = None

    # -- the cleaner -------------------------------------------------------------------------------------

    @action(by=CLEANER, fair=WEAK)
    def clean(self, p: Term[Partition]) -> None:
        """The rows of a partition in cleanup are removed, while neither updater nor compactor runs."""
        require(self.state[p] == PartitionState.cleanup, "partition is in cleanup")
        require(self.updating.is_none(), "updater does not run")
        require(self.compactor == Compactor.none, "compactor does not run")
        self.state[p] = PartitionState.not_present
        self.rows[self.file][p] = 0

    # -- the compactor -----------------------------------------------------------------------------------

    @action(by=COMPACTOR, fair=WEAK)
    def start_compactor(self) -> None:
        """The fragmentation exceeds the threshold: the compactor reads the last header and creates a file."""
        require(self._is_fragmented(), "fragmentation exceeds the threshold")
        require(self.compactor == Compactor.none, "compactor does not run")
        require(
            ~some(self.there[f] & (self.file != f) for f in FileNumber), "previous file is removed"
        )
        self.compactor = Compactor.copying
        for p in Partition:
            self.snapshot[p] = self.rows[self.roots][p]

    @action(by=COMPACTOR, fair=WEAK)
    def copy(self) -> None:
        """Every tree is rebuilt in the new file, without the rows of partitions in cleanup."""
        require(self.compactor == Compactor.copying, "compactor copies")
        self.compactor = Compactor.catching_up
        for p in Partition:
            self._copy_rows(p)

    @action(by=COMPACTOR, fair=WEAK)
    def apply_sort_files(self, p: Term[Partition]) -> None:
        """The changes of a batch are applied to the new file."""
        require(self.compactor == Compactor.catching_up, "the trees are copied")
        require(self._is_sent_sort_files(), "the updater has sent a list of sort record files")
        batch = self.sort_files.head
        require(batch.partition == p, "they are of the partition")
        self.copied[p] = batch.seq
        self.sort_files.drop_head()

    @action(by=COMPACTOR, fair=WEAK)
    def complete(self) -> None:
        """No sort record file is left: the new file gets its header, and nothing changes until the switch."""
        require(self.compactor == Compactor.catching_up, "the trees are copied")
        self._has_caught_up()
        if self.release.stops_updater_for_switch:
            self._stop_updater_for_switch()
        else:
            require(self.updating.is_none(), "updater completes all batches")
        self.compactor = Compactor.complete

    @action(fair=WEAK)
    def rename_file(self) -> None:
        """The new file gets the next number: from now on it is the index file, even if the process dies."""
        require(self._is_complete(), "the new file is complete")
        new = self.file.next
        self.compactor = Compactor.renamed
        self.there[new] = True
        for p in Partition:
            self.rows[new][p] = self.copied[p]

    @action(fair=WEAK)
    def switch_file(self) -> None:
        """The group process switches to the new file."""
        require(self.compactor == Compactor.renamed, "the new file has its number")
        new = self.file.next
        self.file = new
        self.roots = new
        self.fragmentation = 0
        for p in Partition:
            self._take_over_state(p)
        self._stop_compactor()

    @action(fair=WEAK)
    def remove_previous(self, f: Term[FileNumber]) -> None:
        """The previous file is removed."""
        require(self.there[f], "it is there")
        require(f.next == self.file, "its successor is the group's file")
        self._remove(f)

    # -- crashes -----------------------------------------------------------------------------------------

    @action(spends=crashes)
    def crash(self, f: Term[FileNumber]) -> None:
        """The group process dies with its workers, restarts, and opens the file with the highest number."""
        self._open(f)

    @action(spends=lost_headers)
    def lose_headers(self, f: Term[FileNumber]) -> None:
        """It dies, and only the first header of the file is still valid: the index is built again."""
        self._open(f)
        self.unreadable = True
        for p in Partition:
            self.seqs[p] = self._first_seq(p)
            self.rows[f][p] = 0

    # -- helpers -----------------------------------------------------------------------------------------

    def leave(self, p: Term[Partition]) -> None:
        """The partition goes into cleanup, and workers that know of it are stopped."""
        self.state[p] = PartitionState.cleanup
        self.seqs[p] = 0
        self.stop_workers()

    def stop_workers(self) -> None:
        """Their work would belong to an index with other partitions."""
        require(self.compactor != Compactor.renamed, "the new file is not the index's yet")
        self._stop_updater()
        self._stop_compactor()

    def _is_not_in_cleanup(self, p: Term[Partition]) -> None:
        require(self.state[p] != PartitionState.cleanup, "partition is clean")

    def _is_not_switching(self) -> None:
        switching = self.compactor.any_of(Compactor.complete, Compactor.renamed)
        require(~switching, "the group process does not switch its file")

    def _is_indexed(self, p: Term[Partition]) -> Bool:
        return self.state[p].column(lambda state: state.indexed)

    def _is_behind(self, p: Term[Partition]) -> Bool:
        return self._is_indexed(p) & (self.seqs[p] < self.source[p])

    def has_written(self, p: Term[Partition]) -> Bool:
        """The updater has appended a batch of the partition that no header covers yet."""
        return ~self.written.is_empty() & (self.written.head.partition == p)

    def rows_of(self, p: Term[Partition]) -> Number:
        """The rows of a partition that a walk down from the group's roots finds in its file."""
        return choose(self.roots == self.file, self.rows[self.file][p], 0)

    def _is_fragmented(self) -> Bool:
        """The file is larger than the data in its trees by more than the threshold."""
        return self.fragmentation >= THRESHOLD

    def _is_sent_sort_files(self) -> Bool:
        return ~self.sort_files.is_empty()

    def _is_complete(self) -> Bool:
        return self.compactor == Compactor.complete

    def _copy_rows(self, p: Term[Partition]) -> None:
        self.copied[p] = choose(self._is_copied(p), self.snapshot[p], 0)

    def _is_copied(self, p: Term[Partition]) -> Bool:
        return self.state[p] != PartitionState.cleanup

    def _keep_sort_file(self, p: Term[Partition], seq: Number) -> None:
        kept = self.sort_files.appended(Batch(partition=p, seq=seq))
        self.sort_files = choose(self._is_aware_of_compactor(), kept, self.sort_files)

    def _is_aware_of_compactor(self) -> Bool:
        """The updater is "made aware of compactor execution": it keeps the files from then on."""
        return self.compactor != Compactor.none

    def _has_caught_up(self) -> None:
        require(self.sort_files.is_empty(), "no sort record file is left")

    def _stop_updater(self) -> None:
        """A batch that it has written, and that nobody has taken over, will be written again."""
        self.updating = None
        self.written.clear()

    def _stop_updater_for_switch(self) -> None:
        self._stop_updater()

    def _stop_compactor(self) -> None:
        """It will start over: what it has of the new file is useless, and so are the sort record files."""
        self.compactor = Compactor.none
        self._forget_sort_files()
        self._forget_copy()

    def _forget_sort_files(self) -> None:
        self.sort_files.clear()

    def _forget_copy(self) -> None:
        for p in Partition:
            self.snapshot[p] = 0
            self.copied[p] = 0

    def _take_over_state(self, p: Term[Partition]) -> None:
        """The current states, not those of the snapshot; a partition in cleanup has no rows in the new file."""
        gone = self.state[p] == PartitionState.cleanup
        self.state[p] = choose(gone, PartitionState.not_present, self.state[p])

    def _remove(self, f: Term[FileNumber]) -> None:
        self.there[f] = False
        for p in Partition:
            self.rows[f][p] = 0

    def _open(self, f: Term[FileNumber]) -> None:
        require(self.there[f] & ~self.there[f.next], "no file has a higher number")
        self.file = f
        self.roots = f
        self._stop_updater()
        self._stop_compactor()

    def _first_seq(self, _p: Term[Partition]) -> Number | int:
        """The first header of a file says that nothing is indexed, whatever index the file replaces."""
        return 0

    # -- promises ----------------------------------------------------------------------------------------

    @invariant
    def the_roots_are_offsets_in_the_open_file(self) -> Bool:
        """004: "From the header, we can locate the the file offset position from which we can read
        the root node": the group's roots are offsets in the file that it has open.
        """
        return self.roots == self.file

    @invariant
    def an_index_has_the_rows_of_its_sequence_numbers(self, p: Term[Partition]) -> Bool:
        """004: "Unless newly created btrees are up to date with the current index, we cannot
        switch": a query finds the rows of every document up to the sequence number that the header
        has for its partition.
        """
        return self._is_indexed(p).implies(self.rows_of(p) == self.seqs[p])

    @step_property
    def what_is_indexed_is_found_again(self, after: Self, p: Term[Partition]) -> Bool:
        """004: "For each btree from the current index file, iterate over all nodes and build a new
        btree in the new file": neither a compaction nor a restart begins with an empty index,
        unless the headers are lost.
        """
        stays = self._is_indexed(p) & after._is_indexed(p) & ~after.unreadable
        return stays.implies(after.rows_of(p) >= self.rows_of(p))

    @step_property
    def trees_are_copied_once(self, after: Self) -> Bool:
        """004: "Immediately after view compactor rewrites the current btrees to a new file, it will
        start performing delta changes application": what is written in the meantime is applied to
        the copy; the trees are not copied again for it.
        """
        copies = self.compactor != Compactor.none
        return (copies & (after.compactor == Compactor.copying)).implies(
            self.compactor == Compactor.copying
        )

    @step_property
    def fragmentation_falls_only_with_a_new_file(self, after: Self) -> Bool:
        """004: "the fragmentation in the index file" is the file's: it falls with a new file, not
        when a compactor starts or stops.
        """
        less = after.fragmentation < self.fragmentation
        return less.implies(self._switches(after))

    @invariant
    def what_is_indexed_is_on_disk(self, p: Term[Partition]) -> Bool:
        """Whenever the process dies, even during a switch, some file has what was indexed (MB-15274)."""
        kept = some(self.there[f] & (self.rows[f][p] >= self.seqs[p]) for f in FileNumber)
        return self._is_indexed(p).implies(kept)

    @step_property
    def a_new_file_has_no_rows_to_clean_up(self, after: Self, p: Term[Partition]) -> Bool:
        """004, "Partition states": a partition in cleanup "will be removed": compaction does not copy it."""
        removed = self._switches(after) & (self.state[p] == PartitionState.cleanup)
        return removed.implies(after.rows_of(p) == 0)

    @step_property
    def updates_and_compactions_go_on_together(self, after: Self) -> Bool:
        """004: "We cannot stop the view engine updates from happening. While doing the compaction,
        new changes would be happening": starting a compaction stops no updater, starting an updater
        stops no compactor, and no compaction is given up because of what the updater writes.
        """
        compacts = (self.compactor == Compactor.none) & (after.compactor != Compactor.none)
        starts = self.updating.is_none() & after.updating.is_some()
        updating = after.updating == self.updating
        taken_over = some(after.seqs[p] > self.seqs[p] for p in Partition)
        writes = taken_over | (after.updating.is_some() & ~after.written.is_empty())
        kept = (writes & (self.compactor != Compactor.none)).implies(
            after.compactor != Compactor.none
        )
        return compacts.implies(updating) & starts.implies(after.compactor == self.compactor) & kept

    @invariant
    def sort_files_are_kept_for_a_compactor(self) -> Bool:
        """004: "If a compactor process exists, the updater will not remove the sort record files":
        without one it removes them, including those that were kept for a compactor that was
        stopped.
        """
        return (self.compactor == Compactor.none).implies(self.sort_files.is_empty())

    @step_property
    def a_switch_changes_no_state(self, after: Self, p: Term[Partition]) -> Bool:
        """004: the view engine "just performs such requests": a switch makes nothing active or passive (MB-7702)."""
        stays = self._switches(after) & self._is_indexed(p)
        return stays.implies(after.state[p] == self.state[p])

    @invariant
    def partitions_that_are_not_there_have_no_rows(self, p: Term[Partition]) -> Bool:
        """004: "After cleanup a partition will not be part of the index any more"."""
        return (self.state[p] == PartitionState.not_present).implies(self.rows_of(p) == 0)

    @final
    def nothing_is_left_to_do(self) -> Bool:
        """An index may stay as it is when it is up to date, clean, and not fragmented."""
        done = every(
            ~self._is_behind(p) & (self.state[p] != PartitionState.cleanup) for p in Partition
        )
        return done & (self.fragmentation < THRESHOLD) & self.updating.is_none()

    @liveness
    def a_fragmented_index_is_compacted(self) -> LeadsTo:
        """004: "If the fragmentation ratio exceeds the threshold value, view engine performs compaction"."""
        fragmented = self.fragmentation >= THRESHOLD
        return leads_to(fragmented, ~fragmented)

    @lemma
    @liveness
    def the_previous_file_is_removed(self, f: Term[FileNumber]) -> LeadsTo:
        """004: the group process "will switch to the new index file and previous one is removed". A
        lemma: it can be removed at once.
        """
        left = self.there[f] & (self.file != f)
        return leads_to(left, ~left)

    @liveness
    def the_index_catches_up(self, p: Term[Partition]) -> LeadsTo:
        """004: "We cannot stop the view engine updates from happening"; active and passive partitions catch up."""
        there = self.state[p].any_of(PartitionState.active, PartitionState.passive)
        behind = there & (self.rows_of(p) < self.source[p])
        return leads_to(behind, ~behind)

    @liveness
    def partitions_are_cleaned_up(self, p: Term[Partition]) -> LeadsTo:
        """004: a partition in cleanup "will be removed during the next cleanup cycle", or by a compaction."""
        to_clean = self.state[p] == PartitionState.cleanup
        return leads_to(to_clean, self.state[p] == PartitionState.not_present)

    @accepts(write)
    def documents_change_at_any_time(self, p: Term[Partition]) -> Bool:
        """004: "While doing the compaction, new changes would be happening": no document waits for its end."""
        return self.source[p] < LAST_SEQ

    @accepts(set_active)
    def partitions_are_added_while_it_compacts(self, p: Term[Partition]) -> Bool:
        """004: the view engine "just performs such requests", even during a compaction, except for the switch."""
        switches = self.compactor.any_of(Compactor.complete, Compactor.renamed)
        return (self.state[p] != PartitionState.cleanup) & ~switches

    @accepts(set_passive)
    def partitions_are_handed_over_while_it_compacts(self, p: Term[Partition]) -> Bool:
        """The same for a partition that is to be passive, such as one that is being moved to this node."""
        switches = self.compactor.any_of(Compactor.complete, Compactor.renamed)
        return (self.state[p] != PartitionState.cleanup) & ~switches

    @accepts(set_cleanup)
    def partitions_are_removed_while_it_compacts(self, p: Term[Partition]) -> Bool:
        """The same for a partition that is to be removed, except during the switch itself."""
        there = self.state[p].any_of(PartitionState.active, PartitionState.passive)
        return there & ~self.compactor.any_of(Compactor.complete, Compactor.renamed)

    @accepts(clean)
    def partitions_are_cleaned_up_while_documents_change(self, p: Term[Partition]) -> Bool:
        """004: a partition in cleanup "will be removed during the next cleanup cycle": once neither
        updater nor compactor runs, whatever is left to index, and whichever file is still to be
        removed.
        """
        alone = self.updating.is_none() & (self.compactor == Compactor.none)
        return (self.state[p] == PartitionState.cleanup) & alone

    @accepts(start_compactor)
    def compactions_start_while_it_is_updated(self) -> Bool:
        """004: the "view engine always server requests and updates can happen to the index file
        anytime": a compaction does not wait until there are none, nor for one. Cleanup, and the removal of
        the previous file, may come first.
        """
        idle = (self.compactor == Compactor.none) & (self.fragmentation == THRESHOLD)
        cleaned = every(self.state[p] != PartitionState.cleanup for p in Partition)
        alone = every(self.there[f] == (self.file == f) for f in FileNumber)
        return idle & cleaned & alone

    @accepts(complete)
    def compactions_are_completed_immediately(self) -> Bool:
        """004: "Compactor repeats this process until the updater completes all batch of updates.
        Immediately after that" it is done: when no sort record file is left, whatever has changed
        in documents since.
        """
        caught_up = (self.compactor == Compactor.catching_up) & self.sort_files.is_empty()
        return caught_up & self.updating.is_none()

    @accepts(remove_previous)
    def previous_files_are_removed_at_once(self, f: Term[FileNumber]) -> Bool:
        """004: the group process "will switch to the new index file and previous one is removed":
        whatever is left to index or to clean up, which may never end.
        """
        return self.there[f] & (f.next == self.file)

    @lemma
    @accepts(switch_file)
    def files_are_switched_immediately(self) -> Bool:
        """004: "compactor instructs design doc group server to switch its index file to new
        compacted index file": it does so, whatever partitions it has, and in whatever states. A
        lemma: everything else waits for the switch.
        """
        return self.compactor == Compactor.renamed

    @accepts(start_updater)
    def updates_start_while_it_compacts(self, p: Term[Partition]) -> Bool:
        """004: "We cannot stop the view engine updates from happening", except for the switch itself."""
        there = self.state[p].any_of(PartitionState.active, PartitionState.passive)
        behind = there & (self.seqs[p] < self.source[p])
        before = self.compactor.any_of(Compactor.none, Compactor.copying, Compactor.catching_up)
        return self.updating.is_none() & behind & before

    @accepts(take_over)
    def updates_are_seen_while_it_compacts(self, p: Term[Partition]) -> Bool:
        """004: "queries will see updates applied to btree at shortest intervals": a batch that is written is not kept
        back until a compaction has come to its end, or to another of its steps.
        """
        return ~self.written.is_empty() & (self.written.head.partition == p)

    @accepts(write_batch)
    def updates_go_on_while_it_catches_up(self, p: Term[Partition]) -> Bool:
        """004: "Compactor repeats this process until the updater completes all batch of updates", for which it waits, and the
        updater not for it: unless more sort record files are left than it is to have.
        """
        there = self.state[p].any_of(PartitionState.active, PartitionState.passive)
        behind = there & (self.seqs[p] < self.source[p])
        runs = self.updating.is_some() & self.written.is_empty()
        return runs & behind & self.sort_files.is_empty()

    @independent(
        copy,
        apply_sort_files,
        rename_file,
        switch_file,
        of=(source, state, seqs, updating, written),
    )
    def compactors_wait_for_no_updater(self) -> None:
        """004: "Immediately after view compactor rewrites the current btrees to a new file, it will start performing delta
        changes application": neither for this nor for the copy does a compactor wait until the updater has come to an end, or
        the index is up to date.
        """

    @independent(finish_updater, of=(fragmentation, there, compactor, snapshot, copied, sort_files))
    def updaters_wait_for_no_compactor(self) -> None:
        """004: "We cannot stop the view engine updates from happening": an updater ends when it has
        indexed all, so that the next one can start, however far the compactor has got.
        """

    @sometimes
    def partitions_become_active_while_it_copies(self, after: Self, p: Term[Partition]) -> Bool:
        """004: the view engine "just performs such requests": one that was passive is queried from
        then on, not only after the compaction.
        """
        becomes = after.state[p] == PartitionState.active
        passive = self.state[p] == PartitionState.passive
        return passive & becomes & (self.compactor == Compactor.copying)

    @sometimes
    def updates_go_on_while_it_copies(self, after: Self) -> Bool:
        """004: "While doing the compaction, new changes would be happening to the current index
        file": the updater "sends a message to the compactor with the list of sort record files",
        and does so for several batches.
        """
        several = ~self.sort_files.is_empty() & after._took_over(self)
        return several & (self.compactor == Compactor.copying)

    def _took_over(self, before: Self) -> Bool:
        return self.sort_files.length > before.sort_files.length

    def _switches(self, after: Self) -> Bool:
        return after.file != self.file

    # -- harmless changes --------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_replacement(write, "source[p] becomes", because="what clients write is theirs"),
        equivalent_drop(
            set_cleanup,
            "partition is active or passive",
            because="a partition without rows is cleaned up at once",
        ),
        equivalent_drop(
            start_updater,
            "updater does not run",
            because="an updater that is started again carries on",
        ),
        equivalent_loss(
            take_over,
            roots,
            because="every switch stops the updater, so that its roots are always the group's",
        ),
        equivalent_drop(
            finish_updater,
            "updater runs",
            because="an updater that does not run has already finished",
        ),
        equivalent_drop(
            clean,
            "updater does not run",
            because="here the cleaner touches nothing that the updater writes: partition-index",
        ),
        equivalent_weakening(
            start_compactor, "fragmentation exceeds the threshold", because=TOO_EARLY
        ),
        equivalent_replacement(
            start_compactor, "fragmentation exceeds the threshold: 1 for 2", because=TOO_EARLY
        ),
        equivalent_replacement(take_over, "fragmentation becomes: 2 for 1", because=TOO_EARLY),
        equivalent_replacement(
            switch_file,
            "fragmentation becomes",
            because="applying sort record files leaves some fragmentation in the copy",
        ),
        equivalent_loss(switch_file, sort_files, because="none is left"),
        equivalent_loss(_take_over_state, state, because=CLEAN_ALREADY),
        equivalent_replacement(_take_over_state, "not_present for cleanup", because=CLEAN_ALREADY),
        equivalent_drop(
            remove_previous, "it is there", because="removing a file twice changes nothing"
        ),
        equivalent_loss(_remove, rows, because=REMOVED),
        equivalent_replacement(_remove, "becomes: 1 for 0", because=REMOVED),
        equivalent_loss(
            _stop_updater,
            updating,
            written,
            because="a batch that is written again is the same batch",
        ),
        equivalent_loss(_forget_copy, snapshot, copied, because=COPIED_AGAIN),
        equivalent_replacement(_forget_copy, because=COPIED_AGAIN),
        *(
            equivalent_value(paused, lambda state: state.indexed, because="nothing is paused here")
            for paused in (PartitionState.active_unindexable, PartitionState.passive_unindexable)
        ),
    )

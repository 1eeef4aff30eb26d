"""An index of the view engine: its group process, updater, cleaner and compactor, its file, and crashes.

The states of its partitions are those of `partition_group.py`; workers are in `partition_workers.py`. This
adds the file, whose last header is what is left after a crash, and the compactor, which builds a new one.
"""

from __future__ import annotations

from stagewright.machines.partition_group import LAST_SEQ, Entry
from stagewright.machines.partition_states import Partition, Role
from stagewright.machines.partition_workers import PartitionWorkers
from stagewright.spec import (
    Bool,
    Fairness,
    FlagVar,
    LeadsTo,
    Term,
    action,
    budget,
    choose,
    every,
    final,
    flag,
    invariant,
    leads_to,
    liveness,
    number,
    per,
    record,
    require,
)

WEAK = Fairness.WEAK


class PartitionIndex(PartitionWorkers):
    """An index whose partitions come and go, with its workers and its file.

    Under `couchbase` every promise holds.
    """

    crashes = budget(1, doc="crashes of the group process")
    lost_headers = budget(1, doc="crashes after which later headers cannot be read")
    compactions = budget(1, doc="compactions that are started")

    header = per(Partition, record(Entry))  # the last one of the file
    first_seq = per(Partition, number(0, LAST_SEQ))  # what the first header of the file says
    compacting = per(Partition, record(Entry))  # the compactor's group, in the new file
    log = per(
        Partition, number(0, LAST_SEQ)
    )  # up to where the logs for the compactor have the rows
    logged: FlagVar = flag()  # there are logs that the compactor has not applied
    compact_first_seq = per(Partition, number(0, LAST_SEQ))  # of the new file

    # -- the file ----------------------------------------------------------------------------------------

    @action(fair=WEAK)
    def write_header(self) -> None:
        """The group process writes a header, and only then answers or goes on."""
        require(self.unwritten & ~self.index.down, "header is to be written")
        for p in Partition:
            self.header[p] = self.index.group[p]
        self.unwritten = False

    @action(spends=crashes)
    def crash(self) -> None:
        """The group process dies with its workers; what they did is in no header."""
        require(~self.index.down, "group process is up")
        self.index.down = True
        self._forget_updater()
        self._forget_cleaner()
        self._stop_compactor()

    @action(spends=lost_headers)
    def lose_headers(self) -> None:
        """Only the first header of the file is valid: the one of an empty index."""
        require(self.index.down, "group process is down")
        for p in Partition:
            last = self.header[p]
            last.seq = choose(last.abit | last.pbit, self.first_seq[p], 0)
            last.rows = 0

    @action(fair=WEAK)
    def reopen(self) -> None:
        """The group process opens the file at its last header; marks that are not in it are made again."""
        require(self.index.down, "group process is down")
        unanswered = self.unwritten
        for p in Partition:
            last = self.header[p]
            active, passive = last.abit | last.pending_active, last.pbit | last.pending_passive
            said = choose(active, Role.active, choose(passive, Role.passive, Role.none))
            self.index.requested[p] = choose(unanswered, said, self.index.requested[p])
            self.index.paused.put(p, last.in_unindexable_seqs | last.pending_unindexable)
            self.index.group[p] = self.header[p]
        self.unwritten = False
        self.index.down = False

    # -- compactor ---------------------------------------------------------------------------------------

    @action(spends=compactions)
    def start_compactor(self) -> None:
        """The compactor copies a snapshot, without what is in cleanup: the updater's own, if one runs."""
        require(~self.compactor, "compactor does not run")
        require(~self.cleaner, "cleaner is stopped")
        self._group_process_is_free()
        self.compactor = True
        for p in Partition:
            snapshot = choose(self.updater, self.updating[p], self.index.group[p])
            copy = self.compacting[p]
            copy.abit = snapshot.abit
            copy.pbit = snapshot.pbit
            copy.in_seqs = snapshot.in_seqs
            copy.in_unindexable_seqs = snapshot.in_unindexable_seqs
            copy.has_version = snapshot.has_version
            copy.seq = snapshot.seq
            copy.rows = choose(snapshot.cbit, 0, snapshot.rows)
            self.log[p] = choose(snapshot.cbit, 0, snapshot.rows)
            self.compact_first_seq[p] = 0

    @action(fair=WEAK)
    def apply_logs(self) -> None:
        """The compactor has copied the snapshot but the index has moved on: it applies what was logged."""
        require(self.compactor & self.logged, "there are logs for the compactor")
        for p in Partition:
            copy, ours = self.compacting[p], self.index.group[p]
            copy.seq = ours.seq
            copy.in_seqs = ours.in_seqs
            copy.in_unindexable_seqs = ours.in_unindexable_seqs
            copy.has_version = ours.has_version
            copy.rows = self.log[p]
        self.logged = False

    @action(fair=WEAK)
    def switch_file(self) -> None:
        """The compacted index is up to date: it replaces the other one, and a running updater with it."""
        require(self.compactor & ~self.logged, "compactor is done, and no log is left")
        self._group_process_is_free()
        for p in Partition:
            self._take_over_compaction(p)
            self.first_seq[p] = self.compact_first_seq[p]
        self.unwritten = True
        self._forget_updater()
        self._stop_compactor()

    # -- what recurs -------------------------------------------------------------------------------------

    def _take_over_compaction(self, p: Term[Partition]) -> None:
        """The compactor's group, under the bitmasks that we have by now."""
        ours, theirs = self.index.group[p], self.compacting[p]
        missing = self._has(p) & ~(theirs.abit | theirs.pbit)
        ours.cbit = False
        ours.rows = theirs.rows
        ours.seq = theirs.seq
        ours.in_seqs = theirs.in_seqs | missing
        ours.has_version = theirs.has_version | missing
        ours.in_unindexable_seqs = theirs.in_unindexable_seqs

    def _take_over_update(self) -> None:
        super()._take_over_update()
        for p in Partition:
            self.log[p] = choose(self.compactor, self.updating[p].rows, self.log[p])
        self.logged = self.compactor

    def _stop_compactor(self) -> None:
        super()._stop_compactor()
        self.logged = False
        for p in Partition:
            self._forget(self.compacting[p])
            self.log[p] = 0
            self.compact_first_seq[p] = 0

    # -- promises ----------------------------------------------------------------------------------------

    @invariant
    def the_header_follows(self, p: Term[Partition]) -> Bool:
        """004: "Each time when a update to the index is made, the index header is updated with the latest
        mutation sequence numbers"; and no request is answered before it is written.
        """
        last, ours = self.header[p], self.index.group[p]
        bits = (last.abit == ours.abit) & (last.pbit == ours.pbit) & (last.cbit == ours.cbit)
        return self.unwritten | self.index.down | (bits & (last.seq == ours.seq))

    @invariant
    def the_cleaner_works_alone(self) -> Bool:
        """The cleaner runs only while neither updater nor compactor does."""
        return ~(self.cleaner & (self.updater | self.compactor))

    @invariant
    def nothing_is_indexed_that_is_not_there(self, p: Term[Partition]) -> Bool:
        """No sequence number of the index is ahead of the documents."""
        return self.index.group[p].seq <= self.source[p]

    @final
    def all_is_quiet(self) -> Bool:
        """An index may stay as it is when it is up to date and clean."""
        return (
            ~self.unwritten
            & ~self.updater
            & ~self.cleaner
            & every(
                ~self.index.group[p].cbit & ~self._is_behind(self.index.group[p], p)
                for p in Partition
            )
        )

    @liveness
    def the_index_catches_up(self, p: Term[Partition]) -> LeadsTo:
        """004: the updater brings the index "up to date with the KV server"."""
        behind = self._is_behind(self.index.group[p], p)
        return leads_to(behind, ~behind)

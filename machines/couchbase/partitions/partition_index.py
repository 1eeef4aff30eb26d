"""An index of the view engine: its group process, updater, cleaner and compactor, its file, and crashes.

The states of its partitions are those of `partition_states.py`; workers are in `partition_workers.py`. This
adds the file, whose last header is what is left after a crash, and the compactor, which builds a new one.
"""

from __future__ import annotations

from typing import Self

from stagewright.machines.couchbase.partitions.group_states import Partition, Role
from stagewright.machines.couchbase.partitions.partition_states import (
    LAST_SEQ,
    Entry,
    PartitionGroup,
)
from stagewright.machines.couchbase.partitions.partition_workers import PartitionWorkers
from stagewright.spec import (
    Bool,
    Fairness,
    FlagVar,
    LeadsTo,
    Number,
    Term,
    action,
    budget,
    choose,
    equivalent_drop,
    equivalent_loss,
    equivalents,
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
    scopes,
    sometimes,
    step_property,
)

WEAK = Fairness.WEAK
REQUESTS = PartitionWorkers.requests
INTERRUPTIONS = PartitionWorkers.interruptions
WRITES = PartitionWorkers.writes


class PartitionIndex(PartitionWorkers):
    """An index whose partitions come and go, with its workers and its file.

    Under `couchbase` every promise holds.

    Under `seed` there is no pending transition: a partition that is wanted again before it was cleaned up is
    indexed among rows of an earlier time. `index.content_is_that_of_the_sequence_number` and
    `a_partition_starts_empty` fail, as they do for the states alone.
    """

    crashes = budget(1, doc="crashes of the group process")
    lost_headers = budget(1, doc="crashes after which later headers cannot be read")
    compactions = budget(1, doc="compactions that are started")

    exercised_at = scopes(
        {Partition: 1, WRITES: 3, REQUESTS: 4, crashes: 2, compactions: 2},
        {REQUESTS: 4, crashes: 0, lost_headers: 0, compactions: 0, INTERRUPTIONS: 0},
        {REQUESTS: 4, WRITES: 1, crashes: 0, lost_headers: 0, INTERRUPTIONS: 0},
        {crashes: 0, lost_headers: 0},
        {WRITES: 1, lost_headers: 0, compactions: 0, INTERRUPTIONS: 0},
    )

    header = per(Partition, record(Entry))  # the last one of the file
    compacting = per(Partition, record(Entry))  # the compactor's group, in the new file
    log = per(
        Partition, number(0, LAST_SEQ)
    )  # up to where the logs for the compactor have the rows
    logged: FlagVar = flag()  # there are logs that the compactor has not applied
    # -- the file ----------------------------------------------------------------------------------------

    @action(fair=WEAK)
    def write_header(self) -> None:
        """The group process writes a header, and only then answers or goes on."""
        require(self.unwritten, "header is to be written")
        for p in Partition:
            self.header[p] = self.index.group[p]
        self.unwritten = False

    @action(spends=crashes)
    def crash(self) -> None:
        """The group process dies with its workers, and falls back to the last header of the file.

        What it has not written, it has not answered either; marks that are in no header are made again.
        """
        require(~self.down, "group process is up")
        unanswered = self.unwritten
        self.down = True
        self._forget_updater()
        self._forget_cleaner()
        self._stop_compactor()
        for p in Partition:
            last = self.header[p]
            active, passive = last.abit | last.pending_active, last.pbit | last.pending_passive
            said = choose(active, Role.active, choose(passive, Role.passive, Role.none))
            self.index.requested[p] = choose(unanswered, said, self.index.requested[p])
            marked = last.content.in_unindexable_seqs | last.pending_unindexable
            self.index.paused.put(p, marked)
            self.index.group[p] = last
        self.unwritten = False

    @action(spends=lost_headers)
    def lose_headers(self) -> None:
        """Only the first header of the file is valid: the one of an empty index."""
        require(self.down, "group process is down")
        for p in Partition:
            for content in (self.header[p].content, self.index.group[p].content):
                content.seq = self._first_seq(p)
                content.rows = 0

    @action(fair=WEAK)
    def reopen(self) -> None:
        """The group process has opened its file."""
        require(self.down, "group process is down")
        self.down = False

    # -- compactor ---------------------------------------------------------------------------------------

    @action(spends=compactions)
    def start_compactor(self) -> None:
        """The compactor copies a snapshot, without what is in cleanup: the updater's own, if one runs."""
        self._group_process_is_free()
        require(~self.compactor, "compactor does not run")
        require(~self.cleaner, "cleaner is stopped")
        self.compactor = True
        self.logged = False
        for p in Partition:
            snapshot = choose(self.updater, self.updating[p], self.index.group[p])
            dropped = snapshot.content.cbit
            self.compacting[p] = choose(dropped, self.blank, snapshot)

    @action(fair=WEAK)
    def apply_logs(self) -> None:
        """The index has moved on since the snapshot: the compactor applies what was logged."""
        require(self.compactor, "compactor runs")
        require(self.logged, "there are logs for the compactor")
        for p in Partition:
            copy, ours = self.compacting[p], self.index.group[p]
            copy.content.seq = ours.content.seq
            copy.content.in_seqs = ours.content.in_seqs
            copy.content.has_version = ours.content.has_version
            copy.content.rows = self.log[p]
        self.logged = False

    @action(fair=WEAK)
    def switch_file(self) -> None:
        """The compacted index is up to date: it replaces the other one, and a running updater with it."""
        self._group_process_is_free()
        require(self.compactor, "compactor runs")
        require(~self.logged, "no log is left")
        for p in Partition:
            self._take_over_compaction(p)
        self.unwritten = True
        self._forget_updater()
        self._stop_compactor()

    @sometimes(at={REQUESTS: 4, WRITES: 1, crashes: 0, lost_headers: 0, INTERRUPTIONS: 0})
    def a_compaction_replaces_the_file(self, after: Self) -> Bool:
        """004: a compaction runs to its end, after which the compacted file is the index's."""
        return self.compactor & ~after.compactor & ~after.down & after.unwritten

    # -- what recurs -------------------------------------------------------------------------------------

    def _first_seq(self, _p: Term[Partition]) -> Number | int:
        """What the first header of a file says: the file is empty, whatever index it replaces."""
        return 0

    def _take_over_compaction(self, p: Term[Partition]) -> None:
        """The compactor's group, under the bitmasks that we have by now."""
        self.index.group[p].content = self._merged(p, self.compacting[p])

    def _take_over_update(self) -> None:
        super()._take_over_update()
        for p in Partition:
            written = self.updating[p].content
            logs = self.compactor & ~written.cbit
            self.log[p] = choose(logs, written.rows, 0)
        self.logged = self.compactor

    def _stop_compactor(self) -> None:
        super()._stop_compactor()
        for p in Partition:
            self.compacting[p] = self.blank
            self.log[p] = 0

    # -- promises ----------------------------------------------------------------------------------------

    @step_property
    def a_partition_starts_empty(self, after: Self, p: Term[Partition]) -> Bool:
        """A partition that is added was not present (004): no row of an earlier time is counted as new."""
        return self._crashes(after) | self.index.starts_empty(after.index, p)

    @step_property
    def the_index_of_a_partition_only_grows(self, after: Self, p: Term[Partition]) -> Bool:
        """004: indexing starts "from last indexed sequence", whether active or passive until then."""
        return self._crashes(after) | self.index.only_grows(after.index, p)

    @step_property
    def an_unindexable_partition_stays_as_it_is(self, after: Self, p: Term[Partition]) -> Bool:
        """004: "A view query will return the results that are currently indexed"."""
        return self._crashes(after) | self.index.stays_if_unindexable(after.index, p)

    def _crashes(self, after: Self) -> Bool:
        return self.down | after.down

    @invariant
    def the_header_follows(self, p: Term[Partition]) -> Bool:
        """004: "Each time when a update to the index is made, the index header is updated with the latest
        mutation sequence numbers"; and no request is answered before it is written.
        """
        last, ours = self.header[p], self.index.group[p]
        bits = (
            (last.abit == ours.abit)
            & (last.pbit == ours.pbit)
            & (last.content.cbit == ours.content.cbit)
        )
        return self.unwritten | (bits & (last.content.seq == ours.content.seq))

    @invariant
    def the_updater_knows_what_it_has_to_index(self, p: Term[Partition]) -> Bool:
        """004: "The updater loops through all partitions": it knows the active ones, or is told in time."""
        known = self.updating[p].abit | self.updating[p].pbit | self.told.has(p)
        return (self.updater & self.index.group[p].abit).implies(known)

    @invariant
    def the_cleaner_works_alone(self) -> Bool:
        """The cleaner runs only while neither updater nor compactor does."""
        return ~(self.cleaner & (self.updater | self.compactor))

    @invariant
    def nothing_is_indexed_that_is_not_there(self, p: Term[Partition]) -> Bool:
        """No sequence number of the index is ahead of the documents."""
        return self.index.group[p].content.seq <= self.source[p]

    @final
    def all_is_quiet(self) -> Bool:
        """An index may stay as it is when it is up to date and clean."""
        return (
            ~self.unwritten
            & ~self.updater
            & ~self.cleaner
            & every(
                ~self.index.group[p].content.cbit & ~self._is_behind(self.index.group[p], p)
                for p in Partition
            )
        )

    @liveness
    def the_index_catches_up(self, p: Term[Partition]) -> LeadsTo:
        """004: the updater brings the index "up to date with the KV server"."""
        behind = self._is_behind(self.index.group[p], p)
        return leads_to(behind, ~behind)

    # -- what no promise can tell ----------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(
            write_header, "header is to be written", because="a header may be written at any time"
        ),
        equivalent_drop(crash, "group process is up", because="what is down may crash"),
        equivalent_loss(
            crash, PartitionGroup.requested, because="what was answered is what the header says"
        ),
        equivalent_loss(
            crash, PartitionWorkers.unwritten, because="a header may be written once more"
        ),
        equivalent_drop(reopen, "group process is down", because="what is up stays up"),
        equivalent_drop(
            start_compactor,
            "compactor does not run",
            because="a compactor that starts again copies a newer snapshot",
        ),
        equivalent_loss(
            start_compactor, PartitionWorkers.compactor, because="a compaction that does not start"
        ),
        equivalent_loss(
            start_compactor, compacting, because="what is not dropped is cleaned up later"
        ),
        equivalent_drop(
            apply_logs,
            "compactor runs",
            because="nobody takes over what is applied without a compactor",
        ),
        equivalent_loss(
            _take_over_compaction,
            Entry.content,
            because="a compacted index is what it was, but for what is to be cleaned up",
        ),
        equivalent_loss(
            _stop_compactor, compacting, log, because="the next one makes its own copy"
        ),
    )

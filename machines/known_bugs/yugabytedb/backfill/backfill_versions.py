"""Mistakes put back into `BackfillVersions`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.yugabytedb.backfill.backfill_table import MASTER, WEAK
from stagewright.machines.yugabytedb.backfill.backfill_versions import TIMES, BackfillVersions
from stagewright.machines.yugabytedb.indexes.index_actors import CLIENT
from stagewright.machines.yugabytedb.indexes.index_rows import (
    STORAGE,
    HybridTime,
    Row,
    Stored,
    Value,
    number_of,
)
from stagewright.machines.yugabytedb.indexes.index_states import Permission
from stagewright.spec import Bool, Maybe, Term, action, choose, require
from stagewright.spec.known_bugs import known_bug, known_bugs_in

GOAL = 'design document 002: "consistent with the data in the primary table"'
ONLINE = 'design document 002: "without locking out reads or writes"'


# -- what goes wrong -------------------------------------------------------------------------------


@known_bug(
    "002-15", GOAL, breaks=BackfillVersions.no_orphan_entry, budgets={BackfillVersions.writes: 1}
)
class ReadersLookIntoTheTable(BackfillVersions):
    """A reader looks whether the row is as its entry says. So nobody minds delete markers that go too early."""

    @action(by=CLIENT)
    def read_index(self, r: Term[Row], v: Term[Value], time: Term[HybridTime]) -> None:
        """A client looks a value up, and what it finds in the table, too."""
        require(self.permission.column(lambda p: p.read), "the index serves reads")
        require(self._is_kept(time), "the read point is in history")
        self._may_use_the_index(time)
        there = self._row_at(r, time) == v
        found = (self._entry_at(r, v, time) == Stored.live) & there
        self.wrong_read = self.wrong_read | (found != there)

    def _may_reclaim_markers(self) -> Bool:
        return self.permission.column(lambda p: p.kept)


@known_bug(
    "002-367",
    'design document 002: "The entire build process should not need to restart"',
    breaks=BackfillVersions.rows_are_backfilled_for_good,
    budgets={BackfillVersions.writes: 1},
)
class WritesBeginTheScanAnew(BackfillVersions):
    """A row that is written is scanned again, and with it all others: it is done when nobody writes for a while."""

    def _commit(
        self, r: Term[Row], v: Term[Value] | Maybe[Value] | None, time: Term[HybridTime]
    ) -> None:
        super()._commit(r, v, time)
        self.backfilled = frozenset[Row]()


@known_bug(
    "002-16", GOAL, breaks=BackfillVersions.no_missing_entry, budgets={BackfillVersions.writes: 1}
)
class ReadersScanTheTable(BackfillVersions):
    """A reader that finds nothing scans the table. So the index is published before it is built."""

    @action(by=CLIENT)
    def read_index(self, r: Term[Row], v: Term[Value], time: Term[HybridTime]) -> None:
        """A client looks a value up, in the table where the index does not have it."""
        require(self.permission.column(lambda p: p.read), "the index serves reads")
        require(self._is_kept(time), "the read point is in history")
        self._may_use_the_index(time)
        there = self._row_at(r, time) == v
        found = (self._entry_at(r, v, time) == Stored.live) | there
        self.wrong_read = self.wrong_read | (found != there)

    @BackfillVersions.permission.step(
        Permission.do_backfill, Permission.read_write_and_delete, by=MASTER, fair=WEAK
    )
    def publish(self) -> None:
        """The index serves reads."""


@known_bug(
    "002-88",
    "design document 002, Design Goals: consistent with the data in the primary table",
    breaks=BackfillVersions.no_missing_entry,
)
class RowsOfBeforeAreNotSeen(BackfillVersions):
    """A row is looked up among the versions that came since the index is known: the scan finds none of before, and so
    does a lookup that the table is asked for.
    """

    def _row_at(self, r: Term[Row], time: Term[HybridTime]) -> Maybe[Value]:
        since, *later = TIMES[1:]
        found = choose(self._has_version(r, since, time), self.value[r][since], None)
        for t in later:
            found = choose(self._has_version(r, t, time), self.value[r][t], found)
        return found

    def _has_version(self, r: Term[Row], t: HybridTime, time: Term[HybridTime]) -> Bool:
        return self.written[r].has(t) & (number_of(Term.of(t)) <= number_of(time))


@known_bug(
    "Y10",
    "yugabyte-db #32570",
    breaks=BackfillVersions.reads_through_the_index_find_the_rows,
    budgets={BackfillVersions.writes: 1},
)
class OldReadersUseTheIndex(BackfillVersions):
    """A repeatable read had its read point from before `t_read`. It used the index that was published meanwhile, and
    found nothing: the entries that are backfilled are newer.
    """

    def _may_use_the_index(self, time: Term[HybridTime]) -> None:
        """Whatever the read point is."""


@known_bug(
    "Y11",
    "yugabyte-db #32522, #32560",
    breaks=(BackfillVersions.no_missing_entry, BackfillVersions.the_scan_sees_t_read),
    budgets={BackfillVersions.writes: 1},
)
class HistoryIsCollectedUnderTheScan(BackfillVersions):
    """A row was updated in another column, and a compaction collected the version that the scan was to see: the row
    was not found, and got no entry.
    """

    def _is_not_scanned(self, time: Term[HybridTime]) -> None:
        """Nobody asks for the scan."""


@known_bug(
    "Y12",
    "design document 002",
    profile="seed-own-time",
    breaks=BackfillVersions.no_missing_entry,
    budgets={BackfillVersions.writes: 1},
)
class MarkersWinTheTie(BackfillVersions):
    """A row got the value that it had while the index was at DELETE_ONLY, so that a delete marker has the time of the
    row. Entries are written with "the update time of the row being read", and the marker hides that of this one.
    """

    def _instead_of(self, stored: Term[Stored]) -> Term[Stored]:
        return choose(stored == Stored.delete_marker, stored, Stored.live)


# -- what is never done ----------------------------------------------------------------------------


@known_bug("Y29", "design document 002", breaks=BackfillVersions.builds_end)
class LostChunksAreNotAskedAgain(BackfillVersions):
    """A chunk was asked for once: when its answer was lost the index was never published."""

    @action
    def backfill(self, r: Term[Row]) -> None:
        """The row is read, or the request was lost."""
        super().backfill(r)


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "002-47",
    ONLINE,
    breaks=BackfillVersions.deletes_are_not_locked_out,
    budgets={BackfillVersions.writes: 1},
)
class VersionsAreDeletedAfterTheScan(BackfillVersions):
    """Rows may be written during the scan, and not deleted: a delete marker would be in its way."""

    @action(by=CLIENT, spends=BackfillVersions.writes)
    def delete(self, r: Term[Row], time: Term[HybridTime]) -> None:
        """The table is not scanned."""
        super().delete(r, time)
        require(self.permission != Permission.do_backfill, "the table is not scanned")


@known_bug(
    "002-62",
    ONLINE,
    breaks=BackfillVersions.updates_of_other_columns_are_not_locked_out,
    budgets={BackfillVersions.writes: 1},
)
class OtherColumnsWaitForTheScan(BackfillVersions):
    """What the index does not have is not updated during the scan: the row would get another version."""

    @action(by=CLIENT, spends=BackfillVersions.writes)
    def update_in_place(self, r: Term[Row], time: Term[HybridTime]) -> None:
        """The table is not scanned."""
        super().update_in_place(r, time)
        require(self.permission != Permission.do_backfill, "the table is not scanned")


@known_bug(
    "002-157",
    "design document 002, Index backfill on a single tablet: compactions",
    breaks=BackfillVersions.history_of_the_table_goes_during_the_scan,
    budgets={BackfillVersions.writes: 1},
)
class NoCompactionDuringTheScan(BackfillVersions):
    """The table was not compacted while it was scanned, not even of what was older than the scan."""

    def _is_not_scanned(self, time: Term[HybridTime]) -> None:
        require(self.permission != Permission.do_backfill, "no scan is under way")


@known_bug(
    "002-166",
    "design document 002, Index backfill on a single tablet: compactions",
    breaks=BackfillVersions.the_index_is_compacted_while_it_is_built,
    budgets={BackfillVersions.writes: 1},
)
class NoCompactionOfTheIndex(BackfillVersions):
    """Compactions of an index were off until it served reads, so that no delete marker went too early."""

    @action(by=STORAGE)
    def compact_index(self, time: Term[HybridTime]) -> None:
        """History of the index is collected."""
        super().compact_index(time)
        require(self.permission == Permission.read_write_and_delete, "it serves reads")


BUGS = known_bugs_in(globals())

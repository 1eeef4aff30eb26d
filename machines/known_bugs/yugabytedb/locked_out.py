"""Mistakes by which clients of a table wait for the build of its index, each caught by one promise alone."""

from __future__ import annotations

from stagewright.machines.yugabytedb.backfill.backfill_rpcs import BackfillRpcs, Phase
from stagewright.machines.yugabytedb.backfill.backfill_safe_time import (
    NO_TIME,
    TABLET,
    BackfillSafeTime,
)
from stagewright.machines.yugabytedb.backfill.backfill_table import Index, Tablet
from stagewright.machines.yugabytedb.backfill.backfill_versions import BackfillVersions
from stagewright.machines.yugabytedb.indexes.index_actors import CLIENT, POSTGRES, Server
from stagewright.machines.yugabytedb.indexes.index_permissions import IndexPermissions
from stagewright.machines.yugabytedb.indexes.index_postgres_rows import PostgresRows
from stagewright.machines.yugabytedb.indexes.index_rows import (
    HybridTime,
    IndexRows,
    Row as TableRow,
    Value,
)
from stagewright.machines.yugabytedb.indexes.index_states import Permission, Status
from stagewright.machines.yugabytedb.indexes.unique_index import Key, Row, Time, UniqueIndex
from stagewright.spec import Term, action, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

ONLINE = 'design document 002: "without locking out reads or writes"'


@known_bug("002-46", ONLINE, breaks=BackfillSafeTime.transactions_commit_at_any_time)
class CommitsWaitForTheScan(BackfillSafeTime):
    """Once the read time is chosen nothing commits until the index is there: so every scan sees the same."""

    @action(by=TABLET)
    def commit(self, t: Term[Tablet]) -> None:
        """The table is not scanned."""
        super().commit(t)
        require((self.read_time == NO_TIME) | self.published, "the table is not scanned")


@known_bug(
    "002-47",
    ONLINE,
    breaks=BackfillVersions.deletes_are_not_locked_out,
    budgets={BackfillVersions.writes: 1},
)
class VersionsAreDeletedAfterTheScan(BackfillVersions):
    """Rows may be written during the scan, and not deleted: a delete marker would be in its way."""

    @action(by=CLIENT, spends=BackfillVersions.writes)
    def delete(self, r: Term[TableRow], time: Term[HybridTime]) -> None:
        """The table is not scanned."""
        super().delete(r, time)
        require(self.permission != Permission.do_backfill, "the table is not scanned")


@known_bug(
    "002-48",
    ONLINE,
    breaks=UniqueIndex.deletes_are_not_locked_out,
    sizes={Key: 1},
    budgets={UniqueIndex.writes: 1},
)
class KeysAreGivenUpAfterTheBuild(UniqueIndex):
    """A row is not deleted before it is known whether its key is unique."""

    @action(by=CLIENT, spends=UniqueIndex.writes)
    def delete(self, r: Term[Row], k: Term[Key], time: Term[Time]) -> None:
        """The index is built."""
        super().delete(r, k, time)
        require(self.build != Status.in_progress, "the index is built")


@known_bug(
    "002-49",
    ONLINE,
    breaks=UniqueIndex.updates_are_refused_only_if_the_key_is_taken,
    budgets={UniqueIndex.writes: 1},
)
class KeysChangeAfterTheBuild(UniqueIndex):
    """A row keeps its key until it is known whether that is unique."""

    @action(by=CLIENT, spends=UniqueIndex.writes)
    def update(self, r: Term[Row], old: Term[Key], k: Term[Key], time: Term[Time]) -> None:
        """The index is built."""
        super().update(r, old, k, time)
        require(self.build != Status.in_progress, "the index is built")


@known_bug(
    "002-62",
    ONLINE,
    breaks=BackfillVersions.updates_of_other_columns_are_not_locked_out,
    budgets={BackfillVersions.writes: 1},
)
class OtherColumnsWaitForTheScan(BackfillVersions):
    """What the index does not have is not updated during the scan: the row would get another version."""

    @action(by=CLIENT, spends=BackfillVersions.writes)
    def update_in_place(self, r: Term[TableRow], time: Term[HybridTime]) -> None:
        """The table is not scanned."""
        super().update_in_place(r, time)
        require(self.permission != Permission.do_backfill, "the table is not scanned")


@known_bug(
    "002-63",
    "design document 002: the index build itself will occur asynchronously",
    breaks=IndexPermissions.indexes_are_dropped_at_any_time,
)
class DropIndexWaitsForTheBuild(IndexPermissions):
    """DROP INDEX is refused until the index is built."""

    @action(by=CLIENT)
    def drop_index(self) -> None:
        """The index is built."""
        require(self.permission == Permission.read_write_and_delete, "the index is built")
        super().drop_index()


@known_bug(
    "002-64",
    "design document 002: the index build itself will occur asynchronously",
    breaks=BackfillRpcs.indexes_are_dropped_at_any_time,
)
class DropIndexWaitsForTheTablet(BackfillRpcs):
    """DROP INDEX is refused while the master leader has a job to do."""

    @action(by=CLIENT, spends=BackfillRpcs.aborts)
    def drop_index(self, i: Term[Index]) -> None:
        """The master leader has no job to do."""
        super().drop_index(i)
        require(self.phase == Phase.none, "the master leader has no job to do")


@known_bug("002-65", ONLINE, breaks=IndexRows.transactions_can_be_given_up)
class RollbacksWaitForTheBackfill(IndexRows):
    """A transaction is given up when no backfill is under way, and holds its rows until then."""

    @action(by=CLIENT)
    def roll_back(self, s: Term[Server]) -> None:
        """No backfill is under way."""
        super().roll_back(s)
        require(self.index.permission != Permission.do_backfill, "no backfill is under way")


@known_bug(
    "002-84",
    "design document 002: the index build itself will occur asynchronously",
    breaks="index.indexes_are_dropped_at_any_time",
    sizes={Server: 1},
)
class DropIndexWaitsForTransactions(PostgresRows):
    """DROP INDEX is refused while a transaction of a client has a row locked."""

    @action(by=POSTGRES, spends=PostgresRows.drops)
    def drop_index(self) -> None:
        """No transaction is pending."""
        super().drop_index()
        pending = some(self.transaction[s][r].pending for s in Server for r in TableRow)
        require(~pending, "no transaction is pending")


@known_bug(
    "002-125",
    "design document 002: the index build itself will occur asynchronously",
    breaks=IndexRows.indexes_are_dropped_while_rows_are_written,
    sizes={Server: 1},
)
class DropsWaitForRows(IndexRows):
    """The same in YCQL: an index could be dropped when no transaction had written a row."""

    @action(by=CLIENT, spends=IndexRows.drops)
    def drop_index(self) -> None:
        """No transaction is pending."""
        super().drop_index()
        pending = some(self.transaction[s][r].pending for s in Server for r in TableRow)
        require(~pending, "no transaction is pending")


@known_bug(
    "002-126",
    ONLINE,
    breaks=IndexRows.published_indexes_are_read_at_any_time,
    sizes={Server: 1},
    budgets={IndexRows.writes: 1, IndexRows.drops: 0},
)
class ReadsWaitForWrites(IndexRows):
    """An index that serves reads was not read while a transaction had written a row: its entry might come any time."""

    @action(by=CLIENT)
    def read_index(self, s: Term[Server], r: Term[TableRow], value: Term[Value]) -> None:
        """No row is locked."""
        super().read_index(s, r, value)
        pending = some(self.transaction[o][row].pending for o in Server for row in TableRow)
        require(~pending, "no transaction is pending")


BUGS = known_bugs_in(globals())

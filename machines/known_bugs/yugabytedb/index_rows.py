"""Bugs of YugabyteDB's online index backfill: permissions, rows, entries and delete markers."""

from __future__ import annotations

from stagewright.machines.yugabytedb.indexes.index_actors import CLIENT, POSTGRES, WEAK, Server
from stagewright.machines.yugabytedb.indexes.index_life import Job
from stagewright.machines.yugabytedb.indexes.index_permissions import IndexPermissions
from stagewright.machines.yugabytedb.indexes.index_postgres import PostgresIndex
from stagewright.machines.yugabytedb.indexes.index_rows import (
    LAST,
    HybridTime,
    IndexRows,
    PromptIndex,
    Row,
    Stored,
    Value,
)
from stagewright.machines.yugabytedb.indexes.index_states import Permission, Status
from stagewright.spec import Bool, Term, action, choose, part, require, some
from stagewright.spec.known_bugs import NotFound, known_bug, known_bugs_in


class NoDeleteOnly(PromptIndex):
    """An index begins with WRITE_AND_DELETE."""

    @PromptIndex.permission.step(Permission.absent, Permission.write_and_delete, by=CLIENT)
    def create_index(self) -> None:
        """CREATE INDEX lets servers write to the index although others do not delete from it yet."""
        require(self.version == 0, "the name was not used before")
        self._enter()


@known_bug(
    "Z01",
    "yugabyte-db #4584",
    breaks=IndexRows.no_orphan_entry,
    budgets={IndexRows.drops: 0},
)
class FromAbsentToWriteAndDelete(IndexRows):
    """One server writes an entry under WRITE_AND_DELETE; another one, which does not know the index yet,
    deletes the row and leaves the entry. The state DELETE_ONLY exists to prevent it.
    """

    index = part(NoDeleteOnly, without=(NoDeleteOnly.report, NoDeleteOnly.find_violation))


@known_bug(
    "Z03",
    "yugabyte-db #3471",
    breaks=IndexRows.no_missing_entry,
    budgets={IndexRows.writes: 1, IndexRows.drops: 0},
)
class SafeTimeIgnoresTransactions(IndexRows):
    """GetSafeTime did not wait for pending transactions: one that began before WRITE_AND_DELETE, and writes
    nothing to the index, committed after `t_read`, where the scan did not see it.
    """

    def _old_transactions_have_ended(self, s: Term[Server]) -> None:
        """Nobody asks for them."""


@known_bug(
    "Z05",
    "yugabyte-db #4211",
    breaks=IndexRows.no_orphan_entry,
    budgets={IndexRows.writes: 1, IndexRows.drops: 0},
)
class RetentionNegated(IndexRows):
    """The flag was read the wrong way round: a compaction dropped the delete marker of a row that was deleted
    during the backfill, whose older entry then came to life.
    """

    def _may_reclaim_delete_markers(self) -> None:
        require(self.retains_delete_markers, "delete markers are not retained")


@known_bug(
    "Z07",
    "yugabyte-db #25250",
    breaks=IndexRows.no_orphan_entry,
    budgets={IndexRows.writes: 1, IndexRows.drops: 0},
)
class BackfillWritesNow(IndexRows):
    """The backfill wrote its entries with the current time, so that they hid newer delete markers."""

    def _backfill_time(self) -> Term[HybridTime]:
        return Term.of(LAST)


@known_bug("Z19", "yugabyte-db #8780", breaks=IndexPermissions.permissions_only_grow)
class NoMonotoneGuard(IndexPermissions):
    """DROP INDEX came while the job was finishing, and then the job wrote READ_WRITE_AND_DELETE over it."""

    def _is_not_past(self, permission: Permission) -> None:
        """Nobody asks."""


@known_bug(
    "Z45", "yugabyte-db #6234", breaks=IndexPermissions.success_means_that_every_server_reads
)
class DoneBeforeFullyApplied(IndexPermissions):
    """CREATE INDEX was answered when the master had stored the permission, not when the tablets had it."""

    def _is_ready(self) -> Bool:
        return self.permission == Permission.read_write_and_delete


@known_bug("Y08", "design document 002", breaks=IndexPermissions.create_index_does_not_wait)
class CreateIndexWaits(IndexPermissions):
    """The client hears of its index when the build is over, and not before."""

    @action(by=CLIENT, fair=WEAK)
    def ask_for_status(self) -> None:
        """CREATE INDEX is answered."""
        require(self.version > 0, "CREATE INDEX was executed")
        require(self._status() != Status.in_progress, "the build is over")
        self.told = self._status()


@known_bug("Y09", "design document 002", breaks=IndexPermissions.clients_learn_the_result)
class FailuresAreNotTold(IndexPermissions):
    """What is known of a build goes with its index: of one that failed the client hears nothing, or that it goes on."""

    def _status(self) -> Term[Status]:
        return choose(self._is_ready(), Status.success, Status.in_progress)


@known_bug(
    "Y15",
    "design document 002",
    breaks=IndexRows.no_missing_entry,
    sizes={Row: 2, Server: 1},
    budgets={IndexRows.drops: 0},
)
class OnlyTheLastStatementCounts(IndexRows):
    """A transaction wrote one row at DELETE_ONLY and another one at WRITE_AND_DELETE. GetSafeTime took it for a new one,
    and the scan did not see the first.
    """

    def _is_old(self, s: Term[Server]) -> Bool:
        new = some(
            self.transaction[s][r].pending & self.transaction[s][r].under.column(lambda p: p.write)
            for r in Row
        )
        return super()._is_old(s) & ~new


@known_bug(
    "Y16",
    "YugabyteDB's release notes, 2024.2.6.0-b89",
    breaks=PostgresIndex.a_dropped_index_has_no_flags,
)
class AnotherIndexMovesTheFailedOne(PostgresIndex):
    """A backfill had failed, and its index waited for postgres to drop it. The versions of another index of the table
    moved it on like one of YCQL, until its index table was deleted.
    """

    def _beside_another(self) -> Term[Permission]:
        return self.permission.column(lambda p: p.following if p.removed else p)


@known_bug(
    "002-5",
    "design document 002: the index build itself occurs asynchronously",
    breaks=PostgresIndex.indexes_are_dropped_at_any_time,
)
class PostgresWaitsForTheJob(PostgresIndex):
    """DROP INDEX is refused by postgres while the index is backfilled."""

    @action(by=POSTGRES)
    def drop_index_in_postgres(self) -> None:
        """The index is taken out of both catalogs, if no job is running."""
        super().drop_index_in_postgres()
        require(self.job == Job.none, "no job is running")


@known_bug(
    "Y14",
    "design document 002",
    breaks=IndexPermissions.deferred_builds_wait_for_their_statement,
)
class DeferredBuildsStartAtOnce(IndexPermissions):
    """What was created without its build is built as soon as every server knows it: each index by a scan of its own."""

    def _is_to_be_built(self) -> None:
        """Nobody asks."""


@known_bug(
    "Z48",
    "yugabyte-db #30653",
    breaks=IndexRows.entries_have_the_time_of_their_rows,
    budgets={IndexRows.writes: 1, IndexRows.drops: 0},
)
class InPlaceUpdatesSkipped(IndexRows):
    """An update that left the key columns as they were did not touch the index, where the row's entry was not
    backfilled yet, or is older now than the row.
    """

    def _maintain(self, s: Term[Server], r: Term[Row], v: Value, time: Term[HybridTime]) -> None:
        write, entry = self.transaction[s][r], self.entry[r][v]
        changed = write.old != write.new
        there = (self.index.permission != Permission.absent) & changed
        deletes = there & (write.old == v) & write.under.column(lambda p: p.delete)
        writes = there & (write.new == v) & write.under.column(lambda p: p.write)
        gone = choose(deletes, Stored.delete_marker, entry.stored)
        entry.stored = choose(writes, Stored.live, gone)
        entry.time = choose(writes | deletes, time, entry.time)


@known_bug(
    "Y01",
    "yugabyte-db #26520, #26786",
    breaks=IndexRows.writes_are_not_locked_out,
    budgets={IndexRows.writes: 1, IndexRows.drops: 0},
)
class WritesAreLockedOut(IndexRows):
    """The build of an index held a lock on its table: until it was published no client could write."""

    def _begin(self, s: Term[Server], r: Term[Row]) -> None:
        backfilled = self.index.permission == Permission.do_backfill
        require(~backfilled, "no backfill holds the table's lock")
        super()._begin(s, r)


@known_bug(
    "Y02",
    "design document 002",
    breaks=IndexRows.reads_are_not_locked_out,
    budgets={IndexRows.writes: 0, IndexRows.drops: 0},
)
class ReadsAreLockedOut(IndexRows):
    """The same for reads of the table."""

    @action(by=CLIENT)
    def read_table(self, r: Term[Row]) -> None:
        """It waits until the index is published."""
        require(self._now(r).is_some(), "the row is there")
        backfilled = self.index.permission == Permission.do_backfill
        require(~backfilled, "no backfill holds the table's lock")


@known_bug("Y26", "design document 002", breaks=IndexPermissions.removals_end)
class RemovalsStopBeforeTheEnd(IndexPermissions):
    """Nobody used the index any more, and its table was left until somebody thought of it."""

    @IndexPermissions.permission.step(Permission.index_unused, Permission.absent, by=CLIENT)
    def delete_index(self) -> None:
        """A person removes what is left."""
        self._all_reported()
        self._enter()


@known_bug("Y27", "design document 002", breaks=IndexPermissions.clients_hear_of_failures)
class ViolationsAreForgotten(IndexPermissions):
    """An index that violated a constraint was gone with its status: a client heard of the failures of jobs alone."""

    @action(by=CLIENT, fair=WEAK)
    def ask_for_status(self) -> None:
        """The status is that of the job, if it says one."""
        require(self.version > 0, "CREATE INDEX was executed")
        require(~self.drop_requested, "no client has dropped the index")
        failed = self._status() == Status.failed
        self.told = choose(failed & self.violates_constraint, self.told, self._status())


BUGS = known_bugs_in(globals())
NOT_FOUND: tuple[NotFound, ...] = ()

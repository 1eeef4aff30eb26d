"""Mistakes put back into `IndexRows`: a property breaks with each."""

from __future__ import annotations

from itertools import pairwise

from stagewright.machines.yugabytedb.backfill.backfill_table import CLIENT, WEAK
from stagewright.machines.yugabytedb.indexes.index_actors import MASTER, Server
from stagewright.machines.yugabytedb.indexes.index_life import Job
from stagewright.machines.yugabytedb.indexes.index_rows import (
    LAST,
    STORAGE,
    HybridTime,
    IndexRows,
    PromptIndex,
    Row,
    Stored,
    Value,
    number_of,
)
from stagewright.machines.yugabytedb.indexes.index_states import Permission
from stagewright.spec import Bool, BudgetName, Term, action, choose, every, part, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

ONE_WRITE: dict[BudgetName, int | None] = {IndexRows.writes: 1, IndexRows.drops: 0}
NO_WRITE: dict[BudgetName, int | None] = {IndexRows.writes: 0, IndexRows.drops: 0}
TIMES = list(HybridTime)
TRANSACTIONS = 'design document 002, "Waiting for pending transactions to finish"'
ONLINE = 'design document 002: "without locking out reads or writes"'


# -- what goes wrong -------------------------------------------------------------------------------


@known_bug(
    "002-7",
    "design document 002: delete markers are kept until the backfill is complete",
    breaks=IndexRows.no_orphan_entry,
    budgets=ONE_WRITE,
)
class OrphansAreSweptInTheEnd(IndexRows):
    """Delete markers are reclaimed while rows are backfilled. A last pass removes what that brings back to life."""

    def _may_reclaim_delete_markers(self) -> None:
        """At any time."""

    @action(by=MASTER, fair=WEAK)
    def publish(self) -> None:
        """The index is published without the entries that have no row."""
        super().publish()
        for r in Row:
            for v in Value:
                entry = self.entry[r][v]
                orphan = (entry.stored == Stored.live) & (self._now(r) != v)
                entry.stored = choose(orphan, Stored.nothing, entry.stored)
                entry.time = choose(orphan, HybridTime.t0, entry.time)


@known_bug(
    "002-8",
    'design document 002: an index "will be cleaned up and deleted"',
    breaks=IndexRows.a_deleted_index_is_empty,
    budgets={IndexRows.writes: 0},
)
class EntriesOutliveTheirIndex(IndexRows):
    """The index is taken out of the catalog, and what its table stores is left."""

    def _delete_entries(self) -> None:
        """Nothing is deleted."""


@known_bug(
    "002-9",
    "design document 002: entries are as old as their rows, or as the scan",
    breaks=IndexRows.entries_are_backfilled_in_the_past,
    budgets=NO_WRITE,
)
class EntriesAreAsNewAsWhatFollows(IndexRows):
    """Backfilled entries have the time after the scan's, like the first update that runs beside it."""

    def _backfill_time(self) -> Term[HybridTime]:
        time = Term.of(TIMES[-1])
        for now, following in pairwise(TIMES):
            time = choose(self.t_read == now, following, time)
        return time


@known_bug(
    "002-10",
    'design document 002: "using the current hybrid timestamp"',
    breaks=IndexRows.rows_change_at_later_times,
    budgets=ONE_WRITE,
)
class DeletesHaveNoTime(IndexRows):
    """A delete leaves nothing behind, and so no time: the row changes as if it was of before."""

    @action
    def commit(self, s: Term[Server], time: Term[HybridTime]) -> None:
        """Rows that are there after it get its time."""
        require(self._is_pending(s), "a transaction has written a row")
        require(self._is_later(s, time), "the time is later than what it saw")
        require(self._is_next(s, time), "no time is left out")
        for r in Row:
            write = self.transaction[s][r]
            for t in HybridTime:
                after = write.pending & (number_of(time) <= number_of(Term.of(t)))
                self.visible[r][t] = choose(after, write.new, self.visible[r][t])
            for v in Value:
                self._maintain(s, r, v, time)
            stays = write.pending & write.new.is_some()
            self.updated[r] = choose(stays, time, self.updated[r])
        self.clock[s] = time
        self._end(s)


@known_bug(
    "002-11",
    'design document 002: once READ_WRITE_AND_DELETE, "the index is completely rebuilt"',
    breaks=IndexRows.no_missing_entry,
    budgets=NO_WRITE,
)
class PublishedBeforeItIsBuilt(IndexRows):
    """The index is published with the time of its scan; rows are backfilled afterwards, and queries wait for that."""

    @action(by=MASTER, fair=WEAK)
    def finish_backfill(self) -> None:
        """The time of the scan is chosen."""
        self._t_read_is_chosen()
        self.index.finish_backfill()

    @action(fair=WEAK)
    def backfill_row(self, r: Term[Row]) -> None:
        """A row is backfilled, whether or not the index is published."""
        self._t_read_is_chosen()
        require(self.index.permission.column(lambda p: p.kept), "the index is there")
        require(every(self._past_t_read(s) for s in Server), "safe times are past t_read")
        self._write_in_the_past(r)
        self.backfilled.add(r)

    @action(by=CLIENT)
    def read_index(self, s: Term[Server], r: Term[Row], value: Term[Value]) -> None:
        """A client looks a value up in an index that has all rows."""
        super().read_index(s, r, value)
        require(every(self.backfilled.has(q) for q in Row), "every row is backfilled")


@known_bug(
    "002-12",
    'design document 002: "subsequent writes do not affect the values read by this scan"',
    breaks=IndexRows.writes_do_not_affect_the_scan,
    budgets=ONE_WRITE,
)
class ScansBeginATickTooSoon(IndexRows):
    """A server begins when its clock is about to come to `t_read`, at which a transaction may still commit."""

    def _past_t_read(self, s: Term[Server]) -> Bool:
        return number_of(self.clock[s]) + 1 >= number_of(self.t_read)


@known_bug(
    "002-14",
    "design document 002, Waiting for pending transactions",
    breaks=IndexRows.transactions_write_several_rows,
    sizes={Row: 2, Server: 1},
    budgets={IndexRows.drops: 0},
)
class TransactionsPlanByTheirFirstStatement(IndexRows):
    """All statements of a transaction are planned by the permission that the first one knew."""

    def _begin(self, s: Term[Server], r: Term[Row]) -> None:
        require(~self._is_held(r), "no transaction holds the row's lock")
        write, known = self.transaction[s][r], self._plans_by(s)
        for p in Permission:
            first = some(
                self.transaction[s][o].pending & (self.transaction[s][o].under == p) for o in Row
            )
            known = choose(first, p, known)
        write.pending = True
        write.old = self._now(r)
        write.under = known


@known_bug(
    "002-81",
    "design document 002, Waiting for pending transactions",
    breaks=IndexRows.only_old_transactions_are_aborted,
    budgets=ONE_WRITE,
)
class EveryTransactionIsAborted(IndexRows):
    """GetSafeTime aborts whatever is pending, also what maintains the index: so it never waits for long."""

    def _is_old(self, s: Term[Server]) -> Bool:
        return self._is_pending(s)


@known_bug(
    "002-365",
    'design document 002: "The entire build process should not need to restart"',
    breaks=IndexRows.rows_are_backfilled_for_good,
    budgets=ONE_WRITE,
)
class StatementsBeginTheScanAnew(IndexRows):
    """A row that a client writes during the scan may get another entry, so the scan begins anew: in a table that is written
    all the time it never comes to an end.
    """

    @action(by=CLIENT, spends=IndexRows.writes)
    def write(self, s: Term[Server], r: Term[Row], value: Term[Value]) -> None:
        """What was scanned is scanned again."""
        super().write(s, r, value)
        self.backfilled = frozenset[Row]()


@known_bug(
    "002-133",
    'design document 002, DB_REORG: "The index cannot be used to perform read operations"',
    breaks=IndexRows.indexes_are_not_read_before_they_are_published,
    budgets=NO_WRITE,
)
class ReadersLookWhetherRowsAreIn(IndexRows):
    """A server that sees all rows in the index reads by it, though the master may still let the build fail."""

    @action(by=CLIENT)
    def read_index(self, s: Term[Server], r: Term[Row], value: Term[Value]) -> None:
        """A client looks a value up in an index that is published, or has all rows."""
        complete = every(self.backfilled.has(q) for q in Row)
        complete = complete & (self._plans_by(s) == Permission.do_backfill)
        require(complete | self._plans_by(s).column(lambda p: p.read), "all rows are in it")
        self._look_up(r, value)


@known_bug(
    "002-134",
    "design document 002, Waiting for pending transactions",
    breaks=IndexRows.only_old_transactions_are_aborted,
    budgets=ONE_WRITE,
)
class WhatIsOldIsAbortedAtOnce(IndexRows):
    """Who has written a row before WRITE_AND_DELETE is aborted while the index is altered, long before anybody waits."""

    @action
    def abort_old_transaction(self, s: Term[Server]) -> None:
        """An old transaction is aborted as soon as there is an index."""
        require(self.index.permission.column(lambda p: p.kept), "the index is there")
        require(self._is_old(s), "a transaction from before WRITE_AND_DELETE is pending")
        self.wrong_abort = self.wrong_abort | self._writes_every_entry(s) | ~self._waits()
        self._end(s)


class IndexOfATableAtRest(PromptIndex):
    """An index that fails also because of rows that have changed."""

    @action(by=MASTER, fair=WEAK)
    def find_change(self) -> None:
        """A row is not what was scanned."""
        require(self.job == Job.running, "the job is running")
        self.job = Job.failed


@known_bug(
    "002-182",
    'design document 002, Design Goals: "without locking out reads or writes on the table"',
    breaks=IndexRows.indexes_are_built_under_writes,
    budgets=ONE_WRITE,
)
class OnlyTablesAtRestAreIndexed(IndexRows):
    """When all was scanned, a table that had changed meanwhile was taken for one that was not scanned well: its index failed,
    and CREATE INDEX succeeded at night.
    """

    index = part(
        IndexOfATableAtRest,
        without=(IndexOfATableAtRest.report, IndexOfATableAtRest.find_violation),
    )

    @action(by=MASTER, fair=WEAK)
    def finish_backfill(self) -> None:
        """Every tablet has answered that it is done, and no row has changed since."""
        super().finish_backfill()
        require(~self._has_changed(), "the table is as it was scanned")

    @action(by=MASTER, fair=WEAK)
    def find_change(self) -> None:
        """Every tablet has answered that it is done, and a row has changed."""
        require(every(self.backfilled.has(r) for r in Row), "every row is backfilled")
        require(self._has_changed(), "a row has changed since the scan")
        self.index.find_change()

    def _has_changed(self) -> Bool:
        return some(number_of(self.updated[r]) > number_of(self.t_read) for r in Row)


@known_bug(
    "002-243",
    "design document 002, Waiting for pending transactions",
    breaks=IndexRows.the_build_ends_no_transaction,
    budgets=ONE_WRITE,
)
class SafeTimesEndTransactions(IndexRows):
    """A server that answers GetSafeTime drops whatever is pending on it, so that nothing commits behind the answer."""

    @action(fair=WEAK)
    def get_safe_time(self, s: Term[Server], time: Term[HybridTime]) -> None:
        """Also what maintains the index."""
        super().get_safe_time(s, time)
        self._end(s)


@known_bug(
    "002-290",
    'design document 002, "Waiting for pending transactions to finish"',
    breaks=IndexRows.transactions_end_as_a_whole,
    sizes={Row: 2, Server: 1},
    budgets={IndexRows.drops: 0},
)
class OnlyOldRowsAreAborted(IndexRows):
    """A transaction from before WRITE_AND_DELETE loses the rows that it wrote then, and commits what it has written since."""

    @action(fair=WEAK)
    def abort_old_transaction(self, s: Term[Server]) -> None:
        """GetSafeTime has waited long enough for what will not be written to the index."""
        require(self.index.job == Job.running, "the job is running")
        require(self._is_old(s), "a transaction from before WRITE_AND_DELETE is pending")
        self.wrong_abort = self.wrong_abort | self._writes_every_entry(s) | ~self._waits()
        for r in Row:
            write = self.transaction[s][r]
            keeps = write.under.column(lambda p: p.write)
            write.pending = write.pending & keeps
            write.old = choose(keeps, write.old, None)
            write.new = choose(keeps, write.new, None)
            write.under = choose(keeps, write.under, Permission.absent)


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


# -- what is never done ----------------------------------------------------------------------------


@known_bug(
    "002-13",
    'design document 002: markers stay "until the index is in READ_WRITE_AND_DELETE state"',
    breaks=IndexRows.delete_markers_do_not_stay,
    budgets=ONE_WRITE,
)
class MarkersMayGoIfSomebodyAsks(IndexRows):
    """The index is published, and compactions are told that delete markers may go if a client asks for that."""

    @action(by=CLIENT)
    def allow_to_reclaim_delete_markers(self) -> None:
        """The index is published: compactions of it may reclaim delete markers."""
        published = self.index.permission == Permission.read_write_and_delete
        require(published, "the index is published")
        require(self.retains_delete_markers, "they are retained")
        self.retains_delete_markers = False

    @action(by=MASTER, fair=WEAK)
    def publish(self) -> None:
        """The index becomes READ_WRITE_AND_DELETE."""
        self.index.publish()


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "002-6",
    'design document 002: "without locking out reads or writes"',
    breaks=IndexRows.writes_are_not_locked_out,
    budgets=ONE_WRITE,
)
class InsertsWaitForTheScan(IndexRows):
    """Rows may be deleted while the table is scanned; whatever would add an entry waits."""

    @action(by=CLIENT, spends=IndexRows.writes)
    def write(self, s: Term[Server], r: Term[Row], value: Term[Value]) -> None:
        """A client writes a row of a table that is not being scanned."""
        super().write(s, r, value)
        scanned = self.index.permission == Permission.do_backfill
        require(~scanned, "the table is not scanned")


@known_bug("002-65", ONLINE, breaks=IndexRows.transactions_can_be_given_up)
class RollbacksWaitForTheBackfill(IndexRows):
    """A transaction is given up when no backfill is under way, and holds its rows until then."""

    @action(by=CLIENT)
    def roll_back(self, s: Term[Server]) -> None:
        """No backfill is under way."""
        super().roll_back(s)
        require(self.index.permission != Permission.do_backfill, "no backfill is under way")


@known_bug(
    "002-376",
    ONLINE,
    breaks=IndexRows.transactions_can_commit,
    sizes={Row: 2},
    budgets={IndexRows.writes: 2, IndexRows.drops: 0},
)
class TransactionsCommitOneAtATime(IndexRows):
    """A table with an index that is being built has one transaction at a time: others wait to commit, whichever rows they hold."""

    @action
    def commit(self, s: Term[Server], time: Term[HybridTime]) -> None:
        others = some((o != s) & self._is_pending(o) for o in Server)
        require(~others, "no other transaction is pending")
        super().commit(s, time)


@known_bug(
    "002-395",
    "design document 002, Index backfill on a single tablet: compactions",
    breaks=IndexRows.delete_markers_go_under_writes,
    sizes={Server: 1},
    budgets={IndexRows.writes: 2, IndexRows.drops: 0},
)
class CompactionsWaitForTransactions(IndexRows):
    """A compaction of the index waits until no transaction is pending: for a terminal that is left open, too."""

    @action(by=STORAGE)
    def compact(self, r: Term[Row], v: Term[Value]) -> None:
        """A compaction reclaims a delete marker of the index."""
        require(~some(self._is_held(q) for q in Row), "no row is locked")
        super().compact(r, v)


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
        pending = some(self.transaction[s][r].pending for s in Server for r in Row)
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
    def read_index(self, s: Term[Server], r: Term[Row], value: Term[Value]) -> None:
        """No row is locked."""
        super().read_index(s, r, value)
        pending = some(self.transaction[o][row].pending for o in Server for row in Row)
        require(~pending, "no transaction is pending")


@known_bug(
    "002-293",
    'design document 002: "The CREATE INDEX command is asynchronous"',
    breaks=IndexRows.indexes_are_created_while_rows_are_written,
    budgets={IndexRows.writes: 1, IndexRows.drops: 0},
)
class CreatingWaitsForRows(IndexRows):
    """CREATE INDEX waits until no transaction has written a row."""

    @action(by=CLIENT)
    def create_index(self) -> None:
        """A client creates the index of a table at rest."""
        require(~some(self._is_pending(s) for s in Server), "no transaction is pending")
        super().create_index()


@known_bug(
    "002-332",
    TRANSACTIONS,
    breaks=IndexRows.servers_answer_independently,
    budgets=ONE_WRITE,
)
class SafeTimesAreToldTogether(IndexRows):
    """A server answers GetSafeTime when nothing old is pending on any of those that have not answered."""

    @action(fair=WEAK)
    def get_safe_time(self, s: Term[Server], time: Term[HybridTime]) -> None:
        others = some((o != s) & ~self.safe.has(o) & self._is_old(o) for o in Server)
        require(~others, "nothing old is pending on another server")
        super().get_safe_time(s, time)


@known_bug(
    "002-333",
    TRANSACTIONS,
    breaks=IndexRows.old_transactions_are_aborted_independently,
    budgets=ONE_WRITE,
)
class OldTransactionsAreAbortedInTheEnd(IndexRows):
    """A server aborts what is old when all others have answered, and it alone holds up the backfill."""

    @action(fair=WEAK)
    def abort_old_transaction(self, s: Term[Server]) -> None:
        answered = every((o == s) | self.safe.has(o) | self._is_old(o) for o in Server)
        require(answered, "every other server has answered, or has old ones, too")
        super().abort_old_transaction(s)


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


BUGS = known_bugs_in(globals())

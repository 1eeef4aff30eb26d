"""Mistakes put back into `BackfillSafeTime`: a property breaks with each."""

from __future__ import annotations

from typing import Annotated

from stagewright.machines.yugabytedb.backfill.backfill_safe_time import (
    LAST,
    NO_TIME,
    TABLET,
    BackfillSafeTime,
    Change,
    Transaction,
)
from stagewright.machines.yugabytedb.backfill.backfill_table import MASTER, WEAK, Tablet
from stagewright.spec import (
    Bool,
    FlagVar,
    Number,
    Term,
    action,
    between,
    bounded,
    choose,
    every,
    flag,
    require,
    some,
)
from stagewright.spec.known_bugs import known_bug, known_bugs_in

RESTART = 'design document 002: the build "should not need to restart on a node failure"'
FIXED = 'design document 002: "the scan is performed at a fixed timestamp"'
ONLINE = 'design document 002: "without locking out reads or writes"'


# -- what goes wrong -------------------------------------------------------------------------------


@known_bug(
    "002-36",
    'design document 002: entries have a timestamp "that is in the past"',
    breaks=BackfillSafeTime.entries_have_rows,
)
class EntriesHaveTheTimeOfTheirWrite(BackfillSafeTime):
    """Entries are written with the time of now: they hide the delete markers of what was deleted since the scan's."""

    def _is_shown(self, t: Term[Tablet]) -> Bool:
        return self.entry.has(t)


@known_bug("002-37", FIXED, breaks=BackfillSafeTime.scans_share_one_time)
class ChosenAgainBeforeTheFirstScan(BackfillSafeTime):
    """A new leader finds no tablet scanned, and chooses a time of its own, whatever was sent already."""

    @action(spends=BackfillSafeTime.failovers)
    def fail_over(self) -> None:
        """Another master becomes the leader."""
        super().fail_over()
        self.read_time = choose(self.scanned.is_empty(), NO_TIME, self.read_time)


@known_bug("002-38", FIXED, breaks=BackfillSafeTime.scans_repeat)
class ASecondScanMendsTheFirst(BackfillSafeTime):
    """A tablet is scanned before it has reached the read time, and once more before the index is published."""

    def _safe_time_is_reached(self, t: Term[Tablet]) -> None:
        """The first scan does not wait for it."""

    @action(by=MASTER, fair=WEAK)
    def publish(self) -> None:
        """Every tablet is scanned again."""
        super().publish()
        for t in Tablet:
            super()._safe_time_is_reached(t)
            self.entry.put(t, self._was_live(t))


@known_bug(
    "002-82",
    "design document 002, Waiting for pending transactions to finish",
    breaks=BackfillSafeTime.answers_end_no_transaction,
    sizes={Tablet: 1},
)
class AnAnswerEndsWhatIsPending(BackfillSafeTime):
    """A tablet aborts whatever is pending as it answers: no old transaction is, so it can only be one that deletes."""

    @action(by=TABLET, fair=WEAK)
    def get_safe_time(self, t: Term[Tablet]) -> None:
        """Nothing is pending any more."""
        super().get_safe_time(t)
        pending = self.transaction[t] == Transaction.pending
        self.transaction[t] = choose(pending, Transaction.aborted, self.transaction[t])


@known_bug(
    "002-231",
    "design document 002, Waiting for pending transactions: to finish, i.e. commit or abort",
    breaks=BackfillSafeTime.rows_of_old_transactions_are_found,
    budgets={BackfillSafeTime.failovers: 0},
)
class OldTransactionsAreAborted(BackfillSafeTime):
    """A transaction that had begun before the index had its permission was aborted as it came to commit, since its rows would
    have no entries.
    """

    @action(by=TABLET)
    def commit(self, t: Term[Tablet]) -> None:
        """The transaction commits, if it knows of the index."""
        old = self.change[t] == Change.old_insert
        require(self.transaction[t] == Transaction.pending, "transaction is pending")
        bounded(self.clock[t] < LAST, "a time is left")
        outcome = choose(old, Transaction.aborted, Term.of(Transaction.committed))
        self.transaction[t] = outcome
        self.committed_at[t] = choose(old, NO_TIME, self.clock[t] + 1)
        self.clock[t] = self.clock[t] + 1


@known_bug(
    "002-246",
    "design document 002, Waiting for pending transactions to finish",
    breaks=BackfillSafeTime.answers_end_no_transaction,
)
class ScansEndTransactions(BackfillSafeTime):
    """A tablet that is scanned drops what is pending, though it would have written its entries."""

    @action(by=TABLET, fair=WEAK)
    def scan(self, t: Term[Tablet]) -> None:
        """Nothing is pending on it any more."""
        super().scan(t)
        pending = self.transaction[t] == Transaction.pending
        self.transaction[t] = choose(pending, Transaction.aborted, self.transaction[t])


@known_bug("002-267", RESTART, breaks=BackfillSafeTime.scans_are_kept)
class NextLeaderScansAnew(BackfillSafeTime):
    """A new leader has all tablets scanned once more, also those that are done."""

    @action(spends=BackfillSafeTime.failovers)
    def fail_over(self) -> None:
        super().fail_over()
        self.scanned = frozenset[Tablet]()


@known_bug(
    "002-353",
    RESTART,
    breaks=BackfillSafeTime.scans_are_kept,
    sizes={Tablet: 1},
    budgets={BackfillSafeTime.failovers: 2},
)
class TheThirdLeaderTrustsNoScan(BackfillSafeTime):
    """Of what was scanned under two leaders before it, the third one takes nothing for done."""

    elected: FlagVar = flag()

    @action(spends=BackfillSafeTime.failovers)
    def fail_over(self) -> None:
        again = self.elected
        for t in Tablet:
            self.scanned.put(t, self.scanned.has(t) & ~again)
        super().fail_over()
        self.elected = True


@known_bug(
    "002-361",
    "design document 002, READ_WRITE_AND_DELETE: the final state",
    breaks=BackfillSafeTime.published_indexes_stay_so,
    sizes={Tablet: 1},
)
class NextLeaderPublishesAgain(BackfillSafeTime):
    """That an index is published is what a leader remembers: the next one takes it back, and publishes it once more."""

    @action(spends=BackfillSafeTime.failovers)
    def fail_over(self) -> None:
        super().fail_over()
        self.published = False


@known_bug(
    "002-362",
    "design document 002, Waiting for pending transactions",
    breaks=BackfillSafeTime.transactions_end_without_others,
    budgets={BackfillSafeTime.failovers: 0},
)
class OneTimeoutForTheTable(BackfillSafeTime):
    """A tablet has waited long enough for an old transaction, and whatever is pending in the table is aborted with it."""

    @action(by=TABLET, fair=WEAK)
    def abort(self, t: Term[Tablet]) -> None:
        """An old transaction takes all others with it."""
        require(self.transaction[t] == Transaction.pending, "transaction is pending")
        old = (self.change[t] == Change.old_insert) & ~self.user_enforced
        for o in Tablet:
            ends = (self.transaction[o] == Transaction.pending) & (old | (o == t))
            self.transaction[o] = choose(ends, Transaction.aborted, self.transaction[o])


@known_bug("Y13", "design document 002", breaks=BackfillSafeTime.rows_have_entries)
class BoundBelowTheTimeout(BackfillSafeTime):
    """The upper bound for user-enforced transactions is less than the RPC timeout: a write that began before the index
    was known is applied after the time that the tablet answered with.
    """

    def _upper_bound(self) -> int:
        return 0


# -- what is never done ----------------------------------------------------------------------------


@known_bug("Y28", "design document 002", breaks=BackfillSafeTime.every_scan_is_made)
class OpenTransactionsAreWaitedFor(BackfillSafeTime):
    """A terminal was left open in a transaction, and nobody aborted it: the read time was never chosen."""

    @action(by=TABLET)
    def abort(self, t: Term[Tablet]) -> None:
        """Its client aborts it, or does not."""
        require(self.transaction[t] == Transaction.pending, "transaction is pending")
        self.transaction[t] = Transaction.aborted


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug("002-46", ONLINE, breaks=BackfillSafeTime.transactions_commit_at_any_time)
class CommitsWaitForTheScan(BackfillSafeTime):
    """Once the read time is chosen nothing commits until the index is there: so every scan sees the same."""

    @action(by=TABLET)
    def commit(self, t: Term[Tablet]) -> None:
        """The table is not scanned."""
        super().commit(t)
        require((self.read_time == NO_TIME) | self.published, "the table is not scanned")


@known_bug(
    "002-155",
    'design document 002: those "that started before getting to WRITE_AND_DELETE state"',
    breaks=BackfillSafeTime.safe_times_wait_for_old_transactions_alone,
    budgets={BackfillSafeTime.failovers: 0},
)
class EveryTransactionIsWaitedFor(BackfillSafeTime):
    """A tablet answered GetSafeTime when nothing was pending on it: new transactions, too, were waited for, then aborted."""

    def _old_transactions_are_over(self, t: Term[Tablet]) -> Bool:
        return self.transaction[t] != Transaction.pending


@known_bug(
    "002-165",
    'design document 002: a "terminal open with an ongoing txn"',
    breaks=BackfillSafeTime.indexes_are_published_under_transactions,
    budgets={BackfillSafeTime.failovers: 0},
)
class NothingIsPendingWhenItIsPublished(BackfillSafeTime):
    """An index was published when no transaction was pending, also none that had written to it all the time."""

    @action(by=MASTER, fair=WEAK)
    def publish(self) -> None:
        """Every tablet is scanned."""
        super().publish()
        pending = some(self.transaction[t] == Transaction.pending for t in Tablet)
        require(~pending, "no transaction is pending")


@known_bug(
    "002-269",
    'design document 002, "Waiting for pending transactions to finish"',
    breaks=BackfillSafeTime.clocks_wait_for_no_transaction,
    budgets={BackfillSafeTime.failovers: 0},
)
class SafeTimeStaysBeforeWhatIsPending(BackfillSafeTime):
    """The safe time of a tablet passes no pending transaction, old or new: the scan waits for a terminal left open."""

    @action(by=TABLET, fair=WEAK)
    def advance_clock(self, t: Term[Tablet], time: Annotated[Number, between(2, LAST)]) -> None:
        require(self.transaction[t] != Transaction.pending, "no transaction is pending")
        super().advance_clock(t, time)


@known_bug(
    "002-291",
    'design document 002, "Waiting for pending transactions to finish"',
    breaks=BackfillSafeTime.read_times_wait_for_answers_alone,
    budgets={BackfillSafeTime.failovers: 0},
)
class ReadTimesAreReachedFirst(BackfillSafeTime):
    """The time of the scan is chosen when the clocks of all tablets are there: the slowest one holds up the others."""

    @action(by=MASTER, fair=WEAK)
    def choose_read_time(self, time: Annotated[Number, between(1, LAST)]) -> None:
        """J2, when every tablet can be scanned."""
        require(every(self.clock[t] >= time for t in Tablet), "every tablet has reached it")
        super().choose_read_time(time)


@known_bug(
    "002-326",
    'design document 002, "Waiting for pending transactions to finish"',
    breaks=BackfillSafeTime.transactions_can_be_given_up,
)
class NobodyAbortsDuringTheScan(BackfillSafeTime):
    """A transaction is given up before the time of the scan is chosen, or when the index is there."""

    @action(by=TABLET, fair=WEAK)
    def abort(self, t: Term[Tablet]) -> None:
        require((self.read_time == NO_TIME) | self.published, "the table is not scanned")
        super().abort(t)


BUGS = known_bugs_in(globals())

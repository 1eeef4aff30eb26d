"""The read time of a backfill: what every tablet must have finished before, and what must come after.

One row of each tablet changes while the index is built: an old transaction, which began before the index was
known, inserts it without an entry; or a new one deletes it, and its entry. Times are hybrid times: what commits
later on a tablet has a later time there. Of user-enforced transactions a tablet knows nothing, so it waits as long
as one of them may take.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Annotated, Self

from stagewright.machines.yugabytedb.backfill.backfill_table import MASTER, WEAK, Tablet
from stagewright.spec import (
    ANY,
    Actor,
    Bool,
    FlagVar,
    LeadsTo,
    Machine,
    Number,
    NumberVar,
    Term,
    accepts,
    action,
    always_reachable,
    between,
    bounded,
    choose,
    constant,
    equivalent_drop,
    equivalent_loss,
    equivalent_weakening,
    equivalents,
    every,
    fault_budget,
    final,
    flag,
    invariant,
    leads_to,
    liveness,
    number,
    one_of,
    per,
    require,
    scopes,
    set_of,
    some,
    sometimes,
    step_property,
    wording,
)

TABLET = Actor("tablet leader")
LAST = 3  # the last hybrid time
NO_TIME = 0
BEGIN = 1  # when the index is at WRITE_AND_DELETE everywhere, and GetSafeTime is asked for
RPC_TIMEOUT = (
    1  # so long after it began a write of a user-enforced transaction is not applied any more
)
UPPER_BOUND = 1  # `index_backfill_upperbound_for_user_enforced_txn_duration_ms`


class Change(Enum):
    """What the transaction on a tablet does to its row."""

    old_insert = auto()  # began before WRITE_AND_DELETE: the index is not touched
    new_delete = auto()  # also deletes the entry of the row


class Transaction(Enum):
    """How far the transaction is."""

    pending = auto()
    committed = auto()
    aborted = auto()


class BackfillSafeTime(Machine):
    """GetSafeTime on every tablet, one read time for all, then the scan."""

    failovers = fault_budget(1, doc="changes of the master leader")
    exercised_at = scopes({}, {Tablet: 1, failovers: 2})

    # in the sys catalog
    read_time: NumberVar = number(NO_TIME, LAST)  # `backfilling_timestamp`
    published: FlagVar = flag()
    # the leader's memory
    answer = per(Tablet, number(NO_TIME, LAST))  # to GetSafeTime
    # the tablets
    # the table's transactions: no tablet keeps a record of them
    user_enforced = constant(flag(init=ANY))
    change = constant(per(Tablet, one_of(Change, init=ANY)))
    transaction = per(Tablet, one_of(Transaction, init=Transaction.pending))
    committed_at = per(Tablet, number(NO_TIME, LAST))
    clock = per(Tablet, number(1, LAST))
    scanned = set_of(Tablet)
    entry = set_of(Tablet)  # the scan has written an entry of the row, at the read time

    # -- transactions --------------------------------------------------------------------------------------------

    @action(by=TABLET)
    def commit(self, t: Term[Tablet]) -> None:
        """The transaction commits, later than all before it."""
        require(self.transaction[t] == Transaction.pending, "transaction is pending")
        bounded(self.clock[t] < LAST, "a time is left")
        in_time = self.clock[t] < BEGIN + RPC_TIMEOUT
        old = self.change[t] == Change.old_insert
        require((self.user_enforced & old).implies(in_time), "its RPC has not timed out")
        self.transaction[t] = Transaction.committed
        self.committed_at[t] = self.clock[t] + 1
        self.clock[t] = self.clock[t] + 1

    @action(by=TABLET, fair=WEAK)
    def abort(self, t: Term[Tablet]) -> None:
        """The transaction aborts; an old one is made to, if the backfill has waited long enough for it."""
        require(self.transaction[t] == Transaction.pending, "transaction is pending")
        self.transaction[t] = Transaction.aborted

    @action(by=TABLET, fair=WEAK)
    def advance_clock(self, t: Term[Tablet], time: Annotated[Number, between(2, LAST)]) -> None:
        """Time goes on; requests carry the master's time to the tablet."""
        require(self.clock[t] < time, "time goes on")
        self.clock[t] = time

    # -- the job -------------------------------------------------------------------------------------------------

    @action(by=TABLET, fair=WEAK)
    def get_safe_time(self, t: Term[Tablet]) -> None:
        """J2: a tablet answers when no old transaction is pending; what it has committed is before that time."""
        require(self.answer[t] == NO_TIME, "tablet has not answered")
        waited = self.clock[t] >= BEGIN + self._upper_bound()
        over = choose(self.user_enforced, waited, self._old_transactions_are_over(t))
        require(over, "no old transaction is pending, or may be")
        self.answer[t] = self.clock[t]

    @action(by=MASTER, fair=WEAK)
    def choose_read_time(self, time: Annotated[Number, between(1, LAST)]) -> None:
        """J2: all tablets have answered: the largest safe time is recorded."""
        require(self.read_time == NO_TIME, "no read time is recorded")
        self._is_safe_everywhere(time)
        self.read_time = time

    @action(by=TABLET, fair=WEAK)
    def scan(self, t: Term[Tablet]) -> None:
        """J3: the tablet is read at the read time, when nothing can commit before it any more."""
        require(self.read_time != NO_TIME, "a read time is recorded")
        require(~self.scanned.has(t), "tablet is not scanned")
        self._safe_time_is_reached(t)
        self.scanned.add(t)
        self.entry.put(t, self._was_live(t))

    @action(by=MASTER, fair=WEAK)
    def publish(self) -> None:
        """J4 to J8: every tablet is scanned."""
        require(~self.published, "index is not published")
        require(every(self.scanned.has(t) for t in Tablet), "every tablet is scanned")
        self.published = True

    @action(spends=failovers)
    def fail_over(self) -> None:
        """Another master becomes the leader: answers are lost, the recorded time stays."""
        for t in Tablet:
            self.answer[t] = NO_TIME

    # -- helpers ---------------------------------------------------------------------------------------------------

    def _old_transactions_are_over(self, t: Term[Tablet]) -> Bool:
        old = self.change[t] == Change.old_insert
        return old.implies(self.transaction[t] != Transaction.pending)

    def _upper_bound(self) -> int:
        """002: "In order to be safe, this value should be set to at least the RPC timeout"."""
        return UPPER_BOUND

    def _is_safe_everywhere(self, time: Number) -> None:
        require(every(self.answer[t] != NO_TIME for t in Tablet), "every tablet has answered")
        largest = every(self.answer[t] <= time for t in Tablet)
        require(largest, "no tablet answered with a later time")
        require(some(self.answer[t] == time for t in Tablet), "a tablet answered with it")

    def _safe_time_is_reached(self, t: Term[Tablet]) -> None:
        require(self.clock[t] >= self.read_time, "safe time has reached the read time")

    def _was_live(self, t: Term[Tablet]) -> Bool:
        """The row as it is at the read time, as far as is known now."""
        before = (self.transaction[t] == Transaction.committed) & (
            self.committed_at[t] <= self.read_time
        )
        return choose(self.change[t] == Change.old_insert, before, ~before)

    def _is_live(self, t: Term[Tablet]) -> Bool:
        committed = self.transaction[t] == Transaction.committed
        return choose(self.change[t] == Change.old_insert, committed, ~committed)

    def _is_shown(self, t: Term[Tablet]) -> Bool:
        """The index has the entry, and no delete marker that is newer than it."""
        deleted = (self.change[t] == Change.new_delete) & (
            self.transaction[t] == Transaction.committed
        )
        return self.entry.has(t) & ~(deleted & (self.committed_at[t] > self.read_time))

    # -- promises ----------------------------------------------------------------------------------------------------

    @accepts(scan)
    def tablets_are_independent(self, t: Term[Tablet]) -> Bool:
        """002: "the backfill process on any tablet can proceed independent of the others"."""
        reached = self.clock[t] >= self.read_time
        return (self.read_time != NO_TIME) & ~self.scanned.has(t) & reached

    @accepts(get_safe_time)
    def safe_times_wait_for_old_transactions_alone(self, t: Term[Tablet]) -> Bool:
        """002, "Waiting for pending transactions": those that "started before getting to WRITE_AND_DELETE state" are waited
        for, on the tablet itself; of user-enforced ones nothing is known: the tablet "will thus just wait for a specific
        duration".
        """
        old = (self.change[t] == Change.old_insert) & (self.transaction[t] == Transaction.pending)
        waited = self.clock[t] >= BEGIN + self._upper_bound()
        return (self.answer[t] == NO_TIME) & choose(self.user_enforced, waited, ~old)

    @accepts(choose_read_time)
    def read_times_wait_for_answers_alone(self, time: Annotated[Number, between(1, LAST)]) -> Bool:
        """002, "Waiting for pending transactions": the tablets have waited "before determining the timestamp at which the scan is
        to be performed": it is the largest of their answers, and each comes to it in its own time.
        """
        answered = every((self.answer[t] != NO_TIME) & (self.answer[t] <= time) for t in Tablet)
        largest = some(self.answer[t] == time for t in Tablet)
        return (self.read_time == NO_TIME) & answered & largest

    @accepts(commit)
    def transactions_commit_at_any_time(self, t: Term[Tablet]) -> Bool:
        """002, Design Goals: "without locking out reads or writes": what is pending commits, whether tablets are asked
        for their safe time, or scanned.
        """
        in_time = self.clock[t] < BEGIN + RPC_TIMEOUT
        waited_for = self.user_enforced & (self.change[t] == Change.old_insert)
        pending = self.transaction[t] == Transaction.pending
        return pending & waited_for.implies(in_time)

    @accepts(abort)
    def transactions_can_be_given_up(self, t: Term[Tablet]) -> Bool:
        """002, "Waiting for pending transactions": they "finish (i.e. commit or abort)", one as well as the other while the table is
        scanned.
        """
        return self.transaction[t] == Transaction.pending

    @accepts(publish)
    def indexes_are_published_under_transactions(self) -> Bool:
        """002, "Waiting for pending transactions": the scan has waited for those that leave the index out: nobody waits for the
        others, one of which may be a "terminal open with an ongoing txn".
        """
        return ~self.published & every(self.scanned.has(t) for t in Tablet)

    @step_property
    def answers_end_no_transaction(self, after: Self, t: Term[Tablet]) -> Bool:
        """002: GetSafeTime "will wait for all 'pending transactions' to finish": what it does not wait for goes on. Old ones
        are aborted after a timeout, maybe as their tablet answers; those that no tablet knows of, by none. The scan, and who
        publishes the index, end none, either.
        """
        answers = (after.answer[t] != self.answer[t]) | (after.read_time != self.read_time)
        answers = answers | (after.scanned != self.scanned) | (after.published != self.published)
        waited_for = (self.change[t] == Change.old_insert) & ~self.user_enforced
        goes_on = after.transaction[t] == self.transaction[t]
        aborted = waited_for & (after.transaction[t] == Transaction.aborted)
        return answers.implies(goes_on | aborted)

    @step_property
    def transactions_end_without_others(
        self, after: Self, t: Term[Tablet], o: Term[Tablet]
    ) -> Bool:
        """002, "Waiting for pending transactions": those are aborted "that started before getting to WRITE_AND_DELETE state", maybe
        several at once: with one that ends, however it does, none ends on another tablet that nobody waits for.
        """
        pending = Transaction.pending
        ends = (self.transaction[t] == pending) & (after.transaction[t] != pending)
        others = (self.transaction[o] == pending) & (after.transaction[o] != pending)
        waited_for = (self.change[o] == Change.old_insert) & ~self.user_enforced
        return (t == o) | waited_for | ~(ends & others)

    @invariant
    def rows_have_entries(self, t: Term[Tablet]) -> Bool:
        """002: "GetSafeTime() [...] will wait for all 'pending transactions' to finish (i.e. commit or abort)", or
        "wait for a specific duration": no row of an old transaction is missed by the scan.
        """
        return (self.published & self._is_live(t)).implies(self._is_shown(t))

    @invariant
    def entries_have_rows(self, t: Term[Tablet]) -> Bool:
        """002: the entries are written "in the past", older than "the new update operations that are running
        concurrent with the backfill process".
        """
        return (self.published & self._is_shown(t)).implies(self._is_live(t))

    @wording('002, "Index backfill on a single tablet": a fixed timestamp, picked by the YB-Master')
    @step_property
    def scans_share_one_time(self, after: Self) -> Bool:
        """002: "the scan is performed at a fixed timestamp [...] picked by the YB-Master and sent to all the
        tablets"; a change of the leader does not change it (yugabyte-db #3611).
        """
        return (self.read_time != NO_TIME).implies(after.read_time == self.read_time)

    @invariant
    def scans_repeat(self, t: Term[Tablet]) -> Bool:
        """002: "the scan is performed at a fixed timestamp": a chunk that is done again finds the rows of the first
        time, for nothing commits before it any more.
        """
        return self.scanned.has(t).implies(self.entry.has(t) == self._was_live(t))

    @step_property
    def scans_are_kept(self, after: Self, t: Term[Tablet]) -> Bool:
        """002, Design Goals: "The entire build process should not need to restart on a node failure in the cluster": a tablet
        that is scanned is so for the next leader.
        """
        return self.scanned.has(t).implies(after.scanned.has(t))

    @step_property
    def published_indexes_stay_so(self, after: Self) -> Bool:
        """002, READ_WRITE_AND_DELETE: "This is the final state": the next leader takes no index back that serves reads."""
        return self.published.implies(after.published)

    @accepts(advance_clock)
    def clocks_wait_for_no_transaction(self, t: Term[Tablet]) -> Bool:
        """002, "Waiting for pending transactions": GetSafeTime waits for old ones; the clocks by which the scan begins, and a
        duration is waited for, go on under a "terminal open with an ongoing txn".
        """
        return self.clock[t] < LAST

    @sometimes
    def rows_of_old_transactions_are_found(self, t: Term[Tablet]) -> Bool:
        """002, "Waiting for pending transactions": the tablet waits "for all 'pending transactions' to finish (i.e. commit or
        abort)": what was written before the index was, and has committed, is in it.
        """
        return self.published & (self.change[t] == Change.old_insert) & self._is_shown(t)

    @final
    def index_is_there(self) -> Bool:
        """A published index may stay as it is."""
        return self.published

    @always_reachable
    def the_index_can_be_published(self) -> Bool:
        """Whatever is pending, the scan can be made."""
        return self.published

    @liveness
    def every_scan_is_made(self) -> LeadsTo:
        """002: a "terminal open with an ongoing txn that never commits" does not stall the backfill for ever."""
        return leads_to(~self.published, self.published)

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_weakening(advance_clock, "time goes on", because="time may stand still"),
        equivalent_drop(
            get_safe_time, "tablet has not answered", because="a later answer is as safe"
        ),
        equivalent_drop(
            scan, "tablet is not scanned", because="a scan at the same time reads the same rows"
        ),
        equivalent_drop(publish, "index is not published", because="it is published already"),
        equivalent_loss(
            fail_over, answer, because="an answer that is kept was true when it was given"
        ),
        equivalent_drop(
            _is_safe_everywhere, "a tablet answered with it", because="a later time is as safe"
        ),
    )

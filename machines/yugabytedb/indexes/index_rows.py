"""The rows of before are backfilled into an index while clients go on to write: what must not go wrong.

A server plans what a statement does to the index by the permission that it has learned when the statement runs;
the transaction, maybe of several statements, commits later, at one hybrid time for its rows and their entries (002,
"Intermediate states of the index table"). The rows of before are scanned at one time, `t_read`, and their entries are written in the past
(002, "The index backfill process"), so that entries of concurrent writes are newer, and so are delete markers,
which are kept until the backfill is done.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Self

from stagewright.machines.yugabytedb.indexes.index_actors import CLIENT, MASTER, WEAK, Server
from stagewright.machines.yugabytedb.indexes.index_life import IndexLife, Job
from stagewright.machines.yugabytedb.indexes.index_states import SEED, YCQL, Permission
from stagewright.spec import (
    Actor,
    Bool,
    Entity,
    FlagVar,
    LeadsTo,
    Machine,
    Maybe,
    Number,
    OneVar,
    Record,
    SetVar,
    Term,
    accepts,
    action,
    always_reachable,
    budget,
    choose,
    constant,
    equivalent_drop,
    equivalent_loss,
    equivalent_replacement,
    equivalent_weakening,
    equivalents,
    every,
    fault_budget,
    final,
    flag,
    invariant,
    known_violations,
    leads_to,
    liveness,
    one_of,
    only_when,
    optional,
    part,
    per,
    profiles,
    record,
    require,
    scopes,
    set_of,
    some,
    sometimes,
    step_property,
    violated,
)

STORAGE = Actor("index tablet")


class Row(Entity, scope=1):
    """A row of the table, by its primary key."""


class Value(Enum):
    """What the indexed column of a row holds."""

    x = auto()
    y = auto()


class HybridTime(Enum):
    """A hybrid time: they are ordered, and the same for a row and for its entry."""

    t0 = auto()
    t1 = auto()
    t2 = auto()
    t3 = auto()


LAST = HybridTime.t3


class Stored(Enum):
    """The newest version of an index entry."""

    nothing = auto()
    live = auto()
    delete_marker = auto()


class Entry(Record):
    """An entry of the index, under the row's value and its key."""

    stored = one_of(Stored, init=Stored.nothing)
    time = one_of(HybridTime, init=HybridTime.t0)


class Write(Record):
    """What a transaction has done to a row and has not committed: it holds the row's lock."""

    pending = flag()
    old = optional(Value)
    new = optional(Value)  # none: the row is deleted
    under = one_of(Permission, init=Permission.absent)  # which said what is done to the index


def number_of(time: Term[HybridTime]) -> Number:
    """A hybrid time as a number."""
    return time.number_column(list(HybridTime).index)


def later(a: Term[HybridTime], b: Term[HybridTime]) -> Term[HybridTime]:
    """The later of two times."""
    return choose(number_of(a) < number_of(b), b, a)


class PromptIndex(IndexLife):
    """An index without constraints, of whose servers the master knows at once what they have learned."""

    violates_constraint = constant(flag())

    @action(fair=WEAK)
    def learn(self, s: Term[Server]) -> None:
        """The tablets of a server apply the altered schema, and the master hears of it."""
        require(self.learned_version[s] < self.version, "the server is behind")
        self._apply(s)
        self.reported.add(s)

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(
            learn, "the server is behind", because="a schema that is applied once more is the same"
        ),
    )


class IndexRows(Machine):
    """Clients write rows while an index of them is built, used and dropped."""

    era = profiles(SEED, YCQL)
    writes = budget(2, doc="rows that clients insert, update or delete")
    drops = budget(1, doc="indexes that clients drop")
    old_leaders = fault_budget(0, doc="chunks that a former leader of the tablet completes late")

    exercised_at = scopes(
        {drops: 0, writes: 1},
        {drops: 0, Row: 2, Server: 1},
        {writes: 1},
        {drops: 0, Row: 2},  # two transactions at once
    )

    index = part(PromptIndex, without=(PromptIndex.report, PromptIndex.find_violation))
    # the table
    visible = per(Row, per(HybridTime, optional(Value, init=Value.x)))  # to a read at that time
    updated = per(Row, one_of(HybridTime, init=HybridTime.t0))
    transaction = per(Server, per(Row, record(Write)))  # of the rows that it has written
    clock = per(Server, one_of(HybridTime, init=HybridTime.t0))
    # the index table
    entry = per(Row, per(Value, record(Entry)))
    retains_delete_markers: FlagVar = flag(init=True)
    # a client found through the index what the table has not, or missed a row
    wrong_read: FlagVar = flag()
    early_read: FlagVar = flag()  # it looked into the index before that was published
    # a transaction was aborted that would have written all its entries, or that no backfill waited for
    wrong_abort: FlagVar = flag()

    # the backfill
    t_read: OneVar[HybridTime] = one_of(HybridTime, init=HybridTime.t0)
    safe: SetVar[Server] = set_of(Server)  # have answered GetSafeTime, and `t_read` includes it
    backfilled: SetVar[Row] = set_of(Row)

    # == tables and clients ==============================================================================

    # -- clients -------------------------------------------------------------------------------------

    @action(by=CLIENT, spends=writes)
    def write(self, s: Term[Server], r: Term[Row], value: Term[Value]) -> None:
        """A client inserts a row, or updates it, maybe to the value that it has."""
        self._begin(s, r)
        self.transaction[s][r].new = value

    @action(by=CLIENT, spends=writes)
    def delete(self, s: Term[Server], r: Term[Row]) -> None:
        """A client deletes a row."""
        require(self._now(r).is_some(), "the row is there")
        self._begin(s, r)

    @action
    def commit(self, s: Term[Server], time: Term[HybridTime]) -> None:
        """A transaction commits: its rows and their entries change at one hybrid time, later than what it saw."""
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
            self.updated[r] = choose(write.pending, time, self.updated[r])
        self.clock[s] = time
        self._end(s)

    @action(by=CLIENT)
    def roll_back(self, s: Term[Server]) -> None:
        """A client gives its transaction up."""
        require(self._is_pending(s), "a transaction is pending")
        self._end(s)

    @action(by=CLIENT)
    def read_table(self, r: Term[Row]) -> None:
        """002: "All the queries/updates continue against MyTable", whatever becomes of the index."""
        require(self._now(r).is_some(), "the row is there")

    @action(by=CLIENT)
    def read_index(self, s: Term[Server], r: Term[Row], value: Term[Value]) -> None:
        """A client looks a value up in the index, through a server that may read it."""
        require(self._plans_by(s).column(lambda p: p.read), "the server may read the index")
        self._look_up(r, value)

    # -- helpers -------------------------------------------------------------------------------------

    def _plans_by(self, s: Term[Server]) -> Term[Permission]:
        """What a server knows the index to be, when it plans what a statement does."""
        return self.index.learned[s]

    def _look_up(self, r: Term[Row], value: Term[Value]) -> None:
        found = self.entry[r][value].stored == Stored.live
        self.wrong_read = self.wrong_read | (found != (self._now(r) == value))
        published = self.index.permission == Permission.read_write_and_delete
        self.early_read = self.early_read | ~(published | self._is_on_its_way_out())

    def _is_on_its_way_out(self) -> Bool:
        """Until a server hears of that, it goes on to read the index."""
        return self.index.permission.column(lambda p: p.removed)

    def _begin(self, s: Term[Server], r: Term[Row]) -> None:
        """A statement writes its row under the permission that the server knows now, and locks it.

        What F1 needs and does not say: a transaction that began two versions ago must not end after one that
        began now, on the same row. The row's lock sees to it, and GetSafeTime to those that are left.
        """
        require(~self._is_held(r), "no transaction holds the row's lock")
        write = self.transaction[s][r]
        write.pending = True
        write.old = self._now(r)
        write.under = self._plans_by(s)

    def _is_held(self, r: Term[Row]) -> Bool:
        return some(self.transaction[o][r].pending for o in Server)

    def _is_pending(self, s: Term[Server]) -> Bool:
        return some(self.transaction[s][r].pending for r in Row)

    def _is_later(self, s: Term[Server], time: Term[HybridTime]) -> Bool:
        """Than the server's clock, and than the rows that the transaction writes."""
        rows = every(
            self.transaction[s][r].pending.implies(number_of(self.updated[r]) < number_of(time))
            for r in Row
        )
        return rows & (number_of(self.clock[s]) < number_of(time))

    def _is_next(self, s: Term[Server], time: Term[HybridTime]) -> Bool:
        row = some(
            self.transaction[s][r].pending & (number_of(self.updated[r]) + 1 == number_of(time))
            for r in Row
        )
        return row | (number_of(self.clock[s]) + 1 == number_of(time))

    def _end(self, s: Term[Server]) -> None:
        for r in Row:
            write = self.transaction[s][r]
            write.pending = False
            write.old = None
            write.new = None
            write.under = Permission.absent

    def _maintain(self, s: Term[Server], r: Term[Row], v: Value, time: Term[HybridTime]) -> None:
        """What a commit does to the entry of one value: delete the old one, write the new one."""
        write, entry = self.transaction[s][r], self.entry[r][v]
        there = self.index.permission != Permission.absent
        deletes = there & (write.old == v) & write.under.column(lambda p: p.delete)
        writes = there & (write.new == v) & write.under.column(lambda p: p.write)
        changed = choose(deletes, Stored.delete_marker, entry.stored)
        entry.stored = choose(writes, Stored.live, changed)
        entry.time = choose(writes | deletes, time, entry.time)

    def _now(self, r: Term[Row]) -> Maybe[Value]:
        return self.visible[r][LAST]

    # == the backfill, and what is promised ==============================================================

    # -- clients -------------------------------------------------------------------------------------

    @action(by=CLIENT)
    def create_index(self) -> None:
        """A client creates the index."""
        self.index.create_index()

    @action(by=CLIENT, spends=drops)
    def drop_index(self) -> None:
        """A client drops the index."""
        self.index.drop_index()

    # -- the backfill --------------------------------------------------------------------------------

    @action(fair=WEAK)
    def abort_old_transaction(self, s: Term[Server]) -> None:
        """GetSafeTime has waited long enough for a transaction that will not write to the index."""
        require(self.index.job == Job.running, "the job is running")
        require(self._is_old(s), "a transaction from before WRITE_AND_DELETE is pending")
        self.wrong_abort = self.wrong_abort | self._writes_every_entry(s) | ~self._waits()
        self._end(s)

    @action(fair=WEAK)
    def get_safe_time(self, s: Term[Server], time: Term[HybridTime]) -> None:
        """No old transaction is pending on a server: it answers the time of its clock, which has gone on."""
        require(self.index.job == Job.running, "the job is running")
        require(~self.safe.has(s), "it has not answered")
        self._old_transactions_have_ended(s)
        require(number_of(self.clock[s]) <= number_of(time), "its clock has not passed the time")
        require(number_of(time) <= number_of(self.clock[s]) + 1, "clock skew is bounded")
        self.t_read = self._joint_safe_time(time)
        self.safe.add(s)

    @action(fair=WEAK)
    def reach_t_read(self, s: Term[Server]) -> None:
        """A server that is to backfill waits until nothing more commits at or before `t_read`."""
        chosen = every(self.safe.has(o) for o in Server)
        require(chosen, "every server has answered GetSafeTime")
        require(~self._past_t_read(s), "its safe time is before t_read")
        self.clock[s] = self.t_read

    @action(fair=WEAK)
    def backfill_row(self, r: Term[Row]) -> None:
        """The row is read as it was at `t_read`, and its entry written in the past. Here any server may write the row,
        so that all are waited for; that tablets need not wait for each other is promised by `backfill-safe-time`.
        """
        require(self.index.job == Job.running, "the job is running")
        at = self.index.permission == self.index.backfilled_at()
        require(at, "the permission is that of the backfill")
        self._t_read_is_chosen()
        require(every(self._past_t_read(s) for s in Server), "safe times are past t_read")
        self._write_in_the_past(r)
        self.backfilled.add(r)

    @action(spends=old_leaders)
    def complete_on_old_leader(self, r: Term[Row]) -> None:
        """002: "The peer that has already started doing the backfill may be allowed to complete"; so it comes
        to its writes when the new leader, and the master, are done.
        """
        only_when(not self.era.reclaims_first)
        require(self.backfilled.has(r), "the row was backfilled by the new leader")
        require(self.index.permission.column(lambda p: p.kept), "the index is there")
        self._write_in_the_past(r)

    @action(by=MASTER, fair=WEAK)
    def finish_backfill(self) -> None:
        """Every tablet has answered that it is done."""
        require(every(self.backfilled.has(r) for r in Row), "every row is backfilled")
        self.index.finish_backfill()

    @action(by=MASTER, fair=WEAK)
    def allow_to_reclaim_delete_markers(self) -> None:
        """The backfill is done: compactions of the index may reclaim delete markers."""
        only_when(self.era.reclaims_first)
        require(self.index.job == Job.success, "the job has succeeded")
        require(self.retains_delete_markers, "they are retained")
        self.retains_delete_markers = False

    @action(by=MASTER, fair=WEAK)
    def publish(self) -> None:
        """The index becomes READ_WRITE_AND_DELETE."""
        if self.era.reclaims_first:
            require(~self.retains_delete_markers, "delete markers are not retained any more")
        else:
            self.retains_delete_markers = False
        self.index.publish()

    @action(by=STORAGE)
    def compact(self, r: Term[Row], v: Term[Value]) -> None:
        """A compaction reclaims a delete marker of the index."""
        require(self.entry[r][v].stored == Stored.delete_marker, "there is a delete marker")
        self._may_reclaim_delete_markers()
        self.entry[r][v].stored = Stored.nothing
        self.entry[r][v].time = HybridTime.t0

    @action(by=MASTER, fair=WEAK)
    def delete_index(self) -> None:
        """The index table is deleted, with all that is in it."""
        self.index.delete_index()
        self._delete_entries()

    @action(by=MASTER, fair=WEAK)
    def delete_failed_index(self) -> None:
        """The same for an index whose backfill failed, in the document."""
        self.index.delete_failed_index()
        self._delete_entries()

    # -- helpers -------------------------------------------------------------------------------------

    def _delete_entries(self) -> None:
        for r in Row:
            for v in Value:
                self.entry[r][v].stored = Stored.nothing
                self.entry[r][v].time = HybridTime.t0

    def _visible_at(self, r: Term[Row], time: Term[HybridTime]) -> Maybe[Value]:
        value = self._now(r)
        for t in HybridTime:
            value = choose(time == t, self.visible[r][t], value)
        return value

    def _is_old(self, s: Term[Server]) -> Bool:
        """A transaction is pending that wrote a row before WRITE_AND_DELETE."""
        return some(
            self.transaction[s][r].pending & ~self.transaction[s][r].under.column(lambda p: p.write)
            for r in Row
        )

    def _waits(self) -> Bool:
        return self.index.job == Job.running

    def _writes_every_entry(self, s: Term[Server]) -> Bool:
        return every(
            self.transaction[s][r].pending.implies(
                self.transaction[s][r].under.column(lambda p: p.write)
            )
            for r in Row
        )

    def _old_transactions_have_ended(self, s: Term[Server]) -> None:
        require(~self._is_old(s), "no transaction from before WRITE_AND_DELETE is pending")

    def _write_in_the_past(self, r: Term[Row]) -> None:
        """The entry of the row as it was at `t_read` is written, under what is newer."""
        seen, time = self._visible_at(r, self.t_read), self._backfill_time()
        for v in Value:
            entry = self.entry[r][v]
            newer = (entry.stored != Stored.nothing) & (number_of(entry.time) > number_of(time))
            writes = (seen == v) & ~newer
            entry.stored = choose(writes, Stored.live, entry.stored)
            entry.time = choose(writes, time, entry.time)

    def _backfill_time(self) -> Term[HybridTime]:
        """The entries that are backfilled are older than those of concurrent writes."""
        return self.t_read

    def _may_reclaim_delete_markers(self) -> None:
        require(~self.retains_delete_markers, "delete markers are not retained")

    def _joint_safe_time(self, time: Term[HybridTime]) -> Term[HybridTime]:
        """`t_read` is the maximum of what the servers answer."""
        return later(self.t_read, time)

    def _t_read_is_chosen(self) -> None:
        require(every(self.safe.has(s) for s in Server), "every server has answered GetSafeTime")

    def _past_t_read(self, s: Term[Server]) -> Bool:
        return number_of(self.clock[s]) >= number_of(self.t_read)

    # -- promises ------------------------------------------------------------------------------------

    @accepts(write)
    def writes_are_not_locked_out(self, s: Term[Server], r: Term[Row]) -> Bool:
        """002, the first goal: an index is added "without locking out reads or writes": nothing refuses a write
        but another transaction that holds the row (yugabyte-db #26520, #26786).
        """
        return ~self._is_held(r)

    @accepts(delete)
    def deletes_are_not_locked_out(self, s: Term[Server], r: Term[Row]) -> Bool:
        """The same of a row that is to be deleted."""
        return ~self._is_held(r) & self._now(r).is_some()

    @accepts(commit)
    def transactions_can_commit(self, s: Term[Server]) -> Bool:
        """What was written may be committed, however far the index is; while the model has times left."""
        return self._is_pending(s) & self._is_later(s, Term.of(LAST))

    @accepts(roll_back)
    def transactions_can_be_given_up(self, s: Term[Server]) -> Bool:
        """The same of what is to be given up: a client that waits for the build holds its rows meanwhile."""
        return self._is_pending(s)

    @accepts(read_table)
    def reads_are_not_locked_out(self, r: Term[Row]) -> Bool:
        """002: "All the queries/updates continue against MyTable (and the existing indexes if any)"."""
        return self._now(r).is_some()

    @accepts(read_index)
    def published_indexes_are_read_at_any_time(
        self, s: Term[Server], r: Term[Row], value: Term[Value]
    ) -> Bool:
        """The same of reads through an index that is published: none waits for what clients write meanwhile."""
        only_when(not self.era.postgres)
        del s, r, value
        published = self.index.permission == Permission.read_write_and_delete
        rebuilt = every(self.backfilled.has(row) for row in Row)
        return published & rebuilt & self.index.fully_applied.is_none()

    @accepts(create_index)
    def indexes_are_created_while_rows_are_written(self) -> Bool:
        """002: "The CREATE INDEX command is asynchronous": what is pending is waited for later, before the scan."""
        return self.index.version == 0

    @accepts(drop_index)
    def indexes_are_dropped_while_rows_are_written(self) -> Bool:
        """DROP INDEX waits for no transaction: what it has planned for the index nobody reads any more."""
        only_when(self.era.stepwise_removal)
        return self.index.permission.column(lambda p: p.kept)

    @accepts(get_safe_time)
    def servers_answer_independently(self, s: Term[Server]) -> Bool:
        """002, "Waiting for pending transactions": a server waits for those of its own, and not for what another one still has
        pending.
        """
        old = some(
            self.transaction[s][r].pending & ~self.transaction[s][r].under.column(lambda p: p.write)
            for r in Row
        )
        return (self.index.job == Job.running) & ~self.safe.has(s) & ~old

    @accepts(abort_old_transaction)
    def old_transactions_are_aborted_independently(self, s: Term[Server]) -> Bool:
        """002, "Waiting for pending transactions": "Add a timeout mechanism after which, pending txns [...] will be aborted": on each
        server after its own, whatever others have answered.
        """
        old = some(
            self.transaction[s][r].pending & ~self.transaction[s][r].under.column(lambda p: p.write)
            for r in Row
        )
        return (self.index.job == Job.running) & old

    @accepts(compact)
    def delete_markers_go_under_writes(self, r: Term[Row], v: Term[Value]) -> Bool:
        """002, "Index backfill on a single tablet": delete markers are kept "until the index is in READ_WRITE_AND_DELETE state",
        and by then no scan writes below them: for what clients have pending, who may leave a terminal open, no compaction waits.
        """
        published = self.index.permission == Permission.read_write_and_delete
        marker = self.entry[r][v].stored == Stored.delete_marker
        return published & ~self.retains_delete_markers & marker

    @sometimes(at={drops: 0, writes: 1})
    def indexes_are_built_under_writes(self, after: Self, r: Term[Row]) -> Bool:
        """002, Design Goals: indexes are built "without locking out reads or writes on the table": also the build for
        a table whose rows change during the scan succeeds.
        """
        succeeds = (self.index.job == Job.running) & (after.index.job == Job.success)
        return succeeds & (number_of(self.updated[r]) > number_of(self.t_read))

    @sometimes(at={Row: 2, Server: 1, drops: 0})
    def transactions_write_several_rows(self, after: Self, s: Term[Server]) -> Bool:
        """002, "Waiting for pending transactions": rows that were written under several permissions commit at once."""
        one = every(self.transaction[s][r].pending for r in Row) & ~after._is_pending(s)
        several = every(
            some(self.transaction[s][r].under == p for r in Row)
            for p in (Permission.delete_only, Permission.write_and_delete)
        )
        committed = every(self.updated[r] != after.updated[r] for r in Row)
        return one & several & committed

    @invariant
    def no_orphan_entry(self, r: Term[Row], v: Term[Value]) -> Bool:
        """002, Design Goals: indexes are "consistent with the data in the primary table": no entry is left
        without its row (F1, section 4, "orphan data").
        """
        kept = self.index.permission.column(lambda p: p.kept)
        live = self.entry[r][v].stored == Stored.live
        return kept.implies(live.implies(self._now(r) == v))

    @invariant
    def no_missing_entry(self, r: Term[Row], v: Term[Value]) -> Bool:
        """002, "Finalize the index": once it is READ_WRITE_AND_DELETE "the index is completely rebuilt": no row
        is without its entry (F1, section 4, "integrity").
        """
        published = self.index.permission == Permission.read_write_and_delete
        live = self.entry[r][v].stored == Stored.live
        return published.implies((self._now(r) == v).implies(live))

    @invariant
    def reads_through_the_index_find_the_rows(self) -> Bool:
        """What a client finds by the index is what is in the table, also while an index is being dropped."""
        return ~self.wrong_read

    @invariant
    def indexes_are_not_read_before_they_are_published(self) -> Bool:
        """002, DB_REORG: "The index cannot be used to perform read operations, which still are satisfied by the primary
        table": also when all rows are in it, and until READ_WRITE_AND_DELETE is stored.
        """
        return ~self.early_read

    @invariant
    def only_old_transactions_are_aborted(self) -> Bool:
        """002, "Waiting for pending transactions": those are aborted "that started before getting to WRITE_AND_DELETE
        state", and by the backfill that has waited for them: who maintains the index has nothing to fear from its build,
        nor has anybody from an index that is not being backfilled.
        """
        return ~self.wrong_abort

    @step_property
    def the_build_ends_no_transaction(self, after: Self, s: Term[Server]) -> Bool:
        """The same of whatever else the build does, or CREATE and DROP INDEX: a server that learns a permission goes on with
        the transactions that it has, and one that answers GetSafeTime with those that maintain the index.
        """
        index, then = self.index, after.index
        moves = (index.permission != then.permission) | (index.job != then.job)
        moves = moves | some(index.learned[o] != then.learned[o] for o in Server)
        moves = moves | (self.backfilled != after.backfilled)
        answers = (self.safe != after.safe) & self._writes_every_entry(s)
        goes_on = self._is_pending(s).implies(after._is_pending(s))
        return (moves | answers).implies(goes_on)

    @step_property
    def transactions_end_as_a_whole(
        self, after: Self, s: Term[Server], r: Term[Row], q: Term[Row]
    ) -> Bool:
        """002, "Waiting for pending transactions to finish": they finish, "i.e. commit or abort", with all the rows that they
        have written, also where the backfill waits for one of these alone.
        """
        both = self.transaction[s][r].pending & self.transaction[s][q].pending
        ends = after.transaction[s][r].pending == after.transaction[s][q].pending
        changed = (self.updated[r] == after.updated[r]) == (self.updated[q] == after.updated[q])
        return both.implies(ends & changed)

    @invariant
    def entries_have_the_time_of_their_rows(self, r: Term[Row], v: Term[Value]) -> Bool:
        """002, WRITE_AND_DELETE: "once the update completes, the hybrid timestamp of the entry in primary
        table and the index table are the same".
        """
        entry = self.entry[r][v]
        chosen = every(self.safe.has(s) for s in Server)
        concurrent = chosen & (number_of(self.updated[r]) > number_of(self.t_read))
        both = (entry.stored == Stored.live) & (self._now(r) == v)
        kept = self.index.permission.column(lambda p: p.kept)
        return (kept & concurrent & both).implies(entry.time == self.updated[r])

    @step_property
    def writes_do_not_affect_the_scan(self, after: Self, r: Term[Row]) -> Bool:
        """002: "The data is scanned using this timestamp t_read as the read point so that subsequent writes do
        not affect the values read by this scan."
        """
        seen, seen_after = self._visible_at(r, self.t_read), after._visible_at(r, after.t_read)
        return self.backfilled.has(r).implies(seen == seen_after)

    @step_property
    def rows_are_backfilled_for_good(self, after: Self, r: Term[Row]) -> Bool:
        """002, Design Goals: "The entire build process should not need to restart": whatever clients write meanwhile, or begin to,
        a row that is in the index is not scanned for it again.
        """
        goes_on = (self.index.job == Job.running) & (after.index.job == Job.running)
        return (goes_on & self.backfilled.has(r)).implies(after.backfilled.has(r))

    @step_property
    def rows_change_at_later_times(self, after: Self, r: Term[Row]) -> Bool:
        """002: an update is performed "using the current hybrid timestamp", later than those before."""
        later_time = number_of(after.updated[r]) > number_of(self.updated[r])
        return (self._now(r) == after._now(r)) | later_time

    @invariant
    def entries_are_backfilled_in_the_past(self, r: Term[Row], v: Term[Value]) -> Bool:
        """002: generated entries are "written with a hybrid timestamp that is in the past": "the update time of the
        row being read", or "the timestamp t_read with which we are performing the scan".
        """
        scanned = self.backfilled.has(r) & (self._now(r) == v)
        before = number_of(self.updated[r]) <= number_of(self.t_read)
        entry = self.entry[r][v]
        kept = self.index.permission.column(lambda p: p.kept)
        time = (entry.time == self.t_read) | (entry.time == self.updated[r])
        written = (entry.stored == Stored.live) & time
        return (kept & scanned & before).implies(written)

    @invariant
    def nothing_is_left_of_what_is_gone(
        self, s: Term[Server], r: Term[Row], v: Term[Value]
    ) -> Bool:
        """A server without a transaction remembers none, and an entry that is not stored has no time."""
        write, entry = self.transaction[s][r], self.entry[r][v]
        forgotten = write.old.is_none() & write.new.is_none()
        forgotten = forgotten & (write.under == Permission.absent)
        stored = (entry.stored != Stored.nothing) | (entry.time == HybridTime.t0)
        return (write.pending | forgotten) & stored

    @step_property
    def hybrid_clocks_only_grow(self, after: Self, s: Term[Server]) -> Bool:
        """A hybrid time that a server has seen is in its past for ever."""
        return number_of(after.clock[s]) >= number_of(self.clock[s])

    @liveness
    def delete_markers_do_not_stay(self) -> LeadsTo:
        """002: compactions would not reclaim delete markers "until the index is in READ_WRITE_AND_DELETE
        state", but then they come to do it.
        """
        published = self.index.permission == Permission.read_write_and_delete
        return leads_to(published, ~published | ~self.retains_delete_markers)

    @invariant
    def a_deleted_index_is_empty(self, r: Term[Row], v: Term[Value]) -> Bool:
        """002, Design Goals: "An aborted index will be cleaned up and deleted", as is a dropped one."""
        there = self.index.permission != Permission.absent
        return there | (self.entry[r][v].stored == Stored.nothing)

    @always_reachable
    def can_be_clean(self) -> Bool:
        """Whatever happened, the index can still be usable or gone, with nothing left over."""
        reclaimed = every(
            self.entry[r][v].stored != Stored.delete_marker for r in Row for v in Value
        )
        published = self.index.permission == Permission.read_write_and_delete
        ended = every(~self._is_pending(s) for s in Server)
        return self.index.at_rest() & published.implies(reclaimed) & ended

    @final
    def always(self) -> Bool:
        """Clients need not do anything; what the index still waits for is promised as liveness."""
        return self.index.at_rest()

    # -- what older versions break ---------------------------------------------------------------------

    left_open = known_violations(
        violated(
            no_orphan_entry,
            reads_through_the_index_find_the_rows,
            under=SEED,
            because='if a former leader of a tablet "may be allowed to complete" its chunk (`old_leaders`), it writes a '
            "row's entry after the delete marker that should hide it was reclaimed",
        ),
    )

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_loss(
            write,
            Write.new,
            because="what a client writes is its own affair: the index follows",
        ),
        equivalent_drop(
            delete, "the row is there", because="a row that is not there may be deleted, too"
        ),
        equivalent_replacement(
            delete,
            "the row is there: t0 for t3",
            because="a row that is not there any more may be deleted, too",
        ),
        equivalent_replacement(
            read_table,
            "the row is there: t0 for t3",
            because="a row that is not there any more may be asked for, too",
        ),
        equivalent_drop(
            commit, "no time is left out", because="times that nobody uses make no difference"
        ),
        equivalent_loss(commit, visible, because="nothing commits at the first time"),
        equivalent_drop(
            commit,
            "a transaction has written a row",
            because="a commit of nothing only moves the server's clock on",
        ),
        equivalent_drop(
            roll_back, "a transaction is pending", because="without a transaction nothing changes"
        ),
        equivalent_drop(
            read_table, "the row is there", because="a row that is not there may be asked for, too"
        ),
        equivalent_loss(
            _look_up, wrong_read, early_read, because="they note what a client never finds, or does"
        ),
        equivalent_loss(
            create_index, PromptIndex.reported, because="before it no server has reported anything"
        ),
        equivalent_loss(abort_old_transaction, wrong_abort, because="it notes what never happens"),
        equivalent_drop(
            get_safe_time,
            "clock skew is bounded",
            because="clocks may differ by more, which would only need more times",
        ),
        equivalent_replacement(
            get_safe_time,
            "clock skew is bounded",
            because="how far clocks are apart is assumed, and nothing depends on it",
        ),
        equivalent_drop(
            reach_t_read,
            "every server has answered GetSafeTime",
            because="a clock may go on at any time",
        ),
        equivalent_replacement(
            reach_t_read,
            "every server has answered GetSafeTime",
            because="a clock may go on at any time",
        ),
        equivalent_weakening(
            reach_t_read, "its safe time is before t_read", because="a clock may stay where it is"
        ),
        equivalent_drop(
            finish_backfill,
            "no row violates a constraint",
            because="these rows violate no constraint",
        ),
        equivalent_drop(
            allow_to_reclaim_delete_markers,
            "they are retained",
            because="what may go already may go",
        ),
        equivalent_drop(
            publish,
            "the job has succeeded",
            because="where markers may go first, that is when the job has succeeded; where publishing lets them go, it is noticed",
        ),
    )

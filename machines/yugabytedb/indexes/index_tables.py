"""A table and an index of it: rows with MVCC and hybrid time, entries, transactions, clients.

A server plans what a statement does to the index by the permission that it has learned when the statement runs;
the transaction commits later, at one hybrid time for the row and for its entry (002, "Intermediate states of the
index table"). How rows of before get into the index is in `index_rows.py`.
"""

from __future__ import annotations

from enum import Enum, auto

from stagewright.machines.yugabytedb.indexes.index_permissions import IndexPermissions
from stagewright.machines.yugabytedb.indexes.index_states import SEED, YCQL, Permission
from stagewright.machines.yugabytedb.indexes.index_steps import CLIENT, WEAK, Server
from stagewright.spec import (
    Bool,
    Entity,
    FlagVar,
    Machine,
    Maybe,
    Number,
    Record,
    Term,
    accepts,
    action,
    budget,
    choose,
    constant,
    equivalent_drop,
    equivalent_loss,
    equivalents,
    flag,
    one_of,
    optional,
    part,
    per,
    profiles,
    record,
    require,
    some,
)


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


class Transaction(Record):
    """What a server does for a client and has not committed: it writes one row, and holds its lock."""

    row = optional(Row)
    old = optional(Value)
    new = optional(Value)  # none: the row is deleted
    under = one_of(Permission, init=Permission.absent)  # which said what is done to the index


def number_of(time: Term[HybridTime]) -> Number:
    """A hybrid time as a number."""
    return time.number_column(list(HybridTime).index)


def later(a: Term[HybridTime], b: Term[HybridTime]) -> Term[HybridTime]:
    """The later of two times."""
    return choose(number_of(a) < number_of(b), b, a)


class PromptIndex(IndexPermissions):
    """An index without constraints, of whose servers the master knows at once what they have learned."""

    violates_constraint = constant(flag())

    @action(fair=WEAK)
    def learn(self, s: Term[Server]) -> None:
        """The tablets of a server apply the altered schema, and the master hears of it."""
        require(self.learned_version[s] < self.version, "the server is behind")
        self._apply(s)
        self.reported.add(s)

    # -- what no promise can tell ----------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(
            learn, "the server is behind", because="a schema that is applied once more is the same"
        ),
    )


class IndexTables(Machine):
    """Clients that write rows of a table, while the permission of its index moves on."""

    era = profiles(SEED, YCQL)
    writes = budget(2, doc="rows that clients insert, update or delete")

    index = part(PromptIndex, without=(PromptIndex.report, PromptIndex.find_violation))
    # the table
    visible = per(Row, per(HybridTime, optional(Value, init=Value.x)))  # to a read at that time
    updated = per(Row, one_of(HybridTime, init=HybridTime.t0))
    transaction = per(Server, record(Transaction))
    clock = per(Server, one_of(HybridTime, init=HybridTime.t0))
    # the index table
    entry = per(Row, per(Value, record(Entry)))
    retains_delete_markers: FlagVar = flag(init=True)
    wrong_read: FlagVar = (
        flag()
    )  # a client found by the index what is not in the table, or missed a row

    # -- clients -------------------------------------------------------------------------------------

    @action(by=CLIENT, spends=writes)
    def write(self, s: Term[Server], r: Term[Row], value: Term[Value]) -> None:
        """A client inserts a row, or updates it, maybe to the value that it has."""
        self._begin(s, r)
        self.transaction[s].new = value

    @action(by=CLIENT, spends=writes)
    def delete(self, s: Term[Server], r: Term[Row]) -> None:
        """A client deletes a row."""
        require(self._now(r).is_some(), "the row is there")
        self._begin(s, r)

    @accepts(write)
    def writes_are_not_locked_out(self, s: Term[Server], r: Term[Row]) -> Bool:
        """002, the first goal: an index is added "without locking out reads or writes": nothing refuses a write
        but another transaction that holds the row.
        """
        held = some(self.transaction[o].row == r for o in Server)
        return self.transaction[s].row.is_none() & ~held

    @action
    def commit(self, s: Term[Server], r: Term[Row], time: Term[HybridTime]) -> None:
        """A transaction commits: row and entries change at one hybrid time, later than what it saw."""
        transaction = self.transaction[s]
        require(transaction.row == r, "a transaction has written the row")
        seen = later(self.clock[s], self.updated[r])
        require(number_of(time) == number_of(seen) + 1, "the time is the next one")
        for t in HybridTime:
            before = number_of(time) > number_of(Term.of(t))
            self.visible[r][t] = choose(before, self.visible[r][t], transaction.new)
        self.updated[r] = time
        self.clock[s] = time
        for v in Value:
            self._maintain(s, r, v, time)
        self._end(s)

    @action(by=CLIENT)
    def roll_back(self, s: Term[Server]) -> None:
        """A client gives its transaction up."""
        require(self.transaction[s].row.is_some(), "a transaction is pending")
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

    # -- what recurs ---------------------------------------------------------------------------------

    def _plans_by(self, s: Term[Server]) -> Term[Permission]:
        """What a server knows the index to be, when it plans what a statement does."""
        return self.index.learned[s]

    def _look_up(self, r: Term[Row], value: Term[Value]) -> None:
        found = self.entry[r][value].stored == Stored.live
        self.wrong_read = self.wrong_read | (found != (self._now(r) == value))

    def _begin(self, s: Term[Server], r: Term[Row]) -> None:
        """A statement writes its row under the permission that the server knows now, and locks it.

        What F1 needs and does not say: a transaction that began two versions ago must not end after one that
        began now, on the same row. The row's lock sees to it, and GetSafeTime to those that are left.
        """
        require(self.transaction[s].row.is_none(), "the server is free")
        locked = some(self.transaction[o].row == r for o in Server)
        require(~locked, "no other transaction holds the row's lock")
        self.transaction[s].row = r
        self.transaction[s].old = self._now(r)
        self.transaction[s].under = self._plans_by(s)

    def _end(self, s: Term[Server]) -> None:
        self.transaction[s].row = None
        self.transaction[s].old = None
        self.transaction[s].new = None
        self.transaction[s].under = Permission.absent

    def _maintain(self, s: Term[Server], r: Term[Row], v: Value, time: Term[HybridTime]) -> None:
        """What a commit does to the entry of one value: delete the old one, write the new one."""
        transaction, entry = self.transaction[s], self.entry[r][v]
        there = self.index.permission != Permission.absent
        deletes = there & (transaction.old == v) & transaction.under.column(lambda p: p.delete)
        writes = there & (transaction.new == v) & transaction.under.column(lambda p: p.write)
        changed = choose(deletes, Stored.delete_marker, entry.stored)
        entry.stored = choose(writes, Stored.live, changed)
        entry.time = choose(writes | deletes, time, entry.time)

    def _now(self, r: Term[Row]) -> Maybe[Value]:
        return self.visible[r][LAST]

    # -- what no promise can tell ----------------------------------------------------------------------

    harmless = equivalents(
        equivalent_loss(
            write,
            Transaction.new,
            because="what a client writes is its own affair: the index follows",
        ),
        equivalent_drop(
            delete, "the row is there", because="a row that is not there may be deleted, too"
        ),
        equivalent_loss(commit, visible, because="nothing commits at the first time"),
        equivalent_drop(
            roll_back, "a transaction is pending", because="without a transaction nothing changes"
        ),
        equivalent_drop(
            read_table, "the row is there", because="a row that is not there may be asked for, too"
        ),
        equivalent_loss(_look_up, wrong_read, because="it notes what a client never finds"),
        equivalent_drop(
            _begin,
            "the server is free",
            because="a transaction that another one takes the place of is rolled back",
        ),
    )

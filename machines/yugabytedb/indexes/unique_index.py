"""Unique checks while a unique index is backfilled: backwards and forwards in time, by hybrid time and row.

The index is at DO_BACKFILL on every server, so every write of a row checks the index and writes to it. Existing
rows are backfilled at `t_read`, in the past of what is written meanwhile, so a check must look both ways
(002, "Detecting constraint violations"). Of a time, only its position relative to `t_read` matters.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Self

from stagewright.machines.yugabytedb.indexes.index_actors import CLIENT, MASTER, WEAK
from stagewright.machines.yugabytedb.indexes.index_states import Status
from stagewright.spec import (
    ANY,
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
    budget,
    choose,
    equivalent_drop,
    equivalent_loss,
    equivalent_replacement,
    equivalent_weakening,
    equivalents,
    every,
    final,
    flag,
    initially,
    invariant,
    leads_to,
    liveness,
    one_of,
    optional,
    per,
    record,
    require,
    scopes,
    set_of,
    some,
    sometimes,
    step_property,
)


class Row(Entity, scope=2):
    """A row of the table, by its primary key."""


class Key(Entity, scope=2):
    """A value of the indexed column, which no two rows may share."""


class Time(Enum):
    """Hybrid times before and after the one at which the table is scanned."""

    before_index = auto()  # rows were written that no server entered into the index
    earlier = auto()
    t_read = auto()
    later = auto()
    latest = auto()


TIMES = list(Time)
UP_TO_T_READ = TIMES[: TIMES.index(Time.t_read) + 1]
BEFORE_T_READ = TIMES[: TIMES.index(Time.t_read)]
AFTER_T_READ = TIMES[TIMES.index(Time.t_read) + 1 :]


class Versions(Record):
    """What is stored under a key of the index at one hybrid time, in the order of the write ids."""

    delete_marker = flag()
    row = optional(Row)  # written after the delete marker, if there is one


def number_of(time: Term[Time]) -> Number:
    """A time as a number: they are in order."""
    return time.number_column(TIMES.index)


class UniqueIndex(Machine):
    """Existing rows, and rows that clients write, under a unique index that is being backfilled."""

    writes = budget(3, doc="transactions of clients")

    exercised_at = scopes({Key: 1, writes: 2}, {}, {Row: 3, Key: 1, writes: 2})

    # the table
    key = per(Row, optional(Key, init=ANY))  # of a row; none: there is no such row
    key_at_t_read = per(Row, optional(Key, init=ANY))
    now: OneVar[Time] = one_of(Time, init=Time.before_index)  # of the newest transaction
    shared_later: FlagVar = flag()  # two rows had one key at a time after `t_read`
    # the index table
    stored = per(Key, per(Time, record(Versions)))
    # the backfill
    build: OneVar[Status] = one_of(Status, init=Status.in_progress)
    backfilled: SetVar[Row] = set_of(Row)

    @initially
    def rows_are_from_before(self, r: Term[Row]) -> Bool:
        """Existing rows were written when no server knew the index, and may share a key."""
        return self.key_at_t_read[r] == self.key[r]

    # -- clients -------------------------------------------------------------------------------------

    @action(by=CLIENT, spends=writes)
    def insert(self, r: Term[Row], k: Term[Key], time: Term[Time]) -> None:
        """A row is inserted, with a key that is free as far as the index knows."""
        require(self.key[r].is_none(), "there is no such row")
        require(self.holder(k).is_none(), "the key is free in the index")
        self.enter(r, k, time)

    @action(by=CLIENT, spends=writes)
    def delete(self, r: Term[Row], k: Term[Key], time: Term[Time]) -> None:
        """A row is deleted, and its key in the index."""
        require(self.key[r] == k, "the row has the key")
        self._commit(time)
        self._put(r, None, time)
        self.stored[k][time].delete_marker = True

    @action(by=CLIENT, spends=writes)
    def update(self, r: Term[Row], old: Term[Key], k: Term[Key], time: Term[Time]) -> None:
        """A row gets another key, or the same one again."""
        require(self.key[r] == old, "the row has the old key")
        require(~self.is_taken(k, r), "the key is free in the index, or the row's own")
        self.enter(r, k, time)

    @action(by=CLIENT, spends=writes)
    def hand_over(self, r: Term[Row], q: Term[Row], k: Term[Key], time: Term[Time]) -> None:
        """One transaction deletes a row and inserts another with the same key, both at one time."""
        require(self.key[r] == k, "the first row has the key")
        require(self.key[q].is_none(), "there is no such second row")
        self._commit(time)
        before = time.any_of(*UP_TO_T_READ)
        for each in Row:
            key = choose(each == r, None, choose(each == q, k, self.key[each]))
            self.key_at_t_read[each] = choose(before, key, self.key_at_t_read[each])
            self.key[each] = key
        self.stored[k][time].delete_marker = True
        self.stored[k][time].row = q

    @action(by=CLIENT)
    def read(self, r: Term[Row]) -> None:
        """002: "All the queries/updates continue against MyTable"."""
        require(self.key[r].is_some(), "the row is there")

    # -- the backfill --------------------------------------------------------------------------------

    @action(by=MASTER, fair=WEAK)
    def choose_t_read(self) -> None:
        """Safe times are past `t_read`: nothing commits at or before it any more."""
        require(self.now.any_of(*BEFORE_T_READ), "t_read is to come")
        self.now = Time.t_read

    @action(fair=WEAK)
    def backfill(self, r: Term[Row], q: Term[Row]) -> None:
        """A batch of one row, or two, passes the checks and is written to the index at `t_read`.

        It may happen again: the answer to the master was lost.
        """
        require(self.build == Status.in_progress, "the build is running")
        self._t_read_is_past()
        self._one_operation_a_key(r, q)
        duplicates = self.is_duplicate(r) | self.is_duplicate(q)
        require(~duplicates, "no other row has the key")
        for k in Key:
            row = self.stored[k][Time.t_read].row
            row = choose(self.key_at_t_read[q] == k, q, row)
            self.stored[k][Time.t_read].row = choose(self.key_at_t_read[r] == k, r, row)
        for each in Row:
            self.backfilled.put(each, self.backfilled.has(each) | (each == r) | (each == q))

    @action(fair=WEAK)
    def find_duplicate(self, r: Term[Row]) -> None:
        """A row does not pass the checks: the build fails."""
        require(self.build == Status.in_progress, "the build is running")
        require(~self.now.any_of(*BEFORE_T_READ), "safe times are past t_read")
        require(self.is_duplicate(r), "another row has the key")
        self.build = Status.failed

    @action(by=MASTER, fair=WEAK)
    def publish(self) -> None:
        """Every row is in the index: it may be read."""
        require(self.build == Status.in_progress, "the build is running")
        require(every(self.backfilled.has(r) for r in Row), "every row is backfilled")
        self.build = Status.success

    # -- the checks ----------------------------------------------------------------------------------

    def is_duplicate(self, r: Term[Row]) -> Bool:
        """002, "Detecting constraint violations": backwards in time, and forwards."""
        return some(
            (self.key_at_t_read[r] == k)
            & (self._conflicts(self._previous(k), r) | self._conflicts(self._next(k), r))
            for k in Key
        )

    def is_taken(self, k: Term[Key], r: Term[Row]) -> Bool:
        """The index has the key for another row."""
        return self._conflicts(self.holder(k), r)

    def _conflicts(self, holder: Maybe[Row], r: Term[Row]) -> Bool:
        """An entry stands in the way unless it is a delete, or of the row itself."""
        return holder.is_some() & (holder != r)

    def _previous(self, k: Term[Key]) -> Maybe[Row]:
        """Backwards in time: the immediately previous entry, of which `t_read` itself may be the time."""
        return self._newest(k, UP_TO_T_READ)

    def _next(self, k: Term[Key]) -> Maybe[Row]:
        """Forwards in time: the first version of the immediately next entry."""
        found = self._nothing(k)
        for t in reversed(AFTER_T_READ):
            at = self.stored[k][t]
            first = choose(at.delete_marker, None, at.row)
            found = choose(at.delete_marker | at.row.is_some(), first, found)
        return found

    def holder(self, k: Term[Key]) -> Maybe[Row]:
        """The row that the index has for the key now."""
        return self._newest(k, TIMES)

    def _newest(self, k: Term[Key], times: list[Time]) -> Maybe[Row]:
        found = self._nothing(k)
        for t in times:
            at = self.stored[k][t]
            found = choose(at.delete_marker | at.row.is_some(), at.row, found)
        return found

    def _nothing(self, k: Term[Key]) -> Maybe[Row]:
        """Before the index was created, nothing was stored."""
        return self.stored[k][Time.before_index].row

    # -- helpers -------------------------------------------------------------------------------------

    def _commit(self, time: Term[Time]) -> None:
        require(number_of(self.now) < number_of(time), "the time is later than those before")
        self.now = time

    def enter(
        self,
        r: Term[Row],
        k: Term[Key] | Maybe[Key],
        time: Term[Time],
        deletes: Bool | bool = True,
        writes: Bool | bool = True,
    ) -> None:
        """A row gets another key, or none: its old entry is deleted and the new one written, as its server plans."""
        self._commit(time)
        self._note_sharing(r, k, time)
        for each in Key:
            versions, new = self.stored[each][time], (k == each) & writes
            old = (self.key[r] == each) & deletes
            versions.delete_marker = versions.delete_marker | (old & ~new)
            versions.row = choose(new, r, versions.row)
        self._put(r, k, time)

    def _put(self, r: Term[Row], k: Term[Key] | Maybe[Key] | None, time: Term[Time]) -> None:
        self.key[r] = k
        at_t_read = time.any_of(*UP_TO_T_READ)
        self.key_at_t_read[r] = choose(at_t_read, k, self.key_at_t_read[r])

    def _note_sharing(self, r: Term[Row], k: Term[Key] | Maybe[Key], time: Term[Time]) -> None:
        """Another row has the key already, of which the index does not know."""
        others = some((o != r) & (self.key[o] == each) & (k == each) for o in Row for each in Key)
        after = time.any_of(*AFTER_T_READ)
        self.shared_later = self.shared_later | (after & others)

    def has_had(self, o: Term[Row], k: Term[Key]) -> Bool:
        """At `t_read` or later the index has, or had, the row under the key."""
        since = some(self.stored[k][t].row == o for t in AFTER_T_READ)
        return (self.key_at_t_read[o] == k) | since

    def had_a_duplicate(self) -> Bool:
        """Two rows had one key at `t_read` or later."""
        at_t_read = some(
            (r != q)
            & self.key_at_t_read[r].is_some()
            & (self.key_at_t_read[r] == self.key_at_t_read[q])
            for r in Row
            for q in Row
        )
        scanned = ~self.now.any_of(*BEFORE_T_READ)
        return scanned & (self.shared_later | at_t_read)

    def _is_entered_before(self, r: Term[Row], k: Term[Key], time: Time) -> Bool:
        """Another row is under the key in the index, and no delete of it, when the time comes."""
        times = TIMES[: TIMES.index(time) + 1]
        return some(
            self._is_of_another(r, k, t)
            & every(self.is_unchanged(k, u) for u in times[times.index(t) + 1 :])
            for t in times
        )

    def _is_entered_after(self, r: Term[Row], k: Term[Key]) -> Bool:
        """Another row is under the key after `t_read`, before any delete of it."""
        return some(
            self._is_of_another(r, k, t)
            & ~self.stored[k][t].delete_marker
            & every(self.is_unchanged(k, u) for u in AFTER_T_READ[: AFTER_T_READ.index(t)])
            for t in AFTER_T_READ
        )

    def _is_of_another(self, r: Term[Row], k: Term[Key], time: Time) -> Bool:
        return self.stored[k][time].row.is_some() & (self.stored[k][time].row != r)

    def is_unchanged(self, k: Term[Key], time: Time) -> Bool:
        """Nothing is stored under the key at that time."""
        return ~self.stored[k][time].delete_marker & self.stored[k][time].row.is_none()

    def _t_read_is_past(self) -> None:
        require(~self.now.any_of(*BEFORE_T_READ), "safe times are past t_read")

    def _one_operation_a_key(self, r: Term[Row], q: Term[Row]) -> None:
        """A batch is split where two operations are on one key of the index."""
        one_key = self.key_at_t_read[r].is_some() & (self.key_at_t_read[r] == self.key_at_t_read[q])
        require((r == q) | ~one_key, "a batch has one operation a key")

    # -- promises ------------------------------------------------------------------------------------

    @accepts(insert)
    def keys_that_no_row_has_are_free(self, r: Term[Row], k: Term[Key], time: Term[Time]) -> Bool:
        """002, Design Goals: the index is built "without locking out reads or writes": a client is refused a key
        only if another row has it.
        """
        unused = every(self.key[o] != k for o in Row) & self.key[r].is_none()
        in_order = number_of(self.now) < number_of(time)
        return unused & in_order

    @accepts(delete)
    def deletes_are_not_locked_out(self, r: Term[Row], k: Term[Key], time: Term[Time]) -> Bool:
        """002, Design Goals: "without locking out reads or writes": a row is deleted whatever the build does."""
        return (self.key[r] == k) & may_commit(self, time)

    @accepts(update)
    def updates_are_refused_only_if_the_key_is_taken(
        self, r: Term[Row], k: Term[Key], time: Term[Time]
    ) -> Bool:
        """002, Design Goals: "without locking out reads or writes": a row gets a key that no other row has."""
        free = every((o == r) | (self.key[o] != k) for o in Row)
        return self.key[r].is_some() & free & may_commit(self, time)

    @accepts(hand_over)
    def keys_are_handed_over_at_any_time(
        self, r: Term[Row], q: Term[Row], k: Term[Key], time: Term[Time]
    ) -> Bool:
        """002, Design Goals: "without locking out reads or writes": also where one transaction deletes a row and inserts another."""
        return (self.key[r] == k) & self.key[q].is_none() & may_commit(self, time)

    @accepts(read)
    def reads_are_not_locked_out(self, r: Term[Row]) -> Bool:
        """002: "All the queries/updates continue against MyTable"."""
        return self.key[r].is_some()

    @accepts(backfill)
    def rows_without_a_rival_are_backfilled(self, r: Term[Row], q: Term[Row]) -> Bool:
        """002: "These generated writes are batched": rows with different keys pass both checks, one by one or together, if no
        other has had theirs at `t_read`, or took it over since. (That they do so again when an answer was lost is promised
        where answers are: `index-build`.)
        """
        left = ~self.backfilled.has(r) & ~self.backfilled.has(q)
        share = some((self.key_at_t_read[r] == k) & (self.key_at_t_read[q] == k) for k in Key)
        passes = passes_the_checks(self, r) & passes_the_checks(self, q)
        return left & passes & ((r == q) | ~share)

    @accepts(find_duplicate)
    def violations_are_found(self, r: Term[Row]) -> Bool:
        """002, "Detecting constraint violations": a row fails that finds another one under its key, whether a client has
        written that entry or the backfill: "scan backwards in time" and "scan forward in time".
        """
        found = some(
            (self.key_at_t_read[r] == k)
            & (self._is_entered_before(r, k, Time.t_read) | self._is_entered_after(r, k))
            for k in Key
        )
        scanned = ~self.now.any_of(*BEFORE_T_READ)
        return (self.build == Status.in_progress) & scanned & found

    @sometimes(at={Row: 2, Key: 2})
    def entries_are_written_in_batches(self, after: Self) -> Bool:
        """002: "These generated writes are batched and a batched write is performed": several rows, with a key each, are
        written and done at once.
        """
        written = some(
            (k != o) & entry_is_backfilled(self, after, k) & entry_is_backfilled(self, after, o)
            for k in Key
            for o in Key
        )
        return written & (after.backfilled.size() >= self.backfilled.size() + 2)

    @invariant
    def published_keys_are_unique(self, r: Term[Row], q: Term[Row]) -> Bool:
        """002, Design Goals: if there is "a unique constraint violation in a unique index, the CREATE INDEX
        command should abort"; so once it has succeeded no two rows have one key, or had one since `t_read`.
        """
        shared = (r != q) & self.key[r].is_some() & (self.key[r] == self.key[q])
        return (self.build == Status.success).implies(~shared & ~self.had_a_duplicate())

    @step_property
    def no_row_takes_a_key_from_another(self, after: Self, r: Term[Row], k: Term[Key]) -> Bool:
        """002, "Detecting constraint violations": a unique index accepts a write only if "there is no previous entry", or it
        is a delete, also one of the same transaction, or of the row itself: of whichever time that entry is.
        """
        deletes = some((self.key[o] == k) & (after.key[o] != k) for o in Row)
        return every(
            ((after.stored[k][t].row == r) & (self.stored[k][t].row != r) & ~deletes).implies(
                ~self._is_entered_before(r, k, t)
            )
            for t in Time
        )

    @step_property
    def rows_are_backfilled_for_good(self, after: Self, r: Term[Row]) -> Bool:
        """002, Design Goals: "The entire build process should not need to restart", and rows are read at `t_read` "so that
        subsequent writes do not affect the values read by this scan": whatever clients write, what is done is done.
        """
        in_progress = Status.in_progress
        goes_on = (self.build == in_progress) & (after.build == in_progress)
        return (goes_on & self.backfilled.has(r)).implies(after.backfilled.has(r))

    @step_property
    def results_are_for_good(self, after: Self) -> Bool:
        """002: "the status (IN-PROGRESS, SUCCESS, FAILED)": the last two are the end: a build that "should abort" is not
        begun again, and what is published stays so.
        """
        over = self.build.any_of(Status.success, Status.failed)
        return over.implies(after.build == self.build)

    @invariant
    def no_false_duplicate(self) -> Bool:
        """The build fails only if two rows had one key at `t_read` or later (yugabyte-db #30312, #13326)."""
        return (self.build == Status.failed).implies(self.had_a_duplicate())

    @invariant
    def the_index_names_the_row_that_has_the_key(self, r: Term[Row], k: Term[Key]) -> Bool:
        """002, "Finalize the index": once published, the index "is completely rebuilt"."""
        right = (self.holder(k) == r) == (self.key[r] == k)
        return (self.build == Status.success).implies(right)

    @final
    def done(self) -> Bool:
        """An index that is published, or failed, may stay as it is."""
        return self.build != Status.in_progress

    @liveness
    def builds_end(self) -> LeadsTo:
        """002: the build succeeds, or aborts "and results in a failure"."""
        return leads_to(self.build == Status.in_progress, self.build != Status.in_progress)

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(
            insert, "there is no such row", because="an insert of a row that is there updates it"
        ),
        equivalent_drop(
            update,
            "the row has the old key",
            because="an update of a row that is not there inserts it",
        ),
        equivalent_replacement(
            enter,
            "delete_marker becomes: no for yes (2)",
            because="an update to the key that a row has may delete its entry, and write it anew",
        ),
        equivalent_replacement(
            choose_t_read,
            "now becomes: later for t_read",
            because="nobody need commit at the first time after that of the scan",
        ),
        equivalent_loss(
            insert, Versions.delete_marker, because="a row that is new has no entry to delete"
        ),
        equivalent_drop(
            read, "the row is there", because="a row that is not there may be asked for, too"
        ),
        equivalent_drop(
            backfill,
            "the build is running",
            because="a chunk that comes late finds its own entries",
        ),
        equivalent_drop(
            find_duplicate,
            "the build is running",
            because="once published, no duplicate is left to find",
        ),
        equivalent_weakening(
            find_duplicate,
            "safe times are past t_read",
            because="before anything is written to the index, there is none either",
        ),
        equivalent_drop(
            publish,
            "the build is running",
            because="a build that failed has a row that is not backfilled",
        ),
    )


def may_commit(index: UniqueIndex, time: Term[Time]) -> Bool:
    """Times of commits grow, and nobody writes to an index that has failed."""
    return number_of(index.now) < number_of(time)


def passes_the_checks(index: UniqueIndex, r: Term[Row]) -> Bool:
    """The table is scanned, and no other row has had the key of this one at `t_read` or since."""
    scanned = ~index.now.any_of(*BEFORE_T_READ)
    rival = some(
        (o != r)
        & some(
            (index.key_at_t_read[r] == k) & index.has_had(o, k) & ~is_given_up(index, o, k)
            for k in Key
        )
        for o in Row
    )
    return (index.build == Status.in_progress) & scanned & ~rival


def is_given_up(index: UniqueIndex, o: Term[Row], k: Term[Key]) -> Bool:
    """The first that was heard of the key after `t_read` is that its row was deleted, which another one was not before."""
    first = some(
        index.stored[k][t].delete_marker
        & every(index.is_unchanged(k, u) for u in AFTER_T_READ[: AFTER_T_READ.index(t)])
        for t in AFTER_T_READ
    )
    return first & (index.key_at_t_read[o] != k)


def entry_is_backfilled(before: UniqueIndex, after: UniqueIndex, k: Term[Key]) -> Bool:
    """A step writes an entry at `t_read` under a key that had none of that time."""
    written = after.stored[k][Time.t_read].row
    return written.is_some() & before.stored[k][Time.t_read].row.is_none()


def reclaim(index: UniqueIndex, k: Term[Key]) -> None:
    """A compaction keeps of a key's versions the newest, unless that is a delete marker."""
    for t in TIMES:
        at, newer = index.stored[k][t], TIMES[TIMES.index(t) + 1 :]
        hidden = some(
            index.stored[k][n].delete_marker | index.stored[k][n].row.is_some() for n in newer
        )
        at.row = choose(hidden, None, at.row)
        at.delete_marker = False

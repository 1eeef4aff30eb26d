"""The versions of a row and of its index entries: what the scan at `t_read` sees, and readers at their read points.

Both tables keep several versions of everything, until a compaction collects history. The scan reads the past of
the one and writes the past of the other (002, "Index backfill on a single tablet"), and a reader may be in the past,
too. So here the index is compared with its table read point by read point. All servers have learned the permission;
`index_rows.py` has those that have not, and transactions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from stagewright.machines.yugabytedb.backfill.backfill_table import CLIENT, MASTER, WEAK
from stagewright.machines.yugabytedb.indexes.index_rows import (
    STORAGE,
    HybridTime,
    Row,
    Stored,
    Value,
    number_of,
)
from stagewright.machines.yugabytedb.indexes.index_states import Permission
from stagewright.spec import (
    ANY,
    Bool,
    FlagVar,
    LeadsTo,
    Machine,
    Maybe,
    OneVar,
    Profile,
    SetVar,
    Term,
    accepts,
    action,
    always_reachable,
    budget,
    choose,
    equivalent_drop,
    equivalent_loss,
    equivalent_replacement,
    equivalent_step,
    equivalent_value,
    equivalents,
    every,
    final,
    flag,
    history,
    initially,
    invariant,
    known_violations,
    leads_to,
    liveness,
    one_of,
    only_when,
    optional,
    per,
    profiles,
    require,
    set_of,
    some,
    sometimes,
    step_property,
    violated,
)

TIMES = list(HybridTime)
NOT_HERE = tuple(p for p in Permission if p.removed or p.number in (-1, 2))
AT_ONCE = "what DELETE_ONLY is for are servers that differ: index-rows has them"
NEVER = "here servers learn permissions at once, and no index is removed: index-rows has both"


@dataclass(frozen=True)
class Era(Profile):
    """What the document, or a release, does about versions."""

    own_time: bool  # entries are backfilled with the update time of the row; else with `t_read`
    skips_in_place: bool  # an update that leaves the indexed column alone does not touch the index
    keeps_history: bool  # of the table, as of `t_read`, until the scan is over
    asks_read_points: bool  # a read from before `t_read` does not use the index


SEED = Era("seed", False, False, True, False)
SEED_OWN_TIME = Era("seed-own-time", True, False, True, False)
YUGABYTE_2026 = Era("yugabyte-2026", False, True, False, False)
AMENDED = Era("amended", False, True, True, True)


class BackfillVersions(Machine):
    """Rows are written, scanned and read at several times while an index of them is built.

    `seed` and `seed-own-time` are the two times that the document offers for backfilled entries; `amended` is the
    document with what it leaves unsaid.
    """

    era = profiles(SEED, SEED_OWN_TIME, YUGABYTE_2026, AMENDED)
    writes = budget(3, doc="rows that clients insert, update or delete")

    permission: OneVar[Permission] = one_of(Permission, init=Permission.delete_only)
    now: OneVar[HybridTime] = one_of(HybridTime, init=HybridTime.t0)  # of the newest commit
    # the table
    written = per(Row, set_of(HybridTime, init={HybridTime.t0}))  # there is a version of that time
    value = per(Row, per(HybridTime, optional(Value, init=ANY)))  # in it; none: deleted
    table_cutoff: OneVar[HybridTime] = one_of(HybridTime, init=HybridTime.t0)
    # the index table
    entry = per(Row, per(Value, per(HybridTime, one_of(Stored, init=Stored.nothing))))
    index_cutoff: OneVar[HybridTime] = one_of(HybridTime, init=HybridTime.t0)
    # the backfill
    t_read: OneVar[HybridTime] = one_of(HybridTime, init=HybridTime.t0)
    backfilled: SetVar[Row] = set_of(Row)
    # what a promise looks at
    at_t_read = history(per(Row, optional(Value)))
    # a client found through the index what the table has not, or missed a row
    wrong_read: FlagVar = flag()

    @initially
    def rows_are_from_before(self, r: Term[Row]) -> Bool:
        """A row of before has any value, or is not there; of later times there is nothing."""
        return every(self.value[r][t].is_none() for t in TIMES[1:])

    # -- clients -------------------------------------------------------------------------------------

    @action(by=CLIENT, spends=writes)
    def write(self, r: Term[Row], v: Term[Value], time: Term[HybridTime]) -> None:
        """A row is inserted, or gets a value, maybe the one that it has."""
        for each in Value:
            self._maintain(r, each, time, becomes=v == each)
        self._commit(r, v, time)

    @action(by=CLIENT, spends=writes)
    def delete(self, r: Term[Row], time: Term[HybridTime]) -> None:
        """A row is deleted."""
        require(self._row_now(r).is_some(), "the row is there")
        for each in Value:
            self._maintain(r, each, time, becomes=None)
        self._commit(r, None, time)

    @action(by=CLIENT, spends=writes)
    def update_in_place(self, r: Term[Row], time: Term[HybridTime]) -> None:
        """Another column is updated: a version of the row, and, if that is skipped, none of its entry."""
        only_when(self.era.skips_in_place)
        require(self._row_now(r).is_some(), "the row is there")
        self._commit(r, self._row_now(r), time)

    @action(by=CLIENT)
    def read_index(self, r: Term[Row], v: Term[Value], time: Term[HybridTime]) -> None:
        """A client looks a value up in the index as of its read point, of which history is kept."""
        require(self.permission.column(lambda p: p.read), "the index serves reads")
        require(self._is_kept(time), "the read point is in history")
        self._may_use_the_index(time)
        found = self._entry_at(r, v, time) == Stored.live
        self.wrong_read = self.wrong_read | (found != self._is_of_value(r, v, time))

    # -- the master ----------------------------------------------------------------------------------

    @permission.step(Permission.delete_only, Permission.do_backfill, by=MASTER, fair=WEAK)
    def choose_t_read(self) -> None:
        """Every server writes to the index by now, and what has committed is before the safe time."""
        self.t_read = self.now
        for r in Row:
            self.at_t_read[r] = self._row_now(r)

    @action(fair=WEAK)
    def backfill(self, r: Term[Row]) -> None:
        """A row is read as of `t_read`, and its entry written in the past; a lost answer makes it happen again."""
        require(self.permission == Permission.do_backfill, "the permission is that of the backfill")
        for v in Value:
            self._write_in_the_past(r, v)
        self.backfilled.add(r)

    @permission.step(Permission.do_backfill, Permission.read_write_and_delete, by=MASTER, fair=WEAK)
    def publish(self) -> None:
        """Every row is backfilled."""
        require(every(self.backfilled.has(r) for r in Row), "every row is backfilled")

    # -- compactions ---------------------------------------------------------------------------------

    @action(by=STORAGE)
    def compact_table(self, time: Term[HybridTime]) -> None:
        """History of the table is collected: of what was there at a time only the newest version stays."""
        self._is_past(time, self.table_cutoff)
        self._is_not_scanned(time)
        self.table_cutoff = time
        for r in Row:
            for t in TIMES[:-1]:
                newer = some(self.written[r].has(u) & _is_by(u, time) for u in _after(t))
                self.written[r].put(t, self.written[r].has(t) & ~newer)

    @action(by=STORAGE)
    def compact_index(self, time: Term[HybridTime]) -> None:
        """The same of the index; once the backfill is complete, delete markers go, too."""
        self._is_past(time, self.index_cutoff)
        self.index_cutoff = time
        for r in Row:
            for v in Value:
                self._collect(r, v, time)

    # -- helpers -------------------------------------------------------------------------------------

    def _commit(
        self, r: Term[Row], v: Term[Value] | Maybe[Value] | None, time: Term[HybridTime]
    ) -> None:
        require(number_of(time) == number_of(self.now) + 1, "the time is the next one")
        self.value[r][time] = v
        self.written[r].add(time)
        self.now = time

    def _maintain(
        self, r: Term[Row], v: Value, time: Term[HybridTime], becomes: Bool | None
    ) -> None:
        """What a commit does to the entry of one value: delete the old one, then write the new one."""
        deletes = (self._row_now(r) == v) & self.permission.column(lambda p: p.delete)
        here = choose(deletes, Stored.delete_marker, self.entry[r][v][time])
        if becomes is not None:
            here = choose(becomes & self.permission.column(lambda p: p.write), Stored.live, here)
        self.entry[r][v][time] = here

    def _write_in_the_past(self, r: Term[Row], v: Value) -> None:
        """The entry of the row as it was at `t_read`, under what is newer; at its own time it hides a marker."""
        seen = self._row_at(r, self.t_read)
        for t in HybridTime:
            stored = self.entry[r][v][t]
            writes = (seen == v) & self._is_time_of_entry(r, t)
            self.entry[r][v][t] = choose(writes, self._instead_of(stored), stored)

    def _is_time_of_entry(self, r: Term[Row], t: HybridTime) -> Bool:
        """002: "The update time of the row being read", or "the timestamp t_read"."""
        if not self.era.own_time:
            return self.t_read == t
        newer = some(self.written[r].has(u) & _is_by(u, self.t_read) for u in _after(t))
        return self.written[r].has(t) & _is_by(t, self.t_read) & ~newer

    def _instead_of(self, stored: Term[Stored]) -> Term[Stored]:
        """At one hybrid time, what is written hides a delete marker: the row was updated to the value it had."""
        return Term.of(Stored.live)

    def _is_past(self, time: Term[HybridTime], cutoff: Term[HybridTime]) -> None:
        forward = number_of(cutoff) <= number_of(time)
        require(forward, "the cutoff does not go back")
        require(number_of(time) <= number_of(self.now), "the time is past")

    def _is_not_scanned(self, time: Term[HybridTime]) -> None:
        """The read point of the scan is a reader's like any other: history is kept for it."""
        if self.era.keeps_history:
            scanned = self.permission == Permission.do_backfill
            before = number_of(time) <= number_of(self.t_read)
            require(scanned.implies(before), "no scan reads what is older")

    def _collect(self, r: Term[Row], v: Value, time: Term[HybridTime]) -> None:
        for t in HybridTime:
            stored = self.entry[r][v][t]
            hidden = some(
                (self.entry[r][v][u] != Stored.nothing) & _is_by(u, time) for u in _after(t)
            )
            old = (stored == Stored.delete_marker) & _is_by(t, time) & self._may_reclaim_markers()
            self.entry[r][v][t] = choose(hidden | old, Stored.nothing, stored)

    def _may_reclaim_markers(self) -> Bool:
        """002: not "until the index is in READ_WRITE_AND_DELETE state"."""
        return self.permission == Permission.read_write_and_delete

    def _is_kept(self, time: Term[HybridTime]) -> Bool:
        """The read point is in the history of both tables."""
        table = number_of(self.table_cutoff) <= number_of(time)
        index = number_of(self.index_cutoff) <= number_of(time)
        return table & index

    def _may_use_the_index(self, time: Term[HybridTime]) -> None:
        """What is backfilled is of `t_read`: before, the index has nothing to say."""
        if self.era.asks_read_points:
            since = number_of(self.t_read) <= number_of(time)
            require(since, "the read point is not before t_read")

    def _row_at(self, r: Term[Row], time: Term[HybridTime]) -> Maybe[Value]:
        """The newest version of a time, or before."""
        first = TIMES[0]
        found = choose(self.written[r].has(first), self.value[r][first], None)
        for t in TIMES[1:]:
            found = choose(self.written[r].has(t) & _is_by(t, time), self.value[r][t], found)
        return found

    def _row_now(self, r: Term[Row]) -> Maybe[Value]:
        return self._row_at(r, self.now)

    def _entry_at(self, r: Term[Row], v: Term[Value], time: Term[HybridTime]) -> Term[Stored]:
        found = self.entry[r][v][TIMES[0]]
        for t in TIMES[1:]:
            stored = self.entry[r][v][t]
            found = choose((stored != Stored.nothing) & _is_by(t, time), stored, found)
        return found

    # -- promises ------------------------------------------------------------------------------------

    def _is_of_value(self, r: Term[Row], v: Term[Value], time: Term[HybridTime]) -> Bool:
        """What a client takes the row for at a time: no version has come since the one with this value."""
        versions = {t: self.written[r].has(t) & _is_by(t, time) for t in TIMES}
        return some(
            versions[t] & (self.value[r][t] == v) & ~some(versions[u] for u in _after(t))
            for t in TIMES
        )

    @accepts(write)
    def writes_are_not_locked_out(self, r: Term[Row], v: Term[Value]) -> Bool:
        """002, the first goal: "without locking out reads or writes", while the model has times left."""
        del r, v
        return self.now != TIMES[-1]

    @accepts(delete)
    def deletes_are_not_locked_out(self, r: Term[Row]) -> Bool:
        """The same for deletes."""
        return (self.now != TIMES[-1]) & self._row_now(r).is_some()

    @accepts(update_in_place)
    def updates_of_other_columns_are_not_locked_out(self, r: Term[Row]) -> Bool:
        """002, the first goal, of what the index does not have: such an update makes no entry, and waits for none."""
        only_when(self.era.skips_in_place)
        return (self.now != TIMES[-1]) & self._row_now(r).is_some()

    @accepts(compact_table)
    def history_of_the_table_goes_during_the_scan(self, time: Term[HybridTime]) -> Bool:
        """002: the backfill keeps delete markers of the index table, and of the table what is read at `t_read`: what is older
        may go while it is under way.
        """
        scanned = self.permission == Permission.do_backfill
        unread = scanned.implies(number_of(time) <= number_of(self.t_read))
        forward = number_of(self.table_cutoff) <= number_of(time)
        return forward & unread & (number_of(time) <= number_of(self.now))

    @accepts(compact_index)
    def the_index_is_compacted_while_it_is_built(self, time: Term[HybridTime]) -> Bool:
        """002: "compactions for the Index table would not reclaim the delete markers until the backfill process is complete":
        that is all they leave for later.
        """
        forward = number_of(self.index_cutoff) <= number_of(time)
        return forward & (number_of(time) <= number_of(self.now))

    @invariant
    def no_orphan_entry(self, r: Term[Row], v: Term[Value]) -> Bool:
        """002, Design Goals: indexes are "consistent with the data in the primary table": no entry is left."""
        live = self._entry_at(r, v, self.now) == Stored.live
        return live.implies(self._is_of_value(r, v, self.now))

    @invariant
    def no_missing_entry(self, r: Term[Row], v: Term[Value]) -> Bool:
        """002, "Finalize the index": then "the index is completely rebuilt": no row is without its entry."""
        published = self.permission == Permission.read_write_and_delete
        live = self._entry_at(r, v, self.now) == Stored.live
        return published.implies(self._is_of_value(r, v, self.now).implies(live))

    @invariant
    def reads_through_the_index_find_the_rows(self) -> Bool:
        """002, Design Goals: the index is "consistent with the data in the primary table", at every read point."""
        return ~self.wrong_read

    @accepts(read_index)
    def reads_since_t_read_use_the_index(
        self, r: Term[Row], v: Term[Value], time: Term[HybridTime]
    ) -> Bool:
        """002, READ_WRITE_AND_DELETE: "the MyIndex index can be used to serve reads"."""
        del r, v
        published = self.permission == Permission.read_write_and_delete
        in_history = self._is_kept(time) | (self.now == time)
        return published & in_history & (number_of(self.t_read) <= number_of(time))

    @invariant
    def the_scan_sees_t_read(self, r: Term[Row]) -> Bool:
        """002: the scan reads at `t_read` "so that subsequent writes do not affect the values read by this scan";
        nor do compactions.
        """
        scanned = self.permission == Permission.do_backfill
        return scanned.implies(self._row_at(r, self.t_read) == self.at_t_read[r])

    @step_property
    def rows_are_backfilled_for_good(self, after: Self, r: Term[Row]) -> Bool:
        """002, Design Goals: "The entire build process should not need to restart": whatever clients write meanwhile, and
        compactions remove, a row that is in the index is not scanned for it again.
        """
        return self.backfilled.has(r).implies(after.backfilled.has(r))

    @step_property
    def what_was_read_is_read_again(
        self, after: Self, r: Term[Row], v: Term[Value], time: Term[HybridTime]
    ) -> Bool:
        """A read point of which history is kept shows the same rows and, once published, the same entries."""
        kept = (number_of(time) <= number_of(self.now)) & after._is_kept(time)
        rows = self._row_at(r, time) == after._row_at(r, time)
        published = self.permission == Permission.read_write_and_delete
        entries = self._entry_at(r, v, time) == after._entry_at(r, v, time)
        gone = self._entry_at(r, v, time) == Stored.delete_marker
        gone = gone & (after._entry_at(r, v, time) == Stored.nothing)
        return kept.implies(rows & published.implies(entries | gone))

    @sometimes
    def entries_have_several_versions(self, r: Term[Row], v: Term[Value]) -> Bool:
        """One that was live is deleted, or the other way round, and a reader may see either."""
        versions = [self.entry[r][v][t] for t in HybridTime]
        return some(stored == Stored.live for stored in versions) & some(
            stored == Stored.delete_marker for stored in versions
        )

    @always_reachable
    def history_can_go(self, r: Term[Row], v: Term[Value]) -> Bool:
        """002: compactions reclaim delete markers when the index is READ_WRITE_AND_DELETE, and all that is old."""
        published = self.permission == Permission.read_write_and_delete
        stored = [self.entry[r][v][t] for t in HybridTime]
        marked = some(each == Stored.delete_marker for each in stored)
        return published & ~marked & (self.written[r].size() <= 1)

    @final
    def published(self) -> Bool:
        """An index that serves reads may stay as it is."""
        return self.permission == Permission.read_write_and_delete

    @liveness
    def builds_end(self) -> LeadsTo:
        """Whatever clients and compactions do, the index is built."""
        return leads_to(~self.published(), self.published())

    # -- what older versions break ---------------------------------------------------------------------

    left_open = known_violations(
        violated(
            reads_through_the_index_find_the_rows,
            under=(SEED, SEED_OWN_TIME, YUGABYTE_2026),
            because="nobody speaks of readers whose read point is from before the index (yugabyte-db #32570)",
        ),
        violated(
            the_scan_sees_t_read,
            no_missing_entry,
            under=YUGABYTE_2026,
            because="history of the table could be collected past `t_read` (yugabyte-db #32522, #32560)",
        ),
    )

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(
            delete, "the row is there", because="a row that is not there may be deleted, too"
        ),
        equivalent_drop(
            update_in_place,
            "the row is there",
            because="what is not there stays so, in a new version",
        ),
        equivalent_loss(
            _maintain, entry, because="a delete marker where nothing was does not hide anything"
        ),
        equivalent_loss(
            _commit, value, written, because="a version that only repeats another may be left out"
        ),
        equivalent_loss(read_index, wrong_read, because="it notes what a client never finds"),
        equivalent_drop(
            choose_t_read,
            "permission is delete_only",
            because="a scan at a later time finds what one at an earlier time does, or newer entries",
        ),
        equivalent_drop(
            publish,
            "permission is do_backfill",
            because="rows are backfilled at no other permission",
        ),
        equivalent_step(permission, NOT_HERE, tuple(Permission), because=NEVER),
        equivalent_step(permission, tuple(Permission), NOT_HERE, because=NEVER),
        equivalent_value(Permission.delete_only, lambda p: p.write, because=AT_ONCE),
        equivalent_value(Permission.delete_only, lambda p: p.delete, because=AT_ONCE),
        equivalent_value(NOT_HERE, lambda p: p.read, because=NEVER),
        equivalent_value(NOT_HERE, lambda p: p.write, because=NEVER),
        equivalent_value(NOT_HERE, lambda p: p.delete, because=NEVER),
        equivalent_replacement(
            update_in_place,
            "the time is the next one: 0 for 1",
            "becomes: no for yes",
            because="it is an update of what the index does not have: without a version of its own there is none",
        ),
    )


def _after(time: HybridTime) -> list[HybridTime]:
    return TIMES[TIMES.index(time) + 1 :]


def _is_by(t: HybridTime, time: Term[HybridTime]) -> Bool:
    return number_of(Term.of(t)) <= number_of(time)

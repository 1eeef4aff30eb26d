"""A table whose indexes are created and dropped: what the alter rounds do around the backfill job.

Each permission of an index is a version of the table; the master starts the next one when every tablet has
applied, and reported, the last. `backfill_steps.py` adds the job.
"""

from __future__ import annotations

from stagewright.machines.yugabytedb.backfill.backfill_states import (
    SEED,
    YUGABYTE_2,
    YUGABYTE_2026,
    TableState,
)
from stagewright.machines.yugabytedb.indexes.index_states import Permission
from stagewright.spec import (
    ANY,
    Actor,
    Bool,
    Entity,
    Fairness,
    Machine,
    Number,
    OneVar,
    SetVar,
    Term,
    action,
    budget,
    constant,
    equivalent_drop,
    equivalent_loss,
    equivalents,
    every,
    one_of,
    optional,
    per,
    profiles,
    require,
    set_of,
    some,
)

WEAK = Fairness.WEAK
MASTER = Actor("master leader")
CLIENT = Actor("client")
MOVED_BY_ALTER = (
    Permission.delete_only,
    Permission.write_and_delete,
    Permission.write_and_delete_while_removing,
    Permission.delete_only_while_removing,
)

_PROGRESS = list(Permission)


class Tablet(Entity, scope=2):
    """A tablet of the indexed table."""


class Index(Entity, scope=2):
    """An index of the table; an id is used once."""


class IndexedTable(Machine):
    """A table, its indexes and its tablets; nothing backfills yet."""

    era = profiles(SEED, YUGABYTE_2, YUGABYTE_2026)

    aborts = budget(1, doc="DROP INDEX, and jobs that give up on splits, safe time or a chunk")

    # in the sys catalog
    permission = per(Index, one_of(Permission, init=Permission.absent))
    retains_delete_markers = set_of(Index)
    table: OneVar[TableState] = one_of(TableState, init=TableState.running)
    # the tablets: what they have applied, and reported, of the table's version
    known = per(Tablet, per(Index, one_of(Permission, init=Permission.absent)))
    # what befalls the indexes
    unbuildable = constant(optional(Index, init=ANY))  # it is unique, and two rows have one key
    created: SetVar[Index] = set_of(Index)
    dropped: SetVar[Index] = set_of(Index)

    @action(by=CLIENT)
    def create_index(self, i: Term[Index]) -> None:
        """CREATE INDEX: the index table is there, and the index is known at DELETE_ONLY."""
        require(~self.created.has(i), "index is new")
        self.created.add(i)
        self.permission[i] = Permission.delete_only
        self.retains_delete_markers.add(i)
        self._bump_version()

    @action(by=CLIENT, spends=aborts)
    def drop_index(self, i: Term[Index]) -> None:
        """DROP INDEX, at any time: the index is on its way out."""
        require(~self._is_removed(i), "index is not being removed yet")
        self.dropped.add(i)
        self.permission[i] = self.era.removal
        self._bump_version()

    @action(fair=WEAK)
    def apply_version(self, t: Term[Tablet]) -> None:
        """A tablet applies the version of the table and reports it."""
        require(~self._is_current(t), "tablet is behind")
        for i in Index:
            self.known[t][i] = self.permission[i]

    @action(by=MASTER, fair=WEAK)
    def launch_next_version(self) -> None:
        """Every tablet has the version: indexes that only need that move on by one permission."""
        self._all_tablets_are_current()
        require(some(self._moves(i) for i in Index), "an index moves on")
        for i in Index:
            self.permission[i] = self.permission[i].column(next_permission)
        self._bump_version()

    @action(by=MASTER, fair=WEAK)
    def delete_index(self, i: Term[Index]) -> None:
        """Nobody uses the index any more: its table is deleted."""
        self._all_tablets_are_current()
        require(self.permission[i] == Permission.index_unused, "index is unused")
        self.permission[i] = Permission.absent
        self._bump_version()

    # -- what recurs ---------------------------------------------------------------------------------------

    def _bump_version(self) -> None:
        self.table = TableState.altering

    def _is_current(self, t: Term[Tablet]) -> Bool:
        return every(self.known[t][i] == self.permission[i] for i in Index)

    def _all_tablets_are_current(self) -> None:
        require(self.table == TableState.altering, "table is altering")
        require(every(self._is_current(t) for t in Tablet), "every tablet has the version")

    def _no_index_is_altered(self) -> None:
        altered = some(self._moves(i) for i in Index)
        unused = some(self.permission[i] == Permission.index_unused for i in Index)
        require(~altered & ~unused, "no index is to move on or to be deleted first")

    def _moves(self, i: Term[Index]) -> Bool:
        return self.permission[i].any_of(*MOVED_BY_ALTER)

    def _is_removed(self, i: Term[Index]) -> Bool:
        """On its way out, or gone."""
        return self.permission[i].any_of(
            Permission.write_and_delete_while_removing,
            Permission.delete_only_while_removing,
            Permission.index_unused,
            Permission.absent,
        )

    def _is_settled(self, i: Term[Index]) -> Bool:
        """Usable, or not there."""
        return self.permission[i].any_of(Permission.absent, Permission.read_write_and_delete)

    # -- what no promise can tell ----------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(
            drop_index, "index is not being removed yet", because="dropping twice is dropping once"
        ),
        equivalent_drop(apply_version, "tablet is behind", because="there is nothing to apply"),
        equivalent_drop(launch_next_version, "an index moves on", because="nothing moves"),
        equivalent_loss(
            _bump_version,
            table,
            because="in the middle of an alter or a job the table is altering already",
        ),
        equivalent_drop(
            _all_tablets_are_current,
            "table is altering",
            because="as long as something is left to do the table is altering",
        ),
        equivalent_drop(
            _all_tablets_are_current,
            "every tablet has the version",
            because="a job that was launched may go on while another index is altered",
        ),
    )


def next_permission(permission: Permission) -> Permission:
    """The permission after it, of an index that only needs every tablet to know."""
    if permission not in MOVED_BY_ALTER:
        return permission
    return _PROGRESS[_PROGRESS.index(permission) + 1]


def progress_of(permission: Term[Permission]) -> Number:
    """How far an index is; it never goes back. (The code's numbers grow in the same order.)"""
    return permission.number_column(_PROGRESS.index)

"""The sys catalog: what masters have written about a table, its indexes and its job; a former master writes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from stagewright.impl.indexes.schema import IndexInfo, Schema
from stagewright.impl.indexes.splits.tablet_map import TABLE, Split, TabletMap
from stagewright.impl.runtime import Instance
from stagewright.machines.yugabytedb.indexes.index_states import Permission, Status


@dataclass(frozen=True)
class IndexRow:
    """An index, for ever: what became of it can be asked when it is gone."""

    number: int
    name: str
    column: str
    unique: bool
    deferred: bool
    permission: Permission
    status: Status = Status.in_progress
    error: str = ""
    dropped: bool = False
    read_time: int | None = None

    def info(self) -> IndexInfo:
        """What servers are told."""
        return IndexInfo(
            self.number, self.name, self.column, self.unique, self.permission, self.read_time
        )


@dataclass(frozen=True)
class JobRow:
    """The job of the table. `until` has the tablets that have a checkpoint; None: the tablet is done."""

    number: int
    indexes: tuple[int, ...]
    read_time: int | None = None
    until: Mapping[int, bytes | None] = field(default_factory=dict[int, "bytes | None"])
    failed: Mapping[int, str] = field(default_factory=dict[int, str])
    scan_began: int = 0  # milliseconds on the clock of a master
    expected: int = 0  # rows
    rows: int = 0  # read

    @property
    def left(self) -> tuple[int, ...]:
        """The indexes that have not failed."""
        return tuple(i for i in self.indexes if i not in self.failed)


@dataclass
class Catalog:
    """It survives its masters."""

    term: int = 0
    version: int = 1
    indexes: tuple[IndexRow, ...] = ()
    job: JobRow | None = None
    jobs: int = 0
    tablets: TabletMap | None = None  # None: no master has lived yet
    index_tablets: tuple[TabletMap, ...] = ()  # of indexes of which some tablet has split
    split: Split | None = None  # one that is going on
    machines: Mapping[tuple[str, str], Instance] = field(
        default_factory=dict[tuple[str, str], Instance]
    )  # the states of the instances

    def schema(self) -> Schema:
        """The table's schema as its servers are to have it."""
        there = tuple(i.info() for i in self.indexes if i.permission is not Permission.absent)
        return Schema(self.version, there)

    def map_of(self, table: str) -> TabletMap:
        """The tablets of the table, or of an index."""
        assert self.tablets is not None
        if table == TABLE:
            return self.tablets
        found = (t for t in self.index_tablets if t.table == table)
        return next(found, TabletMap(self.tablets.created, (), table))

    def set_map(self, tablets: TabletMap) -> None:
        """The next version of one."""
        if tablets.table == TABLE:
            self.tablets = tablets
            return
        others = (t for t in self.index_tablets if t.table != tablets.table)
        self.index_tablets = (*others, tablets)

    def change(self, number: int, **new: Any) -> None:
        """Some columns of an index."""
        self.indexes = tuple(replace(i, **new) if i.number == number else i for i in self.indexes)

    def named(self, name: str) -> IndexRow | None:
        """The newest index of that name."""
        return next((i for i in reversed(self.indexes) if i.name == name), None)

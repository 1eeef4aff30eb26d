"""What servers know of a table: its version, its indexes with their permissions, and where rows and entries are."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from zlib import crc32

from stagewright.impl.indexes.splits.tablet_map import TABLE, TabletMaps, index_table
from stagewright.machines.yugabytedb.indexes.index_states import Permission

Values = Mapping[str, int]
"""A row's columns but for its key; a column that is not there is null."""

COLUMNS = ("v", "w")
"""Of every table."""

_OFFSET = 1 << 63


@dataclass(frozen=True)
class IndexInfo:
    """An index as a version of the table's schema has it. The number is never used again."""

    number: int
    name: str
    column: str
    unique: bool
    permission: Permission
    read_from: int | None = None  # the time of its scan: earlier reads find nothing in it


@dataclass(frozen=True)
class Schema:
    """A version of the table's schema. Every change of a permission is a new one."""

    version: int = 0
    indexes: tuple[IndexInfo, ...] = ()

    def permission(self, number: int) -> Permission:
        """Of an index that is not there: absent."""
        return next((i.permission for i in self.indexes if i.number == number), Permission.absent)

    def encoded(self) -> bytes:
        """As a store has it."""
        indexes = [
            [i.number, i.name, i.column, i.unique, i.permission.name, i.read_from]
            for i in self.indexes
        ]
        return json.dumps([self.version, indexes]).encode()

    @classmethod
    def decoded(cls, stored: bytes) -> Schema:
        """The inverse of `encoded`."""
        version, indexes = json.loads(stored)
        found = [
            IndexInfo(number, name, column, unique, Permission[permission], read_from)
            for number, name, column, unique, permission, read_from in indexes
        ]
        return cls(version, tuple(found))

    def named(self, name: str) -> IndexInfo | None:
        """The index of that name."""
        return next((i for i in self.indexes if i.name == name), None)

    def readable(self, name: str, at: int | None) -> IndexInfo | None:
        """The index of that name, if it is built and has what there was at a time (None: any)."""
        index = self.named(name)
        if index is None or not index.permission.read:
            return None
        return None if at is not None and at < (index.read_from or 0) else index


@dataclass(frozen=True)
class EntryChange:
    """What a statement does to one entry of an index: the row's key comes there, or that of `left` goes."""

    index: int
    unique: bool
    entry: bytes
    row: int | None
    left: int | None = None


def row_key(key: int) -> bytes:
    """A row's key, in the order of numbers."""
    return (key + _OFFSET).to_bytes(8, "big")


def stored_row(values: Values | None) -> bytes | None:
    """A row's columns as a store has them; None: it is deleted."""
    return None if values is None else json.dumps(dict(values)).encode()


def key_of(stored: bytes) -> int:
    """The inverse of `row_key`; of an entry of an index that is not unique, the row's key."""
    return int.from_bytes(stored[-8:], "big") - _OFFSET


def entry_key(unique: bool, value: int, row: int) -> bytes:
    """An entry is found by its value; without a constraint, by the row as well."""
    return row_key(value) + (b"" if unique else row_key(row))


def value_of(entry: bytes) -> int:
    """The value that an entry is for."""
    return key_of(entry[:8])


def changes(schema: Schema, row: int, old: Values, new: Values) -> Iterator[EntryChange]:
    """What a write of a row does to the indexes, by their permissions: delete the old entry, write the new one."""
    for index in schema.indexes:
        before, after = old.get(index.column), new.get(index.column)
        if index.permission.delete and before is not None and before != after:
            entry = entry_key(index.unique, before, row)
            yield EntryChange(index.number, index.unique, entry, None, row)
        if index.permission.write and after is not None:
            yield EntryChange(index.number, index.unique, entry_key(index.unique, after, row), row)


def tablet_of(stored: bytes, tablets: int) -> int:
    """The tablet of a row by its key, or of an entry by its value, as long as none has split."""
    return crc32(stored[:8]) % tablets


def table_tablet(tablet: int) -> str:
    """The address of a tablet of the table."""
    return f"{TABLE}/{tablet}"


def index_tablet(index: int, tablet: int) -> str:
    """The address of a tablet of an index."""
    return f"{index_table(index)}/{tablet}"


def by_tablet(
    entries: Iterable[EntryChange], tablets: TabletMaps
) -> dict[str, tuple[EntryChange, ...]]:
    """Changes of entries by the tablet that they are for, in their order."""
    found: dict[str, list[EntryChange]] = {}
    for change in entries:
        found.setdefault(tablets.place_of(change.index, change.entry), []).append(change)
    return {place: tuple(some) for place, some in found.items()}

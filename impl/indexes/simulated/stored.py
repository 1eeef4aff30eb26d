"""What the disks of a run have at its end: rows in the tablets that serve, and entries that compactions have left."""

from __future__ import annotations

import json
from collections.abc import Iterator

from stagewright.impl.indexes.schema import Values, key_of, table_tablet, value_of
from stagewright.impl.indexes.simulated.world import World
from stagewright.impl.indexes.splits.tablet_map import index_table
from stagewright.impl.indexes.tablet import ROWS
from stagewright.impl.storage.memory import MemoryRows
from stagewright.impl.storage.port import LAST_TIME, live


def versions_in(world: World) -> Iterator[tuple[int, int, int, Values | None]]:
    """Every version of a row as the tablets that serve have it: tablet, time, key, columns."""
    for tablet in world.tablets.numbers:
        snapshot = MemoryRows(world.disks[table_tablet(tablet)]).snapshot()
        for version in snapshot.versions(ROWS, b"", None):
            row = None if version.value is None else json.loads(version.value)
            yield tablet, version.time, key_of(version.key), row
        snapshot.close()


def entries_in(world: World, index: int) -> Iterator[tuple[int, int]]:
    """(value, row) of an index as they are left after compactions."""
    for place in world.catalog.map_of(index_table(index)).places:
        snapshot = MemoryRows(world.disks[place]).snapshot()
        for version in live(snapshot, ROWS, at=LAST_TIME):
            yield value_of(version.key), int((version.value or b"0").lstrip(b"*"))
        snapshot.close()


def entry_versions_in(world: World, index: int) -> Iterator[tuple[int, bytes, int]]:
    """Every version of an entry as the tablets that serve have it: tablet, key, time."""
    tablets = world.catalog.map_of(index_table(index))
    for tablet in tablets.numbers:
        snapshot = MemoryRows(world.disks[tablets.place(tablet)]).snapshot()
        for version in snapshot.versions(ROWS, b"", None):
            yield tablet, version.key, version.time
        snapshot.close()

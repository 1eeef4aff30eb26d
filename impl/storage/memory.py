"""Rows in memory, with a commit log on a modelled disk: a crash of the machine loses what was not synced.

For simulation: deterministic, and the only place where a sync that is forgotten shows (`kill -9` leaves
the system's page cache as it is).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from stagewright.impl.storage.port import LAST_TIME, Page, Put, Version, forgettable, live

Batch = tuple[Put, ...]
_Family = dict[bytes, dict[int, bytes | None]]


@dataclass(frozen=True)
class Dropped:
    """A record of the log: keys and times of versions of a family that are forgotten."""

    family: str
    versions: frozenset[tuple[bytes, int]]


@dataclass(frozen=True)
class Superseded(Dropped):
    """Each of them had a newer one."""


@dataclass(frozen=True)
class Truncated(Dropped):
    """The table was truncated after them."""


class ModelledDisk:
    """The commit log of one node: what a crash leaves of it is a prefix that has all that was synced."""

    def __init__(self) -> None:
        self.log: list[Batch | Dropped] = []
        self.synced = 0  # so many are on the disk for certain

    def sync(self) -> None:
        """All that was written is on the disk."""
        self.synced = len(self.log)

    def crash(self, kept: int = 0) -> None:
        """The machine fails; of the batches that were not synced the first ones may have been written."""
        del self.log[self.synced + kept :]
        self.synced = len(self.log)


class MemoryRows:
    """The rows that a disk's commit log comes to; opened again after a crash, with what is left."""

    def __init__(self, disk: ModelledDisk) -> None:
        self.disk = disk
        self._families: dict[str, _Family] = {}
        self._keys: dict[str, list[bytes]] = {}
        self._views = 0  # snapshots that share what is there
        for record in disk.log:
            self._redo(record)

    def write(self, batch: Iterable[Put]) -> None:
        record = tuple(batch)
        self.disk.log.append(record)
        self._redo(record)

    def sync(self) -> None:
        self.disk.sync()

    def load(self, family: str, time: int) -> MemoryLoad:
        return MemoryLoad(self, family, time)

    def page(self, family: str, low: bytes, at: int, most: int) -> Page:
        snapshot = self.snapshot()
        rows = list(islice(live(snapshot, family, low, at=at), most + 1))
        snapshot.close()
        following = rows.pop().key if len(rows) > most else None
        keys = b"".join(row.key for row in rows)
        return Page(keys, [row.value or b"" for row in rows], following)

    def spill(self) -> None:
        """There are no files."""

    def files(self) -> tuple[str, ...]:
        return ()

    def beside(self) -> str:
        return ""

    def snapshot(self) -> MemorySnapshot:
        self._views += 1
        return MemorySnapshot(self._families, self._keys, self._seen)

    def _seen(self, families: dict[str, _Family]) -> None:
        if families is self._families:
            self._views -= 1

    def _own(self) -> None:
        """What is there is about to change: what snapshots show is theirs from now on."""
        if self._views:
            self._views = 0
            self._families = {
                name: {key: dict(versions) for key, versions in family.items()}
                for name, family in self._families.items()
            }
            self._keys = {name: list(keys) for name, keys in self._keys.items()}

    def get(self, family: str, key: bytes) -> Version | None:
        versions = self._families.get(family, {}).get(key)
        if versions is None:
            return None
        time = max(versions)
        return Version(key, time, versions[time])

    def value_at(self, family: str, key: bytes, time: int) -> bytes | None:
        return self._families.get(family, {}).get(key, {}).get(time)

    def drop(self, family: str, low: bytes, high: bytes | None) -> int:
        gone = _between(self._keys.get(family, []), low, high)
        rows = self._families.get(family, {})
        return self._remove(Dropped(family, frozenset((k, t) for k in gone for t in rows[k])))

    def supersede(self, family: str, before: Mapping[bytes, int]) -> int:
        rows = self._families.get(family, {})
        gone = frozenset(
            (key, t)
            for key in before.keys() & rows.keys()
            for t in rows[key]
            if t < min(before[key], max(rows[key]))
        )
        return self._remove(Superseded(family, gone)) if gone else 0

    def forget(self, family: str, before: int, low: bytes = b"", high: bytes | None = None) -> int:
        snapshot = self.snapshot()
        versions = snapshot.versions(family, low, high)
        dropped = frozenset((v.key, v.time) for v in forgettable(versions, before))
        snapshot.close()
        return self._remove(Dropped(family, dropped))

    def truncate(self, family: str, until: int) -> int:
        rows = self._families.get(family, {})
        gone = frozenset((k, t) for k, versions in rows.items() for t in versions if t <= until)
        return self._remove(Truncated(family, gone)) if gone else 0

    def _remove(self, record: Dropped) -> int:
        self.disk.log.append(record)
        self._redo(record)
        return len(record.versions)

    def close(self) -> None:
        """Nothing is held but the log."""

    def _redo(self, record: Batch | Dropped) -> None:
        self._own()
        if isinstance(record, Dropped):
            for key, time in record.versions:
                self._drop(record.family, key, time)
        else:
            for put in record:
                self._put(put.family, put.version)

    def _put(self, family: str, version: Version) -> None:
        rows = self._families.setdefault(family, {})
        if version.key not in rows:
            insort(self._keys.setdefault(family, []), version.key)
        rows.setdefault(version.key, {})[version.time] = version.value

    def _drop(self, family: str, key: bytes, time: int) -> None:
        rows = self._families[family]
        del rows[key][time]
        if not rows[key]:
            del rows[key]
            self._keys[family].remove(key)


class MemorySnapshot:
    """The rows as they were: the store changes a copy while a view is open."""

    def __init__(
        self,
        families: dict[str, _Family],
        keys: dict[str, list[bytes]],
        on_close: Callable[[dict[str, _Family]], None],
    ) -> None:
        self._families = families
        self._keys = keys
        self._on_close: Callable[[dict[str, _Family]], None] | None = on_close

    def get(self, family: str, key: bytes, at: int = LAST_TIME) -> Version | None:
        versions = self._families.get(family, {}).get(key, {})
        time = max((t for t in versions if t <= at), default=None)
        return None if time is None else Version(key, time, versions[time])

    def versions(self, family: str, low: bytes, high: bytes | None) -> Iterator[Version]:
        for key in _between(self._keys.get(family, []), low, high):
            versions = self._families[family][key]
            for time in sorted(versions, reverse=True):
                yield Version(key, time, versions[time])

    def newest(self, family: str, low: bytes, high: bytes | None) -> Iterator[Version]:
        for key in _between(self._keys.get(family, []), low, high):
            versions = self._families[family][key]
            time = max(versions)
            yield Version(key, time, versions[time])

    def close(self) -> None:
        if self._on_close is not None:
            self._on_close(self._families)
            self._on_close = None


class MemoryLoad:
    """What is put in with one record of the log."""

    def __init__(self, rows: MemoryRows, family: str, time: int) -> None:
        self._rows = rows
        self._family = family
        self._time = time
        self._batch: list[Put] = []
        self.path = ""

    def add(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        pairs = zip(keys, values, strict=True)
        self._batch += (Put(self._family, Version(k, self._time, v)) for k, v in pairs)

    def finish(self) -> None:
        self._rows.write(self._batch)
        self._rows.disk.sync()

    def abandon(self) -> None:
        self._batch.clear()


def _between(keys: list[bytes], low: bytes, high: bytes | None) -> list[bytes]:
    """Those of low <= key < high, of keys in their order."""
    return keys[bisect_left(keys, low) : None if high is None else bisect_left(keys, high)]

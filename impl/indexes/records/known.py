"""What is known of rows and entries from the notes of tablets alone: their versions, and who holds what."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping

from stagewright.impl.indexes.records.notes import (
    Compacted,
    EntriesStored,
    IntentsEnded,
    IntentsHeld,
    Note,
    Opened,
    Stored,
)
from stagewright.impl.indexes.schema import Values
from stagewright.impl.indexes.splits.tablet_map import Split, TabletMaps
from stagewright.impl.storage.port import LAST_TIME


class KnownVersions:
    """All versions that were ever stored, compactions or not, and the intents that are held now, by tablet.

    What a crash has taken back is held again, and is no version.
    """

    def __init__(self, tablets: int = 1) -> None:
        self.maps = TabletMaps(tablets)
        self._compacted = set[str]()  # tablets of indexes that may have reclaimed versions
        self._versions: dict[str, dict[bytes, dict[int, bytes | None]]] = defaultdict(
            lambda: defaultdict(dict)
        )
        self._held: dict[str, dict[bytes, str]] = defaultdict(dict)
        self._ended: dict[tuple[str, str], int | None] = {}  # at a tablet, a transaction

    def load(self, address: str, rows: Mapping[bytes, Values]) -> None:
        """Rows from before."""
        for key, values in rows.items():
            self._versions[address][key][1] = json.dumps(dict(values)).encode()

    def hear(self, note: Note) -> None:
        """A tablet has done something."""
        match note:
            case Stored(address, time, versions):
                for key, value in versions.items():
                    self._versions[address][key][time] = value
            case EntriesStored():
                self.hear(note.stored())
            case Opened(address, held):
                self._held[address] = dict(held)
                for key, transaction in held.items():
                    if (time := self._ended.get((address, transaction))) is not None:
                        self._versions[address][key].pop(time, None)
            case IntentsHeld(address, transaction, keys):
                self._held[address] |= dict.fromkeys(keys, transaction)
            case Compacted(address):
                self._compacted.add(address)
            case IntentsEnded(address, transaction, time):
                self._ended[address, transaction] = time
                held = self._held[address]
                for key in [k for k, t in held.items() if t == transaction]:
                    del held[key]
            case _:
                pass

    def divide(self, split: Split) -> None:
        """A tablet has split: its children have what it had."""
        versions = self._versions.pop(split.place, {})
        held = self._held.pop(split.place, {})
        tablets = self.maps.of(split.table).after(split)
        self.maps.learn(tablets)
        for key, some in versions.items():
            self._versions[tablets.place_of(key)][key] = some
        for key, transaction in held.items():
            self._held[tablets.place_of(key)][key] = transaction
        if split.place in self._compacted:
            self._compacted |= {*split.places}

    def has(self, address: str, versions: int, rows: int) -> bool:
        """Whether a tablet has so many versions, and rows or entries that there are; compactions reclaim none of these."""
        known = self._versions[address].values()
        whole = address in self._compacted or sum(map(len, known)) == versions
        return whole and sum(_as_of(some, LAST_TIME) is not None for some in known) == rows

    def intents(self, address: str) -> int:
        """How many are held there."""
        return len(self._held[address])

    def holder_of(self, address: str, key: bytes) -> str | None:
        """The transaction that holds a key."""
        return self._held[address].get(key)

    def rows_from(self, address: str, low: bytes, at: int) -> Iterator[tuple[bytes, Values]]:
        """The rows from a key on as of a time, in their order."""
        rows = self._versions[address]
        for key in sorted(k for k in rows if k >= low):
            value = _as_of(rows[key], at)
            if value is not None:
                yield key, json.loads(value)

    def has_entry(self, address: str, key: bytes, at: int, row: int) -> bool:
        """Whether an entry of a row was written with a time."""
        value = self._versions[address].get(key, {}).get(at)
        return value is not None and _row(value) == row

    def rival(self, address: str, key: bytes, at: int, row: int) -> tuple[bool, bool]:
        """Whether another row has a key at a time, and whether another one is the first to get it afterwards."""
        versions = self._versions[address].get(key, {})
        before = _row(_as_of(versions, at))
        later = min((t for t in versions if t > at), default=None)
        after: int | None = None
        if later is not None:
            value = versions[later]
            handed_over = value is not None and value.startswith(b"*")  # a deletion comes first
            after = None if handed_over else _row(value)
        return before not in (None, row), after not in (None, row)


def _as_of(versions: Mapping[int, bytes | None], at: int) -> bytes | None:
    newest = max((t for t in versions if t <= at), default=None)
    return None if newest is None else versions[newest]


def _row(value: bytes | None) -> int | None:
    return None if value is None else int(value.lstrip(b"*"))

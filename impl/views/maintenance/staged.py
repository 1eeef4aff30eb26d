"""Staging: rows that came by a stream and that views may lack, kept beside the base table until views have them.

They are readable as any row at once; an entry beside a row says that its view updates are still to be made, and what
the row replaced here. Entries lie in a family of their own, by the tokens of the base rows, so that they go where these
go. A crash leaves a row with its entry, or neither.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from stagewright.impl.node.messages import Cell
from stagewright.impl.node.port import Drop
from stagewright.impl.storage.port import Put, RowStore, Snapshot, Version
from stagewright.impl.views.maintenance.definition import ViewDefinition
from stagewright.impl.views.maintenance.updates import ViewUpdate, for_everyone, updates_of

_SUFFIX = "_view_staging"


def staging_of(base: str) -> str:
    """The family of a base table's staging entries."""
    return base + _SUFFIX


def entry_key(key: bytes, time: int) -> bytes:
    """The key of the entry of a row's version: each version has its own."""
    return key + time.to_bytes(8, "big")


@dataclass(frozen=True, slots=True)
class Staged:
    """A version of a base row that waits, with the one that it replaced at this replica or where it came from."""

    cell: Cell
    before: Version | None = None
    repaired: bool = False  # it did not come with its tablet: other replicas had it before

    @property
    def entry(self) -> bytes:
        """The key of its entry."""
        return entry_key(self.cell[0], self.cell[1])


def put_staged(base: str, staged: Staged) -> Put:
    """The entry of a row, to be written with it."""
    key, time, value = staged.cell
    before = staged.before
    replaced = None if before is None else [before.time, _text(before.value)]
    body = json.dumps([key.hex(), _text(value), replaced, staged.repaired])
    return Put(staging_of(base), Version(staged.entry, time, body.encode()))


def staged_in(entry: Version) -> Staged:
    """The row that an entry is of."""
    assert entry.value is not None, "entries are dropped, and not deleted"
    text, value, replaced, repaired = json.loads(entry.value)
    key = bytes.fromhex(text)
    before = None if replaced is None else Version(key, replaced[0], _bytes(replaced[1]))
    return Staged((key, entry.time, _bytes(value)), before, repaired)


def staged_rows(
    rows: RowStore, base: str, low: bytes = b"", high: bytes | None = None, most: int = 0
) -> list[Staged]:
    """The rows of low <= stored key < high that wait, by their keys; the first `most` of them, or all if it is 0."""
    snapshot, found = rows.snapshot(), list[Staged]()
    for entry in snapshot.versions(staging_of(base), low, high):
        found.append(staged_in(entry))
        if len(found) == most:
            break
    snapshot.close()
    return found


def has_staged(snapshot: Snapshot, base: str, low: bytes = b"", high: bytes | None = None) -> bool:
    """Whether rows of low <= stored key < high wait."""
    return next(snapshot.versions(staging_of(base), low, high), None) is not None


def is_staged(snapshot: Snapshot, base: str, key: bytes, time: int) -> bool:
    """Whether a version of a row waits."""
    return snapshot.get(staging_of(base), entry_key(key, time)) is not None


def drop_of(base: str, staged: Staged) -> Drop:
    """What takes a row out of staging."""
    return Drop(staging_of(base), staged.entry, staged.entry + b"\0")


def updates_from(
    view: ViewDefinition, staged: Staged, kept: Iterable[Version]
) -> Iterator[ViewUpdate]:
    """The view updates of a row that waited; `kept` are its versions that the replica has now, the newest first.

    The row may have been replaced while it waited: who replaced it has not seen what it had replaced itself. And an older
    one may have come meanwhile, which a view that is built shows, as it has no other to read.
    """
    time, versions = staged.cell[1], [*kept]
    older = [v for v in versions if v.time < time and v != staged.before]
    for before in (staged.before, *older):
        yield from updates_of(view, before, staged.cell)
    if versions and versions[0].time > time:
        yield from updates_of(view, versions[0], staged.cell)


def updates_of_staged(
    views: Iterable[ViewDefinition], staged: Iterable[Staged], rows: RowStore, base: str
) -> list[ViewUpdate]:
    """The updates of all rows that waited, for all views of their table."""
    known, snapshot = [*views], rows.snapshot()
    found: list[ViewUpdate] = []
    for one in staged:
        key = one.cell[0]
        kept = [*snapshot.versions(base, key, key + b"\0")]
        updates = [*dict.fromkeys(u for view in known for u in updates_from(view, one, kept))]
        found += for_everyone(updates) if one.repaired else updates
    snapshot.close()
    return found


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.hex()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)

"""Hints: updates that have not reached their view replicas yet, stored with the base rows that they follow from.

They lie in a family of their own beside the base table's, by the tokens of the base rows, so that they go where these
go. A crash leaves a base row with its hints, or neither.
"""

from __future__ import annotations

import json
from hashlib import blake2b

from stagewright.impl.storage.port import Put, RowStore, Version
from stagewright.impl.views.maintenance.updates import ViewUpdate

_SUFFIX = "_view_hints"


def hints_of(base: str) -> str:
    """The family of a base table's hints."""
    return base + _SUFFIX


def hint_key(update: ViewUpdate) -> bytes:
    """The key of an update's hint: the base row's, and what tells the updates of one row apart."""
    tail = blake2b(update.view.encode() + b"\0" + update.key, digest_size=8).digest()
    return update.base_key + tail


def put_hint(base: str, update: ViewUpdate) -> Put:
    """The hint of an update, to be written with its base row."""
    value = None if update.value is None else update.value.hex()
    body = json.dumps([update.view, update.base_key.hex(), update.key.hex(), value])
    return Put(hints_of(base), Version(hint_key(update), update.time, body.encode()))


def update_in(hint: Version) -> ViewUpdate:
    """The update that a hint is of; for whom it was is not known any more."""
    assert hint.value is not None, "hints are dropped, and not deleted"
    view, base_key, key, value = json.loads(hint.value)
    found = None if value is None else bytes.fromhex(value)
    return ViewUpdate(
        view, bytes.fromhex(base_key), bytes.fromhex(key), hint.time, found, everyone=True
    )


def stored_hints(
    rows: RowStore, base: str, low: bytes = b"", high: bytes | None = None
) -> list[ViewUpdate]:
    """The hints of base rows of low <= stored key < high, the newest of each."""
    snapshot = rows.snapshot()
    found: dict[bytes, Version] = {}
    for version in snapshot.versions(hints_of(base), low, high):
        found.setdefault(version.key, version)
    snapshot.close()
    return [update_in(hint) for hint in found.values()]

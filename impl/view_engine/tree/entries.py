"""What stands in the leaves: keys and values of views, and the back index from documents to keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

LONGEST_DOC_VALUE = (1 << 24) - 1  # bytes of one emitted value


class ViewRow(NamedTuple):
    """One row of a view: the emitted key as JSON, the document, its partition, the values as JSON."""

    key: bytes
    doc_id: bytes
    partition: int
    values: tuple[bytes, ...]


def view_key(key: bytes, doc_id: bytes) -> bytes:
    """The key of a view's tree."""
    return len(key).to_bytes(2, "big") + key + doc_id


def view_value(partition: int, values: Iterable[bytes]) -> bytes:
    """The value of a view's tree: all values that a document emitted with one key."""
    parts = [partition.to_bytes(2, "big")]
    for value in values:
        if len(value) > LONGEST_DOC_VALUE:
            raise ValueError(f"an emitted value of {len(value)} bytes: at most 16,777,215 fit")
        parts += (len(value).to_bytes(3, "big"), value)
    return b"".join(parts)


def read_view_key(key: bytes) -> tuple[bytes, bytes]:
    """The emitted key and the document's id; raises ValueError."""
    end = 2 + int.from_bytes(key[:2], "big")
    if len(key) < max(end, 2):
        raise ValueError("the key of a view row is shorter than it says")
    return key[2:end], key[end:]


def read_view_value(value: bytes) -> tuple[int, tuple[bytes, ...]]:
    """The partition and the values; raises ValueError."""
    values: list[bytes] = []
    at = 2
    while at < len(value):
        size = int.from_bytes(value[at : at + 3], "big")
        at += 3 + size
        if at > len(value):
            break
        values.append(value[at - size : at])
    if at != len(value):
        raise ValueError("the values of a view row are shorter than they say")
    return int.from_bytes(value[:2], "big"), tuple(values)


def read_view_row(key: bytes, value: bytes) -> ViewRow:
    """Both at once; raises ValueError."""
    return ViewRow(*read_view_key(key), *read_view_value(value))


def back_key(partition: int, doc_id: bytes) -> bytes:
    """The key of the back index."""
    return partition.to_bytes(2, "big") + doc_id


def back_value(partition: int, keys: Mapping[int, Sequence[bytes]]) -> bytes:
    """The value of the back index: by number of the view the keys that a document emitted there."""
    parts = [partition.to_bytes(2, "big")]
    for view, emitted in sorted(keys.items()):
        if emitted:
            parts.append(bytes([view]) + len(emitted).to_bytes(2, "big"))
            parts += (part for key in emitted for part in (len(key).to_bytes(2, "big"), key))
    return b"".join(parts)


def read_back_key(key: bytes) -> tuple[int, bytes]:
    """The partition and the document's id."""
    return int.from_bytes(key[:2], "big"), key[2:]


def read_back_value(value: bytes) -> tuple[int, dict[int, list[bytes]]]:
    """The partition and the keys by view; raises ValueError."""
    found: dict[int, list[bytes]] = {}
    at = 2
    while at + 3 <= len(value):
        keys = found.setdefault(value[at], [])
        count = int.from_bytes(value[at + 1 : at + 3], "big")
        at += 3
        for _ in range(count):
            size = int.from_bytes(value[at : at + 2], "big")
            keys.append(value[at + 2 : at + 2 + size])
            at += 2 + size
    if at != len(value):
        raise ValueError("an entry of the back index is shorter than it says")
    return int.from_bytes(value[:2], "big"), found

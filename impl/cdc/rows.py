"""A change as a row of a log table: the stream first, then the time, so that a stream is read in its order."""

from __future__ import annotations

from dataclasses import dataclass

from stagewright.spec.errors import InputError

STREAM = 16  # bytes of a stream id; the first eight are its token
_TIME = 8
_SHIFT = 1 << 63
_DELETED, _WRITTEN, _IMAGED = 0, 1, 2  # bits of the first byte of a log row
_NO_ROW, _ROW, _NOT_KNOWN = 0, 1, 2  # kinds of images, in the second byte
_LENGTH = 4
SUFFIX = "_scylla_cdc_log"


@dataclass(frozen=True, slots=True)
class Image:
    """What a row was: its `value`, or None for no row; not `known` if the row was newer than the write already."""

    value: bytes | None
    known: bool = True


ABSENT, UNKNOWN = Image(None), Image(None, known=False)


@dataclass(frozen=True, slots=True)
class Change:
    """What happened to a row; `timestamp` is that of the write (microseconds), a `value` of None a deletion.

    A row is one value, so that the value is the row after the change, too (003: delta and post-image are the same).
    `before` is the row before it, of tables that keep images.
    """

    stream: bytes
    timestamp: int
    key: bytes
    value: bytes | None
    before: Image | None = None


def log_of(table: str) -> str:
    """The name of a table's log."""
    return table + SUFFIX


def start_of_time(stream: bytes, timestamp: int) -> bytes:
    """What no stored key of a stream's changes from a time on is less than."""
    token = int.from_bytes(stream[:8], "big", signed=True)
    return (token + _SHIFT).to_bytes(8, "big") + stream + timestamp.to_bytes(_TIME, "big")


def timestamp_in(key: bytes) -> int:
    """The time in a stored key."""
    return int.from_bytes(key[8 + STREAM : 8 + STREAM + _TIME], "big")


def stored(change: Change) -> tuple[bytes, bytes]:
    """Stored key and value; a change that is written again is the same row."""
    key = start_of_time(change.stream, change.timestamp) + change.key
    kind = _DELETED if change.value is None else _WRITTEN
    if change.before is None:
        return key, bytes([kind]) + (change.value or b"")
    return key, bytes([kind | _IMAGED]) + _stored_image(change.before) + (change.value or b"")


def _stored_image(image: Image) -> bytes:
    if not image.known:
        return bytes([_NOT_KNOWN])
    if image.value is None:
        return bytes([_NO_ROW])
    return bytes([_ROW]) + len(image.value).to_bytes(_LENGTH, "big") + image.value


def _image_in(value: bytes) -> tuple[Image, bytes]:
    """The image that stands there, and what comes after it."""
    kind = value[0]
    if kind != _ROW:
        return (UNKNOWN if kind == _NOT_KNOWN else ABSENT), value[1:]
    end = 1 + _LENGTH + int.from_bytes(value[1 : 1 + _LENGTH], "big")
    return Image(value[1 + _LENGTH : end]), value[end:]


def change_of(key: bytes, value: bytes) -> Change:
    """The inverse of `stored`.

    Raises:
        InputError: it is no row of a log.
    """
    body = key[8:]
    if len(body) < STREAM + _TIME or not value or value[0] > _WRITTEN | _IMAGED:
        raise InputError("a row that is no change", help="read a log table")
    before, rest = _image_in(value[1:]) if value[0] & _IMAGED else (None, value[1:])
    return Change(
        body[:STREAM],
        int.from_bytes(body[STREAM : STREAM + _TIME], "big"),
        body[STREAM + _TIME :],
        rest if value[0] & _WRITTEN else None,
        before,
    )

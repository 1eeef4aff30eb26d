"""A change as a row of a log table: the stream first, then the time, so that a stream is read in its order."""

from __future__ import annotations

from dataclasses import dataclass

from stagewright.spec.errors import InputError

STREAM = 16  # bytes of a stream id; the first eight are its token
_TIME = 8
_SHIFT = 1 << 63
_DELETED, _WRITTEN = b"\x00", b"\x01"
_SUFFIX = "_scylla_cdc_log"


@dataclass(frozen=True, slots=True)
class Change:
    """What happened to a row; `timestamp` is that of the write (microseconds), a `value` of None a deletion."""

    stream: bytes
    timestamp: int
    key: bytes
    value: bytes | None


def log_of(table: str) -> str:
    """The name of a table's log."""
    return table + _SUFFIX


def start_of_time(stream: bytes, timestamp: int) -> bytes:
    """What no stored key of a stream's changes from a time on is less than."""
    token = int.from_bytes(stream[:8], "big", signed=True)
    return (token + _SHIFT).to_bytes(8, "big") + stream + timestamp.to_bytes(_TIME, "big")


def stored(change: Change) -> tuple[bytes, bytes]:
    """Stored key and value; a change that is written again is the same row."""
    key = start_of_time(change.stream, change.timestamp) + change.key
    return key, _DELETED if change.value is None else _WRITTEN + change.value


def change_of(key: bytes, value: bytes) -> Change:
    """The inverse of `stored`.

    Raises:
        InputError: it is no row of a log.
    """
    body = key[8:]
    if len(body) < STREAM + _TIME or value[:1] not in (_DELETED, _WRITTEN):
        raise InputError("a row that is no change", help="read a log table")
    return Change(
        body[:STREAM],
        int.from_bytes(body[STREAM : STREAM + _TIME], "big"),
        body[STREAM + _TIME :],
        None if value[:1] == _DELETED else value[1:],
    )

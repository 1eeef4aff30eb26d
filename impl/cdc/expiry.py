"""What of a log has expired: its rows are older than the table keeps them, by the timestamps of their writes."""

from __future__ import annotations

from collections.abc import Iterator

from stagewright.impl.cdc.rows import STREAM, start_of_time
from stagewright.impl.storage.port import Snapshot

_STREAM_ENDS = 8 + STREAM  # of a stored key: the token, then the stream


def expired(snapshot: Snapshot, log: str, before: int) -> Iterator[tuple[bytes, bytes]]:
    """The stored keys (from the first on, up to the second) of rows from before a time, stream by stream."""
    place = b""
    while (row := next(snapshot.versions(log, place, None), None)) is not None:
        stream = row.key[8:_STREAM_ENDS]
        end = start_of_time(stream, before)
        if row.key < end:
            yield start_of_time(stream, 0), end
        place = start_of_time(stream, (1 << 64) - 1) + b"\xff"

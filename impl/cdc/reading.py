"""Reads one stream of a log page by page, wherever the pages come from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from stagewright.impl.cdc.rows import Change, change_of, start_of_time

Page = tuple[Sequence[tuple[bytes, bytes]], bytes | None]
"""Stored keys and values in their order, and where to go on: None if there is nothing more."""


def changes_of(
    stream: bytes, start: int, end: int, page: Callable[[bytes, bytes], Page]
) -> Iterator[Change]:
    """The changes of a stream with start <= timestamp < end; `page` reads the log between two stored keys."""
    place: bytes | None = start_of_time(stream, start)
    last = start_of_time(stream, end)
    while place is not None and place < last:
        rows, place = page(place, last)
        yield from (change_of(key, value) for key, value in rows)

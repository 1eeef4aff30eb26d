"""Reads the changes of a table exactly once, in the order in which they count.

003: clients "read the streams of each generation and the time intervals they are operating at". The consumer
goes through time: it reads what happened from where it stands to a time in which nothing can be written any
more (`confidence` before now), in the streams of the generation that operated then, and goes on with the
next generation where that one begins. Its position is two numbers. Who keeps it together with what was made
of the changes (in one transaction of the own database) processes each change exactly once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from stagewright.impl.cdc.rows import Change
from stagewright.spec.errors import InputError


@dataclass(frozen=True)
class Generation:
    """A generation that clients may read: when it begins to operate (microseconds since 1970), its streams."""

    start: int
    streams: tuple[bytes, ...]


class Source(Protocol):
    """Where changes are read; a cluster, or anything that keeps a log in its form."""

    def generations(self) -> Sequence[Generation]:
        """The generations that are published, in any order; one may become known late."""
        ...

    def changes(self, streams: Sequence[bytes], start: int, end: int) -> Sequence[Change]:
        """All changes of streams with start <= timestamp < end, as a quorum of replicas has them."""
        ...


@dataclass(frozen=True)
class Position:
    """All changes of generations before `generation` (its start) are read, and of this one those before `read`."""

    generation: int
    read: int

    def to_json(self) -> str:
        """The position as a text to keep."""
        return json.dumps({"generation": self.generation, "read": self.read})

    @classmethod
    def from_json(cls, text: str) -> Position:
        """The inverse.

        Raises:
            InputError: the text is no position.
        """
        try:
            body = json.loads(text)
            return cls(int(body["generation"]), int(body["read"]))
        except (ValueError, KeyError, TypeError):
            raise InputError(
                f"{text[:60]!r} is no position of a CDC consumer", help="begin anew without one"
            ) from None


class Consumer:
    """One reader of one table's log.

    `confidence` (microseconds) has to be longer than a write may take from its timestamp to its last log row:
    the cluster's horizon for timestamps, the time-out of a request, and what clocks may differ.
    `most` bounds the time that one `poll` reads through, and so the number of changes that it returns.
    """

    def __init__(
        self,
        source: Source,
        now: Callable[[], int],
        confidence: int,
        position: Position | None = None,
        most: int = 60_000_000,
    ) -> None:
        self.position = position
        self._source = source
        self._now = now
        self._confidence = confidence
        self._most = most

    def poll(self) -> list[Change]:
        """The next changes in the order of their timestamps; afterwards `position` is behind them.

        Of two changes of one key with one timestamp the cluster keeps one. Nothing is returned, and the
        position stays, if reading fails.
        """
        known = sorted(self._source.generations(), key=lambda g: g.start)
        if not known:
            return []
        now = self._now()
        position = self._enter(known, self.position or Position(known[0].start, known[0].start))
        current = next((g for g in known if g.start == position.generation), None)
        if current is None:
            raise InputError(
                f"the CDC generation of {position.generation} is not known",
                help="the position is another cluster's, or the generation is expired",
            )
        following = min((g.start for g in known if g.start > current.start), default=None)
        end = min(now - self._confidence, position.read + self._most)
        if following is not None:
            end = min(end, following)
        if end <= position.read:
            self.position = position
            return []
        found = self._source.changes(current.streams, position.read, end)
        self.position = Position(position.generation, end)
        return sorted(found, key=lambda c: (c.timestamp, c.key))

    @staticmethod
    def _enter(known: Sequence[Generation], position: Position) -> Position:
        """Go over to the next generation if all of the present one is read.

        It may have become known after its start: what was read since then in the streams of the present one
        does not count, as nothing was written there.
        """
        following = min((g.start for g in known if g.start > position.generation), default=None)
        if following is not None and following <= position.read:
            return Position(following, following)
        return position

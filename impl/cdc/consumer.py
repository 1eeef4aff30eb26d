"""Reads the changes of a table exactly once, in the order in which they count.

003: clients "read the streams of each generation and the time intervals they are operating at". The consumer
goes through time: it reads what happened from where it stands to a time in which nothing can be written any
more (`confidence` before now), in the streams of the generation that operated then, and goes on with the
next generation where that one begins. Its position is two numbers. Who keeps it together with what was made
of the changes (in one transaction of the own database) processes each change exactly once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from stagewright.impl.cdc.rows import Change
from stagewright.spec.errors import InputError


@dataclass(frozen=True)
class Generation:
    """A generation that clients may read: when it begins to operate (microseconds since 1970), its streams."""

    start: int
    streams: tuple[bytes, ...]


class ExpiredError(InputError):
    """Changes that a consumer has not read are gone: it was behind for longer than the table keeps them.

    All before `read` were read; `kept_from` is the time (microseconds since 1970) from which on the log has them.
    """

    def __init__(self, read: int, kept_from: int) -> None:
        super().__init__(
            f"changes from {read} on were not read, and those before {kept_from} have expired",
            help="begin anew without a position, from a copy of the table, or let the log keep more",
        )
        self.read, self.kept_from = read, kept_from


class Source(Protocol):
    """Where changes are read; a cluster, or anything that keeps a log in its form."""

    def generations(self) -> Sequence[Generation]:
        """The generations that are published, in any order; one may become known late."""
        ...

    def kept_from(self) -> int:
        """Changes from before this time (microseconds since 1970) may have expired; 0: none ever does."""
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
            match json.loads(text):
                case {"generation": int(generation), "read": int(read)} if 0 <= generation <= read:
                    return cls(generation, read)
                case _:
                    pass
        except (ValueError, RecursionError):
            pass
        raise InputError(
            f"{text[:60]!r} is no position of a CDC consumer", help="begin anew without one"
        )


@dataclass(frozen=True)
class Part:
    """A span of time in the streams of one generation: start <= timestamp < end, in microseconds."""

    generation: Generation
    start: int
    end: int

    @property
    def position(self) -> Position:
        """Where a consumer stands after it."""
        return Position(self.generation.start, self.end)


def next_part(known: Sequence[Generation], position: Position, until: int) -> Part | None:
    """What to read next after a position; None if all before `until` is read.

    A generation may become known after its start: what was read since then in the streams of the one before
    does not count, as nothing was written there, and the new one is read from its start.

    Raises:
        InputError: the position's generation is not known.
    """
    following = min((g.start for g in known if g.start > position.generation), default=None)
    if following is not None and following <= position.read:
        position = Position(following, following)
        following = min((g.start for g in known if g.start > following), default=None)
    current = next((g for g in known if g.start == position.generation), None)
    if current is None:
        raise InputError(
            f"the CDC generation of {position.generation} is not known",
            help="the position is another cluster's, or the generation is expired",
        )
    end = until if following is None else min(until, following)
    return Part(current, position.read, end) if end > position.read else None


def parts_between(known: Sequence[Generation], start: Position, end: Position) -> Iterator[Part]:
    """All between two positions of one consumer: the same again, also if more generations are known by now."""
    then = [g for g in known if g.start <= end.generation]
    while (part := next_part(then, start, end.read)) is not None:
        yield part
        start = part.position


def beginning(known: Sequence[Generation], kept: int = 0) -> Position | None:
    """Before the first change that is kept from a time on; None if no generation is known."""
    starts = [g.start for g in known]
    if not starts:
        return None
    start = max((s for s in starts if s <= kept), default=min(starts))
    return Position(start, max(start, kept))


def refuse_gaps(known: Sequence[Generation], position: Position, kept: int) -> None:
    """Refuse to go on from a position whose generation is forgotten, with changes that were not read.

    Raises:
        ExpiredError: there is such a gap: the log has changes from `kept` on.
    """
    if position.generation not in {g.start for g in known} and position.read < kept:
        raise ExpiredError(position.read, kept)


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

        Raises:
            ExpiredError: of what is to be read next some has expired. A consumer that begins without a position
                begins with what is there, but for what is about to expire.
        """
        known = self._source.generations()
        kept = self._source.kept_from()
        position = self.position or beginning(known, kept and kept + self._confidence)
        if position is None:
            return []
        refuse_gaps(known, position, kept)
        part = next_part(known, position, self._now() - self._confidence)
        if part is None:
            self.position = position
            return []
        part = replace(part, end=min(part.end, part.start + self._most))
        found = self._source.changes(part.generation.streams, part.start, part.end)
        if part.start < (kept := self._source.kept_from()):  # it may have expired as it was read
            raise ExpiredError(part.start, kept)
        self.position = part.position
        return sorted(found, key=lambda c: (c.timestamp, c.key))

"""What a node knows of CDC generations: which stream a write goes to, and which writes are refused."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from stagewright.machines.scylladb.cdc.cdc_streams import StreamId, TopologyDescription

NO_GENERATION = "no CDC generation operated at its timestamp"


@dataclass(frozen=True)
class Window:
    """Which timestamps a node accepts beside its clock, in microseconds.

    `leeway`: so far ahead, and so far behind where a generation has ended meanwhile (003's
    `generation_leeway`). `horizon`: so far behind at all; 003 has no such bound, but without it no consumer
    would know when it has seen all changes of a time.
    """

    leeway: int
    horizon: int


@dataclass(frozen=True)
class Refused:
    """Why a write gets no stream."""

    reason: str


class Metadata:
    """Generations in the order of their timestamps (microseconds since 1970), each with its mapping."""

    def __init__(self, generations: Sequence[tuple[int, TopologyDescription]]) -> None:
        self.generations = tuple(sorted(generations, key=lambda g: g[0]))
        self._starts = [start for start, _ in self.generations]

    def operating(self, at: int) -> int | None:
        """The index of the generation that operates at a time: the last one that has begun by then."""
        place = bisect_right(self._starts, at) - 1
        return None if place < 0 else place

    def stream(self, timestamp: int, token: int, now: int, window: Window) -> StreamId | Refused:
        """The stream of a write: of its token, in the generation that operates at its timestamp.

        003, "Generation switching": a timestamp too far ahead may belong to a generation that is not known
        yet; one of a generation that has ended may have been read past.
        """
        if timestamp >= now + window.leeway:
            return Refused("its timestamp is too far ahead of this node's clock for the CDC log")
        if timestamp < now - window.horizon:
            return Refused("its timestamp is too old for the CDC log")
        then, present = self.operating(timestamp), self.operating(now)
        if then is None:
            return Refused(NO_GENERATION)
        if present is not None and then < present and timestamp <= now - window.leeway:
            return Refused("the CDC generation of its timestamp has ended")
        return self.generations[then][1].stream(token)

    def since(self, start: int) -> Metadata:
        """What is known of generations that begin at a time or later, alone."""
        return Metadata([g for g in self.generations if g[0] >= start])

    def newest(self, token: int) -> StreamId:
        """The stream of a token in the last generation that is committed, whether it operates or not."""
        return self.generations[-1][1].stream(token)

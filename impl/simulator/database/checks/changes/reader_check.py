"""What a consumer asks for, compared with what group0 has: where it reads, in which streams, and when."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stagewright.impl.catalog.catalog import Catalog
from stagewright.impl.cdc.metadata import Metadata
from stagewright.impl.node.port import Timing
from stagewright.impl.recording.recording import Recording
from stagewright.machines.scylladb.cdc.cdc_streams import TokenRange, TopologyDescription

SLOW_MS = 1_500  # by which a write may be late beside all that is known


def confidence_in(timing: Timing, skew: int) -> int:
    """Microseconds after which nothing can be written any more, where clocks are off by `skew` milliseconds."""
    return 1000 * (timing.horizon + timing.request + 4 * skew + SLOW_MS)


class ReaderCheck:
    """Records the spans that consumers read; `skew`: by how many milliseconds clocks are off."""

    def __init__(
        self,
        recording: Recording,
        catalog: Catalog,
        now: Callable[[], int],
        skew: int,
        timing: Timing,
    ) -> None:
        self.now = now
        self.confidence = confidence_in(timing, skew)
        self._recording = recording
        self._catalog = catalog
        self._sure = 1000 * (timing.horizon + timing.request - skew)
        self._at: dict[str, int] = {}  # up to where each log is read

    def _known(self, table: str) -> tuple[tuple[int, TopologyDescription], ...]:
        """The sets of streams of a table in their order, those for readers alone included."""
        known = dict(self._catalog.readable(table))
        known |= dict(self._catalog.streams_of(table).generations)
        return tuple(sorted(known.items()))

    def expired_before(self, table: str) -> int:
        """Changes from before this time may be gone."""
        kept = self._catalog.view.kept.get(table, 0)
        return self.now() - 1000 * kept if kept else 0

    def skip(self, table: str, to: int) -> None:
        """A consumer knows that what is before a time is gone."""
        self._at[table] = to

    def read(self, table: str, streams: Sequence[bytes], start: int, end: int) -> None:
        """A consumer has read all changes of streams with start <= timestamp < end, and goes on behind them."""
        if table not in self._catalog.view.logs:
            return  # it was dropped meanwhile
        sets = self._known(table)
        place = Metadata(sets).operating(start)
        operating = set[bytes]() if place is None else _ids(sets[place][1].ranges)
        following = None if place is None else sets[place + 1 : place + 2]
        ends = not following or end <= following[0][0]
        follows = start == self._at.get(table, sets[0][0])
        self._recording.take(
            "readers",
            table,
            "consumer",
            "read",
            follows=follows and ends and {*streams} == operating,
            confident=end <= self.now() - self._sure,
            there=start >= self.expired_before(table),
        )
        self._at[table] = end


def _ids(ranges: Sequence[TokenRange]) -> set[bytes]:
    return {s.to_bytes() for r in ranges for s in r.streams}

"""The streams of rows that coordinators have open at a node, each over a snapshot that it holds.

A request that comes twice is answered the same: answers get lost. A coordinator that is gone closes
nothing, so a stream that nobody asks for ends by itself after a while.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

from stagewright.impl.view_engine.cluster.merging import in_order
from stagewright.impl.view_engine.cluster.messages import (
    Batch,
    Indexed,
    Opened,
    OutdatedError,
    Placed,
    ViewRequest,
)
from stagewright.impl.view_engine.defects import Defect, has
from stagewright.impl.view_engine.group.current import GroupSnapshot
from stagewright.impl.view_engine.query.local import numbered_rows, streamed
from stagewright.impl.view_engine.trace.trace import NO_TRACE, Trace

ROWS_A_BATCH = 1000
LONGEST_SILENCE = 300.0  # seconds after which a stream is closed


class Part(NamedTuple):
    """A snapshot of one of a node's indexes, and the partitions that it answers for."""

    snapshot: GroupSnapshot
    partitions: Sequence[int]


_NOTHING = Batch((), last=False)

# Takes and holds the snapshots that serve a request.
Reading = Callable[[ViewRequest], AbstractContextManager[Sequence[Part]]]


@dataclass
class _Stream:
    held: ExitStack
    opened: Opened
    rows: Iterator[Placed]
    asked: float
    wanted: frozenset[int]  # partitions
    number: int = -1
    batch: Batch = _NOTHING


class Streams:
    """Of one node. Any thread may call it."""

    def __init__(
        self,
        reading: Reading,
        clock: Callable[[], float],
        rows_a_batch: int = ROWS_A_BATCH,
        trace: Trace = NO_TRACE,
    ) -> None:
        self._reading = reading
        self._clock = clock
        self._rows_a_batch = rows_a_batch
        self._trace = trace
        self._streams: dict[str, _Stream] = {}
        self._lock = threading.Lock()

    def open(self, stream: str, request: ViewRequest) -> Opened:
        """As `Node.open`."""
        with self._lock:
            if (there := self._streams.get(stream)) is not None:
                return there.opened
        with ExitStack() as held:
            parts = held.enter_context(self._reading(request))
            wanted = frozenset(request.query.partitions or ())
            made = _Stream(held, *_answer(parts, request), asked=self._clock(), wanted=wanted)
            with self._lock:
                if (there := self._streams.get(stream)) is not None:
                    return there.opened  # it was asked for again meanwhile
                self._streams[stream] = made
                self._record(stream, "open", serves=made.opened.indexed.keys() >= wanted)
            made.held = held.pop_all()
            return made.opened

    def batch(self, stream: str, number: int) -> Batch:
        """As `Node.batch`."""
        with self._lock:
            found = self._streams[stream]
            found.asked = self._clock()
            repeated = number == found.number
            if repeated and not has(Defect.repeated_batch_goes_on):
                self._record(stream, "send_again", same=True)
                return found.batch
            if number not in (found.number, found.number + 1) and not has(
                Defect.late_batch_goes_on
            ):
                raise KeyError(f"batch {number} of {stream} comes late")
            rows = [*islice(found.rows, self._rows_a_batch)]
            sent, found.batch = found.batch, Batch(rows, len(rows) < self._rows_a_batch)
            if repeated:
                self._record(stream, "send_again", same=found.batch == sent)
            else:
                parts = {placed.row.partition for placed in rows} - {None}
                in_turn, wanted = number == found.number + 1, parts <= found.wanted
                self._record(stream, "send_next", in_turn=in_turn, wanted=wanted)
            found.number = number
            return found.batch

    def _record(self, stream: str, action: str, **arguments: bool) -> None:
        self._trace.record("engine-streams", f"{self._trace.node} {stream}", action, **arguments)

    def close(self, stream: str) -> None:
        """As `Node.close`."""
        with self._lock:
            found = self._streams.pop(stream, None)
        if found is not None:
            found.held.close()

    def close_silent(self) -> int:
        """Close the streams of coordinators that are gone; gives how many."""
        now = self._clock()
        with self._lock:
            silent = [
                name for name, one in self._streams.items() if now - one.asked > LONGEST_SILENCE
            ]
        for name in silent:
            self.close(name)
        return len(silent)

    def close_all(self) -> None:
        """The node ends."""
        for name in [*self._streams]:
            self.close(name)


def _answer(parts: Sequence[Part], request: ViewRequest) -> tuple[Opened, Iterator[Placed]]:
    indexed: dict[int, Indexed] = {}
    totals: list[int | None] = []
    rows: list[Iterator[Placed]] = []
    for snapshot, partitions in parts:
        query = replace(request.query, partitions=partitions)
        totals.append(streamed(snapshot, request.view, query).total_rows)
        rows.append(
            Placed(number, row) for number, row in numbered_rows(snapshot, request.view, query)
        )
        indexed.update((partition, _indexed(snapshot, partition)) for partition in partitions)
    asked = request.query.partitions or ()
    missing = [partition for partition in asked if partition not in indexed]
    if missing and not has(Defect.outdated_is_ignored):
        raise OutdatedError(missing)
    counted = all(total is not None for total in totals)
    total = sum(total or 0 for total in totals) if counted else None
    return Opened(indexed, total), in_order(rows, request.query)


def _indexed(snapshot: GroupSnapshot, partition: int) -> Indexed:
    header = snapshot.header
    paused = partition in header.unindexable_seqs
    seqs = header.unindexable_seqs if paused else header.seqs
    log = header.partition_versions.get(partition, ())
    return Indexed(seqs[partition], log[0][0] if log else None, not paused)

"""Events as columns: what readers make and the replay takes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stagewright.spec.trace import Event
from stagewright.traces.events.string_pool import Interner, Names, joined, names_of
from stagewright.traces.events.symbols import symbol_of

Ints = NDArray[Any]

NO_TIME = -(1 << 63)  # in place of the time of an event that has none
_LINE_BITS = 36  # of a place; the rest is the number of the part


class Stream(NamedTuple):
    """What all events of one recording of one machine share."""

    trace: str
    machine: str
    profile: str
    definition: str


class EntityKey(NamedTuple):
    """Whose events they are."""

    stream: Stream
    entity: str

    def __str__(self) -> str:
        trace = f"{self.stream.trace}/" if self.stream.trace else ""
        return f"{trace}{self.entity}"


class Place(NamedTuple):
    """A line of an input part, counted from 1 within that part."""

    source: int
    line: int


def coded_place(source: int, line: Any) -> Any:
    """A place, or an array of places in one part, as numbers that sort by part and line."""
    return (source << _LINE_BITS) + line


def place_of(code: int) -> Place:
    """The place behind a number."""
    return Place(code >> _LINE_BITS, code & ((1 << _LINE_BITS) - 1))


@dataclass(frozen=True)
class Block:
    """Some events.

    An entity is one of `names` with the stream `streams[stream[i]]`; events refer to entities and `symbols`
    by index. `place` is a `coded_place`, `time` is `NO_TIME` where there is none.
    """

    streams: tuple[Stream, ...]
    names: Names
    stream: Ints
    symbols: tuple[str, ...]
    entity: Ints
    sequence: Ints
    symbol: Ints
    place: Ints
    time: Ints

    def __len__(self) -> int:
        return len(self.entity)

    def key(self, entity: int) -> EntityKey:
        """An entity by its index."""
        return EntityKey(self.streams[self.stream[entity]], self.names.text(entity))


def block_of(events: Iterable[Event], source: int = 0, *, definition: str = "") -> Block:
    """The block of events that are in memory already; `definition` stands in where they name none."""
    streams: dict[Stream, int] = {}
    keys: dict[tuple[int, str], int] = {}
    symbols: dict[str, int] = {}
    rows: list[tuple[int, int, int, int, int]] = []
    for event in events:
        named = event.definition or definition
        stream = Stream(event.trace, event.machine, event.profile, named)
        group = streams.setdefault(stream, len(streams))
        key = keys.setdefault((group, event.entity), len(keys))
        symbol = symbols.setdefault(symbol_of(event).text, len(symbols))
        time = NO_TIME if event.time is None else event.time
        rows.append((key, event.sequence, symbol, event.line, time))
    columns = np.array(rows, np.int64).reshape(-1, 5)
    entity, sequence, symbol_column, line, time_column = (
        np.ascontiguousarray(c) for c in columns.T
    )
    return Block(
        tuple(streams),
        names_of(name for _, name in keys),
        np.array([group for group, _ in keys], np.int32),
        tuple(symbols),
        entity.astype(np.int32),
        sequence,
        symbol_column.astype(np.int32),
        coded_place(source, line),
        time_column,
    )


def chosen(block: Block, rows: Ints) -> Block:
    """Some of the events, with no other entities and streams than theirs."""
    used, entity = np.unique(block.entity[rows], return_inverse=True)
    streams, stream = np.unique(block.stream[used], return_inverse=True)
    return Block(
        tuple(block.streams[number] for number in streams.tolist()),
        block.names.take(used),
        stream.astype(np.int32),
        block.symbols,
        entity.astype(np.int32),
        block.sequence[rows],
        block.symbol[rows],
        block.place[rows],
        block.time[rows],
    )


def merge(blocks: Sequence[Block]) -> Block:
    """One block of all rows, in the order of their places, each entity once."""
    streams = sorted({stream for block in blocks for stream in block.streams})
    symbols = sorted({symbol for block in blocks for symbol in block.symbols})
    group = {stream: i for i, stream in enumerate(streams)}
    number = {symbol: i for i, symbol in enumerate(symbols)}
    groups = [np.array([group[s] for s in b.streams], np.int32)[b.stream] for b in blocks]
    interner = Interner()
    found = interner.number(
        joined([b.names for b in blocks]),
        np.concatenate(groups) if groups else np.zeros(0, np.int32),
        np.arange(max(len(streams), 1), dtype=np.uint64),
    )
    first = np.cumsum([0, *(len(b.names) for b in blocks)])
    entity = [found[f + b.entity.astype(np.int64)] for f, b in zip(first[:-1], blocks, strict=True)]
    symbol = [
        np.array([number[s] for s in b.symbols], np.int32)[b.symbol.astype(np.int64)]
        for b in blocks
        if len(b)
    ]
    place = _all(b.place for b in blocks)
    by = np.argsort(place, kind="stable")
    return Block(
        tuple(streams),
        interner.names,
        interner.groups,
        tuple(symbols),
        _all(entity)[by],
        _all(b.sequence for b in blocks)[by],
        _all(symbol)[by],
        place[by],
        _all(b.time for b in blocks)[by],
    )


def _all(columns: Iterable[Ints]) -> Ints:
    parts = list(columns)
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)

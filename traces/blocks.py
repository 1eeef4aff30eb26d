"""Events as columns: what readers make, Spark moves, and the kernel replays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from stagewright.spec.trace import Event
from stagewright.traces.symbols import symbol_of

Ints = NDArray[Any]

NO_TIME = -(1 << 63)  # in place of the time of an event that has none


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


@dataclass(frozen=True)
class Block:
    """Some events; each column but `sequence` and `line` holds indices, `source` those of input parts."""

    keys: tuple[EntityKey, ...]
    symbols: tuple[str, ...]
    entity: Ints
    sequence: Ints
    symbol: Ints
    source: Ints
    line: Ints
    time: Ints

    def __len__(self) -> int:
        return len(self.entity)


def block_of(events: Iterable[Event], source: int = 0, *, definition: str = "") -> Block:
    """The block of events that are in memory already; `definition` stands in where they name none."""
    keys: dict[EntityKey, int] = {}
    symbols: dict[str, int] = {}
    rows: list[tuple[int, int, int, int, int]] = []
    for event in events:
        named = event.definition or definition
        stream = Stream(event.trace, event.machine, event.profile, named)
        key = keys.setdefault(EntityKey(stream, event.entity), len(keys))
        symbol = symbols.setdefault(symbol_of(event).text, len(symbols))
        time = NO_TIME if event.time is None else event.time
        rows.append((key, event.sequence, symbol, event.line, time))
    columns = np.array(rows, np.int64).reshape(-1, 5)
    entity, sequence, symbol_column, line, time_column = (
        np.ascontiguousarray(c) for c in columns.T
    )
    return Block(
        tuple(keys),
        tuple(symbols),
        entity,
        sequence,
        symbol_column,
        np.full(len(rows), source, np.int32),
        line,
        time_column,
    )


def partition_of(key: EntityKey, partitions: int) -> int:
    """Where the events of an entity are judged: the same in every process."""
    return crc32("\0".join((*key.stream, key.entity)).encode("utf-8", "surrogatepass")) % partitions


def split(block: Block, partitions: int) -> list[tuple[int, Block]]:
    """The parts of a block by the partition that judges them, each with its own keys only."""
    if not len(block):
        return []
    target = np.array([partition_of(k, partitions) for k in block.keys], np.int32)
    rows_target = target[block.entity]
    by = np.argsort(rows_target, kind="stable")
    bounds = np.searchsorted(rows_target[by], np.arange(partitions + 1))
    parts: list[tuple[int, Block]] = []
    for number in range(partitions):
        rows = by[bounds[number] : bounds[number + 1]]
        if len(rows):
            parts.append((number, _select(block, rows)))
    return parts


def _select(block: Block, rows: Ints) -> Block:
    used, entity = np.unique(block.entity[rows], return_inverse=True)
    return Block(
        tuple(block.keys[i] for i in used.tolist()),
        block.symbols,
        entity.astype(np.int32),
        block.sequence[rows],
        block.symbol[rows].astype(np.int32),
        block.source[rows],
        block.line[rows],
        block.time[rows],
    )


def merge(blocks: Sequence[Block]) -> Block:
    """One block of all rows, in the order of their places, with keys and symbols in a fixed order."""
    keys = sorted({key for block in blocks for key in block.keys})
    symbols = sorted({symbol for block in blocks for symbol in block.symbols})
    key_number = {key: i for i, key in enumerate(keys)}
    symbol_number = {symbol: i for i, symbol in enumerate(symbols)}
    entity, symbol = [], []
    for block in blocks:
        entity.append(np.array([key_number[k] for k in block.keys], np.int32)[block.entity])
        symbol.append(np.array([symbol_number[s] for s in block.symbols], np.int32)[block.symbol])
    source = np.concatenate([b.source for b in blocks])
    line = np.concatenate([b.line for b in blocks])
    by = np.lexsort((line, source))
    return Block(
        tuple(keys),
        tuple(symbols),
        np.concatenate(entity)[by],
        np.concatenate([b.sequence for b in blocks])[by],
        np.concatenate(symbol)[by],
        source[by],
        line[by],
        np.concatenate([b.time for b in blocks])[by],
    )

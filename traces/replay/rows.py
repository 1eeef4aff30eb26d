"""What is left of events once they are replayed where they lie: rows that travel and are glued together.

A row says something of an entity's events `sequence .. sequence + length - 1`:

- RAW: one event, with its symbol: the state before it was not known where it was read;
- BODY: events that lead from the set of possible states `entry` to the set `exit`, whatever they were;
- REPEAT: one event that repeats the one with the same sequence number;
- CARRIED: all events that earlier runs have evaluated, from the first one on: they lead to the set `exit`;
- CHANGE: an event of a body after which properties over several entities see the entity in another way: the
  set `exit` says how. There are such rows only where such properties are evaluated;
- WATCHED: all events up to the first gap that such properties have seen in earlier runs; they lead to the set
  `exit`. The changes among them are CHANGE rows of length 0.

Raw rows before a body make sure that `entry` is the only set in which the body can begin, or that no run
explains the events at all: so glueing rows gives exactly what replaying the events in order would give.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stagewright.traces.automaton.possible_states import PossibleStates
from stagewright.traces.events.column_packing import (
    Packed,
    packed,
    packed_table,
    unpacked,
    unpacked_table,
)
from stagewright.traces.events.event_block import Stream
from stagewright.traces.events.string_pool import Names, joined

Ints = NDArray[Any]

# Columns of a row, all int64.
ENTITY, SEQUENCE, LENGTH, KIND, SYMBOL, ENTRY, EXIT, PLACE, TIME = range(9)
WIDTH = 9

RAW, BODY, REPEAT, CARRIED, CHANGE, WATCHED = range(6)  # kinds


@dataclass(frozen=True)
class Rows:
    """Rows with all that they refer to.

    `streams` and `names` are of the entities, `hashes` the entities' hashes; SYMBOL is an index in
    `symbols` (-1: none), ENTRY and EXIT are indices in `sets` (-1: none), PLACE and TIME are as in a
    block; a row of several events has those of its last one.
    """

    streams: tuple[Stream, ...]
    stream: Ints
    names: Names
    hashes: Ints
    symbols: tuple[str, ...]
    sets: tuple[PossibleStates, ...]
    table: Ints  # (n, WIDTH) int64

    def __len__(self) -> int:
        return len(self.table)

    def __reduce__(self) -> tuple[Any, ...]:
        of_entities = self.streams, packed(self.stream), self.names, self.hashes
        return _unpacked, (*of_entities, self.symbols, self.sets, packed_table(self.table))

    @property
    def nbytes(self) -> int:
        """About how much memory the rows take."""
        return int(self.table.nbytes + self.names.data.nbytes + 24 * len(self.names))


def _unpacked(
    streams: tuple[Stream, ...],
    stream: Packed,
    names: Names,
    hashes: Ints,
    symbols: tuple[str, ...],
    sets: tuple[PossibleStates, ...],
    table: tuple[Packed, ...],
) -> Rows:
    of_entity = unpacked(stream).astype(np.int32)
    return Rows(streams, of_entity, names, hashes, symbols, sets, unpacked_table(table))


def select(rows: Rows, chosen: Ints) -> Rows:
    """Some of the rows, with what they refer to and nothing else."""
    table = rows.table[chosen]
    used, table[:, ENTITY] = np.unique(table[:, ENTITY], return_inverse=True)
    symbols, table[:, SYMBOL] = _compact(table[:, SYMBOL])
    sets, both = _compact(table[:, (ENTRY, EXIT)].ravel())
    table[:, (ENTRY, EXIT)] = both.reshape(-1, 2)
    return Rows(
        rows.streams,
        rows.stream[used],
        rows.names.take(used),
        rows.hashes[used],
        tuple(rows.symbols[i] for i in symbols.tolist()),
        tuple(rows.sets[i] for i in sets.tolist()),
        table,
    )


def _compact(column: Ints) -> tuple[Ints, Ints]:
    """The values that occur, but for -1, and the column in terms of them."""
    used = np.unique(column[column >= 0])
    return used, np.where(column < 0, -1, np.searchsorted(used, column))


def split(rows: Rows, partitions: int) -> list[tuple[int, Rows]]:
    """The rows by the partition that glues them."""
    if not len(rows):
        return []
    target = (rows.hashes % np.uint64(partitions)).astype(np.int64)[rows.table[:, ENTITY]]
    by = np.argsort(target, kind="stable")
    bounds = np.searchsorted(target[by], np.arange(partitions + 1))
    return [
        (number, select(rows, by[bounds[number] : bounds[number + 1]]))
        for number in range(partitions)
        if bounds[number] < bounds[number + 1]
    ]


def concatenated(parts: Sequence[Rows]) -> Rows:
    """All rows of several parts; an entity of two parts is two entities still."""
    streams = list(dict.fromkeys(s for p in parts for s in p.streams))
    symbols = list(dict.fromkeys(s for p in parts for s in p.symbols))
    sets = list(dict.fromkeys(s for p in parts for s in p.sets))
    tables: list[Ints] = []
    entities = 0
    for part in parts:
        table = part.table.copy()
        table[:, ENTITY] += entities
        entities += len(part.names)
        table[:, SYMBOL] = _renumbered(table[:, SYMBOL], part.symbols, symbols)
        for column in (ENTRY, EXIT):
            table[:, column] = _renumbered(table[:, column], part.sets, sets)
        tables.append(table)
    return Rows(
        tuple(streams),
        _joined([_numbers(p.streams, streams)[p.stream] for p in parts], np.int32),
        joined([p.names for p in parts]),
        _joined([p.hashes for p in parts], np.uint64),
        tuple(symbols),
        tuple(sets),
        np.concatenate(tables) if tables else np.zeros((0, WIDTH), np.int64),
    )


def _joined(arrays: Iterable[Ints], kind: Any) -> Ints:
    return np.concatenate([np.zeros(0, kind), *arrays]).astype(kind)


def _numbers(values: Sequence[object], all_values: Sequence[object]) -> Ints:
    number = {value: i for i, value in enumerate(all_values)}
    return np.array([number[v] for v in values], np.int64)


def _renumbered(column: Ints, values: Sequence[object], all_values: Sequence[object]) -> Ints:
    if not values:
        return column
    return np.where(column < 0, -1, _numbers(values, all_values)[column])

"""Replays the events of many entities at once: no Python per event, one table look-up per position.

All entities advance in lock step: at position p, one vectorised look-up takes every entity that has a
p-th event from its set of possible states to the next. What the table does not know yet is asked of the
automata, once for each distinct (set, symbol).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stagewright.traces.automaton.product_automaton import Running
from stagewright.traces.automaton.subset_automaton import START, UNKNOWN

Ints = NDArray[Any]

_SLOTS_BITS = 16  # of the table at first; it grows while it fills
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio: spreads neighbouring keys
_FEW = 8  # entities still running: below this a plain loop is cheaper than array operations


@dataclass(frozen=True)
class Ordered:
    """The distinct events of each entity in order; one row an event, one `start` and `length` an entity.

    `run` is how many of an entity's events follow each other without a break from sequence 0. `gap` and
    `conflict` say what the break is, where there is one; `row` is the place of each event in the input.
    Of different events with one sequence number only the first has a row here: `distinct` has all.
    """

    row: Ints
    symbol: Ints
    sequence: Ints
    start: Ints
    length: Ints
    run: Ints
    gap: Ints
    conflict: Ints
    duplicates: Ints  # how many rows repeat an event, by entity
    distinct: Ints  # the places of all rows that do not


def order(entity: Ints, sequence: Ints, symbol: Ints, entities: int) -> Ordered:
    """Sort the events, set duplicates aside, and find where each entity's sequence breaks.

    Rows must come in the order of their places: of several equal events the first is kept.
    """
    by = np.lexsort((sequence, entity))
    e, q, s = entity[by], sequence[by], symbol[by]
    first = np.ones(len(by), bool)
    first[1:] = (e[1:] != e[:-1]) | (q[1:] != q[:-1])
    place = np.flatnonzero(first)
    group = np.cumsum(first) - 1
    differs = s != s[place][group]
    conflicting = np.zeros(len(place), bool)
    conflicting[group[differs]] = True
    repeats = _repeats(group, s, first, conflicting)
    duplicates = np.bincount(e[repeats], minlength=entities)
    distinct = by[~repeats]
    e, q, s = e[place], q[place], s[place]
    length = np.bincount(e, minlength=entities)
    start = np.cumsum(length) - length
    rank = np.arange(len(e)) - start[e]
    broken = (q != rank) | conflicting
    run = length.copy()
    at = np.flatnonzero(broken)
    np.minimum.at(run, e[at], rank[at])
    stop = np.minimum(start + run, max(len(e) - 1, 0))
    breaks = run < length
    conflict = breaks & conflicting[stop] & (q[stop] == run) if len(e) else breaks
    return Ordered(
        by[place], s, q, start, length, run, breaks & ~conflict, conflict, duplicates, distinct
    )


def _repeats(group: Ints, symbol: Ints, first: Ints, conflicting: Ints) -> Ints:
    """Which rows repeat an event; how many they are does not depend on the order of the rows."""
    repeats = ~first
    mixed = np.flatnonzero(conflicting[group])
    if len(mixed):
        pairs = np.stack([group[mixed], symbol[mixed]])
        _, kept = np.unique(pairs, axis=1, return_index=True)
        repeats[mixed] = True
        repeats[mixed[kept]] = False
    return repeats


@dataclass(frozen=True)
class Replay:
    """The last set of each entity, and the position of the event that ended its replay (-1: none did)."""

    last: Ints
    stopped: Ints


def replay(
    ordered: Ordered, machine: Ints, automata: Sequence[Running], symbols: Sequence[str]
) -> Replay:
    """Advance every entity over its unbroken run; `machine` is the index of its automaton."""
    steps = _StepTable(automata, symbols)
    by = np.argsort(-ordered.run, kind="stable")
    start, run, of = ordered.start[by], ordered.run[by], machine[by].astype(np.int64)
    state = np.full(len(by), START, np.int64)
    stopped = np.full(len(by), -1, np.int64)
    descending, position = -run, 0
    while True:
        active = int(np.searchsorted(descending, -position, side="left"))
        if active < _FEW:
            break
        symbol = ordered.symbol[start[:active] + position]
        after = steps.advance(state[:active], of[:active], symbol)
        ended = (after <= UNKNOWN) & (state[:active] > UNKNOWN)
        stopped[:active][ended] = position
        state[:active] = after
        position += 1
    for i in range(active):
        rest = ordered.symbol[start[i] + position : start[i] + run[i]].tolist()
        state[i], at = steps.follow(int(state[i]), int(of[i]), rest)
        if at >= 0 and stopped[i] < 0:
            stopped[i] = position + at
    last, halted = np.empty_like(state), np.empty_like(stopped)
    last[by], halted[by] = state, stopped
    return Replay(last, halted)


class _StepTable:
    """(set, machine, symbol) → set: a direct-mapped table before the automata, which know it exactly."""

    def __init__(self, automata: Sequence[Running], symbols: Sequence[str]) -> None:
        self._automata = automata
        self._symbols = symbols
        self._known: dict[int, int] = {}
        self._resize(_SLOTS_BITS)

    def advance(self, state: Ints, machine: Ints, symbol: Ints) -> Ints:
        """The sets after one event of each entity."""
        key = (state * len(self._automata) + machine) * len(self._symbols) + symbol
        slot = self._slot(key)
        after = self._values[slot]
        missed = np.flatnonzero(self._keys[slot] != key)
        if len(missed):
            asked, where = np.unique(key[missed], return_inverse=True)
            answers = np.array([self._ask(k) for k in asked.tolist()], np.int64)
            after[missed] = answers[where]
            self._store(asked, answers)
        return after

    def follow(self, state: int, machine: int, symbols: Sequence[int]) -> tuple[int, int]:
        """The set after many events of one entity, and the position of the one that ended its replay."""
        known, factor, size = self._known, len(self._automata), len(self._symbols)
        for position, symbol in enumerate(symbols):
            if state <= UNKNOWN:
                return state, position - 1
            key = (state * factor + machine) * size + symbol
            after = known.get(key)
            state = self._ask(key) if after is None else after
        return state, len(symbols) - 1 if state <= UNKNOWN else -1

    def _ask(self, key: int) -> int:
        if key not in self._known:
            rest, symbol = divmod(key, len(self._symbols))
            state, machine = divmod(rest, len(self._automata))
            self._known[key] = self._automata[machine].advance(state, self._symbols[symbol])
        return self._known[key]

    def _slot(self, key: Ints) -> Ints:
        return (key.astype(np.uint64) * _SPREAD) >> self._shift

    def _resize(self, bits: int) -> None:
        self._shift = np.uint64(64 - bits)
        self._keys = np.full(1 << bits, -1, np.int64)
        self._values = np.zeros(1 << bits, np.int64)
        if self._known:
            keys = np.fromiter(self._known.keys(), np.int64, len(self._known))
            values = np.fromiter(self._known.values(), np.int64, len(self._known))
            self._store(keys, values)

    def _store(self, keys: Ints, values: Ints) -> None:
        if len(self._known) * 4 > len(self._keys):
            self._resize(len(self._keys).bit_length() + 1)
            return
        slot = self._slot(keys)
        self._keys[slot] = keys
        self._values[slot] = values

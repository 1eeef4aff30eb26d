"""Replays events where they lie: `Segments` takes blocks in their order and leaves rows to be glued.

Of every entity it holds where its next event should be and the set of its possible states. As long as an
entity's sequence goes on, its events become one row. Where it breaks off, a new segment begins: its events
stay as they are until they show where the entity is, wherever it came from, and are one row again from there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stagewright.compiled import compiled, read_only
from stagewright.traces.automaton.subset_automaton import START
from stagewright.traces.events.event_block import Block, Stream
from stagewright.traces.events.string_pool import Interner, Names
from stagewright.traces.replay.rows import (
    BODY,
    CHANGE,
    ENTITY,
    ENTRY,
    EXIT,
    KIND,
    LENGTH,
    PLACE,
    RAW,
    REPEAT,
    SEQUENCE,
    SYMBOL,
    TIME,
    WIDTH,
    Rows,
)
from stagewright.traces.replay.transition_table import KEPT, REFUSED, STOPPED, SURE, Steps, slot_of

Ints = NDArray[Any]

ENTITIES_MAX = 1 << 20  # held at once; then all segments are closed, and others begin
_ROWS = 1 << 10  # rows that there is room for at first
_ROWS_MAX = 1 << 18  # rows that wait to be sent: of few each partition would get its own few

# What is held of an entity, in one cache line: the sequence number of its next event (-1: none was read),
# the set of its possible states, where its body begins (-1: it has none yet) and from which set, the symbol
# and the place of its last event, and the sets that its machine begins with.
_NEXT, _STATE, _BEGIN, _ENTRY, _LAST, _WHERE, _START, _UNKNOWN_START = range(8)

# What is held besides where properties over several entities are evaluated: the class that the entity is in
# (-2: that is yet to be reported), and the time of its last event.
_CLASS, _WHEN = range(2)
_UNREPORTED = -2

_ALL = np.zeros(0, np.int64)

_DONE, _FILL, _SEND = 0, 1, 2  # why the machine code came back


class Segments:
    """The open segments of the entities of one task; `send` gets rows as they are closed.

    When very many entities are held all segments are closed, unless who uses them `closes` them.
    """

    def __init__(self, steps: Steps, send: Callable[[Rows], None], *, closes: bool = False) -> None:
        self._most = 1 << 62 if closes else ENTITIES_MAX
        self._steps = steps
        self._send = send
        self._streams: dict[Stream, int] = {}
        self._salts = np.zeros(0, np.uint64)
        self._out = np.zeros((_ROWS, WIDTH), np.int64)
        self._rows = 0
        self._entities = Interner(most=self._most)
        self._numbered: tuple[Names, tuple[Stream, ...], Ints] | None = None  # the last block's
        self._said: tuple[tuple[str, ...], Ints] = (), np.zeros(0, np.int32)  # the last block's
        self._held = np.zeros((1 << 12, 8), np.int64)
        self._tracked = np.zeros((1 << 12 if steps.views else 0, 2), np.int64)
        self.breaks: list[
            int
        ] = []  # the places of the events before which all segments were closed

    def take(self, block: Block, since: Ints = _ALL) -> None:
        """Replay a block's events; count those of each entity from a sequence number on, or all."""
        if self._entities.full and len(block):
            self.breaks.append(int(block.place[0]))
            self.flush()
        entities = self._numbers(block)
        self._replay(block, entities, self._symbols(block), since)

    def flush(self) -> None:
        """Close all segments; what comes later begins new ones."""
        self._close_all()
        self._emit()
        self._entities = Interner(most=self._most)
        self._numbered = None
        self._said = (), np.zeros(0, np.int32)

    def _numbers(self, block: Block) -> Ints:
        for stream in block.streams:
            if stream not in self._streams:
                self._streams[stream] = len(self._streams)
                self._salts = np.append(self._salts, np.uint64(salt_of(stream)))
        if self._numbered is not None and self._numbered[0] is block.names:
            _, streams, found = self._numbered
            if streams == block.streams and len(streams) == 1:
                return found
        groups = np.array([self._streams[s] for s in block.streams], np.int32)[block.stream]
        before = len(self._entities)
        found = self._entities.number(block.names, groups, self._salts)
        self._begin(before)
        self._numbered = (block.names, block.streams, found)
        return found

    def _symbols(self, block: Block) -> Ints:
        if block.symbols is not self._said[0]:
            numbers = [self._steps.symbol(text) for text in block.symbols]
            self._said = block.symbols, np.array(numbers, np.int32)
        return self._said[1]

    def _begin(self, before: int) -> None:
        """Make room for the entities that are new."""
        count = len(self._entities)
        while count > len(self._held):
            self._held = np.concatenate([self._held, np.zeros_like(self._held)])
            self._tracked = np.concatenate([self._tracked, np.zeros_like(self._tracked)])
        if count > before:
            streams = list(self._streams)
            steps = self._steps
            sets = np.array(
                [[steps.number(s[1:], START), steps.unknown_start(s[1:])] for s in streams],
                np.int64,
            )
            new = self._held[before:count]
            new[:] = -1
            new[:, (_START, _UNKNOWN_START)] = sets[self._entities.groups[before:count]]

    def _replay(self, block: Block, entities: Ints, symbols: Ints, since: Ints) -> None:
        steps, done, forgotten = self._steps, 0, -1
        # Readers make these columns in ways of their own: each would be of another kind.
        entity, symbol = read_only(block.entity, np.int32), read_only(block.symbol, np.int32)
        sequence, place, time = (
            read_only(column, np.int64) for column in (block.sequence, block.place, block.time)
        )
        while True:
            done, self._rows, why, state, missing = _replay(
                entity, entities, sequence, symbol, symbols, place, time, done, self._held,
                self._tracked, steps.keys, steps.values, steps.counts, steps.flags, steps.classes,
                since, self._out, self._rows,
            )  # fmt: skip
            if why == _DONE:
                return
            if why == _FILL:
                steps.fill(state, missing)
                if steps.full and forgotten != done:  # one event's steps have room in any table
                    forgotten = done
                    self.breaks.append(int(block.place[done]))
                    self.flush()
                    steps.forget()
                    entities, symbols = self._numbers(block), self._symbols(block)
            else:
                self._make_room()

    def _close_all(self) -> None:
        done = 0
        while done < len(self._entities):
            done, self._rows = _close(
                self._held, self._tracked, done, len(self._entities), self._out, self._rows
            )
            if done < len(self._entities):
                self._make_room()

    def _make_room(self) -> None:
        if len(self._out) == _ROWS_MAX:
            self._emit()
            return
        out = np.zeros((4 * len(self._out), WIDTH), np.int64)
        out[: self._rows] = self._out[: self._rows]
        self._out = out

    def _emit(self) -> None:
        if not self._rows:
            return
        table = self._out[: self._rows].copy()
        self._rows = 0
        used, table[:, ENTITY] = np.unique(table[:, ENTITY], return_inverse=True)
        symbol = table[:, SYMBOL]
        symbols = np.unique(symbol[symbol >= 0])
        table[:, SYMBOL] = np.where(symbol < 0, -1, np.searchsorted(symbols, symbol))
        both = table[:, (ENTRY, EXIT)]
        sets = np.unique(both[both >= 0])
        table[:, (ENTRY, EXIT)] = np.where(both < 0, -1, np.searchsorted(sets, both))
        texts = self._steps.symbols
        names: Names = self._entities.names
        self._send(
            Rows(
                tuple(self._streams),
                self._entities.groups[used].copy(),
                names.take(used),
                self._entities.hashes[used].copy(),
                tuple(texts[s] for s in symbols.tolist()),
                tuple(self._steps.set_of(s) for s in sets.tolist()),
                table,
            )
        )


def rows_of(block: Block) -> Rows:
    """Every event of a block as a raw row."""
    table = np.full((len(block), WIDTH), -1, np.int64)
    table[:, ENTITY] = block.entity
    table[:, SEQUENCE] = block.sequence
    table[:, LENGTH] = 1
    table[:, KIND] = RAW
    table[:, SYMBOL] = block.symbol
    table[:, PLACE] = block.place
    table[:, TIME] = block.time
    salts = np.array([*(salt_of(s) for s in block.streams), 0], np.uint64)
    interner = Interner()
    number = interner.number(block.names, block.stream, salts)
    return Rows(
        block.streams, block.stream, block.names, interner.hashes[number], block.symbols, (), table
    )


def salt_of(stream: Stream) -> int:
    """What a stream adds to the hash of its entities: the same in every process."""
    import hashlib

    text = "\0".join(stream).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


@compiled
def _row(
    out: Ints, at: int, entity: int, sequence: int, length: int, kind: int,
    symbol: int, entry: int, exit_: int, place: int, time: int,
) -> int:  # fmt: skip
    row = out[at]
    row[ENTITY] = entity
    row[SEQUENCE] = sequence
    row[LENGTH] = length
    row[KIND] = kind
    row[SYMBOL] = symbol
    row[ENTRY] = entry
    row[EXIT] = exit_
    row[PLACE] = place
    row[TIME] = time
    return at + 1


@compiled
def _body(out: Ints, at: int, entity: int, held: Ints, tracked: Ints) -> int:
    """Close the body of an entity, if it has one."""
    time = tracked[entity, _WHEN] if len(tracked) else 0
    if held[_BEGIN] >= 0 and held[_NEXT] > held[_BEGIN]:
        return _row(
            out, at, entity, held[_BEGIN], held[_NEXT] - held[_BEGIN], BODY,
            -1, held[_ENTRY], held[_STATE], held[_WHERE], time,
        )  # fmt: skip
    return at


@compiled
def _close(held: Ints, tracked: Ints, first: int, last: int, out: Ints, at: int) -> tuple[int, int]:
    for entity in range(first, last):
        if at >= len(out):
            return entity, at
        at = _body(out, at, entity, held[entity], tracked)
        held[entity, _NEXT] = -1
    return last, at


@compiled
def _replay(  # noqa: C901 - one loop, compiled as a whole
    entity: Ints, entities: Ints, sequence: Ints, symbol: Ints, symbols: Ints, place: Ints,
    time: Ints, first: int, held: Ints, tracked: Ints, keys: Ints, values: Ints, counts: Ints,
    flags: Ints, classes: Ints, since: Ints, out: Ints, at: int,
) -> tuple[int, int, int, int, int]:  # fmt: skip
    """Replay from event `first` on; returns (how far it came, rows, why, set, symbol)."""
    room = len(out) - 4
    tracks = len(classes) > 0
    counts_some = len(since) > 0
    for i in range(first, len(entity)):
        if at > room:
            return i, at, _SEND, 0, 0
        named: int = entity[i]
        said: int = symbol[i]
        whose: int = entities[named]
        what: int = symbols[said]
        one = held[whose]
        number = sequence[i]
        expected = one[_NEXT]
        if number < expected:
            # Late, or a repetition: only the neighbour before is known here.
            kind = REPEAT if number == expected - 1 and what == one[_LAST] else RAW
            at = _row(out, at, whose, number, 1, kind, what, -1, -1, place[i], time[i])
            continue
        if number != expected:
            at = _body(out, at, whose, one, tracked)
            if tracks:
                tracked[whose, _CLASS] = _UNREPORTED
            one[_NEXT] = number
            one[_BEGIN] = 0 if number == 0 else -1
            one[_ENTRY] = one[_START]
            one[_STATE] = one[_START] if number == 0 else one[_UNKNOWN_START]
        state = one[_STATE]
        slot = slot_of(keys, state, what)
        if keys[slot] == 0:
            return i, at, _FILL, state, what
        after = values[slot]
        refused = after >= REFUSED
        if refused:
            after -= REFUSED
        change = -1  # the set of another class than before
        if tracks:
            known = after
            if flags[after] & STOPPED:  # what the event itself says counts all the same
                loose = slot_of(keys, one[_UNKNOWN_START], what)
                if keys[loose] == 0:
                    return i, at, _FILL, one[_UNKNOWN_START], what
                known = values[loose]
                if known >= REFUSED or flags[known] & STOPPED:
                    known = one[_UNKNOWN_START]
            seen = classes[known]
            if seen != KEPT and seen != tracked[whose, _CLASS]:
                tracked[whose, _CLASS] = seen
                change = known
        if one[_BEGIN] < 0:
            at = _row(out, at, whose, number, 1, RAW, what, -1, -1, place[i], time[i])
            if flags[after] & (SURE | STOPPED):
                one[_BEGIN] = number + 1
                one[_ENTRY] = after
        elif refused or (flags[after] & STOPPED and after != state):
            at = _body(out, at, whose, one, tracked)
            at = _row(out, at, whose, number, 1, RAW, what, -1, -1, place[i], time[i])
            one[_BEGIN] = number + 1
            one[_ENTRY] = after
        else:
            counts[slot] += not counts_some or number >= since[named]
            if change >= 0:
                at = _row(out, at, whose, number, 1, CHANGE, -1, -1, change, place[i], time[i])
        one[_STATE] = after
        one[_NEXT] = number + 1
        one[_LAST] = what
        one[_WHERE] = place[i]
        if tracks:
            tracked[whose, _WHEN] = time[i]
    return len(entity), at, _DONE, 0, 0

"""When each entity changed as properties see it: `changes_of` puts the rows of a partition in order.

An entity is in a class from the beginning of its trace on: in that of its first state, before its first
event too. It stays in the last one after its end marker. Where events are missing its class is that of an
entity of which nothing is known; an event that observes everything tells it again, whether or not a run of
the machine explains the event.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stagewright.traces.blocks import NO_TIME, EntityKey, Stream
from stagewright.traces.determinised import ANY, START
from stagewright.traces.replay.compiled import compiled
from stagewright.traces.replay.names import Interner, Names, joined
from stagewright.traces.replay.ordering import by_entity
from stagewright.traces.replay.rows import (
    BODY,
    EXIT,
    KIND,
    LENGTH,
    PLACE,
    RAW,
    REPEAT,
    SEQUENCE,
    SYMBOL,
    TIME,
)
from stagewright.traces.replay.steps import FINISHED, KEPT, REFUSED, STOPPED, Steps, slot_of
from stagewright.traces.together.views import Seen

Ints = NDArray[Any]

BEGINNING = NO_TIME + 1  # the time before all events

# Columns of a change: whose, when, from which class (-1: it was not there) to which, and the event's place.
WHOSE, WHEN, OLD, NEW, WHERE = range(5)
CHANGE_WIDTH = 5

UNTIMED, BACKWARDS = 1, 2  # what is wrong with the times of an entity's changes


@dataclass(frozen=True)
class Changes:
    """Changes of entities, each entity's in its own order; OLD and NEW are indices in `classes`."""

    streams: tuple[Stream, ...]
    stream: Ints  # of each entity
    names: Names
    wrong: Ints  # of each entity: UNTIMED or BACKWARDS, or 0
    classes: tuple[Seen, ...]
    table: Ints  # (n, CHANGE_WIDTH) int64

    def __len__(self) -> int:
        return len(self.table)

    @property
    def nbytes(self) -> int:
        """About how much memory the changes take."""
        return int(self.table.nbytes + self.names.data.nbytes + 24 * len(self.names))

    def and_(self, other: Changes) -> Changes:
        """These and those of other entities, whose classes have the same numbers."""
        table = other.table.copy()
        table[:, WHOSE] += len(self.names)
        streams = list(dict.fromkeys((*self.streams, *other.streams)))
        stream = [
            np.array([streams.index(s) for s in one.streams], np.int32)[one.stream]
            for one in (self, other)
        ]
        return Changes(
            tuple(streams),
            np.concatenate(stream),
            joined([self.names, other.names]),
            np.concatenate([self.wrong, other.wrong]),
            max(self.classes, other.classes, key=len),
            np.concatenate([self.table, table]),
        )

    def key(self, entity: int) -> EntityKey:
        """An entity by its index."""
        return EntityKey(self.streams[self.stream[entity]], self.names.text(entity))


def changes_of(
    streams: tuple[Stream, ...],
    interner: Interner,
    table: Ints,
    bounds: Ints,
    told: Ints,
    steps: Steps,
) -> Changes:
    """The changes of a partition's entities.

    `table` holds their rows in order, `bounds` where each entity's begin, `told` the changes in bodies.
    """
    entities = len(interner)
    told, told_bounds = by_entity(told, entities)
    first = np.array(
        [[steps.number(s[1:], special) for special in (START, ANY)] for s in streams], np.int64
    ).reshape(-1, 2)[interner.groups]
    views = [steps.views.get(s[1:]) for s in streams]
    nothing = np.array(
        [KEPT if v is None else steps.number_of_class(v.anything) for v in views], np.int64
    )[interner.groups]
    from_start = np.array([v is not None and v.from_start for v in views], bool)[interner.groups]
    end_marked = np.array([v is not None and v.end_marked for v in views], bool)[interner.groups]
    out = np.zeros((len(told) + 2 * len(table) + 2 * entities, CHANGE_WIDTH), np.int64)
    wrong = np.zeros(entities, np.int8)
    done, rows = 0, 0
    while done < entities:
        done, rows, state, symbol = _timelines(
            table, bounds, told, told_bounds, first, nothing, from_start, end_marked, done,
            steps.keys, steps.values, steps.flags, steps.classes, out, rows, wrong,
        )  # fmt: skip
        if done < entities:
            steps.fill(state, symbol)
    return Changes(
        streams, interner.groups, interner.names, wrong, tuple(steps.seen), out[:rows].copy()
    )


@compiled
def _put(
    out: Ints, at: int, whose: int, class_: int, now: int, time: int, place: int, wrong: Ints
) -> int:
    """Add the change of an entity from class `now`; returns how many there are then."""
    if class_ == KEPT or class_ == now:  # noqa: SIM109 - compiled
        return at
    if time == NO_TIME:
        wrong[whose] |= UNTIMED
    elif at > 0 and out[at - 1, WHOSE] == whose and time < out[at - 1, WHEN]:
        wrong[whose] |= BACKWARDS
    row = out[at]
    row[WHOSE] = whose
    row[WHEN] = time
    row[OLD] = now
    row[NEW] = class_
    row[WHERE] = place
    return at + 1


@compiled
def _after(time: int) -> int:
    return time if time == NO_TIME else time + 1


@compiled
def _timelines(  # noqa: C901 - one loop, compiled as a whole
    table: Any, bounds: Ints, told: Any, told_bounds: Ints, first: Any, nothing: Any,
    from_start: Ints, end_marked: Ints, begin: int, keys: Ints, values: Ints, flags: Ints,
    classes: Any, out: Ints, at: int, wrong: Ints,
) -> tuple[int, int, int, int]:  # fmt: skip
    """The changes from entity `begin` on; stops at one that needs a step not yet known."""
    for whose in range(begin, len(bounds) - 1):
        if nothing[whose] == KEPT:
            continue  # of no machine that a property speaks of
        kept, any_ = at, first[whose, 1]
        state, expected = first[whose, 0], 0
        now, time, place = -1, NO_TIME, 0  # the class, and the last event
        t, last = told_bounds[whose], told_bounds[whose + 1]
        r = bounds[whose]
        while r < bounds[whose + 1]:
            row = table[r]
            sequence = row[SEQUENCE]
            if row[KIND] == REPEAT:
                r += 1
                continue
            while t < last and told[t, SEQUENCE] < sequence:
                when = told[t, TIME]
                if now < 0 and told[t, SEQUENCE] == 0:
                    when = BEGINNING
                    if not from_start[whose]:
                        at = _put(out, at, whose, nothing[whose], now, when, told[t, PLACE], wrong)
                        now, when = nothing[whose], told[t, TIME]
                class_ = classes[told[t, EXIT]]
                at = _put(out, at, whose, class_, now, when, told[t, PLACE], wrong)
                now = class_
                t += 1
            if sequence > expected:  # events are missing
                when = BEGINNING
                if now >= 0:
                    when = time if row[TIME] == time else _after(time)
                at = _put(out, at, whose, nothing[whose], now, when, row[PLACE], wrong)
                now = nothing[whose]
                state = any_
                expected = sequence
            if row[KIND] == BODY:
                if sequence + row[LENGTH] > expected:
                    expected = sequence + row[LENGTH]
                    state, time, place = row[EXIT], row[TIME], row[PLACE]
                r += 1
                continue
            here, different = r, 0
            while (
                here < bounds[whose + 1]
                and table[here, SEQUENCE] == sequence
                and table[here, KIND] == RAW
            ):
                if here == r or table[here, SYMBOL] != table[here - 1, SYMBOL]:
                    different += 1
                here += 1
            r = here
            if sequence < expected:
                continue  # told already
            expected = sequence + 1
            time, place = row[TIME], row[PLACE]
            class_ = nothing[whose]
            if different > 1:
                state = any_
            else:
                if flags[state] & STOPPED:
                    state = any_
                symbol = row[SYMBOL]
                slot = slot_of(keys, state, symbol)
                if keys[slot] == 0:
                    return whose, kept, state, symbol
                after = values[slot] & (REFUSED - 1)
                if flags[after] & STOPPED:  # what the event itself says counts all the same
                    slot = slot_of(keys, any_, symbol)
                    if keys[slot] == 0:
                        return whose, kept, any_, symbol
                    after = values[slot]
                    if after >= REFUSED or flags[after] & STOPPED:
                        after = any_
                state = after
                class_ = classes[state]
            when = time
            if now < 0:
                when = BEGINNING
                if not from_start[whose]:
                    at = _put(out, at, whose, nothing[whose], now, when, place, wrong)
                    now, when = nothing[whose], time
            at = _put(out, at, whose, class_, now, when, place, wrong)
            if class_ != KEPT:
                now = class_
        while t < last:
            when = told[t, TIME]
            if now < 0 and told[t, SEQUENCE] == 0:
                when = BEGINNING
                if not from_start[whose]:
                    at = _put(out, at, whose, nothing[whose], now, when, told[t, PLACE], wrong)
                    now, when = nothing[whose], told[t, TIME]
            class_ = classes[told[t, EXIT]]
            at = _put(out, at, whose, class_, now, when, told[t, PLACE], wrong)
            now = class_
            t += 1
        if end_marked[whose] and not flags[state] & (FINISHED | STOPPED):
            at = _put(out, at, whose, nothing[whose], now, _after(time), place, wrong)
    return len(bounds) - 1, at, 0, 0

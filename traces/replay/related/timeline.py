"""When each entity changed as properties see it: `changes_of` puts the rows of a partition in order.

An entity is in a class from the beginning of its trace on: in that of its first state, before its first
event too. It stays in the last one after its end marker. Where events are missing its class is that of an
entity of which nothing is known; an event that observes everything shows it again, whether or not a run of
the machine explains the event.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stagewright.compiled import compiled
from stagewright.traces.automaton.subset_automaton import ANY, START
from stagewright.traces.events.column_packing import (
    Packed,
    packed,
    packed_table,
    unpacked,
    unpacked_table,
)
from stagewright.traces.events.event_block import NO_TIME, EntityKey, Stream
from stagewright.traces.events.string_pool import Interner, Names, joined
from stagewright.traces.replay.ordering import by_entity
from stagewright.traces.replay.related.classes import Seen
from stagewright.traces.replay.rows import (
    BODY,
    CARRIED,
    CHANGE,
    ENTITY,
    EXIT,
    KIND,
    LENGTH,
    PLACE,
    RAW,
    REPEAT,
    SEQUENCE,
    SYMBOL,
    TIME,
    WATCHED,
    WIDTH,
)
from stagewright.traces.replay.transition_table import (
    FINISHED,
    KEPT,
    REFUSED,
    STOPPED,
    Steps,
    slot_of,
)

Ints = NDArray[Any]

BEGINNING = NO_TIME + 1  # the time before all events

# Columns of a change: whose, when, from which class (-1: it was not there) to which, and the event's place.
WHOSE, WHEN, OLD, NEW, WHERE = range(5)
CHANGE_WIDTH = 5

# What is known of an entity where its events go on: how many there were, and the last one's set, time and place.
_POSITION = [LENGTH, EXIT, TIME, PLACE]

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

    def __reduce__(self) -> tuple[Any, ...]:
        of_entities = self.streams, packed(self.stream), self.names, packed(self.wrong)
        return _unpacked, (*of_entities, self.classes, packed_table(self.table))

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


def _unpacked(
    streams: tuple[Stream, ...],
    stream: Packed,
    names: Names,
    wrong: Packed,
    classes: tuple[Seen, ...],
    table: tuple[Packed, ...],
) -> Changes:
    of_entity = unpacked(stream).astype(np.int32)
    of_wrong = unpacked(wrong).astype(np.int8)
    return Changes(streams, of_entity, names, of_wrong, classes, unpacked_table(table))


@dataclass(frozen=True)
class Watched:
    """What another run needs to know of the changes until now.

    `table` has rows of kind WATCHED and CHANGE; `reached` is, of each entity, the number of the first event that
    is missing, or -1 if no property speaks of it.
    """

    table: Ints
    reached: Ints


def changes_of(
    streams: tuple[Stream, ...],
    interner: Interner,
    table: Ints,
    bounds: Ints,
    view_rows: Ints,
    steps: Steps,
    *,
    goes_on: bool = False,
) -> tuple[Changes, Watched]:
    """The changes of a partition's entities, and what another run needs of them.

    `table` holds their rows in order, `bounds` where each entity's begin, `view_rows` the changes in bodies and what
    earlier runs have watched. With `goes_on` an entity without its end marker may have more events in another run;
    until then it is as it was last.
    """
    entities = len(interner)
    begin = np.full((entities, len(_POSITION)), -1, np.int64)
    watched = view_rows[view_rows[:, KIND] == WATCHED]
    begin[watched[:, ENTITY]] = watched[:, _POSITION]
    known = begin[view_rows[:, ENTITY], 0]  # how many events earlier runs have watched
    new = (view_rows[:, KIND] == CHANGE) & (
        (view_rows[:, SEQUENCE] >= known) | (view_rows[:, LENGTH] == 0)
    )
    view_rows, view_bounds = by_entity(view_rows[new], entities)
    first = np.array(
        [[steps.number(s[1:], special) for special in (START, ANY)] for s in streams], np.int64
    ).reshape(-1, 2)[interner.groups]
    views = [steps.views.get(s[1:]) for s in streams]
    nothing = np.array(
        [KEPT if v is None else steps.number_of_class(v.anything) for v in views], np.int64
    )[interner.groups]
    from_start = np.array([v is not None and v.from_start for v in views], bool)[interner.groups]
    end_marked = np.array([v is not None and v.end_marked for v in views], bool)[interner.groups]
    end_marked &= not goes_on
    out = np.zeros((len(view_rows) + 2 * len(table) + 2 * entities, CHANGE_WIDTH), np.int64)
    wrong = np.zeros(entities, np.int8)
    seen = np.full((len(view_rows) + len(table) if goes_on else 0, WIDTH), -1, np.int64)
    reached = np.full((entities, len(_POSITION)), -1, np.int64)
    done, rows, kept = 0, 0, 0
    while done < entities:
        done, rows, kept, state, symbol = _timelines(
            table, bounds, view_rows, view_bounds, first, nothing, from_start, end_marked, begin, done,
            steps.keys, steps.values, steps.flags, steps.classes, out, rows, wrong,
            seen, kept, reached,
        )  # fmt: skip
        if done < entities:
            steps.fill(state, symbol)
    changes = Changes(
        streams, interner.groups, interner.names, wrong, tuple(steps.seen), out[:rows].copy()
    )
    return changes, Watched(_watched(seen[:kept], reached), reached[:, 0])


def _watched(seen: Ints, reached: Ints) -> Ints:
    """The rows that say what was seen until now."""
    some = np.flatnonzero(reached[:, 0] > 0)
    rows = np.full((len(some), WIDTH), -1, np.int64)
    rows[:, ENTITY] = some
    rows[:, SEQUENCE] = 0
    rows[:, KIND] = WATCHED
    rows[:, _POSITION] = reached[some]
    return np.concatenate([rows, seen])


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
def _change(
    out: Ints, at: int, whose: int, class_: int, now: int, time: int, place: int, wrong: Ints,
    begins: bool, from_start: bool, nothing: int,
) -> int:  # fmt: skip
    """Add the change at an event; the first one says what was before, too, if it is the beginning."""
    when = time
    if begins:
        when = BEGINNING
        if not from_start:
            at = _put(out, at, whose, nothing, now, when, place, wrong)
            now, when = nothing, time
    return _put(out, at, whose, class_, now, when, place, wrong)


@compiled
def _after(time: int) -> int:
    return time if time == NO_TIME else time + 1


@compiled
def _see(
    seen: Any, at: int, whose: int, sequence: int, state: int, time: int, place: int
) -> int:  # fmt: skip
    """Add an event after which an entity is of another class, for another run; returns how many there are."""
    row = seen[at]
    row[ENTITY] = whose
    row[SEQUENCE] = sequence
    row[LENGTH] = 0
    row[KIND] = CHANGE
    row[EXIT] = state
    row[TIME] = time
    row[PLACE] = place
    return at + 1


@compiled
def _reach(reached: Any, whose: int, expected: int, state: int, time: int, place: int) -> None:
    """Remember where the events of an entity go on."""
    one = reached[whose]
    one[0] = expected
    one[1] = state
    one[2] = time
    one[3] = place


@compiled
def _timelines(  # noqa: C901 - one loop, compiled as a whole
    table: Any, bounds: Ints, view_rows: Any, view_bounds: Ints, first: Any, nothing: Any,
    from_start: Ints, end_marked: Ints, watched: Any, begin: int, keys: Ints, values: Ints,
    flags: Ints, classes: Any, out: Ints, at: int, wrong: Ints, seen: Any, kept: int, reached: Any,
) -> tuple[int, int, int, int, int]:  # fmt: skip
    """The changes from entity `begin` on; stops at one that needs a step not yet known."""
    for whose in range(begin, len(bounds) - 1):
        if nothing[whose] == KEPT:
            continue  # of no machine that a property speaks of
        out_before, seen_before, any_ = at, kept, first[whose, 1]
        state, expected = first[whose, 0], 0
        now, time, place = -1, NO_TIME, 0  # the class, and the last event
        if watched[whose, 0] > 0:
            expected, state = watched[whose, 0], watched[whose, 1]
            time, place = watched[whose, 2], watched[whose, 3]
        # no event is missing until now; whether another run follows
        whole, keeps = (True, len(seen) > 0)
        t, last = view_bounds[whose], view_bounds[whose + 1]
        r, end = bounds[whose], bounds[whose + 1]
        while r <= end:
            # The changes in bodies come before the row that is next, and after the last one.
            sequence = table[r, SEQUENCE] if r < end else 0
            if r < end and (table[r, KIND] == REPEAT or table[r, KIND] == CARRIED):
                r += 1
                continue
            while t < last and (r == end or view_rows[t, SEQUENCE] < sequence):
                when = view_rows[t, TIME]
                class_ = classes[view_rows[t, EXIT]]
                if whole and keeps and (now < 0 or class_ != now):
                    kept = _see(
                        seen, kept, whose, view_rows[t, SEQUENCE], view_rows[t, EXIT], when,
                        view_rows[t, PLACE],
                    )  # fmt: skip
                begins = now < 0 and view_rows[t, SEQUENCE] == 0
                at = _change(
                    out, at, whose, class_, now, when, view_rows[t, PLACE], wrong,
                    begins, from_start[whose], nothing[whose],
                )  # fmt: skip
                now = class_
                t += 1
            if r == end:
                break
            row = table[r]
            if sequence > expected:  # events are missing
                if whole:
                    _reach(reached, whose, expected, state, time, place)
                    whole = False
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
            while here < end and table[here, SEQUENCE] == sequence and table[here, KIND] == RAW:
                if here == r or table[here, SYMBOL] != table[here - 1, SYMBOL]:
                    different += 1
                here += 1
            r = here
            if sequence < expected:
                continue  # known already
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
                    return whose, out_before, seen_before, state, symbol
                after = values[slot] & (REFUSED - 1)
                if flags[after] & STOPPED:  # what the event itself says counts all the same
                    slot = slot_of(keys, any_, symbol)
                    if keys[slot] == 0:
                        return whose, out_before, seen_before, any_, symbol
                    after = values[slot]
                    if after >= REFUSED or flags[after] & STOPPED:
                        after = any_
                state = after
                class_ = classes[state]
            if whole and keeps and class_ != KEPT and (now < 0 or class_ != now):
                kept = _see(seen, kept, whose, sequence, state, time, place)
            at = _change(
                out, at, whose, class_, now, time, place, wrong,
                now < 0, from_start[whose], nothing[whose],
            )  # fmt: skip
            if class_ != KEPT or (now < 0 and not from_start[whose]):
                now = nothing[whose] if class_ == KEPT else class_
        if whole:
            _reach(reached, whose, expected, state, time, place)
        if end_marked[whose] and not flags[state] & (FINISHED | STOPPED):
            at = _put(out, at, whose, nothing[whose], now, _after(time), place, wrong)
    return len(bounds) - 1, at, kept, 0, 0

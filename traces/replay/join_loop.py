"""Glues the rows of each entity: the compiled loop over rows in order, and what it finds of an entity."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from stagewright.compiled import compiled
from stagewright.traces.replay.rows import (
    BODY,
    CARRIED,
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
)
from stagewright.traces.replay.transition_table import REFUSED as REFUSED_STEP, STOPPED, slot_of

Ints = NDArray[Any]

# What is found of an entity: how, at which sequence number, its place and the one before, the set before
# and the symbol there, the last set, how many of its events were evaluated, not evaluated, repeated and refused; how
# many of the repeated ones are of earlier runs, which are not at hand to be compared with; and the first sequence
# number after a gap.
(
    HOW,
    AT,
    HERE,
    BEFORE,
    SET,
    WITH,
    LAST,
    EVALUATED,
    NOT_EVALUATED,
    REPEATED,
    REFUSED,
    UNCOMPARED,
    NEXT,
) = range(13)
FOUND = 13
WHOLE, STOP, CONFLICT, GAP, OVERLAP, BAD_BEFORE = range(6)  # how; BAD_BEFORE: in an earlier run

HOWS = 6

NOWHERE = -1


@compiled
def carried_to(table: Ints, first: int, last: int) -> int:
    """How many events of an entity earlier runs have evaluated."""
    for r in range(first, last):
        if table[r, KIND] == CARRIED:
            return int(table[r, LENGTH])
    return 0


@compiled
def _overlaps(table: Ints, first: int, last: int) -> bool:
    """Whether an entity's rows are of the same events, other than two raw ones of one number."""
    reached = -1
    raw_at = -1
    carried = carried_to(table, first, last)
    for r in range(first, last):
        row = table[r]
        if row[KIND] >= REPEAT or row[SEQUENCE] + row[LENGTH] <= carried:
            continue
        if row[SEQUENCE] < carried:
            return True
        if row[SEQUENCE] < reached and not (row[KIND] == RAW and row[SEQUENCE] == raw_at):
            return True
        raw_at = row[SEQUENCE] if row[KIND] == RAW else -1
        reached = max(reached, row[SEQUENCE] + row[LENGTH])
    return False


@compiled
def settle(
    table: Ints, begin: int, start: Ints, any_: Ints,
    keys: Ints, values: Ints, counts: Ints, flags: Ints, found: Ints, refused: Ints, left_out: Ints,
) -> tuple[int, int, int]:  # fmt: skip
    """Glue from the entity whose rows begin at `begin` on; stops at one that needs a step not yet known.

    What entities do is counted, but for those that are found as `left_out`, by how, says.
    """
    first = begin
    while first < len(table):
        entity: int = table[first, ENTITY]
        last = first
        while last < len(table) and table[last, ENTITY] == entity:
            last += 1
        if _overlaps(table, first, last):
            found[entity, HOW] = OVERLAP
            first = last
            continue
        for count in range(2):  # only what is not begun again is counted
            if count and left_out[found[entity, HOW]]:
                break
            state, symbol = _entity(
                table, first, last, start[entity], any_[entity],
                keys, values, counts, flags, found[entity], refused, count,
            )  # fmt: skip
            if state >= 0:
                return first, state, symbol
        first = last
    return len(table), 0, 0


@compiled
def _begun(
    table: Ints, first: int, last: int, start: int, flags: Ints, one: Ints
) -> tuple[int, int, bool]:
    """Where an entity's events go on after those that earlier runs have evaluated: set, number, whether."""
    one[:] = 0
    one[HERE] = NOWHERE
    one[BEFORE] = NOWHERE
    for r in range(first, last):
        row = table[r]
        if row[KIND] == CARRIED:
            one[BEFORE] = row[PLACE]
            if flags[row[EXIT]] & STOPPED:
                one[HOW] = BAD_BEFORE
                one[AT] = row[LENGTH]
                one[LAST] = row[EXIT]
                return row[EXIT], row[LENGTH], False
            return row[EXIT], row[LENGTH], True
    return start, 0, True


@compiled
def _alike(
    table: Ints,
    first: int,
    last: int,
    context: int,
    keys: Ints,
    values: Ints,
    one: Ints,
    refused: Ints,
) -> tuple[int, int, int, int]:
    """All raw events of one sequence number, of which equal ones are neighbours.

    Returns where they end, how many different ones there are (-1: the step at that row is not yet known), how
    many are the machine's, and the one that was read first.
    """
    different, understood, chosen, here = 0, 0, first, first
    number = table[first, SEQUENCE]
    while here < last and table[here, SEQUENCE] == number and table[here, KIND] == RAW:
        symbol = table[here, SYMBOL]
        if here > first and symbol == table[here - 1, SYMBOL]:
            one[REPEATED] += 1
        else:
            different += 1
            slot = slot_of(keys, context, symbol)
            if keys[slot] == 0:
                return here, -1, 0, 0
            if values[slot] >= REFUSED_STEP:
                one[REFUSED] += 1
                refused[here] = 1
            else:
                understood += 1
        if table[here, PLACE] < table[chosen, PLACE]:
            chosen = here
        here += 1
    return here, different, understood, chosen


@compiled
def _entity(  # noqa: C901 - one loop, compiled as a whole
    table: Ints, first: int, last: int, start: int, any_: int,
    keys: Ints, values: Ints, counts: Ints, flags: Ints, one: Ints, refused: Ints, count: int,
) -> tuple[int, int]:  # fmt: skip
    """Glue one entity's rows; returns the set and the symbol whose step is not yet known, or -1."""
    state, expected, running = _begun(table, first, last, start, flags, one)
    carried, gap = expected, False
    r = first
    while r < last:
        row = table[r]
        if row[KIND] == CARRIED:
            r += 1
            continue
        if row[KIND] == REPEAT or row[SEQUENCE] + row[LENGTH] <= carried:
            # What earlier runs have evaluated is not at hand any more: it counts as the same.
            one[REPEATED] += row[LENGTH]
            one[UNCOMPARED] += row[LENGTH] * (row[KIND] != REPEAT)
            r += 1
            continue
        if running and row[SEQUENCE] != expected:
            running = False
            one[HOW] = GAP
            one[AT] = expected
            one[SET] = state
            one[NEXT] = row[SEQUENCE]
            gap = True
        if row[KIND] == BODY:
            r += 1
            if not running:
                one[NOT_EVALUATED] += row[LENGTH]
                continue
            after = row[EXIT]
            if state != row[ENTRY]:
                # Of candidates some were dead already; or a budget was spent elsewhere. Where that cannot
                # be known, or the body holds an event that nothing explains, the events themselves must show it.
                if row[SYMBOL] < 0:
                    one[HOW] = OVERLAP
                    return -1, 0
                slot = slot_of(keys, state, row[SYMBOL])
                if keys[slot] == 0:
                    return state, row[SYMBOL]
                after = values[slot]
                if flags[after] & STOPPED:
                    one[HOW] = OVERLAP
                    return -1, 0
            one[EVALUATED] += row[LENGTH]
            one[BEFORE] = row[PLACE]
            state = after
            expected = row[SEQUENCE] + row[LENGTH]
            continue
        context = start if row[SEQUENCE] == 0 else any_
        here, different, understood, chosen = _alike(
            table, r, last, context, keys, values, one, refused
        )
        if different < 0:
            return context, table[here, SYMBOL]
        r = here
        if not running:
            one[NOT_EVALUATED] += understood
            if gap:
                one[HERE] = table[chosen, PLACE]
                gap = False
            continue
        symbol = table[chosen, SYMBOL]
        slot = slot_of(keys, state, symbol)
        if keys[slot] == 0:
            return state, symbol
        after = values[slot] - REFUSED_STEP if values[slot] >= REFUSED_STEP else values[slot]
        if different > 1 or flags[after] & STOPPED:
            running = False
            one[HOW] = CONFLICT if different > 1 else STOP
            one[AT] = expected
            one[SET] = state
            one[WITH] = symbol
            one[HERE] = table[chosen, PLACE]
            one[LAST] = after
            if different > 1:
                one[NOT_EVALUATED] += understood
            else:
                one[EVALUATED] += understood
            continue
        counts[slot] += count
        one[EVALUATED] += 1
        one[BEFORE] = table[chosen, PLACE]
        state = after
        expected += 1
    if running:
        one[AT] = expected
        one[LAST] = state
    return -1, 0

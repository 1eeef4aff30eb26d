"""Glues the rows of entities together, wherever they were read: what is left are verdicts.

An entity whose rows do not overlap is judged here, exactly as if all its events had been replayed in order.
Where rows overlap (an event was repeated elsewhere, or two events have one sequence number), only the events
themselves can tell: such an entity is among the `unsettled`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stagewright.spec.trace import TraceVerdict
from stagewright.traces.blocks import EntityKey, place_of
from stagewright.traces.determinised import ANY, DEAD, ENDED, START, UNDECIDED, UNKNOWN
from stagewright.traces.judge import DETAILS_MAX, VERDICTS, Cause, Finding, Judged, NotUnderstood
from stagewright.traces.replay.compiled import compiled
from stagewright.traces.replay.names import Interner, Names
from stagewright.traces.replay.rows import (
    BODY,
    CARRIED,
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
    WIDTH,
    Rows,
)
from stagewright.traces.replay.segments import salt_of
from stagewright.traces.replay.steps import FINISHED, REFUSED, STOPPED, Steps, slot_of
from stagewright.traces.together.timeline import Changes, changes_of

Ints = NDArray[Any]

# What is found of an entity: how, at which sequence number, its place and the one before, the set before
# and the symbol there, the last set, and how many of its events were judged, not judged, repeated, refused.
_HOW, _AT, _HERE, _BEFORE, _SET, _WITH, _LAST, _JUDGED, _REST, _REPEATED, _REFUSED = range(11)
_WIDTH = 11
_WHOLE, _STOP, _CONFLICT, _GAP, _OVERLAP, _TOLD = range(6)  # how; _TOLD: in an earlier run

_NOWHERE = -1


@dataclass
class Glued:
    """What the rows of one partition come to."""

    judged: Judged = field(default_factory=Judged)
    unsettled: list[EntityKey] = field(default_factory=list)
    carried: Rows | None = None  # of the settled entities, for another run
    held: int = 0  # events of earlier runs that wait behind a gap
    open: int = 0  # entities whose traces may go on
    told: int = 0  # entities that were found to be bad in an earlier run
    changes: Changes | None = None  # of how properties over several entities see the entities


def glue(rows: Rows, steps: Steps, *, carry: bool = False) -> Glued:
    """Judge the entities of all rows; `rows` holds all rows of its entities.

    With `carry`, a trace without its end may go on in another run, and what is known of it is carried there.
    """
    result = Glued()
    if not len(rows):
        return result
    interner = Interner(max(1 << 12, _power_of_two(len(rows.names))))
    salts = np.array([salt_of(s) for s in rows.streams], np.uint64)
    number = interner.number(rows.names, rows.stream, salts)
    table = rows.table
    table[:, ENTITY] = number[table[:, ENTITY]]
    symbols = np.array([steps.symbol(text) for text in rows.symbols] or [0], np.int64)
    table[:, SYMBOL] = np.where(table[:, SYMBOL] < 0, -1, symbols[table[:, SYMBOL]])
    sets = np.array([steps.number_of(s) for s in rows.sets] or [0], np.int64)
    for column in (ENTRY, EXIT):
        table[:, column] = np.where(table[:, column] < 0, -1, sets[table[:, column]])
    changing = table[:, KIND] == CHANGE
    told, table = table[changing], table[~changing]
    by = np.lexsort(
        (table[:, PLACE], table[:, SYMBOL], table[:, KIND], table[:, SEQUENCE], table[:, ENTITY])
    )
    table = np.ascontiguousarray(table[by])
    first = np.array(
        [[steps.number(s[1:], special) for special in (START, ANY)] for s in rows.streams], np.int64
    )[interner.groups]
    found = np.zeros((len(interner), _WIDTH), np.int64)
    refused = np.zeros(len(table), np.int8)
    done = 0
    while done < len(table):
        done, state, symbol = _glue(
            table, done, first[:, 0].copy(), first[:, 1].copy(),
            steps.keys, steps.values, steps.counts, steps.flags, found, refused,
        )  # fmt: skip
        if done < len(table):
            steps.fill(state, symbol)
    _tell(result, rows, interner, found, table, refused, steps, carry=carry)
    if carry:
        result.carried = _carried(rows, interner, found, table, first[:, 0], steps)
    if steps.views:
        result.changes = changes_of(rows.streams, interner, table, told, steps)
    return result


def _power_of_two(number: int) -> int:
    return 1 << max(number - 1, 1).bit_length()


def _tell(
    result: Glued,
    rows: Rows,
    interner: Interner,
    found: Ints,
    table: Ints,
    refused: Ints,
    steps: Steps,
    *,
    carry: bool,
) -> None:
    judged = result.judged
    settled = found[:, _HOW] != _OVERLAP
    counted = found[settled]
    judged.events_judged = int(counted[:, _JUDGED].sum())
    judged.events_not_judged = int(counted[:, _REST].sum())
    judged.events_duplicate = int(counted[:, _REPEATED].sum())
    judged.events_not_understood = int(counted[:, _REFUSED].sum())
    finished = (steps.flags[found[:, _LAST]] & FINISHED) != 0
    open_end = ~np.array(
        [steps.machine(s[1:]).source.recording.end_marked for s in rows.streams], bool
    )
    live = (found[:, _HOW] == _WHOLE) & ((steps.flags[found[:, _LAST]] & STOPPED) == 0)
    ok = live & (finished | open_end[interner.groups] | carry)
    judged.verdicts[TraceVerdict.OK] = int(ok.sum())
    told = found[:, _HOW] == _TOLD
    for last in found[told, _LAST].tolist():
        verdict = VERDICTS[_cause_of_stop(steps, last)]
        judged.verdicts[verdict] = judged.verdicts.get(verdict, 0) + 1
    result.open = int((live & ~finished).sum())
    result.told = int(told.sum())
    names: Names = interner.names

    def key(entity: int) -> EntityKey:
        return EntityKey(rows.streams[interner.groups[entity]], names.text(entity))

    result.unsettled = [key(e) for e in np.flatnonzero(~settled).tolist()]
    for entity in np.flatnonzero(settled & ~ok & ~told).tolist():
        finding = _finding(key(entity), found[entity], steps)
        judged.verdicts[finding.verdict] = judged.verdicts.get(finding.verdict, 0) + 1
        if len(judged.findings) < DETAILS_MAX:
            judged.findings.append(finding)
        else:
            judged.findings_left_out += 1
    for row in np.flatnonzero(refused).tolist()[:DETAILS_MAX]:
        entity = int(table[row, ENTITY])
        if settled[entity]:
            whose, text = key(entity), steps.symbols[int(table[row, SYMBOL])]
            number = START if table[row, SEQUENCE] == 0 else UNKNOWN
            why = steps.machine(whose.stream[1:]).refusal(number, text)
            assert why is not None
            judged.not_understood.append(
                NotUnderstood(place_of(int(table[row, PLACE])), whose, why)
            )


def _finding(key: EntityKey, found: Ints, steps: Steps) -> Finding:
    cause, before = _cause(found, steps), None
    symbols: tuple[str, ...] = ()
    if found[_HOW] in (_STOP, _CONFLICT):
        symbols = (steps.symbols[found[_WITH]],)
        before = steps.set_of(int(found[_SET]))
        if cause is Cause.STEP and before.number == ENDED:
            cause = Cause.AFTER_END
    here, last = int(found[_HERE]), int(found[_BEFORE])
    return Finding(
        key,
        cause,
        int(found[_AT]),
        int(found[_REPEATED]),
        None if here == _NOWHERE else place_of(here),
        None if last == _NOWHERE else place_of(last),
        symbols,
        before,
    )


def _cause(found: Ints, steps: Steps) -> Cause:
    how = int(found[_HOW])
    if how == _STOP:
        return _cause_of_stop(steps, int(found[_LAST]))
    return {_CONFLICT: Cause.CONFLICT, _GAP: Cause.MISSING, _WHOLE: Cause.NO_END}[how]


def _cause_of_stop(steps: Steps, last: int) -> Cause:
    special = {UNDECIDED: Cause.BUDGET, UNKNOWN: Cause.NOT_UNDERSTOOD}
    return special.get(steps.set_of(last).number, Cause.STEP)


def _carried(
    rows: Rows, interner: Interner, found: Ints, table: Ints, start: Ints, steps: Steps
) -> Rows:
    """One row for each settled entity, and what waits behind the gap of those that have one."""
    settled = np.flatnonzero((found[:, _HOW] != _OVERLAP) & (found[:, _AT] > 0))
    one = found[settled]
    bodies = np.full((len(settled), WIDTH), -1, np.int64)
    bodies[:, ENTITY] = settled
    bodies[:, SEQUENCE] = 0
    stopped = np.isin(one[:, _HOW], (_STOP, _CONFLICT))
    bodies[:, LENGTH] = one[:, _AT] + stopped
    bodies[:, KIND] = CARRIED
    bodies[:, ENTRY] = start[settled]
    bodies[:, EXIT] = np.where(one[:, _HOW] == _GAP, one[:, _SET], one[:, _LAST])
    dead = np.array([steps.number(s[1:], DEAD) for s in rows.streams], np.int64)
    conflict = one[:, _HOW] == _CONFLICT
    bodies[conflict, EXIT] = dead[interner.groups[settled[conflict]]]
    bodies[:, PLACE] = one[:, _BEFORE]
    waiting = (found[table[:, ENTITY], _HOW] == _GAP) & (table[:, KIND] != REPEAT)
    waiting &= table[:, SEQUENCE] >= found[table[:, ENTITY], _AT]
    return Rows(
        rows.streams,
        interner.groups.copy(),
        interner.names.take(np.arange(len(interner))),
        interner.hashes.copy(),
        steps.symbols,
        tuple(steps.set_of(number) for number in range(steps.sets)),
        np.concatenate([bodies, table[waiting]]),
    )


@compiled
def _carried_to(table: Ints, first: int, last: int) -> int:
    """How many events of an entity earlier runs have judged."""
    for r in range(first, last):
        if table[r, KIND] == CARRIED:
            return int(table[r, LENGTH])
    return 0


@compiled
def _overlaps(table: Ints, first: int, last: int) -> bool:
    """Whether an entity's rows tell of the same events, other than two raw ones of one number."""
    reached = -1
    raw_at = -1
    carried = _carried_to(table, first, last)
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
def _glue(
    table: Ints, begin: int, start: Ints, any_: Ints,
    keys: Ints, values: Ints, counts: Ints, flags: Ints, found: Ints, refused: Ints,
) -> tuple[int, int, int]:  # fmt: skip
    """Glue from the entity whose rows begin at `begin` on; stops at one that needs a step not yet known."""
    first = begin
    while first < len(table):
        entity: int = table[first, ENTITY]
        last = first
        while last < len(table) and table[last, ENTITY] == entity:
            last += 1
        if _overlaps(table, first, last):
            found[entity, _HOW] = _OVERLAP
            first = last
            continue
        for count in range(2):  # only what is not begun again is counted
            state, symbol = _entity(
                table, first, last, start[entity], any_[entity],
                keys, values, counts, flags, found[entity], refused, count,
            )  # fmt: skip
            if state >= 0:
                return first, state, symbol
        first = last
    return len(table), 0, 0


@compiled
def _entity(  # noqa: C901 - one loop, compiled as a whole
    table: Ints, first: int, last: int, start: int, any_: int,
    keys: Ints, values: Ints, counts: Ints, flags: Ints, one: Ints, refused: Ints, count: int,
) -> tuple[int, int]:  # fmt: skip
    """Glue one entity's rows; returns the set and the symbol whose step is not yet known, or -1."""
    one[:] = 0
    one[_HERE] = _NOWHERE
    one[_BEFORE] = _NOWHERE
    state = start
    expected = 0
    running, gap = True, False
    carried = _carried_to(table, first, last)
    if carried > 0:
        for r in range(first, last):
            if table[r, KIND] == CARRIED:
                state = table[r, EXIT]
                expected = carried
                one[_BEFORE] = table[r, PLACE]
        if flags[state] & STOPPED:
            running = False
            one[_HOW] = _TOLD
            one[_AT] = carried
            one[_LAST] = state
    r = first
    while r < last:
        row = table[r]
        if row[KIND] == CARRIED:
            r += 1
            continue
        if row[KIND] == REPEAT or row[SEQUENCE] + row[LENGTH] <= carried:
            # What earlier runs have judged is not at hand any more: it counts as the same.
            one[_REPEATED] += row[LENGTH]
            r += 1
            continue
        if running and row[SEQUENCE] != expected:
            running = False
            one[_HOW] = _GAP
            one[_AT] = expected
            one[_SET] = state
            gap = True
        if row[KIND] == BODY:
            if not running:
                one[_REST] += row[LENGTH]
            elif state == row[ENTRY]:
                one[_JUDGED] += row[LENGTH]
                one[_BEFORE] = row[PLACE]
                state = row[EXIT]
                expected = row[SEQUENCE] + row[LENGTH]
            else:  # a budget was spent elsewhere: the events themselves must tell
                one[_HOW] = _OVERLAP
                return -1, 0
            r += 1
            continue
        # All raw events of this sequence number; equal ones are neighbours.
        different, understood, chosen, here = 0, 0, r, r
        while here < last and table[here, SEQUENCE] == row[SEQUENCE] and table[here, KIND] == RAW:
            symbol = table[here, SYMBOL]
            if here > r and symbol == table[here - 1, SYMBOL]:
                one[_REPEATED] += 1
            else:
                different += 1
                context = start if row[SEQUENCE] == 0 else any_
                slot = slot_of(keys, context, symbol)
                if keys[slot] == 0:
                    return context, symbol
                if values[slot] >= REFUSED:
                    one[_REFUSED] += 1
                    refused[here] = 1
                else:
                    understood += 1
            if table[here, PLACE] < table[chosen, PLACE]:
                chosen = here
            here += 1
        r = here
        if not running:
            one[_REST] += understood
            if gap:
                one[_HERE] = table[chosen, PLACE]
                gap = False
            continue
        symbol = table[chosen, SYMBOL]
        slot = slot_of(keys, state, symbol)
        if keys[slot] == 0:
            return state, symbol
        after = values[slot] - REFUSED if values[slot] >= REFUSED else values[slot]
        if different > 1 or flags[after] & STOPPED:
            running = False
            one[_HOW] = _CONFLICT if different > 1 else _STOP
            one[_AT] = expected
            one[_SET] = state
            one[_WITH] = symbol
            one[_HERE] = table[chosen, PLACE]
            one[_LAST] = after
            if different > 1:
                one[_REST] += understood
            else:
                one[_JUDGED] += understood
            continue
        counts[slot] += count
        one[_JUDGED] += 1
        one[_BEFORE] = table[chosen, PLACE]
        state = after
        expected += 1
    if running:
        one[_AT] = expected
        one[_LAST] = state
    return -1, 0

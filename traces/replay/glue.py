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
from stagewright.traces.determinised import ANY, DEAD, START, UNDECIDED, UNKNOWN
from stagewright.traces.judge import DETAILS_MAX, VERDICTS, Cause, Finding, Judged, NotUnderstood
from stagewright.traces.replay.names import Interner, Names
from stagewright.traces.replay.ordering import by_entity
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
    REPEAT,
    SEQUENCE,
    SYMBOL,
    WATCHED,
    WIDTH,
    Rows,
)
from stagewright.traces.replay.segments import salt_of
from stagewright.traces.replay.settle import (
    AT,
    BEFORE,
    CONFLICT,
    FOUND,
    GAP,
    HERE,
    HOW,
    JUDGED,
    LAST,
    NOWHERE,
    OVERLAP,
    REFUSED,
    REPEATED,
    REST,
    SET,
    STOP,
    TOLD,
    UNCOMPARED,
    WHOLE,
    WITH,
    settle,
)
from stagewright.traces.replay.standings import standings_of
from stagewright.traces.replay.steps import FINISHED, STOPPED, Steps
from stagewright.traces.together.timeline import Changes, Watched, changes_of

Ints = NDArray[Any]

_NEVER = np.iinfo(np.int64).max


@dataclass
class Glued:
    """What the rows of one partition come to."""

    judged: Judged = field(default_factory=Judged)
    unsettled: list[EntityKey] = field(default_factory=list)
    carried: Rows | None = None  # of the settled entities, for another run
    held: int = 0  # events of earlier runs that wait behind a gap
    open: int = 0  # entities whose traces may go on
    told: int = 0  # entities that were found to be bad in an earlier run
    uncompared: int = 0  # events that repeat some of earlier runs, which are not at hand
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
    changing = np.isin(table[:, KIND], (CHANGE, WATCHED))
    told, table = table[changing], table[~changing]
    table, bounds = by_entity(table, len(interner))
    if steps.compares:
        _name_bodies(table, steps)
    first = np.array(
        [[steps.number(s[1:], special) for special in (START, ANY)] for s in rows.streams], np.int64
    )[interner.groups]
    found = np.zeros((len(interner), FOUND), np.int64)
    refused = np.zeros(len(table), np.int8)
    done = 0
    while done < len(table):
        done, state, symbol = settle(
            table, done, first[:, 0].copy(), first[:, 1].copy(),
            steps.keys, steps.values, steps.counts, steps.flags, found, refused,
        )  # fmt: skip
        if done < len(table):
            steps.fill(state, symbol)
    if carry and steps.compares:
        _not_waiting(table, found)
    ok = _tell(result, rows, interner, found, table, refused, steps, carry=carry)
    if steps.compares:
        result.judged.standings = standings_of(rows.streams, interner, found, ok, steps)
    watched = None
    if steps.views:
        result.changes, watched = changes_of(
            rows.streams, interner, table, bounds, told, steps, goes_on=carry
        )
    if carry:
        result.carried = _carried(rows, interner, found, table, told, watched, steps)
    return result


def _name_bodies(table: Ints, steps: Steps) -> None:
    """Give bodies the symbols that say where they lead from other sets than the one they were read from."""
    bodies = np.flatnonzero(table[:, KIND] == BODY)
    ways, which = np.unique(table[bodies][:, (ENTRY, EXIT)], axis=0, return_inverse=True)
    named = np.array([steps.body(*way) for way in ways.tolist()], np.int64)
    table[bodies, SYMBOL] = named[which.ravel()] if len(bodies) else -1


def _not_waiting(table: Ints, found: Ints) -> None:
    """Have entities read again behind whose gap a body waits of which another run could not tell all."""
    bodies = table[(table[:, KIND] == BODY) & (table[:, SYMBOL] >= 0)]
    whose = bodies[:, ENTITY]
    waiting = (found[whose, HOW] == GAP) & (bodies[:, SEQUENCE] >= found[whose, AT])
    found[whose[waiting], HOW] = OVERLAP


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
) -> Ints:
    """Tell what was found of the entities; returns which are ok."""
    judged = result.judged
    settled = found[:, HOW] != OVERLAP
    counted = found[settled]
    judged.events_judged = int(counted[:, JUDGED].sum())
    judged.events_not_judged = int(counted[:, REST].sum())
    judged.events_duplicate = int(counted[:, REPEATED].sum())
    judged.events_not_understood = int(counted[:, REFUSED].sum())
    finished = (steps.flags[found[:, LAST]] & FINISHED) != 0
    open_end = ~np.array(
        [steps.machine(s[1:]).source.recording.end_marked for s in rows.streams], bool
    )
    live = (found[:, HOW] == WHOLE) & ((steps.flags[found[:, LAST]] & STOPPED) == 0)
    ok: Ints = live & (finished | open_end[interner.groups] | carry)
    judged.verdicts[TraceVerdict.OK] = int(ok.sum())
    told = found[:, HOW] == TOLD
    for last in found[told, LAST].tolist():
        verdict = VERDICTS[_cause_of_stop(steps, last)]
        judged.verdicts[verdict] = judged.verdicts.get(verdict, 0) + 1
    result.open = int((live & ~finished & ~open_end[interner.groups]).sum())
    result.told = int(told.sum())
    result.uncompared = int(counted[:, UNCOMPARED].sum())
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
    return ok


def _finding(key: EntityKey, found: Ints, steps: Steps) -> Finding:
    cause, before = _cause(found, steps), None
    symbols: tuple[str, ...] = ()
    if found[HOW] in (STOP, CONFLICT):
        symbols = (steps.symbols[found[WITH]],)
        before = steps.set_of(int(found[SET]))
        if cause is Cause.STEP and steps.flags[found[SET]] & FINISHED:
            cause = Cause.AFTER_END
    here, last = int(found[HERE]), int(found[BEFORE])
    return Finding(
        key,
        cause,
        int(found[AT]),
        int(found[REPEATED]),
        None if here == NOWHERE else place_of(here),
        None if last == NOWHERE else place_of(last),
        symbols,
        before,
    )


def _cause(found: Ints, steps: Steps) -> Cause:
    how = int(found[HOW])
    if how == STOP:
        return _cause_of_stop(steps, int(found[LAST]))
    return {CONFLICT: Cause.CONFLICT, GAP: Cause.MISSING, WHOLE: Cause.NO_END}[how]


def _cause_of_stop(steps: Steps, last: int) -> Cause:
    special = {UNDECIDED: Cause.BUDGET, UNKNOWN: Cause.NOT_UNDERSTOOD}
    return special.get(steps.set_of(last).number, Cause.STEP)


def _carried(
    rows: Rows,
    interner: Interner,
    found: Ints,
    table: Ints,
    told: Ints,
    watched: Watched | None,
    steps: Steps,
) -> Rows:
    """One row for each settled entity, and what waits behind the gap of those that have one.

    Where properties over several entities are judged there are also what these have seen of it until then.
    """
    settled = found[:, HOW] != OVERLAP
    waits = settled[table[:, ENTITY]] & (table[:, KIND] != REPEAT) & (table[:, KIND] != CARRIED)
    after = np.where(found[:, HOW] == GAP, found[:, AT], _NEVER)
    parts = [_judged(interner, found, rows, steps)]
    if watched is not None:
        # These look at the events after a violation, too: so more may wait for one that is missing.
        after = np.where(watched.reached < 0, after, watched.reached)
        later = settled[told[:, ENTITY]] & (told[:, KIND] == CHANGE)
        later &= told[:, SEQUENCE] >= after[told[:, ENTITY]]
        parts += [watched.table[settled[watched.table[:, ENTITY]]], told[later]]
    left = table[waits & (table[:, SEQUENCE] >= after[table[:, ENTITY]])]
    left[left[:, KIND] == BODY, SYMBOL] = -1
    parts.append(left)
    return Rows(
        rows.streams,
        interner.groups.copy(),
        interner.names.take(np.arange(len(interner))),
        interner.hashes.copy(),
        steps.symbols,
        tuple(steps.set_of(number) for number in range(steps.sets)),
        np.concatenate(parts),
    )


def _judged(interner: Interner, found: Ints, rows: Rows, steps: Steps) -> Ints:
    """One row for each settled entity of which an event was judged."""
    stopped = np.isin(found[:, HOW], (STOP, CONFLICT))
    length = found[:, AT] + stopped
    chosen = np.flatnonzero((found[:, HOW] != OVERLAP) & (length > 0))
    one = found[chosen]
    bodies = np.full((len(chosen), WIDTH), -1, np.int64)
    bodies[:, ENTITY] = chosen
    bodies[:, SEQUENCE] = 0
    bodies[:, LENGTH] = length[chosen]
    bodies[:, KIND] = CARRIED
    bodies[:, EXIT] = np.where(one[:, HOW] == GAP, one[:, SET], one[:, LAST])
    dead = np.array([steps.number(s[1:], DEAD) for s in rows.streams], np.int64)
    conflict = one[:, HOW] == CONFLICT
    bodies[conflict, EXIT] = dead[interner.groups[chosen[conflict]]]
    bodies[:, PLACE] = one[:, BEFORE]
    return bodies

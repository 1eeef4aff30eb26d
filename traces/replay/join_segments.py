"""Glues the rows of entities together, wherever they were read: what is left are verdicts.

An entity whose rows do not overlap is evaluated here, exactly as if all its events had been replayed in order.
Where rows overlap (an event was repeated elsewhere, or two events have one sequence number), only the events
themselves can show: such an entity is among the `unsettled`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stagewright.traces.automaton.possible_states import PossibleStates
from stagewright.traces.automaton.subset_automaton import ANY, DEAD, START, UNDECIDED, UNKNOWN
from stagewright.traces.events.event_block import EntityKey, place_of
from stagewright.traces.events.observability import Doubt
from stagewright.traces.events.string_pool import Interner
from stagewright.traces.replay.candidate_counts import standings_of
from stagewright.traces.replay.exact_verdicts import (
    DETAILS_MAX,
    VERDICTS,
    Cause,
    Evaluated,
    Finding,
    NotUnderstood,
    doubted,
)
from stagewright.traces.replay.join_loop import (
    AT,
    BAD_BEFORE,
    BEFORE,
    CONFLICT,
    EVALUATED,
    FOUND,
    GAP,
    HERE,
    HOW,
    HOWS,
    LAST,
    NEXT,
    NOT_EVALUATED,
    NOWHERE,
    OVERLAP,
    REFUSED,
    REPEATED,
    SET,
    STOP,
    UNCOMPARED,
    WHOLE,
    WITH,
    settle,
)
from stagewright.traces.replay.ordering import by_entity
from stagewright.traces.replay.related.timeline import Changes, Watched, changes_of
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
    concatenated,
    select,
)
from stagewright.traces.replay.segments import salt_of
from stagewright.traces.replay.transition_table import FINISHED, STOPPED, Steps

Ints = NDArray[Any]

_NEVER = np.iinfo(np.int64).max


class Miscounted(NamedTuple):
    """An entity of whose events some were counted that are not evaluated; `evaluated`: so many of the first ones are."""

    key: EntityKey
    evaluated: int


@dataclass
class Glued:
    """What the rows of one partition come to."""

    evaluated: Evaluated = field(default_factory=Evaluated)
    unsettled: list[EntityKey] = field(default_factory=list)
    miscounted: list[Miscounted] = field(default_factory=list)  # settled ones
    miscounted_left_out: int = 0  # more of them, that are not named
    carried: Rows | None = None  # of the settled entities, for another run
    open: int = 0  # entities whose traces may go on
    bad_before: int = 0  # entities that were found to be bad in an earlier run
    uncompared: int = 0  # events that repeat some of earlier runs, which are not at hand
    changes: Changes | None = None  # of how properties over several entities see the entities

    def add(self, other: Glued, details: int) -> None:
        """Take what the rows of other entities of the partition came to; so many findings are kept."""
        self.evaluated.add(other.evaluated, details)
        self.unsettled += other.unsettled
        self.miscounted += other.miscounted
        self.miscounted_left_out += other.miscounted_left_out + len(self.miscounted[details:])
        del self.miscounted[details:]
        self.open += other.open
        self.bad_before += other.bad_before
        self.uncompared += other.uncompared
        if other.carried is not None:
            parts = [other.carried] if self.carried is None else [self.carried, other.carried]
            self.carried = concatenated(parts) if len(parts) > 1 else other.carried
        if other.changes is not None:
            self.changes = (
                other.changes if self.changes is None else self.changes.and_(other.changes)
            )


def glue(
    rows: Rows,
    steps: Steps,
    *,
    carry: bool = False,
    details: int = DETAILS_MAX,
    count_bad: bool = False,
) -> Glued:
    """Evaluate the entities of all rows; `rows` holds all rows of its entities.

    With `carry`, a trace without its end may go on in another run, and what is known of it is carried there.
    Where the table of steps has no room for all entities, some are evaluated after it was forgotten. `details`: so
    many findings are kept, violations first, and so many entities are named whose exercises are to be counted again. `count_bad`: the rows are all events that were evaluated, so what
    entities did before something was wrong is counted, too.
    """
    left_out = _left_out(count_bad=count_bad, carry=carry)
    result, waiting = Glued(), [rows]
    while waiting:
        some = waiting.pop()
        halves = None
        if (one := _glued(some, steps, details, left_out, carry=carry)) is None:
            steps.forget(counted=False)
            halves = _halves(some)
            if halves is None:  # a single entity, whatever it takes
                one = _glued(some, steps, details, left_out, carry=carry, all_at_once=True)
        if halves is not None:
            waiting += halves
        elif one is not None:
            result.add(one, details)
    return result


def _miscounted(
    result: Glued, rows: Rows, interner: Interner, found: Ints, left_out: Ints, details: int
) -> None:
    """Name the entities of which events were counted that are not evaluated: they are to be counted again."""
    events = found[:, (EVALUATED, NOT_EVALUATED, REPEATED, REFUSED)].sum(axis=1)  # of this run
    wrong = np.flatnonzero((left_out[found[:, HOW]] != 0) & (events > 0)).tolist()
    evaluated = np.where(found[:, HOW] == BAD_BEFORE, 0, found[:, AT])
    result.miscounted = [
        Miscounted(_key(rows, interner, e), int(evaluated[e])) for e in wrong[:details]
    ]
    result.miscounted_left_out = len(wrong[details:])


def _left_out(*, count_bad: bool, carry: bool) -> Ints:
    """By how an entity was found, whether what it did is not counted here.

    A segment does not know of what is wrong in others: where something is, all is counted again.
    """
    left_out = np.zeros(HOWS, np.int8)
    if not count_bad:
        left_out[[STOP, CONFLICT, BAD_BEFORE]] = 1
        left_out[GAP] = not carry  # what is missing may come in another run
    return left_out


def _halves(rows: Rows) -> tuple[Rows, Rows] | None:
    """The rows of half of the entities, and those of the others; None if there is but one entity."""
    interner = Interner()
    salts = np.array([salt_of(s) for s in rows.streams], np.uint64)
    entity = interner.number(rows.names, rows.stream, salts)[rows.table[:, ENTITY]]
    first = entity < len(interner) // 2
    if not first.any():
        return None
    return select(rows, np.flatnonzero(~first)), select(rows, np.flatnonzero(first))


def _glued(
    rows: Rows,
    steps: Steps,
    details: int,
    left_out: Ints,
    *,
    carry: bool,
    all_at_once: bool = False,
) -> Glued | None:
    """What all rows come to; None if the table of steps was full before, unless it must have room."""
    result = Glued()
    if not len(rows):
        return result
    steps.keep()
    interner = Interner(max(1 << 12, _power_of_two(len(rows.names))))
    salts = np.array([salt_of(s) for s in rows.streams], np.uint64)
    number = interner.number(rows.names, rows.stream, salts)
    table, bounds, view_rows = _numbered(rows, number, len(interner), steps)
    if steps.compares:
        _name_bodies(table, steps)
    first = np.array(
        [[steps.number(s[1:], special) for special in (START, ANY)] for s in rows.streams], np.int64
    )[interner.groups]
    found = np.zeros((len(interner), FOUND), np.int64)
    refused = np.zeros(len(table), np.int8)
    done = 0
    while done < len(table):
        if steps.full and not all_at_once:
            return None
        done, state, symbol = settle(
            table, done, first[:, 0].copy(), first[:, 1].copy(),
            steps.keys, steps.values, steps.counts, steps.flags, found, refused, left_out,
        )  # fmt: skip
        if done < len(table):
            steps.fill(state, symbol)
    if carry and steps.compares:
        _not_waiting(table, found)
    ok = _report(result, rows, interner, found, table, refused, steps, details, carry=carry)
    _miscounted(result, rows, interner, found, left_out, details)
    if steps.compares:
        result.evaluated.standings = standings_of(rows.streams, interner, found, ok, steps)
    watched = None
    if steps.views:
        result.changes, watched = changes_of(
            rows.streams, interner, table, bounds, view_rows, steps, goes_on=carry
        )
    if carry:
        result.carried = _carried(rows, interner, found, table, view_rows, watched, steps)
    return result


def _numbered(rows: Rows, number: Ints, entities: int, steps: Steps) -> tuple[Ints, Ints, Ints]:
    """The rows in order, in terms of the table of steps; where each entity's begin; and the changes among them."""
    symbols = np.array([*(steps.symbol(text) for text in rows.symbols), -1], np.int64)
    sets = np.array([*(steps.number_of(s) for s in rows.sets), -1], np.int64)
    table = rows.table.copy()  # the rows themselves are still wanted if the table of steps is full
    table[:, ENTITY] = number[table[:, ENTITY]]
    table[:, SYMBOL] = symbols[table[:, SYMBOL]]
    for column in (ENTRY, EXIT):
        table[:, column] = sets[table[:, column]]
    changing = np.isin(table[:, KIND], (CHANGE, WATCHED))
    if not changing.any():
        return *by_entity(table, entities), table[:0]
    return *by_entity(table[~changing], entities), table[changing]


def _name_bodies(table: Ints, steps: Steps) -> None:
    """Give bodies the symbols that say where they lead from other sets than the one they were read from."""
    bodies = np.flatnonzero(table[:, KIND] == BODY)
    ways, which = np.unique(table[bodies][:, (ENTRY, EXIT)], axis=0, return_inverse=True)
    named = np.array([steps.body(*way) for way in ways.tolist()], np.int64)
    table[bodies, SYMBOL] = named[which.ravel()] if len(bodies) else -1


def _not_waiting(table: Ints, found: Ints) -> None:
    """Have entities read again behind whose gap a body waits of which another run could not know all."""
    bodies = table[(table[:, KIND] == BODY) & (table[:, SYMBOL] >= 0)]
    whose = bodies[:, ENTITY]
    waiting = (found[whose, HOW] == GAP) & (bodies[:, SEQUENCE] >= found[whose, AT])
    found[whose[waiting], HOW] = OVERLAP


def _power_of_two(number: int) -> int:
    return 1 << max(number - 1, 1).bit_length()


def _report(
    result: Glued,
    rows: Rows,
    interner: Interner,
    found: Ints,
    table: Ints,
    refused: Ints,
    steps: Steps,
    details: int,
    *,
    carry: bool,
) -> Ints:
    """Put down what was found of the entities; returns which are ok."""
    evaluated = result.evaluated
    settled = found[:, HOW] != OVERLAP
    counted = found[settled]
    evaluated.events_evaluated = int(counted[:, EVALUATED].sum())
    evaluated.events_not_evaluated = int(counted[:, NOT_EVALUATED].sum())
    evaluated.events_duplicate = int(counted[:, REPEATED].sum())
    evaluated.events_not_understood = int(counted[:, REFUSED].sum())
    finished = (steps.flags[found[:, LAST]] & FINISHED) != 0
    recordings = [steps.machine(s[1:]).source.recording for s in rows.streams]
    open_end = ~np.array([r.end_marked for r in recordings], bool)[interner.groups]
    doubted_ends = np.array([r.doubt is Doubt.ENDS for r in recordings], bool)[interner.groups]
    doubted_all = np.array([r.doubt is Doubt.ALL for r in recordings], bool)[interner.groups]
    live = (found[:, HOW] == WHOLE) & ((steps.flags[found[:, LAST]] & STOPPED) == 0)
    good = live & (finished | open_end | carry)
    ok: Ints = good & ~doubted_all & (finished | carry | ~doubted_ends)
    evaluated.count_ok(rows.streams, interner.groups[ok])
    bad_before = found[:, HOW] == BAD_BEFORE
    for group, last in zip(
        interner.groups[bad_before].tolist(), found[bad_before, LAST].tolist(), strict=True
    ):
        evaluated.count(rows.streams[group], VERDICTS[_cause_of_stop(steps, last)])
    result.open = int((live & ~finished & ~open_end).sum())
    result.bad_before = int(bad_before.sum())
    result.uncompared = int(counted[:, UNCOMPARED].sum())
    result.unsettled = [_key(rows, interner, e) for e in np.flatnonzero(~settled).tolist()]
    bad = np.flatnonzero(settled & ~ok & ~bad_before)
    before: dict[int, PossibleStates] = {}
    for entity in bad[np.argsort(~_violated(rows, found[bad], steps), kind="stable")].tolist():
        finding = _finding(_key(rows, interner, entity), found[entity], steps, before)
        doubt = recordings[interner.groups[entity]].doubt
        finding = doubted(finding, doubt, good=bool(good[entity]))
        evaluated.count(finding.key.stream, finding.verdict)
        if len(evaluated.findings) < details:
            evaluated.findings.append(finding)
        else:
            evaluated.findings_left_out += 1
    for row in np.flatnonzero(refused).tolist()[:details]:
        entity = int(table[row, ENTITY])
        if settled[entity]:
            whose, text = _key(rows, interner, entity), steps.symbols[int(table[row, SYMBOL])]
            number = START if table[row, SEQUENCE] == 0 else UNKNOWN
            why = steps.machine(whose.stream[1:]).refusal(number, text)
            assert why is not None
            evaluated.not_understood.append(
                NotUnderstood(place_of(int(table[row, PLACE])), whose, why)
            )
    return ok


def _key(rows: Rows, interner: Interner, entity: int) -> EntityKey:
    return EntityKey(rows.streams[interner.groups[entity]], interner.names.text(entity))


def _violated(rows: Rows, found: Ints, steps: Steps) -> Ints:
    """Which of some entities are violations."""
    dead = [steps.number(s[1:], DEAD) for s in rows.streams]
    how = found[:, HOW]
    violated: Ints = (how == CONFLICT) | ((how == STOP) & np.isin(found[:, LAST], dead))
    return violated


def _finding(key: EntityKey, found: Ints, steps: Steps, sets: dict[int, PossibleStates]) -> Finding:
    """What was found of an entity; `sets` has those that were asked for before."""
    cause, before = _cause(found, steps), None
    symbols: tuple[str, ...] = ()
    if found[HOW] in (STOP, CONFLICT):
        symbols = (steps.symbols[found[WITH]],)
        number = int(found[SET])
        before = sets.setdefault(number, sets.get(number) or steps.set_of(number))
        if cause is Cause.STEP and steps.flags[number] & FINISHED:
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
        following=int(found[NEXT]) if cause is Cause.MISSING else None,
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
    view_rows: Ints,
    watched: Watched | None,
    steps: Steps,
) -> Rows:
    """One row for each settled entity, and what waits behind the gap of those that have one.

    Where properties over several entities are evaluated there are also what these have seen of it until then.
    """
    settled = found[:, HOW] != OVERLAP
    waits = settled[table[:, ENTITY]] & (table[:, KIND] != REPEAT) & (table[:, KIND] != CARRIED)
    after = np.where(found[:, HOW] == GAP, found[:, AT], _NEVER)
    parts = [_evaluated(interner, found, rows, steps)]
    if watched is not None:
        # These look at the events after a violation, too: so more may wait for one that is missing.
        after = np.where(watched.reached < 0, after, watched.reached)
        later = settled[view_rows[:, ENTITY]] & (view_rows[:, KIND] == CHANGE)
        later &= view_rows[:, SEQUENCE] >= after[view_rows[:, ENTITY]]
        parts += [watched.table[settled[watched.table[:, ENTITY]]], view_rows[later]]
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


def _evaluated(interner: Interner, found: Ints, rows: Rows, steps: Steps) -> Ints:
    """One row for each settled entity of which an event was evaluated."""
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

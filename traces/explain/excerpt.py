"""Cuts the last events of a violating trace out, with one legal run through all but the last of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stagewright.spec.values import FrozenMap
from stagewright.spec.verdict import Run, Step
from stagewright.traces.automaton.event_constraints import Constraint
from stagewright.traces.automaton.subset_automaton import LIVE, START, Determinised, SpentError
from stagewright.traces.events.symbols import parse_symbol
from stagewright.traces.explain.replay_window import ViolationWindow, seen
from stagewright.traces.replay.exact_verdicts import Cause, Finding

if TYPE_CHECKING:
    from stagewright.traces.automaton.evaluator import Evaluator

EVENTS_MAX = 50
_STATES_FEW = 64  # so many possible states are better than a longer excerpt
_STATES_MAX = 1_000

_Path = list[tuple[int, int]]  # step (-1: where it begins), and the state that it leads to


def excerpt(
    evaluator: Evaluator, running: Determinised, finding: Finding, numbers: Sequence[int]
) -> ViolationWindow | None:
    """The window of a violation; `numbers`: the set of possible states before each event.

    None where different events claim one place, which no definition is asked about, and where the states
    that were possible are too many to write down.
    """
    if finding.cause not in (Cause.STEP, Cause.AFTER_END):
        return None
    from_start = evaluator.automaton.recording.from_start
    begin = _begin(running, numbers, from_start=from_start)
    if begin is None:
        return None
    table, decode = running.states, evaluator.model.decode
    constraints = [running.constraint(symbol) for symbol in finding.symbols[begin:]]
    assert all(isinstance(constraint, Constraint) for constraint in constraints)
    shown = [constraint for constraint in constraints if isinstance(constraint, Constraint)]
    first = finding.sequence - len(finding.symbols) + 1 + begin
    try:
        path, marks = _run(running, numbers[begin:], shown, first)
    except SpentError:
        return None
    model_steps = evaluator.model.steps
    steps = tuple(
        Step(model_steps[i].action.name, FrozenMap(dict(model_steps[i].arguments)))
        for i, _ in path[1:]
    )
    codes = list(table[path[-1][1]])
    for cell, code in shown[-1].cells:
        codes[cell] = code
    start = running.sets[numbers[begin]]
    return ViolationWindow(
        evaluator.definition,
        evaluator.scope,
        evaluator.automaton.recording.hidden,
        None if numbers[begin] == START else tuple(decode(table[s]) for s in start),
        tuple(seen(first + i, parse_symbol(s)) for i, s in enumerate(finding.symbols[begin:])),
        Run(tuple(decode(table[s]) for _, s in path), steps),
        tuple(marks),
        decode(tuple(codes)),
        from_start,
    )


def _begin(running: Determinised, numbers: Sequence[int], *, from_start: bool) -> int | None:
    """The event that the excerpt begins with: few events, from few states."""
    whole = numbers[0] == START and len(numbers) <= EVENTS_MAX
    if whole and (from_start or len(numbers) == 1):
        return 0
    later = range(max(0, len(numbers) - EVENTS_MAX), len(numbers))
    sizes = {i: len(running.sets[numbers[i]]) for i in later if numbers[i] >= LIVE}
    few = [i for i, size in sizes.items() if size <= _STATES_FEW]
    if few:
        return few[0]
    best = min(sizes, key=lambda i: sizes[i], default=None)
    if best is not None and sizes[best] <= _STATES_MAX:
        return best
    return 0 if whole else None


def _run(
    running: Determinised, numbers: Sequence[int], constraints: Sequence[Constraint], first: int
) -> tuple[_Path, list[int | None]]:
    """States and steps that explain all constraints but the last, and which event each state comes after."""
    good = [i for i in range(len(numbers) - 1) if not constraints[i].end]
    if not good:
        at_start = numbers[0] == START
        here = (
            running.before_observation(START, constraints[0])
            if at_start
            else running.sets[numbers[0]]
        )
        return [(-1, min(here))], [None if at_start else first - 1]
    state = running.sets[numbers[good[-1] + 1]][0]
    last = state
    legs: list[tuple[int, _Path]] = []
    for i in reversed(good):
        if numbers[i] == START:
            break
        leg = _way(running, running.sets[numbers[i]], constraints[i], state)
        legs.append((first + i, leg[1:]))
        state = leg[0][1]
    path: _Path = [(-1, state)]
    marks: list[int | None] = [first if numbers[0] == START else first - 1]
    for sequence, leg in reversed(legs):
        path += leg
        marks += [None] * len(leg)
        marks[-1] = sequence
    assert path[-1][1] == last
    return path, marks


def _way(
    running: Determinised, starts: Sequence[int], constraint: Constraint, target: int
) -> _Path:
    """The shortest way from one of the states by hidden steps and the constraint's own to a state."""
    hidden = running.source.recording.hidden.exist
    # an observation alone may be of any state on the way
    looked = hidden and constraint.steps is None
    came: dict[int, tuple[int, int]] = dict.fromkeys(starts, (-1, -1))
    waiting = list(starts)
    for state in waiting:
        if looked and state == target:
            return _back(came, state)
        steps = running.steps_from(state) if hidden else running.taken(constraint.steps, state)
        for step, after in steps:
            unseen = hidden and running.is_hidden(step, state, after)
            own = not (looked and unseen) if constraint.steps is None else step in constraint.steps
            if own and after == target:
                return [*_back(came, state), (step, after)]
            if unseen and after not in came:
                came[after] = step, state
                waiting.append(after)
    raise AssertionError("the set of states after an event holds only what its steps lead to")


def _back(came: dict[int, tuple[int, int]], state: int) -> _Path:
    path: _Path = []
    while came[state][0] >= 0:
        path.append((came[state][0], state))
        state = came[state][1]
    return [(-1, state), *path[::-1]]

"""Whether a promise notices a mutant: it is searched until something breaks, goals and liveness last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from stagewright.checker.check import watch_for
from stagewright.checker.engines import search
from stagewright.checker.explicit.exploration import Exploration
from stagewright.checker.explicit.search import explore
from stagewright.checker.limits import Limits, Stop
from stagewright.checker.mutation.changes.kinds import Kind
from stagewright.checker.mutation.changes.mutants import Mutant
from stagewright.checker.mutation.difference import Difference, difference
from stagewright.checker.mutation.engine import Compiled, MutantEngine
from stagewright.checker.mutation.original import Original, kept_by
from stagewright.checker.mutation.promises import keeps
from stagewright.checker.verdicts import verdicts_of
from stagewright.spec.definition import NO_DEADLOCK, Definition, PropertyKind
from stagewright.spec.errors import AssignedTwiceError, StagewrightError
from stagewright.spec.scope import Scope
from stagewright.spec.verdict import Outcome, PropertyVerdict

ASSIGNED_ONCE = "a step assigns a place once"
"""What is promised of every definition before any step: one that assigns a place twice is refused."""

_WHILE_SEARCHING = (PropertyKind.INVARIANT, PropertyKind.STEP, PropertyKind.ACCEPTS)


class Fate(Enum):
    """What became of a mutant."""

    CAUGHT = "caught"
    SURVIVED = "survived"  # it takes other steps, and no promise minds
    REDUNDANT = "redundant"  # it takes the same steps in every reachable state
    UNDECIDED = "undecided"  # the budget was spent
    SAME = "same"  # it means the same as the original, or nothing at all: not counted


SURVIVES = (Fate.SURVIVED, Fate.REDUNDANT)


@dataclass(frozen=True)
class Evaluation:
    """What was found about one mutant: `by` holds the promises that break first, at depth `depth`."""

    fate: Fate
    by: tuple[str, ...] = ()
    depth: int = 0  # steps of the counterexample, with those of its loop
    states: int = 0  # searched for it
    scope: str = ""  # at which it was caught
    steps: tuple[str, ...] = ()  # of the counterexample
    loop: int | None = None  # the step after which the counterexample goes round
    note: str = ""
    silenced: tuple[str, ...] = ()  # of a survivor: actions that happen in the original alone
    seconds: float = 0.0


def evaluate(mutant: Mutant, originals: Sequence[Original], limits: Limits) -> Evaluation:
    """Evaluate a mutant at several scopes, in this order, until it is caught; `limits` are for all of them."""
    stop = Stop(limits)
    try:
        changed = mutant.made()
    except StagewrightError as error:
        return Evaluation(Fate.SAME, note=f"it is no definition: {error.problem}")
    seen: list[Evaluation] = []
    fired: set[str] = set()
    for original in originals:
        try:
            evaluation = _evaluated_at(original, mutant.kind, changed, stop, fired)
        except AssignedTwiceError as error:
            note = f"it is refused: {error.problem}"
            evaluation = Evaluation(
                Fate.CAUGHT, (ASSIGNED_ONCE,), scope=str(original.scope), note=note
            )
        except StagewrightError as error:
            evaluation = Evaluation(Fate.UNDECIDED, note=f"at {original.scope}: {error.problem}")
        if evaluation.fate is Fate.CAUGHT:
            return replace(evaluation, seconds=stop.seconds)
        seen.append(evaluation)
    for fate in (Fate.UNDECIDED, Fate.SURVIVED, Fate.REDUNDANT):
        for evaluation in seen:
            if evaluation.fate is fate:
                states = sum(j.states for j in seen)
                before = [name for original in originals for name in original.fired]
                silenced = tuple(n for n in dict.fromkeys(before) if n not in fired)
                return replace(evaluation, states=states, seconds=stop.seconds, silenced=silenced)
    return Evaluation(Fate.SAME, seconds=stop.seconds)


def counterexample(
    mutant: Mutant, original: Original, limits: Limits
) -> tuple[Definition, PropertyVerdict] | None:
    """The changed definition and what breaks first in it at the original's scope, with the run.

    None where nothing breaks, or where the definition is refused before any step.
    """
    changed = mutant.made()
    evaluated = kept_by(original, changed)
    try:
        engine = _engine(original, evaluated)
    except AssignedTwiceError:
        return None
    _, broken = _searched(original, evaluated, engine, Stop(limits))
    return (changed, broken[0]) if broken else None


def _evaluated_at(
    original: Original, kind: Kind, changed: Definition, stop: Stop, fired: set[str]
) -> Evaluation:
    """Evaluate at one scope, and note which actions happen there."""
    evaluated = kept_by(original, changed)
    engine = _engine(original, evaluated)
    different = difference(original, evaluated, engine)
    if different in {Difference.NONE, Difference.UNREACHABLE}:
        fired.update(original.fired)
        return Evaluation(Fate.SAME if different is Difference.NONE else Fate.REDUNDANT)
    if different is Difference.PROMISES and keeps(original, evaluated, engine, stop):
        fired.update(original.fired)
        # A table's entry that properties alone read is theirs; a helper is changed for what its steps do.
        fate = Fate.REDUNDANT if kind is Kind.HELPER else Fate.SURVIVED
        return Evaluation(fate, states=original.count)
    found, broken = _searched(original, evaluated, engine, stop)
    steps = found.engine.model.steps
    fired.update(step.action.name for step in steps if found.fired[step.index])
    if broken:
        return _caught(found, broken, original.scope)
    if not found.exhausted:
        return Evaluation(
            Fate.UNDECIDED, states=found.states, note=f"at {original.scope}: {found.stopped}"
        )
    if reason := stop.reason():
        return Evaluation(
            Fate.UNDECIDED, states=found.states, note=f"at {original.scope}: {reason}"
        )
    return Evaluation(Fate.SURVIVED, states=found.states)


def _engine(original: Original, evaluated: Definition) -> MutantEngine:
    model = original.lowering.beside(evaluated)
    same = model.builder is original.compiled.model.builder
    return MutantEngine(original.compiled if same else Compiled(model), model)


def _searched(
    original: Original, evaluated: Definition, engine: MutantEngine, stop: Stop
) -> tuple[Exploration, list[PropertyVerdict]]:
    """The promises that break, of those that the original keeps; once one breaks, no deeper ones."""
    kept = evaluated.properties
    deadlock = NO_DEADLOCK not in original.silent
    watch = watch_for(engine.model, deadlock=deadlock, coverage=True)
    at_first = replace(stop, limits=replace(stop.limits, stop_at_first=True))
    if original.small:
        found = explore(engine, watch, at_first)
    else:
        found = search(engine.model, watch, at_first, workers=1)
    at_once = tuple(p for p in kept if p.kind in _WHILE_SEARCHING)
    broken = _broken(replace(evaluated, properties=at_once), found, stop, original)
    if broken or not found.exhausted:
        return found, broken
    for prop in kept:
        if prop.kind not in _WHILE_SEARCHING and not broken:
            broken = _broken(replace(evaluated, properties=(prop,)), found, stop, original)
    return found, broken


def _broken(
    asked: Definition, found: Exploration, stop: Stop, original: Original
) -> list[PropertyVerdict]:
    return [
        verdict
        for verdict in verdicts_of(asked, found, stop)
        if verdict.outcome is Outcome.VIOLATED and verdict.name not in original.silent
    ]


def _caught(found: Exploration, broken: list[PropertyVerdict], scope: Scope) -> Evaluation:
    first = broken[0]
    steps: tuple[str, ...] = ()
    loop = None
    if first.run is not None:
        steps = tuple(step.label for step in first.run.steps)
        loop = first.run.loop
        if first.run.loop_step is not None:
            steps = (*steps, first.run.loop_step.label)
    return Evaluation(
        Fate.CAUGHT,
        tuple(verdict.name for verdict in broken),
        len(steps),
        found.states,
        str(scope),
        steps,
        loop,
        first.note,
    )

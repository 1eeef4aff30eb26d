"""Whether the original's own states and steps keep the promises of a mutant that takes the same steps.

Of a table's entries many are read by promises alone. Then nothing is searched anew: what the promises say is looked
at where the original was searched. Only that nothing breaks is found so; how soon something does, a search shows.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from stagewright.checker.explicit.exploration import Exploration
from stagewright.checker.limits import Stop
from stagewright.checker.mutation.engine import MutantEngine
from stagewright.checker.mutation.original import Original
from stagewright.checker.verdicts import verdicts_of
from stagewright.spec.definition import Definition, PropertyKind
from stagewright.spec.grounding.ground import GroundModel, GroundNode, GroundProperty
from stagewright.spec.verdict import Outcome


def keeps(original: Original, evaluated: Definition, engine: MutantEngine, stop: Stop) -> bool:
    """Whether each promise of `evaluated` is kept; False also where that is not known."""
    known, model = original.compiled.model, engine.model
    never = model.builder.not_
    broken = original.broken
    invariants = _others(model.invariants, known.invariants, broken)
    of_steps = _others(model.step_properties, known.step_properties, broken)
    witnesses = _others(model.witnesses, known.witnesses, broken)
    step_witnesses = _others(model.step_witnesses, known.step_witnesses, broken)
    return (
        not any(_false_in_states(original, engine, invariants))
        and not any(_false_in_steps(original, engine, of_steps))
        and all(_false_in_states(original, engine, [*map(never, witnesses)]))
        and all(_false_in_steps(original, engine, [*map(never, step_witnesses)]))
        and _kept_afterwards(original, evaluated, engine, stop)
    )


def _others(
    promises: Sequence[GroundProperty], known: Sequence[GroundProperty], broken: Collection[str]
) -> list[GroundNode]:
    """The conditions that the original does not keep already; equal nodes are one, by their ids."""
    kept = {p.condition.id for p in known if p.property.name not in broken}
    return [p.condition for p in promises if p.condition.id not in kept]


def _false_in_states(
    original: Original, engine: MutantEngine, nodes: Sequence[GroundNode]
) -> list[bool]:
    """Of each condition, whether it is false in some state."""
    found = [False] * len(nodes)
    if nodes:
        conditions = engine.state_conditions(nodes)
        for first in range(0, original.count, engine.batch):
            values = conditions(original.states[:, first : first + engine.batch])
            found = [one or not value.all() for one, value in zip(found, values, strict=True)]
    return found


def _false_in_steps(
    original: Original, engine: MutantEngine, nodes: Sequence[GroundNode]
) -> list[bool]:
    """The same of steps."""
    found = [False] * len(nodes)
    if nodes:
        states, graph = original.states, original.found.graph
        conditions = engine.step_conditions(nodes)
        for first in range(0, graph.sources.size, engine.batch):
            ends = (
                graph.sources[first : first + engine.batch],
                graph.targets[first : first + engine.batch],
            )
            values = conditions(states[:, ends[0]], states[:, ends[1]])
            found = [one or not value.all() for one, value in zip(found, values, strict=True)]
    return found


def _kept_afterwards(
    original: Original, evaluated: Definition, engine: MutantEngine, stop: Stop
) -> bool:
    """Of what is decided once all is searched: whether the goals and the fair runs that are others are kept."""
    before = _of_runs(original.compiled.model)
    known = {_sides(p) for p in before if p.property.name not in original.broken}
    names = {p.property.name for p in _of_runs(engine.model) if _sides(p) not in known}
    if not names:
        return True
    asked = replace(evaluated, properties=tuple(p for p in evaluated.properties if p.name in names))
    found = Exploration(engine, original.found.tally, lambda _: original.states)
    if not engine.changed:  # the steps have the same numbers
        found.graph = original.found.graph
    verdicts = verdicts_of(asked, found, stop)
    return all(v.outcome is Outcome.HOLDS for v in verdicts if v.name in names)


def _of_runs(model: GroundModel) -> tuple[GroundProperty, ...]:
    return (*model.reachable, *model.leads_to)


def _sides(promise: GroundProperty) -> tuple[PropertyKind, int, int | None]:
    premise = None if promise.premise is None else promise.premise.id
    return promise.property.kind, promise.condition.id, premise

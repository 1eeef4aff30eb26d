"""From a refinement to its verdict: both machines are explored, every view is decided, and it is said in words."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from stagewright.checker.explicit.engines import EngineKind, search
from stagewright.checker.explicit.exploration import Exploration, Watch
from stagewright.checker.explicit.runs import run_along
from stagewright.checker.limits import Limits, Stop, interruptible
from stagewright.checker.refinement.decide import Decision, Divergence, View
from stagewright.checker.refinement.looks import Comparison, Look, Looks
from stagewright.spec.definition import Definition
from stagewright.spec.lowering import ground
from stagewright.spec.refinement import Mapped
from stagewright.spec.scope import Scope
from stagewright.spec.values import FrozenMap, show
from stagewright.spec.verdict import Outcome, PropertyVerdict, Refined

METHOD = "exhaustive search of both machines"


@dataclass(frozen=True)
class Searching:
    """How the machines are searched."""

    limits: Limits
    engine: EngineKind = EngineKind.AUTO
    workers: int | None = None


def decide(
    mapped: Mapped, scope: Scope, how: Searching, concrete: Exploration | None = None
) -> PropertyVerdict:
    """The verdict on a refinement at a scope of the concrete machine.

    `concrete`: its exploration, if there is one already, of all states and not of orbits.
    """
    started = time.monotonic()
    verdict = _decided(mapped, scope, how, concrete)
    return replace(verdict, seconds=time.monotonic() - started)


def _decided(
    mapped: Mapped, scope: Scope, how: Searching, concrete: Exploration | None
) -> PropertyVerdict:
    comparison = Comparison(mapped, scope)
    seen = explored(mapped.seen, comparison.above.scope, how)
    if concrete is None:
        concrete = explored(mapped.concrete, scope, how)
    said = Refined(
        mapped.refinement.doc,
        mapped.refinement.where,
        mapped.concrete,
        scope,
        mapped.seen,
        mapped.hidden,
    )
    undecided = PropertyVerdict(mapped.refinement.name, Outcome.UNDECIDED, METHOD, refined=said)
    if not seen.exhausted:
        return replace(
            undecided, note=f"not all of {mapped.seen.name} was searched: {seen.stopped}"
        )
    views: list[View] = []
    for decision in _decisions(mapped, comparison, concrete, seen):
        views.append(decision.view())
        if (divergence := views[-1].divergence) is not None:
            return _violated(decision, divergence, said)
    said = _counted(said, views)
    if not concrete.exhausted:
        note = f"no violation up to depth {concrete.depth} (not exhausted: {concrete.stopped})"
        return replace(undecided, note=note, refined=said)
    if not any(view.taken for view in views):
        return replace(
            undecided,
            outcome=Outcome.VIOLATED,
            note=f"vacuous: no step of {mapped.concrete.name} changes anything that is seen",
        )
    note = _holds(mapped, concrete, views, said)
    return replace(undecided, outcome=Outcome.HOLDS, note=note, refined=said)


def explored(definition: Definition, scope: Scope, how: Searching) -> Exploration:
    """All reachable states of a machine, within the time and memory that there are."""
    stop = Stop(Limits(seconds=how.limits.seconds, memory=how.limits.memory))
    watch = Watch(deadlock=False, graph=True, coverage=False)
    bare = replace(definition, properties=())
    with interruptible(stop):
        return search(ground(bare, scope), watch, stop, kind=how.engine, workers=how.workers)


def _decisions(
    mapped: Mapped, comparison: Comparison, concrete: Exploration, seen: Exploration
) -> Iterator[Decision]:
    for chosen in comparison.choices():
        looks = Looks(comparison.conditions(chosen), concrete, seen)
        arguments = {bound.name: value for bound, value in chosen.items()}
        yield Decision(mapped, arguments, concrete, seen, looks)


def _violated(decision: Decision, divergence: Divergence, said: Refined) -> PropertyVerdict:
    looks = [decision.looks.look(number) for number in divergence.looks]
    run = run_along(decision.concrete, divergence.path)
    name, seen = decision.mapped.refinement.name, said.seen
    if not run.steps:
        note = f"no initial state of {named(seen)} looks so: {described(looks[0])}"
    else:
        step = run.steps[-1].label
        note = f"{step} is no step of {named(seen)}: {change(looks[-2], looks[-1])}"
    last = divergence.looks[-2:][0]
    instead = [
        f"{action}: {change(decision.looks.look(last), decision.looks.look(look))}"
        for action, look in decision.instead(divergence.held)
    ]
    refined = replace(
        said, looks=tuple(FrozenMap(dict(look)) for look in looks), instead=tuple(instead)
    )
    arguments = FrozenMap(dict(decision.arguments))
    return PropertyVerdict(name, Outcome.VIOLATED, METHOD, note, run, arguments, refined=refined)


def _counted(said: Refined, views: Sequence[View]) -> Refined:
    """How much of the seen machine the concrete one exercised."""
    possible = {
        (action, view.looks.look(source), view.looks.look(target))
        for view in views
        for (source, target), actions in view.possible.items()
        for action in actions
    }
    edges = {(source, target) for _, source, target in possible}
    taken = edges & {
        (view.looks.look(source), view.looks.look(target))
        for view in views
        for source, target in view.taken
    }
    untaken = sorted(
        f"{action}: {change(source, target)}"
        for action, source, target in possible
        if (source, target) not in taken
    )
    return replace(said, edges=len(edges), taken=len(taken), untaken=tuple(untaken))


def _holds(mapped: Mapped, concrete: Exploration, views: Sequence[View], said: Refined) -> str:
    steps = f"all {concrete.transitions:,} steps of {named(mapped.concrete)}"
    note = f"{steps} are steps of {named(mapped.seen)}, or change nothing that is seen"
    if said.edges:
        note += f"; {said.taken} of its {said.edges} edges are taken"
    if said.hidden:
        note += f"; hidden: {', '.join(said.hidden)}"
    still = [
        ", ".join(f"{name} = {show(value)}" for name, value in view.arguments.items())
        for view in views
        if not view.taken
    ]
    if still:
        note += f"; nothing seen ever changes for {'; '.join(still)}"
    return note


def named(definition: Definition) -> str:
    """`TopologyNode (seed)`."""
    return f"{definition.name} ({definition.profile})" if definition.profile else definition.name


def described(look: Look) -> str:
    """A look on one line."""
    return ", ".join(f"{place} = {value}" for place, value in look.items())


def change(old: Look, new: Look) -> str:
    """What differs between two looks; of equal ones, what they are."""
    differing = [f"{p}: {old[p]} → {v}" for p, v in new.items() if old[p] != v]
    return ", ".join(differing) or f"{described(new)} stays"

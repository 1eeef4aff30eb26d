"""From a refinement to its verdict: both machines are explored, every view is decided, and it is said in words."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

from stagewright.checker.engines import EngineKind, search
from stagewright.checker.explicit.exploration import Exploration, Watch
from stagewright.checker.explicit.runs import run_along
from stagewright.checker.limits import Limits, Stop, interruptible
from stagewright.checker.refinement.decide import Decision, Divergence, View
from stagewright.checker.refinement.looks import Comparison, Look, Looks
from stagewright.spec.definition import Definition
from stagewright.spec.grounding.lowering import ground
from stagewright.spec.refinement import Mapped
from stagewright.spec.scope import Scope, scope_of
from stagewright.spec.text.counting import counted
from stagewright.spec.values import FrozenMap, show
from stagewright.spec.verdict import Outcome, PropertyVerdict, Refined

METHOD = "exhaustive search of both machines"
_LISTED = 5  # steps of a seen machine that is not exact


@dataclass(frozen=True)
class Searching:
    """How the machines are searched."""

    limits: Limits
    engine: EngineKind = EngineKind.AUTO
    workers: int | None = None
    known: dict[tuple[str, Scope], Exploration] = field(
        default_factory=dict[tuple[str, Scope], Exploration], compare=False
    )  # by fingerprint: what was searched for one refinement serves the next


def decide(
    mapped: Mapped, scopes: Sequence[Scope], how: Searching, found: Exploration | None = None
) -> PropertyVerdict:
    """The verdict on a refinement at scopes of the concrete machine, all of which must agree.

    `found`: the concrete machine's exploration at the only scope, if there is one already: of all its states,
    not of orbits.
    """
    started = time.monotonic()
    decided: list[_Decided] = []
    for scope in scopes:
        one = _decided(mapped, scope, how, found)
        if isinstance(one, PropertyVerdict):
            return replace(one, seconds=time.monotonic() - started)
        decided.append(one)
    return replace(_together(mapped, decided), seconds=time.monotonic() - started)


@dataclass(frozen=True)
class _Decided:
    """What was found at one scope, where no run diverges."""

    scope: Scope
    concrete: Exploration
    views: tuple[View, ...]


def _decided(
    mapped: Mapped, scope: Scope, how: Searching, found: Exploration | None
) -> _Decided | PropertyVerdict:
    comparison = Comparison(mapped, scope)
    seen = explored(mapped.seen, comparison.above.scope, how)
    concrete = explored(mapped.concrete, scope, how) if found is None else found
    if not seen.exhausted:
        note = f"not all of {mapped.seen.name} was searched: {seen.stopped}"
        return _verdict(mapped, scope, Outcome.UNDECIDED, note)
    views: list[View] = []
    for decision in _decisions(mapped, comparison, concrete, seen):
        views.append(decision.view())
        if (divergence := views[-1].divergence) is not None:
            return _violated(decision, divergence, scope)
    return _Decided(scope, concrete, tuple(views))


def _verdict(mapped: Mapped, scope: Scope, outcome: Outcome, note: str) -> PropertyVerdict:
    refinement = mapped.refinement
    refined = Refined(
        refinement.doc, refinement.where, mapped.concrete, scope, mapped.seen, mapped.hidden
    )
    return PropertyVerdict(refinement.name, outcome, METHOD, note, refined=refined)


def _together(mapped: Mapped, decided: Sequence[_Decided]) -> PropertyVerdict:
    """The verdict of several scopes: what the concrete machine does at any of them, it does."""
    verdict = _verdict(mapped, decided[0].scope, Outcome.UNDECIDED, "")
    views = [view for one in decided for view in one.views]
    found = _edges(views)
    assert verdict.refined is not None
    counted = _counted(verdict.refined, found)
    verdict = replace(verdict, refined=counted)
    for one in decided:
        if not one.concrete.exhausted:
            why = f"not exhausted: {one.concrete.stopped}"
            return replace(verdict, note=f"no violation up to depth {one.concrete.depth} ({why})")
    if not any(view.taken for view in views):
        what = f"no step of {mapped.concrete.name} changes anything that is seen"
        return replace(verdict, outcome=Outcome.VIOLATED, note=f"vacuous: {what}")
    if mapped.refinement.exact and (wrong := _inexact(mapped, found)):
        return replace(verdict, outcome=Outcome.VIOLATED, note=wrong)
    return replace(verdict, outcome=Outcome.HOLDS, note=_holds(mapped, decided, counted))


def explored(definition: Definition, scope: Scope, how: Searching) -> Exploration:
    """All reachable states of a machine, within the time and memory that there are."""
    key = (definition.fingerprint(), scope)
    if key not in how.known:
        how.known[key] = _searched(definition, scope, how)
    return how.known[key]


def _searched(definition: Definition, scope: Scope, how: Searching) -> Exploration:
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


def _violated(decision: Decision, divergence: Divergence, scope: Scope) -> PropertyVerdict:
    looks = [decision.looks.look(number) for number in divergence.looks]
    run, mapped = run_along(decision.concrete, divergence.path), decision.mapped
    if not run.steps:
        note = f"no initial state of {named(mapped.seen)} looks so: {described(looks[0])}"
    else:
        step = run.steps[-1].label
        note = f"{step} is no step of {named(mapped.seen)}: {change(looks[-2], looks[-1])}"
    last = divergence.looks[-2:][0]
    instead = [
        f"{action}: {change(decision.looks.look(last), decision.looks.look(look))}"
        for action, look in decision.instead(divergence.held)
    ]
    verdict = _verdict(mapped, scope, Outcome.VIOLATED, note)
    assert verdict.refined is not None
    refined = replace(
        verdict.refined,
        looks=tuple(FrozenMap(dict(look)) for look in looks),
        instead=tuple(instead),
    )
    return replace(verdict, run=run, arguments=FrozenMap(dict(decision.arguments)), refined=refined)


@dataclass(frozen=True)
class _Edges:
    """The seen machine's steps between looks that differ, by which action, and those that were taken."""

    possible: frozenset[tuple[str, Look, Look]]
    taken: frozenset[tuple[Look, Look]]

    @property
    def all(self) -> frozenset[tuple[Look, Look]]:
        return frozenset((source, target) for _, source, target in self.possible)

    def untaken(self, without: Collection[str] = ()) -> list[str]:
        """The steps that were not taken, in words; without those of some actions."""
        found = {
            f"{action}: {change(source, target)}"
            for action, source, target in self.possible
            if (source, target) not in self.taken and action not in without
        }
        return sorted(found)


def _edges(views: Sequence[View]) -> _Edges:
    possible = frozenset(
        (action, view.looks.look(source), view.looks.look(target))
        for view in views
        for (source, target), actions in view.possible.items()
        for action in actions
    )
    taken = frozenset(
        (view.looks.look(source), view.looks.look(target))
        for view in views
        for source, target in view.taken
    )
    return _Edges(possible, taken)


def _counted(said: Refined, edges: _Edges) -> Refined:
    """How much of the seen machine the concrete one exercised."""
    every = edges.all
    return replace(
        said,
        edges=len(every),
        taken=len(every & edges.taken),
        untaken=tuple(edges.untaken()),
    )


def _inexact(mapped: Mapped, edges: _Edges) -> str:
    """Why the seen machine is not the quotient; empty if it is."""
    more = edges.untaken(mapped.beyond)
    if more:
        listed = "; ".join(more[:_LISTED]) + ("; …" if len(more) > _LISTED else "")
        return (
            f"{named(mapped.seen)} has {counted(len(more), 'step')} that {mapped.concrete.name} never takes, and that "
            f"`beyond` does not name: {listed}"
        )
    needless = [
        action
        for action in sorted(mapped.beyond & {name for name, _, _ in edges.possible})
        if all((s, t) in edges.taken for name, s, t in edges.possible if name == action)
    ]
    if needless:
        return (
            f"`beyond` names {', '.join(needless)}, all of whose steps {mapped.concrete.name} takes"
        )
    return ""


def _holds(mapped: Mapped, decided: Sequence[_Decided], said: Refined) -> str:
    count = sum(one.concrete.transitions for one in decided)
    note = f"all {counted(count, 'step')} of {named(mapped.concrete)} are steps of {named(mapped.seen)}"
    note += ", or change nothing that is seen"
    if mapped.refinement.exact and not mapped.beyond:
        note += f"; it takes all of its {said.edges} edges"
    elif said.edges:
        note += f"; {said.taken} of its {said.edges} edges are taken"
    if said.hidden:
        note += f"; hidden: {', '.join(said.hidden)}"
    still = [
        ", ".join(f"{name} = {show(value)}" for name, value in view.arguments.items())
        for one in decided
        for view in one.views
        if not view.taken
    ]
    if still:
        note += f"; nothing seen ever changes for {'; '.join(still)}"
    if [one.scope for one in decided] != [scope_of(mapped.concrete)]:
        note += f"; at {'; '.join(str(one.scope) for one in decided)}"
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

"""Check a definition at a scope by exhaustive search: every promise, from one exploration."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from stagewright.checker.coverage import coverage_of
from stagewright.checker.engines import EngineKind, search
from stagewright.checker.explicit.checkpoint import Checkpoint
from stagewright.checker.explicit.exploration import Exploration, Watch, Watched
from stagewright.checker.initial import find_initial_states, nothing_searched
from stagewright.checker.limits import Limits, OnProgress, Stop, interruptible
from stagewright.checker.refinement.verdicts import Searching, decide, named
from stagewright.checker.symmetry.choice import Choice, choose, states_stood_for
from stagewright.checker.symmetry.reduced import Reduced
from stagewright.checker.vacuity import premises_of
from stagewright.checker.verdicts import IN_BOUNDS, METHOD, verdicts_of
from stagewright.spec.declarations.exercised import scope_of_difference
from stagewright.spec.definition import NO_DEADLOCK, Definition, Property
from stagewright.spec.errors import InputError
from stagewright.spec.grounding.ground import GroundModel
from stagewright.spec.grounding.lowering import ground
from stagewright.spec.refinement import Mapped
from stagewright.spec.scope import Scope, scope_of
from stagewright.spec.text.suggestions import known_names
from stagewright.spec.values import FrozenMap
from stagewright.spec.verdict import Outcome, PropertyVerdict, Reduction, Report


def check(
    definition: Definition,
    scope: Scope,
    *,
    limits: Limits | None = None,
    progress: OnProgress | None = None,
    properties: Collection[str] = (),
    engine: EngineKind = EngineKind.AUTO,
    workers: int | None = None,
    coverage: bool = True,
    keep: bool = True,
    checkpoint: Checkpoint | None = None,
    symmetry: bool = False,
    deadlock: bool = True,
    refinements: Sequence[Mapped] = (),
) -> Report:
    """Search every reachable state and decide every promise (or only those named in `properties`).

    `workers`: None for one a core; `coverage`: count how often steps happen and requirements refuse;
    `keep`: False to forget states as early as possible, which saves memory and may cost a second search.
    `symmetry`: search one state of each orbit under permutations of interchangeable entities, where the
    definition has such and everything that is asked can be decided so.
    `deadlock`: False to let runs end anywhere, as a definition can say by `deadlock = allowed(...)`.
    `checkpoint`: where to write the search from time to time, and take it up again.
    `refinements`: what this machine is seen as, or what is seen as it; each is decided like a promise.
    A Ctrl-C while this runs ends the search, and the report says what was found until then.

    Raises:
        InputError: `properties` names a promise that the definition does not make.
        DefinitionError, ScopeError: the definition cannot be grounded at this scope.
    """
    limits = limits or Limits()
    narrowed = only(definition, properties, refinements)
    refinements = [m for m in refinements if not properties or m.refinement.name in properties]
    here, elsewhere = by_scope(narrowed, scope)
    stop = Stop(limits)
    with interruptible(stop):
        model = ground(here, scope, premises_of(here))
        deadlock = deadlock and asks_for_deadlock(definition, properties)
        if why := find_initial_states(model, stop, progress):
            return nothing_searched(narrowed, scope, stop, why, deadlock=deadlock)
        watch = watch_for(model, deadlock=deadlock, coverage=coverage)
        choice = choose(model) if symmetry else Choice(None)
        found = search(
            model,
            watch,
            stop,
            progress,
            kind=engine,
            workers=workers,
            keep=keep,
            checkpoint=checkpoint,
            symmetry=choice.symmetry,
        )
        how = Searching(limits, engine, workers)
        more = sought_elsewhere(narrowed, elsewhere, how)
        verdicts = in_order(narrowed, verdicts_of(here, found, stop, progress), more)
        for mapped in refinements:
            if progress is not None:
                progress(found.tally.progress(stop.seconds, deciding=mapped.refinement.name))
            verdicts = (*verdicts, _refines(mapped, definition, scope, how, found, stop))
    return report_of(
        definition,
        scope,
        found,
        verdicts,
        stop,
        asked=properties,
        choice=choice if symmetry else None,
    )


def _refines(
    mapped: Mapped,
    definition: Definition,
    scope: Scope,
    how: Searching,
    found: Exploration,
    stop: Stop,
) -> PropertyVerdict:
    """The verdict on one refinement; what was searched of its concrete machine is not searched again.

    It is decided at its own scopes, unless the check has another one than the default.
    """
    name, scopes = mapped.refinement.name, mapped.scopes
    ours = mapped.concrete.fingerprint() == definition.fingerprint()
    if not ours:
        name += f" of {named(mapped.concrete)}"
    elif scope != scope_of(definition):
        scopes = (scope,)
    if reason := stop.reason():
        return PropertyVerdict(name, Outcome.UNDECIDED, METHOD, f"not decided: {reason}")
    whole = ours and scopes == (scope,) and not isinstance(found.engine, Reduced)
    return replace(decide(mapped, scopes, how, found if whole else None), name=name)


def report_of(
    definition: Definition,
    scope: Scope,
    found: Exploration,
    verdicts: tuple[PropertyVerdict, ...],
    stop: Stop,
    *,
    asked: Collection[str],
    choice: Choice | None,
) -> Report:
    """What a finished search says; `choice`: of the symmetry, if it was to be used."""
    if asked and IN_BOUNDS not in asked and found.overflow is None:
        verdicts = tuple(v for v in verdicts if v.name != IN_BOUNDS)
    return Report(
        definition=definition,
        scope=str(scope),
        method=METHOD,
        verdicts=verdicts,
        states=found.within,
        transitions=found.transitions,
        depth=max(0, found.depth),
        exhausted=found.exhausted,
        seconds=stop.seconds,
        coverage=coverage_of(definition, found) if found.watch.coverage else None,
        note=_note(definition, found),
        interrupted=stop.interrupted,
        reduction=None if choice is None else _reduction(choice, found),
    )


def asks_for_deadlock(definition: Definition, properties: Collection[str]) -> bool:
    """Whether the absence of deadlock is to be decided: where runs may end anywhere only if it is named."""
    if not properties:
        return definition.deadlock_allowed is None
    return NO_DEADLOCK in properties


def _note(definition: Definition, found: Exploration) -> str:
    """What a report says of the search as a whole."""
    parts: list[str] = []
    if found.tally.beyond:
        names = " and ".join(f"`{c.name}`" for c in definition.constraints)
        parts.append(
            f"bounded by {names}: {found.tally.beyond:,} {_more(found)} beyond were looked at, not left"
        )
    if found.stopped:
        parts.append(f"not exhausted: {found.stopped}")
    return "; ".join(parts)


def _more(found: Exploration) -> str:
    return "orbits of states" if isinstance(found.engine, Reduced) else "states"


def watch_for(model: GroundModel, *, deadlock: bool, coverage: bool = True) -> Watch:
    """All that can be decided while searching, and the graph if more is to be decided afterwards."""
    never = model.builder.not_
    return Watch(
        Watched(
            [p.condition for p in model.invariants],
            [never(p.condition) for p in model.witnesses],
            [p.condition for p in model.premises],
        ),
        Watched(
            [p.condition for p in model.step_properties],
            [never(p.condition) for p in model.step_witnesses],
            [p.condition for p in model.step_premises],
        ),
        deadlock=deadlock,
        graph=bool(model.reachable or model.leads_to),
        coverage=coverage,
    )


def by_scope(definition: Definition, scope: Scope) -> tuple[Definition, list[Property]]:
    """The definition with what is decided at a scope, and the properties that name another scope."""
    elsewhere = [
        p
        for p in definition.properties
        if p.at is not None and scope_of_difference(definition, p.at) != scope
    ]
    here = tuple(p for p in definition.properties if p not in elsewhere)
    return (replace(definition, properties=here) if elsewhere else definition), elsewhere


def sought_elsewhere(
    definition: Definition, properties: Sequence[Property], how: Searching
) -> list[PropertyVerdict]:
    """The verdicts on witnesses that are sought at scopes of their own; each search ends once all are found."""
    scopes = {p.name: scope_of_difference(definition, p.at) for p in properties if p.at is not None}
    found: list[PropertyVerdict] = []
    for scope in dict.fromkeys(scopes.values()):
        mine = replace(
            definition, properties=tuple(p for p in properties if scopes[p.name] == scope)
        )
        stop = Stop(how.limits)
        model = ground(mine, scope)
        if why := find_initial_states(model, stop, None):
            verdicts = nothing_searched(mine, scope, stop, why, deadlock=False).verdicts
        else:
            watch = replace(watch_for(model, deadlock=False, coverage=False), only_witnesses=True)
            searched = search(model, watch, stop, kind=how.engine, workers=how.workers)
            verdicts = verdicts_of(mine, searched, stop)
        found += [
            replace(v, note=f"{v.note}, at {scope}", scope=str(scope))
            for v in verdicts
            if v.name in scopes
        ]
    return found


def in_order(
    definition: Definition,
    verdicts: tuple[PropertyVerdict, ...],
    more: Sequence[PropertyVerdict],
) -> tuple[PropertyVerdict, ...]:
    """All of them, in the definition's order."""
    if not more:
        return verdicts
    by_name = {v.name: v for v in (*verdicts, *more)}
    ordered = [by_name.pop(p.name) for p in definition.properties if p.name in by_name]
    return (*ordered, *by_name.values())


def only(
    definition: Definition, names: Collection[str], refinements: Sequence[Mapped] = ()
) -> Definition:
    """The definition with the named promises only; with all of them if none is named."""
    if not names:
        return definition
    known = [p.name for p in definition.properties] + [NO_DEADLOCK, IN_BOUNDS]
    known += [m.refinement.name for m in refinements]
    for name in names:
        if name not in known:
            raise InputError(
                f"{definition.name} has no property named `{name}`",
                help=known_names(name, known, "`stagewright show MACHINE`"),
            )
    chosen = tuple(p for p in definition.properties if p.name in names)
    return replace(definition, properties=chosen)


def _reduction(choice: Choice, found: Exploration) -> Reduction:
    """What a report says of the symmetry that was searched with, or was not."""
    sorts = {s.kind.__name__: s.size for s in choice.sorts if s.symmetric}
    if choice.symmetry is None:
        return Reduction(FrozenMap(sorts), used=False, reason=choice.reason)
    return Reduction(FrozenMap(sorts), used=True, states=states_stood_for(found))

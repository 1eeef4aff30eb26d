"""Check a definition over shards: every promise about states and steps, with the verdicts of one machine."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from stagewright.checker.check import asks_for_deadlock, by_scope, only, report_of, watch_for
from stagewright.checker.explicit.native.code.jit import available
from stagewright.checker.explicit.native.engine import NativeEngine
from stagewright.checker.initial import find_initial_states, nothing_searched
from stagewright.checker.limits import OnProgress, Stop
from stagewright.checker.sharded.search import Place, explore
from stagewright.checker.symmetry.choice import Choice, choose
from stagewright.checker.vacuity import premises_of
from stagewright.checker.verdicts import METHOD, verdicts_of
from stagewright.spec.definition import Definition, PropertyKind
from stagewright.spec.errors import InputError
from stagewright.spec.grounding.lowering import ground
from stagewright.spec.scope import Scope
from stagewright.spec.verdict import Outcome, PropertyVerdict, Report

WHOLE_GRAPH = "not decided: needs all states in one memory; run without --spark"
OF_ITS_OWN_SCOPE = "not decided: its witness is sought at a scope of its own; run without --spark"
_WHILE_SEARCHING = (
    PropertyKind.INVARIANT,
    PropertyKind.STEP,
    PropertyKind.ACCEPTS,
    PropertyKind.SOMETIMES,
    PropertyKind.SOMETIMES_STEP,
    PropertyKind.RESTRICTED,
)


def check_sharded(
    definition: Definition,
    scope: Scope,
    place: Place,
    stop: Stop,
    *,
    progress: OnProgress | None = None,
    properties: Collection[str] = (),
    coverage: bool = True,
    symmetry: bool = False,
    deadlock: bool = True,
) -> Report:
    """Search every reachable state; goals and leads-to promises stay undecided.

    `symmetry`: search one state of each orbit, where the definition has interchangeable entities.

    Raises:
        InputError: `properties` names a promise that the definition does not make; code cannot be
            compiled here; the folder cannot be used for this search.
        DefinitionError, ScopeError: the definition cannot be grounded at this scope.
    """
    refuse_what_cannot_be(definition, properties)
    narrowed = only(definition, properties)
    here, elsewhere = by_scope(narrowed, scope)
    decided = tuple(p for p in here.properties if p.kind in _WHILE_SEARCHING)
    searched = replace(narrowed, properties=decided)
    model = ground(searched, scope, premises_of(searched))
    deadlock = deadlock and asks_for_deadlock(definition, properties)
    if why := find_initial_states(model, stop, progress):
        return nothing_searched(narrowed, scope, stop, why, deadlock=deadlock)
    watch = watch_for(model, deadlock=deadlock, coverage=coverage)
    choice = choose(model) if symmetry else Choice(None)
    settings = {
        "machine": definition.name,
        "profile": definition.profile or "none",
        "scope": str(scope),
        "list of properties": ", ".join(sorted(properties)) or "all",
        "coverage": "counted" if coverage else "not counted",
        "search": "of all states" if choice.symmetry is None else "of orbits",
    }
    engine = NativeEngine(model)
    found = explore(engine, watch, stop, place, settings, progress, choice.symmetry)
    others = [
        PropertyVerdict(p.name, Outcome.UNDECIDED, METHOD, OF_ITS_OWN_SCOPE) for p in elsewhere
    ]
    verdicts = _in_order(narrowed, (*verdicts_of(searched, found, stop, progress), *others))
    return report_of(
        definition,
        scope,
        found,
        verdicts,
        stop,
        asked=properties,
        choice=choice if symmetry else None,
    )


def refuse_what_cannot_be(definition: Definition, properties: Collection[str]) -> None:
    """Check what can be checked at once.

    Raises:
        InputError: `properties` names a promise that the definition does not make; code cannot be
            compiled here.
    """
    only(definition, properties)
    if not available():
        raise InputError(
            "a search over shards compiles code, and `llvmlite` cannot be used here",
            help="install llvmlite on every machine, or check without --spark",
        )


def undecided(name: str) -> PropertyVerdict:
    """The verdict on what needs the whole graph, such as liveness or a refinement."""
    return PropertyVerdict(name, Outcome.UNDECIDED, METHOD, WHOLE_GRAPH)


def _in_order(
    definition: Definition, decided: tuple[PropertyVerdict, ...]
) -> tuple[PropertyVerdict, ...]:
    """The verdicts in the definition's order, with those that could not be had."""
    by_name = {verdict.name: verdict for verdict in decided}
    promised = tuple(
        by_name.pop(p.name) if p.name in by_name else undecided(p.name)
        for p in definition.properties
    )
    return (*promised, *by_name.values())

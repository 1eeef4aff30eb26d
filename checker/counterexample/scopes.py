"""The scope a run was found at, read off the run when nobody says it."""

from __future__ import annotations

from collections.abc import Iterator

from stagewright.spec.definition import Definition
from stagewright.spec.entities import Entity
from stagewright.spec.scope import BUDGET_PREFIX, Scope
from stagewright.spec.sorts import EntitySort, MapSort, RecordSort, Sort
from stagewright.spec.values import FrozenMap, Value
from stagewright.spec.verdict import Run


def scope_of_run(definition: Definition, run: Run) -> Scope:
    """As many of each entity as the run's maps have keys; without such a map, at least the default.

    A budget is what its counter shows at most; without a counter it is spent freely or not at all.
    """
    seen: dict[type[Entity], int] = {}
    for value in _values(run):
        for entity in _entities(value):
            seen[type(entity)] = max(seen.get(type(entity), 0), entity.index + 1)
    keyed = {kind for v in definition.variables for kind in _keys(v.sort)}
    sizes = {
        kind: seen[kind]
        if kind in keyed and kind in seen
        else max(seen.get(kind, 0), kind.default_scope)
        for kind in definition.entities
    }
    budgets = {b.name: _budget(definition, run, b.name) for b in definition.budgets}
    return Scope(FrozenMap(sizes), FrozenMap(budgets))


def _budget(definition: Definition, run: Run, name: str) -> int | None:
    counted = [state.get(BUDGET_PREFIX + name) for state in run.states]
    limits = [value for value in counted if isinstance(value, int)]
    if limits:
        return max(limits)
    spenders = {a.name for a in definition.actions if a.budget == name}
    free = any(step.action in spenders for step in run.steps)
    default = next(b.default for b in definition.budgets if b.name == name)
    return None if free or default is None else 0


def _keys(sort: Sort) -> Iterator[type[Entity]]:
    match sort:
        case MapSort(key, value):
            if isinstance(key, EntitySort):
                yield key.kind
            yield from _keys(value)
        case RecordSort(_, fields):
            for _, inner in fields:
                yield from _keys(inner)
        case _:
            return


def _values(run: Run) -> Iterator[Value]:
    for state in run.states:
        yield from state.values()
    for step in (*run.steps, *((run.loop_step,) if run.loop_step else ())):
        yield from step.arguments.values()


def _entities(value: Value) -> Iterator[Entity]:
    match value:
        case Entity():
            yield value
        case frozenset() | tuple():
            for element in value:
                yield from _entities(element)
        case FrozenMap():
            for key, inner in value.items():
                yield from _entities(key)
                yield from _entities(inner)
        case _:
            return

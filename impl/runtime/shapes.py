"""Whether values that come from outside are values of their sorts, and which entities they name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stagewright.spec.definition import Definition
from stagewright.spec.entities import Entity
from stagewright.spec.errors import InputError
from stagewright.spec.sorts import (
    BoolSort,
    EntitySort,
    EnumSort,
    IntSort,
    MapSort,
    OptionalSort,
    RecordSort,
    SeqSort,
    SetSort,
    Sort,
)
from stagewright.spec.values import show

Living = Mapping[type[Entity], Mapping[Entity, Any]]


def refuse_misfits(definition: Definition, values: Mapping[str, Any], live: Living) -> None:
    """Refuse a state that is none of the definition.

    Raises:
        InputError: names the variable and what it cannot be.
    """
    sorts = {v.name: v.sort for v in definition.variables}
    for name, value in values.items():
        problem = (
            "there is no such variable" if name not in sorts else misfit(value, sorts[name], live)
        )
        if problem:
            raise InputError(
                f"not a state of {definition.name}: {name}: {problem}",
                help=f"its variables: {', '.join(f'{n} ({s})' for n, s in sorts.items())}",
            )


def misfit(value: Any, sort: Sort, live: Living, *, bounds: bool = False) -> str:
    """Why a value is none of a sort; empty if it is. `bounds`: numbers must be within theirs."""
    fits = False
    match sort:
        case BoolSort():
            fits = type(value) is bool
        case IntSort(low, high):
            fits = type(value) is int and (not bounds or low <= value <= high)
        case EnumSort(kind):
            fits = isinstance(value, kind)
        case EntitySort(kind):
            fits = value in live.get(kind, ())
        case OptionalSort(element):
            return "" if value is None else misfit(value, element, live, bounds=bounds)
        case SetSort(element):
            if isinstance(value, frozenset | set):
                return _first(misfit(v, element, live) for v in value)
        case SeqSort(element, capacity):
            if isinstance(value, tuple) and (not bounds or len(value) <= capacity):
                return _first(misfit(v, element, live, bounds=bounds) for v in value)
        case MapSort(key, inner):
            if isinstance(value, Mapping):
                keys = _first(misfit(k, key, live) for k in value)
                return keys or _first(misfit(v, inner, live) for v in value.values())
        case RecordSort(_, fields):
            if isinstance(value, Mapping) and set(value) == {n for n, _ in fields}:
                return _first(misfit(value[n], s, live, bounds=bounds) for n, s in fields)
    return "" if fits else f"{_shown(value)} is not {_article(sort)}"


def entities_named(value: Any) -> Iterator[Entity]:
    """The entities in a value, as keys, members or values."""
    match value:
        case Entity():
            yield value
        case frozenset() | set() | tuple():
            for one in value:
                yield from entities_named(one)
        case Mapping():
            for key, one in value.items():
                yield from entities_named(key)
                yield from entities_named(one)
        case _:
            return


def _first(problems: Iterator[str]) -> str:
    return next((p for p in problems if p), "")


def _shown(value: Any) -> str:
    return repr(value) if isinstance(value, str) else show(value)


def _article(sort: Sort) -> str:
    return f"a living {sort}" if isinstance(sort, EntitySort) else f"one of {sort}"

"""Whether values that come from outside are values of their sorts, and which entities they name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
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
    entities_of,
)
from stagewright.spec.values import show

Living = Mapping[type[Entity], Mapping[Entity, Any]]
Fits = Callable[[Any, Living], bool]


def refuse_misfits(
    definition: Definition, fits: Mapping[str, Fits], values: Mapping[str, Any], live: Living
) -> None:
    """Refuse a state that is none of the definition; `fits` says it of each variable.

    Raises:
        InputError: names the variable and what it cannot be.
    """
    for name, value in values.items():
        if name in fits and fits[name](value, live):
            continue
        sorts = {v.name: v.sort for v in definition.variables}
        problem = (
            "there is no such variable" if name not in sorts else misfit(value, sorts[name], live)
        )
        raise InputError(
            f"not a state of {definition.name}: {name}: {problem}",
            help=f"its variables: {', '.join(f'{n} ({s})' for n, s in sorts.items())}",
        )


@cache
def fitting(sort: Sort, bounds: bool = False) -> Fits:
    """Whether a value is one of a sort, as a function. `bounds`: numbers must be within theirs."""
    match sort:
        case BoolSort():
            return lambda value, _: type(value) is bool
        case IntSort(low, high) if bounds:
            return lambda value, _: type(value) is int and low <= value <= high
        case IntSort():
            return lambda value, _: type(value) is int
        case EnumSort(kind):
            return lambda value, _: isinstance(value, kind)
        case EntitySort(kind):
            return lambda value, live: value in live.get(kind, ())
        case OptionalSort(element):
            some = fitting(element, bounds)
            return lambda value, live: value is None or some(value, live)
        case SetSort(element):
            return _all_fit(frozenset | set, fitting(element))
        case SeqSort(element, capacity):
            every = _all_fit(tuple, fitting(element, bounds))
            return lambda value, live: every(value, live) and (not bounds or len(value) <= capacity)
        case MapSort(key, inner):
            keys, values = fitting(key), fitting(inner)
            return lambda value, live: (
                isinstance(value, Mapping)
                and all(keys(k, live) and values(v, live) for k, v in value.items())
            )
        case RecordSort(_, fields):
            inside = {name: fitting(one, bounds) for name, one in fields}
            return lambda value, live: (
                isinstance(value, Mapping)
                and value.keys() == inside.keys()
                and all(one(value[name], live) for name, one in inside.items())
            )


def _all_fit(kind: Any, fits: Fits) -> Fits:
    return lambda value, live: isinstance(value, kind) and all(fits(one, live) for one in value)


def misfit(value: Any, sort: Sort, live: Living, *, bounds: bool = False) -> str:
    """Why a value is none of a sort; empty if it is."""
    if fitting(sort, bounds)(value, live):
        return ""
    inner = ""
    match sort:
        case OptionalSort(element):
            inner = misfit(value, element, live, bounds=bounds)
        case SetSort(element) if isinstance(value, frozenset | set):
            inner = _first(misfit(v, element, live) for v in value)
        case SeqSort(element) if isinstance(value, tuple):
            inner = _first(misfit(v, element, live, bounds=bounds) for v in value)
        case MapSort(key, element) if isinstance(value, Mapping):
            inner = _first(misfit(k, key, live) for k in value)
            inner = inner or _first(misfit(v, element, live) for v in value.values())
        case RecordSort(_, fields) if isinstance(value, Mapping) and {*value} == {*dict(fields)}:
            inner = _first(misfit(value[n], s, live, bounds=bounds) for n, s in fields)
        case _:
            pass
    return inner or f"{_shown(value)} is not {_article(sort)}"


@cache
def naming(sort: Sort) -> Callable[[Any], Iterable[Entity]]:
    """The entities in a value that should be one of a sort, as a function."""
    if not entities_of(sort):
        return lambda _: ()
    if isinstance(sort, MapSort) and not entities_of(sort.value):
        return lambda value: entities_named(tuple(value) if isinstance(value, Mapping) else value)
    return entities_named


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

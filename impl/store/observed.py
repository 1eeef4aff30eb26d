"""Read a state back from the JSON values of its observation, as traces and stores hold it."""

from __future__ import annotations

from collections.abc import Mapping

from stagewright.spec.definition import Definition
from stagewright.spec.grounding.domains import values_of
from stagewright.spec.scope import Scope
from stagewright.spec.sorts import IntSort, MapSort, RecordSort, SeqSort, SetSort, Sort
from stagewright.spec.values import FrozenMap, State, Value, plain, show


def state_of(definition: Definition, scope: Scope, observed: Mapping[str, object]) -> State:
    """The state that a complete observation shows; the inverse of `spec.trace.observation`.

    Raises:
        ValueError: a variable is missing, or its value is none of its sort.
    """
    return FrozenMap(
        {v.name: _value(v.name, v.sort, scope, observed) for v in definition.variables}
    )


def _value(name: str, sort: Sort, scope: Scope, observed: Mapping[str, object]) -> Value:
    match sort:
        case MapSort(key, value):
            keys = values_of(key, scope)
            return FrozenMap(
                {k: _value(f"{name}[{show(k)}]", value, scope, observed) for k in keys}
            )
        case RecordSort(_, fields):
            parts: dict[Value, Value] = {
                n: _value(f"{name}.{n}", s, scope, observed) for n, s in fields
            }
            return FrozenMap(parts)
        case SeqSort(element, capacity):
            length = _value(f"{name}.length", IntSort(0, capacity), scope, observed)
            assert isinstance(length, int)
            return tuple(_value(f"{name}[{i}]", element, scope, observed) for i in range(length))
        case SetSort(element):
            known = {show(v): v for v in values_of(element, scope)}
            members = _leaf(name, observed)
            if not isinstance(members, list) or not all(m in known for m in members):
                raise ValueError(f"{name} is {members!r}, which is not a {sort}")
            return frozenset(known[m] for m in members)
        case _:
            leaf = _leaf(name, observed)
            for known_value in values_of(sort, scope):
                if type(plain(known_value)) is type(leaf) and plain(known_value) == leaf:
                    return known_value
            raise ValueError(f"{name} is {leaf!r}, which is not a {sort}")


def _leaf(name: str, observed: Mapping[str, object]) -> object:
    if name not in observed:
        raise ValueError(f"{name} is missing")
    return observed[name]

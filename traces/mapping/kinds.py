"""What values the variables and parameters of a machine take, as plain data, and how a text becomes one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from stagewright.spec.definition import Definition
from stagewright.spec.derived.open_ended import LARGEST, open_ended
from stagewright.spec.grounding.domains import values_of
from stagewright.spec.scope import Scope
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

_INTEGER = re.compile(r"-?[0-9]{1,18}", re.ASCII)
_FLAGS = {"true": True, "yes": True, "false": False, "no": False}
_NONE = ("none", "null")
_SHOWN_MAX = 12  # names that an error lists


@dataclass(frozen=True)
class Kind:
    """The values of one leaf or parameter: flags, whole numbers, or names; maybe none; maybe sets of them."""

    names: tuple[str, ...] = ()
    flag: bool = False
    bounds: tuple[int, int] | None = None
    optional: bool = False
    many: bool = False
    record: str = ""

    def __str__(self) -> str:
        if self.record:
            said = f"a {self.record}, which no rule of a mapping can give"
        elif self.flag:
            said = "true or false"
        elif self.bounds is not None:
            said = f"a number in {self.bounds[0]} .. {self.bounds[1]}"
        else:
            shown = ", ".join(self.names[:_SHOWN_MAX])
            said = f"one of {shown}{', …' * (len(self.names) > _SHOWN_MAX)}"
        return said + " or none" * self.optional

    def has(self, value: object) -> bool:
        """Whether a plain value (of a set: of a member) is one of these."""
        match value:
            case None:
                return self.optional
            case bool():
                return self.flag
            case int():
                return self.bounds is not None and self.bounds[0] <= value <= self.bounds[1]
            case _:
                return value in self.names

    def convert(self, value: object) -> object:
        """The plain value that a text or number means here; itself if it means none."""
        if not isinstance(value, str):
            whole = isinstance(value, float) and self.bounds is not None and value.is_integer()
            return int(value) if whole and isinstance(value, float) else value
        if value in self.names:
            return value
        lower = value.lower()
        if self.optional and lower in _NONE:
            return None
        if self.flag:
            return _FLAGS.get(lower, value)
        if self.bounds is not None and _INTEGER.fullmatch(value):
            return int(value)
        return value


def leaf_kinds(definition: Definition, scope: Scope) -> dict[str, Kind]:
    """The kind of each leaf of a state, by the name under which it is observed."""
    largest = dict.fromkeys(open_ended(definition), LARGEST)
    return {
        name: kind_of(sort, scope)
        for variable in definition.variables
        for name, sort in _leaves(
            variable.name, variable.sort, scope, largest.get(variable.name, 0)
        )
    }


def parameter_kinds(definition: Definition, scope: Scope) -> dict[str, dict[str, Kind]]:
    """The kinds of the parameters of each action."""
    return {a.name: {p.name: kind_of(p.sort, scope) for p in a.params} for a in definition.actions}


def kind_of(sort: Sort, scope: Scope) -> Kind:
    """The kind of a sort that is no map and no record."""
    match sort:
        case BoolSort():
            return Kind(flag=True)
        case IntSort(low, high):
            return Kind(bounds=(low, high))
        case EnumSort() | EntitySort():
            return Kind(tuple(show(value) for value in values_of(sort, scope)))
        case OptionalSort(element):
            inner = kind_of(element, scope)
            return Kind(inner.names, inner.flag, inner.bounds, optional=True)
        case SetSort(element):
            return Kind(tuple(show(value) for value in values_of(element, scope)), many=True)
        case RecordSort():
            return Kind(record=str(sort))
        case MapSort() | SeqSort():
            raise AssertionError(f"{sort} has leaves of its own")


def _leaves(name: str, sort: Sort, scope: Scope, most: int) -> Iterator[tuple[str, Sort]]:
    """`most`: what a number may be, if that is more than its sort says."""
    match sort:
        case MapSort(key, value):
            for member in values_of(key, scope):
                yield from _leaves(f"{name}[{show(member)}]", value, scope, most)
        case RecordSort(_, fields):
            for field, inner in fields:
                yield from _leaves(f"{name}.{field}", inner, scope, most)
        case SeqSort(element, capacity):
            yield f"{name}.length", IntSort(0, capacity)
            for index in range(capacity):
                yield from _leaves(f"{name}[{index}]", element, scope, most)
        case IntSort(low, high):
            yield name, IntSort(low, max(high, most))
        case _:
            yield name, sort

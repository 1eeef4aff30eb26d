"""Sorts: what a variable, parameter or expression ranges over.

Scalar sorts fit one cell of a state; maps, sets and records are made of cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from stagewright.spec.entities import Entity
from stagewright.spec.errors import VariableError
from stagewright.spec.source import Source, here


@dataclass(frozen=True)
class BoolSort:
    """True or False."""

    def __str__(self) -> str:
        return "bool"


@dataclass(frozen=True)
class IntSort:
    """An integer in `low .. high`, both included."""

    low: int
    high: int

    def __str__(self) -> str:
        return f"{self.low}..{self.high}"


@dataclass(frozen=True)
class EnumSort:
    """A member of a Python enum, in definition order."""

    kind: type[Enum]

    @cached_property
    def members(self) -> tuple[Enum, ...]:
        return tuple(self.kind)

    def __str__(self) -> str:
        return self.kind.__name__


@dataclass(frozen=True)
class EntitySort:
    """A member of an entity sort; how many there are is the scope's business (or nobody's)."""

    kind: type[Entity]

    def __str__(self) -> str:
        return self.kind.__name__


@dataclass(frozen=True)
class OptionalSort:
    """A scalar, or none."""

    element: BoolSort | IntSort | EnumSort | EntitySort

    def __str__(self) -> str:
        return f"{self.element} or none"


BasicSort = BoolSort | IntSort | EnumSort | EntitySort
ScalarSort = BasicSort | OptionalSort


@dataclass(frozen=True)
class SetSort:
    """A set of members of a finite sort; of records, one of each combination of their fields' values."""

    element: EnumSort | EntitySort | RecordSort

    def __str__(self) -> str:
        return f"set of {self.element}"


@dataclass(frozen=True)
class MapSort:
    """A total map: one value for every key."""

    key: KeySort
    value: Sort

    def __str__(self) -> str:
        return f"{self.value} per {self.key}"


@dataclass(frozen=True)
class BagSort(MapSort):
    """A set of which each member may be there several times: a map to how often, from 0 on."""

    value: IntSort

    def __str__(self) -> str:
        return f"bag of {self.key}, each at most {self.value.high}"


@dataclass(frozen=True)
class RecordSort:
    """Named fields."""

    kind: type
    fields: tuple[tuple[str, Sort], ...]

    def field(self, name: str) -> Sort:
        return dict(self.fields)[name]

    def __str__(self) -> str:
        return self.kind.__name__


@dataclass(frozen=True)
class SeqSort:
    """A sequence of at most `capacity` elements: a queue, a channel, a log."""

    element: BasicSort | RecordSort
    capacity: int

    def __str__(self) -> str:
        return f"queue of {self.element}, at most {self.capacity}"


FiniteSort = EnumSort | EntitySort | RecordSort
"""What sets and bags have as members; of records only those of scalars."""

KeySort = FiniteSort | IntSort
"""What the keys of a map range over."""

BoundSort = BasicSort | RecordSort | SetSort
"""What a parameter or a quantified variable ranges over; only a parameter ranges over sets."""

Sort = ScalarSort | SetSort | MapSort | RecordSort | SeqSort


def entities_of(sort: Sort) -> list[type[Entity]]:
    """The entity sorts that a sort mentions, outermost first."""
    match sort:
        case BoolSort() | IntSort() | EnumSort():  # first, because most are
            return []
        case EntitySort(kind):
            return [kind]
        case OptionalSort(element) | SetSort(element) | SeqSort(element):
            return entities_of(element)
        case MapSort(key, value):
            return entities_of(key) + entities_of(value)
        case RecordSort(_, fields):
            return [e for _, s in fields for e in entities_of(s)]


def sort_of(kind: object, what: str, where: Source | None = None) -> EnumSort | EntitySort:
    """The sort that an enum or entity class stands for, or an error that names `what` it was given to."""
    where, given = where or here(), kind
    if isinstance(kind, type) and issubclass(kind, Entity) and kind is not Entity:
        return EntitySort(kind)
    if not (isinstance(kind, type) and issubclass(kind, Enum)) or not kind.__members__:
        raise VariableError(
            f"{what} is given {name_of(given)}, which is neither an enum with members nor an entity sort",
            where=where,
            help="write a subclass of States, Enum or Entity; for true and false `flag()`, "
            "for numbers `number(low, high)`, where a number below all others can stand for none",
        )
    if issubclass(kind, int):
        raise VariableError(
            f"the members of {kind.__name__} are numbers too",
            where=where,
            help=f"derive {kind.__name__} from States or Enum: a member is itself and nothing else",
        )
    if len(kind.__members__) != len(list(kind)):
        aliases = [n for n, m in kind.__members__.items() if n != m.name]
        raise VariableError(
            f"{kind.__name__}.{aliases[0]} is only another name of "
            f"{kind.__name__}.{kind.__members__[aliases[0]].name}: their values are equal",
            where=where,
            help=f"derive {kind.__name__} from States instead of Enum: equal columns stay two members",
        )
    return EnumSort(kind)


def name_of(value: object) -> str:
    """What an error calls a thing that is not what it should be: a class or a member by its name."""
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, type):
        return value.__name__
    return str(value) if type(value).__module__.startswith("stagewright.") else repr(value)

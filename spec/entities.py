"""The things a definition talks about: entity sorts, and enums whose members carry columns."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, Self, TypeVar, cast

if TYPE_CHECKING:
    from stagewright.spec.terms import Term

_E = TypeVar("_E")


class EntityType(type):
    """Lets `for n in Node` stand for every node: in `every(...)`, `some(...)`, or as an effect."""

    def __iter__(cls: type[_E]) -> Iterator[Term[_E]]:
        from stagewright.spec.binding import each

        return each(cls)  # type: ignore[type-var]  # pyright: ignore[reportArgumentType]


class Entity(metaclass=EntityType):
    """Base of the sorts whose number is chosen by the scope of a check: nodes, tablets, tasks.

    Members are interchangeable: a definition cannot name one, only quantify over all or take one as an
    action parameter. `class Node(Entity, scope=3)` sets the number that a check takes by default.
    `Node(0)` is a concrete member, as states and traces hold it.
    """

    default_scope: ClassVar[int] = 2
    __slots__ = ("index",)

    def __init_subclass__(cls, *, scope: int = 2) -> None:
        from stagewright.spec.errors import DefinitionError
        from stagewright.spec.source import here

        given = cast("object", scope)  # not every caller is type-checked
        if not isinstance(given, int) or isinstance(given, bool) or given < 1:
            raise DefinitionError(
                f"the default scope of {cls.__name__} is {scope!r}",
                where=here(),
                help=f"write a number from 1 on: `class {cls.__name__}(Entity, scope=2)`",
            )
        said = [n for n in vars(cls) if not (n.startswith("__") and n.endswith("__"))]
        if said:
            raise DefinitionError(
                f"the entity sort {cls.__name__} has a body: `{said[0]}`",
                where=here(),
                help=f"what differs between its members is a variable of the machine: "
                f"`{said[0]} = per({cls.__name__}, …)`",
            )
        cls.default_scope = scope

    def __init__(self, index: int) -> None:
        self.index = index

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.index == self.index

    def __hash__(self) -> int:
        return hash((type(self).__name__, self.index))

    def __repr__(self) -> str:
        return f"{type(self).__name__.lower()}{self.index}"


class States(Enum):
    """An enum whose members carry columns, as a design document's table does.

    Unlike with a plain Enum, two members with equal columns stay two members. Declare `__init__` with one
    parameter a column and assign them, so that type checkers see the columns.
    """

    def __new__(cls, *_columns: object) -> Self:
        member = object.__new__(cls)
        member._value_ = len(cls.__members__)
        return member

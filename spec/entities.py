"""The things a definition talks about: entity sorts, and enums whose members carry columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, cast
from weakref import WeakValueDictionary

from stagewright.spec.errors import EntityError
from stagewright.spec.source import here

if TYPE_CHECKING:
    from stagewright.spec.terms.terms import Term

_E = TypeVar("_E")
_N = TypeVar("_N", bound="Entity")


@dataclass(frozen=True)
class Notation:
    """How a body writes the members of a sort: `terms/order.py` says it, which knows expressions."""

    each: Callable[[Any], Iterator[Any]]
    first: Callable[[Any], Any]
    last: Callable[[Any], Any]
    named: Callable[[Any, int], Any]


class EntityType(type):
    """Lets `for n in Node` stand for every node: in `every(...)`, `some(...)`, or as an effect."""

    notation: ClassVar[Notation]

    def __iter__(cls: type[_E]) -> Iterator[Term[_E]]:
        found: Iterator[Term[_E]] = EntityType.notation.each(cls)
        return found

    @property
    def first(cls: type[_E]) -> Term[_E]:
        """The first member of an ordered entity."""
        found: Term[_E] = EntityType.notation.first(cls)
        return found

    @property
    def last(cls: type[_E]) -> Term[_E]:
        """The last member of an ordered entity: which one it is depends on the scope."""
        found: Term[_E] = EntityType.notation.last(cls)
        return found


class Named:
    """A member of an entity that has a name of its own; `named()` declares it."""

    def __init__(self) -> None:
        self.name = ""
        self.index = 0

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, member: object, owner: type[_E]) -> Term[_E]:
        found: Term[_E] = EntityType.notation.named(owner, self.index)
        return found


def named() -> Named:
    """A distinguished member of an entity: `root = named()` in the body of `class Node(Entity)`.

    `Node.root` is then a node that every definition can name; the nodes without a name stay
    interchangeable among themselves. A scope has at least as many members as have names.
    """
    return Named()


class Entity(metaclass=EntityType):
    """Base of the sorts whose number is chosen by the scope of a check: nodes, tablets, tasks.

    Members are interchangeable: a definition cannot name one, only quantify over all or take one as an
    action parameter. `class Node(Entity, scope=3)` sets the number that a check takes by default.
    `Node(0)` is a concrete member of a check, as its states and traces hold it; `Node("db-7")` one of a
    running system, which names its own. Members of one name are one object: `Node(0)` is `Node("node0")`.

    With `ordered=True` the members stand in a row: `n < m`, `n.is_first`, `Node.first`, `Node.last`,
    `n.next_or_none`. With `ring=True` the first follows the last, so that each has `n.next` and
    `n.previous`. Members that stand in an order are not interchangeable. `root = named()` in the body
    names one member, `Node.root`.
    """

    default_scope: ClassVar[int] = 2
    is_ordered: ClassVar[bool] = False
    is_ring: ClassVar[bool] = False
    member_names: ClassVar[tuple[str, ...]] = ()
    """Of the first members: those that are declared `named()`."""
    _known: ClassVar[WeakValueDictionary[str, Entity]]
    index: int  # its number; -1 of one that a running system has named
    name: str
    __slots__ = ("__weakref__", "index", "name")

    def __init_subclass__(
        cls, *, scope: int = 2, ordered: bool = False, ring: bool = False
    ) -> None:
        given = cast("object", scope)  # not every caller is type-checked
        if not isinstance(given, int) or isinstance(given, bool) or given < 1:
            raise EntityError(
                f"the default scope of {cls.__name__} is {scope!r}",
                where=here(),
                help=f"write a number from 1 on: `class {cls.__name__}(Entity, scope=2)`",
            )
        names = [n for n, value in vars(cls).items() if isinstance(value, Named)]
        for index, name in enumerate(names):
            if name in vars(EntityType) or name in vars(Entity):
                raise EntityError(
                    f"a member of {cls.__name__} cannot be named `{name}`: every entity has that word",
                    where=here(),
                    help="choose another name",
                )
            vars(cls)[name].index = index
        said = [
            n for n in vars(cls) if n not in names and not (n.startswith("__") and n.endswith("__"))
        ]
        if said:
            raise EntityError(
                f"the entity sort {cls.__name__} has a body: `{said[0]}`",
                where=here(),
                help=f"what differs between its members is a variable of the machine: "
                f"`{said[0]} = per({cls.__name__}, …)`; a member with a name is `{said[0]} = named()`",
            )
        if given < len(names):
            raise EntityError(
                f"{cls.__name__} has {len(names)} named members, but its default scope is {scope}",
                where=here(),
                help=f"write `class {cls.__name__}(Entity, scope={len(names)})` or more",
            )
        cls.default_scope = scope
        cls.is_ordered, cls.is_ring = ordered or ring, ring
        cls.member_names = tuple(names)
        cls._known = WeakValueDictionary()

    def __new__(cls, key: int | str) -> Self:
        name = key if isinstance(key, str) else _name(cls, key)
        known = cls._known.get(name)
        if known is not None:
            return cast("Self", known)
        made = super().__new__(cls)
        made.index = key if isinstance(key, int) else _number(cls, name)
        made.name = name
        cls._known[name] = made
        return made

    def __reduce__(self) -> tuple[type[Self], tuple[str]]:
        return type(self), (self.name,)

    def __lt__(self, other: Self) -> bool:
        """Whether it stands before another member of an ordered entity."""
        return self.index < other.index

    def __le__(self, other: Self) -> bool:
        return self.index <= other.index

    def __repr__(self) -> str:
        return self.name


def _name(kind: type[Entity], index: int) -> str:
    names = kind.member_names
    return names[index] if 0 <= index < len(names) else f"{kind.__name__.lower()}{index}"


def _number(kind: type[Entity], name: str) -> int:
    """The number of the member of that name in a check; -1 if it has none."""
    if name in kind.member_names:
        return kind.member_names.index(name)
    stem = kind.__name__.lower()
    digits = name[len(stem) :] if name.startswith(stem) else ""
    if not re.fullmatch(r"0|[1-9][0-9]{0,8}", digits, re.ASCII):
        return -1
    return int(digits) if int(digits) >= len(kind.member_names) else -1


def member_of_name(kind: type[_N], text: str) -> _N | None:
    """The member that a text names: `node2`, or the name of a named one; None if it names none."""
    return kind(text) if _number(kind, text) >= 0 else None


class States(Enum):
    """An enum whose members carry columns, as a design document's table does.

    Unlike with a plain Enum, two members with equal columns stay two members. Declare `__init__` with one
    parameter a column and assign them, so that type checkers see the columns.
    """

    __hash__ = object.__hash__  # a member is one object: `Enum.__hash__` is Python, and slow

    def __new__(cls, *_columns: object) -> Self:
        member = object.__new__(cls)
        member._value_ = len(cls.__members__)
        return member

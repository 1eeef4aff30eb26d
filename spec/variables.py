"""State variables: descriptors that give a machine's attributes their sorts and their static types."""

from __future__ import annotations

from collections.abc import Callable, Collection, Set
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

from stagewright.spec.definition import Actor, AnyValue, Fairness
from stagewright.spec.entities import Entity
from stagewright.spec.errors import DefinitionError
from stagewright.spec.nodes import BOOL, Node
from stagewright.spec.sorts import (
    EntitySort,
    EnumSort,
    IntSort,
    MapSort,
    OptionalSort,
    SetSort,
    Sort,
)
from stagewright.spec.source import Source, here
from stagewright.spec.symbolic import assign
from stagewright.spec.terms import Bool, MapOf, Maybe, Number, SetOf, Term, facade
from stagewright.spec.values import Value

if TYPE_CHECKING:
    from stagewright.spec.machine import Holder, Record

E = TypeVar("E", bound=Enum)
K = TypeVar("K", bound=Enum | Entity)
X = TypeVar("X", bound=Enum | Entity)
S = TypeVar("S")
V = TypeVar("V")
R = TypeVar("R", bound="Record")
M = TypeVar("M", bound=Callable[..., None])

ANY = AnyValue.ANY
"""As `init`: the variable may start with any value of its sort."""


@dataclass(frozen=True, eq=False)
class Var(Generic[S, V]):
    """A variable or record field: read as the symbolic type `S`; assignment also takes a plain `V`."""

    sort: Sort
    initial: Value | AnyValue
    where: Source
    constant: bool = False
    doc: str = ""

    def __set_name__(self, owner: type, name: str) -> None:
        object.__setattr__(self, "name", name)

    name = ""

    @overload
    def __get__(self, holder: None, owner: type) -> Self: ...
    @overload
    def __get__(self, holder: Holder, owner: type) -> S: ...
    def __get__(self, holder: Holder | None, owner: type) -> S | Self:
        if holder is None:
            return self
        wrapped: S = facade(self.sort)(holder.place_(self))
        return wrapped

    def __set__(self, holder: Holder, value: S | V) -> None:
        where = here()
        if self.constant:
            raise DefinitionError(
                f"`{self.name}` is declared constant and cannot be assigned",
                where=where,
                help="drop constant(...) from its declaration",
            )
        assign(holder.place_(self), value, where)

    def step(
        self: Var[Term[E], E] | Var[MapOf[Any, Term[E], E], Any],
        source: E | Collection[E],
        target: E,
        *,
        fair: Fairness = Fairness.NONE,
        by: Actor | None = None,
        spends: Any = None,
    ) -> Callable[[M], M]:
        """A transition of this variable from `source` (or one of several) to `target`.

        The decorated body adds requirements and further effects. For a variable `per(...)` entity the
        body's first parameter says whose value moves.
        """
        from stagewright.spec.actions import stepping

        return stepping(self, source, target, fair=fair, by=by, spends=spends)


def flag(init: bool | AnyValue = False, *, doc: str = "") -> Var[Bool, bool]:
    """A variable that is true or false."""
    return Var(BOOL, init, here(), doc=doc)


@overload
def one_of(kind: type[E], *, init: E, doc: str = ...) -> Var[Term[E], E]: ...
@overload
def one_of(kind: type[X], *, init: AnyValue = ..., doc: str = ...) -> Var[Term[X], X]: ...
def one_of(kind: Any, *, init: Any = ANY, doc: str = "") -> Var[Any, Any]:
    """A variable that is a member of an enum or entity sort; by default it may start as any."""
    return Var(_sort_of(kind), init, here(), doc=doc)


def number(
    low: int, high: int, *, init: int | AnyValue | None = None, doc: str = ""
) -> Var[Number, int]:
    """An integer variable in `low .. high`, both included; starts at `low` unless said otherwise."""
    where = here()
    start = low if init is None else init
    if low > high or (isinstance(start, int) and not low <= start <= high):
        raise DefinitionError(
            f"number({low}, {high}) cannot start as {start}",
            where=where,
            help="the bounds are (low, high), both included, and `init` lies within them",
        )
    return Var(IntSort(low, high), start, where, doc=doc)


def optional(
    kind: type[X], *, init: X | AnyValue | None = None, doc: str = ""
) -> Var[Maybe[X], X | None]:
    """A variable that is a member of an enum or entity sort, or none (as which it starts)."""
    return Var(OptionalSort(_sort_of(kind)), init, here(), doc=doc)


def set_of(
    kind: type[X], *, init: Set[X] | AnyValue = frozenset(), doc: str = ""
) -> Var[SetOf[X], Set[X]]:
    """A variable that is a set of members of an enum or entity sort; starts empty."""
    start = init if isinstance(init, AnyValue) else frozenset(init)
    return Var(SetSort(_sort_of(kind)), start, here(), doc=doc)


def per(key: type[K], value: Var[S, V]) -> Var[MapOf[K, S, V], V]:
    """One variable for every member of `key`: `learned = per(Node, one_of(Stage, init=Stage.none))`."""
    return Var(MapSort(_sort_of(key), value.sort), value.initial, here(), value.constant, value.doc)


def record(kind: type[R], *, doc: str = "") -> Var[R, R]:
    """A variable with the fields of a `Record` class; each starts as its field says."""
    from stagewright.spec.machine import record_initial, record_sort

    return Var(record_sort(kind), record_initial(kind), here(), doc=doc)


def constant(variable: Var[S, V]) -> Var[S, V]:
    """A variable that keeps its initial value for ever: what a run cannot change, but runs differ in."""
    return replace(variable, constant=True)


def _sort_of(kind: type[Enum] | type[Entity]) -> EnumSort | EntitySort:
    if issubclass(kind, Entity):
        return EntitySort(kind)
    if len(kind.__members__) != len(list(kind)):
        aliases = [n for n, m in kind.__members__.items() if n != m.name]
        raise DefinitionError(
            f"{kind.__name__}.{aliases[0]} is only another name of "
            f"{kind.__name__}.{kind.__members__[aliases[0]].name}: their values are equal",
            where=here(),
            help=f"derive {kind.__name__} from States instead of Enum: equal columns stay two members",
        )
    return EnumSort(kind)


def wrap_value(node: Node) -> Any:
    """The facade that fits a node."""
    return facade(node.sort)(node)

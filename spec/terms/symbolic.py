"""What all facades share: a node, no truth, no hash; and how plain values become nodes."""

from __future__ import annotations

from collections.abc import Set
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, NoReturn, cast

from stagewright.spec.entities import Entity
from stagewright.spec.errors import ExpressionError
from stagewright.spec.nodes import BOOL, Apply, Literal, Node, Op, fits
from stagewright.spec.sorts import (
    BoolSort,
    EntitySort,
    EnumSort,
    IntSort,
    OptionalSort,
    RecordSort,
    SeqSort,
    SetSort,
    Sort,
)
from stagewright.spec.source import Source, here
from stagewright.spec.terms.tracing import check_use, current
from stagewright.spec.terms.truth import truth_asked

ANY_INT = IntSort(-(2**31), 2**31)
"""The sort that every number fits."""


class Placed:
    """Base of what has variables: records, which are values, and machines, which are none."""

    def record_node_(self) -> Node | None:
        """The node of a record as a whole; None for machines."""
        return None


class Symbolic:
    """Base of all facades: a value that is known only when the machine runs."""

    __slots__ = ("node",)
    __hash__: ClassVar[None]  # type: ignore[assignment]

    def __init__(self, node: Node) -> None:
        self.node = node

    def __bool__(self) -> NoReturn:
        raise truth_asked()

    def __repr__(self) -> str:
        return f"<symbolic {self.node.sort}>"

    def __format__(self, _spec: str) -> NoReturn:
        raise ExpressionError(
            "a symbolic value has no text while a definition is traced",
            where=here(),
            help='name requirements by what they say of every value: `require(condition, "is behind")`',
        )

    if not TYPE_CHECKING:

        def __init_subclass__(cls) -> None:
            super().__init_subclass__()
            cls.__hash__ = Symbolic.__hash__  # Python drops it where `__eq__` is defined

        def __hash__(self) -> NoReturn:
            raise ExpressionError(
                "a symbolic value cannot be a dictionary's key or a member of a Python set",
                where=here(),
                help="read a table of an enum with `x.column(table.__getitem__)`, a variable `per(...)` "
                "with `[x]`; for sets write `.has(x)`, `.add(x)`, `.discard(x)`, and `SetOf.of(x, y)` "
                "instead of `{x, y}`",
            )


def apply(op: Op, sort: Sort, *args: Node) -> Node:
    """An operation written at the user's place; places that were assigned before are refused."""
    for arg in args:
        check_use(arg)
    return Apply(op, args, sort, here())


def assign(place: Node, value: object, where: Source) -> None:
    """Record the effect `place := value` in the action being traced."""
    node = lift(value, place.sort, "the assigned value", where)
    current("an assignment").assign(place, node, where)


def lift(
    value: object, sort: Sort, what: str, where: Source | None = None, *, help: str = ""
) -> Node:
    """The node of a facade or a plain value, which must fit `sort`.

    Raises:
        DefinitionError: it does not; the text names `what` it was for, and `help` if given.
    """
    node = node_of(value, sort)
    if node is not None:
        check_use(node)
    if node is None or not fits(node.sort, sort):
        wanted = _needed(sort)
        raise ExpressionError(
            f"{what} is {_described(value)}, but {wanted} is needed here",
            where=where or here(),
            help=help or mend(value, sort),
        )
    within = sort.element if isinstance(sort, OptionalSort) else sort
    if _never_within(node.sort, within):
        raise ExpressionError(
            f"{what} is {_described(value)}, outside of {within}",
            where=where or here(),
            help="widen the variable's bounds, or assign a value within them",
        )
    return node


def _never_within(sort: Sort, wanted: Sort) -> bool:
    if not (isinstance(sort, IntSort) and isinstance(wanted, IntSort)):
        return False
    return sort.high < wanted.low or sort.low > wanted.high


def node_of(value: object, sort: Sort) -> Node | None:
    """The node of a facade or a plain value; None if it is neither. `sort` tells none and sets apart."""
    match value:
        case Symbolic():
            return value.node
        case Placed():
            return value.record_node_()
        case bool():
            return Literal(value, BOOL)
        case Enum():  # before int: an IntEnum's members are members
            return Literal(value, EnumSort(type(value)))
        case int():
            return Literal(value, IntSort(value, value))
        case None if isinstance(sort, OptionalSort):
            return Literal(None, sort)
        case set() | frozenset() if isinstance(sort, SetSort):
            members = cast("Set[object]", value)
            found = frozenset(m for m in members if isinstance(m, Enum))
            if len(found) == len(members) and all(EnumSort(type(m)) == sort.element for m in found):
                return Literal(found, sort)
        case _:
            pass
    return None


def _needed(sort: Sort) -> str:
    if isinstance(sort, IntSort):
        return "a number" if sort == ANY_INT else f"a number in {sort}"
    return "a condition" if isinstance(sort, BoolSort) else str(sort)


def _described(value: object) -> str:
    match value:
        case Symbolic():
            sort = value.node.sort
            return f"a number in {sort}" if isinstance(sort, IntSort) else f"of sort {sort}"
        case Enum():
            return f"{type(value).__name__}.{value.name}"
        case None | bool() | int():
            return str(value)
        case type():
            return f"the class {value.__name__}"
        case _:
            return f"{value!r} ({type(value).__name__})"


def _perhaps(sort: Sort) -> Sort | None:
    return sort.element if isinstance(sort, OptionalSort) else None


def mend(value: object, sort: Sort) -> str:
    """What to write instead of `value` where `sort` is needed."""
    match sort:
        case _ if isinstance(value, Entity):
            return "members of an entity sort are interchangeable: take one as a parameter of the action"
        case _ if isinstance(value, Symbolic) and _perhaps(value.node.sort) == sort:
            return f"it may be none: take a parameter `x: Term[{sort}]` and require that it equals this"
        case EnumSort(kind):
            near = [m.name for m in kind if m.name.lower() == str(value).lower()]
            if isinstance(value, str) and near:
                return f"write `{kind.__name__}.{near[0]}`"
            return f"write a member of {kind.__name__}: {', '.join(m.name for m in kind)}"
        case BoolSort():
            return "write True, False or a condition"
        case IntSort() if isinstance(value, Symbolic) and value.node.sort == BOOL:
            return "write `count(condition for x in …)` for how many hold, `choose(condition, 1, 0)` for one"
        case IntSort():
            return "write a number" if sort == ANY_INT else f"write a number in {sort}"
        case SetSort(element):
            return f"write a set of {element}, empty `set()`, or `.add(…)`, `.discard(…)`"
        case EntitySort(kind):
            return f"write a parameter `x: Term[{kind.__name__}]` of the action"
        case OptionalSort(element):
            return f"write None, or: {mend(value, element).removeprefix('write ')}"
        case SeqSort():
            return "write `.append(…)`, `.drop_head()`, `.clear()`, or assign another queue"
        case RecordSort(kind):
            return f"write `{kind.__name__}(…)` with its fields, another {kind.__name__} of the state, or assign its fields one by one"
        case _:
            return f"write another value of the state that is {sort}"

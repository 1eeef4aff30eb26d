"""The typed facades that definitions are written with; their operators build the expression tree.

A facade holds a node and has operators but no equality of its own; nodes have equality but no operators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from enum import Enum
from typing import Any, ClassVar, Generic, NoReturn, TypeVar, overload

from stagewright.spec.binding import bind
from stagewright.spec.entities import Entity
from stagewright.spec.errors import DefinitionError
from stagewright.spec.nodes import BOOL, Apply, Bound, Column, Literal, Node, Op, Select, fits
from stagewright.spec.sorts import (
    BoolSort,
    EntitySort,
    EnumSort,
    IntSort,
    MapSort,
    OptionalSort,
    SetSort,
    Sort,
)
from stagewright.spec.source import Source, here
from stagewright.spec.tracing import check_read, current
from stagewright.spec.truth import truth_asked

E = TypeVar("E")
F = TypeVar("F", bound=Enum)
N = TypeVar("N", bound=Entity)
K = TypeVar("K")
S = TypeVar("S")
V = TypeVar("V")


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


class Bool(Symbolic):
    """A symbolic condition."""

    __slots__ = ()

    def __and__(self, other: Bool | bool) -> Bool:
        return Bool(_apply(Op.AND, BOOL, self.node, lift(other, BOOL, "the right side of `&`")))

    __rand__ = __and__

    def __or__(self, other: Bool | bool) -> Bool:
        return Bool(_apply(Op.OR, BOOL, self.node, lift(other, BOOL, "the right side of `|`")))

    __ror__ = __or__

    def __invert__(self) -> Bool:
        return Bool(_apply(Op.NOT, BOOL, self.node))

    def __eq__(self, other: Bool | bool) -> Bool:  # type: ignore[override]
        return Bool(_apply(Op.EQ, BOOL, self.node, lift(other, BOOL, "the right side of `==`")))

    def __ne__(self, other: Bool | bool) -> Bool:  # type: ignore[override]
        return ~(self == other)

    def implies(self, other: Bool | bool) -> Bool:
        """False only if this holds and `other` does not."""
        return ~self | other


class Number(Symbolic):
    """A symbolic integer."""

    __slots__ = ()

    def __eq__(self, other: Number | int) -> Bool:  # type: ignore[override]
        return Bool(_apply(Op.EQ, BOOL, self.node, self._lift(other, "==")))

    def __ne__(self, other: Number | int) -> Bool:  # type: ignore[override]
        return ~(self == other)

    def __lt__(self, other: Number | int) -> Bool:
        return Bool(_apply(Op.LT, BOOL, self.node, self._lift(other, "<")))

    def __le__(self, other: Number | int) -> Bool:
        return Bool(_apply(Op.LE, BOOL, self.node, self._lift(other, "<=")))

    def __gt__(self, other: Number | int) -> Bool:
        return Bool(_apply(Op.LT, BOOL, self._lift(other, ">"), self.node))

    def __ge__(self, other: Number | int) -> Bool:
        return Bool(_apply(Op.LE, BOOL, self._lift(other, ">="), self.node))

    def __add__(self, other: Number | int) -> Number:
        right = self._lift(other, "+")
        (low, high), (low2, high2) = _range(self.node), _range(right)
        return Number(_apply(Op.ADD, IntSort(low + low2, high + high2), self.node, right))

    __radd__ = __add__

    def __sub__(self, other: Number | int) -> Number:
        right = self._lift(other, "-")
        (low, high), (low2, high2) = _range(self.node), _range(right)
        return Number(_apply(Op.SUB, IntSort(low - high2, high - low2), self.node, right))

    def __index__(self) -> NoReturn:
        raise DefinitionError(
            "a symbolic number cannot be used as a Python index or in range(...)",
            where=here(),
            help="make it a parameter of the action, or compare it with `==`",
        )

    def _lift(self, other: object, operator: str) -> Node:
        if isinstance(other, bool):
            raise DefinitionError(
                f"`{operator}` compares a number with {other!r}",
                where=here(),
                help="write a number",
            )
        where = f"the other side of `{operator}`"
        return lift(other, IntSort(other, other) if isinstance(other, int) else ANY_INT, where)


class Term(Symbolic, Generic[E]):
    """A symbolic member of the enum or entity sort `E`."""

    __slots__ = ()

    def __eq__(self, other: E | Term[E] | Maybe[E]) -> Bool:  # type: ignore[override]
        if isinstance(other, Maybe):
            return other == self
        right = lift(other, self.node.sort, "the right side of `==`")
        return Bool(_apply(Op.EQ, BOOL, self.node, right))

    def __ne__(self, other: E | Term[E] | Maybe[E]) -> Bool:  # type: ignore[override]
        return ~(self == other)

    @classmethod
    def of(cls, member: F) -> Term[F]:
        """A concrete enum member as a term: for the parameters of an action that another one joins."""
        return Term(lift(member, EnumSort(type(member)), "the member"))

    def any_of(self, *members: E | Term[E]) -> Bool:
        """True if it is one of `members`."""
        if not members:
            raise DefinitionError("any_of() of no members is never true", where=here())
        return Bool(_apply(Op.OR, BOOL, *((self == m).node for m in members)))

    @overload
    def column(self, column: Callable[[E], bool]) -> Bool: ...
    @overload
    def column(self, column: Callable[[E], F]) -> Term[F]: ...
    @overload
    def column(self, column: Callable[[E], F | None]) -> Maybe[F]: ...
    @overload
    def column(self, column: Callable[[E], Set[F]]) -> SetOf[F]: ...
    @overload
    def column(self, column: Callable[[E], int]) -> Number: ...
    def column(self, column: Callable[[E], Any]) -> Any:
        """A column of the enum's table at this member: `stage.column(lambda s: s.writes)`.

        `column` is plain Python and is applied to every member once, when the definition is made.
        """
        return _column(self.node, column)


class Maybe(Symbolic, Generic[E]):
    """A symbolic member of `E`, or none. Iterating visits the member if there is one."""

    __slots__ = ()

    def __eq__(self, other: E | Term[E] | Maybe[E] | None) -> Bool:  # type: ignore[override]
        right = lift(other, self.node.sort, "the right side of `==`")
        return Bool(_apply(Op.EQ, BOOL, self.node, right))

    def __ne__(self, other: E | Term[E] | Maybe[E] | None) -> Bool:  # type: ignore[override]
        return ~(self == other)

    def is_none(self) -> Bool:
        return self == None  # noqa: E711

    def is_some(self) -> Bool:
        return ~self.is_none()

    def any_of(self, *members: E | Term[E] | None) -> Bool:
        """True if it is one of `members`."""
        return Bool(_apply(Op.OR, BOOL, *((self == m).node for m in members)))

    def __iter__(self) -> Iterator[Term[E]]:
        sort = self.node.sort
        assert isinstance(sort, OptionalSort)
        if not isinstance(sort.element, EntitySort | EnumSort):
            raise DefinitionError(f"cannot loop over {sort}", where=here())
        for bound in bind(sort.element, lambda b: _apply(Op.EQ, BOOL, self.node, b)):
            yield Term(bound)


class SetOf(Symbolic, Generic[E]):
    """A symbolic set. Iterating visits its members: `every(self.up[n] for n in self.replicas)`."""

    __slots__ = ()

    def has(self, member: E | Term[E]) -> Bool:
        return Bool(_apply(Op.MEMBER, BOOL, lift(member, self._element, "the member"), self.node))

    def __contains__(self, member: object) -> NoReturn:
        raise truth_asked()

    def __iter__(self) -> Iterator[Term[E]]:
        for bound in bind(self._element, lambda b: _apply(Op.MEMBER, BOOL, b, self.node)):
            yield Term(bound)

    def __or__(self, other: SetOf[E] | Set[E]) -> SetOf[E]:
        return SetOf(_apply(Op.UNION, self.node.sort, self.node, self._lift(other, "|")))

    def __and__(self, other: SetOf[E] | Set[E]) -> SetOf[E]:
        return SetOf(_apply(Op.INTERSECTION, self.node.sort, self.node, self._lift(other, "&")))

    def __sub__(self, other: SetOf[E] | Set[E]) -> SetOf[E]:
        return SetOf(_apply(Op.DIFFERENCE, self.node.sort, self.node, self._lift(other, "-")))

    def __eq__(self, other: SetOf[E] | Set[E]) -> Bool:  # type: ignore[override]
        return Bool(_apply(Op.EQ, BOOL, self.node, self._lift(other, "==")))

    def __ne__(self, other: SetOf[E] | Set[E]) -> Bool:  # type: ignore[override]
        return ~(self == other)

    def __le__(self, other: SetOf[E] | Set[E]) -> Bool:
        return (self - other).is_empty()

    def is_empty(self) -> Bool:
        return Bool(_apply(Op.EQ, BOOL, self.node, Literal(frozenset(), self.node.sort)))

    def size(self) -> Number:
        from stagewright.spec.binding import count

        return count(self.has(member) for member in self)

    def add(self, member: E | Term[E]) -> None:
        """Effect: `member` is in the set afterwards."""
        self._put(member, True)

    def discard(self, member: E | Term[E]) -> None:
        """Effect: `member` is not in the set afterwards."""
        self._put(member, False)

    def put(self, member: E | Term[E], present: Bool | bool) -> None:
        """Effect: `member` is in the set afterwards exactly if `present` holds now."""
        self._put(member, present)

    def _put(self, member: object, present: Bool | bool) -> None:
        where = here()
        key = lift(member, self._element, "the member")
        place = Select(self.node, key, BOOL, where)
        assign(place, present, where)

    @property
    def _element(self) -> EntitySort | EnumSort:
        sort = self.node.sort
        assert isinstance(sort, SetSort)
        return sort.element

    def _lift(self, other: object, operator: str) -> Node:
        return lift(other, self.node.sort, f"the right side of `{operator}`")


class MapOf(Symbolic, Generic[K, S, V]):
    """A symbolic total map; `self.learned[n]` reads one value and `self.learned[n] = v` assigns it."""

    __slots__ = ("_wrap",)

    def __init__(self, node: Node, wrap: Callable[[Node], S]) -> None:
        super().__init__(node)
        self._wrap = wrap

    def __getitem__(self, key: K | Term[K]) -> S:
        return self._wrap(self._cell(key, here()))

    def __setitem__(self, key: K | Term[K], value: S | V) -> None:
        where = here()
        if value is self._wrap:
            return
        assign(self._cell(key, where), value, where)

    def __iter__(self) -> NoReturn:
        sort = self.node.sort
        assert isinstance(sort, MapSort)
        raise DefinitionError(
            f"a map cannot be looped over; its keys are all of {sort.key}",
            where=here(),
            help=f"write `for k in {sort.key}`",
        )

    def _cell(self, key: object, where: Source) -> Node:
        sort = self.node.sort
        assert isinstance(sort, MapSort)
        return Select(self.node, lift(key, sort.key, "the key"), sort.value, where)


ANY_INT = IntSort(-(2**31), 2**31)


def _apply(op: Op, sort: Sort, *args: Node) -> Node:
    for arg in args:
        check_read(arg)
    return Apply(op, args, sort, here())


def _range(node: Node) -> tuple[int, int]:
    assert isinstance(node.sort, IntSort)
    return node.sort.low, node.sort.high


def assign(place: Node, value: object, where: Source) -> None:
    """Record the effect `place := value` in the action being traced."""
    node = lift(value, place.sort, "the assigned value", where)
    current("an assignment").assign(place, node, where)


def lift(value: object, sort: Sort, what: str, where: Source | None = None) -> Node:
    """The node of a facade or a plain value, which must fit `sort`.

    Raises:
        DefinitionError: it does not; the text names `what` it was for.
    """
    node = _node_of(value, sort)
    if node is not None:
        check_read(node)
    if node is None or not fits(node.sort, sort):
        found = f"{value!r} ({type(value).__name__})" if node is None else f"of sort {node.sort}"
        raise DefinitionError(
            f"{what} is {found}, but {sort} is needed here",
            where=where or here(),
            help=_mend(value, sort),
        )
    if isinstance(node, Literal) and isinstance(sort, IntSort) and isinstance(node.value, int):
        if not sort.low <= node.value <= sort.high:
            raise DefinitionError(
                f"{what} is {node.value}, outside of {sort}",
                where=where or here(),
                help="widen the variable's bounds, or assign a value within them",
            )
    return node


def _node_of(value: object, sort: Sort) -> Node | None:
    from stagewright.spec.machine import Holder

    match value:
        case Symbolic():
            return value.node
        case Holder():
            return value.record_node()
        case bool():
            return Literal(value, BOOL)
        case int():
            return Literal(value, IntSort(value, value))
        case Enum():
            return Literal(value, EnumSort(type(value)))
        case None if isinstance(sort, OptionalSort):
            return Literal(None, sort)
        case set() | frozenset() if isinstance(sort, SetSort):
            members = frozenset(value)
            if all(isinstance(m, Enum) and EnumSort(type(m)) == sort.element for m in members):
                return Literal(members, sort)
    return None


def _mend(value: object, sort: Sort) -> str:
    match sort:
        case _ if isinstance(value, Entity):
            return "members of an entity sort are interchangeable: take one as a parameter of the action"
        case EnumSort(kind):
            if isinstance(value, str):
                near = [m.name for m in kind if m.name.lower() == value.lower()]
                return f"write `{kind.__name__}.{near[0] if near else next(iter(kind)).name}`"
            return f"write a member of {kind.__name__}"
        case BoolSort():
            return "write True, False or a condition"
        case SetSort(element):
            return f"write a set of {element}, or `.add(…)`, `.discard(…)`"
        case EntitySort(kind):
            return f"write a parameter `x: Term[{kind.__name__}]` of the action"
        case _:
            return f"write a value of {sort}"


def _column(index: Node, column: Callable[[Any], Any]) -> Symbolic:
    if not isinstance(index.sort, EnumSort):
        raise DefinitionError(
            f"{index.sort} has no columns: its members are interchangeable",
            where=here(),
            help=f"declare a variable `per({index.sort}, …)`; `constant(…)` if it never changes",
        )
    check_read(index)
    values = [column(member) for member in index.sort.members]
    values = [frozenset(v) if isinstance(v, Set) else v for v in values]
    sort, wrap = _column_sort(values)
    return wrap(Column(tuple(values), index, sort, here()))


def _column_sort(values: list[Any]) -> tuple[Sort, Callable[[Node], Symbolic]]:
    present = [v for v in values if v is not None]
    if present and all(isinstance(v, frozenset) for v in present) and len(present) == len(values):
        kinds = {type(m) for v in present for m in v}
        if len(kinds) == 1 and issubclass(kind := next(iter(kinds)), Enum):
            return SetSort(EnumSort(kind)), SetOf
    elif all(isinstance(v, bool) for v in values):
        return BOOL, Bool
    elif all(isinstance(v, int) and not isinstance(v, bool | Enum) for v in values):
        return IntSort(min(values), max(values)), Number
    elif present and all(isinstance(v, Enum) and type(v) is type(present[0]) for v in present):
        sort = EnumSort(type(present[0]))
        return (sort, Term) if len(present) == len(values) else (OptionalSort(sort), Maybe)
    kinds_found = ", ".join(sorted({type(v).__name__ for v in values}))
    raise DefinitionError(
        f"a column must be of one kind for all members; this one has: {kinds_found}",
        where=here(),
        help="return a bool, an int, a member of one enum (or None), or a set of members of one enum",
    )


C = TypeVar("C", Bool, Number)


@overload
def choose(condition: Bool, then: Term[E], otherwise: Term[E] | E) -> Term[E]: ...
@overload
def choose(condition: Bool, then: E, otherwise: Term[E]) -> Term[E]: ...
@overload
def choose(
    condition: Bool, then: Maybe[E], otherwise: Maybe[E] | Term[E] | E | None
) -> Maybe[E]: ...
@overload
def choose(condition: Bool, then: Bool | bool, otherwise: Bool | bool) -> Bool: ...
@overload
def choose(condition: Bool, then: Number | int, otherwise: Number | int) -> Number: ...
@overload
def choose(condition: Bool, then: SetOf[E], otherwise: SetOf[E] | Set[E]) -> SetOf[E]: ...
@overload
def choose(condition: Bool, then: F, otherwise: F) -> Term[F]: ...
def choose(condition: Bool, then: Any, otherwise: Any) -> Any:
    """`then` where the condition holds, else `otherwise`; both are values of one sort."""
    test = lift(condition, BOOL, "the condition of choose(...)")
    hint = next((x.node.sort for x in (then, otherwise) if isinstance(x, Symbolic)), BOOL)
    first, second = _node_of(then, hint), _node_of(otherwise, hint)
    if first is None or second is None:
        bad = then if first is None else otherwise
        raise DefinitionError(
            f"choose(...) is given {bad!r} ({type(bad).__name__})",
            where=here(),
            help=_mend(bad, hint),
        )
    sort = _joined(first.sort, second.sort)
    if sort is None:
        raise DefinitionError(
            f"choose(...) of two sorts: {first.sort} and {second.sort}",
            where=here(),
            help="both values must be of one sort",
        )
    return facade(sort)(_apply(Op.IF, sort, test, first, second))


def _joined(a: Sort, b: Sort) -> Sort | None:
    if isinstance(a, IntSort) and isinstance(b, IntSort):
        return IntSort(min(a.low, b.low), max(a.high, b.high))
    if fits(a, b):
        return b
    return a if fits(b, a) else None


def facade(sort: Sort) -> Callable[[Node], Any]:
    """The facade that holds expressions of a sort."""
    match sort:
        case BoolSort():
            return Bool
        case IntSort():
            return Number
        case EnumSort() | EntitySort():
            return Term
        case OptionalSort():
            return Maybe
        case SetSort():
            return SetOf
        case MapSort(_, value):
            inner = facade(value)
            return lambda node: MapOf(node, inner)
        case _:
            from stagewright.spec.machine import record_facade

            return record_facade(sort)


def parameter(bound: Bound) -> Symbolic:
    """The facade of an action's or property's parameter."""
    made = facade(bound.sort)(bound)
    assert isinstance(made, Symbolic)
    return made


def members_named(kind: type[Enum]) -> Iterable[str]:
    """The names of an enum's members, for error texts."""
    return (m.name for m in kind)

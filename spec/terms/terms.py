"""The typed facades that definitions are written with; their operators build the expression tree.

A facade holds a node and has operators but no equality of its own; nodes have equality but no operators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar, cast, overload

from stagewright.spec.entities import Entity
from stagewright.spec.errors import DefinitionError, ExpressionError, VariableError
from stagewright.spec.nodes import BOOL, Bound, Literal, Node, Op, Select
from stagewright.spec.sorts import (
    BagSort,
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
from stagewright.spec.source import Source, here
from stagewright.spec.terms.binding import bind
from stagewright.spec.terms.conditions_and_numbers import Bool, Number
from stagewright.spec.terms.symbolic import Symbolic, apply, assign, lift, node_of
from stagewright.spec.terms.tracing import check_read
from stagewright.spec.terms.truth import truth_asked

E = TypeVar("E")
F = TypeVar("F", bound=Enum)
G = TypeVar("G", bound=Enum)
N = TypeVar("N", bound=Entity)
X = TypeVar("X", bound=Enum | Entity)
K = TypeVar("K")
S = TypeVar("S")
V = TypeVar("V")


class Term(Symbolic, Generic[E]):
    """A symbolic member of the enum or entity sort `E`."""

    __slots__ = ()

    def __eq__(self, other: E | Term[E] | Maybe[E]) -> Bool:  # type: ignore[override]
        if isinstance(other, Maybe):
            return other == self
        right = lift(other, self.node.sort, "the right side of `==`")
        return Bool(apply(Op.EQ, BOOL, self.node, right))

    def __ne__(self, other: E | Term[E] | Maybe[E]) -> Bool:  # type: ignore[override]
        return ~(self == other)

    def __lt__(self, other: Term[E]) -> Bool:
        from stagewright.spec.terms.order import compared

        return compared(Op.LT, self.node, other, "<")

    def __le__(self, other: Term[E]) -> Bool:
        from stagewright.spec.terms.order import compared

        return compared(Op.LE, self.node, other, "<=")

    def __gt__(self, other: Term[E]) -> Bool:
        from stagewright.spec.terms.order import compared

        return compared(Op.LT, self.node, other, ">")

    def __ge__(self, other: Term[E]) -> Bool:
        from stagewright.spec.terms.order import compared

        return compared(Op.LE, self.node, other, ">=")

    @property
    def next(self) -> Term[E]:
        """The member of a ring that comes after it; after the last comes the first."""
        from stagewright.spec.terms.order import beside

        return Term(beside(Op.NEXT, self._placed("next"), "next"))

    @property
    def previous(self) -> Term[E]:
        """The member of a ring that comes before it; before the first comes the last."""
        from stagewright.spec.terms.order import beside

        return Term(beside(Op.PREVIOUS, self._placed("previous"), "previous"))

    @property
    def next_or_none(self) -> Maybe[E]:
        """The member of an ordered entity that comes after it; after the last there is none."""
        from stagewright.spec.terms.order import beside_or_none

        return cast("Maybe[E]", beside_or_none(Op.NEXT, self.node, "next_or_none"))

    @property
    def previous_or_none(self) -> Maybe[E]:
        """The member of an ordered entity that comes before it; before the first there is none."""
        from stagewright.spec.terms.order import beside_or_none

        return cast("Maybe[E]", beside_or_none(Op.PREVIOUS, self.node, "previous_or_none"))

    @property
    def is_first(self) -> Bool:
        """Whether it is the first member of an ordered entity."""
        from stagewright.spec.terms.order import first_of, ordered_kind

        return self == cast("Term[E]", first_of(ordered_kind(self.node, "n.is_first")))

    @property
    def is_last(self) -> Bool:
        """Whether it is the last member of an ordered entity."""
        from stagewright.spec.terms.order import last_of, ordered_kind

        return self == cast("Term[E]", last_of(ordered_kind(self.node, "n.is_last")))

    def _placed(self, word: str) -> Node:
        """Its node, unless its enum has a column of that name."""
        sort = self.node.sort
        if isinstance(sort, EnumSort) and any(hasattr(m, word) for m in sort.members):
            raise _symbolic_column(sort, word)
        return self.node

    @classmethod
    def of(cls, member: F) -> Term[F]:
        """A concrete enum member as a term: for the parameters of an action that another one joins."""
        return Term(lift(member, EnumSort(type(member)), "the member"))

    def any_of(self, *members: E | Term[E]) -> Bool:
        """True if it is one of `members`."""
        return _any_of(self, members)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            sort = self.node.sort
            if isinstance(sort, EnumSort) and any(hasattr(m, name) for m in sort.members):
                raise _symbolic_column(sort, name)
            raise AttributeError(f"a symbolic {sort} has no `{name}`")

    @overload
    def column(self, column: Callable[[E], bool]) -> Bool: ...
    @overload
    def column(self, column: Callable[[E], F]) -> Term[F]: ...
    @overload
    def column(self, column: Callable[[E], Set[F]]) -> SetOf[F]: ...
    @overload
    def column(self, column: Callable[[E, G], bool], other: Term[G], /) -> Bool: ...
    @overload
    def column(self, column: Callable[[E, G], F], other: Term[G], /) -> Term[F]: ...
    @overload
    def column(self, column: Callable[[E, G], Set[F]], other: Term[G], /) -> SetOf[F]: ...
    def column(self, column: Callable[..., Any], *others: object) -> Any:
        """A column of the enum's table at this member: `stage.column(lambda s: s.writes)`.

        A table of two enums is asked with a member of each: `held.column(lambda h, w: h < w, wanted)`.

        `column` is plain Python and is applied to every member once, when the definition is made. It gives
        a bool, a member of an enum, or a set of members. (Numbers and optional members have methods of
        their own, because type checkers cannot tell `bool` from `int`, or a member from none, here.)
        """
        from stagewright.spec.terms.choices import column_at

        return column_at(self.node, column, others)

    @overload
    def number_column(self, column: Callable[[E], int]) -> Number: ...
    @overload
    def number_column(self, column: Callable[[E, G], int], other: Term[G], /) -> Number: ...
    def number_column(self, column: Callable[..., int], *others: object) -> Number:
        """A column of numbers."""
        from stagewright.spec.terms.choices import column_at

        return cast("Number", column_at(self.node, column, others, Number))

    @overload
    def optional_column(self, column: Callable[[E], F | None]) -> Maybe[F]: ...
    @overload
    def optional_column(
        self, column: Callable[[E, G], F | None], other: Term[G], /
    ) -> Maybe[F]: ...
    def optional_column(self, column: Callable[..., F | None], *others: object) -> Maybe[F]:
        """A column of members, some of which are none."""
        from stagewright.spec.terms.choices import column_at

        return cast("Maybe[F]", column_at(self.node, column, others, Maybe))


class Maybe(Symbolic, Generic[E]):
    """A symbolic member of `E`, or none. Iterating visits the member if there is one."""

    __slots__ = ()

    def __eq__(self, other: E | Term[E] | Maybe[E] | None) -> Bool:  # type: ignore[override]
        right = lift(other, self.node.sort, "the right side of `==`")
        return Bool(apply(Op.EQ, BOOL, self.node, right))

    def __ne__(self, other: E | Term[E] | Maybe[E] | None) -> Bool:  # type: ignore[override]
        return ~(self == other)

    def is_none(self) -> Bool:
        return self == None  # noqa: E711

    def is_some(self) -> Bool:
        return ~self.is_none()

    def or_else(self, default: E | Term[E]) -> Term[E]:
        """The member, or `default` if there is none."""
        sort = self.node.sort
        assert isinstance(sort, OptionalSort)
        other = lift(default, sort.element, "the default of or_else(...)")
        return Term(apply(Op.OR_ELSE, sort.element, self.node, other))

    def any_of(self, *members: E | Term[E] | None) -> Bool:
        """True if it is one of `members`."""
        return _any_of(self, members)

    def __iter__(self) -> Iterator[Term[E]]:
        sort = self.node.sort
        assert isinstance(sort, OptionalSort)
        if not isinstance(sort.element, EntitySort | EnumSort):
            raise ExpressionError(
                f"cannot loop over {sort}",
                where=here(),
                help="compare it with `==`, or ask `.is_none()`",
            )
        for bound in bind(sort.element, lambda b: apply(Op.EQ, BOOL, self.node, b)):
            yield Term(bound)


class SetOf(Symbolic, Generic[E]):
    """A symbolic set. Iterating visits its members: `every(self.up[n] for n in self.replicas)`."""

    __slots__ = ()

    @classmethod
    def of(cls, first: Term[X] | X, *others: Term[X] | X) -> SetOf[X]:
        """The set of these members, `SetOf.of(p, q)`: as `{p, q}` in TLA+."""
        sorts = [node.sort for m in (first, *others) if (node := node_of(m, BOOL)) is not None]
        sort = next((s for s in sorts if isinstance(s, EnumSort | EntitySort)), None)
        if sort is None:
            raise ExpressionError(
                f"SetOf.of(...) is given {first!r}, which is no member of an enum or entity sort",
                where=here(),
                help="write members: `SetOf.of(p, q)`",
            )
        nodes = [lift(m, sort, "a member of SetOf.of(...)") for m in (first, *others)]
        return SetOf(apply(Op.SET, SetSort(sort), *nodes))

    def has(self, member: E | Term[E]) -> Bool:
        return Bool(apply(Op.MEMBER, BOOL, lift(member, self._element, "the member"), self.node))

    def __contains__(self, member: object) -> NoReturn:
        raise truth_asked()

    def __iter__(self) -> Iterator[Term[E]]:
        for bound in bind(self._element, lambda b: apply(Op.MEMBER, BOOL, b, self.node)):
            yield Term(bound)

    def __or__(self, other: SetOf[E] | Set[E]) -> SetOf[E]:
        return SetOf(apply(Op.UNION, self.node.sort, self.node, self._lift(other, "|")))

    def __and__(self, other: SetOf[E] | Set[E]) -> SetOf[E]:
        return SetOf(apply(Op.INTERSECTION, self.node.sort, self.node, self._lift(other, "&")))

    def __sub__(self, other: SetOf[E] | Set[E]) -> SetOf[E]:
        return SetOf(apply(Op.DIFFERENCE, self.node.sort, self.node, self._lift(other, "-")))

    def __eq__(self, other: SetOf[E] | Set[E]) -> Bool:  # type: ignore[override]
        return Bool(apply(Op.EQ, BOOL, self.node, self._lift(other, "==")))

    def __ne__(self, other: SetOf[E] | Set[E]) -> Bool:  # type: ignore[override]
        return ~(self == other)

    def __le__(self, other: SetOf[E] | Set[E]) -> Bool:
        return (self - other).is_empty()

    def is_empty(self) -> Bool:
        return Bool(apply(Op.EQ, BOOL, self.node, Literal(frozenset(), self.node.sort)))

    def size(self) -> Number:
        from stagewright.spec.terms.binding import count

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
        assert not isinstance(sort.element, RecordSort)
        return sort.element

    def _lift(self, other: object, operator: str) -> Node:
        return lift(other, self.node.sort, f"the right side of `{operator}`")


class MapOf(Symbolic, Generic[K, S, V]):
    """A symbolic total map; `self.learned[n]` reads one value and `self.learned[n] = v` assigns it."""

    __slots__ = ("_wrap",)

    if not TYPE_CHECKING:

        def __class_getitem__(cls, sorts: object) -> object:
            wanted = len(cls.__parameters__)
            if not isinstance(sorts, tuple) or len(sorts) != wanted:
                raise VariableError(
                    f"{cls.__name__}[...] is given the wrong number of sorts",
                    where=here(),
                    help="a variable `per(Node, ...)` needs no annotation; as one, a map has its key, what "
                    "is read and what may be assigned: `MapOf[Node, Term[Stage], Stage]`",
                )
            return super().__class_getitem__(sorts)

    def __init__(self, node: Node, wrap: Callable[[Node], S]) -> None:
        super().__init__(node)
        self._wrap = wrap

    def __getitem__(self, key: K | Term[K]) -> S:
        return self._wrap(reading(self._cell(key, here())))

    def __setitem__(self, key: K | Term[K], value: S | V) -> None:
        where = here()
        assign(self._cell(key, where), value, where)

    def __eq__(self, other: MapOf[K, S, V]) -> Bool:  # type: ignore[override]
        right = lift(other, self.node.sort, "the right side of `==`")
        return Bool(apply(Op.EQ, BOOL, self.node, right))

    def __ne__(self, other: MapOf[K, S, V]) -> Bool:  # type: ignore[override]
        return ~(self == other)

    def __iter__(self) -> NoReturn:
        sort = self.node.sort
        assert isinstance(sort, MapSort)
        raise ExpressionError(
            f"a map cannot be looped over; its keys are all of {sort.key}",
            where=here(),
            help=f"write `for k in {sort.key}`",
        )

    def _cell(self, key: object, where: Source) -> Node:
        sort = self.node.sort
        assert isinstance(sort, MapSort)
        node = lift(key, sort.key, "the key")
        check_key(node, sort.key)
        return Select(self.node, node, sort.value, where)


def _symbolic_column(sort: EnumSort, name: str) -> DefinitionError:
    return ExpressionError(
        f"`.{name}` belongs to a concrete {sort}, but this one is symbolic",
        where=here(),
        help=f"write `.column(lambda x: x.{name})`",
    )


class TableOf(MapOf[int, S, V]):
    """A symbolic total map from numbers; the key may be computed, but must stay within its bounds."""

    __slots__ = ()

    def __getitem__(self, key: int | Number | Term[int]) -> S:
        return self._wrap(reading(self._cell(key, here())))

    def __setitem__(self, key: int | Number | Term[int], value: S | V) -> None:
        where = here()
        assign(self._cell(key, where), value, where)


def _any_of(value: Term[Any] | Maybe[Any], members: tuple[Any, ...]) -> Bool:
    if not members:
        raise ExpressionError(
            "any_of() of no members is never true",
            where=here(),
            help="list the members: `x.any_of(A, B)`",
        )
    return Bool(apply(Op.OR, BOOL, *((value == m).node for m in members)))


def check_key(key: Node, wanted: Sort) -> None:
    """Refuse a number that may not be a key.

    Raises:
        ExpressionError: its bounds are not within those of the keys.
    """
    if not isinstance(wanted, IntSort) or not isinstance(key.sort, IntSort):
        return
    if key.sort.low < wanted.low or key.sort.high > wanted.high:
        raise ExpressionError(
            f"the key is a number in {key.sort}, but the keys are {wanted}",
            where=here(),
            help=f"keep it within: `least(…, {wanted.high})`, `greatest({wanted.low}, …)`"
            + (f", or `… % {wanted.high + 1}`" if wanted.low == 0 else ""),
        )


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
        case SetSort(RecordSort()) | BagSort() | SeqSort():
            from stagewright.spec.terms.messages import BagOf, QueueOf, RecordSet

            kind = {SetSort: RecordSet, BagSort: BagOf, SeqSort: QueueOf}[type(sort)]
            return cast("Callable[[Node], Any]", kind)
        case SetSort():
            return SetOf
        case MapSort(key, value):
            inner = facade(value)

            def wrapped(node: Node) -> MapOf[Any, Any, Any]:
                if isinstance(key, IntSort):
                    return TableOf[Any, Any](node, inner)
                return MapOf(node, inner)

            return wrapped
        case _:
            assert isinstance(sort, RecordSort)
            made: Callable[[Node], Any] = sort.kind
            return made


def reading(place: Node) -> Node:
    """A place that the user names; a scalar one is thereby read."""
    if not isinstance(place.sort, SetSort | MapSort | RecordSort | SeqSort):
        check_read(place)
    return place


def named(place: Node) -> Any:
    """The facade of a place that the user names."""
    return facade(place.sort)(reading(place))


def parameter(bound: Bound) -> Any:
    """The facade of an action's or property's parameter."""
    return facade(bound.sort)(bound)

"""State variables: descriptors that give a machine's attributes their sorts and their static types."""

from __future__ import annotations

from collections.abc import Callable, Collection, Set
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar, cast, overload

from stagewright.spec.declarations.fairness import FairWord
from stagewright.spec.definition import Actor, AnyValue, Fairness, Kept
from stagewright.spec.entities import Entity
from stagewright.spec.errors import VariableError
from stagewright.spec.nodes import BOOL, Literal
from stagewright.spec.sorts import (
    BoolSort,
    EntitySort,
    EnumSort,
    IntSort,
    KeySort,
    MapSort,
    OptionalSort,
    SetSort,
    Sort,
    name_of,
    sort_of,
)
from stagewright.spec.source import Source, here
from stagewright.spec.terms.conditions_and_numbers import Bool, Number
from stagewright.spec.terms.messages import BagOf, QueueOf, RecordSet
from stagewright.spec.terms.symbolic import Symbolic, assign
from stagewright.spec.terms.terms import MapOf, Maybe, SetOf, TableOf, Term, named
from stagewright.spec.terms.tracing import maps
from stagewright.spec.values import FrozenMap, Value

if TYPE_CHECKING:
    from stagewright.spec.declarations.budgets import BudgetName
    from stagewright.spec.declarations.records import Holder, Record

E = TypeVar("E", bound=Enum)
J = TypeVar("J", bound=Enum | Entity)
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
    kept: Kept = Kept.COMMITTED
    actor: Actor | None = None  # that holds what is volatile, or causes what is observed
    by_key: Callable[..., object] | None = None
    """The initial value as a function of the keys of all its maps, if it is one."""

    def __str__(self) -> str:
        return f"a variable ({self.sort})"

    def __set_name__(self, owner: type, name: str) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "owner", owner)

    name = ""
    owner: ClassVar[type | None] = None  # the machine or record that declares it

    @overload
    def __get__(self, holder: None, owner: type) -> Self: ...
    @overload
    def __get__(self, holder: Holder, owner: type) -> S: ...
    def __get__(self, holder: Holder | None, owner: type) -> S | Self:
        if holder is None:
            return self
        wrapped: S = named(holder.place_(self))
        return wrapped

    def __set__(self, holder: Holder, value: S | V) -> None:
        where = here()
        if self.constant and not maps():
            raise VariableError(
                f"`{self.name}` is declared constant and cannot be assigned",
                where=where,
                help="drop constant(...) from its declaration",
            )
        assign(holder.place_(self), value, where)

    @overload
    def step(
        self: Var[Term[E], E],
        source: E | Collection[E],
        target: E,
        *,
        fair: FairWord = ...,
        by: Actor | None = ...,
        spends: BudgetName | None = ...,
    ) -> Callable[[M], M]: ...
    @overload
    def step(
        self: Var[MapOf[Any, Term[E], E], Any],
        source: E | Collection[E],
        target: E,
        *,
        fair: FairWord = ...,
        by: Actor | None = ...,
        spends: BudgetName | None = ...,
    ) -> Callable[[M], M]: ...
    def step(
        self,
        source: Any,
        target: Any,
        *,
        fair: FairWord = Fairness.NONE,
        by: Actor | None = None,
        spends: BudgetName | None = None,
    ) -> Callable[[M], M]:
        """A transition of this variable from `source` (or one of several) to `target`.

        The decorated body adds requirements and further effects. For a variable `per(...)` entity the
        body's first parameter says whose value moves.
        """
        from stagewright.spec.declarations.actions import stepping

        return stepping(self, source, target, fair=fair, by=by, spends=spends)


def flag(init: bool | AnyValue = False, *, doc: str = "") -> FlagVar:
    """A variable that is true or false."""
    return _declared("flag", BOOL, init, doc)


@overload
def one_of(kind: type[E], *, init: E, doc: str = ...) -> Var[Term[E], E]: ...
@overload
def one_of(kind: type[X], *, init: AnyValue | Term[X] = ..., doc: str = ...) -> Var[Term[X], X]: ...
def one_of(kind: Any, *, init: Any = ANY, doc: str = "") -> Var[Any, Any]:
    """A variable that is a member of an enum or entity sort; by default it may start as any.

    Of an entity's members only ordered and named ones can be given: `init=Node.first`, `init=Node.root`.
    """
    return _declared("one_of", sort_of(kind, "one_of(...)"), init, doc)


def number(low: int, high: int, *, init: int | AnyValue | None = None, doc: str = "") -> NumberVar:
    """An integer variable in `low .. high`, both included; starts at `low` unless said otherwise."""
    if not (_is_int(low) and _is_int(high) and low <= high):
        raise VariableError(
            f"number({low!r}, {high!r}) has no values",
            where=here(),
            help="the bounds are whole numbers (low, high), both included",
        )
    return _declared("number", IntSort(low, high), low if init is None else init, doc)


def optional(
    kind: type[X], *, init: X | Term[X] | AnyValue | None = None, doc: str = ""
) -> Var[Maybe[X], X | Term[X] | None]:
    """A variable that is a member of an enum or entity sort, or none (as which it starts)."""
    return _declared("optional", OptionalSort(sort_of(kind, "optional(...)")), init, doc)


@overload
def set_of(kind: type[R], *, doc: str = ...) -> Var[RecordSet[R], RecordSet[R]]: ...
@overload
def set_of(
    kind: type[X], *, init: Set[X] | AnyValue = ..., doc: str = ...
) -> Var[SetOf[X], Set[X]]: ...
def set_of(kind: Any, *, init: Set[Any] | AnyValue = frozenset(), doc: str = "") -> Var[Any, Any]:
    """A variable that is a set of members of an enum or entity sort, or of records; starts empty."""
    from stagewright.spec.declarations.messages import message_sort

    start = frozenset(init) if isinstance(init, Set) else init
    return _declared("set_of", SetSort(message_sort(kind, "set_of(...)")), start, doc)


@overload
def per(key: type[K], value: Var[S, V], *, init: None = ...) -> Var[MapOf[K, S, V], V]: ...
@overload
def per(
    key: type[K],
    value: Var[MapOf[J, S, V], V],
    *,
    init: Callable[[Term[K], Term[J]], S | V],
) -> Var[MapOf[K, MapOf[J, S, V], V], V]: ...
@overload
def per(
    key: type[K], value: Var[TableOf[S, V], V], *, init: Callable[[Term[K], Number], S | V]
) -> Var[MapOf[K, TableOf[S, V], V], V]: ...
@overload
def per(
    key: type[K], value: Var[S, V], *, init: Callable[[Term[K]], S | V]
) -> Var[MapOf[K, S, V], V]: ...
@overload
def per(
    key: Var[Number, int], value: Var[S, V], *, init: Callable[[Number], S | V] | None = ...
) -> Var[TableOf[S, V], V]: ...
def per(key: Any, value: Any, *, init: Callable[..., object] | None = None) -> Any:
    """One variable for every member of an enum or entity sort, or for every number of some bounds.

    `learned = per(Node, one_of(Stage))`, `slots = per(number(0, 5), optional(Task))`. With `init`, a
    function of the key (of several maps in each other: of all their keys, outermost first), each starts
    as that says: `parent = per(Node, one_of(Node), init=lambda n: n)`.
    """
    given = cast("Var[Any, Any] | type[Any]", key)
    sort = given.sort if isinstance(given, Var) else sort_of(given, "per(...)")
    sort = _key_sort(key, sort, value)
    of = cast("Var[Any, Any]", value)
    by_key = init
    if by_key is None and of.by_key is not None:
        by_key = _without_first(of.by_key)
    marks = of.constant, of.doc, of.kept, of.actor
    return Var[Any, Any](MapSort(sort, of.sort), of.initial, here(), *marks, by_key)


def _without_first(inner: Callable[..., object]) -> Callable[..., object]:
    """The function of an inner map's keys as one of all keys."""

    def by_key(_outer: object, *keys: object) -> object:
        return inner(*keys)

    return by_key


def _key_sort(key: object, sort: Sort, value: object) -> KeySort:
    if not isinstance(sort, EnumSort | EntitySort | IntSort):
        raise VariableError(
            f"per(...) is given a variable that is a {sort} as its key",
            where=here(),
            help="write an enum, an entity sort, or `number(low, high)`",
        )
    if isinstance(key, Var) and isinstance(sort, IntSort) and key.initial != sort.low:
        raise VariableError(
            "the numbers that are keys of per(...) have no initial value",
            where=here(),
            help=f"write `per(number({sort.low}, {sort.high}), …)`",
        )
    if not isinstance(value, Var):  # not every caller is type-checked
        raise VariableError(
            f"per({sort}, …) is given {value!r}, which is no variable",
            where=here(),
            help=f"write `per({sort}, flag())`, `per({sort}, one_of(…))`, …",
        )
    return sort


def record(kind: type[R], *, doc: str = "") -> Var[R, R]:
    """A variable with the fields of a `Record` class; each starts as its field says."""
    from stagewright.spec.declarations.records import (
        Record,
        record_initial,
        record_sort,
        variables_of,
    )

    given = cast("object", kind)
    if isinstance(given, type) and issubclass(given, Record):
        for name, field in variables_of(kind).items():
            if field.by_key is not None:
                raise VariableError(
                    f"the field `{name}` of {kind.__name__} starts as a function of its key",
                    where=field.where,
                    help="a record's fields start alike: say it in an @initially method of the machine",
                )
    if not (isinstance(given, type) and issubclass(given, Record)) or not record_sort(kind).fields:
        raise VariableError(
            f"record({name_of(kind)}): it has no fields",
            where=here(),
            help="derive the class from Record and declare its fields as variables: `present = flag()`",
        )
    for name, field in variables_of(kind).items():
        if field.kept is not Kept.COMMITTED:
            raise VariableError(
                f"the field `{name}` of {kind.__name__} is {field.kept.value}",
                where=field.where,
                help=f"a record is kept as a whole: write `{field.kept.value}(record({kind.__name__}))`",
            )
    return Var(record_sort(kind), record_initial(kind), here(), doc=doc)


def constant(variable: Var[S, V]) -> Var[S, V]:
    """A variable that keeps its initial value for ever: what a run cannot change, but runs differ in."""
    _check_variable("constant", variable)
    return replace(variable, constant=True)


def volatile(variable: Var[S, V], *, of: Actor) -> Var[S, V]:
    """A variable that only the memory of its owner holds: `volatile(one_of(Progress, …), of=COORDINATOR)`.

    When its owner fails it is again as it starts. All other variables are committed, if nothing is said.
    """
    _check_variable("volatile", variable)
    if _leaves_open(variable.initial):
        raise VariableError(
            "a volatile variable may start as anything",
            where=here(),
            help="give it an `init`: that is what its owner knows when it starts anew",
        )
    return replace(variable, kept=Kept.VOLATILE, actor=of)


def observed(variable: Var[S, V], *, of: Actor) -> Var[S, V]:
    """A variable that is a fact of the world, `of` those who cause it: `observed(set_of(Node), of=NETWORK)`.

    Nobody commits it, and who fails finds it as it was. What a running system sees of it, it reports as
    steps of the definition.
    """
    _check_variable("observed", variable)
    return replace(variable, kept=Kept.OBSERVED, actor=of)


def history(variable: Var[S, V]) -> Var[S, V]:
    """A variable that only the model has, for promises to look at: `worked = history(flag())`.

    No guard reads it, and no effect but those on other such variables; what runs does without it.
    """
    _check_variable("history", variable)
    return replace(variable, kept=Kept.HISTORY)


def _check_variable(word: str, variable: object) -> None:
    if not isinstance(variable, Var):
        raise VariableError(
            f"{word}({variable!r}) is no variable",
            where=here(),
            help=f"write `{word}(one_of(…))`, `{word}(per(…, …))`, …",
        )


def _leaves_open(initial: object) -> bool:
    """Whether a variable, or a field of it, may start as anything."""
    if isinstance(initial, FrozenMap):
        return any(map(_leaves_open, cast("FrozenMap[object, object]", initial).values()))
    return isinstance(initial, AnyValue)


def _declared(
    what: str,
    sort: BoolSort | IntSort | EnumSort | EntitySort | OptionalSort | SetSort,
    init: Any,
    doc: str,
) -> Var[Any, Any]:
    """A variable whose initial value is checked here, where its line is known."""
    where = here()
    if isinstance(cast("object", init), Symbolic) and isinstance(init.node, Literal):
        init = cast("Any", init.node.value)
    if not isinstance(init, AnyValue) and not _may_start(sort, init):
        raise VariableError(
            f"{what}(...) of {sort} cannot start as {name_of(init)}",
            where=where,
            help=_start_mend(sort),
        )
    return Var(sort, init, where, doc=doc)


def _may_start(sort: Sort, init: object) -> bool:
    match sort:
        case BoolSort():
            return isinstance(init, bool)
        case IntSort(low, high):
            return isinstance(init, int) and _is_int(init) and low <= init <= high
        case EnumSort(kind):
            return isinstance(init, kind)
        case EntitySort(kind):  # members without an order and without a name are interchangeable
            known = max(int(kind.is_ordered), len(kind.member_names))
            return isinstance(init, kind) and init.index < known
        case OptionalSort(element):
            return init is None or _may_start(element, init)
        case SetSort(element):
            return isinstance(init, frozenset) and all(
                _may_start(element, m) for m in cast("frozenset[object]", init)
            )
        case _:
            return False


def _start_mend(sort: Sort) -> str:
    match sort:
        case BoolSort():
            return "write `init=True`, `init=False` or `init=ANY`"
        case IntSort():
            return f"write a number in {sort}, or `init=ANY`"
        case EnumSort(kind):
            return f"write `init={kind.__name__}.{next(iter(kind)).name}` or another member, or `init=ANY`"
        case OptionalSort(EnumSort() as element):
            return f"write `init=None`, or {_start_mend(element).removeprefix('write ')}"
        case SetSort(EnumSort(kind)):
            return f"write a set of members: `init={{{kind.__name__}.{next(iter(kind)).name}}}`, or `init=ANY`"
        case EntitySort(kind) if kind.is_ordered or kind.member_names:
            name = "first" if kind.is_ordered else kind.member_names[0]
            return (
                f"write `init={kind.__name__}.{name}`, or `init=ANY` and say in an @initially method "
                "how it may start"
            )
        case _:
            return (
                "no member of an entity sort can be named: write `init=ANY` "
                "and say in an @initially method how it may start"
            )


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool | Enum)


FlagVar = Var[Bool, bool]
"""The type of `flag(...)`. Pyright wants these on variables that methods assign: `ok: FlagVar = flag()`."""

NumberVar = Var[Number, int]
"""The type of `number(...)`."""

OneVar = Var[Term[X], X]
"""The type of `one_of(...)`: `stage: OneVar[Stage] = one_of(Stage, init=Stage.none)`."""

OptionalVar = Var[Maybe[X], X | Term[X] | None]
"""The type of `optional(...)`."""

SetVar = Var[SetOf[X], Set[X]]
"""The type of `set_of(...)`."""

RecordSetVar = Var[RecordSet[R], RecordSet[R]]
"""The type of `set_of(...)` of records."""

BagVar = Var[BagOf[S, V], BagOf[S, V]]
"""The type of `bag(...)`."""

QueueVar = Var[QueueOf[S, V], QueueOf[S, V]]
"""The type of `queue(...)`: `sent: QueueVar[Message, Message] = queue(Message, 3)`."""

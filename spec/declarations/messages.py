"""Variables that hold messages: `queue(...)` and `bag(...)`, and what a queue, a bag or a set of records can hold."""

from __future__ import annotations

from enum import Enum
from typing import Any, TypeVar, cast, overload

from stagewright.spec.declarations.records import Record, record_sort
from stagewright.spec.declarations.variables import Var
from stagewright.spec.entities import Entity
from stagewright.spec.errors import VariableError
from stagewright.spec.sorts import (
    BagSort,
    IntSort,
    MapSort,
    OptionalSort,
    RecordSort,
    SeqSort,
    SetSort,
    Sort,
    sort_of,
)
from stagewright.spec.source import here
from stagewright.spec.terms.messages import BagOf, QueueOf
from stagewright.spec.terms.terms import Term

R = TypeVar("R", bound=Record)
X = TypeVar("X", bound=Enum | Entity)
S = TypeVar("S")
V = TypeVar("V")


@overload
def queue(of: type[R], capacity: int, *, doc: str = ...) -> Var[QueueOf[R, R], QueueOf[R, R]]: ...
@overload
def queue(
    of: type[X], capacity: int, *, doc: str = ...
) -> Var[QueueOf[Term[X], X], QueueOf[Term[X], X]]: ...
@overload
def queue(of: Var[S, V], capacity: int, *, doc: str = ...) -> Var[QueueOf[S, V], QueueOf[S, V]]: ...
def queue(of: Any, capacity: int, *, doc: str = "") -> Var[Any, Any]:
    """A variable that is a sequence of at most `capacity` elements; starts empty.

    `of`: a record, enum or entity sort, `flag()` or `number(low, high)`.
    """
    where = here()
    if isinstance(cast("object", capacity), bool) or not 1 <= capacity <= MOST:
        raise VariableError(
            f"queue(…, {capacity!r}) has no room for elements, or too much",
            where=where,
            help=f"its capacity is a number from 1 to {MOST}",
        )
    element = of.sort if isinstance(of, Var) else message_sort(of, "queue(...)")
    if isinstance(element, OptionalSort | SetSort | MapSort | SeqSort):
        raise VariableError(
            f"queue(...) is given {element}, which cannot stand in a queue",
            where=where,
            help="put it into a Record: its fields may be optional",
        )
    return Var(SeqSort(element, capacity), (), where, doc=doc)


MOST = 64
"""The largest capacity of a queue, and of a bag for one member: each place is part of every state."""


@overload
def bag(of: type[R], *, at_most: int, doc: str = ...) -> Var[BagOf[R, R], BagOf[R, R]]: ...
@overload
def bag(
    of: type[X], *, at_most: int, doc: str = ...
) -> Var[BagOf[Term[X], X], BagOf[Term[X], X]]: ...
def bag(of: Any, *, at_most: int, doc: str = "") -> Var[Any, Any]:
    """A variable that is a set of which each member may be there up to `at_most` times; starts empty."""
    where = here()
    if isinstance(cast("object", at_most), bool) or not 1 <= at_most <= MOST:
        raise VariableError(
            f"bag(…, at_most={at_most!r}) has no room for members, or too much",
            where=where,
            help=f"each member may be there from 1 to {MOST} times",
        )
    return Var(BagSort(message_sort(of, "bag(...)"), IntSort(0, at_most)), 0, where, doc=doc)


def message_sort(kind: object, what: str) -> Any:
    """The sort of an enum, entity or record class; `what` is named where it is none of these."""
    given = kind
    if not (isinstance(kind, type) and issubclass(kind, Record)):
        return sort_of(given, what)
    sort = record_sort(kind)
    if not sort.fields:
        raise VariableError(
            f"{what} is given {kind.__name__}, which has no fields",
            where=here(),
            help="declare its fields as variables: `sender = one_of(Node)`",
        )
    for name, field in sort.fields:
        check_plain(kind.__name__, name, field, what)
    return sort


def check_plain(kind: str, name: str, field: Sort, what: str) -> None:
    """Refuse a field that is no scalar."""
    if isinstance(field, SetSort | MapSort | RecordSort | SeqSort):
        raise VariableError(
            f"{what} is given {kind}, of which the field `{name}` is {field}",
            where=here(),
            help="the fields of a record that is sent are flags, numbers, members of enums or entities, "
            "or optional members; a set of few is a flag for each",
        )

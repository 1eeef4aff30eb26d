"""The expression tree: plain data with structural equality and no operators.

Every node knows where it was written (`where`, outside of equality). Quantifiers, columns, sets and
entity sorts stay as they were written: a backend may expand entities to a scope or leave them
uninterpreted. What users write with are the facades of `terms.py`, which hold a node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from stagewright.spec.sorts import (
    BagSort,
    BoolSort,
    BoundSort,
    IntSort,
    MapSort,
    OptionalSort,
    RecordSort,
    SeqSort,
    SetSort,
    Sort,
)
from stagewright.spec.source import Source
from stagewright.spec.values import Value

BOOL = BoolSort()


class Op(Enum):
    """Operations with a fixed meaning in every backend."""

    NOT = auto()
    AND = auto()  # n-ary; of none: true
    OR = auto()  # n-ary; of none: false
    EQ = auto()  # scalars of one sort (an optional also with its element), sets
    LT = auto()
    LE = auto()
    ADD = auto()
    SUB = auto()
    MUL = auto()
    DIV = auto()  # rounded down; the divisor's sort is positive
    MOD = auto()  # never negative; the divisor's sort is positive
    LEAST = auto()  # of one or more numbers
    GREATEST = auto()
    IF = auto()  # condition, then, otherwise
    OR_ELSE = auto()  # of an optional value and a default: the value, or the default if it is none
    MEMBER = auto()  # element, set or sequence
    SET = auto()  # of these members
    UNION = auto()
    INTERSECTION = auto()
    DIFFERENCE = auto()
    NEXT = auto()  # of a member of an ordered entity; of the last: the first in a ring, else none
    PREVIOUS = auto()
    LAST = auto()  # of no arguments: the last member of the ordered entity that is its sort
    RECORD = auto()  # the fields' values, in the order of the record's sort
    LENGTH = auto()  # of a sequence
    ITEM = auto()  # sequence, index from 0 on; outside of the sequence: the first value of its sort
    APPEND = auto()  # sequence, element
    INSERT = auto()  # sequence, index, element; the same sequence where the index is outside
    REMOVE = auto()  # sequence, index; the same sequence where the index is outside


class Quantity(Enum):
    """What a quantifier says of its body: a condition up to COUNT, then a number."""

    EVERY = auto()
    SOME = auto()
    COUNT = auto()
    TOTAL = auto()  # the sum of a number over all members
    LEAST = auto()
    GREATEST = auto()


@dataclass(frozen=True)
class Literal:
    """A concrete value of a sort. Of entities only ordered and named members can be written."""

    value: Value
    sort: Sort
    where: Source | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Bound:
    """An action parameter, a property parameter or a quantified variable; `serial` makes it unique."""

    name: str
    sort: BoundSort
    serial: int
    where: Source | None = field(default=None, compare=False)

    def __hash__(self) -> int:
        return self.serial  # unique; hashing the sort, too, takes long


@dataclass(frozen=True)
class Read:
    """A variable in the old state, or in the new one (`new`, step properties only)."""

    variable: str
    sort: Sort
    new: bool = False
    where: Source | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Select:
    """The value of a total map at a key."""

    base: Node
    key: Node
    sort: Sort
    where: Source | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Field:
    """A field of a record."""

    base: Node
    name: str
    sort: Sort
    where: Source | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Apply:
    """An operation on expressions."""

    op: Op
    args: tuple[Node, ...]
    sort: Sort
    where: Source | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Column:
    """A column of an enum: `values[i]` belongs to the i-th member of the index's sort."""

    values: tuple[Value, ...]
    index: Node
    sort: Sort
    where: Source | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Quantified:
    """EVERY/SOME: a boolean; COUNT: how many members of the bound's sort satisfy the body.

    TOTAL/LEAST/GREATEST: of a number over all members, of which there is always one.
    """

    quantity: Quantity
    bound: Bound
    body: Node
    sort: Sort
    where: Source | None = field(default=None, compare=False)


Node = Literal | Bound | Read | Select | Field | Apply | Column | Quantified

TRUE = Literal(True, BOOL)
FALSE = Literal(False, BOOL)


def conjunction(nodes: list[Node]) -> Node:
    """All of them; a single one as it is."""
    return nodes[0] if len(nodes) == 1 else Apply(Op.AND, tuple(nodes), BOOL)


def for_all(bounds: Sequence[Bound], node: Node) -> Node:
    """A condition for every value of some names."""
    return _quantified(Quantity.EVERY, bounds, node)


def for_some(bounds: Sequence[Bound], node: Node) -> Node:
    """The same for some value of each."""
    return _quantified(Quantity.SOME, bounds, node)


def _quantified(quantity: Quantity, bounds: Sequence[Bound], node: Node) -> Node:
    for bound in reversed(bounds):
        node = Quantified(quantity, bound, node, BOOL)
    return node


def children(node: Node) -> tuple[Node, ...]:
    """The direct sub-expressions."""
    match node:  # without positions: this is called more often than anything else here
        case Apply():
            return node.args
        case Literal() | Bound() | Read():
            return ()
        case Select():
            return (node.base, node.key)
        case Field():
            return (node.base,)
        case Column():
            return (node.index,)
        case Quantified():
            return (node.body,)


def variables_in(node: Node) -> set[str]:
    """The names of the variables an expression reads."""
    if isinstance(node, Read):
        return {node.variable}
    return {v for child in children(node) for v in variables_in(child)}


def bounds_in(node: Node) -> set[Bound]:
    """The bound variables and parameters an expression mentions."""
    found = set[Bound]()
    left = [node]
    while left:
        inner = left.pop()
        if isinstance(inner, Bound):
            found.add(inner)
        else:
            left += children(inner)
    return found


def free_bounds(node: Node) -> set[Bound]:
    """The bound variables and parameters that an expression does not quantify itself."""
    found = set[Bound]()
    _add_free_bounds(node, (), found)
    return found


def _add_free_bounds(node: Node, quantified: tuple[Bound, ...], found: set[Bound]) -> None:
    if isinstance(node, Bound):
        if node not in quantified:
            found.add(node)
        return
    if isinstance(node, Quantified):
        quantified = (*quantified, node.bound)
    for child in children(node):
        _add_free_bounds(child, quantified, found)


def is_place(node: Node) -> bool:
    """Whether an expression names a part of the state, so that it can be assigned."""
    match node:
        case Read(_, _, new):
            return not new
        case Select(base) | Field(base):
            return is_place(base)
        case _:
            return False


def root_variable(place: Node) -> str:
    """The variable that a place is part of."""
    match place:
        case Read(variable):
            return variable
        case Select(base) | Field(base):
            return root_variable(base)
        case _:
            raise AssertionError(f"not a place: {place}")


def fits(sort: Sort, target: Sort) -> bool:
    """Whether a value of `sort` may be compared with, or assigned to, `target`."""
    if sort is target:
        return True
    if isinstance(target, OptionalSort) and not isinstance(sort, OptionalSort):
        return fits(sort, target.element)
    if isinstance(sort, OptionalSort) and isinstance(target, OptionalSort):
        return fits(sort.element, target.element)
    if isinstance(sort, IntSort):
        return isinstance(target, IntSort)
    if isinstance(sort, RecordSort):
        return isinstance(target, RecordSort) and sort.kind is target.kind
    if isinstance(sort, MapSort):
        return (
            isinstance(target, MapSort)
            and isinstance(sort, BagSort) == isinstance(target, BagSort)
            and sort.key == target.key
            and fits(sort.value, target.value)
            and fits(target.value, sort.value)  # a map of optional values is coded differently
        )
    if isinstance(sort, SetSort):
        return isinstance(target, SetSort) and sort.element == target.element
    if isinstance(sort, SeqSort):  # what is too long for the target is found where it is assigned
        return isinstance(target, SeqSort) and sort.element == target.element
    return sort == target

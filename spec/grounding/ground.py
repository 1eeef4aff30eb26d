"""The ground form of a definition: flat integer cells, and expressions without names or quantifiers.

This is the seam between a definition and the backends that decide. `lowering.ground(definition, scope)`
makes a `GroundModel`; backends read nothing else. Values are integers: a boolean is 0 or 1, an enum
member its index, an entity its index, a bounded integer itself, an optional value 0 for none and 1 + i
for the i-th value.

Nodes are hash-consed by their `Builder`: two equal expressions are one object, so a backend may memoise
on `node.id` (dense, children before parents).
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING

from stagewright.spec.grounding.families import Input
from stagewright.spec.sorts import IntSort
from stagewright.spec.terms.intervals import (
    Interval,
    greatest_of,
    least_of,
    product_of,
    quotient_of,
    remainder_of,
)

if TYPE_CHECKING:
    from stagewright.spec.definition import Action, Definition, Property
    from stagewright.spec.scope import Scope
    from stagewright.spec.sorts import ScalarSort
    from stagewright.spec.values import State, Value


class GroundOp(Enum):
    """What a ground node computes. Booleans are the integers 0 and 1."""

    __hash__ = object.__hash__  # an Enum hashes its name, in Python, at every look-up

    CONST = auto()  # value
    CELL = auto()  # the cell with index `value`, in the old state
    NEXT = auto()  # the cell with index `value`, in the new state (step properties only)
    NOT = auto()
    AND = auto()  # n-ary, n >= 2
    OR = auto()  # n-ary, n >= 2
    EQ = auto()
    LT = auto()
    LE = auto()
    ADD = auto()
    SUB = auto()
    MUL = auto()
    DIV = auto()  # rounded down; the divisor is at least 1
    MOD = auto()  # never negative; the divisor is at least 1
    MIN = auto()
    MAX = auto()
    IF = auto()  # condition, then, otherwise
    TABLE = auto()  # table[index]; the index is always within the table


@dataclass(frozen=True, eq=False, slots=True)
class GroundNode:
    """One operation. `low <= result <= high` always; `args` have smaller ids."""

    id: int
    op: GroundOp
    args: tuple[GroundNode, ...]
    value: int  # CONST: the constant; CELL, NEXT: the cell's index; else 0
    table: tuple[int, ...]  # TABLE only
    low: int
    high: int
    boolean: bool

    @property
    def interval(self) -> Interval:
        """The lowest and the highest value."""
        return self.low, self.high

    def __repr__(self) -> str:
        match self.op:
            case GroundOp.CONST:
                return str(self.value)
            case GroundOp.CELL:
                return f"c{self.value}"
            case GroundOp.NEXT:
                return f"c{self.value}'"
            case GroundOp.TABLE:
                return f"{list(self.table)}[{self.args[0]!r}]"
            case _:
                return f"{self.op.name.lower()}({', '.join(map(repr, self.args))})"


_Key = tuple[GroundOp, bool, tuple[int, ...], int, tuple[int, ...]]


class Builder:
    """Makes hash-consed nodes, folding constants and simple identities on the way."""

    def __init__(self, ranges: Iterable[tuple[int, int, bool]]) -> None:
        """`ranges`: (lowest value, highest value, is boolean) of each cell, by index."""
        self.nodes: list[GroundNode] = []
        self._known: dict[_Key, GroundNode] = {}
        self._ranges = list(ranges)
        self._two = {
            GroundOp.EQ: self.eq,
            GroundOp.LT: self.lt,
            GroundOp.LE: self.le,
            GroundOp.ADD: self.add,
            GroundOp.SUB: self.sub,
            GroundOp.MUL: self.mul,
            GroundOp.DIV: self.div,
            GroundOp.MOD: self.mod,
            GroundOp.MIN: self.min_,
            GroundOp.MAX: self.max_,
        }
        self.false = self.const(0, boolean=True)
        self.true = self.const(1, boolean=True)

    def _make(
        self,
        op: GroundOp,
        args: tuple[GroundNode, ...],
        low: int,
        high: int,
        boolean: bool,
        value: int = 0,
        table: tuple[int, ...] = (),
    ) -> GroundNode:
        # For a constant or a table the only difference between 1 and True is `boolean`: keep them apart.
        key = (op, boolean, tuple(a.id for a in args), value, table)
        if (known := self._known.get(key)) is not None:
            return known
        node = GroundNode(len(self.nodes), op, args, value, table, low, high, boolean)
        self.nodes.append(node)
        self._known[key] = node
        return node

    def forget(self, number: int) -> None:
        """Keep only the first so many nodes: those made since are used no more."""
        for _ in range(len(self.nodes) - number):
            self.nodes.pop()
            self._known.popitem()  # the youngest, as dictionaries keep their order

    def const(self, value: int, *, boolean: bool = False) -> GroundNode:
        return self._make(GroundOp.CONST, (), value, value, boolean, value)

    def cell(self, index: int, *, new: bool = False) -> GroundNode:
        low, high, boolean = self._ranges[index]
        op = GroundOp.NEXT if new else GroundOp.CELL
        return self._make(op, (), low, high, boolean, index)

    def input(self, low: int, high: int) -> GroundNode:
        """A number that is given from outside, in place of a cell beyond those of the state."""
        self._ranges.append((low, high, False))
        return self.cell(len(self._ranges) - 1)

    def not_(self, a: GroundNode) -> GroundNode:
        if a.op is GroundOp.CONST:
            return self.false if a.value else self.true
        if a.op is GroundOp.NOT:
            return a.args[0]
        return self._make(GroundOp.NOT, (a,), 0, 1, True)

    def _junction(self, op: GroundOp, args: Iterable[GroundNode]) -> GroundNode:
        neutral, absorbing = (
            (self.true, self.false) if op is GroundOp.AND else (self.false, self.true)
        )
        flat: dict[int, GroundNode] = {}
        for arg in args:
            for a in arg.args if arg.op is op else (arg,):
                if a is absorbing or (a.op is GroundOp.NOT and a.args[0].id in flat):
                    return absorbing
                if a is not neutral:
                    flat[a.id] = a
        for a in flat.values():
            if a.op is GroundOp.NOT and a.args[0].id in flat:
                return absorbing
        parts = tuple(flat.values())
        if not parts:
            return neutral
        return parts[0] if len(parts) == 1 else self._make(op, parts, 0, 1, True)

    def and_(self, args: Iterable[GroundNode]) -> GroundNode:
        return self._junction(GroundOp.AND, args)

    def or_(self, args: Iterable[GroundNode]) -> GroundNode:
        return self._junction(GroundOp.OR, args)

    def eq(self, a: GroundNode, b: GroundNode) -> GroundNode:
        if a is b:
            return self.true
        if a.high < b.low or b.high < a.low:
            return self.false
        if a.op is GroundOp.CONST and b.op is GroundOp.CONST:
            return self.true if a.value == b.value else self.false
        if a.op is GroundOp.CONST or (b.op is not GroundOp.CONST and b.id < a.id):
            a, b = b, a
        if a.boolean and b.op is GroundOp.CONST:
            return a if b.value else self.not_(a)
        return self._make(GroundOp.EQ, (a, b), 0, 1, True)

    def lt(self, a: GroundNode, b: GroundNode) -> GroundNode:
        if a.high < b.low:
            return self.true
        if a is b or a.low >= b.high:
            return self.false
        return self._make(GroundOp.LT, (a, b), 0, 1, True)

    def le(self, a: GroundNode, b: GroundNode) -> GroundNode:
        if a is b or a.high <= b.low:
            return self.true
        if a.low > b.high:
            return self.false
        return self._make(GroundOp.LE, (a, b), 0, 1, True)

    def add(self, a: GroundNode, b: GroundNode) -> GroundNode:
        if a.op is GroundOp.CONST and b.op is GroundOp.CONST:
            return self.const(a.value + b.value)
        if b.op is GroundOp.CONST and b.value == 0 and not a.boolean:
            return a
        return self._make(GroundOp.ADD, (a, b), a.low + b.low, a.high + b.high, False)

    def sub(self, a: GroundNode, b: GroundNode) -> GroundNode:
        if a.op is GroundOp.CONST and b.op is GroundOp.CONST:
            return self.const(a.value - b.value)
        if b.op is GroundOp.CONST and b.value == 0 and not a.boolean:
            return a
        return self._make(GroundOp.SUB, (a, b), a.low - b.high, a.high - b.low, False)

    def mul(self, a: GroundNode, b: GroundNode) -> GroundNode:
        if a.op is GroundOp.CONST:
            a, b = b, a
        if b.op is GroundOp.CONST:
            if a.op is GroundOp.CONST or b.value == 0:
                return self.const(a.value * b.value)
            if b.value == 1 and not a.boolean:
                return a
        low, high = product_of(a.interval, b.interval)
        return self._make(GroundOp.MUL, (a, b), low, high, False)

    def div(self, a: GroundNode, b: GroundNode) -> GroundNode:
        """`a // b`, rounded down; where `b` might not be positive, 1 stands for it."""
        b = self.max_(b, self.const(1))
        low, high = quotient_of(a.interval, b.interval)
        if low == high:
            return self.const(low)
        if b.op is GroundOp.CONST and b.value == 1 and not a.boolean:
            return a
        return self._make(GroundOp.DIV, (a, b), low, high, False)

    def mod(self, a: GroundNode, b: GroundNode) -> GroundNode:
        """`a % b`, never negative; where `b` might not be positive, 1 stands for it."""
        b = self.max_(b, self.const(1))
        low, high = remainder_of(a.interval, b.interval)
        if a.op is GroundOp.CONST and b.op is GroundOp.CONST:
            return self.const(a.value % b.value)
        if a.low >= 0 and a.high < b.low and not a.boolean:
            return a
        if low == high:
            return self.const(low)
        return self._make(GroundOp.MOD, (a, b), low, high, False)

    def min_(self, a: GroundNode, b: GroundNode) -> GroundNode:
        return self._extreme(GroundOp.MIN, a, b, least_of(a.interval, b.interval))

    def max_(self, a: GroundNode, b: GroundNode) -> GroundNode:
        return self._extreme(GroundOp.MAX, a, b, greatest_of(a.interval, b.interval))

    def _extreme(
        self, op: GroundOp, a: GroundNode, b: GroundNode, interval: Interval
    ) -> GroundNode:
        low, high = interval
        if low == high:
            return self.const(low)
        for one, other in ((a, b), (b, a)):
            always = one.high <= other.low if op is GroundOp.MIN else one.low >= other.high
            if (always or one is other) and not one.boolean:
                return one
        if b.id < a.id:
            a, b = b, a
        return self._make(op, (a, b), low, high, False)

    def operation(
        self,
        op: GroundOp,
        args: Sequence[GroundNode],
        *,
        table: tuple[int, ...] = (),
        boolean: bool = False,
    ) -> GroundNode:
        """An operation on these arguments; `table` and `boolean` are those of a TABLE."""
        match op:
            case GroundOp.NOT:
                return self.not_(args[0])
            case GroundOp.AND:
                return self.and_(args)
            case GroundOp.OR:
                return self.or_(args)
            case GroundOp.IF:
                return self.if_(*args)
            case GroundOp.TABLE:
                return self.table(table, args[0], boolean=boolean)
            case _:
                return self._two[op](*args)

    def if_(self, c: GroundNode, a: GroundNode, b: GroundNode) -> GroundNode:
        if c.op is GroundOp.CONST:
            return a if c.value else b
        if a is b:
            return a
        boolean = a.boolean and b.boolean
        if boolean:
            return self.or_((self.and_((c, a)), self.and_((self.not_(c), b))))
        return self._make(GroundOp.IF, (c, a, b), min(a.low, b.low), max(a.high, b.high), boolean)

    def table(self, values: tuple[int, ...], index: GroundNode, *, boolean: bool) -> GroundNode:
        """`values[index]`; the index must lie within the table for every state."""
        assert index.low >= 0
        assert index.high < len(values)
        used = values[index.low : index.high + 1]
        if min(used) == max(used):
            return self.const(used[0], boolean=boolean)
        return self._make(GroundOp.TABLE, (index,), min(used), max(used), boolean, 0, values)


@dataclass(frozen=True)
class Cell:
    """One scalar of the state: values `low .. low + size - 1`."""

    index: int
    name: str  # as a person writes it: `learned[node0]`, `row.present`
    variable: str
    path: tuple[Value, ...]  # keys and field names below the variable
    sort: ScalarSort  # as declared; without the bounds of a check a number may be larger
    low: int
    size: int

    @property
    def high(self) -> int:
        return self.low + self.size - 1

    @property
    def declared(self) -> int:
        """The largest code that it has within the bounds of a check."""
        return self.sort.high if isinstance(self.sort, IntSort) else self.high


@dataclass(frozen=True)
class GroundRequirement:
    """A named guard of one ground step."""

    name: str
    condition: GroundNode


@dataclass(frozen=True)
class GroundStep:
    """One action with concrete parameters. Enabled when `guard` holds; then all updates at once.

    A cell without an update keeps its value. An update may be out of its cell's bounds only if the
    definition is wrong: `overflows` is then not constant false, and a backend must report a state in
    which guard and overflow both hold as a violation of the bounds.
    """

    index: int
    action: Action
    arguments: tuple[tuple[str, Value], ...]
    requirements: tuple[GroundRequirement, ...]
    guard: GroundNode
    updates: Mapping[int, GroundNode]
    overflows: GroundNode
    inputs: tuple[Input, ...] = ()  # of a template: what it leaves open (`families.py`)

    @property
    def label(self) -> str:
        """`learn(node1)`: the action as a person writes it."""
        from stagewright.spec.values import show

        if not self.arguments:
            return self.action.name
        return f"{self.action.name}({', '.join(show(v) for _, v in self.arguments)})"


@dataclass(frozen=True)
class GroundProperty:
    """One property with concrete parameters.

    Invariant: `condition` over the state. Step property: `condition` over old and new state. Reachable:
    `condition` is the goal. Leads-to: `premise` leads to `condition`; without a premise (eventually),
    every run comes to `condition`. Accepts: an invariant. Sometimes: some state, or step, satisfies `condition`.
    """

    property: Property
    arguments: tuple[tuple[str, Value], ...]
    condition: GroundNode
    premise: GroundNode | None = None

    @builtins.property  # `property` is a field here
    def label(self) -> str:
        from stagewright.spec.values import show

        if not self.arguments:
            return self.property.name
        return f"{self.property.name}({', '.join(show(v) for _, v in self.arguments)})"


@dataclass(frozen=True)
class GroundModel:
    """A definition at one scope, ready for a backend."""

    definition: Definition
    scope: Scope
    cells: tuple[Cell, ...]
    initial: Sequence[tuple[int, ...]]  # every initial state, distinct, in a fixed order
    steps: Sequence[GroundStep]
    invariants: tuple[GroundProperty, ...]
    step_properties: tuple[GroundProperty, ...]
    reachable: tuple[GroundProperty, ...]
    leads_to: tuple[GroundProperty, ...]
    witnesses: tuple[GroundProperty, ...]  # some state satisfies each
    step_witnesses: tuple[GroundProperty, ...]  # some step does
    premises: tuple[GroundProperty, ...]  # "never P" of states, of a property "whenever P then Q"
    step_premises: tuple[GroundProperty, ...]  # the same of steps
    final: GroundNode  # true in states that may have no successor
    builder: Builder = field(repr=False, compare=False)
    initial_condition: GroundNode | None = None  # over CELLs: exactly the initial states
    # Of a check: no step leaves a state in which it is false, as the steps' guards say, too.
    constraint: GroundNode | None = None
    wellformed: GroundNode | None = None  # over CELLs: true in all states that stand for a value
    # The cells that a step assigns, where `steps` are made of templates, which assign those of all their steps.
    places: Callable[[GroundStep], frozenset[int]] | None = field(
        default=None, repr=False, compare=False
    )

    def assigned(self, step: GroundStep) -> Collection[int]:
        """The cells that a step assigns, also those to which it gives the value that they have."""
        return step.updates if self.places is None else self.places(step)

    @property
    def promises(self) -> tuple[GroundProperty, ...]:
        """All properties, of every kind."""
        return (
            *self.invariants,
            *self.step_properties,
            *self.reachable,
            *self.leads_to,
            *self.witnesses,
            *self.step_witnesses,
        )

    def decode(self, state: tuple[int, ...]) -> State:
        """The state in the definition's own values."""
        from stagewright.spec.grounding.encoding import decode

        return decode(self, state)

    def encode(self, state: State) -> tuple[int, ...]:
        """The cells of a state given in the definition's own values."""
        from stagewright.spec.grounding.encoding import encode

        return encode(self, state)

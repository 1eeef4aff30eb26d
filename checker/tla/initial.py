r"""`Init`: what the variables start with, in an order in which TLC can enumerate it.

TLC reads conjuncts from left to right: `x = value` gives a variable its value, `x \in S` every value of
a set in turn, and what follows drops states. So a condition that says what a variable is becomes that
variable's own conjunct, and every other condition stands right after the last variable it speaks of.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stagewright.checker.tla.blocks import WIDTH, Block, after, bullets, folded, hanging
from stagewright.checker.tla.expressions import Formulas, junction_parts
from stagewright.checker.tla.sets import is_open, literal, set_of_values, starts
from stagewright.checker.tla.vocabulary import Vocabulary
from stagewright.spec.definition import Definition, Variable
from stagewright.spec.nodes import (
    FALSE,
    TRUE,
    Apply,
    Bound,
    Literal,
    Node,
    Op,
    Quantified,
    Quantity,
    Read,
    Select,
    bounds_in,
    variables_in,
)
from stagewright.spec.sorts import EnumSort, IntSort, MapSort, Sort
from stagewright.spec.values import Value

_ROOM = WIDTH - 5


def initial(definition: Definition, names: Vocabulary) -> Block:
    """The first states."""
    return hanging(f"{names.own.first} ==", bullets("/\\", _conjuncts(definition, names)), 0)


def _conjuncts(definition: Definition, names: Vocabulary) -> Iterator[Block]:
    formulas = Formulas(names)
    left = list(definition.variables)
    conditions = [part for node in definition.initially for part in _parts(node)]
    known: set[str] = set()
    while left or conditions:
        for condition in [c for c in conditions if variables_in(c) <= known]:
            conditions.remove(condition)
            yield formulas.block(condition, _ROOM)
        if not left:
            return
        variable, value = _next(left, conditions, known)
        left.remove(variable)
        known.add(variable.name)
        place = names.variables[variable.name]
        if value is None:
            yield folded(starts(place, variable.sort, variable.initial, names), _ROOM)
            continue
        for condition in value.said_by:
            conditions.remove(condition)
        yield value.conjunct(place, formulas)
        if not value.surely_within(variable.sort):
            yield folded(f"{place} \\in {set_of_values(variable.sort, names)}", _ROOM)


def _next(
    left: list[Variable], conditions: list[Node], known: set[str]
) -> tuple[Variable, _Value | None]:
    """The variable that comes next, with what conditions say that it is.

    One without a choice, if there is any; else one that leaves the others as little choice as possible.
    """
    for variable in left:
        if not is_open(variable.initial):
            return variable, None
    for variable in left:
        if (value := _value_of(variable, conditions, known)) is not None:
            return variable, value

    def settled(variable: Variable) -> int:
        """How many variables the conditions determine once this one has its value."""
        then = {*known, variable.name}
        return sum(_value_of(v, conditions, then) is not None for v in left if v is not variable)

    return max(left, key=settled), None


@dataclass(frozen=True)
class _Value:
    """What a variable is: of a map, by key, where there is no one expression for it as a whole."""

    said_by: tuple[Node, ...]
    whole: Node | None = None
    bound: Bound | None = None  # the key, if `each` is the value at any key
    each: Node | None = None
    by_key: tuple[tuple[Value, Node], ...] = ()

    def conjunct(self, place: str, formulas: Formulas) -> Block:
        """`x = value`, or `x = [k \\in K |-> value]`."""  # noqa: D301
        if self.whole is not None:
            return after(f"{place} = ", formulas.operand(self.whole, _ROOM - len(place) - 3))
        if self.bound is not None and self.each is not None:
            inner = formulas.within(self.bound)
            return (f"{place} = [{inner.range_of(self.bound)} |-> {inner.text(self.each)}]",)
        ((first, value), *others) = self.by_key
        keys = set_of_values(EnumSort(type(first)), formulas.names)  # type: ignore[arg-type]
        if all(other == value for _, other in others):
            key = formulas.fresh("k")
            return (f"{place} = [{key} \\in {keys} |-> {formulas.text(value)}]",)
        key = formulas.fresh("k")
        cases = [
            f"{key} = {literal(at, formulas.names)} -> {formulas.text(node)}"
            for at, node in self.by_key
        ]
        head = f"{place} = [{key} \\in {keys} |-> CASE "
        flat = f"{head}{' [] '.join(cases)}]"
        if len(flat) <= _ROOM:
            return (flat,)
        lines = [f"{head}{cases[0]}", *(f"{' ' * (len(head) - 3)}[] {c}" for c in cases[1:])]
        return (*lines[:-1], f"{lines[-1]}]")

    def surely_within(self, sort: Sort) -> bool:
        """Whether a value of the variable's sort, and none beyond its bounds, is meant in any case."""
        if self.whole is not None:
            return _within(self.whole.sort, sort)
        assert isinstance(sort, MapSort)
        values = [self.each] if self.each is not None else [node for _, node in self.by_key]
        return all(_within(node.sort, sort.value) for node in values)


def _within(sort: Sort, target: Sort) -> bool:
    if isinstance(sort, IntSort) and isinstance(target, IntSort):
        return target.low <= sort.low and sort.high <= target.high
    return sort == target


def _value_of(variable: Variable, conditions: list[Node], known: set[str]) -> _Value | None:
    """What the conditions say that a variable is, in terms of those that have their values."""
    by_key: dict[Value, tuple[Node, Node]] = {}
    for condition in conditions:
        for place, value in _equations(condition):
            if not variables_in(value) <= known:
                continue
            match place:
                case Read(name) if name == variable.name:
                    return _Value((condition,), whole=value)
                case Select(Read(name), Literal(key)) if name == variable.name:
                    by_key.setdefault(key, (condition, value))
                case _:
                    pass
        match condition:
            case Quantified(Quantity.EVERY, bound, body):
                for place, value in _equations(body):
                    at = isinstance(place, Select) and place.base
                    if (
                        isinstance(at, Read)
                        and at.variable == variable.name
                        and isinstance(place, Select)
                        and place.key == bound
                        and variables_in(value) <= known
                    ):
                        return _Value((condition,), bound=bound, each=value)
            case _:
                pass
    sort = variable.sort
    if isinstance(sort, MapSort) and isinstance(sort.key, EnumSort):
        members = tuple(sort.key.members)
        if all(member in by_key for member in members):
            said = tuple(dict.fromkeys(by_key[m][0] for m in members))
            return _Value(said, by_key=tuple((m, by_key[m][1]) for m in members))
    return None


def _equations(node: Node) -> Iterator[tuple[Node, Node]]:
    """The ways to read a condition as `place = value`."""
    match node:
        case Apply(Op.EQ, (one, other)):
            yield one, other
            yield other, one
        case Apply(Op.NOT, (place,)):
            yield place, FALSE
        case Read() | Select():
            yield node, TRUE
        case _:
            pass


def _parts(node: Node) -> Iterator[Node]:
    """The conjuncts of a condition; a quantified one becomes several quantified ones."""
    match node:
        case Apply(Op.AND):
            for part in junction_parts(node):
                yield from _parts(part)
        case Quantified(Quantity.EVERY, bound, body):
            inner = list(_parts(body))
            if len(inner) == 1 or any(bound not in bounds_in(part) for part in inner):
                yield node
                return
            for part in inner:
                yield Quantified(Quantity.EVERY, bound, part, node.sort, node.where)
        case Apply(Op.EQ, (one, other)) if one == other:
            return  # a loop over an enum says such things of a member and itself
        case _:
            yield node

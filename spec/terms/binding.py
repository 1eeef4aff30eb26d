"""Loops over sorts: `for n in Node` in a quantifier says "for each", in an action "for all at once"."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, TypeVar

from stagewright.spec.entities import Entity
from stagewright.spec.errors import LoopError
from stagewright.spec.nodes import BOOL, Apply, Bound, Node, Op, Quantified, Quantity
from stagewright.spec.sorts import BoundSort, IntSort, Sort, sort_of
from stagewright.spec.source import Source, here
from stagewright.spec.terms.tracing import (
    Binding,
    current,
    given_to_python,
    in_quantifier,
    open_loops,
    quantifying,
)

if TYPE_CHECKING:
    from stagewright.spec.terms.conditions_and_numbers import Bool, Number
    from stagewright.spec.terms.terms import Term

_X = TypeVar("_X", bound=Entity | Enum)
_T = TypeVar("_T")


def each(kind: type[_X]) -> Iterator[Term[_X]]:
    """What a loop over an entity sort iterates, `for n in Node`: one symbolic member that stands for all.

    `for s in each(Stage)` is such a loop over an enum: in an action all members are assigned at once, and
    the export to TLA+ has a quantifier. `for s in Stage` is Python's own, with concrete members.
    """
    from stagewright.spec.terms.terms import Term

    for bound in bind(sort_of(kind, "each(...)"), lambda _: None):
        yield Term(bound)


def numbers(low: int, high: int) -> Iterator[Number]:
    """One symbolic number that stands for all of `low .. high`, both included: `for i in numbers(0, 5)`."""
    from stagewright.spec.terms.conditions_and_numbers import Number

    if low > high:
        raise LoopError(
            f"numbers({low}, {high}) has no values",
            where=here(),
            help="the bounds are (low, high), both included",
        )
    for bound in bind(IntSort(low, high), lambda _: None):
        yield Number(bound)


def bind(sort: BoundSort, condition: Callable[[Bound], Node | None]) -> Iterator[Bound]:
    """Open a loop over `sort`, restricted by `condition`, while its one round runs."""
    tracing = current(f"a loop over {sort}")
    where = here()
    loops = open_loops()
    name = base = "i" if isinstance(sort, IntSort) else str(sort)[0].lower()
    number = 2
    while name in tracing.names:
        name, number = f"{base}{number}", number + 1
    bound = Bound(name, sort, next(tracing.serials), where)
    if not in_quantifier() and not tracing.effects:
        if (misled := given_to_python(bound, where)) is not None:
            raise misled
        raise LoopError(
            f"a loop over {sort} in {tracing.what} must stand inside every(...), some(...) or count(...)",
            where=where,
            help=f"write `every(… for {name} in {sort})`",
        )
    loops.append(Binding(bound, condition(bound)))
    tracing.names.append(name)
    try:
        yield bound
    except GeneratorExit:
        tracing.broken_loop = where
        raise
    finally:
        loops.pop()
        tracing.names.remove(name)


def every(bodies: Iterable[Bool]) -> Bool:
    """True if all the bodies are: `every(self.learned[n] == self.stage for n in Node)`."""
    from stagewright.spec.terms.conditions_and_numbers import Bool

    where = here()
    return Bool(_all_or_any(Quantity.EVERY, Op.AND, bodies, where))


def some(bodies: Iterable[Bool]) -> Bool:
    """True if at least one of the bodies is."""
    from stagewright.spec.terms.conditions_and_numbers import Bool

    where = here()
    return Bool(_all_or_any(Quantity.SOME, Op.OR, bodies, where))


def count(bodies: Iterable[Bool]) -> Number:
    """How many of the bodies are true: `count(self.up[n] for n in Node) >= 2`."""
    from stagewright.spec.terms.conditions_and_numbers import Number

    where = here()
    total: Node | None = None
    for body, loops in _bodies(bodies, "count(...)"):
        one = _counted(body, loops, where)
        total = one if total is None else _sum(total, one, where)
    if total is None:
        raise LoopError("count(...) of nothing", where=where, help="give it a generator")
    return Number(total)


def _bodies(bodies: Iterable[Bool], what: str) -> Iterator[tuple[Node, list[Binding]]]:
    from stagewright.spec.terms.symbolic import lift

    for round_ in quantified_rounds(
        bodies, what, lambda body: lift(body, BOOL, f"the body of {what}")
    ):
        yield round_.body, round_.loops


@dataclass(frozen=True)
class Round:
    """One expression that a quantifier's generator yields, and the loops over sorts that are open then."""

    body: Node
    loops: list[Binding]


def quantified_rounds(
    bodies: Iterable[_T], what: str, node: Callable[[_T], Node], of: str = "conditions"
) -> Iterator[Round]:
    """Run the generator of a quantifier; `node` makes an expression of what it yields."""
    with quantifying() as loops:
        try:
            for body in bodies:
                # Close each body over the loops it is yielded from, not the whole junction: the naive
                # way multiplies copies when concrete and symbolic loops are mixed.
                yield Round(node(body), list(loops))
        except TypeError as error:
            if "not iterable" not in str(error):
                raise
            name, one = what.removesuffix("(...)"), of.removesuffix("s")
            raise LoopError(
                f"{what} takes a generator of {of}",
                where=here(),
                help=f"write `{name}({one} for n in Node)`",
            ) from None


def _all_or_any(quantity: Quantity, op: Op, bodies: Iterable[Bool], where: Source) -> Node:
    closed: list[Node] = []
    for body, loops in _bodies(bodies, f"{quantity.name.lower()}(...)"):
        node = body
        for binding in reversed(loops):
            node = _restricted(quantity, binding, node)
            node = Quantified(quantity, binding.bound, node, BOOL, where)
        closed.append(node)
    return closed[0] if len(closed) == 1 else Apply(op, tuple(closed), BOOL, where)


def _restricted(quantity: Quantity, binding: Binding, body: Node) -> Node:
    if binding.condition is None:
        return body
    if quantity is Quantity.EVERY:
        return Apply(Op.OR, (Apply(Op.NOT, (binding.condition,), BOOL), body), BOOL)
    return Apply(Op.AND, (binding.condition, body), BOOL)


def _counted(body: Node, loops: list[Binding], where: Source) -> Node:
    # The upper bound of a count is the scope's business; -1 stands for "not known here".
    unknown = IntSort(0, UNBOUNDED)
    if not loops:
        return Apply(Op.IF, (body, _number(1), _number(0)), IntSort(0, 1), where)
    if len(loops) > 1:
        raise LoopError(
            "count(...) over more than one sort at once",
            where=where,
            help="count over one sort, and say with some(...) what is to hold of the other",
        )
    (binding,) = loops
    return Quantified(
        Quantity.COUNT, binding.bound, _restricted(Quantity.SOME, binding, body), unknown, where
    )


UNBOUNDED = 2**31


def _number(value: int) -> Node:
    from stagewright.spec.nodes import Literal

    return Literal(value, IntSort(value, value))


def _sum(a: Node, b: Node, where: Source) -> Node:
    sort = IntSort(_low(a.sort) + _low(b.sort), _high(a.sort) + _high(b.sort))
    return Apply(Op.ADD, (a, b), sort, where)


def _low(sort: Sort) -> int:
    assert isinstance(sort, IntSort)
    return sort.low


def _high(sort: Sort) -> int:
    assert isinstance(sort, IntSort)
    return sort.high

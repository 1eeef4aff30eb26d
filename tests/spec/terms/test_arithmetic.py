"""Numbers: products, quotients, remainders, the least and the greatest, and sums, by hand-computed values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product

import pytest
from hypothesis import given, strategies as st

from stagewright.spec import (
    Bool,
    DefinitionError,
    Entity,
    Machine,
    Number,
    NumberVar,
    Term,
    action,
    define,
    greatest,
    invariant,
    least,
    number,
    per,
    require,
    scope_of,
    set_of,
    total,
)
from stagewright.spec.grounding.ground import Builder, GroundNode
from stagewright.spec.grounding.ground_eval import evaluate
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.nodes import Node as Expression
from stagewright.spec.sorts import IntSort
from stagewright.spec.terms.intervals import (
    WIDEST,
    Interval,
    check_width,
    difference_of,
    greatest_of,
    least_of,
    product_of,
    quotient_of,
    remainder_of,
    sum_of,
)
from stagewright.spec.text.words import words
from stagewright.spec.values import FrozenMap, State, Value


class Purse(Entity, scope=3):
    """Holds coins."""


class Market(Machine):
    """Expressions of every kind, one a property."""

    debt: NumberVar = number(-4, 4)
    coins = per(Purse, number(0, 3))
    open_ = set_of(Purse)

    @action
    def earn(self, p: Term[Purse]) -> None:
        require(self.coins[p] < 3, "not full")
        self.coins[p] = self.coins[p] + 1
        self.debt = self.debt
        self.open_.add(p)

    @invariant
    def products(self) -> Bool:
        return self.debt * self.debt + 2 * self.debt >= -1

    @invariant
    def quotients(self) -> Bool:
        return self.debt // 2 == least(self.debt, 0)

    @invariant
    def remainders(self) -> Bool:
        return (self.debt % 3 >= 0) & (7 % greatest(1, self.debt) <= 3)

    @invariant
    def sums(self) -> Bool:
        return total(self.coins[p] for p in Purse) <= 5

    @invariant
    def sums_of_a_set(self) -> Bool:
        return total(self.coins[p] for p in self.open_) == 4

    @invariant
    def extremes(self) -> Bool:
        return greatest(self.coins[p] for p in Purse) - least(self.coins[p] for p in Purse) == 3

    @invariant
    def extremes_of_a_set(self) -> Bool:
        return least((self.coins[p] for p in self.open_), default=9) == 9


DEFINITION = define(Market)
INTERPRETER = Interpreter(DEFINITION, scope_of(DEFINITION))


def state(debt: int, coins: tuple[int, ...], is_open: frozenset[int] = frozenset()) -> State:
    held: dict[Value | str, Value] = {Purse(i): n for i, n in enumerate(coins)}
    values: dict[str, Value] = {
        "debt": debt,
        "coins": FrozenMap(held),
        "open_": frozenset(Purse(i) for i in is_open),
    }
    return FrozenMap(values)


def holds(name: str, at: State) -> bool:
    return INTERPRETER.holds(DEFINITION.property(name), at)[0]


def sort_of_first_operand(name: str) -> IntSort:
    condition = DEFINITION.property(name).condition
    found: list[Expression] = [a for a in getattr(condition, "args", ()) if a is not None]
    sort = found[0].sort
    assert isinstance(sort, IntSort)
    return sort


@pytest.mark.parametrize("debt", range(-4, 5))
def test_quotients_are_rounded_down_and_remainders_are_never_negative(debt: int) -> None:
    here = state(debt, (0, 0, 0))
    assert holds("products", here) == (debt * debt + 2 * debt >= -1)
    assert holds("quotients", here) == (debt // 2 == min(debt, 0))
    assert holds("remainders", here) == (debt % 3 >= 0 and 7 % max(1, debt) <= 3)


@pytest.mark.parametrize("coins", [(0, 0, 0), (1, 2, 3), (0, 3, 1), (2, 2, 2)])
def test_sums_and_extremes_over_all_members(coins: tuple[int, ...]) -> None:
    here = state(0, coins)
    assert holds("sums", here) == (sum(coins) <= 5)
    assert holds("extremes", here) == (max(coins) - min(coins) == 3)


@pytest.mark.parametrize("members", [set[int](), {0}, {1, 2}, {0, 1, 2}])
def test_over_a_set_only_its_members_count(members: set[int]) -> None:
    coins = (1, 3, 1)
    here = state(0, coins, frozenset(members))
    assert holds("sums_of_a_set", here) == (sum(coins[i] for i in members) == 4)
    assert holds("extremes_of_a_set", here) == (not members)


def test_the_bounds_of_an_expression_follow_from_those_of_its_operands() -> None:
    assert sort_of_first_operand("quotients") == IntSort(-2, 2)
    products = DEFINITION.property("products").condition
    assert words(products) == "debt * debt + 2 * debt ≥ -1"
    assert sort_of_first_operand("extremes") == IntSort(-3, 3)


OPERATIONS: Mapping[
    str, tuple[Callable[[Interval, Interval], Interval], Callable[[int, int], int]]
] = {
    "sum": (sum_of, lambda x, y: x + y),
    "difference": (difference_of, lambda x, y: x - y),
    "product": (product_of, lambda x, y: x * y),
    "quotient": (quotient_of, lambda x, y: x // y),
    "remainder": (remainder_of, lambda x, y: x % y),
    "least": (least_of, min),
    "greatest": (greatest_of, max),
}
SMALL = st.integers(-6, 6)


@pytest.mark.parametrize("name", OPERATIONS)
@given(ends=st.tuples(SMALL, SMALL, SMALL, SMALL))
def test_an_interval_holds_every_result_and_both_ends_are_reached_or_it_is_a_remainder(
    name: str, ends: tuple[int, int, int, int]
) -> None:
    interval, operation = OPERATIONS[name]
    a: Interval = (min(ends[:2]), max(ends[:2]))
    b: Interval = (min(ends[2:]), max(ends[2:]))
    if name in {"quotient", "remainder"}:
        b = (max(1, b[0]), max(1, b[1]))
    results = [operation(x, y) for x, y in product(range(a[0], a[1] + 1), range(b[0], b[1] + 1))]
    low, high = interval(a, b)
    assert low <= min(results)
    assert max(results) <= high
    if name != "remainder":
        assert (low, high) == (min(results), max(results))


def node(name: str, build: Builder, a: GroundNode, b: GroundNode) -> GroundNode:
    make = {"quotient": build.div, "remainder": build.mod, "product": build.mul}
    return {**make, "least": build.min_, "greatest": build.max_}[name](a, b)


@pytest.mark.parametrize("name", ["product", "quotient", "remainder", "least", "greatest"])
@given(ends=st.tuples(SMALL, SMALL), at=st.tuples(SMALL, SMALL), bounds=st.tuples(SMALL, SMALL))
def test_ground_nodes_stay_within_the_bounds_that_they_state(
    name: str, ends: tuple[int, int], at: tuple[int, int], bounds: tuple[int, int]
) -> None:
    """Also where the divisor may leave its bounds: 1 stands for what is not positive."""
    ranges = [(min(ends), max(ends)), (min(bounds), max(bounds))]
    cells = [max(low, min(high, x)) for (low, high), x in zip(ranges, at, strict=True)]
    build = Builder([(low, high, False) for low, high in ranges])
    made = node(name, build, build.cell(0), build.cell(1))
    value = evaluate(made, (cells[0], cells[1]))
    x, y = cells
    divisor = max(1, y) if name in {"quotient", "remainder"} else y
    assert value == OPERATIONS[name][1](x, divisor)
    assert made.low <= value <= made.high


def test_numbers_that_may_not_fit_in_64_bits_are_refused() -> None:
    check_width((-WIDEST, WIDEST), None)
    with pytest.raises(DefinitionError, match="does not fit in 64 bits"):
        check_width((0, WIDEST + 1), None)

    class Huge(Machine):
        n: NumberVar = number(0, 1 << 30)

        @action
        def go(self) -> None:
            cube: Number = self.n * self.n * self.n
            require(cube == 0, "nothing")
            self.n = 0

    with pytest.raises(DefinitionError, match="this number may be as large as") as refused:
        define(Huge)
    assert "narrower bounds" in str(refused.value)

"""What begins as a function of its key does so at run time: at the start, when an entity comes, when an actor fails."""

from enum import Enum

import pytest

from stagewright.impl.runtime import Instance, Program
from stagewright.spec import (
    Actor,
    Entity,
    Machine,
    Term,
    action,
    constant,
    define,
    number,
    one_of,
    per,
    require,
    volatile,
)
from stagewright.spec.errors import InputError
from stagewright.spec.values import FrozenMap, Value


class Guest(Entity):
    """Who comes."""


class Meal(Enum):
    """What is served, and on how many plates."""

    soup = 2
    cake = 3


WAITER = Actor("waiter")


class Table(Machine):
    """Guests come with plates of their own, and sit beside themselves at first."""

    plates = per(
        Guest, per(Meal, number(0, 3)), init=lambda g, m: m.number_column(lambda m: m.value)
    )
    beside = constant(per(Guest, one_of(Guest), init=lambda g: g))
    orders = volatile(per(Guest, number(0, 5), init=lambda g: 2), of=WAITER)

    @action
    def eat(self, g: Term[Guest], m: Term[Meal]) -> None:
        """A guest eats, and orders more."""
        require(self.plates[g][m] > 0, "a plate is left")
        self.plates[g][m] = self.plates[g][m] - 1
        self.orders[g] = self.orders[g] + 1


FULL = {Meal.soup: 2, Meal.cake: 3}


def plain(value: object) -> object:
    """A map with its maps as dictionaries."""
    return {k: plain(v) for k, v in value.items()} if isinstance(value, FrozenMap) else value


@pytest.fixture
def table() -> Instance:
    return Instance(Program(define(Table)), entities=[Guest("anna")])


def test_who_comes_later_starts_as_the_function_of_the_key_says(table: Instance) -> None:
    (anna,) = table.live(Guest)
    table.fire(Table.eat, g=anna, m=Meal.soup)
    bert = Guest("bert")
    table.add(bert)
    assert plain(table.state["plates"]) == {anna: {**FULL, Meal.soup: 1}, bert: FULL}
    assert plain(table.state["beside"]) == {anna: anna, bert: bert}
    assert plain(table.state["orders"]) == {anna: 3, bert: 2}


def test_what_an_actor_forgets_begins_again_by_key(table: Instance) -> None:
    (anna,) = table.live(Guest)
    table.fire(Table.eat, g=anna, m=Meal.cake)
    table.forget(WAITER)
    assert plain(table.state["orders"]) == {anna: 2}
    assert plain(table.state["plates"]) == {anna: {**FULL, Meal.cake: 2}}


def test_what_a_state_says_goes_before_what_begins(table: Instance) -> None:
    anna, bert = Guest("anna"), Guest("bert")
    beside: FrozenMap[Value | str, Value] = FrozenMap({anna: bert, bert: bert})
    other = Instance(table.program, {"beside": beside})
    assert plain(other.state["beside"]) == {anna: bert, bert: bert}
    assert plain(other.state["plates"]) == {anna: FULL, bert: FULL}
    with pytest.raises(InputError, match="bert cannot go: `beside` still names it"):
        other.remove(bert)
    other.remove(anna)
    other.remove(bert)
    assert not other.live(Guest)

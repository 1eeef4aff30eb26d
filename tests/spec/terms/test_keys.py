"""Maps by number, initial values by key, defaults for none, and loops over an enum whose rounds are parallel."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from functools import cache

import pytest

from stagewright.spec import (
    Entity,
    Machine,
    NumberVar,
    OptionalVar,
    Term,
    action,
    choose,
    define,
    each,
    number,
    numbers,
    one_of,
    optional,
    per,
    scope_of,
)
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.text.words import effect
from stagewright.spec.values import FrozenMap, State
from stagewright.spec.verdict import Step

Refusal = Callable[[str, str, str], Exception]


class Node(Entity, scope=3):
    """Three."""


class Colour(Enum):
    """Three, in a circle."""

    red = auto()
    green = auto()
    blue = auto()

    @property
    def before(self) -> Colour:
        return list(Colour)[self.value - 2]


class Circle(Machine):
    """Numbers that go round."""

    held = per(Colour, number(0, 9), init=lambda c: choose(c == Colour.red, 5, 1))
    grid = per(Node, per(Colour, one_of(Node)), init=lambda n, _: n)
    table = per(number(2, 4), number(0, 9), init=lambda i: i * 2)
    owner: OptionalVar[Node] = optional(Node)
    at: NumberVar = number(0, 5)

    @action
    def turn(self) -> None:
        for c in Colour:
            self.held[c] = self.held[c.before]

    @action
    def level(self) -> None:
        for c in each(Colour):
            self.held[c] = self.held[Colour.blue]

    @action
    def shift(self, n: Term[Node]) -> None:
        self.table[2 + self.at % 3] = self.table[4]
        self.at = (self.at + 1) % 6
        self.grid[self.owner.or_else(n)][Colour.red] = n
        self.owner = n

    @action
    def reset(self) -> None:
        for i in numbers(2, 4):
            self.table[i] = i


DEFINITION = define(Circle)
INTERPRETER = Interpreter(DEFINITION, scope_of(DEFINITION))


@cache
def the_start() -> State:
    """The interpreter looks at every combination of values: that takes seconds."""
    (start,) = INTERPRETER.initial_states()
    return start


def test_initial_values_by_key() -> None:
    start = the_start()
    assert start["held"] == FrozenMap({Colour.red: 5, Colour.green: 1, Colour.blue: 1})
    assert start["table"] == FrozenMap({2: 4, 3: 6, 4: 8})
    grid = start["grid"]
    assert isinstance(grid, FrozenMap)
    assert all(set(row.values()) == {n} for n, row in grid.items())  # type: ignore[union-attr]


def test_every_round_of_a_loop_over_an_enum_reads_the_old_state() -> None:
    start = the_start()
    turned = INTERPRETER.take(Step("turn"), start)
    assert turned["held"] == FrozenMap({Colour.red: 1, Colour.green: 5, Colour.blue: 1})
    again = INTERPRETER.take(Step("turn"), turned)
    assert again["held"] == FrozenMap({Colour.red: 1, Colour.green: 1, Colour.blue: 5})


def test_a_loop_with_each_is_one_effect_for_all_members() -> None:
    start = the_start()
    (level,) = DEFINITION.action("level").assignments
    assert effect(level) == "for every c in Colour: held[c] becomes held[blue]"
    assert INTERPRETER.take(Step("level"), start)["held"] == FrozenMap(dict.fromkeys(Colour, 1))


def test_numbers_as_keys_may_be_computed_and_looped_over() -> None:
    start = the_start()
    step = Step("shift", FrozenMap({"n": Node(1)}))
    shifted = INTERPRETER.take(step, start)
    assert shifted["table"] == FrozenMap({2: 8, 3: 6, 4: 8})
    reset = INTERPRETER.take(Step("reset"), shifted)
    assert reset["table"] == FrozenMap({2: 2, 3: 3, 4: 4})


def test_none_gives_way_to_the_default_and_a_member_does_not() -> None:
    state = the_start()
    for n, row in ((1, 1), (2, 1), (0, 2)):  # the row of the one before, at first of oneself
        state = INTERPRETER.take(Step("shift", FrozenMap({"n": Node(n)})), state)
        grid = state["grid"]
        assert isinstance(grid, FrozenMap)
        assert grid[Node(row)][Colour.red] == Node(n)  # type: ignore[index,call-overload]


def test_reading_after_an_assignment_is_refused_outside_of_a_loop(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self, node: Term[Node]) -> None:
            require(self.seen[node][Colour.red], "seen")
            self.seen[node][Colour.red] = False
            self.ready = self.seen[node][Colour.red]
                         ^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
        "`seen[node][red]` is read after it was assigned in action `go`",
        "reads see the state before the action",
    )


def test_reading_after_an_assignment_through_a_method_is_refused_too(refused: Refusal) -> None:
    refused(
        """
        def is_seen(self, node: Term[Node]) -> Bool:
            return self.seen[node][Colour.red]
                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^

        @action
        def go(self, node: Term[Node]) -> None:
            require(self.is_seen(node), "seen")
            self.seen[node][Colour.red] = False
            self.ready = self.is_seen(node)
        """,
        "`seen[node][red]` is read after it was assigned in action `go`",
        "reads see the state before the action",
    )


def test_a_key_that_may_not_be_one(refused: Refusal) -> None:
    refused(
        """
        table = per(number(0, 3), flag())

        @action
        def go(self) -> None:
            self.table[self.copies + 1] = True
            ^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
        "the key is a number in 1..4, but the keys are 0..3",
        "keep it within: `least(…, 3)`, `greatest(0, …)`, or `… % 4`",
    )


@pytest.mark.parametrize(
    ("declared", "problem", "help"),
    [
        (
            "per(flag(), flag())",
            "per(...) is given a variable that is a bool as its key",
            "write an enum, an entity sort, or `number(low, high)`",
        ),
        (
            "per(number(0, 3, init=2), flag())",
            "the numbers that are keys of per(...) have no initial value",
            "write `per(number(0, 3), …)`",
        ),
        (
            "per(Node, number(0, 3), init=lambda n: 4)",
            "the initial value of `table` is 4, outside of 0..3",
            "within them",
        ),
        (
            "per(Node, per(Colour, flag()), init=lambda n: True)",
            (
                "the initial value of `table` fails while it is traced: "
                "TypeError: Trap.<lambda>() takes 1 positional argument but 2 were given"
            ),
            "`init` is a function of 2 keys, which are symbolic",
        ),
    ],
)
def test_declarations(refused: Refusal, declared: str, problem: str, help: str) -> None:
    refused(
        f"""
        table = {declared}
                {"^" * len(declared)}

        @action
        def go(self, node: Term[Node]) -> None:
            self.ready = True
        """,
        problem,
        help,
    )

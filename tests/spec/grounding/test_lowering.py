"""What lowering must keep apart, and what it must refuse."""

from __future__ import annotations

from enum import Enum, auto

import pytest

from stagewright.spec import (
    ANY,
    Bool,
    DefinitionError,
    Entity,
    Machine,
    OneVar,
    OptionalVar,
    ScopeError,
    States,
    Term,
    action,
    define,
    every,
    flag,
    initially,
    invariant,
    number,
    one_of,
    optional,
    per,
    require,
    scope_of,
)
from stagewright.spec.grounding.ground import Builder
from stagewright.spec.grounding.lowering import ground


class Colour(Enum):
    red = auto()
    blue = auto()


class Stage(States):
    """The codes of `shade` and the places of blue in `shades` are the same numbers: 0, 1, 0."""

    first = Colour.red, frozenset({Colour.red})
    second = Colour.blue, frozenset({Colour.red, Colour.blue})
    third = Colour.red, frozenset[Colour]()

    def __init__(self, shade: Colour, shades: frozenset[Colour]) -> None:
        self.shade, self.shades = shade, shades


class Node(Entity): ...


def test_a_column_of_members_and_one_of_conditions_stay_apart_though_their_tables_are_equal() -> (
    None
):
    class Shades(Machine):
        stage: OneVar[Stage] = one_of(Stage, init=Stage.first)
        shade = one_of(Colour, init=Colour.red)

        @action
        def follow(self) -> None:
            self.shade = self.stage.column(lambda s: s.shade)
            self.stage = Stage.second

        @invariant
        def blue_is_in_it(self) -> Bool:
            return self.stage.column(lambda s: s.shades).has(Colour.blue)

    definition = define(Shades)
    model = ground(definition, scope_of(definition))
    (update,) = [
        u for s in model.steps for c, u in s.updates.items() if model.cells[c].name == "shade"
    ]
    (condition,) = [p.condition for p in model.invariants]
    assert update.table == condition.table
    assert (update.boolean, condition.boolean) == (False, True)


def test_one_and_true_are_two_constants() -> None:
    builder = Builder([])
    assert builder.const(1) is builder.const(1)
    assert builder.const(1) is not builder.const(1, boolean=True)


def test_two_places_that_may_be_one_are_refused_with_the_mend() -> None:
    class Views(Machine):
        seen = per(Node, flag())

        @action
        def swap(self, one: Term[Node], other: Term[Node]) -> None:
            self.seen[one] = True
            self.seen[other] = False

    definition = define(Views)
    with pytest.raises(DefinitionError) as caught:
        ground(definition, scope_of(definition))
    assert caught.value.problem == "`swap` assigns seen[node0] twice"
    assert (
        caught.value.help
        == "take the two keys as parameters of the action, and require that they differ"
    )
    assert caught.value.where is not None
    assert caught.value.where.text().strip() == "self.seen[other] = False"


def test_two_places_that_a_requirement_keeps_apart_are_fine() -> None:
    class Views(Machine):
        seen = per(Node, flag())

        @action
        def swap(self, one: Term[Node], other: Term[Node]) -> None:
            require(one != other, "they are two")
            self.seen[one] = True
            self.seen[other] = False

    definition = define(Views)
    assert len(ground(definition, scope_of(definition)).steps) == 2


def test_no_initial_state_is_an_error_of_the_scope() -> None:
    class Stuck(Machine):
        leader: OptionalVar[Node] = optional(Node)
        size = number(0, 3, init=ANY)

        @initially
        def impossible(self) -> Bool:
            return self.leader.is_some() & (self.size > 1)

        @action
        def go(self, node: Term[Node]) -> None:
            self.leader = node
            self.size = 0

    definition = define(Stuck)
    with pytest.raises(
        ScopeError, match=r"Stuck: no state satisfies its initial conditions .*Node=2"
    ):
        ground(definition, scope_of(definition))


def test_too_many_initial_states_are_an_error_of_the_scope() -> None:
    class Wide(Machine):
        seen = per(Node, per(Stage, number(0, 9, init=ANY)))

        @action
        def go(self, node: Term[Node]) -> None:
            self.seen[node][Stage.first] = 0

    definition = define(Wide)
    with pytest.raises(ScopeError, match=r"1,000,000,000 candidates for the initial state"):
        ground(definition, scope_of(definition, {"node": 3}))


def test_conditions_sift_the_initial_states_cell_after_cell() -> None:
    class Few(Machine):
        seen = per(Node, per(Stage, number(0, 9, init=ANY)))

        @initially
        def all_alike(self) -> Bool:
            return every(
                every(self.seen[n][s] == self.seen[m][Stage.first] for s in Stage)
                for n in Node
                for m in Node
            )

        @action
        def go(self, node: Term[Node]) -> None:
            self.seen[node][Stage.first] = 0

    definition = define(Few)
    initial = ground(definition, scope_of(definition, {"node": 3})).initial
    assert [set(state) for state in initial] == [{value} for value in range(10)]

"""First and last states, steps of maps, parts of systems, and properties of every kind."""

from __future__ import annotations

from typing import Self

from tests.spec.runs import Colour, Node, Stage, run

from stagewright.spec import (
    ANY,
    Bool,
    FlagVar,
    LeadsTo,
    Machine,
    NumberVar,
    OneVar,
    OptionalVar,
    SetVar,
    Term,
    action,
    always_reachable,
    budget,
    constant,
    define,
    final,
    flag,
    initially,
    invariant,
    leads_to,
    liveness,
    many,
    number,
    one_of,
    optional,
    part,
    per,
    require,
    scope_of,
    set_of,
    some,
    step_property,
)
from stagewright.spec.grounding.ground_eval import evaluate
from stagewright.spec.grounding.lowering import ground
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.values import Value, show


def test_initial_states_are_all_values_that_the_conditions_allow() -> None:
    class Starts(Machine):
        first: OneVar[Node] = one_of(Node)
        colours: SetVar[Colour] = set_of(Colour, init=ANY)
        seen = per(Node, flag(init=ANY))
        limit = constant(number(0, 1, init=ANY))

        @initially
        def one_colour(self) -> Bool:
            return self.colours.size() == 1

        @initially
        def only_the_first_is_seen(self, node: Term[Node]) -> Bool:
            return self.seen[node] == (self.first == node)

        @action
        def clear(self, node: Term[Node]) -> None:
            self.seen[node] = False
            self.colours = self.colours & {Colour.red}
            self.first = node

    definition = define(Starts)
    scope = scope_of(definition, {"node": 2})
    states = list(Interpreter(definition, scope).initial_states())
    assert len(states) == 2 * 3 * 2  # the first, the colour, the limit
    model = ground(definition, scope)
    assert {model.encode(s) for s in states} == set(model.initial)
    assert model.initial_condition is not None
    assert all(evaluate(model.initial_condition, s) for s in model.initial)


def test_final_states_may_have_no_successor() -> None:
    class Ends(Machine):
        stage: OneVar[Stage] = one_of(Stage, init=Stage.rest)

        @stage.step({Stage.rest, Stage.moving}, Stage.done)
        def finish(self) -> None:
            """Either way."""

        @final
        def is_done(self) -> Bool:
            return self.stage == Stage.done

    here = run(Ends)
    assert not here.interpreter.is_final(here.state)
    here.take("finish")
    assert here.steps == set()
    assert here.interpreter.is_final(here.state)
    assert evaluate(here.model.final, here.model.encode(here.state)) == 1


def test_a_step_of_a_map_moves_the_value_of_its_first_parameter() -> None:
    class Stages(Machine):
        stage = per(Node, one_of(Stage, init=Stage.rest))
        busy: FlagVar = flag()

        @stage.step(Stage.rest, Stage.moving)
        def move(self, node: Term[Node]) -> None:
            require(~self.busy, "nobody is busy")
            self.busy = True

    here = run(Stages)
    (condition, _) = here.ground_step("move(node1)").requirements
    assert condition.name == "stage is rest"
    assert here.take("move(node1)") == {
        "stage[node0]": "rest",
        "stage[node1]": "moving",
        "busy": "yes",
    }


class Door(Machine):
    """A part that others use."""

    slams = budget(1)
    open: FlagVar = flag()
    uses: NumberVar = number(0, 3)

    @action
    def use(self, to: Bool) -> None:
        require(self.open != to, "it changes")
        require(self.uses < 3, "it is not worn out")
        self.open = to
        self.uses = self.uses + 1

    @action(spends=slams)
    def slam(self) -> None:
        require(self.open, "it is open")
        self.open = False

    @invariant
    def worn(self) -> Bool:
        return self.uses <= 3


def test_an_action_of_a_part_that_is_called_happens_only_so() -> None:
    class House(Machine):
        door = part(Door)
        inside: SetVar[Node] = set_of(Node)

        @action
        def enter(self, node: Term[Node]) -> None:
            require(~self.inside.has(node), "it is outside")
            self.door.use(~self.door.open)
            self.inside.add(node)

    definition = define(House)
    assert [a.name for a in definition.actions] == ["door.slam", "enter"]
    assert [p.name for p in definition.properties] == ["door.worn"]
    here = run(House)
    after = here.take("enter(node1)")
    assert after == {
        "door.open": "yes",
        "door.uses": "1",
        "inside": "{node1}",
        "budget.slams": "1",
    }
    assert here.take("door.slam")["budget.slams"] == "0"
    assert here.steps == {"enter(node0)"}


def test_parts_that_name_their_requirements_alike_are_told_apart_by_their_names() -> None:
    class House(Machine):
        front = part(Door)
        back = part(Door)

        @action
        def let_the_wind_through(self) -> None:
            self.front.use(~self.front.open)
            self.back.use(~self.back.open)

    joined = define(House).action("let_the_wind_through")
    assert [r.name for r in joined.requirements] == [
        "it changes",
        "it is not worn out",
        "it changes (back)",
        "it is not worn out (back)",
    ]


def test_a_family_of_parts_has_a_machine_for_every_member() -> None:
    class Street(Machine):
        doors = many(Door, over=Node)
        last: OptionalVar[Node] = optional(Node)

        @action
        def walk(self, node: Term[Node]) -> None:
            require(some(self.doors[n].open for n in Node) | self.last.is_none(), "one is open")
            self.doors[node].use(~self.doors[node].open)
            self.last = node

    here = run(Street, slams=None)
    assert here.steps == {"walk(node0)", "walk(node1)"}
    after = here.take("walk(node1)")
    assert after["doors.open[node1]"] == "yes"
    assert after["doors.uses[node0]"] == "0"
    assert here.steps == {"walk(node0)", "walk(node1)", "doors.slam(node1)"}
    (prop,) = here.interpreter.definition.properties
    assert [str(p.sort) for p in prop.params] == ["Node"]
    assert here.interpreter.holds(prop, here.state) == (True, {})


def test_parts_that_stay_out_do_not_happen() -> None:
    class House(Machine):
        door = part(Door, without=(Door.slam,))

        @invariant
        def fine(self) -> Bool:
            return self.door.uses >= 0

    assert [a.name for a in define(House).actions] == ["door.use"]


def test_a_system_leaves_out_a_property_of_a_part_and_keeps_the_others() -> None:
    class Counted(Door):
        @invariant
        def it_counts(self) -> Bool:
            return self.uses >= 0

        @invariant
        def it_counts_up_to_two(self) -> Bool:
            return self.uses <= 2

    class House(Machine):
        door = part(Counted, without=(Counted.it_counts_up_to_two,))
        rooms = many(Counted, over=Node, without=(Counted.it_counts,))

    names = [p.name for p in define(House).properties]
    assert {"door.it_counts", "rooms.it_counts_up_to_two"} <= set(names)
    assert not {"door.it_counts_up_to_two", "rooms.it_counts"} & set(names)


def test_a_variable_of_a_part_may_rest_where_its_actions_are_left_out() -> None:
    class House(Machine):
        door = part(Door, without=(Door.use, Door.slam))
        inside: FlagVar = flag()

        @action
        def enter(self) -> None:
            require(self.door.open, "the door is open")
            self.inside = True

    assert [a.name for a in define(House).actions] == ["enter"]


def test_a_systems_own_word_on_a_budget_counts_whatever_its_parts_say() -> None:
    class House(Machine):
        door = part(Door)
        slams = budget(3)
        inside: FlagVar = flag()

        @action
        def enter(self) -> None:
            self.inside = True

    assert [(b.name, b.default) for b in define(House).budgets] == [("slams", 3)]


def test_properties_of_every_kind_are_asked_of_the_right_states() -> None:
    class Grows(Machine):
        size: NumberVar = number(0, 3)

        @action
        def grow(self) -> None:
            require(self.size < 3, "room is left")
            self.size += 1

        @invariant
        def small(self) -> Bool:
            return self.size < 2

        @step_property
        def by_one(self, after: Self) -> Bool:
            return after.size == self.size + 1

        @always_reachable
        def full(self) -> Bool:
            return self.size == 3

        @liveness
        def fills(self) -> LeadsTo:
            return leads_to(self.size > 0, self.size == 3)

    here = run(Grows)
    small, by_one, full, fills = here.interpreter.definition.properties
    before = here.state
    here.take("grow")
    assert here.interpreter.holds(by_one, before, here.state)[0]
    assert not here.interpreter.holds(by_one, here.state, before)[0]
    assert here.interpreter.holds(small, here.state)[0]
    here.take("grow")
    assert not here.interpreter.holds(small, here.state)[0]
    assert not here.interpreter.holds(full, here.state)[0]
    assert fills.premise is not None
    assert here.interpreter.evaluate(fills.premise, here.state) is True
    cells, old = here.model.encode(here.state), here.model.encode(before)
    assert [evaluate(p.condition, cells) for p in here.model.invariants] == [0]
    assert [evaluate(p.condition, old, cells) for p in here.model.step_properties] == [0]


def test_a_property_reports_for_which_parameters_it_fails() -> None:
    class Views(Machine):
        seen = per(Node, flag())

        @action
        def see(self, node: Term[Node]) -> None:
            self.seen[node] = True

        @invariant
        def unseen(self, node: Term[Node]) -> Bool:
            return ~self.seen[node]

    here = run(Views)
    here.take("see(node1)")
    (prop,) = here.interpreter.definition.properties
    holds, environment = here.interpreter.holds(prop, here.state)
    values: list[Value] = list(environment.values())
    assert (holds, [show(v) for v in values]) == (False, ["node1"])

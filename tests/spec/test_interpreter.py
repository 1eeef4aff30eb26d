"""What definitions mean, by example; in each, the interpreter and the ground form agree on everything."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Annotated, Self

import pytest

from stagewright.spec import (
    ANY,
    Bool,
    DomainError,
    Entity,
    LeadsTo,
    Machine,
    Number,
    NumberVar,
    OneVar,
    OptionalVar,
    Record,
    RefusedError,
    SetVar,
    States,
    Term,
    Var,
    action,
    between,
    budget,
    choose,
    constant,
    count,
    define,
    every,
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
    reachable,
    record,
    require,
    scope_of,
    set_of,
    some,
    step_property,
)
from stagewright.spec.ground import GroundStep
from stagewright.spec.ground_eval import enabled, evaluate, take
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.lowering import ground
from stagewright.spec.values import State, Value, flatten, show
from stagewright.spec.verdict import Step


class Node(Entity): ...


class Colour(Enum):
    red = auto()
    green = auto()
    blue = auto()


class Stage(States):
    rest = False, 0, Colour.red, None, {Colour.red}
    moving = True, 3, Colour.green, Colour.red, {Colour.red, Colour.green}
    done = False, -1, Colour.red, Colour.blue, set[Colour]()

    def __init__(
        self, busy: bool, rank: int, shade: Colour, other: Colour | None, shades: set[Colour]
    ) -> None:
        self.busy, self.rank, self.shade, self.other = busy, rank, shade, other
        self.shades = shades


Shown = dict[str, str]


@dataclass
class Run:
    """A machine in one state; every question is put to the interpreter and to the ground form."""

    interpreter: Interpreter
    state: State

    def __post_init__(self) -> None:
        self.model = ground(self.interpreter.source, self.interpreter.scope)

    @property
    def shown(self) -> Shown:
        """The leaves of the state as people read them."""
        return {n: show(v) for name, value in self.state.items() for n, v in flatten(name, value)}

    @property
    def steps(self) -> set[str]:
        """The labels of the steps that are enabled; both forms lead to the same states by them."""
        found = {(step.label, self.model.encode(after)) for step, after in self._successors()}
        cells = self.model.encode(self.state)
        lowered = {
            (s.label, take(s, cells))
            for s in self.model.steps
            if enabled(s, cells) and not evaluate(s.overflows, cells)
        }
        assert found == lowered
        return {label for label, _ in found}

    def _successors(self) -> list[tuple[Step, State]]:
        return list(self.interpreter.successors(self.state))

    def take(self, label: str) -> Shown:
        """Take the step with this label; the state afterwards."""
        assert label in self.steps
        self.state = next(after for step, after in self._successors() if step.label == label)
        return self.shown

    def ground_step(self, label: str) -> GroundStep:
        return next(s for s in self.model.steps if s.label == label)


def run(machine: type[Machine], nodes: int = 2, **budgets: int | None) -> Run:
    """A machine in its first initial state."""
    definition = define(machine)
    sizes = {"node": nodes} if definition.entities else {}
    interpreter = Interpreter(definition, scope_of(definition, sizes, budgets))
    states = list(interpreter.initial_states())
    model = ground(definition, interpreter.scope)
    assert [model.encode(s) for s in states] == sorted(model.initial)
    assert [model.decode(model.encode(s)) for s in states] == states
    return Run(interpreter, states[0])


def test_effects_happen_at_once_and_read_the_old_state() -> None:
    class Swap(Machine):
        left: OneVar[Colour] = one_of(Colour, init=Colour.red)
        right: OneVar[Colour] = one_of(Colour, init=Colour.blue)

        @action
        def swap(self) -> None:
            left, right = self.left, self.right
            self.left = right
            self.right = left

    assert run(Swap).take("swap") == {"left": "blue", "right": "red"}


def test_what_is_not_assigned_keeps_its_value() -> None:
    class Two(Machine):
        seen = per(Node, flag())
        other = flag(init=True)

        @action
        def see(self, node: Term[Node]) -> None:
            self.seen[node] = True

        @action
        def close(self) -> None:
            require(every(self.seen[n] for n in Node), "all are seen")
            self.other = False

    here = run(Two)
    assert here.take("see(node1)") == {"seen[node0]": "no", "seen[node1]": "yes", "other": "yes"}
    assert here.steps == {"see(node0)", "see(node1)"}


def test_a_loop_assigns_all_members_from_the_old_state() -> None:
    class Views(Machine):
        stage: OneVar[Stage] = one_of(Stage, init=Stage.moving)
        seen = per(Node, per(Colour, one_of(Stage, init=Stage.rest)))

        @action
        def tell(self) -> None:
            for n in Node:
                for c in Colour:
                    self.seen[n][c] = self.stage
            self.stage = Stage.done

    after = run(Views, nodes=3).take("tell")
    assert after.pop("stage") == "done"
    assert len(after) == 9
    assert set(after.values()) == {"moving"}


def test_a_loop_over_a_set_leaves_the_others_alone() -> None:
    class Views(Machine):
        up: SetVar[Node] = set_of(Node)
        seen = per(Node, flag())

        @action
        def start(self, node: Term[Node]) -> None:
            self.up.add(node)

        @action
        def tell(self) -> None:
            for n in self.up:
                self.seen[n] = True

    here = run(Views)
    here.take("start(node1)")
    assert here.take("tell") == {"up": "{node1}", "seen[node0]": "no", "seen[node1]": "yes"}


def test_a_loop_over_an_optional_visits_its_member_if_there_is_one() -> None:
    class Leads(Machine):
        leader: OptionalVar[Node] = optional(Node)
        told = per(Node, flag())

        @action
        def lead(self, node: Term[Node]) -> None:
            require(self.leader.is_none(), "nobody leads")
            self.leader = node

        @action
        def tell(self) -> None:
            for n in self.leader:
                self.told[n] = True

    here = run(Leads)
    assert here.take("tell") == {"leader": "none", "told[node0]": "no", "told[node1]": "no"}
    here.take("lead(node1)")
    assert here.steps == {"tell"}
    assert here.take("tell") == {"leader": "node1", "told[node0]": "no", "told[node1]": "yes"}


def test_a_requirement_in_a_loop_is_one_for_each_member() -> None:
    class Barrier(Machine):
        waiting: SetVar[Node] = set_of(Node, init=ANY)
        ready = per(Node, flag(init=ANY))
        open = flag()

        @action
        def pass_it(self) -> None:
            for n in self.waiting:
                require(self.ready[n], "each waiting node is ready")
            self.open = True

        @action
        def wait(self, node: Term[Node]) -> None:
            self.waiting.add(node)
            self.ready[node] = False

    here = run(Barrier)
    assert "pass_it" in here.steps
    here.take("wait(node0)")
    assert "pass_it" not in here.steps
    (failed,) = here.interpreter.failed_requirements(Step("pass_it"), here.state)
    assert failed.name == "each waiting node is ready"


def test_sets() -> None:
    class Sets(Machine):
        left: SetVar[Colour] = set_of(Colour, init={Colour.red, Colour.green})
        right: SetVar[Colour] = set_of(Colour, init={Colour.green, Colour.blue})
        size: NumberVar = number(0, 3)

        @action
        def union(self) -> None:
            self.left = self.left | self.right

        @action
        def intersection(self) -> None:
            self.left = self.left & self.right

        @action
        def difference(self) -> None:
            self.left = self.left - {Colour.red}

        @action
        def move(self, colour: Term[Colour]) -> None:
            require(self.left.has(colour) & ~self.right.has(colour), "it is on the left only")
            self.left.discard(colour)
            self.right.add(colour)

        @action
        def put(self, colour: Term[Colour]) -> None:
            require(self.left != self.right, "they differ")
            self.right.put(colour, self.left.has(colour))

        @action
        def measure(self) -> None:
            require(~self.left.is_empty(), "something is left")
            self.size = self.left.size()

    both = {"right": "{blue, green}", "size": "0"}
    assert run(Sets).take("union") == {"left": "{blue, green, red}", **both}
    assert run(Sets).take("intersection") == {"left": "{green}", **both}
    assert run(Sets).take("difference") == {"left": "{green}", **both}
    assert run(Sets).take("measure")["size"] == "2"
    assert run(Sets).take("put(blue)")["right"] == "{green}"
    assert run(Sets).take("put(red)")["right"] == "{blue, green, red}"
    here = run(Sets)
    assert {s for s in here.steps if s.startswith("move")} == {"move(red)"}
    assert here.take("move(red)") == {"left": "{green}", "right": "{blue, green, red}", "size": "0"}


def test_a_set_compared_with_a_concrete_one() -> None:
    class Sets(Machine):
        left: SetVar[Colour] = set_of(Colour, init={Colour.red})
        told = flag()

        @action
        def equal(self) -> None:
            require(self.left == {Colour.red}, "it is red")
            self.told = True

        @action
        def within(self) -> None:
            require(self.left <= {Colour.red, Colour.blue}, "it is within")
            self.left = {Colour.blue}

    here = run(Sets)
    assert here.steps == {"equal", "within"}
    here.take("within")
    assert here.steps == {"within"}


def test_optionals_hold_a_member_or_none() -> None:
    class Leads(Machine):
        leader: OptionalVar[Node] = optional(Node)
        shade: OptionalVar[Colour] = optional(Colour, init=Colour.blue)
        last: OptionalVar[Node] = optional(Node)

        @action
        def lead(self, node: Term[Node]) -> None:
            require(self.leader != node, "another one")
            self.last = self.leader
            self.leader = node

        @action
        def stop(self) -> None:
            require(self.shade.any_of(Colour.blue, None), "it may stop")
            self.shade = choose(self.leader.is_some(), None, self.shade)
            self.leader = None

    here = run(Leads)
    assert here.take("lead(node1)") == {"leader": "node1", "shade": "blue", "last": "none"}
    assert here.steps == {"lead(node0)", "stop"}
    assert here.take("lead(node0)") == {"leader": "node0", "shade": "blue", "last": "node1"}
    assert here.take("stop") == {"leader": "none", "shade": "none", "last": "node1"}
    assert here.steps == {"lead(node0)", "lead(node1)", "stop"}


class Row(Record):
    present = flag()
    owner: OptionalVar[Node] = optional(Node)
    marks = per(Colour, flag())


def test_records_are_assigned_whole_and_by_field() -> None:
    class Rows(Machine):
        rows = per(Node, record(Row))
        spare: Var[Row, Row] = record(Row)

        @action
        def write(self, node: Term[Node]) -> None:
            self.rows[node].present = True
            self.rows[node].owner = node
            self.rows[node].marks[Colour.red] = True

        @action
        def keep(self, node: Term[Node]) -> None:
            require(self.rows[node] != self.spare, "it is another one")
            self.spare = self.rows[node]

    here = run(Rows)
    assert here.steps == {"write(node0)", "write(node1)"}
    here.take("write(node1)")
    assert here.steps == {"write(node0)", "write(node1)", "keep(node1)"}
    after = here.take("keep(node1)")
    assert {k: v for k, v in after.items() if k.startswith("spare")} == {
        "spare.present": "yes",
        "spare.owner": "node1",
        "spare.marks[red]": "yes",
        "spare.marks[green]": "no",
        "spare.marks[blue]": "no",
    }
    assert after["rows[node0].present"] == "no"


def test_a_whole_map_is_assigned_at_once() -> None:
    class Maps(Machine):
        old = per(Node, one_of(Stage, init=Stage.rest))
        new = per(Node, one_of(Stage, init=Stage.moving))

        @action
        def change(self, node: Term[Node]) -> None:
            self.new[node] = Stage.done

        @action
        def copy(self) -> None:
            require(self.old != self.new, "they differ")
            self.old = self.new

    here = run(Maps)
    here.take("change(node0)")
    after = here.take("copy")
    assert (after["old[node0]"], after["old[node1]"]) == ("done", "moving")
    assert "copy" not in here.steps


def test_a_key_may_be_any_expression_of_its_sort() -> None:
    class Points(Machine):
        at: OneVar[Node] = one_of(Node)
        next = per(Node, one_of(Node))
        hits = per(Node, per(Stage, number(0, 2)))
        stage: OneVar[Stage] = one_of(Stage, init=Stage.moving)

        @action
        def hit(self) -> None:
            self.hits[self.next[self.at]][self.stage] += 1
            self.stage = choose(self.stage == Stage.moving, Stage.done, self.stage)

        @action
        def go(self) -> None:
            self.at = self.next[self.at]

        @action
        def turn(self, node: Term[Node]) -> None:
            self.next[self.at] = node

    here = run(Points)
    here.take("turn(node1)")
    after = here.take("hit")
    assert {k: v for k, v in after.items() if v == "1"} == {"hits[node1][moving]": "1"}
    here.take("go")
    assert {k: v for k, v in here.take("hit").items() if v == "1"} == {
        "hits[node1][moving]": "1",
        "hits[node0][done]": "1",
    }


def test_columns_of_every_kind() -> None:
    class Columns(Machine):
        stage: OneVar[Stage] = one_of(Stage, init=Stage.rest)
        busy = flag()
        rank: NumberVar = number(-1, 3)
        shade: OneVar[Colour] = one_of(Colour, init=Colour.blue)
        other: OptionalVar[Colour] = optional(Colour)
        shades: SetVar[Colour] = set_of(Colour)

        @action
        def read(self) -> None:
            self.busy = self.stage.column(lambda s: s.busy)
            self.rank = self.stage.number_column(lambda s: s.rank)
            self.shade = self.stage.column(lambda s: s.shade)
            self.other = self.stage.optional_column(lambda s: s.other)
            self.shades = self.stage.column(lambda s: s.shades)

        @action
        def change(self, to: Term[Stage]) -> None:
            self.stage = to

    here = run(Columns)
    expected = {
        "rest": ("no", "0", "red", "none", "{red}"),
        "moving": ("yes", "3", "green", "red", "{green, red}"),
        "done": ("no", "-1", "red", "blue", "{}"),
    }
    for stage, values in expected.items():
        here.take(f"change({stage})")
        assert tuple(here.take("read").values()) == (stage, *values)


def test_numbers_add_compare_and_are_counted() -> None:
    class Counts(Machine):
        up: SetVar[Node] = set_of(Node)
        low: NumberVar = number(-2, 2, init=-1)

        @action
        def start(self, node: Term[Node]) -> None:
            require(count(self.up.has(n) for n in Node) < 2, "room is left")
            self.up.add(node)
            self.low = self.low + 1

        @action
        def by(self, amount: Annotated[Number, between(-1, 1)]) -> None:
            require((self.low + amount >= -2) & (2 >= self.low + amount), "within bounds")  # noqa: SIM300 the reflected one
            self.low = self.low + amount

    here = run(Counts, nodes=3)
    here.take("start(node0)")
    here.take("start(node2)")
    assert here.steps == {"by(-1)", "by(0)", "by(1)"}
    here.take("by(1)")
    assert here.steps == {"by(-1)", "by(0)"}


def test_a_number_out_of_its_bounds_is_an_error_that_names_the_step() -> None:
    class Counts(Machine):
        low: NumberVar = number(0, 2)
        each = per(Node, number(0, 1))

        @action
        def more(self, node: Term[Node]) -> None:
            self.low = self.low + 2
            self.each[node] = 1

    here = run(Counts)
    assert here.steps == {"more(node0)", "more(node1)"}
    here.take("more(node0)")
    with pytest.raises(DomainError) as caught:
        here.interpreter.take(Step("more", arguments_of(here, "more(node1)")), here.state)
    assert caught.value.problem == "`more(node1)` assigns 4 to low, outside of 0..2"
    assert caught.value.where is not None
    assert caught.value.where.text().strip() == "self.low = self.low + 2"
    cells = here.model.encode(here.state)
    step = here.ground_step("more(node1)")
    assert (enabled(step, cells), evaluate(step.overflows, cells)) == (True, 1)


def arguments_of(here: Run, label: str):  # type: ignore[no-untyped-def]
    """The arguments of a ground step, as a step of the interpreter has them."""
    from stagewright.spec.values import FrozenMap

    return FrozenMap(dict(here.ground_step(label).arguments))


def test_a_step_that_is_not_enabled_is_refused_with_the_names_of_what_is_false() -> None:
    class Guarded(Machine):
        ready = flag()
        fresh = flag(init=True)

        def settled(self) -> None:
            require(self.ready | self.fresh)

        @action
        def go(self) -> None:
            self.settled()
            require(self.ready, "it is ready")
            require(~self.fresh, "it is stale")
            self.ready = False

        @action
        def rot(self) -> None:
            self.ready = True
            self.fresh = False

    here = run(Guarded)
    with pytest.raises(RefusedError) as caught:
        here.interpreter.take(Step("go"), here.state)
    assert caught.value.requirements == ("it is ready", "it is stale")
    assert caught.value.problem == "`go` cannot happen now: not (it is ready; it is stale)"
    assert [r.name for r in here.ground_step("go").requirements] == [
        "settled",
        "it is ready",
        "it is stale",
    ]
    here.take("rot")
    assert here.steps == {"go", "rot"}


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
        busy = flag()

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
    open = flag()
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


def test_a_family_of_parts_has_a_machine_for_every_member() -> None:
    class Street(Machine):
        doors = many(Door, over=Node)
        last: OptionalVar[Node] = optional(Node)

        @action
        def walk(self, node: Term[Node]) -> None:
            require(some(self.doors[n].open for n in Node) | self.last.is_none(), "one is open")
            self.doors[node].use(Bool(self.doors[node].open.node) == False)  # noqa: E712
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

        @reachable
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


def test_a_property_tells_for_which_parameters_it_fails() -> None:
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

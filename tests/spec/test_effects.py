"""Effects happen at once, from the old state, and only where all requirements hold."""

from __future__ import annotations

import pytest
from tests.spec.runs import Colour, Node, Stage, run

from stagewright.spec import (
    ANY,
    DomainError,
    Fairness,
    FlagVar,
    Machine,
    NumberVar,
    OneVar,
    OptionalVar,
    RefusedError,
    SetVar,
    Term,
    action,
    choose,
    define,
    every,
    flag,
    number,
    one_of,
    optional,
    per,
    require,
    set_of,
)
from stagewright.spec.grounding.ground_eval import enabled, evaluate
from stagewright.spec.verdict import Step


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
        other: FlagVar = flag(init=True)

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
        open: FlagVar = flag()

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
        here.interpreter.take(here.step("more(node1)"), here.state)
    assert caught.value.problem == "`more(node1)` assigns 4 to low, outside of 0..2"
    assert caught.value.where is not None
    assert caught.value.where.text().strip() == "self.low = self.low + 2"
    cells = here.model.encode(here.state)
    step = here.ground_step("more(node1)")
    assert (enabled(step, cells), evaluate(step.overflows, cells)) == (True, 1)


def test_a_step_that_is_not_enabled_is_refused_with_the_names_of_what_is_false() -> None:
    class Guarded(Machine):
        ready: FlagVar = flag()
        fresh: FlagVar = flag(init=True)

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
    assert caught.value.problem == "`go` cannot happen now; unmet: it is ready; it is stale"
    assert [r.name for r in here.ground_step("go").requirements] == [
        "settled",
        "it is ready",
        "it is stale",
    ]
    here.take("rot")
    assert here.steps == {"go", "rot"}


def test_a_symbolic_number_is_taken_from_a_plain_one() -> None:
    class Countdown(Machine):
        left: NumberVar = number(0, 3, init=1)

        @action
        def mirror(self) -> None:
            self.left = 3 - self.left

    assert run(Countdown).take("mirror") == {"left": "2"}


class Counter(Machine):
    """A counter, and whether it was moved."""

    count: NumberVar = number(0, 3)
    moved: FlagVar = flag()
    down: SetVar[Node] = set_of(Node)

    @action
    def move(self, node: Term[Node]) -> None:
        require(self.count < 3, "there is room")
        require(~self.down.has(node), "it is up")
        self.count = self.count + 1
        self.down.add(node)

    @action
    def reset(self) -> None:
        self.count = 0


def test_an_override_goes_on_from_what_the_base_class_says() -> None:
    class Noticed(Counter):
        @action(fair=Fairness.WEAK)
        def move(self, node: Term[Node]) -> None:
            require(~self.moved, "it was not moved yet")
            self.moved = True
            super().move(node)

    found = define(Noticed).action("move")
    assert [r.name for r in found.requirements] == [
        "it was not moved yet",
        "there is room",
        "it is up",
    ]
    assert [f.strength for f in found.fair] == [Fairness.WEAK]
    assert [a.name for a in define(Noticed).actions] == ["move", "reset"]
    after = run(Noticed).take("move(node0)")
    assert (after["count"], after["moved"]) == ("1", "yes")


def test_an_override_by_which_a_base_action_happens_too_takes_it_as_a_part_of_itself() -> None:
    class Again(Counter):
        @action
        def reset(self) -> None:
            require(self.count == 3, "it is full")
            super().reset()

        @action
        def clear(self) -> None:
            self.reset()
            self.moved = False

    assert [a.name for a in define(Again).actions] == ["move", "clear"]
    assert [r.name for r in define(Again).action("clear").requirements] == ["it is full"]

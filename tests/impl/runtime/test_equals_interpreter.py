"""The runtime does what the reference interpreter does: in every reachable state, for every step."""

from collections import deque
from collections.abc import Iterator
from enum import Enum, StrEnum
from pathlib import Path
from typing import Annotated

import pytest
from tests.thorough import some_of

from stagewright.impl.runtime import Instance, Program, instance
from stagewright.machines.scylladb.tablets.tablet_migration import TabletMigration
from stagewright.machines.scylladb.tablets.tablet_stages import Kind, Stage
from stagewright.spec import (
    DomainError,
    FlagVar,
    Machine,
    Number,
    NumberVar,
    OneVar,
    RefusedError,
    Scope,
    Term,
    action,
    between,
    choose,
    define,
    flag,
    number,
    one_of,
    require,
    scope_of,
)
from stagewright.spec.declarations.variables import ANY
from stagewright.spec.definition import Action, Definition
from stagewright.spec.interpreter import Environment, Interpreter, step_of
from stagewright.spec.loading import load
from stagewright.spec.values import State
from stagewright.spec.verdict import Step

MODELS = Path(__file__).resolve().parents[2] / "models"


class Gear(Enum):
    """Members of which one has a value that is false."""

    NEUTRAL = 0
    FIRST = 1
    SECOND = 2


class Mood(StrEnum):
    """Members that are strings too."""

    ALWAYS = "always"
    NEVER = "never"


class Car(Machine):
    """Dynamic targets, several initial states, and actions named as `transitions` names its own things."""

    gear: OneVar[Gear] = one_of(Gear)
    mood: OneVar[Mood] = one_of(Mood, init=Mood.ALWAYS)
    speed: NumberVar = number(0, 3, init=ANY)
    braked: FlagVar = flag()

    @action
    def shift(self, to: Term[Gear]) -> None:
        """Into any other gear."""
        require(self.gear != to, "another gear")
        self.gear = to

    @action
    def trigger(self) -> None:
        """Up, or down when it is braked."""
        require(self.gear != Gear.NEUTRAL, "in gear")
        self.gear = choose(self.braked, Gear.NEUTRAL, Gear.SECOND)
        self.mood = Mood.NEVER

    @action
    def state(self, by: Annotated[Number, between(1, 3)]) -> None:
        """Faster, without a look at the limit: out of bounds in some states."""
        require(~self.braked, "not braked")
        self.speed = self.speed + by

    @action
    def may_trigger(self) -> None:
        """Brake."""
        self.braked = True
        self.speed = 0


class Switch(Machine):
    """No enum variable at all."""

    on: FlagVar = flag()
    uses: NumberVar = number(0, 2)

    @action
    def toggle(self) -> None:
        """On or off, as long as it lasts."""
        require(self.uses < 2, "not worn out")
        self.on = ~self.on
        self.uses = self.uses + 1


def tablet(profile: str, **budgets: int | None) -> tuple[Definition, Scope]:
    definition = define(TabletMigration, profile)
    return definition, scope_of(definition, budgets=budgets)


def model(name: str, profile: str = "", **sizes: int) -> tuple[Definition, Scope]:
    definition = load(str(MODELS / f"{name}.py"), profile)
    return definition, scope_of(definition, sizes)


def defaults(machine: type[Machine]) -> tuple[Definition, Scope]:
    definition = define(machine)
    return definition, scope_of(definition)


CASES = {
    "tablet of the seed": lambda: tablet("seed", failures=None, failovers=0),
    "tablet of 2025.4": lambda: tablet("scylla-2025.4", failures=0, failovers=0),
    "tablet of 2026.2": lambda: tablet("scylla-2026.2", failures=None, failovers=None),
    "two-phase commit": lambda: model("two_phase_commit", manager=2),
    "barriers": lambda: model("tablet_barrier", tablet=1, node=2),
    "dynamic targets": lambda: defaults(Car),
    "no enum variable": lambda: defaults(Switch),
}


def all_steps(interpreter: Interpreter) -> Iterator[tuple[Step, Action, Environment]]:
    """Every step, resolved once: the interpreter is slow, and this is its whole work."""
    for each in interpreter.definition.actions:
        for environment in interpreter.instances(each.params):
            yield step_of(each, environment), each, environment


def taken(interpreter: Interpreter, step: Step, state: State) -> State | type[Exception]:
    try:
        return interpreter.take(step, state)
    except DomainError as error:
        return type(error)


def fired(running: Instance, step: Step) -> State | type[Exception]:
    before = running.state
    try:
        running.fire(step)
    except (RefusedError, DomainError) as error:
        assert running.state == before, "a step that does not happen changes nothing"
        return type(error)
    return running.state


@pytest.mark.parametrize("case", some_of(CASES, quick=lambda case: "2026" not in str(case)))
def test_runtime_takes_and_refuses_what_the_interpreter_does(case: str) -> None:
    definition, scope = CASES[case]()
    interpreter, program = Interpreter(definition, scope), Program(definition, scope)
    steps = list(all_steps(interpreter))
    frontier = deque(interpreter.initial_states())
    seen = set(frontier)
    enabled_somewhere = 0
    while frontier:
        state = frontier.popleft()
        running = Instance(program, state)
        enabled = {step.label for step in running.enabled()}
        for step, performed, environment in steps:
            failed = tuple(
                r.name
                for r in performed.requirements
                if not interpreter.evaluate(r.condition, state, None, environment)
            )
            assert running.refusals(step) == failed
            assert running.can(step) == (not failed) == (step.label in enabled)
            outcome = RefusedError if failed else taken(interpreter, step, state)
            if isinstance(outcome, type):
                assert fired(running, step) is outcome
                continue
            assert fired(Instance(program, state), step) == outcome
            if outcome not in seen:
                seen.add(outcome)
                frontier.append(outcome)
        enabled_somewhere += len(enabled)
    assert len(seen) > 1
    assert enabled_somewhere >= len(seen) - len(list(interpreter.initial_states()))


def test_control_state_of_transitions_is_the_stage() -> None:
    definition, scope = tablet("scylla-2026.2")
    program = Program(definition, scope)
    assert program.control is not None
    assert program.control.name == "stage"
    assert {s.value for s in program.machine.states.values()} == set(Stage)
    edges = {
        (e.name, t.source, t.dest)
        for e in program.machine.events.values()
        for ts in e.transitions.values()
        for t in ts
    }
    assert ("use_new", "write_both_read_new", "use_new") in edges
    assert [e for e in edges if e[0] == "fall_back"] == [
        ("fall_back", "write_both_read_new", "write_both_read_old_fallback_cleanup")
    ]
    assert ("pass_barrier", "use_new", None) in edges
    assert ("pass_barrier", "none", None) not in edges


def test_transitions_decides_what_can_happen() -> None:
    definition, _ = tablet("scylla-2026.2")
    program = Program(definition)
    running = Instance(program)
    running.fire("start", kind=Kind.migration)
    del program.machine.events["pass_barrier"].transitions["allow_write_both_read_old"]
    assert running.refusals("pass_barrier") == ()
    with pytest.raises(RefusedError, match="a transition of pass_barrier from allow_write_both"):
        running.fire("pass_barrier")
    assert "pass_barrier" not in program.machine.get_triggers("allow_write_both_read_old")


def test_instance_starts_in_the_initial_state_that_was_chosen() -> None:
    definition, scope = defaults(Car)
    starts = list(Interpreter(definition, scope).initial_states())
    assert len(starts) == 12
    for start in starts:
        running = instance(definition, scope, initial=start)
        assert running.state == start
        assert running.control == start["gear"]

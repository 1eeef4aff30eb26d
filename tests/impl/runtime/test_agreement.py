"""The runtime does what the reference interpreter does: on every shipped machine, and on random ones.

Random walks: in the states met, every (action, arguments) has the same failed requirements in the same
order, or leads to the same state; a step goes through `transitions`.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from tests.random_machines.definitions import RandomMachine, machines
from tests.thorough import by_turns, examples, some_of

from stagewright.impl.runtime import Instance, Program
from stagewright.impl.runtime.columns import Cells
from stagewright.impl.runtime.present import values_now
from stagewright.machines import SHIPPED
from stagewright.spec.define import define
from stagewright.spec.definition import Definition
from stagewright.spec.errors import AssignedTwiceError, DomainError, RefusedError, ScopeError
from stagewright.spec.interpreter import Interpreter, step_of
from stagewright.spec.loading import find
from stagewright.spec.machine import profile_names
from stagewright.spec.scope import Scope, living, scope_of
from stagewright.spec.values import FrozenMap, State
from stagewright.spec.verdict import Step

PATIENT = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
LOOKED_AT = 12  # steps in a state, beside the one that is taken
PROFILES = [
    (name, profile) for name in SHIPPED for profile in profile_names(find(name, SHIPPED)) or [""]
]
NEWEST = [*dict(PROFILES).items()][::3]  # of each third machine


def all_steps(interpreter: Interpreter) -> list[Step]:
    return [
        step_of(action, environment)
        for action in interpreter.definition.actions
        for environment in interpreter.instances(action.params)
    ]


def outcome_of(interpreter: Interpreter, step: Step, state: State) -> State | type[Exception]:
    try:
        return interpreter.take(step, state)
    except (DomainError, AssignedTwiceError, RefusedError) as error:
        return type(error)


def indexes_are_right(cells: Cells) -> bool:
    """Whether the sparse columns hold no default, and the buckets what the columns say."""
    for column in cells.columns:
        if column.keys and any(v == column.default for v in cells.held[column.index].values()):
            return False
    for index, buckets in cells.buckets.items():
        found: dict[object, set[object]] = {}
        for key in values_now(cells.columns[index].keys[0], cells.live):
            found.setdefault(cells.read(index, key), set()).add(key)
        if found != {value: set(keys) for value, keys in buckets.items() if keys}:
            return False
    return True


def agree(interpreter: Interpreter, running: Instance, step: Step, state: State) -> None:
    """One step attempted from one state: refused by the same names, or led to the same state."""
    failed = tuple(r.name for r in interpreter.failed_requirements(step, state))
    assert running.refusals(step) == failed
    expected = RefusedError if failed else outcome_of(interpreter, step, state)
    if isinstance(expected, type):
        with pytest.raises(expected) as caught:
            running.fire(step)
        assert getattr(caught.value, "requirements", failed) == failed
        assert running.state == state
    else:
        running.fire(step)
        assert running.state == expected
    assert indexes_are_right(running.cells)


def walk(
    definition: Definition, scope: Scope, steps: int, chance: Random, *, live: bool = False
) -> None:
    """Walk at random, and compare some steps in each state; `live`: without a check's bounds."""
    if live:
        scope = replace(scope, budgets=FrozenMap({b.name: None for b in definition.budgets}))
        walk_live(definition, Interpreter(living(definition), scope), steps, chance)
        return
    interpreter, program = Interpreter(definition, scope), Program(definition, scope)
    listed = all_steps(interpreter)

    def started() -> Instance:
        return Instance(program, program.starts.decode(chance.choice(program.starts.initial)))

    running = started()
    for number in range(steps):
        state = running.state
        for step in chance.sample(listed, min(LOOKED_AT, len(listed))):
            made = running.copy() if chance.random() < 0.5 else Instance(program, state)
            agree(interpreter, made, step, state)
        assert running.copy().state == running.state == state, "a copy changes by itself"
        enabled = running.enabled()
        if number % 10 == 0:
            refused = [s for s in listed if interpreter.failed_requirements(s, state)]
            assert set(enabled) == set(listed) - set(refused)
            assert len(enabled) == len(set(enabled))
        if enabled:
            agree(interpreter, running, chance.choice(enabled), state)
        else:
            running = started()


def walk_live(definition: Definition, interpreter: Interpreter, steps: int, chance: Random) -> None:
    """The same without a scope, as far as the interpreter knows numbers: the program has no bounds."""
    program, listed = Program(definition), all_steps(interpreter)
    starts = Program(living(definition), interpreter.scope).starts
    state = starts.decode(chance.choice(starts.initial))
    entities = [k(i) for k, size in interpreter.scope.sizes.items() for i in range(size)]
    for _ in range(steps):
        step = chance.choice(listed)
        running = Instance(program, state, entities=entities)
        if outcome_of(interpreter, step, state) is not DomainError:
            agree(interpreter, running, step, state)
            state = running.state
        enabled = Instance(program, state, entities=entities).enabled()
        assert set(enabled) == {s for s in listed if not interpreter.failed_requirements(s, state)}
        inside = [s for s in enabled if isinstance(outcome_of(interpreter, s, state), FrozenMap)]
        if inside:
            state = interpreter.take(chance.choice(inside), state)


def random_scope(definition: Definition, chance: Random) -> Scope:
    """One to three of each entity, budgets as by default or without bound."""
    sizes = {kind.__name__: chance.choice((1, 2, 2, 3)) for kind in definition.entities}
    budgets = {b.name: chance.choice((b.default, None)) for b in definition.budgets}
    return scope_of(definition, sizes, budgets)


def walk_somewhere(name: str, profile: str, steps: int, chance: Random) -> None:
    definition = define(find(name, SHIPPED), profile)
    for _ in range(8):
        try:
            scope = random_scope(definition, chance)
            walk(definition, scope, steps, chance)
            walk(definition, scope, steps // 2, chance, live=True)
        except ScopeError:
            continue  # no initial state there, or too many
        return
    walk(definition, scope_of(definition), steps, chance)


@pytest.mark.parametrize(
    ("name", "profile"), by_turns(some_of(PROFILES, quick=NEWEST.__contains__))
)
def test_walks_of_each_profile_agree(name: str, profile: str) -> None:
    walk_somewhere(name, profile, 5, Random(name))


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "profile"), PROFILES)
def test_long_walks_of_each_profile_agree(name: str, profile: str) -> None:
    for seed in range(3):
        walk_somewhere(name, profile, 60, Random(f"{name} {profile} {seed}"))


def look_at_random_machine(machine: RandomMachine) -> None:
    try:
        walk(machine.definition, machine.scope, 12, Random(0))
        walk(machine.definition, machine.scope, 4, Random(1), live=True)
    except ScopeError:
        return  # no state satisfies its initial conditions


@settings(max_examples=examples(60), suppress_health_check=PATIENT)
@given(machine=machines())
def test_walks_of_random_machines_agree(machine: RandomMachine) -> None:
    look_at_random_machine(machine)


@pytest.mark.thorough
@settings(max_examples=600, suppress_health_check=PATIENT)
@given(machine=machines())
def test_walks_of_many_random_machines_agree(machine: RandomMachine) -> None:
    look_at_random_machine(machine)

"""The edges of a state diagram are those of the steps that the reference interpreter takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings, strategies as st
from tests.random_machines.definitions import RandomMachine, bounded_machines, machines
from tests.random_machines.explored import Explored, TooLargeError
from tests.thorough import examples

from stagewright.checker.engines import EngineKind
from stagewright.checker.limits import Limits
from stagewright.checker.reached_edges import reached_edges
from stagewright.machines import SHIPPED
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.loading import load
from stagewright.spec.nodes import root_variable, variables_in
from stagewright.spec.scope import scope_of
from stagewright.spec.text.state_diagram import Edge, drawn_variables
from stagewright.spec.values import FrozenMap, State, Value
from stagewright.spec.verdict import Step

MOST_STATES = 120
PATIENT = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


Taken = tuple[State, Step, State]


def edges_of(interpreter: Interpreter, variable: str, steps: Iterable[Taken]) -> set[Edge]:
    """The edges of some steps: what changed, and what was assigned again at keys that are known."""
    found: set[Edge] = set()
    for old, step, new in steps:
        action, environment = interpreter.resolve(step)
        pairs = zip(members_in(old[variable]), members_in(new[variable]), strict=True)
        found |= {(a, b, action.name) for a, b in pairs if a is not b}
        mine = [a for a in action.assignments if root_variable(a.place) == variable]
        if any(variables_in(a.place) != {variable} for a in mine):
            continue
        for assignment in mine:
            for more in interpreter.instances(assignment.binders):
                bound = {**environment, **more}
                before, after = (
                    members_in(interpreter.evaluate(assignment.place, state, environment=bound))
                    for state in (old, new)
                )
                same = zip(before, after, strict=True)
                found |= {(a, b, action.name) for a, b in same if a is b}
    return found


def members_in(value: Value) -> Iterator[Enum]:
    """The member itself, or those at all keys."""
    if isinstance(value, FrozenMap):
        for key in value:
            yield from members_in(value[key])
    else:
        assert isinstance(value, Enum)
        yield value


SMALL = ("index-permissions", "topology-node", "topology-transition", "cdc-generation")


@pytest.mark.parametrize("name", SMALL)
def test_of_shipped_machines_those_edges_are_drawn_that_the_interpreter_takes(name: str) -> None:
    definition = load(name, "", SHIPPED)
    scope = scope_of(definition)
    interpreter = Interpreter(definition, scope)
    levels = list(levels_of(interpreter))
    taken = [one for level in levels for one in level]
    for variable in drawn_variables(definition):
        found = reached_edges(definition, variable, scope)
        assert not found.stopped
        assert set(found.edges) == edges_of(interpreter, variable, taken)
        starts = {m for s in interpreter.initial_states() for m in members_in(s[variable])}
        assert set(found.initial) == starts


def levels_of(interpreter: Interpreter) -> Iterator[list[Taken]]:
    """The steps that leave the states of each depth."""
    level = list(interpreter.initial_states())
    seen = set(level)
    while level:
        taken = [(s, step, after) for s in level for step, after in interpreter.successors(s)]
        yield taken
        level = list(dict.fromkeys(after for _, _, after in taken if after not in seen))
        seen.update(level)


@pytest.mark.parametrize("most", [2, 40, 300, 620])
def test_a_search_that_is_cut_off_draws_the_edges_of_whole_levels(most: int) -> None:
    definition = load("index-permissions", "", SHIPPED)
    scope = scope_of(definition)
    interpreter = Interpreter(definition, scope)
    one, two = (
        reached_edges(
            definition,
            "permission",
            scope,
            limits=Limits(states=most),
            engine=engine,
            workers=workers,
            symmetry=False,
        )
        for engine, workers in ((EngineKind.NATIVE, 2), (EngineKind.NUMPY, 1))
    )
    assert (one.edges, one.states, one.depth) == (two.edges, two.states, two.depth)
    assert "limit" in one.stopped
    levels = [level for _, level in zip(range(one.depth + 1), levels_of(interpreter), strict=False)]
    taken = [step for level in levels for step in level] if one.states else []
    assert set(one.edges) == edges_of(interpreter, "permission", taken)
    assert one.states == len({old for old, _, _ in taken})


@pytest.mark.slow
@settings(max_examples=examples(36), suppress_health_check=PATIENT, phases=[Phase.generate])
@given(machine=st.one_of(machines(), bounded_machines()))
def test_of_random_machines_too(machine: RandomMachine) -> None:
    definition = machine.definition
    assume(drawn_variables(definition))
    try:
        found = Explored(machine, MOST_STATES)
    except TooLargeError:
        return
    assume(found.initial)
    for variable in drawn_variables(definition):
        expected = edges_of(found.interpreter, variable, found.edges)
        for symmetry in (False, True):
            drawn = reached_edges(
                definition, variable, machine.scope, engine=EngineKind.NUMPY, symmetry=symmetry
            )
            assert set(drawn.edges) == expected
            assert set(drawn.initial) == {m for s in found.initial for m in members_in(s[variable])}

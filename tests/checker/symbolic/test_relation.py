"""Z3's step relation and the reference interpreter have the same steps."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stagewright.checker.symbolic.relation import (
    State,
    StepRelation,
    Transition,
    successors_by_z3,
)
from stagewright.spec import DomainError, RefusedError, scope_of
from stagewright.spec.definition import Definition
from stagewright.spec.grounding.ground import GroundModel
from stagewright.spec.grounding.lowering import ground
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.values import FrozenMap
from stagewright.spec.verdict import Step

Load = Callable[[str], Definition]
ALL = [
    "Handover",
    "HastyHandover",
    "TwoRings",
    "Exchange",
    "Counting",
    "Pacing",
    "Steps",
    "Mixture",
]


def reference(definition: Definition, model: GroundModel) -> tuple[list[State], list[Transition]]:
    """The reachable states and the transitions between them, as the interpreter has them."""
    interpreter = Interpreter(definition, model.scope)
    states, transitions = list(map(model.encode, interpreter.initial_states())), list[Transition]()
    seen = set(states)
    for state in states:
        for step in model.steps:
            taken = Step(step.action.name, FrozenMap(dict(step.arguments)))
            try:
                after = model.encode(interpreter.take(taken, model.decode(state)))
            except (RefusedError, DomainError):  # a step that overflows leads nowhere
                continue
            transitions.append((state, step.index, after))
            if after not in seen:
                seen.add(after)
                states.append(after)
    return states, transitions


@pytest.mark.parametrize("name", ALL)
def test_the_relation_has_exactly_the_interpreter_s_transitions(name: str, machine: Load) -> None:
    definition = machine(name)
    model = ground(definition, scope_of(definition))
    states, transitions = reference(definition, model)
    assert len(transitions) > 2
    assert StepRelation(model).difference(states, transitions) is None


@pytest.mark.parametrize("name", ["Steps", "TwoRings", "Counting"])
def test_enumerating_the_solver_s_models_gives_every_successor(name: str, machine: Load) -> None:
    definition = machine(name)
    model = ground(definition, scope_of(definition))
    states, transitions = reference(definition, model)
    for state in states:
        expected = {(index, after) for before, index, after in transitions if before == state}
        assert successors_by_z3(model, state) == expected


def test_a_missing_and_a_wrong_transition_are_both_found(machine: Load) -> None:
    definition = machine("Handover")
    model = ground(definition, scope_of(definition))
    states, transitions = reference(definition, model)
    relation = StepRelation(model)
    assert relation.difference(states, transitions[1:]) == transitions[0]
    before, index, after = transitions[-1]
    wrong = (before, index, states[0] if after != states[0] else states[1])
    assert relation.difference(states, [*transitions, wrong]) == wrong


def test_states_that_were_not_asked_about_do_not_count(machine: Load) -> None:
    definition = machine("TwoRings")
    model = ground(definition, scope_of(definition))
    states, transitions = reference(definition, model)
    assert StepRelation(model).difference(states[:1], transitions) is None
    assert StepRelation(model).difference([], []) is None

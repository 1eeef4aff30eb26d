"""A path of canonical states becomes a run that the reference interpreter takes, step by step."""

from __future__ import annotations

import pytest
from tests.checker.symmetry.by_hand import Compared, model_of

from stagewright.checker.explicit.runs import paths_to, step_of
from stagewright.checker.symmetry.lifting import (
    Lifted,
    lifted_along,
    lifted_arguments,
    lifted_step,
    run_of,
)
from stagewright.spec.errors import DomainError
from stagewright.spec.grounding.ground_eval import evaluate
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.verdict import Run

CASES = [
    ("two_phase_commit.py", {"manager": 4}),
    ("tablet_barrier.py", {"tablet": 2, "node": 2}),
    ("turnstile.py", {"gate": 3}),
    ("lease.py", {"node": 4}),
    ("broken.py:Migration", {"node": 3}),
    ("broken.py:Workers", {"node": 3, "task": 3}),
    ("Gossip", {"peer": 3}),
    ("Market", {"peer": 3, "item": 2}),
]
TARGETS = 40  # states whose runs are looked at, of each machine


@pytest.fixture(scope="module", params=CASES, ids=str)
def compared(request: pytest.FixtureRequest) -> Compared:
    name, sizes = request.param
    return Compared(model_of(name, sizes=sizes))


@pytest.fixture(scope="module")
def interpreter(compared: Compared) -> Interpreter:
    return Interpreter(compared.definition, compared.model.scope)


def test_every_kind_of_violation_is_among_these_machines() -> None:
    found = [Compared(model_of(name, sizes=sizes)).reduced for name, sizes in CASES]
    assert any(first is not None for f in found for first in f.first_false)
    assert any(edge is not None for f in found for edge in f.bad_edges)
    assert any(f.overflow is not None for f in found)


def accepted(interpreter: Interpreter, run: Run) -> bool:
    """Whether the run starts in an initial state and takes nothing but steps of the machine."""
    if run.states[0] not in set(interpreter.initial_states()):
        return False
    return all(
        not interpreter.failed_requirements(step, old) and interpreter.take(step, old) == new
        for old, step, new in zip(run.states[:-1], run.steps, run.states[1:], strict=True)
    )


def test_runs_to_all_kinds_of_states_are_runs_of_the_machine(
    compared: Compared, interpreter: Interpreter
) -> None:
    found = compared.reduced
    targets = set(range(0, found.states, max(1, found.states // TARGETS)))
    for target, path in paths_to(found, targets).items():
        run = lifted_along(found, compared.symmetry, path)
        assert accepted(interpreter, run_of(compared.model, run))
        assert len(run.steps) == found.depth_of(target)
        last = compared.engine.layout.pack([run.states[-1]])
        form = compared.engine.canonical(last)
        assert (form == found.words[:, target : target + 1]).all()


def test_the_run_breaks_the_invariant_that_the_path_breaks(
    compared: Compared, interpreter: Interpreter
) -> None:
    found, model = compared.reduced, compared.model
    for instance, state in zip(model.invariants, found.first_false, strict=True):
        if state is None:
            continue
        run = lifted_along(found, compared.symmetry, paths_to(found, [state])[state])
        last = run_of(model, run).states[-1]
        assert not interpreter.holds(instance.property, last)[0]
        arguments = lifted_arguments(model, compared.symmetry, run, instance.arguments)
        (named,) = [
            p
            for p in model.invariants
            if p.property is instance.property and p.arguments == arguments
        ]
        assert not evaluate(named.condition, run.states[-1])


def test_the_run_ends_with_the_step_that_breaks_a_step_property(
    compared: Compared, interpreter: Interpreter
) -> None:
    found, model = compared.reduced, compared.model
    for instance, edge in zip(model.step_properties, found.bad_edges, strict=True):
        if edge is None:
            continue
        start, steps = paths_to(found, [edge.source])[edge.source]
        run = lifted_along(found, compared.symmetry, (start, (*steps, (edge.step, edge.target))))
        lifted = run_of(model, run)
        assert accepted(interpreter, lifted)
        assert not interpreter.holds(instance.property, lifted.states[-2], lifted.states[-1])[0]
        arguments = lifted_arguments(model, compared.symmetry, run, instance.arguments, at=-2)
        (named,) = [
            p
            for p in model.step_properties
            if p.property is instance.property and p.arguments == arguments
        ]
        assert not evaluate(named.condition, run.states[-2], run.states[-1])


def test_the_run_ends_where_a_step_would_leave_the_bounds(
    compared: Compared, interpreter: Interpreter
) -> None:
    found, model = compared.reduced, compared.model
    if found.overflow is None:
        assert compared.full.overflow is None
        return
    state, index = found.overflow
    run: Lifted = lifted_along(found, compared.symmetry, paths_to(found, [state])[state])
    step = lifted_step(model, compared.symmetry, run, index)
    lifted = run_of(model, run)
    named = step_of(step)
    assert not interpreter.failed_requirements(named, lifted.states[-1])
    with pytest.raises(DomainError):
        interpreter.take(named, lifted.states[-1])

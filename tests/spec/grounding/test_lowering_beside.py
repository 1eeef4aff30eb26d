"""A definition lowered beside another one means what it means by itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from stagewright.spec.definition import Definition
from stagewright.spec.grounding.ground import GroundModel
from stagewright.spec.grounding.ground_eval import evaluate, successors
from stagewright.spec.grounding.lowering import Lowering, ground
from stagewright.spec.loading import load
from stagewright.spec.nodes import FALSE, TRUE
from stagewright.spec.scope import scope_of

MODELS = Path(__file__).resolve().parents[2] / "models"
MOST = 60  # states of each model that are looked at


@pytest.fixture(scope="module")
def commit() -> Definition:
    return load(str(MODELS / "two_phase_commit.py"))


def changed(definition: Definition, name: str) -> Definition:
    """Without the first requirement of an action."""
    actions = tuple(
        replace(a, requirements=a.requirements[1:]) if a.name == name else a
        for a in definition.actions
    )
    return replace(definition, actions=actions)


def alike(one: GroundModel, other: GroundModel) -> None:
    assert [s.label for s in one.steps] == [s.label for s in other.steps]
    assert [s.index for s in one.steps] == list(range(len(one.steps)))
    assert [p.label for p in one.invariants] == [p.label for p in other.invariants]
    seen = [*one.initial]
    for state in seen:
        after = [(step.index, new) for step, new in successors(one, state)]
        assert after == [(step.index, new) for step, new in successors(other, state)]
        for a, b in zip(one.invariants, other.invariants, strict=True):
            assert evaluate(a.condition, state) == evaluate(b.condition, state)
        for _, new in after:
            if new not in seen and len(seen) < MOST:
                seen.append(new)


def test_what_differs_in_an_action_means_the_same_beside_and_alone(commit: Definition) -> None:
    scope = scope_of(commit)
    lowering = Lowering(commit, scope)
    model = lowering.model()
    for action in commit.actions:
        other = changed(commit, action.name)
        alike(lowering.beside(other), ground(other, scope))
    alike(lowering.beside(commit), model)
    alike(ground(commit, scope), model)


def test_promises_and_actions_may_be_fewer(commit: Definition) -> None:
    scope = scope_of(commit)
    fewer = replace(commit, actions=commit.actions[2:], properties=commit.properties[:1])
    alike(Lowering(commit, scope).beside(fewer), ground(fewer, scope))


def test_nodes_of_one_are_forgotten_before_the_next(commit: Definition) -> None:
    lowering = Lowering(commit, scope_of(commit))
    nodes = len(lowering.model().builder.nodes)
    for _ in range(3):
        beside = lowering.beside(changed(commit, "commit"))
        assert len(beside.builder.nodes) >= nodes
    assert len(lowering.beside(commit).builder.nodes) == nodes


def test_where_a_run_may_end_is_lowered_beside(commit: Definition) -> None:
    lowering = Lowering(commit, scope_of(commit))
    model = lowering.model()
    assert model.final is not model.builder.false
    other = lowering.beside(replace(commit, final=FALSE))
    assert other.builder is model.builder
    assert other.final is other.builder.false
    assert lowering.beside(commit).final is model.final


def test_what_differs_in_more_is_lowered_alone(commit: Definition) -> None:
    lowering = Lowering(commit, scope_of(commit))
    model = lowering.model()
    other = lowering.beside(replace(commit, initially=(*commit.initially, TRUE)))
    assert other.builder is not model.builder
    alike(other, model)

"""The machines that logs are checked by are projections of the machines that say why and when."""

from __future__ import annotations

from enum import Enum
from functools import cache

import pytest
from tests.machines.violated import broken
from tests.thorough import some_of

from stagewright.checker.check import check
from stagewright.machines.scylladb.cdc.cdc_generation import CdcGeneration
from stagewright.machines.scylladb.topology.topology_control import TopologyControl
from stagewright.machines.scylladb.topology.topology_node import TopologyNode
from stagewright.machines.scylladb.topology.topology_request import TopologyRequest
from stagewright.machines.scylladb.topology.topology_states import NodeState, TransitionState
from stagewright.machines.scylladb.topology.topology_transition import RELEASES, TopologyTransition
from stagewright.machines.scylladb.views.view_coordinator import ViewCoordinator
from stagewright.spec.define import define
from stagewright.spec.grounding.encoding import decode
from stagewright.spec.grounding.ground import GroundModel
from stagewright.spec.grounding.ground_eval import successors
from stagewright.spec.grounding.lowering import ground
from stagewright.spec.machine import Machine
from stagewright.spec.scope import scope_of
from stagewright.traces.databases.scylladb.lines.views import (
    ANOTHER,
    ITSELF,
    PROCESSED_RECORDING,
    WHICH,
)
from stagewright.traces.options import unbounded_scope

STATES = {
    (TopologyTransition, "seed"): 16,
    (TopologyTransition, "scylla-any"): 30,
    (TopologyTransition, "scylla-6.0"): 25,
    (TopologyTransition, "scylla-2025.4"): 28,
    (TopologyTransition, "scylla-2026.1"): 29,
    (TopologyTransition, "scylla-2026.2"): 27,
    (TopologyTransition, "scylla-master"): 27,
    (TopologyNode, "seed"): 9,
    (TopologyNode, "scylla-6.0"): 9,
    (CdcGeneration, ""): 17,
    (TopologyRequest, ""): 9,
}


@pytest.mark.parametrize(("machine", "profile"), STATES)
def test_every_promise_holds_and_every_action_happens(machine: type[Machine], profile: str) -> None:
    definition = define(machine, profile)
    report = check(definition, scope_of(definition))
    assert (broken(report), report.exhausted) == (set(), True)
    assert report.states == STATES[machine, profile]
    assert report.coverage is not None
    assert report.coverage.never_fired == ()


def steps_of(machine: type[Machine], profile: str) -> set[tuple[str, ...]]:
    """The steps of a projection, each as the values before and after it."""
    definition = define(machine, profile)
    model = ground(definition, scope_of(definition))
    seen, todo, found = set(model.initial), list(model.initial), set[tuple[str, ...]]()
    while todo:
        state = todo.pop()
        for _, after in successors(model, state):
            found.add((*_values(model, state), *_values(model, after)))
            if after not in seen:
                seen.add(after)
                todo.append(after)
    return found


def _values(model: GroundModel, state: tuple[int, ...]) -> list[str]:
    return [_name(value) for value in decode(model, state).values()]


def _name(value: object) -> str:
    return value.name if isinstance(value, Enum) else str(value)


@cache
def steps_of_the_topology(profile: str) -> tuple[set[tuple[str, ...]], set[tuple[str, ...]]]:
    """What one request and one fault do to the transition state, and to each node."""
    definition = define(TopologyControl, profile)
    model = ground(definition, scope_of(definition, {}, {"requests": 1, "faults": 1}))
    (transition,) = (c.index for c in model.cells if c.name == "transition_state")
    nodes = [c.index for c in model.cells if c.variable == "node_state"]
    states, node_states = list(TransitionState), list(NodeState)

    def seen_of(state: tuple[int, ...]) -> tuple[str, str]:
        working = [n.name for c in nodes if (n := node_states[state[c]]).in_transition]
        return states[state[transition]].name, working[0] if working else "None"

    seen, todo = set(model.initial), list(model.initial)
    steps, node_steps = set[tuple[str, ...]](), set[tuple[str, ...]]()
    while todo:
        state = todo.pop()
        for _, after in successors(model, state):
            steps.add((*seen_of(state), *seen_of(after)))
            node_steps |= {(node_states[state[c]].name, node_states[after[c]].name) for c in nodes}
            if after not in seen:
                seen.add(after)
                todo.append(after)
    changes = {s for s in steps if s[:2] != s[2:]}
    return changes, {s for s in node_steps if s[0] != s[1]}


@pytest.mark.parametrize(
    "profile", some_of(["seed", "scylla-6.0", "scylla-2025.4", "scylla-2026.2"], each=4)
)
def test_each_step_of_the_topology_is_a_step_of_its_projections(profile: str) -> None:
    steps, node_steps = steps_of_the_topology(profile)
    assert steps - steps_of(TopologyTransition, profile) == set()
    of_nodes = "seed" if profile == "seed" else "scylla-6.0"
    assert node_steps - steps_of(TopologyNode, of_nodes) == set()


@pytest.mark.parametrize("profile", [r.name for r in RELEASES if r.name != "seed"])
def test_any_release_does_what_each_one_does(profile: str) -> None:
    assert steps_of(TopologyTransition, profile) <= steps_of(TopologyTransition, "scylla-any")


def test_the_log_of_the_view_building_coordinator_is_read_by_each_turn_of_a_base_table() -> None:
    """What the reader leaves out of the definition, drops and leader changes, adds no turn."""
    definition = define(ViewCoordinator)
    model = ground(definition, PROCESSED_RECORDING.scope(unbounded_scope(definition)))
    seen, todo, turns = set(model.initial), list(model.initial), set[tuple[object, object]]()
    while todo:
        state = todo.pop()
        for _, after in successors(model, state):
            turns.add((decode(model, state)[WHICH], decode(model, after)[WHICH]))
            if after not in seen:
                seen.add(after)
                todo.append(after)
    edges = {(str(before), str(after)) for before, after in turns if before != after}
    assert edges == {("None", ITSELF), (ITSELF, "None"), ("None", ANOTHER), (ANOTHER, "None")}

"""A node joins across a CDC switch while a tablet migrates, and clients see nothing of it."""

from __future__ import annotations

import pytest
from tests.machines.violated import broken
from tests.thorough import some_of

from stagewright.checker.check import check
from stagewright.machines.systems.topology_change import TopologyChange
from stagewright.spec.declarations.exercised import exercising_scopes
from stagewright.spec.define import define
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.scope import scope_of

MOVE = (
    "migrate apply apply apply pass_tablet_barrier tablet.write_both apply apply apply pass_tablet_barrier "
    "tablet.begin_streaming tablet.start_operation finish_operation tablet.read_new apply apply apply "
    "pass_tablet_barrier tablet.use_new apply apply apply pass_tablet_barrier tablet.begin_cleanup "
    "tablet.start_operation finish_operation tablet.end apply apply apply pass_tablet_barrier finish_migration "
    "leave_track apply apply apply"
)
COMMIT = (
    "accept insert_generation apply apply apply pass_barrier commit_generation apply apply apply"
)


@pytest.mark.parametrize("number", some_of(range(6)))
def test_clients_read_what_was_acknowledged_while_a_node_joins(number: int) -> None:
    definition = define(TopologyChange)
    report = check(definition, exercising_scopes(definition)[number])
    assert (broken(report), report.exhausted) == (set(), True)


def test_they_read_rows_of_both_tables() -> None:
    definition = define(TopologyChange)
    report = check(
        definition, scope_of(definition, {}, {"writes": 2, "migrations": 0, "losses": 1})
    )
    assert {"acknowledged_rows_are_read", "changes_are_read_with_their_rows"} & broken(
        report
    ) == set()
    assert report.exhausted


def test_they_do_with_the_state_machine_of_the_document_which_leaves_rows_behind() -> None:
    definition = define(TopologyChange, "seed")
    report = check(definition, scope_of(definition))
    assert (broken(report), report.exhausted) == ({"tablets_are_stored_by_their_replicas"}, True)


@pytest.mark.parametrize(
    ("story", "generation"),
    [
        # the join waits for the tablet; the change is logged before the switch, and moves with its stream
        (
            (
                f"ask_to_join write receive acknowledge {COMMIT} pass_barrier stream read_new apply apply apply "
                "begin_to_operate pass_barrier finish apply apply apply"
            ),
            "first",
        ),
        # the write comes after the switch, while both rings are written
        (
            (
                f"ask_to_join {COMMIT} begin_to_operate write receive receive acknowledge pass_barrier stream "
                f"read_new apply apply apply pass_barrier finish apply apply apply {MOVE}"
            ),
            "second",
        ),
    ],
)
def test_a_node_joins_although(story: str, generation: str) -> None:
    definition = define(TopologyChange)
    interpreter = Interpreter(definition, scope_of(definition, {"Node": 3}))
    states = [s for s in interpreter.initial_states() if s["stream_moves"]][:1]
    for name in story.split():
        states = [
            after
            for state in states
            for step, after in interpreter.successors(state)
            if step.action == name
        ][:1]
        assert states, f"{name} cannot happen"
    (state,) = states
    assert str(state["logged"]) == f"Generation.{generation}"
    assert str(state["state"]) == "NodeState.normal"

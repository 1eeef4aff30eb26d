"""A view is built across a migration, a split and a change of the leader, with a row in staging."""

from __future__ import annotations

import pytest
from tests.machines.violated import broken
from tests.thorough import some_of

from stagewright.checker.check import check
from stagewright.machines.systems.tablet_views import TabletViews
from stagewright.spec.declarations.exercised import exercising_scopes
from stagewright.spec.define import define
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.scope import scope_of

MOVE = (
    "migrate tablets.pass_barrier write_both tablets.pass_barrier tablets.begin_streaming "
    "tablets.start_operation finish_operation tablets.read_new tablets.pass_barrier tablets.use_new "
    "tablets.pass_barrier tablets.begin_cleanup tablets.start_operation finish_operation tablets.end "
    "tablets.pass_barrier finish"
)
BUILD = "send finish_batch remove_finished"


@pytest.mark.parametrize("number", some_of([0, 1, 2]))
def test_every_row_written_before_is_in_a_view_that_is_built(number: int) -> None:
    definition = define(TabletViews)
    report = check(definition, exercising_scopes(definition)[number])
    assert (broken(report), report.exhausted) == (set(), True)


@pytest.mark.parametrize(
    "story",
    [
        # the tablet moves, then splits; the leader changes while the last task is executed
        (
            f"write create_view repair {MOVE} split_tablet {BUILD} {BUILD} {BUILD} send change_leader "
            "finish_batch attach remove_finished mark_view_built"
        ),
        # the range is built, and the row that waits in staging goes with its tablet, which has split
        (
            f"write create_view {BUILD} repair split_tablet send change_leader {MOVE} observe_abort "
            f"{BUILD} {BUILD} mark_view_built"
        ),
    ],
)
def test_a_view_is_built_although(story: str) -> None:
    definition = define(TabletViews)
    interpreter = Interpreter(definition, scope_of(definition))
    states = list(interpreter.initial_states())
    for name in story.split():
        states = [
            after
            for state in states
            for step, after in interpreter.successors(state)
            if step.action == name
        ][:2]
        assert states, f"{name} cannot happen"
    assert any(state["view"] == state["written"] and state["split"] for state in states)
    assert {str(state["status"]) for state in states} == {"ViewStatus.success"}

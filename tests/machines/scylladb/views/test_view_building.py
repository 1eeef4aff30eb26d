"""A view building task lives as the documents say, and what they leave open is known."""

from __future__ import annotations

from typing import Self

import pytest
from tests.thorough import by_turns, some_of

from stagewright.checker.check import check
from stagewright.machines.scylladb.views.view_building import Task, ViewBuilding
from stagewright.machines.scylladb.views.view_destinations import Destination, Views
from stagewright.machines.scylladb.views.view_task import Life, ViewTask, Work
from stagewright.spec import Bool, Machine, Term, step_property
from stagewright.spec.define import define
from stagewright.spec.grounding.ground_eval import successors
from stagewright.spec.grounding.lowering import ground
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.scope import scope_of
from stagewright.spec.values import State
from stagewright.spec.verdict import Outcome

# The states of a task as group0 has them, and how it goes from one to another, as the facts list them.
LIVES = {
    ("absent", "normal"),  # a view is created, a staging sstable registered, an operation ends
    ("normal", "finished"),  # the coordinator removes what is finished
    ("normal", "dropped"),  # the view is dropped, or the operation ends
    ("normal", "aborted"),  # a tablet operation
    ("aborted", "dropped"),  # replaced at its end
}


def test_a_task_lives_as_the_diagram_of_the_document_has_it() -> None:
    definition = define(ViewTask)
    model = ground(definition, scope_of(definition))
    (life,) = (cell.index for cell in model.cells if cell.name == "life")
    names = [member.name for member in Life]
    seen, edges = set(model.initial), set[tuple[str, str]]()
    todo = list(seen)
    while todo:
        state = todo.pop()
        for _, after in successors(model, state):
            if state[life] != after[life]:
                edges.add((names[state[life]], names[after[life]]))
            if after not in seen:
                seen.add(after)
                todo.append(after)
    assert edges == LIVES


@pytest.mark.parametrize(
    ("views", "other", "repair", "in_the_text"),
    [
        ("none", "normal_directory", "normal_directory", "normal_directory"),
        ("not_started", "normal_directory", "normal_directory", "normal_directory"),
        (
            "started",
            "staging_managed_by_vbc",
            "staging_managed_by_vbc",
            "staging_managed_by_vbc",
        ),
        (
            "built",
            "normal_directory",
            "staging_directly_to_generator",
            "staging_managed_by_vbc",
        ),
    ],
)
def test_sstables_go_where_the_real_system_has_them_go(
    views: str, other: str, repair: str, in_the_text: str
) -> None:
    row = Views[views]
    decided = (row.other, row.repair, row.in_the_text)
    assert decided == (Destination[other], Destination[repair], Destination[in_the_text])


class NoBatchForAbortedTasks(ViewBuilding):
    """With a promise that the documents do not make."""

    @step_property
    def no_batch_starts_for_an_aborted_task(self, after: Self, t: Term[Task]) -> Bool:
        """A worker looks whether a task is aborted before it starts it."""
        starts = (self.tasks[t].work == Work.none) & (after.tasks[t].work == Work.executing)
        return starts.implies(self.tasks[t].life == Life.normal)


def test_a_call_under_way_lets_an_aborted_task_be_executed_and_no_promise_minds() -> None:
    definition = define(NoBatchForAbortedTasks)
    report = check(definition, scope_of(definition, {}, {"lost_calls": 0, "restarts": 0}))
    assert {v.name for v in report.verdicts if v.outcome is Outcome.VIOLATED} == {
        "no_batch_starts_for_an_aborted_task"
    }
    assert "no batch works for an aborted task" in (ViewBuilding.__doc__ or "")


def run(machine: type[Machine], story: str, **budgets: int) -> State:
    """The state after a story: the actions of a run in order, whatever their arguments."""
    definition = define(machine)
    interpreter = Interpreter(definition, scope_of(definition, {}, budgets))
    states = list(interpreter.initial_states())
    for name in story.split():
        states = [
            after
            for state in states
            for step, after in interpreter.successors(state)
            if step.action == name
        ]
        assert states, f"{name} cannot happen"
        states = states[:50]
    return states[0]


@pytest.mark.parametrize(
    "story",
    by_turns(
        some_of(
            [
                # from the first call to the end
                "create_view send start finish_batch tasks.answer tasks.remove mark_view_built",
                # the answer is lost, and so is the coordinator; the worker still knows
                (
                    "create_view send start finish_batch tasks.lose_call change_leader send tasks.attach "
                    "tasks.answer tasks.remove mark_view_built"
                ),
                # coordinator and worker restart at once: the work is done again
                (
                    "create_view send start finish_batch tasks.answer change_leader restart send start "
                    "finish_batch tasks.answer tasks.remove mark_view_built"
                ),
                # the tablet moves while the task is executed
                (
                    "create_view send start migrate write_both tasks.observe_abort tasks.refuse begin_streaming "
                    "stream read_new end finish_with_task send start finish_batch tasks.answer tasks.remove "
                    "mark_view_built"
                ),
                # the call arrives when the task is aborted: what is done then counts for nothing
                (
                    "create_view send migrate write_both start begin_streaming stream read_new end finish_batch "
                    "tasks.answer tasks.forget_answer finish_with_task send start finish_batch tasks.answer "
                    "tasks.remove mark_view_built"
                ),
                # the migration is undone: a duplicate with another id
                (
                    "create_view send migrate write_both begin_streaming give_up revert "
                    "finish_revert_with_task tasks.refuse send start finish_batch tasks.answer tasks.remove "
                    "mark_view_built"
                ),
                # the view is created while the tablet moves
                (
                    "migrate write_both begin_streaming create_view stream read_new end finish_with_task send "
                    "start finish_batch tasks.answer tasks.remove mark_view_built"
                ),
            ]
        )
    ),
)
def test_a_view_is_built_although(story: str) -> None:
    state = run(ViewBuilding, story)
    assert str(state["status"]) == "ViewStatus.success"
    assert state["view"] == state["replicas"]

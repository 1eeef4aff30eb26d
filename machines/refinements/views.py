"""What view building is seen as: a base table's turn in the coordinator's log, and the life of one task."""

from __future__ import annotations

from stagewright.machines.scylladb.views.view_bases import Base, ViewBases
from stagewright.machines.scylladb.views.view_batches import View, ViewBatches
from stagewright.machines.scylladb.views.view_task import Life, ViewTask, Work
from stagewright.machines.scylladb.views.view_turn import Turn, ViewTurn
from stagewright.spec import Term, alike, choose, projection, refinement


@projection()
def the_turn_of_a_base_table(bases: ViewBases, seen: ViewTurn, b: Term[Base]) -> None:
    """Of each base table the coordinator's log shows when it is selected and when it is finished."""
    other = choose(
        bases.processed.is_none(),
        Turn.nobody,
        choose(bases.processed == b, Turn.this, Term.of(Turn.other)),
    )
    seen.turn = other


@refinement()
def a_task_of_a_batch(batches: ViewBatches, seen: ViewTask, v: Term[View]) -> None:
    """Each task of a batch lives as a task does by itself; one call is for all of them."""
    alike(seen.life == Life.absent, ~batches.created.has(v))
    alike(seen.life == Life.normal, batches.tasks.has(v))
    completed = choose(batches.completed.has(v), Work.done, Term.of(Work.none))
    seen.work = choose(batches.batch.has(v), Work.executing, completed)
    seen.worked = batches.rows.has(v)

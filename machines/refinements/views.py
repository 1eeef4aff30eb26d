"""What view building is seen as: the life of one task."""

from __future__ import annotations

from stagewright.machines.scylladb.views.view_task import Life, ViewTask, Work
from stagewright.machines.scylladb.views.view_worker import View, ViewWorker
from stagewright.spec import Term, alike, choose, refinement


@refinement()
def a_task_of_a_batch(worker: ViewWorker, seen: ViewTask, v: Term[View]) -> None:
    """Each task of a batch lives as a task does by itself; one call is for all of them."""
    alike(seen.life == Life.absent, ~worker.created.has(v))
    alike(seen.life == Life.normal, worker.tasks.has(v))
    completed = choose(worker.completed.has(v), Work.done, Term.of(Work.none))
    seen.work = choose(worker.batch.has(v), Work.executing, completed)
    seen.worked = worker.worked.has(v)

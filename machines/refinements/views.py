"""Tasks of view building live as one does by itself: in a worker's batch, and where their tablets move and split."""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.views import view_destinations as destinations, view_staging
from stagewright.machines.scylladb.views.view_destinations import (
    Migration,
    Place,
    Replica,
    ViewDestinations,
)
from stagewright.machines.scylladb.views.view_resize import Type
from stagewright.machines.scylladb.views.view_staging import Standing, ViewStaging
from stagewright.machines.scylladb.views.view_task import Life, ViewTask, Work
from stagewright.machines.scylladb.views.view_worker import View, ViewWorker
from stagewright.machines.systems.tablet_views import Tablet, TabletViews
from stagewright.spec import Term, alike, choose, refinement, some


@refinement()
def a_task_of_a_batch(worker: ViewWorker, seen: ViewTask, v: Term[View]) -> None:
    """Each task of a batch lives as a task does by itself; one call is for all of them."""
    alike(seen.life == Life.absent, ~worker.created.has(v))
    alike(seen.life == Life.normal, worker.tasks.has(v))
    completed = choose(worker.completed.has(v), Work.done, Term.of(Work.none))
    seen.work = choose(worker.batch.has(v), Work.executing, completed)
    seen.worked = worker.worked.has(v)
    known = (worker.completed | worker.batch).has(v)
    seen.forgotten = worker.forgotten.has(v) | (worker.worked.has(v) & ~known)


@refinement(
    anew=(
        TabletViews.remove_finished,
        TabletViews.finish,
        TabletViews.split_tablet,
        TabletViews.repair,
    ),
    from_start=False,
)
def a_task_of_a_tablet(it: TabletViews, seen: ViewTask, t: Term[Tablet], k: Term[Type]) -> None:
    """A tablet has one task of each type at a time; a commit that ends an operation puts a new one in its place."""
    seen.life = it.tasks[t][k]
    executing, done = (
        some(
            (it.batch[n].tablet == t)
            & (it.batch[n].type == k)
            & ~it.batch[n].stale
            & (it.batch[n].done if finished else ~it.batch[n].done)
            for n in Node
        )
        for finished in (False, True)
    )
    completed = choose(done, Work.done, Term.of(Work.none))
    seen.work = choose(executing, Work.executing, completed)


@refinement(
    profiles={"seed": "scylla-2025.4", "scylla-2026.2": "scylla-2025.4"},
    anew=(ViewStaging.give_up_coming, ViewStaging.end_leaving),
    from_start=False,
    at=({ViewStaging.restarts: 1},),
    seen_at={destinations.Sstable: 1, destinations.View: 1},
)
def an_sstable_in_staging(
    it: ViewStaging, seen: ViewDestinations, s: Term[view_staging.Sstable]
) -> None:
    """Whatever a node's worker does with a staging sstable, and forgets of it: it is a place that the decision gives
    it at the replica which the tablet comes to, and its rows reach the views as they do there.
    """
    base = choose(it.place[s] == view_staging.Place.base, Place.base, Term.of(Place.nowhere))
    place = choose(it.place[s] == view_staging.Place.staging, Place.with_task, base)
    for one in destinations.Sstable:
        seen.place[Replica.pending][one] = place
        for v in destinations.View:
            seen.view[v].put(one, it.view.has(s))
    arriving = choose(it.standing == Standing.pending, Migration.under_way, Term.of(Migration.over))
    seen.migration = choose(it.standing == Standing.absent, Migration.ahead, arriving)

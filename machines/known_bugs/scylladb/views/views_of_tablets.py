"""Mistakes about views whose tablets move and split, which no machine of one operation shows."""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.views.view_coordinator import ViewStatus
from stagewright.machines.scylladb.views.view_resize import Type
from stagewright.machines.scylladb.views.view_task import Life
from stagewright.machines.systems.tablet_views import Tablet, TabletViews
from stagewright.spec import Bool, Term
from stagewright.spec.known_bugs import known_bug, known_bugs_in


@known_bug(
    "000-11",
    "design document 000, Tablet operations",
    breaks=(TabletViews.built_views_are_complete, TabletViews.staged_rows_have_a_task),
    budgets={TabletViews.migrations: 0, TabletViews.leader_changes: 0},
)
class StagingDoesNotSplit(TabletViews):
    """When a tablet splits only its build_range tasks become two: a staging sstable of the upper half has no task
    any more, and the view is built without its row.
    """

    def _task_of_second_half(self, k: Type) -> Term[Life]:
        if k is Type.process_staging:
            return Term.of(Life.absent)
        return super()._task_of_second_half(k)


@known_bug(
    "000-12",
    "design document 000, Staging sstables",
    breaks=(TabletViews.built_views_are_complete, TabletViews.missing_rows_have_a_task),
    budgets={TabletViews.splits: 0, TabletViews.leader_changes: 0},
)
class StagedRowsMoveToTheBaseDirectory(TabletViews):
    """A repaired row waits in staging, its tablet migrates, and its copy goes to the base directory: the task that
    comes with the tablet finds nothing, and the view, whose range was built before, is built without the row.
    """

    def _stays_staged(self) -> Bool:
        return super()._stays_staged() & (self.status == ViewStatus.none)


@known_bug(
    "000-13",
    "design document 000, Tablet operations",
    breaks=TabletViews.built_views_are_complete,
    budgets={TabletViews.repairs: 2, TabletViews.splits: 0, TabletViews.leader_changes: 0},
)
class NewTasksHaveTheOldIds(TabletViews):
    """A task that takes the place of an aborted one keeps its id: what the old replica's worker has finished counts for
    the new replica, where another sstable has been staged meanwhile.
    """

    def _is_batch(self, n: Term[Node], t: Term[Tablet], k: Term[Type]) -> Bool:
        return (self.batch[n].tablet == t) & (self.batch[n].type == k)


BUGS = known_bugs_in(globals())

"""Mistakes about what is given up: a view that is dropped while sstables wait in staging."""

from __future__ import annotations

from stagewright.machines.scylladb.views.view_coordinator import ViewStatus
from stagewright.machines.scylladb.views.view_destinations import (
    CLIENT,
    Place,
    Replica,
    Sstable,
    View,
    ViewDestinations,
    Views,
)
from stagewright.machines.scylladb.views.view_task import COORDINATOR, WORKER
from stagewright.spec import Fairness, SetVar, Term, action, choose, every, require, set_of, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

WEAK = Fairness.WEAK
DROPPED = "design document 000: we simply delete relevant view building tasks"
ALL_STAGING = "design document 000: process all staging sstables associated with the tablet replica"


@known_bug("000-250", DROPPED, breaks=ViewDestinations.views_are_dropped_at_any_time)
class DropsWaitForStagedRows(ViewDestinations):
    """A view was not dropped while an sstable of its table waited in staging, which was there to update it."""

    @action(by=CLIENT, spends=ViewDestinations.drops)
    def drop_view(self, v: Term[View]) -> None:
        """A view is dropped when nothing of its table waits."""
        super().drop_view(v)
        require(every(~self._waits_anywhere(s) for s in Sstable), "no sstable is staged")


@known_bug("000-251", ALL_STAGING, breaks=ViewDestinations.staging_sstables_are_processed)
class TablesWithoutViewsAreNotProcessed(ViewDestinations):
    """The coordinator chose among tables that have views: what waited in staging when the last one was dropped was read by
    nobody, and never came into the base directory.
    """

    @action(by=WORKER, fair=WEAK)
    def process_staging(self, r: Term[Replica], s: Term[Sstable]) -> None:
        """The sstable's task is executed, as the table has a view."""
        super().process_staging(r, s)
        require(some(self._exists(v) for v in View), "the table has a view")


@known_bug(
    "000-252",
    "design document 000: Does the table have any views?",
    breaks=ViewDestinations.sstables_without_need_are_not_staged,
)
class DroppedViewsAreCounted(ViewDestinations):
    """The decision asked whether a view had been created, and counted those that were dropped since: a table whose views
    were all dropped was one whose views are built, and its repaired sstables were staged.
    """

    def how_far(self) -> Term[Views]:
        """The questions of 000, of every view that there ever was."""
        none = every(self.status[v] == ViewStatus.none for v in View)
        exists = some(self._exists(v) for v in View)
        return choose(none | exists, super().how_far(), Views.built)


@known_bug("000-253", DROPPED, breaks=ViewDestinations.staging_sstables_are_processed)
class AllTasksGoWithAView(ViewDestinations):
    """Whoever dropped a view deleted the tasks of its table, of either type: sstables that waited for the sake of another
    view had no task any more.
    """

    without_task: SetVar[Sstable] = set_of(Sstable)

    @action(by=CLIENT, spends=ViewDestinations.drops)
    def drop_view(self, v: Term[View]) -> None:
        """A view is dropped, with all process_staging tasks of its table."""
        super().drop_view(v)
        for s in Sstable:
            waits = some(self.place[r][s] == Place.with_task for r in Replica)
            self.without_task.put(s, self.without_task.has(s) | waits)

    @action(by=WORKER, fair=WEAK)
    def process_staging(self, r: Term[Replica], s: Term[Sstable]) -> None:
        """The sstable's task is executed, if there is one."""
        super().process_staging(r, s)
        require(~self.without_task.has(s), "there is a task")

    @action(by=COORDINATOR, fair=WEAK)
    def mark_view_built(self, v: Term[View]) -> None:
        """The view has no task left, and the table none in group0."""
        require(self.status[v] == ViewStatus.started, "the view is being built")
        require(self.scanned.has(v), "the range is built")
        waits = some(
            (self.place[r][s] == Place.with_task) & ~self.without_task.has(s)
            for r in Replica
            for s in Sstable
        )
        require(~waits, "no staging task is left")
        self.status[v] = ViewStatus.success


BUGS = known_bugs_in(globals())

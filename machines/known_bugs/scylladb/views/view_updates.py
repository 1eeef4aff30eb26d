"""Mistakes put back into `ViewUpdates`: a property breaks with each."""

from __future__ import annotations

from typing import Annotated

from stagewright.machines.scylladb.views.view_task import WORKER, Work
from stagewright.machines.scylladb.views.view_updates import (
    CLIENT,
    LAST,
    NETWORK,
    WEAK,
    Key,
    ViewUpdates,
)
from stagewright.spec import Bool, Number, Term, action, between, require
from stagewright.spec.known_bugs import known_bug, known_bugs_in

CREATED = "design document 000: tasks are created when a view or index is created"


# -- what goes wrong -------------------------------------------------------------------------------


@known_bug(
    "000-3",
    "design document 000, Lifetime of a task",
    breaks=ViewUpdates.the_view_is_what_the_base_row_says,
    budgets={ViewUpdates.redos: 0},
)
class UpdatesHaveTheTimeOfTheBatch(ViewUpdates):
    """The batch gives its updates the time at which it ends, not that of the row which it has read: the view
    row of a value that was overwritten meanwhile comes back.
    """

    def _batch_timestamp(self) -> Number:
        return self._now()


@known_bug(
    "000-4",
    "design document 000, View building task",
    breaks=ViewUpdates.the_view_is_what_the_base_row_says,
    budgets={ViewUpdates.redos: 0},
)
class WritesDoNotReadBefore(ViewUpdates):
    """A write updates the view without reading the row before: the view row of the old value stays."""

    def _is_replaced(self, old: Key) -> Bool:
        return (self.value == old) & ~self.created


@known_bug(
    "000-5",
    "design document 000, View building task",
    breaks=(
        ViewUpdates.the_view_is_what_the_base_row_says,
        ViewUpdates.rows_come_into_the_view,
    ),
    budgets={ViewUpdates.redos: 0},
)
class OnlyBuiltViewsHaveLiveUpdates(ViewUpdates):
    """A write updates the view only if its task is done: what comes after the batch has read is in no update."""

    def _has_live_updates(self) -> Bool:
        return self.work == Work.done


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "000-20",
    "design document 000: the worker builds views from the base table, which lives on",
    breaks=ViewUpdates.rows_are_written_while_views_are_built,
)
class TheBaseRowIsLocked(ViewUpdates):
    """A row is not written between a batch's read of it and the update of the view."""

    @action(by=CLIENT)
    def write(self, k: Term[Key]) -> None:
        """The base row is written when no batch has read it."""
        super().write(k)
        require(self.work != Work.executing, "no batch is executed")


@known_bug(
    "000-84",
    'design document 000: build_range is to "generate view updates from the tablet replica"',
    breaks=ViewUpdates.rows_are_deleted_while_views_are_built,
)
class DeletionsWaitForTheBatch(ViewUpdates):
    """A row was not deleted between its being read by a batch and the update that the batch made of it."""

    @action(by=CLIENT)
    def delete(self) -> None:
        """The base row is deleted, while no batch has read it."""
        super().delete()
        require(self.work != Work.executing, "no batch is executed")


@known_bug("000-85", CREATED, breaks=ViewUpdates.views_are_created_at_any_time)
class ViewsAreOfEmptyTables(ViewUpdates):
    """A view was created of a table without rows."""

    @action(by=CLIENT)
    def create_view(self) -> None:
        """A view is created of an empty table."""
        require(self.value.is_none(), "there is no row")
        super().create_view()


@known_bug(
    "000-314",
    "design document 000: the worker will eventually reply that the task was finished",
    breaks=ViewUpdates.tasks_wait_for_no_write,
)
class RowsAreReadWhenTheirUpdatesHaveCome(ViewUpdates):
    """A batch read a row when no update of it was on its way: while it was written again and again that was never."""

    @action(by=WORKER, fair=WEAK)
    def execute(self) -> None:
        """The batch reads a row of which no update is on its way."""
        require(self._nothing_is_under_way(), "no update is on its way")
        super().execute()


@known_bug(
    "000-315",
    "design document 000: view building tasks are idempotent",
    breaks=ViewUpdates.updates_wait_for_no_task,
)
class UpdatesWaitForTheBatch(ViewUpdates):
    """A view replica kept what clients' writes had sent it while a batch was executed."""

    @action(by=NETWORK, fair=WEAK)
    def put(self, k: Term[Key], t: Annotated[Number, between(1, LAST)]) -> None:
        """An update arrives while no batch is executed."""
        require(self.work != Work.executing, "no batch is executed")
        super().put(k, t)


BUGS = known_bugs_in(globals())

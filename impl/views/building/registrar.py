"""The registrar of a node: rows in staging get a `process_staging` task, its only commits beside those of statements.

A stream is over when there is a task for what it brought. Else the registrar looks whenever something is committed:
after a restart, when a tablet has come to rest, and when a task is gone that rows have come after.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from stagewright.impl.catalog.tablet_rows import TabletRow
from stagewright.impl.group0 import Command
from stagewright.impl.group0.member import Ended
from stagewright.impl.node.context import Context
from stagewright.impl.node.defects import Defect
from stagewright.impl.node.keys import bounds
from stagewright.impl.node.port import Drop, Effect, Wake
from stagewright.impl.runtime import Instance
from stagewright.impl.views.building.choices import choices, tablet_entity
from stagewright.impl.views.building.steps import Steps
from stagewright.impl.views.building.tasks import (
    STAGING,
    Place,
    Task,
    row_of,
    task_program,
    tasks_in,
)
from stagewright.impl.views.maintenance.staged import has_staged, staging_of
from stagewright.machines.scylladb.views import view_coordinator as machine

AGAIN = ("views", "register")


class StagingRegistrar:
    """The rows in staging of one life of a node, by base table."""

    def __init__(self, node: Context) -> None:
        self._node = node
        self._bases: set[str] = set()  # that may have some
        self._fresh: set[tuple[str, int]] = set()  # tablets of streams that have staged rows
        self._open: set[Place] = set()  # whose tasks are on their way to group0
        self._rests = False  # after a commit that failed

    def discover(self, base: str) -> None:
        """Look on the disk for what an earlier life has left of a table."""
        if self._has(base, b"", None):
            self._bases.add(base)

    def staged(self, row: TabletRow) -> None:
        """Rows of a tablet come into staging, with the next batch that is written."""
        self._bases.add(row.table)
        self._fresh.add((row.table, row.range[1]))

    def _has(self, base: str, low: bytes, high: bytes | None) -> bool:
        snapshot = self._node.rows.snapshot()
        found = has_staged(snapshot, base, low, high)
        snapshot.close()
        return found

    def has(self, row: TabletRow) -> bool:
        """Whether rows of a tablet wait here."""
        return row.table in self._bases and self._has(row.table, *bounds(*row.range))

    def forget(self, row: TabletRow) -> list[Effect]:
        """A tablet is no longer here, and nor is what was staged of it."""
        low, high = bounds(*row.range)
        gone = self._has(row.table, low, high)
        return [Drop(staging_of(row.table), low, high)] if gone else []

    def forget_table(self, base: str) -> list[Effect]:
        """A table has no views any more: nothing waits for any."""
        if base not in self._bases:
            return []
        self._bases.discard(base)
        return [Drop(staging_of(base), b"", None)]

    # -- tasks ---------------------------------------------------------------------------------------------

    def register(self, row: TabletRow, then: Callable[[str], list[Effect]]) -> list[Effect]:
        """A stream has ended: see that what it brought has a task, and go on; with what is wrong if it has none."""
        place = self._place(row, coming=True)
        late = self._node.has(Defect.staging_is_registered_late)
        fresh = (row.table, row.range[1]) in self._fresh
        self._fresh.discard((row.table, row.range[1]))
        if place is None or late or not (fresh or self.has(row)):
            return then("")
        return self._propose(place, then)

    def learned(self) -> list[Effect]:
        """Something was committed: what waits without a task, in a tablet that does not move, gets one."""
        effects: list[Effect] = []
        for base in sorted(self._bases):
            rows = [r for r in self._node.view.tablets.get(base, ()) if self.has(r)]
            if not rows:
                self._bases.discard(base)
            for row in rows:
                place = self._place(row, coming=False)
                if place is None or row.tablet.moves or self._rests or self._is_known(place):
                    continue
                effects += self._propose(place, self._ended)
        return effects

    def again(self) -> list[Effect]:
        """A commit has failed a while ago."""
        self._rests = False
        return self.learned()

    def _ended(self, problem: str) -> list[Effect]:
        if not problem or self._rests:
            return []
        self._rests = True
        return [Wake(self._node.timing.retry, AGAIN)]

    def _propose(self, place: Place, then: Callable[[str], list[Effect]]) -> list[Effect]:
        self._open.add(place)

        def ended(end: Ended) -> list[Effect]:
            self._open.discard(place)
            return then("" if end.error is None else end.error.problem)

        return self._node.propose(partial(registration, self._node, place), ended)

    def _place(self, row: TabletRow, *, coming: bool) -> Place | None:
        """This node's replica of a tablet, or the one that it is to be."""
        then = (row.tablet.next or ()) if coming else ()
        replicas = (*row.tablet.replicas, *then)
        own = next((r for r in replicas if r.host == self._node.name), None)
        return None if own is None else Place(row.table, row.range[1], own)

    def _is_known(self, place: Place) -> bool:
        tables = self._node.catalog.tables
        if place in self._open or not self._node.view.views_of(place.base):
            return True
        return any(_is_for(t, place) for t in tasks_in(tables).values())


def registration(node: Context, place: Place) -> Command | None:
    """The command that stores a task for what is staged; None: one waits, or the tablet or the views are gone."""
    tables, view = node.catalog.tables, node.view
    row = view.tablet_with(place.base, place.last_token)
    if row is None or row.range[1] != place.last_token or not view.views_of(place.base):
        return None
    if place.replica not in (*row.tablet.replicas, *(row.tablet.next or ())):
        return None
    if any(_is_for(t, place) for t in tasks_in(tables).values()):
        return None
    steps, task = Steps(), Task(node.new_id(), STAGING, False, "", place)
    made = choices(tables, view, bases=(place.base,), place=place)
    where = {"b": machine.Base(place.base), "t": tablet_entity(place)}
    steps.take(made, "register_staging", **where)
    steps.take(Instance(task_program(), name=task.id), "create")
    return steps.command("create view building tasks", [row_of(task)])


def _is_for(task: Task, place: Place) -> bool:
    """Whether a task is for what is staged at a place, on whichever shard."""
    other = task.place
    same = (other.base, other.last_token, other.replica.host)
    return task.type == STAGING and same == (place.base, place.last_token, place.replica.host)

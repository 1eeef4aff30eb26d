"""How far views are built, as the tables of group0 say it, and what a node's own worker has done of its tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from stagewright.impl.catalog.columns import Rows
from stagewright.impl.catalog.names import name_of
from stagewright.impl.catalog.view import View
from stagewright.impl.group0.state_ids import microseconds_of
from stagewright.impl.node.keys import bounds
from stagewright.impl.node.messages.tables import ViewStatus
from stagewright.impl.views.building.choices import places_of
from stagewright.impl.views.building.tasks import Task, status_in, tasks_in
from stagewright.impl.views.building.worker import Batch
from stagewright.impl.views.maintenance.definition import ViewDefinition
from stagewright.machines.scylladb.views.view_coordinator import ViewStatus as Status

_WORDS = {Status.success: "SUCCESS", Status.started: "STARTED"}


def statuses(
    tables: Mapping[str, Rows], view: View, now: int, batches: Iterable[Batch] = ()
) -> tuple[ViewStatus, ...]:
    """All views by their names; `now` is in microseconds since 1970, `batches` are those that run here."""
    tasks, running = [*tasks_in(tables).values()], [*batches]
    return tuple(
        _status(tables, view, found, now, [t for t in tasks if t.view == found.name], running)
        for found in sorted(view.views.values(), key=lambda v: v.name)
    )


def _status(
    tables: Mapping[str, Rows],
    view: View,
    found: ViewDefinition,
    now: int,
    tasks: list[Task],
    running: list[Batch],
) -> ViewStatus:
    since = min((microseconds_of(UUID(t.id)) for t in tasks), default=now)
    return ViewStatus(
        name_of(found.name),
        name_of(found.base),
        str(found),
        _WORDS.get(status_in(tables, found.name), "CREATED"),
        len(tasks),
        max(len(tasks), len(places_of(view, found.base))),
        sum(_part(b, view) for b in running for t in b.tasks.values() if t.view == found.name),
        max(0, now - since) // 1000,
    )


def _part(batch: Batch, view: View) -> float:
    """How much of its tablet a batch has read, by tokens: from 0 to 1."""
    row = view.tablet_with(batch.place.base, batch.place.last_token)
    if row is None or batch.start is None:
        return 1.0
    low, high = row.range
    begin, _ = bounds(low, high)
    done = int.from_bytes(batch.start[:8], "big") - int.from_bytes(begin[:8], "big")
    return min(1.0, done / (high - low))


def remaining_ms(done: float, age_ms: int) -> int | None:
    """Milliseconds until a build is over that has done a part of its work (0 to 1) in its age; None: not known."""
    return None if done <= 0 else round(age_ms * (1 - done) / done)

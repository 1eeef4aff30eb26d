"""View building tasks and the status of views, as the tables of group0 hold them, and the machines of both.

`system.view_building_tasks` has upstream's columns of 000 but for `base_tablet_id`, which is the last token of the
tablet, as it is upstream since tablets split and merge alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from stagewright.impl.catalog.columns import Rows
from stagewright.impl.group0 import Mutation
from stagewright.impl.ring.tablets import TabletReplica
from stagewright.impl.runtime import Instance, Program
from stagewright.machines.scylladb.views.view_coordinator import ViewCoordinator, ViewStatus
from stagewright.machines.scylladb.views.view_task import Call, Life, ViewTask, Work
from stagewright.spec import define

TASKS = "view_building_tasks"
STATUS = "view_build_status_v2"
BUILT = "built_views"
LOCAL = "scylla_local"
PROCESSING = ("view_building_processing_base",)
BUILD, STAGING = "build_range", "process_staging"


@lru_cache(maxsize=1)
def task_program() -> Program:
    """The machine of a task."""
    return Program(define(ViewTask))


@lru_cache(maxsize=1)
def coordinator_program() -> Program:
    """The machine of the coordinator's choices."""
    return Program(define(ViewCoordinator))


class Place(NamedTuple):
    """The tablet replica that tasks are of: what one batch may have."""

    base: str
    last_token: int
    replica: TabletReplica


@dataclass(frozen=True)
class Task:
    """A row of the table."""

    id: str
    type: str
    aborted: bool
    view: str  # "": it processes staging sstables
    place: Place

    @property
    def life(self) -> Life:
        """The committed variable of its machine."""
        return Life.aborted if self.aborted else Life.normal

    def instance(self, call: Call = Call.none, work: Work = Work.none) -> Instance:
        """Its machine, with what an actor knows of the call and the work."""
        state: dict[str, Any] = {"life": self.life, "call": call, "work": work, "late": frozenset()}
        return Instance(task_program(), state, name=self.id)


def row_of(task: Task) -> Mutation:
    """The row of a new task."""
    place = task.place
    columns: dict[str, Any] = {
        "type": task.type,
        "aborted": task.aborted,
        "base_id": place.base,
        "view_id": task.view or None,
        "last_token": place.last_token,
        "host_id": place.replica.host,
        "shard": place.replica.shard,
    }
    return Mutation(TASKS, (task.id,), columns)


def tasks_in(tables: Mapping[str, Rows]) -> dict[str, Task]:
    """The tasks that are stored, in the order of their ids' creation."""
    return {
        key[0]: Task(
            key[0],
            row["type"],
            row["aborted"],
            row["view_id"] or "",
            Place(row["base_id"], row["last_token"], TabletReplica(row["host_id"], row["shard"])),
        )
        for key, row in tables[TASKS].items()
    }


def processed_in(tables: Mapping[str, Rows]) -> str:
    """The base table that is processed, or "" if none is."""
    row = tables[LOCAL].get(PROCESSING)
    return row["value"] or "" if row is not None else ""


def status_in(tables: Mapping[str, Rows], view: str) -> ViewStatus:
    """How far a view that is there is built; upstream has no row of one that is only created."""
    found = {row["status"] for key, row in tables[STATUS].items() if key[0] == view}
    if "SUCCESS" in found:
        return ViewStatus.success
    return ViewStatus.started if found else ViewStatus.created

"""The lines of commits about view building tasks: a base table is chosen, tasks are made, aborted, replaced and removed.

Those of the view building coordinator and of workers that register what is staged have no line of the commit itself:
only that it was lost. What becomes of tasks of tablets that move is in the topology coordinator's commits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from stagewright.impl.catalog.catalog import Catalog
from stagewright.impl.catalog.columns import TABLES
from stagewright.impl.catalog.dumps import host_id_of
from stagewright.impl.group0 import Command, Commit, StateId
from stagewright.impl.ring.tablets import TabletReplica
from stagewright.impl.server_log.lines import (
    BALANCER,
    VIEW_COORDINATOR,
    VIEW_WORKER,
    Level,
    qualified,
    table_id,
)
from stagewright.impl.views.building.tasks import (
    BUILT,
    LOCAL,
    PROCESSING,
    STAGING,
    STATUS,
    TASKS,
    Task,
    processed_in,
    task_program,
    tasks_in,
)

Say = Callable[[str, str, Level, int], None]
"""Write a line of a logger: its words, how much it matters, the shard."""

_TASK = task_program().definition.name
_RACE = "group0_concurrent_modification"
_CREATING = "while creating staging sstable tasks"


@dataclass
class _Gone:
    """A task that a command deletes, and those that it creates instead."""

    task: Task
    heirs: list[Task] = field(default_factory=list[Task])


class TaskLines:
    """The lines of one life of a node."""

    def __init__(self, say: Say, catalog: Callable[[], Catalog]) -> None:
        self._say = say
        self._catalog = catalog
        self._attempted: Commit | None = None
        self._beside = False  # it was none of the topology coordinator's
        self._lost: tuple[str, str, Level] | None = None  # what is said if it is lost

    def attempts(self, request: Commit) -> bool:
        """The node attempts a commit, maybe once more; whether it is none of the topology coordinator's."""
        if request is not self._attempted:
            self._attempted, self._lost = request, None
            if request.term is None:
                self._registers(request.command)
                self._beside = True
            else:
                self._beside = self._chooses(request.command) or self._removes(request.command)
        return self._beside

    def lost(self, request: Commit) -> None:
        """It was not committed: another one was first, or another node leads."""
        if request is self._attempted and self._lost is not None:
            self._say(*self._lost, 0)
            self._lost = None

    def see(self, head: StateId) -> None:
        """The log of group0 itself says what became of it."""
        sent = self._attempted
        if sent is None or self._lost is None or head.position < sent.new.position:
            return
        if head.position == sent.new.position and head != sent.new:
            self.lost(sent)
        self._lost = None

    def _chooses(self, command: Command) -> bool:
        """The view building coordinator goes on to another base table, or is done with a view."""
        tables, chosen = self._catalog().tables, False
        for change in command.mutations:
            columns = change.columns or {}
            if (change.table, change.key) == (LOCAL, PROCESSING):
                base = str(columns["value"] or "")
                what = (
                    "Selected new base table to process:"
                    if base
                    else "Finished processing base table"
                )
                of = table_id(base or processed_in(tables))
                self._say(VIEW_COORDINATOR, f"{what} {of}", Level.INFO, 0)
            elif change.table == BUILT and columns:
                view = change.key[0]
                text = f"View {qualified(view)}({table_id(view)}) is built."
                self._say(VIEW_COORDINATOR, text, Level.INFO, 0)
            chosen = chosen or change.table in (LOCAL, STATUS)
        if chosen:
            self._lost = VIEW_COORDINATOR, f"view building coordinator got {_RACE}", Level.WARN
        return chosen

    def _removes(self, command: Command) -> bool:
        """It removes the tasks that workers have finished."""
        removed = {s.instance for s in command.steps if (s.machine, s.action) == (_TASK, "remove")}
        for change in command.mutations:
            if change.table == TASKS and change.key[0] in removed:
                text = f"Removing finished task with ID: {change.key[0]}"
                self._say(VIEW_COORDINATOR, text, Level.DEBUG, 0)
        if removed:
            self._lost = VIEW_COORDINATOR, f"finished_task_gc_fiber got {_RACE}", Level.DEBUG
        return bool(removed)

    def _registers(self, command: Command) -> None:
        """A worker's node stores a task for what is staged."""
        for change in command.mutations:
            row = change.columns or {}
            if row.get("type") == STAGING:
                of = f"base_id: {table_id(str(row['base_id']))}, last_token: {row['last_token']}"
                text = (
                    f"Creating process staging task: {{type: PROCESS_STAGING, {of}}} with ID: "
                    f"{change.key[0]} for replica: {host_id_of(str(row['host_id']))}:{row['shard']}"
                )
                self._say(VIEW_WORKER, text, Level.DEBUG, 0)
                self._lost = VIEW_WORKER, f"Got {_RACE} {_CREATING}", Level.WARN

    # -- tablets move, and are others ----------------------------------------------------------------------

    def follow_tablets(self, command: Command) -> None:
        """The topology coordinator is about to commit what becomes of tasks as tablets do."""
        resized = any(s.action == "finish_resize" for s in command.steps)
        for change in command.mutations if resized else ():
            if change.table == TABLES and "tablets" in (change.columns or {}):
                text = f"Finalizing resize decision for table {table_id(change.key[0])}"
                self._say(BALANCER, text, Level.INFO, 0)
        for text in self._of_tasks(command, resized=resized):
            self._say(VIEW_COORDINATOR, text, Level.DEBUG, 0)

    def _of_tasks(self, command: Command, *, resized: bool) -> Iterator[str]:
        before = tasks_in(self._catalog().tables)
        gone, made = list[_Gone](), dict[str, Task]()
        for change in command.mutations:
            if change.table != TASKS:
                continue
            name, row = change.key[0], change.columns
            if row is None:
                gone.append(_Gone(before[name]))
            elif "type" in row:
                made |= tasks_in({TASKS: {change.key: dict(row)}})
                if gone:
                    gone[-1].heirs.append(made[name])
            elif row["aborted"]:
                yield f"Aborting task {name}"
        for one in gone:
            yield _merged_or_split(one, made.values()) if resized else _moved(one, made.values())


def _moved(gone: _Gone, made: Iterable[Task]) -> str:
    """What became of a task; where a whole view is built anew, many tasks are made, each in its own place."""
    task, place = gone.task, gone.task.place
    for heir in made:
        if (heir.view, heir.type, heir.place) == (task.view, task.type, place):
            return f"Aborted task {task.id} was recreated with new id {heir.id}"
    if len(gone.heirs) != 1:
        return f"Aborting task {task.id} for abandoning replica {_named(place.replica)}"
    (heir,) = gone.heirs
    return (
        f"Task {task.id} was migrated from {_named(place.replica)} to {_named(heir.place.replica)}."
    )


def _merged_or_split(gone: _Gone, made: Iterable[Task]) -> str:
    task, heirs = gone.task, gone.heirs
    if len(heirs) == 2:
        return f"Task {task.id} was split into task {heirs[0].id} and task {heirs[1].id}"
    of_both = (
        h for h in made if _same(h) == _same(task) and h.place.last_token >= task.place.last_token
    )
    heir = min(of_both, key=lambda h: h.place.last_token, default=None)
    if heir is None:
        return f"Task {task.id} was removed during tablet merge"
    return f"Task {task.id} was merged into task {heir.id}"


def _same(task: Task) -> tuple[str, str, str]:
    """What tasks have in common that come to be one."""
    return task.type, task.view, task.place.replica.host


def _named(replica: TabletReplica) -> str:
    return f"{host_id_of(replica.host)}:{replica.shard}"

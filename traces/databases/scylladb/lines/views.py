"""The lines of ScyllaDB's view building coordinator and workers about a view building task.

Those are at DEBUG; which base table is worked on is logged at INFO. What a line says of a task is an event of `ViewTask`; a task that is gone
is `dropped` unless the line says that it is finished, and has no further events either way.
"""

from __future__ import annotations

import re

from stagewright.machines.scylladb.views.view_coordinator import (
    Base,
    Shard,
    Tablet,
    View,
    ViewCoordinator,
)
from stagewright.machines.scylladb.views.view_task import Call, Life, ViewTask, Work
from stagewright.spec.values import FrozenMap
from stagewright.traces.databases.scylladb.log.patterns import UUID, LineForm, form
from stagewright.traces.events.observability import ALL_HIDDEN, Recording, hidden_but

MACHINE = ViewTask.__name__
LIFE, CALL, WORK = ViewTask.life.name, ViewTask.call.name, ViewTask.work.name
RECORDING = Recording(ALL_HIDDEN, from_start=False, end_marked=False)

PROCESSED = ViewCoordinator.__name__  # as one base table sees it: itself, and any other one
WHICH = ViewCoordinator.processed.name  # each change of it leaves a line at INFO
ITSELF, ANOTHER = (f"{Base.__name__.lower()}{number}" for number in range(2))
PROCESSED_RECORDING = Recording(
    hidden_but({WHICH: None}),
    from_start=False,
    end_marked=False,
    sizes=FrozenMap({Base.__name__: 2, View.__name__: 2, Tablet.__name__: 1, Shard.__name__: 1}),
    budgets=FrozenMap(
        {
            budget.name: 0  # more than the turns of base tables need
            for budget in (
                ViewCoordinator.drops,
                ViewCoordinator.leader_changes,
                ViewCoordinator.restarts,
            )
        }
    ),
)

SEEN = "view tasks"  # of the coordinator's calls, or of a worker: as the line is written, so it is
WILL = "view tasks will be"  # written before the commit that makes it so
GC_WILL = "view tasks will be removed"  # the same, of the fiber that removes finished tasks
GC_RACE = "removal lost"  # what that fiber was about to commit was not
STAGING_RACE = (
    "creation lost"  # what the registrator of staging sstables was about to commit was not
)
API_COMMIT = "tablet moved by hand"  # a commit of another node than the topology coordinator
API_RACE = "tablet move lost"

CALLS = "view tasks called for"  # these three say what `SEEN` does, too
BATCH_STARTS = "view batch starts"
BATCH_ENDS = "view batch ends"

SELECTED = "base table selected"
FINISHED = "base table finished"
SELECTION_IN_DOUBT = "base table in doubt"  # what was said last may not have been committed

COORDINATOR = ("view_building_coordinator",)
WORKER = ("view_building_worker",)
_ANY_NODE = ("raft_topology",)  # of whichever node is asked
_ID = rf"(?P<id>{UUID})"
_IDS = r"[\[{(]?(?P<ids>[0-9a-f, -]*)[\]})]?"
_FIND = re.compile(UUID)


def _variables(
    *, life: Life | None = None, call: Call | None = None, work: Work | None = None
) -> dict[str, str]:
    """What a line says of a task, by the variables of its machine."""
    values_by_leaf = {LIFE: life, CALL: call, WORK: work}
    return {name: value.name for name, value in values_by_leaf.items() if value is not None}


def _sees(
    mark: str, pattern: str, loggers: tuple[str, ...], says: str = SEEN, **words: str
) -> LineForm:
    return form(says, loggers, mark, pattern, **words)


FORMS = (
    form(
        SELECTED,
        COORDINATOR,
        "Selected new base table to process: ",
        rf"Selected new base table to process: (?P<base>{UUID})$",
    ),
    form(
        FINISHED,
        COORDINATOR,
        "Finished processing base table ",
        rf"Finished processing base table (?P<base>{UUID})$",
    ),
    form("", COORDINATOR, "is built.", r"View \S+ is built\.$"),
    form(
        SELECTION_IN_DOUBT,
        COORDINATOR,
        "view building coordinator got ",
        r"view building coordinator got ",
    ),
    _sees(
        "Attaching to started tasks ",
        rf"Attaching to started tasks {_IDS} on replica (?P<host>[^\s:]+)",
        COORDINATOR,
        CALLS,
        action=ViewTask.send.__name__,
        **_variables(call=Call.sent),
    ),
    _sees(
        "Work on tasks ",
        rf"Work on tasks {_IDS} on replica \S+, failed with error: ",
        COORDINATOR,
        **_variables(call=Call.none),
    ),
    form(
        GC_WILL,
        COORDINATOR,
        "Removing finished task with ID: ",
        rf"Removing finished task with ID: {_ID}$",
        **_variables(life=Life.finished),
    ),
    form(
        GC_RACE,
        COORDINATOR,
        "finished_task_gc_fiber got ",
        r"\S*finished_task_gc_fiber got (?:group0_concurrent_modification|raft::commit_status_unknown)",
    ),
    form("", COORDINATOR, "finished_task_gc_fiber got ", r"\S*finished_task_gc_fiber got "),
    form(
        WILL,
        COORDINATOR,
        "Aborting task ",
        rf"Aborting task {_ID} for abandoning replica ",
        **_variables(life=Life.dropped),
    ),
    form(
        WILL,
        COORDINATOR,
        "Aborting task ",
        rf"Aborting task {_ID}$",
        **_variables(life=Life.aborted),
    ),
    form(
        WILL,
        COORDINATOR,
        "Aborted task ",
        rf"Aborted task {_ID} was recreated with new id (?P<new>{UUID})",
        **_variables(life=Life.dropped),
    ),
    form(
        WILL,
        COORDINATOR,
        "was migrated from ",
        rf"Task {_ID} was migrated from \S+ to \S",
        **_variables(life=Life.dropped),
    ),
    form(
        WILL,
        COORDINATOR,
        "was split into task ",
        rf"Task {_ID} was split into task (?P<new>{UUID}) and task (?P<second>{UUID})",
        **_variables(life=Life.dropped),
    ),
    form(
        WILL,
        COORDINATOR,
        "was merged into task ",
        rf"Task {_ID} was merged into task (?P<new>{UUID})",
        **_variables(life=Life.dropped),
    ),
    form(
        WILL,
        COORDINATOR,
        "was removed during tablet merge",
        rf"Task {_ID} was removed during tablet merge",
        **_variables(life=Life.dropped),
    ),
    form(
        "create staging task",
        WORKER,
        "Creating process staging task",
        rf"Creating process staging task: .* with ID: {_ID} for replica",
        **_variables(life=Life.normal),
    ),
    form(
        STAGING_RACE,
        WORKER,
        "while creating staging sstable tasks",
        r"Got \S+ while creating staging sstable tasks",
    ),
    form("", WORKER, "while creating staging sstable tasks", r"Exception while creating staging"),
    _sees(
        "Starting view building batch for tasks ",
        rf"Starting view building batch for tasks {_IDS}\. Task type ",
        WORKER,
        BATCH_STARTS,
        **_variables(work=Work.executing),
    ),
    _sees(
        "Batch with tasks ",
        rf"Batch with tasks {_IDS} finished",
        WORKER,
        BATCH_ENDS,
        **_variables(work=Work.done),
    ),
    _sees(
        "Batch with tasks ",
        rf"Batch with tasks {_IDS} failed with error: ",
        WORKER,
        **_variables(work=Work.executing),
    ),
    *(
        line
        for what in ("Moving tablet ", "Adding replica to tablet ", "Removing replica from tablet ")
        for line in (
            form(API_COMMIT, _ANY_NODE, what, rf"{what}{UUID}:\d+(?: from|,)"),
            form("", _ANY_NODE, what, what),
        )
    ),
    form(
        API_RACE,
        _ANY_NODE,
        "transit_tablet(): concurrent modification",
        r"transit_tablet\(\): concurrent modification",
    ),
)
CREATE_STAGING = "create staging task"


def ids_in(text: str) -> list[str]:
    """The tasks of a list, each once."""
    return list(dict.fromkeys(_FIND.findall(text)))

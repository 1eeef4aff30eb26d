"""The lines of a ScyllaDB log that say which stage a tablet's transition is in.

At DEBUG the coordinator logs each stage it will set, but neither the first nor the last step of a
transition. At INFO it logs only the actions that it runs on replicas. What leaves no line is a hidden step.
"""

from __future__ import annotations

from stagewright.machines.scylladb.tablets.tablet_migration import TabletMigration
from stagewright.machines.scylladb.tablets.tablet_stages import Stage
from stagewright.traces.databases.scylladb.log.patterns import LineForm, form
from stagewright.traces.events.observability import ALL_HIDDEN, Recording, hidden_but

MACHINE = TabletMigration.__name__
STAGE = TabletMigration.stage.name
KIND = TabletMigration.kind.name
WILL_SET = "will set stage"  # the coordinator intends to commit this stage
IS_IN = "is in stage"
CLEANS_UP = "is cleaned up"  # in one of the two stages of that
BARRIER_FAILED = "barrier of a stage failed"
CLEANUP_FAILED = "cleanup failed"
CLEANUP_ENDED = "cleanup ended"  # it may have failed

LOGGERS = ("raft_topology",)
_GID = r"(?P<table>[0-9a-f-]{36}):(?P<tablet>\d+)"
_STAGE = r"(?P<stage>[a-z]\w*)"
_INITIATING = "Initiating tablet "
_CLEANUP = "Tablet cleanup of "
_CLEANED = "cleanup for tablet "
_BARRIER = "barrier for tablet "
_STILL = " still doing "
_OPERATIONS = {s.name: s for s in (Stage.streaming, Stage.rebuild_repair, Stage.repair)}


def _is_in(stage: Stage, mark: str, pattern: str) -> LineForm:
    return form(IS_IN, LOGGERS, mark, pattern, stage=stage.name)


def _operation(name: str, stage: Stage) -> tuple[LineForm, ...]:
    """What the coordinator says of an operation while the tablet is in its stage."""
    mark = f"{name} for tablet "
    return (
        _is_in(stage, mark, rf"{name} for tablet {_GID} (?:failed: |resolved)"),
        _is_in(stage, _STILL, rf"Tablet {_GID} still doing {name}$"),
    )


FORMS = (
    form(
        WILL_SET, LOGGERS, "Will set tablet ", rf"Will set tablet {_GID} stage to {_STAGE}(?::|$)"
    ),
    _is_in(
        Stage.streaming,
        _INITIATING,
        rf"Initiating tablet streaming (?:\((?P<kind>[\w ]+)\) )?of {_GID} to \S",
    ),
    _is_in(
        Stage.cleanup_target,
        _INITIATING,
        rf"Initiating tablet cleanup of {_GID} on .* to revert migration$",
    ),
    _is_in(
        Stage.cleanup,
        _INITIATING,
        rf"Initiating tablet cleanup of {_GID} on \S",
    ),
    _is_in(Stage.repair, _INITIATING, rf"Initiating tablet repair host=\S+ tablet={_GID}"),
    _is_in(
        Stage.rebuild_repair,
        "Initiating repair phase of tablet rebuild",
        rf"Initiating repair phase of tablet rebuild host=\S+ tablet={_GID}",
    ),
    _is_in(
        Stage.streaming,
        "Skipped tablet streaming",
        rf"Skipped tablet streaming \([\w ]+\) of {_GID} as no pending replica found",
    ),
    _is_in(
        Stage.rebuild_repair,
        "Skipped tablet rebuild repair",
        rf"Skipped tablet rebuild repair of {_GID} as",
    ),
    _is_in(
        Stage.cleanup,
        _CLEANUP,
        rf"Tablet cleanup of {_GID} skipped because no replicas leaving",
    ),
    _is_in(
        Stage.cleanup_target,
        _CLEANUP,
        rf"Tablet cleanup of {_GID} skipped because no replicas pending",
    ),
    _is_in(
        Stage.cleanup_target,
        _CLEANUP,
        rf"Tablet cleanup of {_GID} on \S+ skipped because node is excluded and doesn't need to revert",
    ),
    _is_in(
        Stage.cleanup,
        _CLEANUP,
        rf"Tablet cleanup of {_GID} on \S+ skipped because node is excluded$",
    ),
    form(
        IS_IN,
        LOGGERS,
        "Active tablet ",
        rf"Active tablet [\w ]+: tablet={_GID}, stage={_STAGE}(?:,|$)",
    ),
    *(one for name, stage in _OPERATIONS.items() for one in _operation(name, stage)),
    *(form("", LOGGERS, f"{name} for tablet ", r"") for name in _OPERATIONS),
    form(CLEANS_UP, LOGGERS, _STILL, rf"Tablet {_GID} still doing cleanup$"),
    form("", LOGGERS, _STILL, r""),
    form(BARRIER_FAILED, LOGGERS, _BARRIER, rf"barrier for tablet {_GID} failed: "),
    form("", LOGGERS, _BARRIER, r""),
    form(CLEANUP_FAILED, LOGGERS, _CLEANED, rf"cleanup for tablet {_GID} failed: "),
    form(CLEANUP_ENDED, LOGGERS, _CLEANED, rf"cleanup for tablet {_GID} resolved"),
    form("", LOGGERS, _CLEANED, r""),
    _is_in(
        Stage.repair,
        "Skipping tablet repair for tablet=",
        rf"Skipping tablet repair for tablet={_GID} which is cancelled",
    ),
)

CLEANUPS = frozenset({Stage.cleanup.name, Stage.cleanup_target.name})
FAILS_BARRIER = TabletMigration.fail_barrier.__name__

# A transition is made and deleted without a line, so its first stages and `none` leave none; nor does
# `end_repair`, which follows a failed repair without one.
_SILENT = (Stage.none, Stage.allow_write_both_read_old, Stage.repair, Stage.end_repair)
_LOGGED = frozenset(stage.name for stage in Stage if stage not in _SILENT)

# At DEBUG every step to one of the others leaves a line; at INFO any step may leave none.
DEBUG_RECORDING = Recording(hidden_but({STAGE: _LOGGED}), from_start=False, end_marked=False)
INFO_RECORDING = Recording(ALL_HIDDEN, from_start=False, end_marked=False)

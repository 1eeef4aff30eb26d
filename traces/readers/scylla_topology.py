"""The lines of ScyllaDB's topology coordinator: what it commits, for what reason, and what each reason means.

`updating topology state: REASON` is written before the commit: `race while changing state: REASON` takes it
back. The same reasons are the descriptions in `system.group0_history`, where only what was committed is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from stagewright.traces.readers.scylla_forms import UUID, form
from stagewright.traces.recording import ALL_HIDDEN, Recording, hidden_but

TRANSITION = "TopologyTransition"
NODE = "TopologyNode"

LEADER = "coordinator starts"
COMMIT = "commit attempted"
RACE = "commit lost"
UNKNOWN = "commit unknown"
FAILED = "pass failed"  # what was planned in it is planned anew
ENTERED = "state entered"
FOUND = "node found"
LEFT = "node left"

_LOGGERS = ("raft_topology",)
_FIBER = "topology change coordinator fiber "

FORMS = (
    form(LEADER, _LOGGERS, "start topology coordinator fiber", r"start topology coordinator fiber"),
    form(
        COMMIT,
        _LOGGERS,
        "updating topology state",
        r"updating topology state(?: with mixed change)?: (?P<reason>.*)",
    ),
    form(
        RACE,
        _LOGGERS,
        "race while changing state",
        r"race while changing state(?:: (?P<reason>.*?)\.? Retrying)?",
    ),
    form(
        UNKNOWN,
        _LOGGERS,
        _FIBER,
        r"topology change coordinator fiber got commit_status_unknown",
    ),
    form(FAILED, _LOGGERS, _FIBER, r"topology change coordinator fiber (?:got|notices|aborted)\b"),
    form(ENTERED, _LOGGERS, "entered `", r"entered `(?P<state>[a-z0-9 ]+)` transition state"),
    form(
        FOUND,
        _LOGGERS,
        "coordinator fiber found a node to work on",
        rf"coordinator fiber found a node to work on id=(?P<node>{UUID}) state=(?P<state>\w+)",
    ),
    form(
        LEFT,
        _LOGGERS,
        "moved to left state",
        rf"(?:rejected node moved to left state|node) (?P<node>{UUID})(?: moved to left state)?",
    ),
)

IN_TRANSITION = frozenset(
    {"bootstrapping", "replacing", "rebuilding", "decommissioning", "removing"}
)
_NAMES = {"tablet split finalization": "tablet_resize_finalization"}  # as of 6.0


def state_named(text: str) -> str:
    """The name of a transition state as logs write it, with spaces."""
    return _NAMES.get(text, text.replace(" ", "_"))


@dataclass(frozen=True)
class Told:
    """What the reason of a commit tells; nothing of what is None.

    `working`: the state of the node in transition from then on, empty for none. `nodes`: node states by host
    id, where `""` is the node that the coordinator works on.
    """

    transition: str | None = None
    working: str | None = None
    nodes: tuple[tuple[str, str], ...] = ()


_STATE = r"(?P<state>bootstrapping|replacing|rebuilding|decommissioning|removing)"
_ID = rf"(?P<node>{UUID})"


@dataclass(frozen=True)
class _Reason:
    pattern: re.Pattern[str]
    transition: str | None
    working: str | None  # `state`: the word in the place of that name
    node: str | None


def _reason(
    pattern: str,
    transition: str | None = None,
    working: str | None = None,
    node: str | None = None,
) -> _Reason:
    return _Reason(re.compile(pattern), transition, working, node)


# The first that matches is meant. Where a reason leaves open which state follows, the next line tells.
REASONS = (
    _reason(r"bootstrap: accept node", "join_group0", "bootstrapping", "bootstrapping"),
    _reason(r"replace: accept node", "join_group0", "replacing", "replacing"),
    _reason(r"bootstrap: node rejected", None, "", "left"),
    _reason(rf"bootstrap: failed to accept {_ID}", "null", "", "left"),
    _reason(rf"bootstrap: joined a zero-token node {_ID}", "null", "", "normal"),
    _reason(
        rf"replace: replaced node (?P<replaced>{UUID}) with the new zero-token node {_ID}",
        "null",
        "",
        "normal",
    ),
    _reason(
        r"bootstrap: insert tokens and CDC generation data",
        "commit_cdc_generation",
        "bootstrapping",
        "bootstrapping",
    ),
    _reason(rf"insert CDC generation data \(UUID: {UUID}\)$", "commit_cdc_generation", ""),
    _reason(
        r"replace: transition to write_both_read_old and take ownership",
        "write_both_read_old",
        "replacing",
        "replacing",
    ),
    _reason(
        r"replace: transition to tablet_draining and take ownership",
        "tablet_draining",
        "replacing",
        "replacing",
    ),
    _reason(r"start decommission", None, "decommissioning", "decommissioning"),
    _reason(r"start removenode", None, "removing", "removing"),
    _reason(r"(?:decommission|removenode) rejected", None, "", "normal"),
    _reason(
        rf"{_STATE}: streaming completed for node {_ID}", "write_both_read_new", "state", "state"
    ),
    _reason(r"bootstrap: read fence completed", None, "", "normal"),
    _reason(r"replace: read fence completed", "null", "", "normal"),
    _reason(r"report request completion in left_token_ring state", "left_token_ring"),
    _reason(rf"finished (?:decommissioning|removing) node {_ID}", None, "", "left"),
    _reason(rf"finished rollback of {_ID} after \w+ failure", None, "", "left"),
    _reason(
        rf"rollback {_ID} after {_STATE} failure, moving transition state to (?P<to>[a-z0-9 _]+) and",
        "to",
        "state",
        "state",
    ),
    _reason(
        rf"complete rollback of {_ID} to state normal after \w+ failure",
        "tablet_migration",
        "",
        "normal",
    ),
    _reason(r"start rebuilding", "null", "rebuilding", "rebuilding"),
    _reason(r"rebuilding completed", None, "", "normal"),
    _reason(r"committed new CDC generation command failed", "null", ""),
    _reason(r"Started tablet (?:resize|split) finalization", "tablet_resize_finalization", ""),
    _reason(r"Finished tablet (?:resize|split) finalization", "null", ""),
    _reason(r"TRUNCATE TABLE requested", "truncate_table", ""),
    _reason(r"SNAPSHOT TABLES requested", "snapshot_tables", ""),
    _reason(r"(?:Truncate|Snapshot)\b.* has completed", "null", ""),
)
_ORPHANS = "Ban the orphan nodes in group0"

# Fibers beside the main one commit by themselves: what the main one intends is not in their commits.
BESIDE = (
    "published CDC generation",
    "deleted data of CDC generations",
    "CDC streams GC",
    _ORPHANS,
    "Starting new topology coordinator",
)


@lru_cache(1 << 14)
def fiber_of(reason: str) -> str:
    """Which fiber of the coordinator commits for a reason; empty for the main one."""
    return next((beside for beside in BESIDE if reason.startswith(beside)), "")


def carries_plans(reason: str) -> bool:
    """Whether what was planned for tablets may be in the commit; that of a fence may come in between."""
    return not fiber_of(reason) and not reason.startswith("advance fence version")


@lru_cache(1 << 14)
def told_by(reason: str) -> Told | None:
    """What a commit for a reason changes, as far as the reason tells."""
    if reason.startswith(_ORPHANS):
        return Told(nodes=tuple((node, "left") for node in re.findall(UUID, reason)))
    for row in REASONS:
        found = row.pattern.match(reason)
        if found is None:
            continue
        words = found.groupdict()
        transition = state_named(words["to"]) if row.transition == "to" else row.transition
        working = words["state"] if row.working == "state" else row.working
        state = words["state"] if row.node == "state" else row.node
        nodes = [] if state is None else [(words.get("node") or "", state)]
        if replaced := words.get("replaced"):
            nodes.append((replaced, "left"))
        return Told(transition, working, tuple(nodes))
    return None


# As of 2024 each state that is entered leaves a line, but for what comes from outside.
_ENTERED = frozenset(
    {
        "join_group0",
        "commit_cdc_generation",
        "tablet_draining",
        "write_both_read_old",
        "write_both_read_new",
        "left_token_ring",
        "rollback_to_normal",
        "tablet_migration",
        "tablet_resize_finalization",
        "truncate_table",
        "snapshot_tables",
    }
)
ENTERED_RECORDING = Recording(
    hidden_but({"transition_state": _ENTERED}), from_start=False, end_marked=False
)
HIDDEN_RECORDING = Recording(ALL_HIDDEN, from_start=False, end_marked=False)

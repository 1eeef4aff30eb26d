"""The lines of ScyllaDB's topology coordinator: what it commits, for what reason, and what each reason means.

`updating topology state: REASON` is written before the commit: `race while changing state: REASON` takes it
back. The same reasons are the descriptions in `system.group0_history`, where only what was committed is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache

from stagewright.machines.scylladb.topology.topology_node import TopologyNode
from stagewright.machines.scylladb.topology.topology_states import (
    NodeState as N,
    TransitionState as T,
)
from stagewright.machines.scylladb.topology.topology_transition import TopologyTransition
from stagewright.traces.databases.scylladb.log.patterns import UUID, form
from stagewright.traces.events.observability import ALL_HIDDEN, Recording, hidden_but

TRANSITION = TopologyTransition.__name__
TRANSITION_STATE = TopologyTransition.transition_state.name
IN_TRANSITION_IS = TopologyTransition.in_transition.name
NODE = TopologyNode.__name__
NODE_STATE = TopologyNode.node_state.name

LEADER = "coordinator starts"
COMMIT = "commit attempted"
RACE = "commit lost"
UNKNOWN = "commit unknown"
FAILED = "pass failed"  # what was planned in it is planned anew
DEPOSED = "term changed"  # the same; and nobody knows what became of a commit on its way
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
    form(DEPOSED, _LOGGERS, _FIBER, r"topology change coordinator fiber notices term change"),
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

_AT_WORK = (N.bootstrapping, N.replacing, N.rebuilding, N.decommissioning, N.removing)
IN_TRANSITION = frozenset(state.name for state in _AT_WORK)
_NAMES = {"tablet split finalization": T.tablet_resize_finalization.name}  # as of 6.0


def state_named(text: str) -> str:
    """The name of a transition state as logs write it, with spaces."""
    return _NAMES.get(text, text.replace(" ", "_"))


@dataclass(frozen=True)
class Change:
    """What the reason of a commit says has changed; nothing of what is None.

    `working`: the state of the node in transition from then on, empty for none. `nodes`: node states by host
    id, where `""` is the node that the coordinator works on.
    """

    transition: str | None = None
    working: str | None = None
    nodes: tuple[tuple[str, str], ...] = ()


class _Word(Enum):
    """What is not the same for every line of a reason: the word in the place of that name; or no state."""

    to = auto()
    state = auto()
    nobody = auto()


_STATE = rf"(?P<state>{'|'.join(state.name for state in _AT_WORK)})"
_ID = rf"(?P<node>{UUID})"


@dataclass(frozen=True)
class _Reason:
    pattern: re.Pattern[str]
    transition: T | _Word | None
    working: N | _Word | None
    node: N | _Word | None


def _reason(
    pattern: str,
    transition: T | _Word | None = None,
    working: N | _Word | None = None,
    node: N | _Word | None = None,
) -> _Reason:
    return _Reason(re.compile(pattern), transition, working, node)


# The first that matches is meant. Where a reason leaves open which state follows, the next line says.
REASONS = (
    _reason(r"bootstrap: accept node", T.join_group0, N.bootstrapping, N.bootstrapping),
    _reason(r"replace: accept node", T.join_group0, N.replacing, N.replacing),
    _reason(r"bootstrap: node rejected", None, _Word.nobody, N.left),
    _reason(rf"bootstrap: failed to accept {_ID}", T.null, _Word.nobody, N.left),
    _reason(rf"bootstrap: joined a zero-token node {_ID}", T.null, _Word.nobody, N.normal),
    _reason(
        rf"replace: replaced node (?P<replaced>{UUID}) with the new zero-token node {_ID}",
        T.null,
        _Word.nobody,
        N.normal,
    ),
    _reason(
        r"bootstrap: insert tokens and CDC generation data",
        T.commit_cdc_generation,
        N.bootstrapping,
        N.bootstrapping,
    ),
    _reason(
        rf"insert CDC generation data \(UUID: {UUID}\)$", T.commit_cdc_generation, _Word.nobody
    ),
    _reason(
        r"replace: transition to write_both_read_old and take ownership",
        T.write_both_read_old,
        N.replacing,
        N.replacing,
    ),
    _reason(
        r"replace: transition to tablet_draining and take ownership",
        T.tablet_draining,
        N.replacing,
        N.replacing,
    ),
    _reason(r"start decommission", None, N.decommissioning, N.decommissioning),
    _reason(r"start removenode", None, N.removing, N.removing),
    _reason(r"(?:decommission|removenode) rejected", None, _Word.nobody, N.normal),
    _reason(
        rf"{_STATE}: streaming completed for node {_ID}",
        T.write_both_read_new,
        _Word.state,
        _Word.state,
    ),
    _reason(r"bootstrap: read fence completed", None, _Word.nobody, N.normal),
    _reason(r"replace: read fence completed", T.null, _Word.nobody, N.normal),
    _reason(r"report request completion in left_token_ring state", T.left_token_ring),
    _reason(rf"finished (?:decommissioning|removing) node {_ID}", None, _Word.nobody, N.left),
    _reason(rf"finished rollback of {_ID} after \w+ failure", None, _Word.nobody, N.left),
    _reason(
        rf"rollback {_ID} after {_STATE} failure, moving transition state to (?P<to>[a-z0-9 _]+) and",
        _Word.to,
        _Word.state,
        _Word.state,
    ),
    _reason(
        rf"complete rollback of {_ID} to state normal after \w+ failure",
        T.tablet_migration,
        _Word.nobody,
        N.normal,
    ),
    _reason(r"start rebuilding", T.null, N.rebuilding, N.rebuilding),
    _reason(r"rebuilding completed", None, _Word.nobody, N.normal),
    _reason(r"committed new CDC generation command failed", T.null, _Word.nobody),
    _reason(
        r"Started tablet (?:resize|split) finalization", T.tablet_resize_finalization, _Word.nobody
    ),
    _reason(r"Finished tablet (?:resize|split) finalization", T.null, _Word.nobody),
    _reason(r"TRUNCATE TABLE requested", T.truncate_table, _Word.nobody),
    _reason(r"SNAPSHOT TABLES requested", T.snapshot_tables, _Word.nobody),
    _reason(r"Clear (?:truncate|snapshot) session", None, _Word.nobody),
    _reason(r"(?:Truncate|Snapshot)\b.* has completed", T.null, _Word.nobody),
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
def change_of(reason: str) -> Change | None:
    """What a commit for a reason changes, as far as the reason says."""
    if reason.startswith(_ORPHANS):
        return Change(nodes=tuple((node, N.left.name) for node in re.findall(UUID, reason)))
    for row in REASONS:
        found = row.pattern.match(reason)
        if found is None:
            continue
        words = found.groupdict()
        transition = _named(row.transition, words)
        working = _named(row.working, words)
        state = _named(row.node, words)
        nodes = [] if state is None else [(words.get("node") or "", state)]
        if replaced := words.get("replaced"):
            nodes.append((replaced, N.left.name))
        return Change(transition, working, tuple(nodes))
    return None


def _named(meant: T | N | _Word | None, words: Mapping[str, str]) -> str | None:
    match meant:
        case None:
            return None
        case _Word.to:
            return state_named(words["to"])
        case _Word.state:
            return words["state"]
        case _Word.nobody:
            return ""
        case T() | N():
            return meant.name


# As of 2024 each state that is entered leaves a line, but for what comes from outside.
_ENTERED = frozenset(
    {
        T.join_group0.name,
        T.commit_cdc_generation.name,
        T.tablet_draining.name,
        T.write_both_read_old.name,
        T.write_both_read_new.name,
        T.left_token_ring.name,
        T.rollback_to_normal.name,
        T.tablet_migration.name,
        T.tablet_resize_finalization.name,
        T.truncate_table.name,
        T.snapshot_tables.name,
    }
)
ENTERED_RECORDING = Recording(
    hidden_but({TRANSITION_STATE: _ENTERED}), from_start=False, end_marked=False
)
HIDDEN_RECORDING = Recording(ALL_HIDDEN, from_start=False, end_marked=False)

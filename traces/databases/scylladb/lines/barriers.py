"""The lines of barriers and fences: what the coordinator executes, what each node answers, what each node refuses.

Upstream writes that a node is done as of 2026-05; before that no line says that it is.
"""

from __future__ import annotations

import re

from stagewright.machines.recorded.logged import LoggedBarrier, LoggedFence, LoggedTenure
from stagewright.traces.databases.scylladb.log.patterns import form
from stagewright.traces.events.observability import Recording

BARRIER = LoggedBarrier.__name__
FENCE = LoggedFence.__name__
TENURE = LoggedTenure.__name__
MACHINES = (BARRIER, FENCE, TENURE)

EXECUTED = "command executed"
FENCE_EXECUTED = "fence awaited"
PROCEEDS = "fenced without all answers"
FAILED = "barrier failed"
GOT = "barrier begun"
DONE = "barrier done"
FENCED = "fence learned"
LOST = "leadership lost"
TERM = "term named"

_TOPOLOGY = ("raft_topology",)
_GROUP0 = ("raft_group0",)
_DRAIN = "raft_topology_cmd::barrier_and_drain version "
_EXECUTING = "executing global topology command "

FORMS = (
    form(
        EXECUTED,
        _TOPOLOGY,
        _EXECUTING,
        rf"{_EXECUTING}barrier_and_drain\b(?:, excluded nodes: \{{(?P<excluded>.*)\}})?",
    ),
    form(FENCE_EXECUTED, _TOPOLOGY, _EXECUTING, rf"{_EXECUTING}barrier,"),
    form("", _TOPOLOGY, _EXECUTING, _EXECUTING),  # of other commands
    form(PROCEEDS, _TOPOLOGY, "proceed to fence old writes", r"drain rpc failed, proceed to fence"),
    form("", _TOPOLOGY, "proceed to fence old writes", r""),
    form(
        FAILED,
        _TOPOLOGY,
        "transition_state::",
        r"transition_state::\w+, ?(?:global_token_metadata_barrier|raft_topology_cmd::command::barrier) failed",
    ),
    form("", _TOPOLOGY, "transition_state::", r""),
    form(
        GOT,
        _TOPOLOGY,
        "Got raft_topology_cmd::barrier_and_drain, version ",
        r"Got raft_topology_cmd::barrier_and_drain, version (?P<version>\d+), "
        r"current version (?P<current>\d+)(?:, stale versions \(version: use_count\): \{(?P<stale>.*)\})?",
    ),
    form("", _TOPOLOGY, "Got raft_topology_cmd::barrier_and_drain, version ", r""),
    form(DONE, _TOPOLOGY, _DRAIN, rf"{_DRAIN}(?P<version>\d+): done"),
    form("", _TOPOLOGY, _DRAIN, _DRAIN),  # it waits, still waits, waits for sessions
    form(
        FENCED,
        ("storage_proxy",),
        "update_fence_version: new fence_version ",
        r"update_fence_version: new fence_version (?P<version>\d+) is set"
        r"(?:, prev fence_version (?P<before>\d+))?",
    ),
    form(
        TERM,
        _TOPOLOGY,
        ": starting read_barrier, term=",
        r"topology cmd rpc \w+ index=\d+: starting read_barrier, term=(?P<term>\d+)",
    ),
    form(LOST, _GROUP0, "losing leadership", r"losing leadership"),
)

TABLETS_MOVE_IN = ("tablet migration", "tablet draining")  # as the log names these states

RECORDING = Recording(end_marked=False)
_ADVANCED = re.compile(r"advance fence version to (\d+)")
_ACCEPTS = re.compile(r"(?:bootstrap|replace): accept node")
_LEAVES = re.compile(r"\w+: (?:streaming completed for node|read fence completed)")
# The same nodes take part, at the same version, in a barrier that goes on.
_CHANGES_NO_NODE = re.compile(r"cancel all topology requests|start rebuilding|rebuilding completed")
_STALE = re.compile(r"(\d+): \d+")


def fenced_by(reason: str) -> int | None:
    """The version to which a commit for a reason sets the fence."""
    found = _ADVANCED.match(reason)
    return int(found[1]) if found else None


def accepts_a_node(reason: str) -> bool:
    """Whether a node takes part from a commit for a reason on."""
    return _ACCEPTS.match(reason) is not None


def leaves_a_state(reason: str) -> bool:
    """Whether a commit for a reason relies on the barrier of the state that it leaves."""
    return _LEAVES.match(reason) is not None


def changes_who_takes_part(reason: str) -> bool:
    """Whether a barrier that began before a commit for a reason may have asked too few, or too early."""
    return _CHANGES_NO_NODE.match(reason) is None


def versions_in(stale: str) -> list[int]:
    """The versions in a list of those with their use counts."""
    return [int(version) for version in _STALE.findall(stale)]

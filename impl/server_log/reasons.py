"""Why the topology coordinator commits, in the words of ScyllaDB's source, with host ids in place of names.

Upstream has no commit of its own for some steps (`BESIDE`). Lines of the logger `stagewright` are made up.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from stagewright.impl.catalog.columns import ALL, TOPOLOGY
from stagewright.impl.catalog.dumps import host_id_of
from stagewright.impl.catalog.view import Member, View
from stagewright.impl.group0 import Command
from stagewright.impl.server_log.lines import OWN, TOPOLOGY as TOPOLOGY_LOGGER
from stagewright.impl.topology.descriptions import rejected
from stagewright.machines.scylladb.topology.topology_states import JOINING, NodeState

FOUND = frozenset(
    {
        "accept_join",
        "accept_replace",
        "reject",
        "start_decommission",
        "start_remove",
        "start_rebuild",
    }
)
"""The steps before which the coordinator says which node it has found to work on."""
FENCES = frozenset({"pass_barrier", "wait_ring_delay", "fence_stages", "fence_before_cleanup"})

_TEXTS = {
    "fail_over": "Starting new topology coordinator {coordinator}",
    "accept_join": "bootstrap: accept node",
    "accept_replace": "replace: accept node",
    "reject": "{rejected}",
    "fail_to_accept": "bootstrap: failed to accept {n}",
    "insert_tokens": "bootstrap: insert tokens and CDC generation data (UUID: {made})",
    "prepare_generation": "insert CDC generation data (UUID: {made})",
    "commit_cdc_generation": "committed new CDC generation, ID: ({start}, {prepared})",
    "commit_generation": "committed new CDC generation, ID: ({start}, {prepared})",
    "publish_generation": "published CDC generation with ID ({since}, {unpublished}), ",
    "clear": "deleted data of CDC generations with time UUID lower than {oldest}",
    "take_tokens": "replace: transition to write_both_read_old and take ownership of the replaced "
    "node's tokens",
    "start_decommission": "start decommission",
    "start_remove": "start removenode",
    **dict.fromkeys(FENCES, "advance fence version to {version}"),
    "read_new": "{state}: streaming completed for node {n}",
    "finish_bootstrap": "bootstrap: read fence completed",
    "finish_replace": "replace: read fence completed",
    "leave_token_ring": "{state}: read fence completed",
    "report_completion": "report request completion in left_token_ring state",
    "finish_left": "{finished}",
    "roll_back_join": "rollback {n} after {state} failure, moving transition state to left token ring "
    "and setting cleanup flag",
    "roll_back_leave": "rollback {n} after {state} failure, moving transition state to rollback to "
    "normal and setting cleanup flag",
    "complete_rollback": "complete rollback of {n} to state normal after {state} failure",
    "start_rebuild": "start rebuilding",
    "finish_rebuild": "rebuilding completed",
    "cancel": "cancel all topology requests",
    "start_truncating": "TRUNCATE TABLE requested",
    "clear_request_session": "Clear truncate session",
    "finish_global_request": "Truncate has completed",
    "start_balancing": "Starting tablet migration",
    "start_draining": "Starting tablet migration",
    "start_resize_finalization": "Starting tablet migration",
    "finish_resize": "Finished tablet resize finalization",
    "change_stages": "Tablet migration",
    "settle_tablets": "Finished tablet migration",
    "leave_tablet_track": "Finished tablet migration",
}
_GONE = "removing node {node} from group 0 configuration..."
BESIDE = {
    "remove_replaced": (TOPOLOGY_LOGGER, _GONE),
    "remove_from_group0": (TOPOLOGY_LOGGER, _GONE),
    "join_group0": (OWN, "node {node} has joined group0"),
    "clean_up": (OWN, "node {node} has cleaned up"),
    "finish_cleanup": (OWN, "all nodes have cleaned up"),
    "fail_to_rebuild": (OWN, "rebuilding of {node} failed"),
}
"""What is said of steps that upstream takes in another commit, or in none of the topology: loggers and words."""


def action_of(command: Command) -> str:
    """The step for whose sake a command is committed; empty if it is none of the topology."""
    known = [s.action for s in command.steps if s.action in _TEXTS or s.action in BESIDE]
    return known[-1] if known else ""


def reason_of(command: Command, view: View, tables: Mapping[str, Any], coordinator: str) -> str:
    """The reason of a commit of the coordinator, on the topology as it is before it; empty if it has none."""
    action = action_of(command)
    text = _TEXTS.get(action)
    if text is None:
        return ""
    step = next(s for s in reversed(command.steps) if s.action == action)
    name = str(step.arguments.get("n", "")) or _in_transition(view)
    member = view.nodes.get(name)
    return text.format(
        n=host_id_of(name) if name else "",
        state=member.state.name if member else "",
        version=view.version,
        coordinator=host_id_of(coordinator),
        finished=_finished(member) if member else "",
        rejected=rejected(view, name),
        **_generations(command, tables),
    )


def beside(command: Command) -> tuple[str, str]:
    """The logger and the words of what is committed without a reason."""
    action = action_of(command)
    if action not in BESIDE:
        return OWN, command.description
    logger, text = BESIDE[action]
    step = next(s for s in reversed(command.steps) if s.action == action)
    name = step.arguments.get("dead", step.arguments.get("n"))
    return logger, text.format(node=host_id_of(str(name)) if name else "")


def failed_barrier(command: Command) -> bool:
    """Whether the barrier of the state has failed since the last commit."""
    return any(s.action == "fail_barrier" for s in command.steps)


def _in_transition(view: View) -> str:
    return next((m.name for m in view.nodes.values() if m.state.in_transition), "")


def _finished(member: Member) -> str:
    node = host_id_of(member.name)
    if member.state in JOINING:
        return f"finished rollback of {node} after {member.state.name} failure"
    leaves = member.state is NodeState.decommissioning
    return f"finished {'decommissioning' if leaves else 'removing'} node {node}"


def _generations(command: Command, tables: Mapping[str, Any]) -> dict[str, str]:
    """The generation that the command makes, the one that is prepared, and the newest that is unpublished."""
    before = tables[TOPOLOGY].get(ALL, {})
    after: dict[str, Any] = {}
    for change in command.mutations:
        if (change.table, change.key) == (TOPOLOGY, ALL):
            after |= change.columns or {}
    committed = (after.get("committed_cdc_generations") or [["", ""]])[-1]
    unpublished = (before.get("unpublished_cdc_generations") or [["", ""]])[-1]
    kept = (after.get("committed_cdc_generations") or [["", ""]])[0]
    return {
        "oldest": str(kept[1]),
        "made": str(after.get("new_cdc_generation_data_uuid", "")),
        "prepared": str(before.get("new_cdc_generation_data_uuid", "")),
        "start": _date(committed[0]),
        "since": _date(unpublished[0]),
        "unpublished": str(unpublished[1]),
    }


def _date(seconds: str) -> str:
    """A time as upstream prints it: a date in UTC, without fractions of a second."""
    if not seconds:
        return ""
    return datetime.fromtimestamp(int(seconds.partition(".")[0]), UTC).strftime("%Y/%m/%d %H:%M:%S")

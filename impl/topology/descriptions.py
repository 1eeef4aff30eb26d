"""What the history of group0 says of the coordinator's commits, in upstream's words where it has some."""

from __future__ import annotations

from stagewright.impl.catalog.view import View
from stagewright.spec.verdict import Step

REJECTED = {
    "": "bootstrap: node rejected",
    "leave": "decommission rejected",
    "remove": "removenode rejected",
}
"""By what a node of the cluster asks for."""

_TEXTS = {
    "accept_join": "bootstrap: accept node",
    "accept_replace": "replace: accept node",
    "fail_to_accept": "bootstrap: failed to accept {n}",
    "join_group0": "bootstrap: {n} has joined group0",
    "insert_tokens": "bootstrap: insert tokens and CDC generation data",
    "commit_cdc_generation": "committed new CDC generation",
    "commit_generation": "committed new CDC generation",
    "publish_generation": "published CDC generation",
    "prepare_generation": "insert CDC generation data",
    "take_tokens": "replace: transition to write_both_read_old and take ownership of the replaced "
    "node's tokens",
    "start_decommission": "start decommission",
    "start_remove": "start removenode",
    "pass_barrier": "advance fence version",
    "wait_ring_delay": "advance fence version",
    "read_new": "streaming completed for node {n}",
    "finish_bootstrap": "bootstrap: read fence completed",
    "finish_replace": "replace: read fence completed",
    "leave_token_ring": "read fence completed",
    "report_completion": "report request completion in left_token_ring state",
    "finish_left": "finished node {n}",
    "roll_back_join": "rollback {n}, moving transition state to left token ring",
    "roll_back_leave": "rollback {n}, moving transition state to rollback to normal",
    "complete_rollback": "complete rollback of {n} to state normal",
    "start_rebuild": "start rebuilding",
    "finish_rebuild": "rebuilding completed",
    "reject": "{rejected}",
    "cancel": "cancel all topology requests",
}


def described(step: Step, view: View) -> str:
    """The description of a step's commit, on the topology as it is before it."""
    text = _TEXTS.get(step.action, step.action.replace("_", " "))
    name = getattr(step.arguments.get("n"), "name", "")
    return text.format(n=name, rejected=rejected(view, name))


def rejected(view: View, name: str) -> str:
    """The description of the commit by which the coordinator rejects a node."""
    member = view.nodes.get(name)
    return REJECTED.get(member.asked if member is not None else "", REJECTED[""])

"""What the topology coordinator waits for before a step, and in which order it looks at its steps."""

from __future__ import annotations

from stagewright.impl.topology.admission import rejection, taken_token
from stagewright.impl.topology.coordinator import Rule, TopologyCoordinator

C = TopologyCoordinator


def _once_fenced(action: str) -> Rule:
    """A step that waits until no replica accepts what is older."""
    return Rule(action, C.knows_the_fence, C.spread_the_fence)


RULES: tuple[Rule, ...] = (
    # what failed goes back
    Rule("roll_back_join"),
    Rule("roll_back_leave"),
    Rule("give_up", inner=True),
    Rule("give_up_with_tablets", inner=True),
    Rule("fail_to_accept"),
    # barriers
    Rule("start_barrier", inner=True),
    Rule("pass_barrier", C.has_drained, C.drain),
    Rule("fail_barrier", C.is_stuck, inner=True),
    Rule("wait_ring_delay", C.has_waited, C.wait_for_ring_delay),
    Rule("retry_barrier", C.has_waited, C.wait_for_retry, inner=True),
    # streaming
    Rule("stream_ranges", C.has_streamed, C.stream, inner=True),
    Rule("stream_with_dead_node", inner=True),
    Rule("fail_to_stream", C.has_failed_to_stream, inner=True),
    # the way of a node in
    Rule("join_group0", C.is_done, C.let_join),
    Rule("give_up_join", lambda coordinator, _: bool(taken_token(coordinator.node)), inner=True),
    Rule("insert_tokens"),
    _once_fenced("commit_cdc_generation"),
    Rule("publish_cdc_generation"),
    Rule("take_tokens"),
    Rule("read_new"),
    _once_fenced("finish_bootstrap"),
    _once_fenced("remove_replaced"),
    _once_fenced("finish_replace"),
    # the way of a node out
    _once_fenced("leave_token_ring"),
    _once_fenced("remove_leaving"),
    _once_fenced("finish_leaving"),
    _once_fenced("report_completion"),
    Rule("shut_down", C.is_done, C.have_shut_down, inner=True),
    Rule("remove_from_group0"),
    Rule("finish_left"),
    _once_fenced("complete_rollback"),
    Rule("finish_rebuild", C.is_done, C.have_rebuilt),
    Rule("fail_to_rebuild"),
    # generations, global requests
    _once_fenced("commit_generation"),
    Rule("publish_requested_generation"),
    Rule("publish_generation"),
    Rule("leave_tablet_track"),
    # at rest: whose turn it is, the definition says
    Rule("cancel"),
    Rule("fence_before_cleanup", C.has_drained_to_clean, C.drain_to_clean),
    Rule("clean_up", C.is_done, C.have_cleaned),
    Rule("finish_cleanup"),
    # possible whenever the node could be accepted, and before that
    Rule("reject", lambda coordinator, step: bool(rejection(coordinator.node, step))),
    Rule("accept_replace"),
    Rule("accept_join"),
    Rule("start_bootstrap"),
    Rule("start_replace"),
    Rule("start_remove"),
    Rule("start_decommission"),
    Rule("start_rebuild"),
    Rule("prepare_generation"),
    Rule("start_truncating", C.is_up),
    Rule("clear_request_session", C.has_truncated, C.truncate),
    Rule("finish_global_request"),
    Rule("start_resize_finalization", C.is_prepared, C.prepare),
    Rule("finish_resize", C.may_finish_resize, C.have_resize_finished),
)
"""The steps that the coordinator takes, in the order in which it looks at them."""

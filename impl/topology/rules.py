"""What the topology coordinator waits for before a step, and in which order it looks at its steps."""

from __future__ import annotations

from stagewright.impl.topology.admission import rejection
from stagewright.impl.topology.coordinator import Rule, TopologyCoordinator

C = TopologyCoordinator

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
    Rule("insert_tokens"),
    Rule("commit_cdc_generation", C.knows_the_fence, C.spread_the_fence),
    Rule("publish_cdc_generation"),
    Rule("take_tokens"),
    Rule("read_new"),
    Rule("finish_bootstrap", C.knows_the_fence, C.spread_the_fence),
    Rule("remove_replaced", C.knows_the_fence, C.spread_the_fence),
    Rule("finish_replace", C.knows_the_fence, C.spread_the_fence),
    # the way of a node out
    Rule("leave_token_ring", C.knows_the_fence, C.spread_the_fence),
    Rule("remove_leaving", C.knows_the_fence, C.spread_the_fence),
    Rule("finish_leaving", C.knows_the_fence, C.spread_the_fence),
    Rule("report_completion", C.knows_the_fence, C.spread_the_fence),
    Rule("shut_down", C.is_done, C.have_shut_down, inner=True),
    Rule("remove_from_group0"),
    Rule("finish_left"),
    Rule("complete_rollback", C.knows_the_fence, C.spread_the_fence),
    Rule("finish_rebuild", C.is_done, C.have_rebuilt),
    Rule("fail_to_rebuild"),
    # generations, global requests
    Rule("commit_generation", C.knows_the_fence, C.spread_the_fence),
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
    Rule("start_resize_finalization", C.is_prepared, C.prepare),
    Rule("finish_resize", C.may_finish_resize, C.have_resize_finished),
)
"""The steps that the coordinator takes, in the order in which it looks at them."""

"""Known ways to build the cluster wrongly, for tests that show that they are noticed.

A defect is no switch of the command line: only a test can build a cluster with one.
"""

from __future__ import annotations

from enum import Enum, auto


class Defect(Enum):
    """One mistake that an implementation could make."""

    barrier_asks_nobody = auto()  # the coordinator counts a barrier as passed at once
    barrier_does_not_learn = auto()  # a node acknowledges a barrier with the view that it has
    barrier_does_not_drain = auto()  # a node acknowledges while older requests are going on
    fence_is_ignored = auto()  # replicas accept requests of any version
    fence_is_not_awaited = auto()  # the barrier ends before replicas know the new fence
    session_is_not_checked = auto()  # streaming goes on whatever became of its session
    writes_skip_the_pending_replica = auto()  # writes go to the old replicas in every stage
    pending_replica_is_not_awaited = auto()  # a write counts without the pending replica
    streaming_does_not_wait = auto()  # streaming begins before every node writes to both
    old_reads_are_not_awaited = auto()  # writes leave the old replicas while they are still read
    cleanup_does_not_wait = auto()  # the leaving replica is cleaned up while it is still written to
    streaming_misses_rows = auto()  # every third row is left out
    cleanup_leaves_rows = auto()  # cleanup answers without deleting anything
    end_is_not_awaited = auto()  # the coordinator takes the last step past its definition
    commit_is_forgotten = auto()  # the coordinator counts a step that it never writes down

"""Known ways to build the engine wrongly, for tests and campaigns that show that they are noticed.

Nothing else switches one on: `built_with` does, for as long as a `with` lasts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum, auto


class Defect(Enum):
    """One mistake that an implementation could make."""

    merge_ignores_order = auto()  # rows are taken node by node
    merge_keeps_equal_groups_apart = auto()  # a group that two nodes have is two rows
    merge_skips_at_each_node = auto()  # `skip` is given to the nodes, too
    merge_limits_nodes_to_the_page = auto()  # nodes send `limit` rows, without those to skip
    node_is_left_out = auto()  # a node that does not answer is no error
    repeated_batch_goes_on = auto()  # a batch that is asked for again is the next one
    late_batch_goes_on = auto()  # a request for an older batch takes rows that are lost then
    outdated_is_ignored = auto()  # a node answers without the partitions that it does not have
    old_rows_stay = auto()  # a document's old rows are not removed
    back_index_keeps_deleted = auto()  # … nor what the back index says of a document without rows
    checkpoint_within_a_snapshot = auto()  # a header whose trees are ahead of its sequence numbers
    rollback_keeps_the_trees = auto()  # what was lost stays in the index
    rollback_looks_at_one_partition = auto()  # others get back what they had to leave
    rollback_forgets_what_was_there = auto()  # partitions that the old header had, and now nobody
    cleanup_ends_at_once = auto()  # the header says so, the rows are there
    cleanup_is_not_waited_for = auto()  # a partition is added again while its old rows are there
    pending_is_forgotten = auto()  # what waits for a cleanup never comes
    rows_in_cleanup_are_returned = auto()
    stale_false_does_not_wait = auto()
    positions_compare_as_lists = auto()  # [{0,6},{1,3}] >= [{0,5},{1,9}]
    compaction_forgets_batches = auto()  # what was updated meanwhile
    compaction_misses_new_updaters = auto()  # one that started after the compaction
    compaction_misses_the_initial_build = auto()  # of an index that was empty when it began
    compaction_ends_with_its_first_header = auto()  # trees of now, sequence numbers of then
    transfer_does_not_start = auto()  # the main index never gets a failed-over partition
    transfer_is_answered_twice = auto()  # by both indexes
    replica_is_not_paused = auto()
    replica_is_not_cleaned_up = auto()


_switched_on: set[Defect] = set()


def has(defect: Defect) -> bool:
    """Whether the engine is to have this mistake."""
    return defect in _switched_on


@contextmanager
def built_with(*defects: Defect) -> Iterator[None]:
    """Inside, the engine has these mistakes, in all threads."""
    _switched_on.update(defects)
    try:
        yield
    finally:
        _switched_on.difference_update(defects)

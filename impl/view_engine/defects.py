"""Known ways to build the engine wrongly, for tests that show that they are noticed.

No command and no parameter switches one on: only a test can, for as long as a `with` lasts.
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

"""Bugs of Couchbase's view engine: rollback, and the merge of queries."""

from __future__ import annotations

from stagewright.machines.couchbase.partitions.partition_merge import PartitionMerge, Row
from stagewright.machines.couchbase.partitions.partition_rebalance import Node
from stagewright.machines.couchbase.partitions.partition_rollback import PartitionRollback
from stagewright.spec import Bool, Number, Term, count
from stagewright.spec.known_bugs import NotFound, known_bug, known_bugs_in


@known_bug(
    "Z61",
    "MB-6056",
    breaks=PartitionMerge.the_page_is_that_of_all_rows,
    budgets={PartitionMerge.failures: 0},
)
class NodesAreGivenTheLimitAsItIs(PartitionMerge):
    """A node sent no more rows than the page has, although some of them were to be skipped."""

    def _limit_of_a_node(self) -> Number:
        return self.limit + 0


@known_bug(
    "K8-descending",
    "design document 004, view query operation",
    breaks=PartitionMerge.rows_come_in_order,
    budgets={PartitionMerge.failures: 0},
)
class TheSmallestRowIsTaken(PartitionMerge):
    """The merge takes the smallest row, also of a query whose nodes send the largest first."""

    def _is_taken_before(self, other: Row, row: Term[Row]) -> Bool:
        return row.column(lambda member: other.place < member.place)


@known_bug(
    "K8-range",
    "design document 004, view query operation",
    breaks=PartitionMerge.the_page_is_that_of_all_rows,
    budgets={PartitionMerge.failures: 0},
)
class StartKeyIsTheLeast(PartitionMerge):
    """The start key is taken for the least key of the range; a walk downwards begins with it, and is left with nothing else."""

    def _is_in_range(self, row: Row) -> Bool:
        return self.start_key <= row.place


@known_bug(
    "K8-total",
    "design document 004, view query operation",
    breaks=PartitionMerge.total_rows_counts_all,
    budgets={PartitionMerge.failures: 0},
)
class RowCountIsThatOfTheRange(PartitionMerge):
    """A node counts the rows that it is going to send."""

    def _rows_of(self, n: Term[Node]) -> Number:
        return count((self.at[row] == n) & self._is_in_range(row) for row in Row)


@known_bug(
    "Z63", "MB-8689, MB-32420", breaks=PartitionRollback.an_index_that_has_caught_up_is_right
)
class PurgedDeletionsAreMissed(PartitionRollback):
    """An index that was behind when deletions were purged went on from where it was.

    It never learns of them, and keeps the rows of deleted documents.
    """

    def _has_missed_deletions(self) -> Bool:
        return self.index.seq < 0  # never


@known_bug(
    "K8-limit",
    "design document 004, view query operation",
    breaks=PartitionMerge.the_page_has_no_more_than_was_asked_for,
)
class ErrorsLiftTheLimit(PartitionMerge):
    """A node that failed made room for rows of the others, without an end."""

    def _has_room(self) -> Bool:
        return super()._has_room() | ~self._nobody_failed()


@known_bug(
    "K8-continue",
    "design document 004, view query operation: on_error=continue",
    breaks=PartitionMerge.an_error_takes_no_rows_along,
)
class RowsAfterAnErrorAreDropped(PartitionMerge):
    """Once an error was listed, the rows that other nodes sent were taken off the queue, and not put on the page."""

    def _has_room(self) -> Bool:
        return super()._has_room() & self.errors.is_empty()


BUGS = known_bugs_in(globals())
NOT_FOUND: tuple[NotFound, ...] = ()

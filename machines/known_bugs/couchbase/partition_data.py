"""Bugs of Couchbase's view engine: rollback, and the merge of queries."""

from __future__ import annotations

from stagewright.machines.couchbase.partitions.partition_merge import PartitionMerge
from stagewright.machines.couchbase.partitions.partition_rollback import PartitionRollback
from stagewright.spec import Bool, Number
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
    "Z63", "MB-8689, MB-32420", breaks=PartitionRollback.an_index_that_has_caught_up_is_right
)
class PurgedDeletionsAreMissed(PartitionRollback):
    """An index that was behind when deletions were purged went on from where it was.

    It never learns of them, and keeps the rows of deleted documents.
    """

    def _has_missed_deletions(self) -> Bool:
        return self.index.seq < 0  # never


BUGS = known_bugs_in(globals())
NOT_FOUND: tuple[NotFound, ...] = ()

"""Mistakes put back into `PartitionRollback`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.couchbase.partitions.partition_rollback import (
    CLIENT,
    SOURCE,
    Item,
    PartitionRollback,
)
from stagewright.spec import Bool, Number, Term, action, require
from stagewright.spec.known_bugs import known_bug, known_bugs_in

LAST_INDEXED = 'design document 004: "from last indexed sequence"'


# -- what goes wrong -------------------------------------------------------------------------------


@known_bug("004-59", LAST_INDEXED, breaks=PartitionRollback.one_rollback_is_enough)
class TheBranchPointIsTooNew(PartitionRollback):
    """A header with just the documents that both branches have is passed over: the index is built again from nothing."""

    def _earlier_header_will_do(self) -> Bool:
        return self._is_common(self.earlier.seq + 1, self.earlier.branch)


@known_bug("004-60", LAST_INDEXED, breaks=PartitionRollback.the_index_goes_back_only_if_it_has_to)
class TheLastPurgedDeletionCountsAsMissed(PartitionRollback):
    """An index that has the deletion up to which deletions are purged is built again from nothing."""

    def _has_missed_deletions(self) -> Bool:
        return (self.index.seq > 0) & (self.index.seq <= self.purged)


@known_bug(
    "004-212",
    'design document 004: an index is "up to date with the KV server"',
    breaks=PartitionRollback.an_index_that_has_caught_up_is_right,
)
class OnlyTheLastFailoverCounts(PartitionRollback):
    """An index that had missed two failovers was compared with the last one alone: what the first one lost stayed in it."""

    def _is_common(self, seq: Number, branch: Number) -> Bool:
        log = self.failover_log
        return (log.length <= branch) | (seq <= log.last.seq)


@known_bug(
    "Z63", "MB-8689, MB-32420", breaks=PartitionRollback.an_index_that_has_caught_up_is_right
)
class PurgedDeletionsAreMissed(PartitionRollback):
    """An index that was behind when deletions were purged went on from where it was.

    It never learns of them, and keeps the rows of deleted documents.
    """

    def _has_missed_deletions(self) -> Bool:
        return self.index.seq < 0  # never


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "004-266",
    "design document 004: the updater brings the index up to date with the KV server",
    breaks=PartitionRollback.documents_change_while_the_index_is_behind,
)
class TombstonesAreNotWrittenOver(PartitionRollback):
    """A document that was deleted was not written again before its tombstone was purged, so that no index missed it."""

    @action(by=CLIENT, spends=PartitionRollback.changes)
    def write(self, d: Term[Item]) -> None:
        """A client writes a document of which no tombstone is left."""
        require(self.live.has(d) | (self.changed_at[d] == 0), "no tombstone is left")
        super().write(d)


@known_bug(
    "004-107",
    "design document 004: the updater brings the index up to date with the KV server",
    breaks=(
        PartitionRollback.documents_change_while_the_index_is_behind,
        PartitionRollback.documents_are_deleted_while_the_index_is_behind,
    ),
    budgets={PartitionRollback.failovers: 0},
)
class DocumentsWaitForTheIndex(PartitionRollback):
    """Documents change when the index has seen the last change."""

    @action(by=CLIENT, spends=PartitionRollback.changes)
    def write(self, d: Term[Item]) -> None:
        """A client writes a document."""
        require(~self._is_behind(), "the index has caught up")
        super().write(d)

    @action(by=CLIENT, spends=PartitionRollback.changes)
    def delete(self, d: Term[Item]) -> None:
        """A client deletes a document."""
        require(~self._is_behind(), "the index has caught up")
        super().delete(d)


@known_bug(
    "004-108",
    "design document 004: the updater brings the index up to date with the KV server",
    breaks=(
        PartitionRollback.tombstones_are_forgotten_while_the_index_is_behind,
        PartitionRollback.replicas_do_not_wait_for_the_index,
    ),
    budgets={PartitionRollback.failovers: 0},
)
class TheStoreWaitsForTheIndex(PartitionRollback):
    """Tombstones are purged, and documents replicated, when they are indexed: so no deletion is ever missed."""

    @action(by=SOURCE)
    def purge(self, d: Term[Item]) -> None:
        """Compaction of the documents removes a tombstone for good."""
        require(self.changed_at[d] <= self.index.seq, "the deletion is indexed")
        super().purge(d)

    @action(by=SOURCE)
    def replicate(self) -> None:
        """The replica gets all documents."""
        require(self.high == self.index.seq, "they are indexed")
        super().replicate()


BUGS = known_bugs_in(globals())

"""Mistakes put back into `IndexCompaction`: what is never done."""

from __future__ import annotations

from stagewright.machines.couchbase.indexes.index_compaction import COMPACTOR, IndexCompaction
from stagewright.machines.couchbase.partitions.group_states import Partition
from stagewright.spec import Bool, action, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

NO_CRASH = {IndexCompaction.crashes: 0, IndexCompaction.lost_headers: 0}


@known_bug(
    "004-20",
    'design document 004: "If the fragmentation ratio exceeds the threshold value"',
    breaks=IndexCompaction.a_fragmented_index_is_compacted,
)
class CompactionIsForOperators(IndexCompaction):
    """A fragmented file is compacted if somebody asks for that, and is left alone if nobody does."""

    @action(by=COMPACTOR)
    def start_compactor(self) -> None:
        """Somebody asks for it."""
        super().start_compactor()


@known_bug(
    "K11-apply",
    "design document 004, index compaction",
    breaks=IndexCompaction.a_fragmented_index_is_compacted,
    budgets=NO_CRASH,
)
class LastSortFilesAreNotApplied(IndexCompaction):
    """The compactor waits for a full list of sort record files: the last ones are never applied."""

    def _is_sent_sort_files(self) -> Bool:
        return self.sort_files.is_full()


@known_bug(
    "K11-start",
    "design document 004, index compaction",
    breaks=IndexCompaction.a_fragmented_index_is_compacted,
    sizes={Partition: 1},
    budgets=NO_CRASH,
)
class CompactionNeverStarts(IndexCompaction):
    """The fragmentation is compared with a threshold that it never exceeds: the file grows for ever."""

    def _is_fragmented(self) -> Bool:
        return self.fragmentation < 0


@known_bug(
    "K11-switch",
    "design document 004, index compaction",
    breaks=IndexCompaction.a_fragmented_index_is_compacted,
    sizes={Partition: 1},
    budgets=NO_CRASH,
)
class SwitchWaitsForTheUpdater(IndexCompaction):
    """The updater was stopped for the switch, and the switch waited until it had indexed all documents."""

    def _is_complete(self) -> Bool:
        return super()._is_complete() & ~some(self._is_behind(p) for p in Partition)


BUGS = known_bugs_in(globals())

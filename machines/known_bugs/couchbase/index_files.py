"""Mistakes about index files, their trees and their jobs that design document 004 rules out, each caught by one promise
alone.
"""

from __future__ import annotations

from stagewright.machines.couchbase.indexes.design_documents import (
    CLIENT,
    SERVER,
    Definition,
    DesignDocument,
    DesignDocuments,
    File,
)
from stagewright.machines.couchbase.indexes.index_compaction import (
    COMPACTOR,
    FileNumber,
    IndexCompaction,
)
from stagewright.machines.couchbase.indexes.index_tree import IndexTree, Key, KVNode
from stagewright.machines.couchbase.indexes.index_triggers import MANAGER, IndexTriggers
from stagewright.machines.couchbase.partitions.group_states import Partition, PartitionState
from stagewright.spec import (
    Bool,
    Fairness,
    Number,
    Term,
    action,
    choose,
    each,
    every,
    require,
    some,
    total,
)
from stagewright.spec.known_bugs import known_bug, known_bugs_in

WEAK = Fairness.WEAK
DETAILS = "design document 004, details on index structures"
BITMASKS = "design document 004, vBucket bitmasks"


@known_bug(
    "004-10",
    DETAILS,
    breaks=DesignDocuments.equal_definitions_share_a_file,
    budgets={DesignDocuments.queries: 0},
)
class TwoDocumentsTwoFiles(DesignDocuments):
    """Where all design documents have one definition, each file of theirs is built by it, and queries take either."""

    def _names(
        self, file: Term[File], d: Term[DesignDocument], definition: Term[Definition]
    ) -> Bool:
        shared = every(self.definition[other] == definition for other in DesignDocument)
        return super()._names(file, d, definition) | shared | (self.rows[file] == definition)


@known_bug(
    "004-11",
    DETAILS,
    breaks=DesignDocuments.an_index_is_in_a_file,
    budgets={DesignDocuments.queries: 0},
)
class TheIndexOutlivesItsFile(DesignDocuments):
    """The file is unlinked, and its index goes on to be known as built."""

    @action(by=SERVER, fair=WEAK)
    def remove_file(self, file: Term[File]) -> None:
        """The group ends, the file goes."""
        require(self.files.has(file), "there is the file")
        require(~self._is_used(file), "no design document has its definition")
        require(~self._is_read(file), "no query reads it")
        self.files.discard(file)
        self.groups.discard(file)


@known_bug(
    "004-12",
    'design document 004: a server "can hold many design documents"',
    breaks=DesignDocuments.what_is_built_can_be_queried,
)
class QueriesNeedARunningGroup(DesignDocuments):
    """After a restart a query is refused until something else has started the group server of its index."""

    @action(by=CLIENT, spends=DesignDocuments.queries)
    def ask(self, d: Term[DesignDocument], definition: Term[Definition], file: Term[File]) -> None:
        """A query is delegated to a group server that runs."""
        super().ask(d, definition, file)
        require(self.groups.has(file), "its group server runs")


@known_bug(
    "004-13",
    'design document 004: by time duration "or" number of changes',
    breaks=IndexTriggers.time_triggers_an_update,
)
class CompactionStopsTheClock(IndexTriggers):
    """A few old changes are not indexed while the file is compacted, however long that takes."""

    def _has_old_changes(self) -> Bool:
        return super()._has_old_changes() & ~self.compactor


@known_bug(
    "004-14",
    'design document 004: removed "during the next cleanup cycle"',
    breaks=IndexTriggers.a_cleanup_has_something_to_do,
    budgets={IndexTriggers.writes: 0},
)
class EveryCycleCleansUp(IndexTriggers):
    """The cleaner walks the trees in every cycle, whether or not a partition is to be removed."""

    @action(by=MANAGER, fair=WEAK)
    def trigger_cleanup(self) -> None:
        """It is time for it."""
        require(~self.updater & ~self.compactor & ~self.cleaner, "no worker runs")
        self.cleaner = True
        self.all_known = True


@known_bug(
    "004-15",
    "design document 004, map and reduce functions",
    breaks=IndexTree.the_root_has_the_reduce_value_of_the_view,
)
class TheRootHasNoReduction(IndexTree):
    """Only KV-nodes have reductions: a query adds up those of all nodes below the root."""

    def _rereduced(self) -> Number:
        return self.root.reduction

    def _all_of_the_tree_counts(self) -> Bool:
        return super()._all_of_the_tree_counts() & False  # it is never enough to read the root


@known_bug(
    "004-16",
    BITMASKS,
    breaks=IndexTree.a_bitmask_is_that_of_the_rows,
    budgets={IndexTree.requests: 0},
)
class BitmasksAreWrittenWithTheRoot(IndexTree):
    """A node is written with the bitmask that it had; it gets its own when the root is written."""

    @action(fair=WEAK)
    def write_node(self, n: Term[KVNode]) -> None:
        """The node is written with its reduction."""
        require(self.changed.has(n), "the node has changed")
        self.changed.discard(n)
        self._change_parent()
        self.node[n].reduction = total(
            choose(self._is_in(key, n) & self.row[key].is_some(), self._value(key), 0)
            for key in each(Key)
        )

    @action(fair=WEAK)
    def write_root(self) -> None:
        """With the bitmasks of all nodes."""
        super().write_root()
        for p in Partition:
            for n in each(KVNode):
                there = some(self._is_in(key, n) & (self.row[key] == p) for key in each(Key))
                self.node[n].bitmask.put(p, there)

    def _union(self, p: Term[Partition]) -> Bool:
        return some(self.row[key] == p for key in each(Key))


@known_bug(
    "004-17",
    BITMASKS,
    breaks=IndexTree.the_bitmask_of_the_root_is_that_of_all_rows,
    budgets={IndexTree.requests: 0},
)
class BitsOfTheRootAreOnlySet(IndexTree):
    """The root's bitmask is updated by "or": a partition whose last row is gone stays in it."""

    def _union(self, p: Term[Partition]) -> Bool:
        return super()._union(p) | self.root.bitmask.has(p)


@known_bug(
    "004-18",
    "design document 004, partition states: cleanup",
    breaks=IndexCompaction.a_new_file_has_no_rows_to_clean_up,
)
class CompactionLeavesTheRestToTheCleaner(IndexCompaction):
    """All rows are copied, and the cleaner removes in the new file what it has not yet removed in the old one."""

    def _copy_rows(self, p: Term[Partition]) -> None:
        self.copied[p] = self.snapshot[p]

    def _take_over_state(self, p: Term[Partition]) -> None:
        """The partition is still in cleanup."""


@known_bug(
    "004-19",
    'design document 004: the view engine "just performs such requests"',
    breaks=IndexCompaction.a_switch_changes_no_state,
)
class PassiveRowsBecomeActive(IndexCompaction):
    """The header of a new file lists the partitions that it has rows of as active."""

    def _take_over_state(self, p: Term[Partition]) -> None:
        gone = self.state[p] == PartitionState.cleanup
        self.state[p] = choose(
            gone,
            PartitionState.not_present,
            choose(self.state[p] == PartitionState.passive, PartitionState.active, self.state[p]),
        )


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
    "004-21",
    'design document 004: "switching to the new index file and previous one is removed"',
    breaks=IndexCompaction.previous_files_are_removed_at_once,
)
class TheNextCompactionRemovesIt(IndexCompaction):
    """The previous file is removed as the next compaction is due: until then the disk has both."""

    @action(fair=WEAK)
    def remove_previous(self, f: Term[FileNumber]) -> None:
        """It makes room for the next file."""
        super().remove_previous(f)
        require(self._is_fragmented(), "the next compaction is due")


BUGS = known_bugs_in(globals())

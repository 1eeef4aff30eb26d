"""Mistakes put back into `IndexTree`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.couchbase.indexes.index_tree import (
    CLEANER,
    UPDATER,
    WEAK,
    IndexTree,
    Key,
    KVNode,
)
from stagewright.machines.couchbase.partitions.group_states import Partition, PartitionState
from stagewright.machines.couchbase.partitions.partition_states import MANAGER
from stagewright.spec import (
    Bool,
    Fairness,
    Number,
    Term,
    action,
    choose,
    count,
    each,
    every,
    require,
    some,
    total,
)
from stagewright.spec.known_bugs import known_bug, known_bugs_in

BITMASKS = "design document 004, vBucket bitmasks"
REQUESTS = 'design document 004: the view engine "just performs such requests"'


# -- what goes wrong -------------------------------------------------------------------------------


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


@known_bug("004-49", BITMASKS, breaks=IndexTree.rows_stay_until_they_are_removed)
class SubtreesAreDropped(IndexTree):
    """The cleaner leaves a node out of the tree whose bitmask has a partition in cleanup, with the rows of all others."""

    def _is_to_be_removed(self, key: Term[Key]) -> Bool:
        return self.row[key].is_some()


@known_bug(
    "K3-parents",
    "design document 004, details on index structures",
    breaks=IndexTree.the_root_has_the_reduce_value_of_the_view,
)
class ParentsStayAsTheyWere(IndexTree):
    """A changed node was appended without its parents: the root still had the old reduction."""

    def _change_parent(self) -> None:
        pass


@known_bug(
    "K3-rereduce",
    "design document 004, map and reduce functions",
    breaks=IndexTree.the_root_has_the_reduce_value_of_the_view,
)
class ReductionsAreReduced(IndexTree):
    """The reductions of the children were counted as if they were values of rows: rereduce was reduce."""

    def _rereduced(self) -> Number:
        return count(self.node[n].reduction > 0 for n in each(KVNode))


@known_bug(
    "K3-walk",
    "design document 004, map and reduce functions",
    breaks=IndexTree.a_reduce_query_reads_no_rows_in_vain,
)
class ReductionsAreNeverUsed(IndexTree):
    """A reduce query read every row of the tree as soon as some did not count, whatever the nodes had reduced."""

    def _all_counts(self, n: Term[KVNode]) -> Bool:
        return every(~self.node[n].bitmask.has(p) for p in Partition)


@known_bug("K4-all", BITMASKS, breaks=IndexTree.no_node_is_written_in_vain)
class AllNodesAreRead(IndexTree):
    """Cleanup rebuilt the tree, whatever the bitmasks said."""

    def _has_to_be_read(self, n: Term[KVNode]) -> Bool:
        rows = some(self.node[n].bitmask.has(p) for p in Partition)
        return rows & some(self.state[p] == PartitionState.cleanup for p in Partition)


@known_bug("K4-reduce", BITMASKS, breaks=IndexTree.a_reduce_query_has_what_is_queried)
class ReductionsCountWhatIsNotQueried(IndexTree):
    """A query took the root's reduction, in which the rows of passive partitions are, and those to clean up."""

    def _all_of_the_tree_counts(self) -> Bool:
        return self.root.reduction > 0


@known_bug("K4-stopped", BITMASKS, breaks=IndexTree.rows_are_of_partitions_of_the_index)
class StoppedCleanupIsDone(IndexTree):
    """A cleaner that was stopped after a node took its partition out of the cleanup bitmask."""

    def _is_clean(self, p: Term[Partition]) -> Bool:
        return ~every(self.node[n].bitmask.has(p) for n in each(KVNode))


@known_bug("K4-union", BITMASKS, breaks=IndexTree.the_bitmask_of_the_root_is_that_of_all_rows)
class BitmasksAreIntersected(IndexTree):
    """The root had the partitions that all of its children have."""

    def _union(self, p: Term[Partition]) -> Bool:
        return every(self.node[n].bitmask.has(p) for n in each(KVNode))


# -- what is never done ----------------------------------------------------------------------------


@known_bug(
    "K2-root",
    "design document 004, details on index structures",
    breaks=IndexTree.changes_are_written,
)
class TheRootWaitsForACleanup(IndexTree):
    """Only who waits for the root had it written, as a cleanup does: what was inserted, no query found."""

    @action
    def write_root(self) -> None:
        """It may be written at any time."""
        super().write_root()

    @action(fair=Fairness.WEAK)
    def write_root_for_a_cleanup(self) -> None:
        """A cleanup waits for it."""
        cleans = some(self.state[p] == PartitionState.cleanup for p in Partition)
        require(cleans, "a partition is in cleanup")
        super().write_root()


@known_bug("K4-subset", BITMASKS, breaks=IndexTree.partitions_are_cleaned_up)
class MixedNodesAreLeftOut(IndexTree):
    """Only nodes of which all rows were to be removed were read: other rows beside them kept some for ever."""

    def _has_to_be_read(self, n: Term[KVNode]) -> Bool:
        others = some(
            (self.state[p] != PartitionState.cleanup) & self.node[n].bitmask.has(p)
            for p in Partition
        )
        return super()._has_to_be_read(n) & ~others


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "004-57",
    'design document 004, passive: "Partition is indexed"',
    breaks=IndexTree.rows_are_inserted_during_a_cleanup,
)
class PassivePartitionsGetNoRows(IndexTree):
    """What is not queried is not indexed either: a partition that becomes active has old rows, or none."""

    def _is_indexed(self, p: Term[Partition]) -> Bool:
        return self.state[p] == PartitionState.active


@known_bug(
    "004-86",
    REQUESTS,
    breaks=IndexTree.partitions_become_passive_while_the_tree_is_written,
)
class PassiveWhenTheTreeIsWritten(IndexTree):
    """A partition becomes passive when the root that counts its rows is in the file."""

    @action(by=MANAGER, spends=IndexTree.requests)
    def set_passive(self, p: Term[Partition]) -> None:
        """The partition is not queried any more."""
        require(self._is_written(), "the last change is written up to the root")
        super().set_passive(p)


@known_bug(
    "004-87",
    REQUESTS,
    breaks=IndexTree.partitions_are_to_be_removed_while_the_tree_is_written,
)
class RemovedOneByOne(IndexTree):
    """No partition is to be removed while the cleaner is at another one."""

    @action(by=MANAGER, spends=IndexTree.requests)
    def set_cleanup(self, p: Term[Partition]) -> None:
        """The partition is to be removed."""
        clean = every(self.state[o] != PartitionState.cleanup for o in Partition)
        require(clean, "nothing is to be cleaned up")
        super().set_cleanup(p)


@known_bug(
    "004-182",
    'design document 004, "Partition states": cleanup',
    breaks=IndexTree.partitions_are_gone_when_their_rows_are,
)
class PartitionsGoTogether(IndexTree):
    """A partition whose rows are removed stays in cleanup until those of all others are, too."""

    @action(fair=WEAK)
    def finish_cleanup(self, p: Term[Partition]) -> None:
        super().finish_cleanup(p)
        clean = every(
            (self.state[q] == PartitionState.cleanup).implies(self._is_clean(q)) for q in Partition
        )
        require(clean, "no row is left of any partition in cleanup")


@known_bug(
    "004-208",
    'design document 004, "Partition states": cleanup',
    breaks=IndexTree.nodes_are_cleaned_up_while_the_tree_is_written,
)
class CleanersWaitForTheWriter(IndexTree):
    """The cleaner goes on when all is written up to the root: where something always is to be written, never."""

    @action(by=CLEANER, fair=WEAK)
    def clean_up_node(self, n: Term[KVNode]) -> None:
        require(self._is_written(), "nothing is to be written")
        super().clean_up_node(n)


@known_bug(
    "K4-inserts",
    "design document 004: the cleanup is a job that is run periodically",
    breaks=IndexTree.rows_are_inserted_during_a_cleanup,
)
class InsertsWaitForTheCleaner(IndexTree):
    """Nothing is inserted until no partition is in cleanup."""

    @action(by=UPDATER, spends=IndexTree.batches)
    def insert(self, key: Term[Key], p: Term[Partition]) -> None:
        """Nothing is to be cleaned up."""
        super().insert(key, p)
        clean = every(self.state[o] != PartitionState.cleanup for o in Partition)
        require(clean, "nothing is to be cleaned up")


@known_bug(
    "K4-removals",
    "design document 004: the cleanup is a job that is run periodically",
    breaks=IndexTree.rows_are_removed_during_a_cleanup,
)
class RemovalsWaitForTheCleaner(IndexTree):
    """Nothing is removed but by the cleaner, while there is a partition in cleanup."""

    @action(by=UPDATER, spends=IndexTree.batches)
    def remove(self, key: Term[Key], p: Term[Partition]) -> None:
        """Nothing is to be cleaned up."""
        super().remove(key, p)
        clean = every(self.state[o] != PartitionState.cleanup for o in Partition)
        require(clean, "nothing is to be cleaned up")


BUGS = known_bugs_in(globals())

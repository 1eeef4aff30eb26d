"""Bugs of the tree of a view: reductions and bitmasks of inner nodes, and cleanup by them."""

from __future__ import annotations

from stagewright.machines.couchbase.indexes.index_tree import IndexTree, Key, KVNode
from stagewright.machines.couchbase.partitions.group_states import Partition, PartitionState
from stagewright.spec import Bool, Fairness, Number, Term, action, count, each, every, require, some
from stagewright.spec.known_bugs import NotFound, known_bug, known_bugs_in

BITMASKS = "design document 004, vBucket bitmasks"


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
    "K3-parents",
    "design document 004, details on index structures",
    breaks=IndexTree.the_root_has_the_reduce_value_of_the_view,
)
class ParentsStayAsTheyWere(IndexTree):
    """A changed node was appended without its parents: the root still had the old reduction."""

    def _change_parent(self) -> None:
        pass


@known_bug("K4-union", BITMASKS, breaks=IndexTree.the_bitmask_of_the_root_is_that_of_all_rows)
class BitmasksAreIntersected(IndexTree):
    """The root had the partitions that all of its children have."""

    def _union(self, p: Term[Partition]) -> Bool:
        return every(self.node[n].bitmask.has(p) for n in each(KVNode))


@known_bug("K4-subset", BITMASKS, breaks=IndexTree.partitions_are_cleaned_up)
class MixedNodesAreLeftOut(IndexTree):
    """Only nodes of which all rows were to be removed were read: other rows beside them kept some for ever."""

    def _has_to_be_read(self, n: Term[KVNode]) -> Bool:
        others = some(
            (self.state[p] != PartitionState.cleanup) & self.node[n].bitmask.has(p)
            for p in Partition
        )
        return super()._has_to_be_read(n) & ~others


@known_bug("K4-all", BITMASKS, breaks=IndexTree.no_node_is_written_in_vain)
class AllNodesAreRead(IndexTree):
    """Cleanup rebuilt the tree, whatever the bitmasks said."""

    def _has_to_be_read(self, n: Term[KVNode]) -> Bool:
        rows = some(self.node[n].bitmask.has(p) for p in Partition)
        return rows & some(self.state[p] == PartitionState.cleanup for p in Partition)


@known_bug("K4-stopped", BITMASKS, breaks=IndexTree.rows_are_of_partitions_of_the_index)
class StoppedCleanupIsDone(IndexTree):
    """A cleaner that was stopped after a node took its partition out of the cleanup bitmask."""

    def _is_clean(self, p: Term[Partition]) -> Bool:
        return ~every(self.node[n].bitmask.has(p) for n in each(KVNode))


@known_bug("K4-reduce", BITMASKS, breaks=IndexTree.a_reduce_query_has_what_is_queried)
class ReductionsCountWhatIsNotQueried(IndexTree):
    """A query took the root's reduction, in which the rows of passive partitions are, and those to clean up."""

    def _all_of_the_tree_counts(self) -> Bool:
        return self.root.reduction > 0


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


@known_bug(
    "K3-walk",
    "design document 004, map and reduce functions",
    breaks=IndexTree.a_reduce_query_reads_no_rows_in_vain,
)
class ReductionsAreNeverUsed(IndexTree):
    """A reduce query read every row of the tree as soon as some did not count, whatever the nodes had reduced."""

    def _all_counts(self, n: Term[KVNode]) -> Bool:
        return every(~self.node[n].bitmask.has(p) for p in Partition)


@known_bug("004-49", BITMASKS, breaks=IndexTree.rows_stay_until_they_are_removed)
class SubtreesAreDropped(IndexTree):
    """The cleaner leaves a node out of the tree whose bitmask has a partition in cleanup, with the rows of all others."""

    def _is_to_be_removed(self, key: Term[Key]) -> Bool:
        return self.row[key].is_some()


BUGS = known_bugs_in(globals())
NOT_FOUND: tuple[NotFound, ...] = ()

"""The tree of a view: a reduction and a bitmask of partitions in every node, and what they are good for.

The rows of all partitions of a node of the cluster are in one tree, each with the id of its partition. The
bitmask of a node says of which partitions there are rows below it: cleanup leaves out the others, and a query
takes a node's reduction where all that is below counts.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Self

from stagewright.machines.couchbase.partitions.group_states import Partition, PartitionState
from stagewright.machines.couchbase.partitions.partition_states import MANAGER
from stagewright.spec import (
    Actor,
    Bool,
    Fairness,
    FlagVar,
    LeadsTo,
    Machine,
    Number,
    Record,
    SetVar,
    States,
    Term,
    accepts,
    action,
    budget,
    choose,
    count,
    each,
    equivalent_drop,
    equivalent_helper,
    equivalent_loss,
    equivalent_value,
    equivalents,
    every,
    final,
    flag,
    history,
    invariant,
    leads_to,
    liveness,
    number,
    one_of,
    optional,
    per,
    record,
    require,
    scopes,
    set_of,
    some,
    sometimes,
    step_property,
    total,
)

WEAK = Fairness.WEAK
UPDATER = Actor("updater")
CLEANER = Actor("cleaner")
CLIENT = Actor("client")
LARGEST_SUM = 6
OF_THE_STATES = "what the cluster manager asks for is checked in partition-states"


class KVNode(Enum):
    """The nodes that have rows; the root, a KP-node, has one pointer to each of them."""

    left = auto()
    right = auto()


class Key(States):
    """The keys that may be emitted, in their order: the node that is theirs, and the value, for `_sum`."""

    # fmt: off
    agra      = KVNode.left,  1
    bangalore = KVNode.left,  2
    calcutta  = KVNode.right, 3
    # fmt: on

    def __init__(self, node: KVNode, emits: int) -> None:
        self.node = node
        self.emits = emits


class Node(Record):
    """What is written with a node, or with the pointer to it."""

    bitmask = set_of(Partition)
    reduction = number(0, LARGEST_SUM)


class IndexTree(Machine):
    """A view with a `_sum`, whose tree is changed, cleaned up and queried.

    There is no profile: the document and the code say the same.
    """

    batches = budget(3, doc="rows that the updater inserts or removes")
    requests = budget(2, doc="requests of the cluster manager")

    exercised_at = scopes({}, {batches: 4, requests: 1})

    state = per(Partition, one_of(PartitionState, init=PartitionState.active))
    # the partition of the row with the key; none: there is no row
    row = per(Key, optional(Partition))
    # the same of what the updater has inserted, and not removed
    inserted = history(per(Key, optional(Partition)))
    node = per(KVNode, record(Node))
    root = record(Node)
    changed: SetVar[KVNode] = set_of(KVNode)  # their new versions are not written
    root_changed: FlagVar = flag()

    # -- the updater -------------------------------------------------------------------------------------

    @action(by=UPDATER, spends=batches)
    def insert(self, key: Term[Key], p: Term[Partition]) -> None:
        """A document of a partition emits a key; several rows are inserted at once."""
        require(self._is_indexed(p), "partition is active or passive")
        require(self.row[key].is_none(), "there is no row with the key")
        self.row[key] = p
        self.inserted[key] = p
        self._change(key)

    @action(by=UPDATER, spends=batches)
    def remove(self, key: Term[Key], p: Term[Partition]) -> None:
        """The document is changed or deleted: the back index says which key it had."""
        require(self.row[key] == p, "the row is of the partition")
        self.row[key] = None
        self.inserted[key] = None
        self._change(key)

    # -- writing -----------------------------------------------------------------------------------------

    @action(fair=WEAK)
    def write_node(self, n: Term[KVNode]) -> None:
        """004: the bitmask "is calculated while btree nodes are being written", and so is the reduction."""
        require(self.changed.has(n), "the node has changed")
        self.changed.discard(n)
        self._change_parent()
        self.node[n].reduction = total(
            choose(self._is_in(key, n) & self.row[key].is_some(), self._value(key), 0)
            for key in each(Key)
        )
        for p in Partition:
            self.node[n].bitmask.put(
                p, some(self._is_in(k, n) & (self.row[k] == p) for k in each(Key))
            )

    @action(fair=WEAK)
    def write_root(self) -> None:
        """004: "we need to append that node in the file as well as all its parent nodes up to the root node"."""
        require(self.root_changed, "a child of the root has changed")
        self.root_changed = False
        self.root.reduction = self._rereduced()
        for p in Partition:
            self.root.bitmask.put(p, self._union(p))

    # -- states and the cleaner --------------------------------------------------------------------------

    @action(by=MANAGER, spends=requests)
    def set_passive(self, p: Term[Partition]) -> None:
        """The partition is not queried any more."""
        require(self.state[p] == PartitionState.active, "partition is active")
        self.state[p] = PartitionState.passive

    @action(by=MANAGER, spends=requests)
    def set_cleanup(self, p: Term[Partition]) -> None:
        """The partition is to be removed."""
        require(self._is_indexed(p), "partition is active or passive")
        self.state[p] = PartitionState.cleanup

    @action(by=CLEANER, fair=WEAK)
    def clean_up_node(self, n: Term[KVNode]) -> None:
        """The cleaner descends to a node, and removes the rows of partitions in cleanup; then it may be stopped."""
        require(self._has_to_be_read(n), "there is something to clean up below the pointer")
        self.changed.add(n)
        for key in each(Key):
            gone = self._is_in(key, n) & self._is_to_be_removed(key)
            self.row[key] = choose(gone, None, self.row[key])

    @action(fair=WEAK)
    def finish_cleanup(self, p: Term[Partition]) -> None:
        """The root's bitmask says that no row of the partition is left: it is not a part of the index any more."""
        require(self._is_written(), "the last change is written up to the root")
        require(self.state[p] == PartitionState.cleanup, "partition is in cleanup")
        require(self._is_clean(p), "no node has rows of it")
        self.state[p] = PartitionState.not_present

    # -- helpers -----------------------------------------------------------------------------------------

    def _is_written(self) -> Bool:
        return self.changed.is_empty() & ~self.root_changed

    def _is_indexed(self, p: Term[Partition]) -> Bool:
        return self.state[p].any_of(PartitionState.active, PartitionState.passive)

    def _is_queried(self, p: Term[Partition]) -> Bool:
        return self.state[p].column(lambda state: state.queried)

    def _change(self, key: Term[Key]) -> None:
        for n in each(KVNode):
            self.changed.put(n, self.changed.has(n) | self._is_in(key, n))

    def _change_parent(self) -> None:
        self.root_changed = True

    def _is_in(self, key: Term[Key], n: Term[KVNode]) -> Bool:
        return key.column(lambda k: k.node is KVNode.left) == (n == KVNode.left)

    def _value(self, key: Term[Key]) -> Number:
        return key.number_column(lambda k: k.emits)

    def _is_to_be_removed(self, key: Term[Key]) -> Bool:
        return some(self.state[p] == PartitionState.cleanup for p in self.row[key])

    def _rereduced(self) -> Number:
        """004: "rereduce is used to calculate reduce value in a KP node"."""
        return total(self.node[n].reduction for n in each(KVNode))

    def _union(self, p: Term[Partition]) -> Bool:
        """004: "For KP-node, vbucket bitmask = union of all vbucket bitmasks of its child nodes"."""
        return some(self.node[n].bitmask.has(p) for n in each(KVNode))

    def _has_to_be_read(self, n: Term[KVNode]) -> Bool:
        """004: rows are removed "by conditionally traversing down the subtrees"."""
        return some(
            (self.state[p] == PartitionState.cleanup) & self.node[n].bitmask.has(p)
            for p in Partition
        )

    def _is_clean(self, p: Term[Partition]) -> Bool:
        return ~self.root.bitmask.has(p)

    def _reduce_value(self) -> Number:
        """What a query finds: the root's reduction, or as much of the tree as it has to read."""
        below = total(
            choose(self._walks_into(n), self._sum_of_rows(n), self.node[n].reduction)
            for n in each(KVNode)
        )
        return choose(self._all_of_the_tree_counts(), self.root.reduction, below)

    def _walks_into(self, n: Term[KVNode]) -> Bool:
        """The query reads the rows of a node, for some do not count."""
        return ~self._all_of_the_tree_counts() & ~self._all_counts(n)

    def _all_of_the_tree_counts(self) -> Bool:
        return every(self.root.bitmask.has(p).implies(self._is_queried(p)) for p in Partition)

    def _all_counts(self, n: Term[KVNode]) -> Bool:
        return every(self.node[n].bitmask.has(p).implies(self._is_queried(p)) for p in Partition)

    def _sum_of_rows(self, n: Term[KVNode]) -> Number:
        return total(
            choose(self._is_in(key, n) & self._is_returned(key), self._value(key), 0)
            for key in each(Key)
        )

    def _is_returned(self, key: Term[Key]) -> Bool:
        return some(self._is_queried(p) for p in self.row[key])

    # -- promises ----------------------------------------------------------------------------------------

    @accepts(insert)
    def rows_are_inserted_during_a_cleanup(self, key: Term[Key], p: Term[Partition]) -> Bool:
        """004: the cleanup is "a job that is run periodically": what is indexed, active or passive, goes on to be, whatever
        is left of it.
        """
        indexed = self.state[p].any_of(PartitionState.active, PartitionState.passive)
        return indexed & self.row[key].is_none()

    @accepts(remove)
    def rows_are_removed_during_a_cleanup(self, key: Term[Key], p: Term[Partition]) -> Bool:
        """The same for a row whose document is changed or deleted."""
        indexed = self.state[p].any_of(PartitionState.active, PartitionState.passive)
        return indexed & (self.row[key] == p)

    @accepts(set_passive)
    def partitions_become_passive_while_the_tree_is_written(self, p: Term[Partition]) -> Bool:
        """004: the view engine "just performs such requests" of the cluster manager, whatever the updater or the cleaner is
        about to write.
        """
        return self.state[p] == PartitionState.active

    @accepts(set_cleanup)
    def partitions_are_to_be_removed_while_the_tree_is_written(self, p: Term[Partition]) -> Bool:
        """The same for a partition that is to be removed, active or passive, whichever other one is being removed."""
        return self.state[p].any_of(PartitionState.active, PartitionState.passive)

    @accepts(clean_up_node)
    def nodes_are_cleaned_up_while_the_tree_is_written(self, n: Term[KVNode]) -> Bool:
        """004: a partition in cleanup "will be removed during the next cleanup cycle": out of a node that is as it was written,
        whatever is about to be written of others, for something may always be.
        """
        left = some(
            self._is_in(key, n) & (self.row[key] == p) & (self.state[p] == PartitionState.cleanup)
            for key in each(Key)
            for p in Partition
        )
        return left & ~self.changed.has(n)

    @accepts(finish_cleanup)
    def partitions_are_gone_when_their_rows_are(self, p: Term[Partition]) -> Bool:
        """004: "After cleanup a partition will not be part of the index any more": it waits for no other one that is cleaned up."""
        written = self.changed.is_empty() & ~self.root_changed
        rows = some(self.row[key] == p for key in each(Key))
        return (self.state[p] == PartitionState.cleanup) & written & ~rows

    @invariant
    def a_bitmask_is_that_of_the_rows(self, n: Term[KVNode], p: Term[Partition]) -> Bool:
        """004: "For KV-node, its the union of all vbuckets of data present in that node"."""
        there = some(self._is_in(key, n) & (self.row[key] == p) for key in each(Key))
        return self.changed.has(n) | (self.node[n].bitmask.has(p) == there)

    @invariant
    def the_bitmask_of_the_root_is_that_of_all_rows(self, p: Term[Partition]) -> Bool:
        """004: the bits are set "according to whether a vbucket's data is present in the subtree of that node"."""
        there = some(self.row[key] == p for key in each(Key))
        return self._is_written().implies(self.root.bitmask.has(p) == there)

    @invariant
    def the_root_has_the_reduce_value_of_the_view(self) -> Bool:
        """004: "To obtain reduce value of a view, you just need to read the root node and get its reduce field"."""
        of_rows = total(choose(self.row[key].is_some(), self._value(key), 0) for key in each(Key))
        return self._is_written().implies(self.root.reduction == of_rows)

    @invariant
    def a_reduce_query_has_what_is_queried(self) -> Bool:
        """What a query finds is the sum over the rows of active partitions, and of no others."""
        queried = total(
            choose(
                some(self.state[p] == PartitionState.active for p in self.row[key]),
                self._value(key),
                0,
            )
            for key in each(Key)
        )
        return self._is_written().implies(self._reduce_value() == queried)

    @invariant
    def a_reduce_query_reads_no_rows_in_vain(self, n: Term[KVNode]) -> Bool:
        """004: "you just need to read the root node and get its reduce field": of a node whose rows all count, the
        reduction is enough.
        """
        all_count = every(
            (self._is_in(key, n) & self.row[key].is_some()).implies(
                some(self.state[p] == PartitionState.active for p in self.row[key])
            )
            for key in each(Key)
        )
        return (self._is_written() & all_count).implies(~self._walks_into(n))

    @step_property
    def no_node_is_written_in_vain(self, after: Self, n: Term[KVNode]) -> Bool:
        """004: the bitmask tells "if a node's subtree contains a given vbucket's data or not"; without it cleanup
        "requires to rebuild the btree". A node is written again only where its rows have changed.
        """
        rewritten = after.changed.has(n) & ~self.changed.has(n)
        useful = some(self._is_in(key, n) & (after.row[key] != self.row[key]) for key in each(Key))
        return rewritten.implies(useful)

    @invariant
    def rows_stay_until_they_are_removed(self, key: Term[Key], p: Term[Partition]) -> Bool:
        """004: the cleaner removes "data belonging to cleanup vbuckets", and the updater what has changed: whatever else is
        in the node, the rows of other partitions stay, active or passive.
        """
        stays = self.state[p].any_of(PartitionState.active, PartitionState.passive)
        return stays.implies((self.row[key] == p) == (self.inserted[key] == p))

    @invariant
    def rows_are_of_partitions_of_the_index(self, key: Term[Key]) -> Bool:
        """004: "After cleanup a partition will not be part of the index any more"."""
        return every(self.state[p] != PartitionState.not_present for p in self.row[key])

    @final
    def nothing_is_left_to_do(self) -> Bool:
        """A tree may stay as it is when it is written and clean."""
        clean = every(self.state[p] != PartitionState.cleanup for p in Partition)
        return clean & self._is_written()

    @liveness
    def partitions_are_cleaned_up(self, p: Term[Partition]) -> LeadsTo:
        """004: a partition in cleanup "will be removed during the next cleanup cycle": it is not present then."""
        to_clean = self.state[p] == PartitionState.cleanup
        return leads_to(to_clean, self.state[p] == PartitionState.not_present)

    @liveness
    def changes_are_written(self) -> LeadsTo:
        """What has changed is written up to the root."""
        return leads_to(~self._is_written(), self._is_written())

    @sometimes
    def a_node_is_left_out_of_a_cleanup(self, after: Self) -> Bool:
        """004: the bitmask is "very helpful": a node with rows of others only is not read."""
        return self._loses_rows(after) & (after.changed.size() == 1) & self._both_have_rows()

    def _both_have_rows(self) -> Bool:
        return every(
            count(self.node[n].bitmask.has(p) for p in Partition) > 0 for n in each(KVNode)
        )

    def _loses_rows(self, after: Self) -> Bool:
        return some(self.row[key].is_some() & after.row[key].is_none() for key in each(Key))

    # -- harmless changes --------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_helper(_value, "is one less", because="any value will do"),
        equivalent_drop(
            write_root, "a child of the root has changed", because="it may be written once more"
        ),
        equivalent_loss(set_passive, state, because=OF_THE_STATES),
        equivalent_drop(set_cleanup, "partition is active or passive", because=OF_THE_STATES),
        equivalent_loss(set_cleanup, state, because=OF_THE_STATES),
        equivalent_drop(finish_cleanup, "partition is in cleanup", because=OF_THE_STATES),
        *(
            equivalent_value(absent, lambda state: state.queried, because="it has no rows here")
            for absent in (
                PartitionState.not_present,
                PartitionState.active_unindexable,
                PartitionState.passive_unindexable,
            )
        ),
        *(
            equivalent_value(key, lambda key: key.node, because="a key may be in any node")
            for key in (Key.agra, Key.bangalore)
        ),
        *(
            equivalent_value(key, lambda key: key.emits, because="any value will do")
            for key in (Key.bangalore, Key.calcutta)
        ),
    )

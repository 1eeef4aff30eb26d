"""Mistakes put back into `PartitionRebalance`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.couchbase.partitions.group_states import COUCHBASE, Partition, Role
from stagewright.machines.couchbase.partitions.partition_rebalance import (
    CLIENT,
    WEAK,
    Move,
    Node,
    PartitionRebalance,
)
from stagewright.machines.couchbase.partitions.partition_states import MANAGER, PartitionGroup
from stagewright.spec import Bool, Term, action, choose, every, many, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

UNINDEXABLE = (
    'design document 004: "A view query will return the results that are currently indexed"'
)
REBALANCE = 'design document 004, "Queries during rebalance"'


# -- what goes wrong -------------------------------------------------------------------------------


@known_bug(
    "004-7",
    "design document 004: the migration of one partition from one node to another",
    breaks=PartitionRebalance.the_nodes_are_as_the_table_says,
    sizes={Partition: 1},
    budgets={PartitionRebalance.moves: 1, PartitionRebalance.stops: 0},
)
class TheMapIsChangedFirst(PartitionRebalance):
    """Queries are sent to the new node before the partition is active there, and again until it is."""

    @PartitionRebalance.move.step(Move.taken_over, Move.activated, by=MANAGER, fair=WEAK)
    def activate(self, p: Term[Partition], new: Term[Node]) -> None:
        """Clients and queries go to the new node."""
        require(self.destination[p] == new, "partition moves to the node")
        self.master[p] = new

    @PartitionRebalance.move.step(Move.activated, Move.mapped, by=MANAGER, fair=WEAK)
    def update_map(self, p: Term[Partition], new: Term[Node]) -> None:
        """The partition becomes active there."""
        require(self.destination[p] == new, "partition moves to the node")
        self.nodes[new].set_active(p)


@known_bug(
    "004-32",
    'design document 004, cleanup: "won\'t be returned on query time"',
    breaks=PartitionRebalance.only_active_partitions_are_returned,
    sizes={Partition: 1},
    budgets={PartitionRebalance.moves: 1},
)
class RowsAreReturnedWhileTheyAreThere(PartitionRebalance):
    """A query that takes what is indexed, sent to the old node, gets the rows that this is about to clean up."""

    def _is_outdated(self, n: Term[Node]) -> Bool:
        return some(
            (self.wanted_from[p] == n) & ~self.nodes[n].group[p].abit & ~self._is_left(n, p)
            for p in Partition
        )

    def _sends(self, n: Term[Node], p: Term[Partition]) -> Bool:
        return super()._sends(n, p) | ((self.wanted_from[p] == n) & self._is_left(n, p))

    def _is_left(self, n: Term[Node], p: Term[Partition]) -> Bool:
        return self.nodes[n].group[p].content.cbit & ~self.newest


@known_bug(
    "004-62",
    'design document 004: "after the migration from the new node"',
    breaks=PartitionRebalance.queries_are_sent_where_they_are_answered,
    profile=COUCHBASE.name,
    sizes={Partition: 1},
    budgets={PartitionRebalance.moves: 1, PartitionRebalance.stops: 0},
)
class QueriesFollowTheDocuments(PartitionRebalance):
    """The map names the new node as it takes over the documents: queries are sent there again and again until the
    partition is active.
    """

    @PartitionRebalance.move.step(Move.paused, Move.taken_over, by=MANAGER, fair=WEAK)
    def take_over(self, p: Term[Partition], old: Term[Node], new: Term[Node]) -> None:
        """Clients, too, go to the new node."""
        self._is_moving(p, old, new)
        self._index_has_caught_up(p, new)
        require(self.kv[new][p] == self.kv[old][p], "new node has all documents")
        self.documents_at[p] = new
        self.master[p] = new


@known_bug(
    "004-84",
    'design document 004: "the migration of one partition from one node to another"',
    breaks=PartitionRebalance.nodes_have_what_the_map_names_or_what_moves,
    sizes={Node: 3, Partition: 1},
    budgets={PartitionRebalance.stops: 0, PartitionRebalance.queries: 0},
)
class TheMoveIsPlannedAnew(PartitionRebalance):
    """A rebalance that was planned anew sent a partition to a third node: the second one kept what it had of it."""

    @PartitionRebalance.move.step(
        (Move.none, Move.indexing), Move.indexing, by=MANAGER, spends=PartitionRebalance.moves
    )
    def start(self, p: Term[Partition], old: Term[Node], new: Term[Node]) -> None:
        """The partition becomes passive on the node that is to have it now."""
        require((self.master[p] == old) & (old != new), "the other node has the partition")
        require(~self.nodes[old].paused.has(p), "its index goes on after an earlier move")
        require(self.destination[p] != new, "it does not move there yet")
        self.origin[p] = old
        self.destination[p] = new
        self.nodes[new].set_passive(p)


@known_bug(
    "004-154",
    "design document 004, queries during rebalance: fully indexed",
    breaks=PartitionRebalance.writes_wait_for_no_index,
    sizes={Partition: 1},
)
class TheIndexCatchesUpAfterTheTakeover(PartitionRebalance):
    """The new node took the documents over as soon as it had them, and its index caught up then: meanwhile no node took writes."""

    @PartitionRebalance.move.step(Move.paused, Move.taken_over, by=MANAGER, fair=WEAK)
    def take_over(self, p: Term[Partition], old: Term[Node], new: Term[Node]) -> None:
        """The new node has all documents."""
        self._is_moving(p, old, new)
        require(self.kv[new][p] == self.kv[old][p], "new node has all documents")
        self.documents_at[p] = new

    @PartitionRebalance.move.step(Move.taken_over, Move.activated, by=MANAGER, fair=WEAK)
    def activate(self, p: Term[Partition], new: Term[Node]) -> None:
        """The new index has caught up."""
        require(self.destination[p] == new, "partition moves to the node")
        self._index_has_caught_up(p, new)
        self.nodes[new].set_active(p)


@known_bug(
    "004-158",
    "design document 004, queries during rebalance: no matter when a query happens",
    breaks=PartitionRebalance.moves_do_not_disturb_queries,
    sizes={Partition: 1},
)
class PausesRestartQueries(PartitionRebalance):
    """Each index that was paused began all queries anew: a rebalance of many partitions had none answered."""

    @PartitionRebalance.move.step(Move.indexing, Move.paused, by=MANAGER, fair=WEAK)
    def pause(self, p: Term[Partition], old: Term[Node], new: Term[Node]) -> None:
        """The backfill is done, and what was answered is forgotten."""
        self._is_moving(p, old, new)
        self._backfill_is_done(p, old, new)
        self.due[p] = self.kv[old][p]
        self.nodes[old].mark_unindexable(p)
        self._forget_answers()


@known_bug(
    "004-178",
    'design document 004, "Queries during rebalance"',
    breaks=PartitionRebalance.an_answer_is_complete,
    sizes={Partition: 1},
    budgets={PartitionRebalance.writes: 2, PartitionRebalance.stops: 0},
)
class DueIsWhatWasDueBefore(PartitionRebalance):
    """How far the new index has to come is noted once: when a partition moves again, what was due then is enough."""

    @PartitionRebalance.move.step(Move.indexing, Move.paused, by=MANAGER, fair=WEAK)
    def pause(self, p: Term[Partition], old: Term[Node], new: Term[Node]) -> None:
        self._is_moving(p, old, new)
        if self.release.pauses_after_backfill:
            self._backfill_is_done(p, old, new)
        self.due[p] = choose(self.due[p] > 0, self.due[p], self.kv[old][p])
        self.nodes[old].mark_unindexable(p)


@known_bug(
    "004-197",
    REBALANCE,
    breaks=PartitionRebalance.writes_wait_for_no_index,
    budgets={
        PartitionRebalance.writes: 1,
        PartitionRebalance.stops: 0,
        PartitionRebalance.queries: 0,
    },
)
class OneIndexIsDueForAll(PartitionRebalance):
    """The new node says that its index has caught up, and not for which partition: another one is taken over, too."""

    def _index_has_caught_up(self, p: Term[Partition], new: Term[Node]) -> None:
        due = some(
            (self.destination[q] == new) & (self.nodes[new].group[q].content.seq >= self.due[q])
            for q in Partition
        )
        require(due, "index of the new node is due")


@known_bug(
    "004-216",
    'design document 004: "passive (and indexable) on the new server"',
    breaks=PartitionRebalance.the_nodes_are_as_the_table_says,
    sizes={Partition: 1},
    budgets={
        PartitionRebalance.moves: 1,
        PartitionRebalance.stops: 0,
        PartitionRebalance.queries: 0,
    },
)
class TheNewIndexWaitsForItsDocuments(PartitionRebalance):
    """A partition was unindexable on the new node until its documents had come, and then indexed all at once."""

    nodes = many(PartitionGroup, over=Node, without=(PartitionGroup.set_passive,))

    @PartitionRebalance.move.step(
        Move.none, Move.indexing, by=MANAGER, spends=PartitionRebalance.moves
    )
    def start(self, p: Term[Partition], old: Term[Node], new: Term[Node]) -> None:
        """The partition becomes passive on the new node, and unindexable."""
        require((self.master[p] == old) & (old != new), "the other node has the partition")
        require(~self.nodes[old].paused.has(p), "its index goes on after an earlier move")
        entry = self.nodes[new].group[p]
        require(~entry.content.cbit, "the new node has cleaned up")
        self.origin[p] = old
        self.destination[p] = new
        entry.pbit = True
        entry.content.in_unindexable_seqs = True
        entry.content.has_version = True
        self.nodes[new].requested[p] = Role.passive
        self.nodes[new].paused.add(p)

    @PartitionRebalance.move.step(Move.indexing, Move.paused, by=MANAGER, fair=WEAK)
    def pause(self, p: Term[Partition], old: Term[Node], new: Term[Node]) -> None:
        """The backfill is done: the new index begins."""
        require(old != new, "they are two")
        self._is_moving(p, old, new)
        self._backfill_is_done(p, old, new)
        self.due[p] = self.kv[old][p]
        self.nodes[old].mark_unindexable(p)
        self.nodes[new].mark_indexable(p)


@known_bug(
    "K9-cluster",
    "design document 004, queries during rebalance: a query won't take it into account",
    breaks=PartitionRebalance.only_active_partitions_are_returned,
    sizes={Partition: 1},
    budgets={PartitionRebalance.moves: 1},
)
class NewNodesReturnPassiveRows(PartitionRebalance):
    """The node to which a partition moves returned what it had of it so far."""

    def _sends(self, n: Term[Node], p: Term[Partition]) -> Bool:
        return super()._sends(n, p) | self.nodes[n].group[p].pbit


@known_bug(
    "K9-pause",
    "design document 004, the table of a migration, as it stands",
    breaks=PartitionRebalance.an_index_is_paused_only_while_another_catches_up,
    sizes={Partition: 1},
    budgets={PartitionRebalance.queries: 0, PartitionRebalance.moves: 1},
)
class PausedBeforeTheBackfill(PartitionRebalance):
    """The old index was paused when the move began: stale=false waited until all documents were moved."""

    def _backfill_is_done(self, p: Term[Partition], old: Term[Node], new: Term[Node]) -> None:
        pass


@known_bug(
    "Z32",
    "MB-7082",
    breaks=PartitionRebalance.each_partition_is_served_once,
    sizes={Partition: 1},
    budgets={PartitionRebalance.writes: 0, PartitionRebalance.moves: 1},
)
class WantedPartitionsAreIgnored(PartitionRebalance):
    """Each node sent what was active there, whatever was wanted from it.

    Between the takeover and the cleanup a partition is active on two nodes: its rows came twice.
    """

    def _sends(self, n: Term[Node], p: Term[Partition]) -> Bool:
        return self.nodes[n].group[p].abit


# -- what is never done ----------------------------------------------------------------------------


@known_bug(
    "004-71",
    "design document 004: the default state of a partition is indexable",
    breaks=PartitionRebalance.indexes_go_on_when_nothing_moves,
    sizes={Partition: 1},
    budgets={PartitionRebalance.moves: 1},
)
class AStopLeavesItPaused(PartitionRebalance):
    """Where a rebalance was stopped, the index of the node that kept the partition stayed paused until the next query."""

    @action(by=MANAGER, fair=WEAK)
    def resume(self, p: Term[Partition], n: Term[Node]) -> None:
        """A query finds the partition unindexable."""
        super().resume(p, n)
        require(self.querying, "a query asks for it")


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "004-72",
    "design document 004: no matter when a query happens",
    breaks=PartitionRebalance.moves_begin_while_queries_go_on,
    sizes={Partition: 1},
)
class MovesWaitForQueries(PartitionRebalance):
    """No partition began to move while a query of the cluster was going on, and one always was."""

    @PartitionRebalance.move.step(
        Move.none, Move.indexing, by=MANAGER, spends=PartitionRebalance.moves
    )
    def start(self, p: Term[Partition], old: Term[Node], new: Term[Node]) -> None:
        """The partition becomes passive on the new node, when nobody queries it."""
        require((self.master[p] == old) & (old != new), "the other node has the partition")
        require(~self.nodes[old].paused.has(p), "its index goes on after an earlier move")
        require(~self.querying, "no query is going on")
        self.origin[p] = old
        self.destination[p] = new
        self.nodes[new].set_passive(p)


@known_bug(
    "004-82",
    'design document 004, active: "Partition is indexed and the result will be returned on query time"',
    breaks=PartitionRebalance.what_is_queried_is_indexed,
    sizes={Partition: 1},
    budgets={PartitionRebalance.stops: 0},
)
class UpdatesWaitForTheOldNode(PartitionRebalance):
    """The new node, which takes the writes and is queried, does not index them until the old one has let go."""

    @action(fair=WEAK)
    def index(self, p: Term[Partition], n: Term[Node]) -> None:
        """The updater leaves out what is being handed over."""
        super().index(p, n)
        require(~self.move[p].any_of(Move.activated, Move.mapped), "it is not being handed over")


@known_bug(
    "004-83",
    'design document 004: a partition in cleanup is removed "during the next cleanup cycle"',
    breaks=PartitionRebalance.partitions_are_cleaned_up_during_a_rebalance,
    sizes={Partition: 1},
)
class CleanupsWaitForTheRebalance(PartitionRebalance):
    """A node's cleaner waits until no partition moves: one that comes back waits for its own move to end."""

    @action(fair=WEAK)
    def clean(self, p: Term[Partition], n: Term[Node]) -> None:
        """The cleaner waits as long as it is indexed elsewhere."""
        super().clean(p, n)
        require(self.move[p] != Move.indexing, "the partition does not move")


@known_bug(
    "004-103",
    'design document 004: the "cluster manager handles the details on which partition to move"',
    breaks=PartitionRebalance.moves_are_stopped_until_the_takeover,
    sizes={Partition: 1},
    budgets={PartitionRebalance.writes: 0, PartitionRebalance.queries: 0},
)
class NoStopOfWhatIsPaused(PartitionRebalance):
    """A move whose old index is paused cannot be stopped any more."""

    @action(by=MANAGER, spends=PartitionRebalance.stops)
    def stop(self, p: Term[Partition], new: Term[Node]) -> None:
        """The rebalance is stopped: the new node drops the partition."""
        require(self.move[p] == Move.indexing, "the old index goes on")
        super().stop(p, new)


@known_bug(
    "004-121",
    'design document 004: "When a partition is handed over to a new server"',
    breaks=PartitionRebalance.documents_move_whatever_the_index_does,
    sizes={Partition: 1},
    budgets={PartitionRebalance.queries: 0},
)
class DocumentsFollowTheIndex(PartitionRebalance):
    """The documents of a partition came to the new node when it was indexed there: not while it waited for the cleaner."""

    @action(fair=WEAK)
    def replicate(self, p: Term[Partition], n: Term[Node]) -> None:
        """The documents stream to the node to which the partition moves."""
        super().replicate(p, n)
        require(self._has(n, p), "the index of the node has the partition")


@known_bug(
    "004-129",
    'design document 004: "No matter when a query happens"',
    breaks=PartitionRebalance.moves_begin_while_queries_go_on,
    budgets={PartitionRebalance.writes: 0, PartitionRebalance.queries: 0},
)
class PartitionsMoveOneByOne(PartitionRebalance):
    """A partition moved when no other one did, between whichever nodes."""

    @action(by=MANAGER, spends=PartitionRebalance.moves)
    def start(self, p: Term[Partition], old: Term[Node], new: Term[Node]) -> None:
        """The partition becomes passive on the new node."""
        require(every(self.move[q] == Move.none for q in Partition), "nothing moves")
        super().start(p, old, new)


@known_bug(
    "004-130",
    'design document 004: "No matter when a query happens"',
    breaks=PartitionRebalance.queries_are_answered_during_a_rebalance,
    sizes={Partition: 1},
)
class TheNewestWaitsForTheRebalance(PartitionRebalance):
    """A query with stale=false was answered when nothing moved any more."""

    @action(fair=WEAK)
    def answer(self, n: Term[Node]) -> None:
        """A node sends the rows of the partitions that are wanted from it."""
        super().answer(n)
        moves = some(self.move[p] != Move.none for p in Partition)
        require(~self.newest | ~moves, "nothing moves, or what there is will do")


@known_bug(
    "004-157",
    "design document 004, queries during rebalance: indexable is the default state",
    breaks=PartitionRebalance.indexes_go_on_when_a_move_is_stopped,
    sizes={Partition: 1},
)
class IndexableWhenTheOtherIsClean(PartitionRebalance):
    """After a stop the old index was paused until the new node had cleaned up, and queries for the newest waited."""

    @action(by=MANAGER, fair=WEAK)
    def resume(self, p: Term[Partition], n: Term[Node]) -> None:
        """Nothing is left of the move."""
        super().resume(p, n)
        cleans = some(self.nodes[o].group[p].content.cbit for o in Node)
        require(~cleans, "no node cleans it up")


@known_bug(
    "004-177",
    UNINDEXABLE,
    breaks=PartitionRebalance.what_is_indexed_is_returned_at_once,
    sizes={Partition: 1},
    budgets={PartitionRebalance.moves: 1, PartitionRebalance.stops: 0},
)
class PausedIndexesAreNotReturned(PartitionRebalance):
    """A query, even one that takes what there is, waits while the index of a partition that moves is paused and behind."""

    def _may_be_read(self, n: Term[Node], p: Term[Partition]) -> Bool:
        wanted = self.nodes[n].group[p].abit & (self.wanted_from[p] == n)
        paused = self.nodes[n].paused.has(p) & wanted
        caught_up = self.nodes[n].group[p].content.seq >= self.kv[n][p]
        return super()._may_be_read(n, p) & paused.implies(caught_up)


@known_bug(
    "004-193",
    REBALANCE,
    breaks=PartitionRebalance.partitions_are_added_during_a_rebalance,
    sizes={Partition: 1},
)
class PassiveOnesAreAddedWhenNothingIsQueried(PartitionRebalance):
    """A partition comes back to a node, and is indexed there when no query of the cluster is going on, unless that waits for it."""

    @action(fair=WEAK)
    def apply_pending_transition(self, n: Term[Node]) -> None:
        active = some(self.nodes[n].group[p].pending_active for p in Partition)
        idle = ~self.querying | self.newest
        require(active | idle, "no query is going on, or waits for what is added")
        super().apply_pending_transition(n)


@known_bug(
    "004-194",
    REBALANCE,
    breaks=PartitionRebalance.indexes_are_paused_as_soon_as_the_documents_are_there,
    sizes={Partition: 1},
)
class PausedWhenNobodyWantsTheNewest(PartitionRebalance):
    """An index is paused when no query with stale=false is going on, which would wait for the other one."""

    @PartitionRebalance.move.step(Move.indexing, Move.paused, by=MANAGER, fair=WEAK)
    def pause(self, p: Term[Partition], old: Term[Node], new: Term[Node]) -> None:
        require(~self.newest, "no query waits for the newest")
        self._is_moving(p, old, new)
        if self.release.pauses_after_backfill:
            self._backfill_is_done(p, old, new)
        self.due[p] = self.kv[old][p]
        self.nodes[old].mark_unindexable(p)


@known_bug(
    "004-195",
    REBALANCE,
    breaks=PartitionRebalance.partitions_are_taken_over_one_by_one,
    budgets={
        PartitionRebalance.writes: 1,
        PartitionRebalance.stops: 0,
        PartitionRebalance.queries: 0,
    },
)
class TakenOverTogether(PartitionRebalance):
    """A partition is taken over when all that move have their documents: until then its index is paused."""

    @PartitionRebalance.move.step(Move.paused, Move.taken_over, by=MANAGER, fair=WEAK)
    def take_over(self, p: Term[Partition], old: Term[Node], new: Term[Node]) -> None:
        require(every(self.move[q] != Move.indexing for q in Partition), "all are moved")
        self._is_moving(p, old, new)
        self._index_has_caught_up(p, new)
        require(self.kv[new][p] == self.kv[old][p], "new node has all documents")
        self.documents_at[p] = new


@known_bug(
    "004-196",
    REBALANCE,
    breaks=PartitionRebalance.old_partitions_are_cleaned_up_whatever_is_queried,
    sizes={Partition: 1},
)
class KeptForQueries(PartitionRebalance):
    """A partition that has moved is marked for cleanup on the old node when no query is going on: one always is."""

    @PartitionRebalance.move.step(Move.released, Move.none, by=MANAGER, fair=WEAK)
    def finish(self, p: Term[Partition], old: Term[Node]) -> None:
        require(~self.querying, "no query is going on")
        require(self.origin[p] == old, "partition moves from the node")
        self._leave(p)
        self.nodes[old].set_cleanup(p)


@known_bug(
    "004-211",
    REBALANCE,
    breaks=PartitionRebalance.partitions_are_added_during_a_rebalance,
    budgets={
        PartitionRebalance.writes: 0,
        PartitionRebalance.moves: 3,
        PartitionRebalance.queries: 0,
    },
)
class PassiveOnesAreAddedWhenNothingMovesAway(PartitionRebalance):
    """A partition comes back to a node, and is indexed there when no other one is moving away from it."""

    @action(fair=WEAK)
    def apply_pending_transition(self, n: Term[Node]) -> None:
        active = some(self.nodes[n].group[p].pending_active for p in Partition)
        leaves = some(self.origin[p] == n for p in Partition)
        require(active | ~leaves, "no other partition moves away from the node")
        super().apply_pending_transition(n)


@known_bug(
    "004-217",
    REBALANCE,
    breaks=PartitionRebalance.partitions_are_activated_one_by_one,
    budgets={PartitionRebalance.stops: 0, PartitionRebalance.queries: 0},
)
class ActivatedTogether(PartitionRebalance):
    """Partitions were activated when all that move were taken over: until then no node took writes of the first ones."""

    @PartitionRebalance.move.step(Move.taken_over, Move.activated, by=MANAGER, fair=WEAK)
    def activate(self, p: Term[Partition], new: Term[Node]) -> None:
        """The partition becomes active on the new node, as the last one is taken over."""
        require(self.destination[p] == new, "partition moves to the node")
        left = some(self.move[q].any_of(Move.indexing, Move.paused) for q in Partition)
        require(~left, "no other one is still to be taken over")
        self.nodes[new].set_active(p)


@known_bug(
    "004-218",
    REBALANCE,
    breaks=PartitionRebalance.clients_follow_each_partition,
    budgets={PartitionRebalance.stops: 0, PartitionRebalance.queries: 0},
)
class TheMapIsWrittenOnce(PartitionRebalance):
    """The map was changed when all that moved was active on its new node: until then no node took writes of the first ones."""

    @PartitionRebalance.move.step(Move.activated, Move.mapped, by=MANAGER, fair=WEAK)
    def update_map(self, p: Term[Partition], new: Term[Node]) -> None:
        """Clients and queries go to the new nodes from now on."""
        require(self.destination[p] == new, "partition moves to the node")
        left = some(
            self.move[q].any_of(Move.indexing, Move.paused, Move.taken_over) for q in Partition
        )
        require(~left, "no other one is still to be activated")
        self.master[p] = new


@known_bug(
    "K9-documents",
    "design document 004: during the rebalance",
    breaks=PartitionRebalance.documents_are_written_during_a_rebalance,
    sizes={Partition: 1},
    budgets={PartitionRebalance.stops: 0},
)
class DocumentsWaitForTheRebalance(PartitionRebalance):
    """A partition that moves takes no writes."""

    @action(by=CLIENT, spends=PartitionRebalance.writes)
    def write(self, p: Term[Partition], n: Term[Node]) -> None:
        """A client changes a document of a partition that stays where it is."""
        super().write(p, n)
        require(self.move[p] == Move.none, "the partition does not move")


@known_bug(
    "K9-queries",
    "design document 004: no matter when a query happens",
    breaks=PartitionRebalance.queries_come_during_a_rebalance,
    sizes={Partition: 1},
    budgets={PartitionRebalance.stops: 0},
)
class QueriesWaitForTheRebalance(PartitionRebalance):
    """No query of the cluster is taken while a partition moves."""

    @action(by=CLIENT, spends=PartitionRebalance.queries)
    def query(self, newest: Bool) -> None:
        """A query is sent on when nothing moves."""
        super().query(newest)
        require(every(self.move[p] == Move.none for p in Partition), "no partition moves")


BUGS = known_bugs_in(globals())

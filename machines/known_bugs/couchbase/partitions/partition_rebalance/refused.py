"""Mistakes put back into `PartitionRebalance`: who is refused, or waits."""

from __future__ import annotations

from stagewright.machines.couchbase.partitions.group_states import Partition
from stagewright.machines.couchbase.partitions.partition_rebalance import (
    CLIENT,
    WEAK,
    Move,
    Node,
    PartitionRebalance,
)
from stagewright.machines.couchbase.partitions.partition_states import MANAGER
from stagewright.spec import Bool, Term, action, every, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

UNINDEXABLE = (
    'design document 004: "A view query will return the results that are currently indexed"'
)
REBALANCE = 'design document 004, "Queries during rebalance"'


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
    breaks=PartitionRebalance.rebalances_wait_for_no_query,
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


@known_bug(
    "004-265",
    'design document 004: "No matter when a query happens"',
    breaks=PartitionRebalance.queries_come_during_a_rebalance,
    sizes={Partition: 1},
    budgets={PartitionRebalance.stops: 0},
)
class TheNewestIsAskedForWhenNothingMoves(PartitionRebalance):
    """A query with stale=false, which may have to wait for an index that is paused, was refused while a partition moved."""

    @action(by=CLIENT, spends=PartitionRebalance.queries)
    def query(self, newest: Bool) -> None:
        """A query is sent on if it takes what there is, or nothing moves."""
        rests = every(self.move[p] == Move.none for p in Partition)
        require(~newest | rests, "no partition moves, or what is indexed will do")
        super().query(newest)


@known_bug(
    "004-230",
    REBALANCE,
    breaks=PartitionRebalance.old_indexes_are_released_one_by_one,
    budgets={PartitionRebalance.queries: 0},
)
class OldIndexesAreReleasedTogether(PartitionRebalance):
    """The copies on the old nodes were made ready to be cleaned up when all partitions that moved had moved."""

    @PartitionRebalance.move.step(Move.mapped, Move.released, by=MANAGER, fair=WEAK)
    def release_old(self, p: Term[Partition], old: Term[Node]) -> None:
        """No other partition moves any more."""
        require(self.origin[p] == old, "partition moves from the node")
        through = every(self.move[q].any_of(Move.none, Move.mapped) for q in Partition)
        require(through, "the map names the new node of all that moves")
        self.nodes[old].mark_indexable(p)


@known_bug(
    "004-255",
    REBALANCE,
    breaks=PartitionRebalance.old_partitions_are_cleaned_up_one_by_one,
    budgets={PartitionRebalance.queries: 0},
)
class OldCopiesAreRemovedTogether(PartitionRebalance):
    """What has moved was marked for cleanup on the old node when no other partition moved from there, so as to clean up once."""

    @PartitionRebalance.move.step(Move.released, Move.none, by=MANAGER, fair=WEAK)
    def finish(self, p: Term[Partition], old: Term[Node]) -> None:
        """Nothing else moves from the node."""
        require(self.origin[p] == old, "partition moves from the node")
        others = some((self.origin[q] == old) & (self.move[q] != Move.released) for q in Partition)
        require(~others, "all that moves from the node has moved")
        self._leave(p)
        self.nodes[old].set_cleanup(p)


@known_bug(
    "004-231",
    'design document 004: "No matter when a query happens"',
    breaks=PartitionRebalance.answers_are_merged_during_a_rebalance,
    sizes={Partition: 1},
)
class AnswersAreMergedWhenNothingMoves(PartitionRebalance):
    """A result was kept until the rebalance was over, since it might have had to be asked for again."""

    @action(fair=WEAK)
    def merge(self) -> None:
        """All nodes have answered, and no partition moves."""
        super().merge()
        require(every(self.move[p] == Move.none for p in Partition), "no partition moves")


@known_bug(
    "004-232",
    'design document 004: "either from the old node, or after the migration from the new node"',
    breaks=PartitionRebalance.queries_start_again_at_once,
    sizes={Partition: 1},
)
class QueriesStartAgainWhenNothingMoves(PartitionRebalance):
    """A query that had come to a node too late was sent again when the rebalance was over."""

    @action(fair=WEAK)
    def send_again(self, n: Term[Node]) -> None:
        """The query starts again, with a new map, when no partition moves."""
        super().send_again(n)
        require(every(self.move[p] == Move.none for p in Partition), "no partition moves")


@known_bug(
    "004-245",
    "design document 004: no matter when a query happens",
    breaks=PartitionRebalance.rebalances_wait_for_no_query,
    budgets={PartitionRebalance.writes: 0, PartitionRebalance.stops: 0},
)
class FurtherMovesWaitForQueries(PartitionRebalance):
    """While a partition moves, no further one began to move as long as a query went on, which might have to start again twice."""

    @action(by=MANAGER, spends=PartitionRebalance.moves)
    def start(self, p: Term[Partition], old: Term[Node], new: Term[Node]) -> None:
        """The partition becomes passive on the new node, if it is the only one, or nobody queries."""
        rests = every(self.move[q] == Move.none for q in Partition)
        require(rests | ~self.querying, "nothing moves, or no query is going on")
        super().start(p, old, new)


BUGS = known_bugs_in(globals())

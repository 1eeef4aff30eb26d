"""Mistakes put back into `PartitionQueries`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.couchbase.partitions.group_states import Partition, Role
from stagewright.machines.couchbase.partitions.partition_queries import (
    CLIENT,
    WEAK,
    PartitionQueries,
    Stale,
)
from stagewright.machines.couchbase.partitions.partition_states import MANAGER
from stagewright.spec import (
    Bool,
    Term,
    action,
    choose,
    constant,
    every,
    greatest,
    one_of,
    require,
    some,
)
from stagewright.spec.known_bugs import known_bug, known_bugs_in

UNINDEXABLE = (
    'design document 004: "A view query will return the results that are currently indexed"'
)
REQUESTS = 'design document 004: the view engine "just performs such requests"'
MARKS = 'design document 004: "independent of the state the partition is in"'
LATEST = 'design document 004: "between last indexed sequence and latest mutation sequence"'


# -- what goes wrong -------------------------------------------------------------------------------


@known_bug(
    "004-31",
    "design document 004, queries during rebalance: unindexable",
    breaks=PartitionQueries.an_answer_has_what_is_indexed,
    sizes={Partition: 1},
)
class OutdatedRowsAreLeftOut(PartitionQueries):
    """A query leaves out what is unindexable and behind the documents, as if it were better to find nothing."""

    def _is_returned(self, p: Term[Partition]) -> Bool:
        newest = self.index.group[p].content.seq >= self.asked[p]
        return super()._is_returned(p) & (newest | ~self.index.paused.has(p))


@known_bug(
    "004-56",
    LATEST,
    breaks=PartitionQueries.an_updater_ends_with_all_that_was_there,
    sizes={Partition: 1},
)
class UpdatesEndWithWhatIsWaitedFor(PartitionQueries):
    """The updater goes on until nobody waits: started by update_after, for which nobody does, it ends at once."""

    @action(fair=WEAK)
    def start_updater(self) -> None:
        """Its target is the largest sequence number for which somebody waits."""
        behind = some(self._is_behind(p, self.source[p]) for p in Partition)
        require(~self.updater, "updater does not run")
        require(self._somebody_waits(), "somebody waits for it")
        require(behind, "the index is behind")
        self.updater = True
        self.triggered = False
        for p in Partition:
            self.target[p] = greatest(self.wanted[p], self.listener[p])
            self.there[p] = self.source[p]


@known_bug(
    "004-251",
    LATEST,
    breaks=PartitionQueries.an_updater_ends_with_all_that_was_there,
    sizes={Partition: 1},
)
class UpdatesEndWithTheirQuery(PartitionQueries):
    """The updater was that of the query with stale=false for which it was started: when this was answered, it was done."""

    @action(fair=WEAK)
    def answer(self) -> None:
        """The rows are there, and so nothing is left to do."""
        newest = self.query == Stale.false
        runs = self.updater & ~newest
        super().answer()
        self.updater = runs
        for p in Partition:
            self.target[p] = choose(runs, self.target[p], 0)
            self.there[p] = choose(runs, self.there[p], 0)


@known_bug(
    "004-252",
    'design document 004: it is changed to active once "it is fully indexed"',
    breaks=PartitionQueries.who_asks_again_waits_for_what_has_come_since,
    sizes={Partition: 1},
    budgets={PartitionQueries.queries: 0, PartitionQueries.monitors: 2},
)
class WhoAsksAgainWaitsWithTheFirst(PartitionQueries):
    """Who asked for a partition for which somebody waited already was told with this one, of fewer documents than there were."""

    @action(by=MANAGER, spends=PartitionQueries.monitors)
    def monitor(self, p: Term[Partition]) -> None:
        """One listener is enough for each partition."""
        require(self.index.requested[p] != Role.none, "partition is active or passive, or will be")
        behind = self.index.group[p].content.seq < self.source[p]
        new = (self.listener[p] == 0) & behind
        self.listener[p] = choose(new, self.source[p], self.listener[p])


@known_bug(
    "004-77",
    "design document 004: once the migration is complete and it is fully indexed, the partition is changed to active",
    breaks=PartitionQueries.who_asks_too_early_waits,
    sizes={Partition: 1},
)
class WhoAsksIsToldAtOnce(PartitionQueries):
    """Who waits for a partition was told at once, whether or not it was indexed: it was activated too early."""

    @action(by=MANAGER, spends=PartitionQueries.monitors)
    def monitor(self, p: Term[Partition]) -> None:
        """The cluster manager asks for a partition, and is answered."""
        require(self.index.requested[p] != Role.none, "partition is active or passive, or will be")


@known_bug(
    "004-112",
    'design document 004: it is changed to active once "it is fully indexed"',
    breaks=PartitionQueries.who_asks_waits_for_all_that_is_there,
    sizes={Partition: 1},
)
class TheLastDocumentIsNotWaitedFor(PartitionQueries):
    """Who waited for a partition waited until it was indexed up to a document before the last one, unless they asked again."""

    @action(by=MANAGER, spends=PartitionQueries.monitors)
    def monitor(self, p: Term[Partition]) -> None:
        """The cluster manager waits until the partition is indexed."""
        require(self.index.requested[p] != Role.none, "partition is active or passive, or will be")
        again = self.listener[p] > 0
        behind = self.index.group[p].content.seq + choose(again, 0, 1) < self.source[p]
        self.listener[p] = choose(behind, self.source[p] - choose(again, 0, 1), 0)


@known_bug(
    "004-113",
    'design document 004: it is changed to active once "it is fully indexed"',
    breaks=PartitionQueries.who_asks_too_early_waits,
    sizes={Partition: 1},
)
class OneDocumentIsNotWaitedFor(PartitionQueries):
    """Who asked for a partition that was behind by a single document was told at once."""

    @action(by=MANAGER, spends=PartitionQueries.monitors)
    def monitor(self, p: Term[Partition]) -> None:
        """The cluster manager waits until the partition is indexed up to its last document."""
        require(self.index.requested[p] != Role.none, "partition is active or passive, or will be")
        behind = self.index.group[p].content.seq + 1 < self.source[p]
        self.listener[p] = choose(behind, self.source[p], 0)


@known_bug(
    "004-175",
    UNINDEXABLE,
    breaks=PartitionQueries.who_asks_waits_for_what_is_paused,
    sizes={Partition: 1},
)
class NothingMoreWillCome(PartitionQueries):
    """Who waits for a partition that is paused is told at once that it is indexed: nothing more of it will be."""

    @action(by=MANAGER, spends=PartitionQueries.monitors)
    def monitor(self, p: Term[Partition]) -> None:
        require(self.index.requested[p] != Role.none, "partition is active or passive, or will be")
        behind = self.index.group[p].content.seq < self.source[p]
        self.listener[p] = choose(behind & ~self.index.paused.has(p), self.source[p], 0)


@known_bug(
    "004-176",
    'design document 004: "once the migration of the partition is complete and it is fully indexed"',
    breaks=PartitionQueries.who_asks_waits_for_what_is_pending,
    sizes={Partition: 1},
)
class OnlyWhatIsInTheIndexIsWaitedFor(PartitionQueries):
    """A partition that waits for the cleaner is in no bitmask: who asks for it is told that nothing is left to index."""

    @action(by=MANAGER, spends=PartitionQueries.monitors)
    def monitor(self, p: Term[Partition]) -> None:
        require(self.index.requested[p] != Role.none, "partition is active or passive, or will be")
        behind = self.index.group[p].content.seq < self.source[p]
        self.listener[p] = choose(behind & ~self._is_pending(p), self.source[p], 0)


@known_bug(
    "004-224",
    'design document 004: it is changed to active once "it is fully indexed"',
    breaks=PartitionQueries.nobody_is_told_too_early,
    budgets={
        PartitionQueries.requests: 2,
        PartitionQueries.queries: 0,
        PartitionQueries.monitors: 2,
    },
)
class OneListenerAtATime(PartitionQueries):
    """The group knew one listener: with the next one, of whichever partition, the one before it was told, and its partition
    activated.
    """

    @action(by=MANAGER, spends=PartitionQueries.monitors)
    def monitor(self, p: Term[Partition]) -> None:
        """The cluster manager waits for this partition, and for no other any more."""
        require(self.index.requested[p] != Role.none, "partition is active or passive, or will be")
        behind = self.index.group[p].content.seq < self.source[p]
        for q in Partition:
            self.listener[q] = choose(behind & (q == p), self.source[q], 0)


@known_bug(
    "K9-cleanup",
    "design document 004, partition states: cleanup",
    breaks=PartitionQueries.only_active_partitions_are_returned,
    sizes={Partition: 1},
    budgets={PartitionQueries.monitors: 0},
)
class RowsToCleanUpAreReturned(PartitionQueries):
    """A query did not filter: it returned what the B-trees have, also of partitions in cleanup."""

    def _is_returned(self, p: Term[Partition]) -> Bool:
        return super()._is_returned(p) | self.index.group[p].content.cbit


@known_bug(
    "K9-passive",
    "design document 004, partition states: passive",
    breaks=PartitionQueries.only_active_partitions_are_returned,
    sizes={Partition: 1},
    budgets={PartitionQueries.monitors: 0},
)
class PassiveRowsAreReturned(PartitionQueries):
    """A query returned the rows of all partitions that are indexed."""

    def _is_returned(self, p: Term[Partition]) -> Bool:
        return self.index.group[p].abit | self.index.group[p].pbit


@known_bug(
    "K9-unindexable",
    "design document 004, queries during rebalance: unindexable",
    breaks=PartitionQueries.an_answer_has_what_is_indexed,
    sizes={Partition: 1},
    budgets={PartitionQueries.monitors: 0},
)
class UnindexableIsNotReturned(PartitionQueries):
    """A query left out what is unindexable, as if it were passive."""

    def _is_returned(self, p: Term[Partition]) -> Bool:
        return super()._is_returned(p) & ~self.index.paused.has(p)


@known_bug(
    "Z30",
    "couchdb maybe_reply_with_group (3161a55b)",
    breaks=PartitionQueries.an_answer_covers_what_was_acknowledged,
    budgets={PartitionQueries.monitors: 0},
)
class SequenceNumbersAreComparedAsLists(PartitionQueries):
    """The lists of sequence numbers were compared, not the numbers of each partition.

    A list is the greater one if its first number that differs is. One more write to the first partition
    hides that a paused one is behind.
    """

    first = constant(one_of(Partition))  # the one with the lowest id, which comes first in a list

    def _has_caught_up(self) -> Bool:
        ahead = some(
            (p == self.first) & (self.index.group[p].content.seq > self.wanted[p])
            for p in Partition
        )
        return ahead | super()._has_caught_up()


# -- what is never done ----------------------------------------------------------------------------


@known_bug(
    "004-173",
    "design document 004, index updater operation",
    breaks=PartitionQueries.update_after_starts_the_updater,
    budgets={
        PartitionQueries.requests: 4,
        PartitionQueries.writes: 1,
    },
)
class TriggersGoWithThePendingTransition(PartitionQueries):
    """A query has asked for an update, and the group has another partition then: it forgets that."""

    @action(fair=WEAK)
    def apply_pending_transition(self) -> None:
        super().apply_pending_transition()
        self.triggered = False


@known_bug(
    "004-253",
    'design document 004: it is changed to active once "it is fully indexed"',
    breaks=PartitionQueries.who_waits_for_what_is_there_is_told,
    sizes={Partition: 1},
    budgets={PartitionQueries.queries: 0, PartitionQueries.requests: 2},
)
class ListenersAreToldInTheEnd(PartitionQueries):
    """Who waited was told when the updater had come to its end, of what was indexable then: of a partition that was paused after
    its last document, never.
    """

    @action(fair=WEAK)
    def index_mutation(self, p: Term[Partition]) -> None:
        """A mutation is indexed."""
        require(self.index.group[p].content.seq < self.target[p], "a mutation is left")
        self.index.index(p)

    @action(fair=WEAK)
    def finish_updater(self) -> None:
        """Everything is indexed: who waited for it is told."""
        super().finish_updater()
        for p in Partition:
            content = self.index.group[p].content
            told = content.in_seqs & (content.seq >= self.listener[p])
            self.listener[p] = choose(told, 0, self.listener[p])


@known_bug(
    "Z55",
    "MB-6158, MB-6537, MB-6541",
    breaks=PartitionQueries.listeners_are_told,
    sizes={Partition: 1},
    budgets={PartitionQueries.queries: 0},
)
class ListenersDoNotStartTheUpdater(PartitionQueries):
    """The updater ended, or was stopped, and was not started again for the listeners that were left."""

    def _somebody_waits(self) -> Bool:
        return self.triggered | (self.query == Stale.false)


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "004-73",
    "design document 004: once the migration is complete and it is fully indexed, the partition is changed to active",
    breaks=PartitionQueries.what_is_not_queried_yet_can_be_waited_for,
    sizes={Partition: 1},
)
class OnlyActiveOnesAreMonitored(PartitionQueries):
    """Whoever moved a partition could not wait for its new index, of which nobody was told as long as it is passive."""

    @action(by=MANAGER, spends=PartitionQueries.monitors)
    def monitor(self, p: Term[Partition]) -> None:
        """The cluster manager waits until an active partition is indexed up to its last document."""
        super().monitor(p)
        require(self.index.requested[p] == Role.active, "partition is active, or will be")


@known_bug(
    "004-100",
    REQUESTS,
    breaks=PartitionQueries.partitions_are_handed_over_while_queries_wait,
    sizes={Partition: 1},
)
class PassiveWhenNoQueryWaits(PartitionQueries):
    """A partition becomes passive when no query waits for its documents."""

    @action(by=MANAGER, spends=PartitionQueries.requests)
    def set_passive(self, p: Term[Partition]) -> None:
        """The partition is to be passive."""
        require(self.wanted[p] == 0, "no query waits for it")
        super().set_passive(p)


@known_bug(
    "004-101",
    MARKS,
    breaks=PartitionQueries.partitions_are_paused_while_queries_wait,
    sizes={Partition: 1},
)
class MarkedWhenNobodyListens(PartitionQueries):
    """A partition is not marked while somebody waits until it is indexed."""

    @action(by=MANAGER, spends=PartitionQueries.requests)
    def mark_unindexable(self, p: Term[Partition]) -> None:
        """The updater does not go on with the partition."""
        require(self.listener[p] == 0, "nobody waits for it")
        super().mark_unindexable(p)


@known_bug(
    "004-102",
    MARKS,
    breaks=PartitionQueries.partitions_go_on_while_queries_wait,
    sizes={Partition: 1},
)
class IndexableWhenNoQueryWaits(PartitionQueries):
    """A mark is taken back when no query goes on, although one may wait for just that partition."""

    @action(by=MANAGER, spends=PartitionQueries.requests)
    def mark_indexable(self, p: Term[Partition]) -> None:
        """The updater may go on with the partition."""
        require(self.query.is_none(), "no query goes on")
        super().mark_indexable(p)


@known_bug(
    "004-132",
    'design document 004, stale=false: it will block "by triggering an updater in the background"',
    breaks=PartitionQueries.updates_are_triggered_for_those_who_wait,
    budgets={PartitionQueries.monitors: 0, PartitionQueries.requests: 4},
)
class UpdatesWaitForWhatIsPending(PartitionQueries):
    """No updater started as long as a partition waited for the cleaner: it would be stopped soon."""

    @action(fair=WEAK)
    def start_updater(self) -> None:
        """The updater is started when somebody waits for it."""
        super().start_updater()
        require(~some(self._is_pending(p) for p in Partition), "nothing is pending")


@known_bug(
    "004-153",
    'design document 004: "it will block until current vbuckets seq num <= indexed seqs num"',
    breaks=PartitionQueries.what_comes_later_is_not_waited_for,
    sizes={Partition: 1},
)
class QueriesWaitForWhatComesLater(PartitionQueries):
    """A query with stale=false that waited for the updater waited for each document that came meanwhile, too: for ever, if they
    came fast enough.
    """

    @action(by=CLIENT, spends=PartitionQueries.writes)
    def write(self, p: Term[Partition]) -> None:
        """The newest is newer by one."""
        newest = self.source[p] + 1
        waits = (self.query == Stale.false) & self.index.group[p].abit
        self.wanted[p] = choose(waits, newest, self.wanted[p])
        super().write(p)


@known_bug("004-192", REQUESTS, breaks=PartitionQueries.what_is_clean_is_added_while_queries_wait)
class PassiveOnesAreAddedWhenNoQueryWaits(PartitionQueries):
    """A query waits with the group that it has: a passive partition, of which it wants nothing, is added when it has gone."""

    @action(fair=WEAK)
    def apply_pending_transition(self) -> None:
        active = some(self.index.group[p].pending_active for p in Partition)
        require(active | self.query.is_none(), "no query waits, or for what is added")
        super().apply_pending_transition()


@known_bug(
    "K8-busy",
    "design document 004: when a query request arrives",
    breaks=PartitionQueries.queries_come_at_any_time,
    sizes={Partition: 1},
)
class QueriesAreRefusedByTheUpdater(PartitionQueries):
    """An index that is updated takes no queries."""

    @action(by=CLIENT, spends=PartitionQueries.queries)
    def ask(self, stale: Term[Stale]) -> None:
        """A query comes when nothing is updated."""
        super().ask(stale)
        require(~self.updater, "updater does not run")


@known_bug(
    "K8-documents",
    "design document 004: triggering updates by number of changes",
    breaks=PartitionQueries.documents_change_at_any_time,
    sizes={Partition: 1},
)
class ChangesWaitForTheUpdater(PartitionQueries):
    """No document changes while the index is updated: so the updater comes to an end."""

    @action(by=CLIENT, spends=PartitionQueries.writes)
    def write(self, p: Term[Partition]) -> None:
        """A document changes when nothing is updated."""
        super().write(p)
        require(~self.updater, "updater does not run")


@known_bug(
    "K8-stale",
    "design document 004: when stale=false, it will block",
    breaks=PartitionQueries.only_the_newest_is_waited_for,
    sizes={Partition: 1},
)
class EveryQueryWaitsForTheUpdater(PartitionQueries):
    """A query that would take what is indexed waits until the update is done, or has what was there when it came."""

    @action(fair=WEAK)
    def answer(self) -> None:
        """The query gets the group once this has caught up, or the updater has ended."""
        super().answer()
        group = self.index.group
        caught_up = every(
            group[p].abit.implies(group[p].content.seq >= self.asked[p]) for p in Partition
        )
        require(~self.updater | caught_up, "the updater has come as far")


@known_bug(
    "004-233",
    'design document 004: "The updater loops through all partitions"',
    breaks=PartitionQueries.updates_end_with_what_is_indexed,
    sizes={Partition: 1},
)
class UpdatesEndWhenAllIsClean(PartitionQueries):
    """The updater was not done, and the next one did not begin, before all rows to be removed were removed."""

    @action(fair=WEAK)
    def finish_updater(self) -> None:
        """All is indexed, and nothing is left to clean up."""
        super().finish_updater()
        left = some(self.index.group[p].content.cbit for p in Partition)
        require(~left, "no partition is in cleanup")


@known_bug(
    "004-234",
    'design document 004: "The updater loops through all partitions"',
    breaks=PartitionQueries.updates_go_on_with_what_is_indexed,
)
class UpdatesWaitForTheCleaner(PartitionQueries):
    """The updater wrote no rows while rows of another partition were still to be removed from the trees."""

    @action(fair=WEAK)
    def index_mutation(self, p: Term[Partition]) -> None:
        """A mutation is indexed, when nothing is left to clean up."""
        super().index_mutation(p)
        left = some(self.index.group[q].content.cbit for q in Partition)
        require(~left, "no partition is in cleanup")


BUGS = known_bugs_in(globals())

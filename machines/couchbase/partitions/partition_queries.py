"""Queries of one index: how up to date the answer has to be (`stale`), and who waits for the updater.

The states of the partitions are those of `partition_states.py`. A query with stale=false waits
until the index has caught up. The cluster manager, too, waits until a partition is indexed up to a
sequence number, before it moves the partition (`monitor_partition_update`).
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Self

from stagewright.machines.couchbase.partitions.group_states import COUCHBASE, SEED, Partition, Role
from stagewright.machines.couchbase.partitions.partition_states import (
    LAST_SEQ,
    MANAGER,
    PartitionGroup,
)
from stagewright.spec import (
    Actor,
    Bool,
    Fairness,
    FlagVar,
    LeadsTo,
    Machine,
    Number,
    OptionalVar,
    Term,
    accepts,
    action,
    bounded,
    budget,
    choose,
    equivalent_drop,
    equivalent_loss,
    equivalent_replacement,
    equivalents,
    every,
    final,
    flag,
    history,
    invariant,
    leads_to,
    lemma,
    liveness,
    number,
    only_when,
    optional,
    part,
    per,
    profiles,
    require,
    scopes,
    some,
    sometimes,
    step_property,
)

WEAK = Fairness.WEAK
CLIENT = Actor("client")


class Stale(Enum):
    """The `stale` parameter of a query: what to do if the index is behind the documents."""

    ok = auto()  # answer at once
    update_after = auto()  # answer at once, then update the index
    false = auto()  # answer once the index has caught up with the present documents


class PartitionQueries(Machine):
    """An index that is queried while its partitions change their states.

    Sequence numbers are compared partition by partition, as the document has it; the server's code
    compares two lists.
    """

    release = profiles(SEED, COUCHBASE)
    writes = budget(2, doc="mutations of documents")
    requests = budget(3, doc="requests of the cluster manager")
    queries = budget(1, doc="queries")
    monitors = budget(1, doc="updates of a partition that somebody waits for")

    exercised_at = scopes(
        {},
        {Partition: 1, requests: 5, queries: 2, writes: 3},
        {requests: 4, writes: 1},
        {requests: 2, queries: 0, monitors: 2},
        {requests: 5, writes: 0, queries: 0, monitors: 0},
    )

    index = part(PartitionGroup)
    source = per(Partition, number(0, LAST_SEQ))  # the highest sequence number of the partition
    updater: FlagVar = flag()
    target = per(Partition, number(0, LAST_SEQ))  # what the updater is to reach, set when it starts
    there = history(
        per(Partition, number(0, LAST_SEQ))
    )  # sequence numbers when the updater started
    triggered: FlagVar = flag()  # a query has asked for an update
    query: OptionalVar[Stale] = optional(Stale)  # the query that waits for its answer
    # what was acknowledged when the query came, or when the partition became active
    asked = per(Partition, number(0, LAST_SEQ))
    wanted = per(Partition, number(0, LAST_SEQ))  # what the group process waits for on its behalf
    listener = per(Partition, number(0, LAST_SEQ))  # what a listener waits for; 0: there is none
    returned = per(Partition, number(0, LAST_SEQ))  # the rows in the last answer

    @action(by=CLIENT, spends=writes)
    def write(self, p: Term[Partition]) -> None:
        """A document of the partition changes, and the write is acknowledged."""
        bounded(self.source[p] < LAST_SEQ, "a sequence number is left")
        self.source[p] = self.source[p] + 1

    # -- requests of the cluster manager -----------------------------------------------------------------

    @action(by=MANAGER, spends=requests)
    def set_active(self, p: Term[Partition]) -> None:
        """The partition is to be active: a waiting query now waits for its documents, too."""
        entry = self.index.group[p]
        waits = (entry.content.cbit | self._is_pending(p)) & self.release.pending_transition
        self._wait_for(p, ~entry.abit & ~waits)
        self.index.set_active(p)

    @action(by=MANAGER, spends=requests)
    def set_passive(self, p: Term[Partition]) -> None:
        """The partition is to be passive: no query waits for its documents."""
        self.wanted[p] = 0
        self.index.set_passive(p)

    @action(by=MANAGER, spends=requests)
    def set_cleanup(self, p: Term[Partition]) -> None:
        """The partition is to be removed: neither a query nor a listener waits for it any more."""
        self.wanted[p] = 0
        self.listener[p] = 0
        self.index.set_cleanup(p)

    @action(by=MANAGER, spends=requests)
    def mark_unindexable(self, p: Term[Partition]) -> None:
        """The updater stops indexing the partition."""
        self.index.mark_unindexable(p)

    @action(by=MANAGER, spends=requests)
    def mark_indexable(self, p: Term[Partition]) -> None:
        """The updater may index the partition again."""
        self.index.mark_indexable(p)

    @action(fair=WEAK)
    def apply_pending_transition(self) -> None:
        """What waited for the cleaner is done: a waiting query may proceed, or wait for the new partitions, too."""
        for p in Partition:
            entry = self.index.group[p]
            self._wait_for(p, entry.pending_active & ~entry.content.cbit)
        self.index.apply_pending_transition()

    # -- queries -----------------------------------------------------------------------------------------

    @action(by=CLIENT, spends=queries)
    def ask(self, stale: Term[Stale]) -> None:
        """A query arrives; it must find what was acknowledged before."""
        require(self.query.is_none(), "the last query is answered")
        self.query = stale
        for p in Partition:
            self.asked[p] = self.source[p]
            waits = (stale == Stale.false) & self.index.group[p].abit
            self.wanted[p] = choose(waits, self.source[p], 0)

    @action(fair=WEAK)
    def answer(self) -> None:
        """The query gets the view group information, and reads the rows of active partitions from the B-trees."""
        pending = some(self.index.group[p].pending_active for p in Partition)
        require(self.query.is_some(), "a query waits")
        require(~pending, "no partition that it wants is pending")
        require(self._has_caught_up(), "the index has caught up with what the query waits for")
        trigger = (self.query == Stale.update_after) & ~self.updater
        self.triggered = self.triggered | trigger
        self.query = None
        for p in Partition:
            self.wanted[p] = 0
            rows = self.index.group[p].content.rows
            self.returned[p] = choose(self._is_returned(p), rows, 0)

    @action(by=MANAGER, spends=monitors)
    def monitor(self, p: Term[Partition]) -> None:
        """The cluster manager waits until the partition is indexed up to its last document."""
        require(self.index.requested[p] != Role.none, "partition is active or passive, or will be")
        behind = self.index.group[p].content.seq < self.source[p]
        self.listener[p] = choose(behind, self.source[p], 0)

    # -- updater -----------------------------------------------------------------------------------------

    @action(fair=WEAK)
    def start_updater(self) -> None:
        """The updater is started when somebody waits for it, even if another one has just finished."""
        behind = some(self._is_behind(p, self.source[p]) for p in Partition)
        require(~self.updater, "updater does not run")
        require(self._somebody_waits(), "somebody waits for it")
        require(behind, "the index is behind")
        self.updater = True
        self.triggered = False
        for p in Partition:
            self.target[p] = self.source[p]
            self.there[p] = self.source[p]

    @action(fair=WEAK)
    def index_mutation(self, p: Term[Partition]) -> None:
        """A mutation is indexed, and a listener that waited for it is notified."""
        require(self.index.group[p].content.seq < self.target[p], "a mutation is left")
        reached = self.index.group[p].content.seq + 1 >= self.listener[p]
        self.listener[p] = choose(reached, 0, self.listener[p])
        self.index.index(p)

    @action(fair=WEAK)
    def finish_updater(self) -> None:
        """Everything that was there when the updater started is indexed."""
        behind = some(self._is_behind(p, self.target[p]) for p in Partition)
        require(self.updater, "updater runs")
        require(~behind, "nothing is left to index")
        self.updater = False
        for p in Partition:
            self.target[p] = 0
            self.there[p] = 0

    # -- helpers -----------------------------------------------------------------------------------------

    def _is_behind(self, p: Term[Partition], seq: Number) -> Bool:
        content = self.index.group[p].content
        return content.in_seqs & (content.seq < seq)

    def _is_pending(self, p: Term[Partition]) -> Bool:
        return self.index.group[p].pending_active | self.index.group[p].pending_passive

    def _is_returned(self, p: Term[Partition]) -> Bool:
        return self.index.is_queried(p)

    def _has_caught_up(self) -> Bool:
        """004: "current vbuckets seq num <= indexed seqs num", for each partition by itself."""
        return every(self.index.group[p].content.seq >= self.wanted[p] for p in Partition)

    def _wait_for(self, p: Term[Partition], added: Bool) -> None:
        """A query that waits for the updater also waits for a partition that has just become active."""
        waits = added & (self.query == Stale.false)
        self.wanted[p] = choose(waits, self.source[p], self.wanted[p])
        self.asked[p] = choose(waits, self.source[p], self.asked[p])

    def _somebody_waits(self) -> Bool:
        listens = some(self.listener[p] > 0 for p in Partition)
        return self.triggered | (self.query == Stale.false) | listens

    # -- promises ----------------------------------------------------------------------------------------

    @accepts(ask)
    def queries_come_at_any_time(self, stale: Term[Stale]) -> Bool:
        """004: "When a query request arrives", it is accepted, whatever the updater or the cluster manager does."""
        return self.query.is_none() & stale.any_of(*Stale)

    @accepts(write)
    def documents_change_at_any_time(self, p: Term[Partition]) -> Bool:
        """004: the updater is triggered by the "number of changes": changes wait neither for it nor for queries."""
        return self.source[p] < LAST_SEQ

    @accepts(answer)
    def only_the_newest_is_waited_for(self) -> Bool:
        """004: "When stale = false, it will block"; a query with stale=ok or update_after waits for no updater."""
        pending = some(self.index.group[p].pending_active for p in Partition)
        return self.query.is_some() & (self.query != Stale.false) & ~pending

    @accepts(answer)
    def what_comes_later_is_not_waited_for(self) -> Bool:
        """004, stale=false: "it will block until current vbuckets seq num <= indexed seqs num":
        those that were current when the query came, since documents may keep changing for ever.
        """
        pending = some(self.index.group[p].pending_active for p in Partition)
        caught_up = every(
            self.index.group[p].abit.implies(self.index.group[p].content.seq >= self.asked[p])
            for p in Partition
        )
        return self.query.is_some() & caught_up & ~pending

    @accepts(start_updater)
    def updates_are_triggered_for_those_who_wait(self, p: Term[Partition]) -> Bool:
        """004, stale=false: it will block "by triggering an updater in the background", which waits
        for nothing else, such as partitions that are still to be cleaned up, or to be added after
        that.
        """
        content = self.index.group[p].content
        behind = content.in_seqs & (content.seq < self.source[p])
        return (self.query == Stale.false) & behind & ~self.updater

    @accepts(index_mutation)
    def updates_go_on_with_what_is_indexed(self, p: Term[Partition]) -> Bool:
        """004: the updater "loops through all partitions": it waits at none that is unindexable, and not until others are
        cleaned up.
        """
        content = self.index.group[p].content
        return self.updater & content.in_seqs & (content.seq < self.there[p])

    @accepts(finish_updater)
    def updates_end_with_what_is_indexed(self) -> Bool:
        """The same of its end, on which the next update waits: what is unindexable is left, and what is cleaned up is not its
        own.
        """
        behind = some(
            self.index.group[p].content.in_seqs & (self.index.group[p].content.seq < self.there[p])
            for p in Partition
        )
        return self.updater & ~behind

    @accepts(apply_pending_transition)
    def what_is_clean_is_added_while_queries_wait(self, p: Term[Partition]) -> Bool:
        """004: the view engine "just performs such requests", as soon as it has cleaned up if it
        has to: whichever query waits, for other partitions or for this one.
        """
        only_when(self.release.pending_transition)
        entry = self.index.group[p]
        return (entry.pending_active | entry.pending_passive) & ~entry.content.cbit

    @accepts(set_active)
    def partitions_come_while_queries_wait(self, p: Term[Partition]) -> Bool:
        """004: the view engine "just performs such requests", even while a query waits for other partitions."""
        return ~self.index.paused.has(p)

    @accepts(set_passive)
    def partitions_are_handed_over_while_queries_wait(self, p: Term[Partition]) -> Bool:
        """The same for a partition that is to be passive: a query no longer waits for it."""
        return ~self.index.paused.has(p)

    @accepts(set_cleanup)
    def partitions_go_while_queries_wait(self, p: Term[Partition]) -> Bool:
        """The same for a partition that is to be removed: a query that wanted it may be answered without it."""
        return ~self.index.paused.has(p)

    @accepts(mark_unindexable)
    def partitions_are_paused_while_queries_wait(self, p: Term[Partition]) -> Bool:
        """004: unindexable is "independent of the state the partition is in", and of the queries
        and listeners that wait for it.
        """
        return self.index.requested[p].any_of(Role.active, Role.passive)

    @accepts(mark_indexable)
    def partitions_go_on_while_queries_wait(self, p: Term[Partition]) -> Bool:
        """The same for a partition that is to be indexable again, which those who wait for it depend on."""
        return self.index.paused.has(p)

    @accepts(monitor)
    def what_is_not_queried_yet_can_be_waited_for(self, p: Term[Partition]) -> Bool:
        """004: a partition becomes active on its new server "once the migration of the partition is
        complete and it is fully indexed": whoever moves it can wait for that while it is passive,
        or about to be.
        """
        return self.index.requested[p].any_of(Role.active, Role.passive)

    @step_property
    def an_answer_covers_what_was_acknowledged(self, after: Self, p: Term[Partition]) -> Bool:
        """004, stale=false: "it will block until current vbuckets seq num <= indexed seqs num".
        Otherwise "stale=false is broken" (the vendor's manual).
        """
        answered = (self.query == Stale.false) & after.query.is_none()
        active = self.index.group[p].abit
        return (answered & active).implies(after.returned[p] >= self.asked[p])

    @step_property
    def only_active_partitions_are_returned(self, after: Self, p: Term[Partition]) -> Bool:
        """004: what is passive "will not be returned on query time", and what is in cleanup "won't
        be returned on query time", although the B-trees still have its rows.
        """
        answered = self.query.is_some() & after.query.is_none()
        return (answered & (after.returned[p] > 0)).implies(self.index.group[p].abit)

    @step_property
    def an_answer_has_what_is_indexed(self, after: Self, p: Term[Partition]) -> Bool:
        """004, unindexable: "A view query will return the results that are currently indexed"."""
        answered = self.query.is_some() & after.query.is_none()
        entry = self.index.group[p]
        return (answered & entry.abit).implies(after.returned[p] >= entry.content.seq)

    @step_property
    def an_answer_has_every_partition_that_is_wanted(self, after: Self, p: Term[Partition]) -> Bool:
        """004: "all queries will still contain all the data the end user would expect": a partition
        that the cluster manager has assigned to the node is in the answer, even if the query has to
        wait for it.
        """
        answered = self.query.is_some() & after.query.is_none()
        wanted = self.index.requested[p] == Role.active
        return (answered & wanted).implies(self.index.group[p].abit)

    @step_property
    def nobody_is_told_too_early(self, after: Self, p: Term[Partition]) -> Bool:
        """A listener is notified only when its partition is indexed that far, or is to be removed."""
        notified = (self.listener[p] > 0) & (after.listener[p] == 0)
        indexed = after.index.group[p].content.rows >= self.listener[p]
        return notified.implies(indexed | (after.index.requested[p] == Role.none))

    @sometimes
    def who_asks_too_early_waits(self, after: Self, p: Term[Partition]) -> Bool:
        """A listener waits if its partition is behind the documents, even by a single one."""
        asks = (self.listener[p] == 0) & (after.listener[p] > 0)
        return asks & (self.index.group[p].content.seq + 1 == after.listener[p])

    @sometimes(at={Partition: 1, queries: 0, monitors: 2})
    def who_asks_again_waits_for_what_has_come_since(self, after: Self, p: Term[Partition]) -> Bool:
        """004: a partition is changed to active on its new server once "it is fully indexed": who asks once more, while somebody
        waits already, waits for what is there by then.
        """
        return (self.listener[p] > 0) & (after.listener[p] > self.listener[p])

    @sometimes(at={Partition: 1, queries: 0})
    def who_asks_waits_for_what_is_paused(self, after: Self, p: Term[Partition]) -> Bool:
        """004, unindexable: "the indexing is stopped": a listener of a paused partition that is
        behind has to wait, since nothing more is indexed.
        """
        asks = (self.listener[p] == 0) & (after.listener[p] > 0)
        return asks & self.index.paused.has(p)

    @sometimes(at={Partition: 1, queries: 0})
    def who_asks_waits_for_what_is_pending(self, after: Self, p: Term[Partition]) -> Bool:
        """004: a partition is changed to active on its new server once "it is fully indexed": a
        listener also waits for a partition that has no sequence number yet, because it is still
        being cleaned up.
        """
        only_when(self.release.pending_transition)
        asks = (self.listener[p] == 0) & (after.listener[p] > 0)
        pending = self.index.group[p].pending_active | self.index.group[p].pending_passive
        return asks & pending

    @step_property
    def who_asks_waits_for_all_that_is_there(self, after: Self, p: Term[Partition]) -> Bool:
        """004: a partition is changed to active on its new server once "it is fully indexed": a
        listener waits for the last document there is.
        """
        asks = (self.listener[p] == 0) & (after.listener[p] > 0)
        return asks.implies(after.listener[p] == self.source[p])

    @step_property
    def an_updater_ends_with_all_that_was_there(self, after: Self, p: Term[Partition]) -> Bool:
        """004: the updater loads what "happened between last indexed sequence and latest mutation
        sequence", not only what somebody waits for. One that is stopped for a request of the cluster
        manager may leave it to the next, which is asked for.
        """
        ends = self.updater & ~after.updater
        there, then = self.index.group[p].content, after.index.group[p].content
        left = there.in_seqs & then.in_seqs & (there.seq < self.there[p])
        return after.triggered | ~(ends & left)

    @invariant
    def a_query_waits_for_what_is_queried(self, p: Term[Partition]) -> Bool:
        """Nothing waits for a partition that is passive, or to be removed, nor for any without a query."""
        waits = (self.query == Stale.false) & self.index.group[p].abit
        return (self.wanted[p] > 0).implies(waits)

    @invariant
    def nothing_is_indexed_that_is_not_there(self, p: Term[Partition]) -> Bool:
        """No sequence number of the index is ahead of the documents."""
        return self.index.group[p].content.seq <= self.source[p]

    @lemma
    def nobody_wants_more_than_there_is(self, p: Term[Partition]) -> Bool:
        """Neither the updater nor anybody who waits for it wants a mutation that has not been made yet."""
        wants = (self.target[p] <= self.source[p]) & (self.listener[p] <= self.source[p])
        return wants & (self.wanted[p] <= self.source[p])

    @lemma
    def the_updater_goes_for_all_that_was_there(self, p: Term[Partition]) -> Bool:
        """Its target is the sequence number of each partition when it started."""
        return self.target[p] == self.there[p]

    @lemma
    def a_query_waits_for_all_that_was_acknowledged(self, p: Term[Partition]) -> Bool:
        """For an active partition, a query waits for what was acknowledged before, and for nothing else."""
        waits = (self.query == Stale.false) & self.index.group[p].abit
        acknowledged = self.query.is_some().implies(self.asked[p] <= self.source[p])
        return acknowledged & waits.implies(self.wanted[p] == self.asked[p])

    @final
    def nobody_waits(self) -> Bool:
        """An index may stay as it is when nobody waits, except for paused partitions."""
        behind = some(self._is_behind(p, self.source[p]) for p in Partition)
        paused = some(self.index.paused.has(p) for p in Partition)
        return (self.query.is_none() & ~(self._somebody_waits() & behind)) | paused

    @liveness
    def queries_are_answered(self) -> LeadsTo:
        """Every query is answered, unless a partition is paused."""
        paused = some(self.index.paused.has(p) for p in Partition)
        return leads_to(self.query.is_some(), self.query.is_none() | paused)

    @liveness
    def queries_that_take_what_there_is_are_answered(self) -> LeadsTo:
        """stale=ok, update_after: a query that takes what is indexed is answered, whether or not the updater runs."""
        patient = self.query == Stale.false
        return leads_to(self.query.is_some() & ~patient, self.query.is_none())

    @liveness
    def update_after_starts_the_updater(self, p: Term[Partition]) -> LeadsTo:
        """stale=update_after: the updater runs after the answer, if it was not running already."""
        behind = self._is_behind(p, self.source[p])
        return leads_to((self.query == Stale.update_after) & behind, self.updater | ~behind)

    @liveness
    def listeners_are_told(self, p: Term[Partition]) -> LeadsTo:
        """Every listener is notified, however often the updater is stopped, or has been past its
        partition before (MB-6158, MB-6537, MB-6541); but a paused partition has to become indexable
        first.
        """
        notified = self.listener[p] == 0
        return leads_to(~notified, notified | self.index.paused.has(p))

    @liveness
    def who_waits_for_what_is_there_is_told(self, p: Term[Partition]) -> LeadsTo:
        """004: a partition is changed to active on its new server once "it is fully indexed": its listener is told of that, also
        if the partition has been paused since.
        """
        waits = self.listener[p] > 0
        there = self.index.group[p].content.seq >= self.listener[p]
        return leads_to(waits, ~(waits & there))

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_replacement(
            set_active,
            "asked[p] becomes: no for yes",
            because="what is asked of a partition counts only once it is active, and is recorded again then",
        ),
        equivalent_drop(answer, "a query waits", because="without a query nothing changes"),
        equivalent_drop(
            start_updater,
            "updater does not run",
            because="an updater that is started again carries on",
        ),
        equivalent_drop(
            start_updater, "somebody waits for it", because="a daemon may start it at any time"
        ),
        equivalent_drop(
            start_updater,
            "the index is behind",
            because="an updater that has nothing to do finishes",
        ),
        equivalent_loss(start_updater, triggered, because="at worst the updater starts once more"),
        equivalent_replacement(
            start_updater, "triggered becomes", because="at worst the updater starts once more"
        ),
        equivalent_drop(
            finish_updater,
            "updater runs",
            because="an updater that does not run has already finished",
        ),
    )

"""An index of the view engine: its group process, updater and cleaner, its last header, and crashes.

The states of its partitions are those of `partition_states.py`. Each worker has a snapshot of the group, as its
own process, and hands back a group that the group process takes over, while the bitmasks may have changed under
it. The last header is what is left after a crash. An earlier one is what is left after a rollback, of which the
document has none; `partition_rollback.py` says when there is one. `index-compaction` has the third worker, the
compactor.
"""

from __future__ import annotations

from typing import Self

from stagewright.machines.couchbase.partitions.group_states import COUCHBASE, SEED, Partition, Role
from stagewright.machines.couchbase.partitions.partition_states import (
    INDEXED_AMONG_OLD_ROWS,
    LAST_SEQ,
    MANAGER,
    OF_THE_GROUP,
    Content,
    Entry,
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
    SetVar,
    Term,
    accepts,
    action,
    bounded,
    budget,
    choose,
    constant,
    equivalent_disabled,
    equivalent_drop,
    equivalent_loss,
    equivalent_replacement,
    equivalent_without,
    equivalents,
    every,
    fault_budget,
    final,
    flag,
    invariant,
    known_violations,
    leads_to,
    lemma,
    liveness,
    number,
    only_when,
    part,
    per,
    profiles,
    record,
    require,
    scopes,
    set_of,
    some,
    step_property,
    violated,
)

WEAK = Fairness.WEAK
CLIENT = Actor("client")
UPDATER = Actor("updater")
CLEANER = Actor("cleaner")
AGAIN = "what is clean may be cleaned again"


class PartitionIndex(Machine):
    """An index whose partitions come and go, with its workers and its file.

    A partition that was in cleanup in the header to which a rollback goes is
    so again, also if it is wanted by now, and then waits; the server's code does not look at that bitmask, so that
    those rows stay for ever, or count as new.
    """

    release = profiles(SEED, COUCHBASE)
    writes = budget(2, doc="mutations of documents")
    requests = budget(3, doc="requests of the cluster manager")
    interruptions = budget(1, doc="workers that the group process stops before they are done")
    crashes = fault_budget(1, doc="crashes of the group process")
    kept = fault_budget(0, doc="headers that a rollback may find")
    rollbacks = fault_budget(
        0, doc="documents that are lost, so that the index goes back to an earlier header"
    )

    exercised_at = scopes(
        {Partition: 1, writes: 3, requests: 4, crashes: 2},
        {requests: 4, crashes: 0, interruptions: 0},
        {requests: 4, writes: 1, crashes: 0, interruptions: 0},
        {crashes: 0},
        {writes: 1, interruptions: 0},
        {Partition: 1, requests: 4, interruptions: 0, kept: 1, rollbacks: 1},
        {crashes: 0, interruptions: 0, kept: 1, rollbacks: 1},
        {requests: 2, interruptions: 0, kept: 1, rollbacks: 1},
        {writes: 1, interruptions: 0, kept: 1, rollbacks: 1},
        {Partition: 1, interruptions: 2, crashes: 2, kept: 1, rollbacks: 2},
        {Partition: 3, writes: 1, requests: 4, crashes: 0, interruptions: 0},
    )

    index = part(PartitionGroup, without=(PartitionGroup.index, PartitionGroup.clean))
    source = per(Partition, number(0, LAST_SEQ))  # the highest sequence number of the partition
    down: FlagVar = flag()  # the group process has crashed, and is starting again
    unwritten: FlagVar = flag()  # the group process is about to write a header
    updater: FlagVar = flag()
    updating = per(Partition, record(Entry))  # the updater's group
    # messages to the updater: partitions that are new, and passive
    told: SetVar[Partition] = set_of(Partition)
    cleaner: FlagVar = flag()
    cleaning = per(Partition, record(Entry))  # the cleaner's group
    blank = constant(record(Entry))
    # the file
    header = per(Partition, record(Entry))  # the last one of the file
    earlier = per(Partition, record(Entry))  # one before; at first that of the empty file

    # == the group process, updater and cleaner ==========================================================

    @action(by=CLIENT, spends=writes)
    def write(self, p: Term[Partition]) -> None:
        """A document of the partition changes."""
        bounded(self.source[p] < LAST_SEQ, "a sequence number is left")
        self.source[p] = self.source[p] + 1

    # -- requests: the group process stops the workers whose result would be of another index -------------

    @action(by=MANAGER, spends=requests)
    def set_active(self, p: Term[Partition]) -> None:
        """The partition is to be active; one that was passive does not disturb the updater."""
        require(~self.updater | self._has(p), "updater is stopped, or knows the partition")
        self._change_states()
        self.index.set_active(p)

    @action(by=MANAGER, spends=requests)
    def set_passive(self, p: Term[Partition]) -> None:
        """The partition is to be passive; the updater, if it runs, will be told of a new one."""
        self._change_states()
        new = ~self._has(p) & ~self.index.group[p].content.cbit
        self.told.put(p, self.told.has(p) | (self.updater & new))
        self.index.set_passive(p)

    @action(by=MANAGER, spends=requests)
    def set_cleanup(self, p: Term[Partition]) -> None:
        """The partition is to be removed: the updater has to start again without it."""
        require(~self.updater | ~self._has(p), "updater is stopped, or does not know the partition")
        self._change_states()
        self.index.set_cleanup(p)

    @action(by=MANAGER, spends=requests)
    def mark_unindexable(self, p: Term[Partition]) -> None:
        """The updater must not go on with the partition; the mark is written with the next header."""
        self._change_marks()
        self.index.mark_unindexable(p)

    @action(by=MANAGER, spends=requests)
    def mark_indexable(self, p: Term[Partition]) -> None:
        """The next updater goes on with the partition."""
        self._change_marks()
        self.index.mark_indexable(p)

    @action(fair=WEAK)
    def apply_pending_transition(self) -> None:
        """Once the cleaner is done, what waited for it happens."""
        self._change_states()
        require(~self.updater, "updater is stopped")
        self.index.apply_pending_transition()

    # -- updater -----------------------------------------------------------------------------------------

    @action(fair=WEAK)
    def start_updater(self) -> None:
        """A query, or the daemon that triggers updates, finds the index behind the documents."""
        self._group_process_is_free()
        require(~self.updater & ~self.cleaner, "updater does not run, cleaner is stopped")
        require(some(self._is_behind(self.index.group[p], p) for p in Partition), "index is behind")
        self.updater = True
        for p in Partition:
            self.updating[p] = self.index.group[p]

    @action(by=UPDATER, fair=WEAK)
    def index_mutation(self, p: Term[Partition]) -> None:
        """The updater writes the rows of the next mutation, and purges the rows of partitions in cleanup."""
        entry = self.updating[p]
        require(self._is_behind(entry, p), "a mutation is left")
        newer = entry.content.rows <= entry.content.seq
        entry.content.rows = choose(newer, entry.content.seq + 1, entry.content.rows)
        entry.content.seq = entry.content.seq + 1

    @action(by=UPDATER)
    def purge(self, p: Term[Partition]) -> None:
        """A bulk insert drops what it meets of partitions in cleanup."""
        require(self.updating[p].content.cbit, "partition is in cleanup")
        self.updating[p].content.cbit = False
        self.updating[p].content.rows = 0

    @action(by=UPDATER)
    def learn_of_new_partition(self, p: Term[Partition]) -> None:
        """The updater gets the message that a passive partition is new, in time to index it."""
        entry = self.updating[p]
        require(self.told.has(p), "the updater is told of the partition")
        entry.pbit = True
        entry.content = self.index.group[p].content
        self.told.discard(p)

    @action
    def checkpoint(self) -> None:
        """The group process takes over what the updater has written so far."""
        self._group_process_is_free()
        require(self.updater, "updater runs")
        require(some(self._has_written(p) for p in Partition), "updater has written a batch")
        self._take_over_update()

    @action(fair=WEAK)
    def finish_updater(self) -> None:
        """The updater has come to the end of all partitions that it knows of."""
        self._group_process_is_free()
        require(self.updater, "updater runs")
        behind = some(self._is_behind(self.updating[p], p) for p in Partition)
        require(~behind, "nothing is left to index")
        self._take_over_update()
        self._forget_updater()

    @action(spends=interruptions)
    def stop_updater(self) -> None:
        """The updater is stopped for a request; what it has written is taken over."""
        self._group_process_is_free()
        require(self.updater, "updater runs")
        self._take_over_update()
        self._forget_updater()

    # -- cleaner -----------------------------------------------------------------------------------------

    @action(fair=WEAK)
    def start_cleaner(self) -> None:
        """No other worker runs and there is something to clean up."""
        self._group_process_is_free()
        require(~self.cleaner, "cleaner does not run")
        require(~self.updater, "no other worker runs")
        require(
            some(self.index.group[p].content.cbit for p in Partition), "a partition is in cleanup"
        )
        self.cleaner = True
        for p in Partition:
            self.cleaning[p] = self.index.group[p]

    @action(by=CLEANER, fair=WEAK)
    def clean(self, p: Term[Partition]) -> None:
        """The cleaner has removed the rows of a partition."""
        require(self.cleaning[p].content.cbit, "partition is in cleanup")
        self.cleaning[p].content.cbit = False
        self.cleaning[p].content.rows = 0

    @action(fair=WEAK)
    def finish_cleaner(self) -> None:
        """The cleaner has removed all that it had to."""
        self._group_process_is_free()
        require(self.cleaner, "cleaner runs")
        require(
            ~some(self.cleaning[p].content.cbit for p in Partition), "nothing is left to clean up"
        )
        self._take_over_cleanup()

    @action(spends=interruptions)
    def stop_cleaner(self) -> None:
        """The cleaner is stopped for a request or another worker; what it has removed stays removed."""
        self._group_process_is_free()
        require(self.cleaner, "cleaner runs")
        self._take_over_cleanup()

    # -- helpers -----------------------------------------------------------------------------------------

    def _has(self, p: Term[Partition]) -> Bool:
        return self.index.group[p].abit | self.index.group[p].pbit

    def _is_behind(self, entry: Entry, p: Term[Partition]) -> Bool:
        return entry.content.in_seqs & (entry.content.seq < self.source[p])

    def _has_written(self, p: Term[Partition]) -> Bool:
        return self.updating[p].content.rows != self.index.group[p].content.rows

    def _group_process_is_free(self) -> None:
        require(~self.down & ~self.unwritten, "group process is up, its header is written")

    def _change_states(self) -> None:
        self._group_process_is_free()
        require(~self.cleaner, "cleaner is stopped")
        self.unwritten = True

    def _change_marks(self) -> None:
        self._group_process_is_free()
        require(~self.updater, "updater is stopped")

    def _merged(self, p: Term[Partition], theirs: Entry) -> Content:
        """A worker's content of the partition; ours, if the partition is newer than the worker."""
        known = theirs.content.in_seqs | theirs.content.in_unindexable_seqs
        new = self._has(p) & (self.index.group[p].content.seq == 0)
        return choose(new & ~known, self.index.group[p].content, theirs.content)

    def _take_over_cleanup(self) -> None:
        """The cleaner's B-trees; partitions may have been marked since it started, so the rest is ours."""
        for p in Partition:
            self.index.group[p].content.cbit = self.cleaning[p].content.cbit
            self.index.group[p].content.rows = self.cleaning[p].content.rows
        self.unwritten = True
        self._forget_cleaner()

    def _forget_updater(self) -> None:
        self.updater = False
        self.told = frozenset()
        for p in Partition:
            self.updating[p] = self.blank

    def _forget_cleaner(self) -> None:
        self.cleaner = False
        for p in Partition:
            self.cleaning[p] = self.blank

    # == file and crashes ================================================================================

    # -- the file ----------------------------------------------------------------------------------------

    @action(fair=WEAK)
    def write_header(self) -> None:
        """The group process writes a header, and only then answers or goes on."""
        require(self.unwritten, "header is to be written")
        for p in Partition:
            self.header[p] = self.index.group[p]
        self.unwritten = False

    @action(spends=crashes)
    def crash(self) -> None:
        """The group process dies with its workers, and falls back to the last header of the file.

        What it has not written, it has not answered either; marks that are in no header are made again.
        """
        require(~self.down, "group process is up")
        unanswered = self.unwritten
        self.down = True
        self._forget_updater()
        self._forget_cleaner()
        for p in Partition:
            last = self.header[p]
            active, passive = last.abit | last.pending_active, last.pbit | last.pending_passive
            said = choose(active, Role.active, choose(passive, Role.passive, Role.none))
            self.index.requested[p] = choose(unanswered, said, self.index.requested[p])
            marked = last.content.in_unindexable_seqs | last.pending_unindexable
            self.index.paused.put(p, marked)
            self.index.group[p] = last
        self.unwritten = False

    @action(fair=WEAK)
    def reopen(self) -> None:
        """The group process has opened its file."""
        require(self.down, "group process is down")
        self.down = False

    @action(spends=kept)
    def keep_header(self) -> None:
        """Later headers follow: to this one a rollback will go."""
        for p in Partition:
            self.earlier[p] = self.header[p]

    @action(spends=rollbacks)
    def roll_back(self, p: Term[Partition]) -> None:
        """Documents of a partition are lost that were indexed: the file is cut back to an earlier header.

        B-trees and sequence numbers are of that time; the partitions are those that are wanted now.
        """
        self._group_process_is_free()
        require(~self.updater & ~self.cleaner, "workers are stopped")
        require(self.index.group[p].content.seq > self._left_of(p), "what is lost was indexed")
        self.source[p] = self._left_of(p)
        for q in Partition:
            self._write_restored(q)
            self._restore(q, self.index.group[q])

    # -- helpers -----------------------------------------------------------------------------------------

    def _left_of(self, p: Term[Partition]) -> Number:
        return self.earlier[p].content.seq

    def _write_restored(self, p: Term[Partition]) -> None:
        """The header that is now the last one says what the group is from here on."""
        self._restore(p, self.header[p])

    def _restore(self, p: Term[Partition], entry: Entry) -> None:
        ours, old = self.index.group[p], self.earlier[p].content
        active, passive, unindexable = ours.abit, ours.pbit, ours.content.in_unindexable_seqs
        has, had = active | passive, self.earlier[p].abit | self.earlier[p].pbit
        again = has & self._goes_back_to_cleanup(p)
        entry.pending_active = ours.pending_active | (active & again)
        entry.pending_passive = ours.pending_passive | (passive & again)
        entry.pending_unindexable = ours.pending_unindexable | (unindexable & again)
        entry.abit = active & ~again
        entry.pbit = passive & ~again
        entry.content.in_seqs = ours.content.in_seqs & ~again
        entry.content.in_unindexable_seqs = unindexable & ~again
        entry.content.has_version = ours.content.has_version & ~again
        entry.content.seq = choose(has & ~again, old.seq, 0)
        entry.content.rows = old.rows
        entry.content.cbit = again | (~has & (had | old.cbit))

    def _goes_back_to_cleanup(self, p: Term[Partition]) -> Bool:
        """What was in cleanup is so again, with the rows of an earlier time; if it is wanted, it waits."""
        if self.release.pending_transition:
            return self.earlier[p].content.cbit
        return self.index.group[p].pending_active  # never

    def _take_over_update(self) -> None:
        """The updater's group, under the bitmasks and the pending transition that we have by now."""
        for p in Partition:
            self.index.group[p].content = self._merged(p, self.updating[p])
        self.unwritten = True

    # -- promises ----------------------------------------------------------------------------------------

    @accepts(write)
    def documents_change_at_any_time(self, p: Term[Partition]) -> Bool:
        """004: "updates can happen to the index file anytime": no document waits for a worker, or for a restart."""
        return self.source[p] < LAST_SEQ

    @accepts(set_active)
    def partitions_are_added_while_others_are_indexed(self, p: Term[Partition]) -> Bool:
        """004: the view engine "just performs such requests": it waits for a header that is being written and for workers to
        be stopped, which know nothing of a new partition. One that they know becomes active under an updater.
        """
        known = self.index.group[p].abit | self.index.group[p].pbit
        free = ~self.cleaner & (known | ~self.updater)
        return self._no_request_is_performed() & free & ~self.index.paused.has(p)

    @accepts(set_passive)
    def partitions_are_indexed_right_away(self, p: Term[Partition]) -> Bool:
        """004: what is passive "will start indexing right away": a running updater is told of it, not waited for."""
        return self._no_request_is_performed() & ~self.cleaner & ~self.index.paused.has(p)

    @accepts(set_cleanup)
    def partitions_are_removed_while_others_are_indexed(self, p: Term[Partition]) -> Bool:
        """004: the view engine "just performs such requests": only an updater that knows the partition is stopped for it."""
        known = self.index.group[p].abit | self.index.group[p].pbit
        free = ~self.cleaner & ~(known & self.updater)
        return self._no_request_is_performed() & free & ~self.index.paused.has(p)

    @accepts(mark_unindexable)
    def indexing_is_stopped_in_every_state(self, p: Term[Partition]) -> Bool:
        """004: "When set to unindexable, the indexing is stopped": of active and passive ones, also where others are still to be
        cleaned up, or this one is. As for every request, the workers may be stopped before.
        """
        there = self.index.requested[p].any_of(Role.active, Role.passive)
        return self._no_request_is_performed() & ~self.updater & ~self.cleaner & there

    @accepts(mark_indexable)
    def indexing_goes_on_in_every_state(self, p: Term[Partition]) -> Bool:
        """004: indexable is "the default state": a mark is taken back whatever is still to be cleaned up."""
        free = ~self.updater & ~self.cleaner
        return self._no_request_is_performed() & free & self.index.paused.has(p)

    @accepts(stop_updater)
    def updaters_are_stopped_for_requests(self) -> Bool:
        """004: the view engine "just performs such requests": none waits until all that there is is indexed."""
        return self._no_request_is_performed() & self.updater

    @accepts(stop_cleaner)
    def cleaners_are_stopped_for_requests(self) -> Bool:
        """The same for a cleaner, which continues in the next cleanup cycle."""
        return self._no_request_is_performed() & self.cleaner

    @accepts(write_header)
    def requests_are_answered_at_once(self) -> Bool:
        """The same for one that is performed: its header is written, whatever the updater is about to write."""
        return self.unwritten

    @accepts(start_updater)
    def updates_start_during_a_cleanup(self, p: Term[Partition]) -> Bool:
        """004, active and passive: "Partition is indexed", whatever else is left to clean up: that is no reason to wait."""
        entry = self.index.group[p]
        behind = entry.content.in_seqs & (entry.content.seq < self.source[p])
        return self._no_request_is_performed() & ~self.updater & ~self.cleaner & behind

    @accepts(index_mutation)
    def updates_go_on_under_requests(self, p: Term[Partition]) -> Bool:
        """004: "updates can happen to the index file anytime": the updater writes while the group process does; at most until
        its batch, which may be small, is taken over.
        """
        known = self.updating[p].abit | self.updating[p].pbit
        behind = self.updating[p].content.seq < self.source[p]
        written = some(
            self.updating[q].content.rows != self.index.group[q].content.rows for q in Partition
        )
        there = known & self.updating[p].content.in_seqs & behind
        return self.updater & there & ~written

    @accepts(start_cleaner)
    def cleanups_start_while_documents_change(self, p: Term[Partition]) -> Bool:
        """004: a partition in cleanup "will be removed during the next cleanup cycle": an index that is behind its documents
        waits for none, for it may always be so.
        """
        free = self._no_request_is_performed() & ~self.updater & ~self.cleaner
        return free & self.index.group[p].content.cbit

    @accepts(apply_pending_transition)
    def partitions_are_added_as_soon_as_they_are_clean(self, p: Term[Partition]) -> Bool:
        """004: the view engine "just performs such requests": one that has waited for the cleaner waits for nothing else then,
        as for an index that is up to date, which one may never be.
        """
        only_when(self.release.pending_transition)
        entry = self.index.group[p]
        clean = (entry.pending_active | entry.pending_passive) & ~entry.content.cbit
        return self._no_request_is_performed() & ~self.cleaner & ~self.updater & clean

    @accepts(learn_of_new_partition)
    def updaters_learn_of_what_is_passive(self, p: Term[Partition]) -> Bool:
        """004: what is passive and indexable "will start indexing right away": by an updater that has begun without it, too,
        and not only by the next one.
        """
        entry, known = self.index.group[p], self.updating[p].abit | self.updating[p].pbit
        return self.updater & entry.pbit & entry.content.in_seqs & ~known

    @accepts(checkpoint)
    def queries_see_updates_at_shortest_intervals(self, p: Term[Partition]) -> Bool:
        """004: "queries will see updates applied to btree at shortest intervals": what is written of one partition is taken
        over without waiting for the others.
        """
        written = self.updating[p].content.rows > self.index.group[p].content.rows
        return self._no_request_is_performed() & self.updater & written

    def _no_request_is_performed(self) -> Bool:
        """The process is up, and has answered the last request."""
        return ~self.down & ~self.unwritten

    @step_property
    def a_partition_starts_empty(self, after: Self, p: Term[Partition]) -> Bool:
        """A partition that is added was not present (004): no row of an earlier time is counted as new."""
        return self._crashes(after) | self.index.starts_empty(after.index, p)

    @step_property
    def the_index_of_a_partition_only_grows(self, after: Self, p: Term[Partition]) -> Bool:
        """004: indexing starts "from last indexed sequence", whether active or passive until then."""
        return self._falls_back(after) | self.index.only_grows(after.index, p)

    @step_property
    def a_rollback_goes_to_a_header(self, after: Self, p: Term[Partition]) -> Bool:
        """004: a header has the "vbucket seqence numbers" of all partitions, "from which sequences we need to start reading": as
        documents of one are lost, no other goes back further than that.
        """
        stays = self._has(p) & after._has(p) & ~self._crashes(after)
        seq, then = self.index.group[p].content.seq, after.index.group[p].content.seq
        return stays.implies((then >= seq) | (then >= self.earlier[p].content.seq))

    @step_property
    def an_unindexable_partition_stays_as_it_is(self, after: Self, p: Term[Partition]) -> Bool:
        """004: "A view query will return the results that are currently indexed"."""
        return self._falls_back(after) | self.index.stays_if_unindexable(after.index, p)

    def _crashes(self, after: Self) -> Bool:
        return self.down | after.down

    def _falls_back(self, after: Self) -> Bool:
        """To the last header, or to an earlier one as documents are lost."""
        return self._crashes(after) | some(after.source[p] < self.source[p] for p in Partition)

    @invariant
    def the_header_follows(self, p: Term[Partition]) -> Bool:
        """004: "Each time when a update to the index is made, the index header is updated with the latest
        mutation sequence numbers"; and no request is answered before it is written.
        """
        last, ours = self.header[p], self.index.group[p]
        bits = (
            (last.abit == ours.abit)
            & (last.pbit == ours.pbit)
            & (last.content.cbit == ours.content.cbit)
        )
        return self.unwritten | (bits & (last.content.seq == ours.content.seq))

    @lemma
    @invariant
    def the_updater_knows_what_it_has_to_index(self, p: Term[Partition]) -> Bool:
        """004: "The updater loops through all partitions": it knows the active ones, or is told in time. A lemma: it learns of
        one that is passive, as each may become.
        """
        known = self.updating[p].abit | self.updating[p].pbit | self.told.has(p)
        return (self.updater & self.index.group[p].abit).implies(known)

    @invariant
    def the_cleaner_works_alone(self) -> Bool:
        """The cleaner runs only while the updater does not."""
        return ~(self.cleaner & self.updater)

    @invariant
    def nothing_is_indexed_that_is_not_there(self, p: Term[Partition]) -> Bool:
        """No sequence number of the index is ahead of the documents."""
        return self.index.group[p].content.seq <= self.source[p]

    @final
    def all_is_quiet(self) -> Bool:
        """An index may stay as it is when it is up to date and clean."""
        return (
            ~self.unwritten
            & ~self.updater
            & ~self.cleaner
            & every(
                ~self.index.group[p].content.cbit & ~self._is_behind(self.index.group[p], p)
                for p in Partition
            )
        )

    @liveness
    def the_index_catches_up(self, p: Term[Partition]) -> LeadsTo:
        """004: the updater brings the index "up to date with the KV server"."""
        behind = self._is_behind(self.index.group[p], p)
        return leads_to(behind, ~behind)

    @liveness
    def who_dies_is_started_again(self) -> LeadsTo:
        """004: the "view engine always server requests": a group process that has died opens its file, whether or not there is
        something to index in it.
        """
        return leads_to(self.down, ~self.down)

    # -- what older versions break ---------------------------------------------------------------------

    left_open = known_violations(
        violated(
            a_partition_starts_empty,
            the_index_catches_up,
            under=SEED,
            because=INDEXED_AMONG_OLD_ROWS,
        ),
    )

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_without(
            PartitionGroup.set_active,
            PartitionGroup.set_passive,
            PartitionGroup.set_cleanup,
            PartitionGroup.mark_unindexable,
            PartitionGroup.mark_indexable,
            because="a request that is not heard is one that nobody made",
        ),
        equivalent_loss(write, source, because="what clients write is theirs"),
        equivalent_replacement(write, "source[p] becomes", because="what clients write is theirs"),
        equivalent_loss(mark_indexable, Entry.pending_unindexable, because=OF_THE_GROUP),
        equivalent_loss(
            stop_updater,
            Entry.content,
            because="what is not taken over of a worker is written again by the next one",
        ),
        equivalent_loss(
            index_mutation,
            Content.rows,
            because="there are more rows only under the seed, of an earlier time",
        ),
        equivalent_disabled(purge, because="what no bulk insert meets is left for the cleaner"),
        equivalent_loss(purge, Content.cbit, because=AGAIN),
        equivalent_replacement(purge, "cbit becomes", because=AGAIN),
        equivalent_loss(
            learn_of_new_partition,
            Entry.content,
            because="otherwise it will see it the next time it is started",
        ),
        equivalent_drop(
            _group_process_is_free,
            "group process is up, its header is written",
            because="what comes while a header is written, or a file opened, would do no harm",
        ),
        equivalent_drop(
            _change_states,
            "cleaner is stopped",
            because="the cleaner does no harm to what is added",
        ),
        equivalent_loss(_take_over_cleanup, Content.cbit, because=AGAIN),
        equivalent_loss(
            _forget_updater, told, updating, because="the next one works on a snapshot of its own"
        ),
        equivalent_loss(
            _forget_cleaner, cleaning, because="the next one works on a snapshot of its own"
        ),
        equivalent_drop(
            write_header, "header is to be written", because="a header may be written at any time"
        ),
        equivalent_drop(crash, "group process is up", because="what is down may crash"),
        equivalent_loss(
            crash, PartitionGroup.requested, because="what was answered is what the header says"
        ),
        equivalent_loss(crash, unwritten, because="a header may be written once more"),
        equivalent_loss(
            keep_header, earlier, because="without it a rollback goes to the empty file"
        ),
        equivalent_loss(
            _write_restored,
            Entry.pending_unindexable,
            because="marks that are in no header are made again",
        ),
        equivalent_drop(reopen, "group process is down", because="what is up stays up"),
    )

"""Mistakes put back into `PartitionIndex`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.couchbase.partitions.group_states import Partition, Role
from stagewright.machines.couchbase.partitions.partition_index import (
    CLIENT,
    UPDATER,
    WEAK,
    PartitionIndex,
)
from stagewright.machines.couchbase.partitions.partition_states import MANAGER, Entry
from stagewright.spec import Bool, Term, action, choose, every, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

REQUESTS = 'design document 004: the view engine "just performs such requests"'
LAST = 'design document 004: "from last indexed sequence"'
EMPTY = "design document 004, partition states: not present"
UNINDEXABLE = 'design document 004: "When set to unindexable, the indexing is stopped"'
NO_CRASH = {PartitionIndex.crashes: 0, PartitionIndex.interruptions: 0}
RIGHT_AWAY = 'design document 004: "it will start indexing right away"'
MARKS = 'design document 004: "independent of the state the partition is in"'
ANYTIME = 'design document 004: "updates can happen to the index file anytime"'


# -- what goes wrong -------------------------------------------------------------------------------


@known_bug("004-28", LAST, breaks=PartitionIndex.the_index_of_a_partition_only_grows)
class PassiveIsIndexedAnewByTheUpdater(PartitionIndex):
    """The updater is stopped, as for a removal, and begins with the partition that is passive now from the start."""

    @action(by=MANAGER, spends=PartitionIndex.requests)
    def set_passive(self, p: Term[Partition]) -> None:
        """Nothing of it is kept."""
        active, content = self.index.group[p].abit, self.index.group[p].content
        super().set_passive(p)
        content.seq = choose(active, 0, content.seq)
        content.rows = choose(active, 0, content.rows)


def _take_back(entry: Entry) -> None:
    entry.abit = True
    entry.content.cbit = False
    entry.content.in_seqs = True
    entry.content.has_version = True
    entry.content.seq = entry.content.rows


@known_bug("004-29", EMPTY, breaks=PartitionIndex.a_partition_starts_empty)
class RowsAreTakenBackFromTheCleaner(PartitionIndex):
    """The cleaner is stopped for a partition that is wanted again, and what it has not removed counts as indexed."""

    @action(by=MANAGER, spends=PartitionIndex.requests)
    def take_back(self, p: Term[Partition]) -> None:
        """They count as indexed."""
        entry = self.index.group[p]
        require(~self.updater, "updater is stopped")
        pending = entry.pending_active | entry.pending_passive
        require(entry.content.cbit & ~pending, "partition is in cleanup")
        self._change_states()
        _take_back(entry)
        self.index.requested[p] = Role.active


@known_bug("004-30", UNINDEXABLE, breaks=PartitionIndex.an_unindexable_partition_stays_as_it_is)
class TheUpdaterLoopsThroughAllPartitions(PartitionIndex):
    """The updater goes on with what the header lists: in one of its lists, or in the other."""

    def _is_behind(self, entry: Entry, p: Term[Partition]) -> Bool:
        listed = entry.content.in_seqs | entry.content.in_unindexable_seqs
        return listed & (entry.content.seq < self.source[p])


@known_bug(
    "004-183",
    "design document 004, details on index structures: vbucket sequence numbers",
    breaks=PartitionIndex.a_rollback_goes_to_a_header,
    budgets={
        PartitionIndex.requests: 2,
        PartitionIndex.crashes: 0,
        PartitionIndex.interruptions: 0,
        PartitionIndex.kept: 1,
        PartitionIndex.rollbacks: 1,
    },
)
class RollbacksBeginAnew(PartitionIndex):
    """Documents of one partition are lost, and the whole index is built again, though there is a header from before."""

    @action(spends=PartitionIndex.rollbacks)
    def roll_back(self, p: Term[Partition]) -> None:
        self._group_process_is_free()
        require(~self.updater & ~self.cleaner, "workers are stopped")
        require(self.index.group[p].content.seq > self._left_of(p), "what is lost was indexed")
        self.source[p] = self._left_of(p)
        for q in Partition:
            for entry in (self.header[q], self.index.group[q]):
                entry.content.seq = 0
                entry.content.rows = 0


@known_bug(
    "K2-rollback",
    "couchdb couch_set_view_group, rollback",
    breaks="index.content_is_that_of_the_sequence_number",
    sizes={Partition: 1},
    budgets={PartitionIndex.kept: 1, PartitionIndex.rollbacks: 1, PartitionIndex.crashes: 0},
)
class OldCleanupIsForgotten(PartitionIndex):
    """A rollback did not look at what was in cleanup in the old header: rows of an earlier time counted as new."""

    def _goes_back_to_cleanup(self, p: Term[Partition]) -> Bool:
        return self.index.group[p].pending_active  # never


@known_bug(
    "Z25",
    "MB-6689",
    breaks="index.unindexable_is_what_was_marked",
    sizes={Partition: 1},
    budgets={PartitionIndex.crashes: 0},
)
class MarksDoNotStopWorkers(PartitionIndex):
    """A partition was marked while a worker ran, whose group then replaced the one with the mark."""

    def _change_marks(self) -> None:
        self._group_process_is_free()


# -- what is never done ----------------------------------------------------------------------------


@known_bug(
    "004-191",
    'design document 004: the "view engine always server requests"',
    breaks=PartitionIndex.who_dies_is_started_again,
    sizes={Partition: 1},
)
class StartedWhenThereIsWork(PartitionIndex):
    """A group process that has died is started again when there is something to index, or to clean up: until then every
    request is refused.
    """

    @action(fair=WEAK)
    def reopen(self) -> None:
        super().reopen()
        behind = some(self._is_behind(self.index.group[p], p) for p in Partition)
        to_clean = some(self.index.group[p].content.cbit for p in Partition)
        pending = some(
            self.index.group[p].pending_active | self.index.group[p].pending_passive
            for p in Partition
        )
        require(behind | to_clean | pending, "there is work")


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "004-90",
    REQUESTS,
    breaks=PartitionIndex.partitions_are_added_while_others_are_indexed,
    sizes={Partition: 1},
    budgets=NO_CRASH,
)
class ActiveWhenNobodyIndexes(PartitionIndex):
    """A passive partition becomes active when the updater is done, though that indexes it the same way."""

    @action(by=MANAGER, spends=PartitionIndex.requests)
    def set_active(self, p: Term[Partition]) -> None:
        """The partition is to be active."""
        require(~self.updater, "updater does not run")
        super().set_active(p)


@known_bug(
    "004-91",
    RIGHT_AWAY,
    breaks=PartitionIndex.partitions_are_indexed_right_away,
    budgets=NO_CRASH,
)
class PassiveWhenNobodyIndexes(PartitionIndex):
    """A partition is added as passive when the updater is done with the others."""

    @action(by=MANAGER, spends=PartitionIndex.requests)
    def set_passive(self, p: Term[Partition]) -> None:
        """The partition is to be passive."""
        require(~self.updater, "updater does not run")
        super().set_passive(p)


@known_bug(
    "004-92",
    REQUESTS,
    breaks=PartitionIndex.partitions_are_removed_while_others_are_indexed,
    budgets=NO_CRASH,
)
class PendingOnesAreRemovedByTheCleaner(PartitionIndex):
    """A request to clean a partition up is refused when that is in cleanup, also if it was asked for again since."""

    @action(by=MANAGER, spends=PartitionIndex.requests)
    def set_cleanup(self, p: Term[Partition]) -> None:
        """The partition is to be removed."""
        require(~self.index.group[p].content.cbit, "it is not being removed")
        super().set_cleanup(p)


@known_bug(
    "004-93",
    MARKS,
    breaks=PartitionIndex.indexing_is_stopped_in_every_state,
    sizes={Partition: 1},
    budgets=NO_CRASH,
)
class PendingOnesAreNotMarked(PartitionIndex):
    """A partition is marked as unindexable only if it has a sequence number: one that waits for the cleaner has none."""

    @action(by=MANAGER, spends=PartitionIndex.requests)
    def mark_unindexable(self, p: Term[Partition]) -> None:
        """The updater must not go on with the partition."""
        require(self.index.group[p].content.in_seqs, "it has a sequence number")
        super().mark_unindexable(p)


@known_bug(
    "004-94",
    MARKS,
    breaks=PartitionIndex.indexing_goes_on_in_every_state,
    budgets={**NO_CRASH, PartitionIndex.requests: 4},
)
class IndexableWhenAllIsClean(PartitionIndex):
    """A mark is taken back when no partition is in cleanup: the updater could not start before, it was said."""

    @action(by=MANAGER, spends=PartitionIndex.requests)
    def mark_indexable(self, p: Term[Partition]) -> None:
        """The next updater goes on with the partition."""
        clean = every(~self.index.group[q].content.cbit for q in Partition)
        require(clean, "no partition is in cleanup")
        super().mark_indexable(p)


@known_bug(
    "004-95",
    REQUESTS,
    breaks=PartitionIndex.updaters_are_stopped_for_requests,
    sizes={Partition: 1},
    budgets={PartitionIndex.crashes: 0},
)
class UpdatersAreStoppedBetweenBatches(PartitionIndex):
    """An updater is stopped when it has something to hand over: a request waits for its first batch."""

    @action(spends=PartitionIndex.interruptions)
    def stop_updater(self) -> None:
        """The updater is stopped for a request."""
        require(some(self._has_written(p) for p in Partition), "updater has written a batch")
        super().stop_updater()


@known_bug(
    "004-96",
    REQUESTS,
    breaks=PartitionIndex.cleaners_are_stopped_for_requests,
    sizes={Partition: 1},
    budgets={PartitionIndex.crashes: 0},
)
class CleanersAreNotStopped(PartitionIndex):
    """A cleaner is stopped when nothing is left to clean up."""

    @action(spends=PartitionIndex.interruptions)
    def stop_cleaner(self) -> None:
        """The cleaner is stopped for a request or another worker."""
        left = some(self.cleaning[p].content.cbit for p in Partition)
        require(~left, "nothing is left to clean up")
        super().stop_cleaner()


@known_bug(
    "004-97",
    RIGHT_AWAY,
    breaks=PartitionIndex.updaters_learn_of_what_is_passive,
    budgets=NO_CRASH,
)
class MessagesAreReadAtTheEnd(PartitionIndex):
    """The updater reads its messages when it is through with the partitions that it began with."""

    @action(by=UPDATER)
    def learn_of_new_partition(self, p: Term[Partition]) -> None:
        """The updater gets the message that a passive partition is new."""
        behind = some(self._is_behind(self.updating[q], q) for q in Partition)
        require(~behind, "nothing else is left to index")
        super().learn_of_new_partition(p)


@known_bug(
    "004-257",
    RIGHT_AWAY,
    breaks=PartitionIndex.updaters_learn_of_what_is_passive,
    sizes={Partition: 3},
    budgets={PartitionIndex.writes: 1, PartitionIndex.requests: 4, **NO_CRASH},
)
class MessagesWaitForTheCleaner(PartitionIndex):
    """The updater reads no message while another partition is in cleanup: it is going to be started again for that."""

    @action(by=UPDATER)
    def learn_of_new_partition(self, p: Term[Partition]) -> None:
        """No partition is in cleanup."""
        cleans = some(self.index.group[q].content.cbit for q in Partition)
        require(~cleans, "no partition is in cleanup")
        super().learn_of_new_partition(p)


@known_bug(
    "004-258",
    REQUESTS,
    breaks=PartitionIndex.partitions_are_removed_while_others_are_indexed,
    sizes={Partition: 3},
    budgets={PartitionIndex.writes: 1, PartitionIndex.requests: 4, **NO_CRASH},
)
class RemovedWhenTheUpdaterHasRead(PartitionIndex):
    """No partition is removed as long as the updater has yet to read of another one."""

    @action(by=MANAGER, spends=PartitionIndex.requests)
    def set_cleanup(self, p: Term[Partition]) -> None:
        """The updater has read its messages."""
        require(self.told.is_empty(), "no message is on its way")
        super().set_cleanup(p)


@known_bug(
    "004-98",
    'design document 004: "queries will see updates applied to btree at shortest intervals"',
    breaks=PartitionIndex.queries_see_updates_at_shortest_intervals,
    sizes={Partition: 1},
    budgets=NO_CRASH,
)
class CheckpointsWaitForTheEnd(PartitionIndex):
    """What is written is taken over when no mutation is left: a long update is seen as a whole, or not at all."""

    @action
    def checkpoint(self) -> None:
        """The group process takes over what the updater has written so far."""
        behind = some(self._is_behind(self.updating[p], p) for p in Partition)
        require(~behind, "nothing is left to index")
        super().checkpoint()


@known_bug(
    "004-99",
    ANYTIME,
    breaks=PartitionIndex.documents_change_at_any_time,
    sizes={Partition: 1},
    budgets=NO_CRASH,
)
class DocumentsWaitForTheHeader(PartitionIndex):
    """No document changes while the group process writes a header, so that this has the latest sequence numbers."""

    @action(by=CLIENT, spends=PartitionIndex.writes)
    def write(self, p: Term[Partition]) -> None:
        """A document of the partition changes."""
        require(~self.unwritten, "the header is written")
        super().write(p)


@known_bug(
    "004-118",
    'design document 004: "Partition is indexed"',
    breaks=PartitionIndex.updates_start_during_a_cleanup,
    budgets=NO_CRASH,
)
class UpdatesWaitForTheCleaner(PartitionIndex):
    """No updater started as long as a partition was in cleanup."""

    @action(fair=WEAK)
    def start_updater(self) -> None:
        """The index is behind the documents."""
        super().start_updater()
        clean = every(~self.index.group[p].content.cbit for p in Partition)
        require(clean, "nothing is to be cleaned up")


@known_bug(
    "004-119",
    ANYTIME,
    breaks=PartitionIndex.updates_go_on_under_requests,
    budgets=NO_CRASH,
)
class UpdatesWaitForTheHeader(PartitionIndex):
    """The updater wrote nothing while the group process was about to write a header."""

    @action(by=UPDATER, fair=WEAK)
    def index_mutation(self, p: Term[Partition]) -> None:
        """The updater writes the rows of the next mutation."""
        super().index_mutation(p)
        require(~self.unwritten, "the header is written")


@known_bug(
    "004-120",
    'design document 004: "Partition will be removed during the next cleanup cycle"',
    breaks=PartitionIndex.cleanups_start_while_documents_change,
    budgets=NO_CRASH,
)
class CleanupsWaitForTheDocuments(PartitionIndex):
    """The cleaner started when nothing was left to index: never, where documents change all the time."""

    @action(fair=WEAK)
    def start_cleaner(self) -> None:
        """There is something to clean up."""
        super().start_cleaner()
        behind = some(self._is_behind(self.index.group[p], p) for p in Partition)
        require(~behind, "index is up to date")


@known_bug(
    "004-190",
    REQUESTS,
    breaks=PartitionIndex.partitions_are_added_as_soon_as_they_are_clean,
    budgets={
        PartitionIndex.requests: 4,
        PartitionIndex.crashes: 0,
        PartitionIndex.interruptions: 0,
    },
)
class AddedWhenTheIndexIsUpToDate(PartitionIndex):
    """What is pending is added when no other partition is behind: where documents always change, never."""

    @action(fair=WEAK)
    def apply_pending_transition(self) -> None:
        behind = some(self._is_behind(self.index.group[p], p) for p in Partition)
        require(~behind, "the index is up to date")
        super().apply_pending_transition()


@known_bug(
    "004-219",
    REQUESTS,
    breaks=PartitionIndex.requests_are_answered_at_once,
    sizes={Partition: 1},
    budgets=NO_CRASH,
)
class HeadersWaitForTheUpdater(PartitionIndex):
    """A header was written when the updater was through, so as to have all of its sequence numbers: whoever had asked for
    another state waited for that.
    """

    @action(fair=WEAK)
    def write_header(self) -> None:
        """The group process writes a header when there is nothing more to come for it."""
        super().write_header()
        behind = some(self._is_behind(self.updating[p], p) for p in Partition)
        require(~behind, "the updater is through")


BUGS = known_bugs_in(globals())

"""A server's indexes through a rebalance, a failover and a compaction (004): three stories of one index.

The main and the replica index of a design document follow the cluster manager (`partition_replicas.py`): a
rebalance moves a partition to the server or away, and a failover makes the replica answer until the main index has
caught up. The main index is a file, with an updater and a compactor (`index_compaction.py`). What a query finds are the
rows that are in the file which the group process has open.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from stagewright.machines.couchbase.indexes.index_compaction import Compactor, IndexCompaction
from stagewright.machines.couchbase.partitions.group_states import (
    Partition,
    PartitionState,
)
from stagewright.machines.couchbase.partitions.partition_replicas import (
    Asked,
    PartitionReplicas,
)
from stagewright.machines.couchbase.partitions.partition_states import MANAGER
from stagewright.spec import (
    ANY,
    Actor,
    Bool,
    Fairness,
    LeadsTo,
    Machine,
    Number,
    Profile,
    Term,
    accepts,
    action,
    bounded,
    budget,
    checked_alone,
    choose,
    constant,
    equivalent_loss,
    equivalent_value,
    equivalents,
    fault_budget,
    final,
    independent,
    invariant,
    leads_to,
    lemma,
    liveness,
    one_of,
    part,
    per,
    profiles,
    require,
    scopes,
    sometimes,
    step_property,
)

CLIENT = Actor("client")
WEAK = Fairness.WEAK


@dataclass(frozen=True)
class ServerRelease(Profile):
    """The versions of the parts that go together."""


NEWEST = ServerRelease("couchbase")


PAUSED_COLUMNS: tuple[Callable[[PartitionState], object], ...] = (
    lambda state: state.abit,
    lambda state: state.pbit,
    lambda state: state.cbit,
    lambda state: state.indexed,
)


class FileOfMainIndex(IndexCompaction):
    """The file of an index that has no partition at first."""

    state = per(Partition, one_of(PartitionState, init=PartitionState.not_present))


class ViewServer(Machine):
    """One partition, in the main index and in the replica index of a server, and the file of the main index.

    `couchbase` alone: under the document's text the parts break promises of their own.
    """

    release = profiles(NEWEST)
    writes = budget(2, doc="mutations of documents")
    requests = budget(5, doc="requests of the cluster manager")
    crashes = fault_budget(1, doc="crashes of the group process")

    exercised_at = scopes(
        {Partition: 1},
        {Partition: 1, requests: 6, writes: 1, crashes: 0},
        {writes: 1, crashes: 0},
    )

    indexes = part(
        PartitionReplicas,
        # here what is removed waits for the switch to a new file: `partitions_move_out_at_any_time`; and the updater is the file's
        without=(
            PartitionReplicas.partitions_are_removed_during_a_transfer,
            PartitionReplicas.the_main_index_is_updated_during_transfers,
        ),
    )
    file = part(
        FileOfMainIndex,
        without=(
            IndexCompaction.set_active,
            IndexCompaction.set_passive,
            IndexCompaction.set_cleanup,
            IndexCompaction.lose_headers,
            # here a batch of what is paused would not be taken over: `updates_are_seen_whatever_moves`
            IndexCompaction.updates_are_seen_while_it_compacts,
        ),
    )

    each_alone = checked_alone(indexes, file)

    followed = constant(one_of(Partition, init=ANY))  # the partition that is written to

    @action(by=CLIENT, spends=writes)
    def write(self, p: Term[Partition]) -> None:
        """A document changes, on this server or on the one of which it has the replica."""
        bounded(self.followed == p, "the partition is followed")
        self.indexes.write(p)
        self.file.write(p)

    # -- rebalance -----------------------------------------------------------------------------------------

    @action(by=MANAGER, spends=requests)
    def move_in(self, p: Term[Partition]) -> None:
        """A rebalance moves the partition here: it is indexed, and not queried."""
        bounded(self.followed == p, "the partition is followed")
        require(self.indexes.asked[p] == Asked.nothing, "the server has nothing of it")
        self._is_clean(p)
        self.indexes.asked[p] = Asked.passive
        self.indexes.main.set_passive(p)
        self.file.state[p] = PartitionState.passive

    @action(by=MANAGER, spends=requests)
    def activate(self, p: Term[Partition]) -> None:
        """The move is done: the partition is queried here."""
        require(self.indexes.asked[p] == Asked.passive, "it was moved here")
        self._is_there(p)
        self.indexes.asked[p] = Asked.active
        self.indexes.main.set_active(p)
        self.file.state[p] = PartitionState.active

    @action(by=MANAGER, spends=requests)
    def pause(self, p: Term[Partition]) -> None:
        """The partition moves away, and the index of the other server catches up: this one gets no more updates."""
        require(self.indexes.main.group[p].abit, "the main index is queried")
        self.indexes.main.mark_unindexable(p)
        self.file.state[p] = PartitionState.active_unindexable
        self.file.stop_workers()

    @action(by=MANAGER, fair=WEAK)
    def resume(self, p: Term[Partition]) -> None:
        """The partition has moved, or stays: its index goes on."""
        self.indexes.main.mark_indexable(p)
        self.file.state[p] = PartitionState.active

    @action(by=MANAGER, spends=requests)
    def move_out(self, p: Term[Partition]) -> None:
        """A rebalance has moved the partition away: the main index is to remove its rows."""
        require(self._has(p), "the main index has it")
        self.indexes.set_cleanup(p)
        self.file.leave(p)

    @action(by=MANAGER, spends=requests)
    def cancel(self, p: Term[Partition]) -> None:
        """The same for what the main index does not have yet, or any more."""
        require(~self._has(p), "the main index does not have it")
        self.indexes.set_cleanup(p)

    # -- failover ------------------------------------------------------------------------------------------

    @action(by=MANAGER, spends=requests)
    def add_replica(self, p: Term[Partition]) -> None:
        """The server has a replica of the partition."""
        bounded(self.followed == p, "the partition is followed")
        self.indexes.add_replica(p)

    @action(fair=WEAK)
    def start_transfer(self, p: Term[Partition]) -> None:
        """After a failover the partition is passive in the main index, which has no rows of it."""
        self._is_clean(p)
        self.indexes.start_transfer(p)
        self.file.state[p] = PartitionState.passive

    @action(fair=WEAK)
    def start_transfer_later(self, p: Term[Partition]) -> None:
        """The main index still has rows of an earlier time: the transfer begins when they are removed."""
        require(self.indexes.main.group[p].content.cbit, "the main index cleans it up")
        self.indexes.start_transfer(p)

    @action(fair=WEAK)
    def apply_pending_in_main(self) -> None:
        """What waited for the cleaner, or for a compaction, is added."""
        for p in Partition:
            entry = self.indexes.main.group[p]
            now = entry.pending_passive & ~entry.content.cbit
            self.file.state[p] = choose(now, PartitionState.passive, self.file.state[p])
        self.indexes.apply_pending_in_main()

    @action(fair=WEAK)
    def finish_transfer(self, p: Term[Partition]) -> None:
        """The main index has caught up with the replica, and is queried instead of it."""
        self.indexes.finish_transfer(p)
        self.file.state[p] = PartitionState.active

    # -- workers of the main index -------------------------------------------------------------------------

    @action(fair=WEAK)
    def take_over(self, p: Term[Partition]) -> None:
        """The group process takes a batch of the updater over: the index has the next mutation."""
        self.indexes.index_main(p)
        self.file.take_over(p)

    @action(fair=WEAK)
    def clean(self, p: Term[Partition]) -> None:
        """The cleaner has removed the rows of a partition."""
        self.indexes.main.clean(p)
        self.file.clean(p)

    @action(fair=WEAK)
    def finish_updater(self) -> None:
        """The updater has come to the end of every partition of the file."""
        self.file.finish_updater()

    @action(fair=WEAK)
    def copy(self) -> None:
        """The compactor rebuilds the trees in a new file."""
        self.file.copy()

    @action(fair=WEAK)
    def apply_sort_files(self, p: Term[Partition]) -> None:
        """What the updater has written since is applied to the new file."""
        self.file.apply_sort_files(p)

    @action(fair=WEAK)
    def rename_file(self) -> None:
        """The new file is complete, and gets the next number."""
        self.file.rename_file()

    @action(fair=WEAK)
    def switch_file(self) -> None:
        """The group process goes over to the new file, in which nothing is left to clean up."""
        self.file.switch_file()
        for p in Partition:
            self._find_clean(p)

    # -- helpers -------------------------------------------------------------------------------------------

    def _has(self, p: Term[Partition]) -> Bool:
        return self.indexes.main.group[p].abit | self.indexes.main.group[p].pbit

    def _is_clean(self, p: Term[Partition]) -> None:
        require(~self.indexes.main.group[p].content.cbit, "no rows of an earlier time are left")

    def _is_there(self, p: Term[Partition]) -> None:
        require(self.indexes.main.group[p].pbit, "the main index has it, and has no rows to remove")

    def _find_clean(self, p: Term[Partition]) -> None:
        content = self.indexes.main.group[p].content
        content.rows = choose(content.cbit, 0, content.rows)
        content.cbit = False

    def _rows_found(self, p: Term[Partition]) -> Number:
        """What a query of the server finds: in the replica index on transfer, else in the open file."""
        main = choose(self.indexes.main.group[p].abit, self.file.rows_of(p), 0)
        replica = self.indexes.replica.group[p].content.rows
        return choose(self.indexes.on_transfer.has(p), replica, main)

    def _is_queried(self, p: Term[Partition]) -> Bool:
        pending = self.indexes.replica.group[p]
        waits = pending.pending_active | pending.pending_passive
        return (self.indexes.asked[p] == Asked.active) & ~waits

    # -- promises ------------------------------------------------------------------------------------------

    @invariant
    def the_file_has_the_rows_of_the_index(self, p: Term[Partition]) -> Bool:
        """004: "The updater stores the highest sequence number for every partition it has already indexed": whichever
        file is open, it has the rows up to there of a partition that was moved here or is transferred, and none of
        an earlier time.
        """
        return self._has(p).implies(self.file.rows_of(p) == self.indexes.main.group[p].content.seq)

    @invariant
    def workers_know_the_partitions(self, p: Term[Partition]) -> Bool:
        """004: the view engine "just performs such requests" of the cluster manager, in every worker: what updater
        and compactor take a partition for is what the group process has.
        """
        state = self.file.state[p]
        entry = self.indexes.main.group[p]
        bits = (state.column(lambda s: s.abit) == entry.abit) & (
            state.column(lambda s: s.pbit) == entry.pbit
        )
        indexed = state.column(lambda s: s.indexed) == entry.content.in_seqs
        return bits & indexed & (state.column(lambda s: s.cbit) == entry.content.cbit)

    @invariant
    def nothing_is_written_of_what_is_paused(self, p: Term[Partition]) -> Bool:
        """004: "When set to unindexable, the indexing is stopped": a batch that no header has is written again when the partition is
        indexable, and does not keep the updater from others.
        """
        return self.indexes.main.paused.has(p).implies(~self.file.has_written(p))

    @lemma
    @step_property
    def queries_lose_no_rows(self, after: Self, p: Term[Partition]) -> Bool:
        """004: "all queries will still contain all the data the end user would expect to be returned": what a query
        has found, the next one finds, whether the replica answers, the main index, or its new file. A lemma: the index that
        is queried loses no row (`no_row_is_lost`), and whichever file answers has its rows (`the_file_has_the_rows_of_the_index`).
        """
        both = self._is_queried(p) & after._is_queried(p)
        return both.implies(after._rows_found(p) >= self._rows_found(p))

    @accepts(move_in)
    def partitions_move_in_at_any_time(self, p: Term[Partition]) -> Bool:
        """004: the view engine "just performs such requests", also while the index file is compacted."""
        clean = ~self.indexes.main.group[p].content.cbit
        return (self.followed == p) & (self.indexes.asked[p] == Asked.nothing) & clean

    @accepts(activate)
    def partitions_are_activated_at_any_time(self, p: Term[Partition]) -> Bool:
        """004: the view engine "just performs such requests", also while the index file is compacted."""
        return (self.indexes.asked[p] == Asked.passive) & self.indexes.main.group[p].pbit

    @accepts(move_out)
    def partitions_move_out_at_any_time(self, p: Term[Partition]) -> Bool:
        """The same of a partition that has moved away, or is not wanted any more though it is still on transfer: but for the
        switch to a new file.
        """
        switches = self.file.compactor == Compactor.renamed
        there = self.indexes.main.group[p].abit | self.indexes.main.group[p].pbit
        return there & ~self.indexes.main.paused.has(p) & ~switches

    @accepts(pause)
    def partitions_are_paused_at_any_time(self, p: Term[Partition]) -> Bool:
        """004: unindexable is "independent of the state the partition is in", and of what the workers do: but for the
        switch to a new file, which it waits for.
        """
        switches = self.file.compactor == Compactor.renamed
        return self.indexes.main.group[p].abit & ~switches

    @accepts(take_over)
    def updates_are_seen_whatever_moves(self, p: Term[Partition]) -> Bool:
        """004: "queries will see updates applied to btree at shortest intervals": a batch that is written of what is indexable
        is taken over, whatever is compacted, or on transfer.
        """
        batch = self.file.written
        written = ~batch.is_empty() & (batch.head.partition == p)
        return written & ~self.indexes.main.paused.has(p)

    @accepts(cancel)
    def what_has_no_rows_yet_is_cancelled_at_any_time(self, p: Term[Partition]) -> Bool:
        """004: the view engine "just performs such requests": a partition that waits for the cleaner is not wanted any more."""
        pending = self.indexes.main.group[p]
        return pending.pending_active | pending.pending_passive

    @accepts(resume)
    def partitions_go_on_at_any_time(self, p: Term[Partition]) -> Bool:
        """004: indexable is "the default state": a mark is taken back whatever is compacted, or transferred."""
        return self.indexes.main.paused.has(p)

    @independent(copy, apply_sort_files, rename_file, switch_file, of=indexes)
    def compactions_wait_for_no_partition(self) -> None:
        """004: "For each btree from the current index file, iterate over all nodes and build a new btree": of whichever partitions
        there are rows; the main index is compacted while partitions move, or are transferred, and replicas indexed.
        """

    @independent(
        copy, of=(IndexCompaction.source, IndexCompaction.updating, IndexCompaction.written)
    )
    def the_file_is_copied_while_it_is_updated(self) -> None:
        """004: "While doing the compaction, new changes would be happening to the current index file"."""

    @independent(finish_updater, of=indexes)
    def updaters_end_whatever_moves(self) -> None:
        """004: "The updater loops through all partitions": when it has indexed what there is in the file, it ends, whatever is
        on transfer, or unindexable.
        """

    @liveness
    def pauses_end(self, p: Term[Partition]) -> LeadsTo:
        """004, "Queries during rebalance": a partition is unindexable while another server takes it over, or does not:
        "indexable: That's the default state".
        """
        paused = self.indexes.main.paused.has(p)
        return leads_to(paused, ~paused)

    @lemma
    @sometimes(at={Partition: 1})
    def replicas_are_indexed_while_the_file_is_copied(
        self, after: Self, p: Term[Partition]
    ) -> Bool:
        """004: "everything written above also applies to the replica partitions": they are indexed whatever the
        compactor of the main index does. A lemma: no replica that is behind waits for it.
        """
        before, then = self.indexes.replica.group[p], after.indexes.replica.group[p]
        copies = self.file.compactor == Compactor.copying
        return copies & (then.content.seq > before.content.seq)

    @lemma
    @sometimes(at={Partition: 1})
    def transfers_end_while_the_file_is_copied(self, after: Self, p: Term[Partition]) -> Bool:
        """A compaction does not hold up a transfer. A lemma: a transfer waits for nothing but the replica's documents."""
        ends = self.indexes.on_transfer.has(p) & after.indexes.main.group[p].abit
        return ends & (self.file.compactor == Compactor.catching_up)

    @lemma
    @sometimes(at={Partition: 1})
    def both_updaters_are_at_work(self, after: Self, p: Term[Partition]) -> Bool:
        """004: "one updater instance per group server": the replica index is updated while the main index is, too. A lemma:
        no replica that is behind waits for the other updater.
        """
        updates = self.file.updating.is_some() & ~self.file.written.is_empty()
        before, then = self.indexes.replica.group[p], after.indexes.replica.group[p]
        return updates & (then.content.seq > before.content.seq)

    @sometimes(at={Partition: 1})
    def a_compaction_cleans_up_for_a_transfer(self, after: Self, p: Term[Partition]) -> Bool:
        """A transfer that waits for the removal of older rows goes on after a switch of the file."""
        waits = self.indexes.main.group[p].pending_passive
        return waits & (self.file.file != after.file.file)

    @final
    def at_rest(self) -> Bool:
        """Final where both are."""
        return self.indexes.on_transfer.is_empty()

    # -- harmless changes --------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_loss(
            move_out,
            IndexCompaction.compactor,
            because="one partition is followed: of what stays, a copy has no rows that it could lose",
        ),
        *(
            equivalent_value(
                PartitionState.passive_unindexable,
                column,
                because="only what is queried is paused here",
            )
            for column in PAUSED_COLUMNS
        ),
    )

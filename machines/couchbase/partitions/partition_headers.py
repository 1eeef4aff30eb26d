"""Rollback of an index whose partitions have changed since: an old header under the states of today.

When the documents of a partition fall back behind the index, the index falls back to an old header of its
file, with the B-trees and sequence numbers of that time (`partition_rollback.py` says when). The states of the
partitions (`partition_states.py`) stay what was asked for since; what the old B-trees have beyond them goes.
"""

from __future__ import annotations

from stagewright.machines.couchbase.partitions.group_states import COUCHBASE, SEED, Partition
from stagewright.machines.couchbase.partitions.partition_states import (
    LAST_SEQ,
    MANAGER,
    Entry,
    PartitionGroup,
)
from stagewright.spec import (
    Bool,
    Fairness,
    Machine,
    Term,
    action,
    bounded,
    budget,
    choose,
    equivalent_loss,
    equivalents,
    final,
    part,
    per,
    profiles,
    record,
    scopes,
)

WEAK = Fairness.WEAK


class PartitionHeaders(Machine):
    """An index, and the header of its file to which a rollback goes: beyond the document, which has none.

    Under `couchbase` every promise holds. What is in cleanup in the old header goes back to cleanup, also if
    it is wanted again by now; the server's code does not look at the cleanup bitmask of the old header, so
    that those rows stay for ever, or count as new.

    Under `seed` there is no pending transition: `index.content_is_that_of_the_sequence_number` fails.
    """

    release = profiles(SEED, COUCHBASE)
    requests = budget(3, doc="requests of the cluster manager")
    headers = budget(1, doc="headers that a rollback may find")
    rollbacks = budget(1, doc="rollbacks")

    exercised_at = scopes({Partition: 1, requests: None, headers: 2, rollbacks: 2})

    index = part(PartitionGroup)
    header = per(Partition, record(Entry))  # an old one; at first that of the empty file

    @action(by=MANAGER, spends=requests)
    def set_active(self, p: Term[Partition]) -> None:
        """The partition is to be active."""
        self.index.set_active(p)

    @action(by=MANAGER, spends=requests)
    def set_passive(self, p: Term[Partition]) -> None:
        """The partition is to be passive."""
        self.index.set_passive(p)

    @action(by=MANAGER, spends=requests)
    def set_cleanup(self, p: Term[Partition]) -> None:
        """The partition is to be removed."""
        self.index.set_cleanup(p)

    @action(by=MANAGER, spends=requests)
    def mark_unindexable(self, p: Term[Partition]) -> None:
        """The partition is not to be indexed."""
        self.index.mark_unindexable(p)

    @action(by=MANAGER, spends=requests)
    def mark_indexable(self, p: Term[Partition]) -> None:
        """The partition is to be indexed again."""
        self.index.mark_indexable(p)

    @action(spends=headers)
    def write_header(self) -> None:
        """The group process writes the header that a rollback will find."""
        for p in Partition:
            self.header[p] = self.index.group[p]

    @action
    def index_mutation(self, p: Term[Partition]) -> None:
        """The updater indexes a mutation."""
        bounded(self.index.group[p].content.seq < LAST_SEQ, "a mutation is left")
        self.index.index(p)

    @action(spends=rollbacks)
    def roll_back(self) -> None:
        """The B-trees are those of the old header; the partitions are those that are wanted now."""
        for p in Partition:
            self._restore(p)

    def _restore(self, p: Term[Partition]) -> None:
        ours, old = self.index.group[p], self.header[p].content
        active, passive, unindexable = ours.abit, ours.pbit, ours.content.in_unindexable_seqs
        has = active | passive
        had = self.header[p].abit | self.header[p].pbit
        again = has & self._goes_back_to_cleanup(p)
        ours.abit = active & ~again
        ours.pbit = passive & ~again
        ours.pending_active = ours.pending_active | (active & again)
        ours.pending_passive = ours.pending_passive | (passive & again)
        ours.pending_unindexable = ours.pending_unindexable | (unindexable & again)
        ours.content.in_seqs = ours.content.in_seqs & ~again
        ours.content.in_unindexable_seqs = unindexable & ~again
        ours.content.has_version = ours.content.has_version & ~again
        ours.content.seq = choose(has & ~again, old.seq, 0)
        ours.content.rows = old.rows
        ours.content.cbit = again | (~has & (had | old.cbit))

    def _goes_back_to_cleanup(self, p: Term[Partition]) -> Bool:
        """What was in cleanup is so again, with the rows of an earlier time; if it is wanted, it waits."""
        if self.release.pending_transition:
            return self.header[p].content.cbit
        return self.index.group[p].pending_active  # never

    @final
    def nothing_has_to_be_done(self) -> Bool:
        """An index may stay as it is."""
        return self.index.nothing_is_left_to_do()

    # -- what no promise can tell ----------------------------------------------------------------------

    harmless = equivalents(
        equivalent_loss(
            write_header, header, because="without it a rollback goes to the empty file"
        ),
    )

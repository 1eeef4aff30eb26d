"""Bugs of a server's indexes in which a rebalance, a failover and a compaction meet; none of these has them alone."""

from __future__ import annotations

from stagewright.machines.couchbase.indexes.index_compaction import Compactor, IndexCompaction
from stagewright.machines.couchbase.partitions.group_states import Partition, PartitionState
from stagewright.machines.couchbase.partitions.partition_states import MANAGER
from stagewright.machines.systems.view_server import (
    CLIENT,
    WEAK,
    FileOfMainIndex,
    ViewServer,
)
from stagewright.spec import Bool, Term, action, choose, part, require
from stagewright.spec.known_bugs import NotFound, known_bug, known_bugs_in


@known_bug(
    "K11-transfer",
    "design document 004, replica indexes",
    breaks=ViewServer.queries_lose_no_rows,
    sizes={Partition: 1},
    budgets={ViewServer.crashes: 1},
)
class TransferEndsWithWhatIsWritten(ViewServer):
    """A transfer ends when the updater of the main index has written the rows that the replica has.

    The group process has no header of that batch yet: a query that comes now does not find it.
    """

    @action(fair=WEAK)
    def finish_transfer(self, p: Term[Partition]) -> None:
        require(self.indexes.on_transfer.has(p), "it is on transfer")
        require(self.indexes.main.group[p].pbit, "the main index has it")
        require(self.indexes.replica.paused.has(p), "the replica is unindexable")
        written = choose(self.file.has_written(p), 1, 0)
        caught_up = self.file.seqs[p] + written >= self.indexes.target[p]
        require(caught_up, "the updater has written what the replica has")
        self.indexes.on_transfer.discard(p)
        self.indexes.replicas.discard(p)
        self.indexes.main.set_active(p)
        self.file.state[p] = PartitionState.active


@known_bug(
    "K11-pending",
    "design document 004, index compaction",
    breaks=ViewServer.the_file_has_the_rows_of_the_index,
    sizes={Partition: 1},
    budgets={ViewServer.crashes: 0},
)
class PartitionsAreCleanWhenTheyAreCopied(ViewServer):
    """The compactor says what it has not copied, and those partitions are no longer in cleanup.

    One that is wanted again is added at once, and indexed in the old file among rows of an earlier time.
    """

    @action(fair=WEAK)
    def copy(self) -> None:
        self.file.copy()
        for p in Partition:
            self._find_clean(p)


class CopiesWhatIsIndexed(FileOfMainIndex):
    """The compactor copies the partitions that have a sequence number in `seqs`."""

    def _is_copied(self, p: Term[Partition]) -> Bool:
        return self._is_indexed(p)


@known_bug(
    "K11-paused",
    "design document 004, index compaction",
    breaks=ViewServer.queries_lose_no_rows,
    sizes={Partition: 1},
    budgets={ViewServer.crashes: 0},
)
class PausedPartitionsAreNotCopied(ViewServer):
    """A partition that moves away is unindexable, and not in the list by which the compactor copies: after a switch
    of the file its rows are gone, while it is still queried here.
    """

    file = part(
        CopiesWhatIsIndexed,
        without=(
            IndexCompaction.set_active,
            IndexCompaction.set_passive,
            IndexCompaction.set_cleanup,
            IndexCompaction.lose_headers,
        ),
    )


@known_bug(
    "K5-two",
    "design document 004, index updater operation",
    breaks="indexes.replicas_are_indexed_before_they_are_queried",
    sizes={Partition: 1},
    budgets={ViewServer.crashes: 0},
)
class OneUpdaterForBothIndexes(ViewServer):
    """The replica index is updated when the updater of the main index has come to its end: they never run at once."""

    @action
    def index_replica(self, p: Term[Partition]) -> None:
        require(self.file.updating.is_none(), "the updater of the main index does not run")
        self.indexes.index_replica(p)


@known_bug(
    "K11-activated",
    "design document 004, replica indexes",
    breaks=ViewServer.workers_know_the_partitions,
    sizes={Partition: 1},
    budgets={ViewServer.requests: 6, ViewServer.writes: 1, ViewServer.crashes: 0},
)
class ActivatesWhatIsStillPending(ViewServer):
    """A transfer waits until older rows are removed. They are, and the partition is activated before the main index has
    added it: the workers take for active what the index does not have.
    """

    def _is_there(self, p: Term[Partition]) -> None:
        self._is_clean(p)


@known_bug(
    "004-8",
    "design document 004: the updater stores the highest sequence number that it has indexed",
    breaks=ViewServer.the_file_has_the_rows_of_the_index,
    sizes={Partition: 1},
    budgets={ViewServer.requests: 4, ViewServer.writes: 1, ViewServer.crashes: 0},
)
class TheNumberComesLater(ViewServer):
    """The group process took a batch over, and learned its sequence number from a message of its own."""

    @action(fair=WEAK)
    def take_over(self, p: Term[Partition]) -> None:
        """The rows are in the file."""
        self.file.take_over(p)

    @action(fair=WEAK)
    def learn_the_number(self, p: Term[Partition]) -> None:
        """The updater says up to where they are."""
        behind = self.file.rows_of(p) > self.indexes.main.group[p].content.seq
        require(self._has(p) & behind, "it is not said yet")
        self.indexes.index_main(p)


@known_bug(
    "004-9",
    "design document 004, index compaction",
    breaks=ViewServer.transfers_end_while_the_file_is_copied,
    sizes={Partition: 1},
    budgets={ViewServer.crashes: 0},
)
class TransfersWaitForTheCompactor(ViewServer):
    """A transfer ends when no compactor runs."""

    @action(fair=WEAK)
    def finish_transfer(self, p: Term[Partition]) -> None:
        """The main index has caught up, and its file stays what it is."""
        require(self.file.compactor == Compactor.none, "no compactor runs")
        super().finish_transfer(p)


@known_bug(
    "004-45",
    "design document 004, index compaction",
    breaks="file.documents_change_at_any_time",
    sizes={Partition: 1},
    budgets={ViewServer.crashes: 0},
)
class MutationsWaitForTheCompactor(ViewServer):
    """Documents of the partitions that the index has do not change while its file is rewritten."""

    @action(by=CLIENT, spends=ViewServer.writes)
    def write(self, p: Term[Partition]) -> None:
        """A document changes, and no compactor runs."""
        super().write(p)
        require(self.file.compactor == Compactor.none, "no compactor runs")


@known_bug(
    "004-46",
    "design document 004, index compaction",
    breaks=ViewServer.partitions_move_in_at_any_time,
    sizes={Partition: 1},
    budgets={ViewServer.crashes: 0},
)
class MovesWaitForTheCompactor(ViewServer):
    """A rebalance brings no partition while the index file is rewritten."""

    @action(by=MANAGER, spends=ViewServer.requests)
    def move_in(self, p: Term[Partition]) -> None:
        """A partition moves here, and no compactor runs."""
        super().move_in(p)
        require(self.file.compactor == Compactor.none, "no compactor runs")


@known_bug(
    "004-47",
    "design document 004, index compaction",
    breaks=ViewServer.partitions_are_activated_at_any_time,
    sizes={Partition: 1},
    budgets={ViewServer.crashes: 0},
)
class ActivationsWaitForTheCompactor(ViewServer):
    """A partition that has moved here is not queried until the index file is rewritten."""

    @action(by=MANAGER, spends=ViewServer.requests)
    def activate(self, p: Term[Partition]) -> None:
        """The move is done, and no compactor runs."""
        super().activate(p)
        require(self.file.compactor == Compactor.none, "no compactor runs")


@known_bug(
    "004-48",
    "design document 004, index compaction",
    breaks="indexes.replicas_are_indexed_before_they_are_queried",
    sizes={Partition: 1},
    budgets={ViewServer.crashes: 0},
)
class ReplicasRestWhileTheFileIsCopied(ViewServer):
    """The replica index is not updated while the main index is compacted: a failover then finds old rows."""

    @action
    def index_replica(self, p: Term[Partition]) -> None:
        """The updater of the replica index runs alone."""
        self.indexes.index_replica(p)
        require(self.file.compactor == Compactor.none, "no compactor runs")


@known_bug(
    "004-54",
    "design document 004, Queries during rebalance: indexable is the default state",
    breaks=ViewServer.pauses_end,
    sizes={Partition: 1},
)
class StoppedMovesLeaveAPause(ViewServer):
    """A partition is indexable again on the server that keeps it when the next rebalance begins, if one does."""

    @action(by=MANAGER)
    def resume(self, p: Term[Partition]) -> None:
        """Another rebalance begins."""
        super().resume(p)


BUGS = known_bugs_in(globals())
NOT_FOUND: tuple[NotFound, ...] = ()

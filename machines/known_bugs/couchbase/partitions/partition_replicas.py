"""Mistakes put back into `PartitionReplicas`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.couchbase.partitions.group_states import Partition, Role
from stagewright.machines.couchbase.partitions.partition_replicas import WEAK, PartitionReplicas
from stagewright.machines.couchbase.partitions.partition_states import MANAGER, PartitionGroup
from stagewright.spec import Bool, Number, Term, action, choose, part, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

FAILOVER = "design document 004, the table of a failover"
REQUESTS = 'design document 004: the view engine "just performs such requests"'


# -- what goes wrong -------------------------------------------------------------------------------


@known_bug(
    "004-33",
    FAILOVER,
    breaks=PartitionReplicas.replicas_are_unindexable_as_soon_as_they_are_active,
)
class TheReplicaIsIndexedOn(PartitionReplicas):
    """A replica that is queried becomes unindexable only when the main index has begun with the partition."""

    @action(fair=WEAK)
    def pause_replica(self, p: Term[Partition]) -> None:
        """The main index has it as passive."""
        super().pause_replica(p)
        require(self.main.group[p].pbit, "the main index has it")


@known_bug(
    "004-85",
    'design document 004: "dynamically query those now active replica partitions in addition"',
    breaks=PartitionReplicas.the_index_in_which_a_partition_is_active_is_queried,
    sizes={Partition: 1},
)
class TheMainIndexAloneIsQueried(PartitionReplicas):
    """After a failover queries went to the main index alone: they found nothing of a partition until its transfer ended."""

    def _rows_found(self, p: Term[Partition]) -> Number:
        """What the main index has of an active partition."""
        return choose(self.main.group[p].abit, self.main.group[p].content.rows, 0)


@known_bug(
    "004-198",
    'design document 004: "from last indexed sequence"',
    breaks=PartitionReplicas.indexes_go_on_from_where_they_are,
    sizes={Partition: 1},
)
class HandedOverAnew(PartitionReplicas):
    """A partition on transfer is to be passive, and the main index begins with it once more."""

    @action(by=MANAGER, spends=PartitionReplicas.requests)
    def set_passive(self, p: Term[Partition]) -> None:
        super().set_passive(p)
        self.main.group[p].content.seq = 0
        self.main.group[p].content.rows = 0


@known_bug(
    "K10-early",
    "design document 004: once the indexing is completed it will be switched to active",
    breaks=PartitionReplicas.no_row_is_lost,
    sizes={Partition: 1},
)
class ActiveBeforeItIsIndexed(PartitionReplicas):
    """The main index took over when it had the partition, not when it had indexed it."""

    def _has_caught_up(self, p: Term[Partition]) -> Bool:
        return self.main.group[p].pbit


@known_bug(
    "K10-resumed",
    "design document 004, the table of a failover: replica index: active, unindexable",
    breaks=PartitionReplicas.a_transfer_is_started,
    sizes={Partition: 1},
)
class IndexedAgainWhenTheTransferStarts(PartitionReplicas):
    """A replica was unindexable only until the main index had it: both were indexed, at twice the cost."""

    @action(fair=WEAK)
    def pause_replica(self, p: Term[Partition]) -> None:
        """The replica is unindexable as long as the main index does not have it."""
        require(self.main.requested[p] == Role.none, "the main index does not have it")
        super().pause_replica(p)

    @action(fair=WEAK)
    def start_transfer(self, p: Term[Partition]) -> None:
        """The partition is added to the main index, and the replica goes on as well."""
        super().start_transfer(p)
        self.replica.mark_indexable(p)

    @action(fair=WEAK)
    def finish_transfer(self, p: Term[Partition]) -> None:
        """The main index has come as far as the replica index."""
        content = self.replica.group[p].content
        require(self.on_transfer.has(p), "it is on transfer")
        require(self.main.group[p].pbit, "the main index has it")
        require(self.main.group[p].content.seq >= content.seq, "the main index has caught up")
        self.on_transfer.discard(p)
        self.replicas.discard(p)
        self.main.set_active(p)


class UnstoppedGroup(PartitionGroup):
    """An index of which the updater does not look at what is unindexable."""

    @action
    def index(self, p: Term[Partition]) -> None:
        """The updater indexes the next mutation, whatever the partition is."""
        content = self.group[p].content
        require(content.in_seqs | content.in_unindexable_seqs, "it is in the index")
        newer = content.rows <= content.seq
        content.rows = choose(newer, content.seq + 1, content.rows)
        content.seq = content.seq + 1


@known_bug(
    "K10-stopped",
    "design document 004, the table of a failover: replica index: active, unindexable",
    breaks=PartitionReplicas.a_replica_that_is_queried_is_not_indexed,
    sizes={Partition: 1},
)
class UnindexableIsNotStopped(PartitionReplicas):
    """A replica went on being indexed when it was marked as unindexable, and the main index ran after it."""

    replica = part(UnstoppedGroup)

    def _has_caught_up(self, p: Term[Partition]) -> Bool:
        return self.main.group[p].content.seq >= self.replica.group[p].content.seq


@known_bug(
    "K10-unindexable",
    "design document 004, the table of a failover: replica index: active, unindexable",
    breaks=PartitionReplicas.no_row_is_lost,
    sizes={Partition: 1},
)
class ReplicasOnTransferAreIndexed(PartitionReplicas):
    """The server activates a replica that is queried, and does not mark it as unindexable.

    It goes on, the main index catches up with where it was: a query finds less after the transfer than before.
    """

    def _mark_unindexable(self, p: Term[Partition]) -> None:
        pass

    def _is_frozen(self, p: Term[Partition]) -> Bool:
        return self.replica.requested[p] == Role.active


# -- what is never done ----------------------------------------------------------------------------


@known_bug(
    "004-34",
    FAILOVER,
    breaks=PartitionReplicas.copies_are_cleaned_up,
    sizes={Partition: 1},
    budgets={PartitionReplicas.requests: 2},
)
class TheCopyIsKept(PartitionReplicas):
    """What was transferred stays in the replica index, as passive: it might be of use for the next failover."""

    @action(fair=WEAK)
    def clean_up_replica(self, p: Term[Partition]) -> None:
        """Only what the main index does not have is removed."""
        super().clean_up_replica(p)
        require(self.main.requested[p] == Role.none, "the main index does not have it")

    @action(fair=WEAK)
    def keep_copy(self, p: Term[Partition]) -> None:
        """The main index has it, and the copy stays."""
        require(self.replica.requested[p] == Role.active, "the copy was queried")
        kept = ~self.replicas.has(p) & (self.main.requested[p] != Role.none)
        require(kept, "the main index has it")
        self.replica.set_passive(p)


@known_bug(
    "004-170",
    'design document 004: it "just follows the instructions"',
    breaks=PartitionReplicas.copies_are_cleaned_up,
    sizes={Partition: 1},
    budgets={PartitionReplicas.requests: 2, PartitionReplicas.writes: 0},
)
class OnlyWhatWasQueriedIsCleanedUp(PartitionReplicas):
    """A copy that was queried is removed from the replica index; a replica that the manager has given up stays for ever."""

    @action(fair=WEAK)
    def clean_up_replica(self, p: Term[Partition]) -> None:
        require(self.replica.requested[p] == Role.active, "it was queried")
        super().clean_up_replica(p)


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "004-61",
    'design document 004, "Replica partitions"',
    breaks=PartitionReplicas.replicas_are_indexed_before_they_are_queried,
    sizes={Partition: 1},
)
class ReplicasAreIndexedWhenTheyAreQueried(PartitionReplicas):
    """The replica index is updated for a partition on transfer alone: as a node fails, queries find nothing of it."""

    @action
    def index_replica(self, p: Term[Partition]) -> None:
        """Before, nobody would read it."""
        require(self.on_transfer.has(p), "it is on transfer")
        super().index_replica(p)


@known_bug(
    "004-104",
    REQUESTS,
    breaks=PartitionReplicas.replicas_are_given_up_at_any_time,
    sizes={Partition: 1},
)
class ReplicasAreIndexedFirst(PartitionReplicas):
    """A replica is removed when all documents are indexed that it has."""

    @action(by=MANAGER, spends=PartitionReplicas.requests)
    def remove_replica(self, p: Term[Partition]) -> None:
        """The replica is not needed any more."""
        require(self.replica.group[p].content.seq == self.kv[p], "it is up to date")
        super().remove_replica(p)


@known_bug(
    "004-105",
    REQUESTS,
    breaks=PartitionReplicas.partitions_on_transfer_are_handed_over,
    sizes={Partition: 1},
)
class HandedOverAfterTheTransfer(PartitionReplicas):
    """A partition on transfer becomes passive when the main index has caught up with the replica."""

    @action(by=MANAGER, spends=PartitionReplicas.requests)
    def set_passive(self, p: Term[Partition]) -> None:
        """A partition on transfer is to be passive."""
        caught_up = self.main.group[p].content.seq >= self.replica.group[p].content.seq
        require(caught_up, "the main index has caught up")
        super().set_passive(p)


@known_bug(
    "004-106",
    REQUESTS,
    breaks=PartitionReplicas.partitions_are_removed_during_a_transfer,
    sizes={Partition: 1},
)
class RemovedAfterTheTransfer(PartitionReplicas):
    """A partition is not removed while it is on transfer."""

    @action(by=MANAGER, spends=PartitionReplicas.requests)
    def set_cleanup(self, p: Term[Partition]) -> None:
        """The main index is to remove the partition."""
        require(~self.on_transfer.has(p), "it is not on transfer")
        super().set_cleanup(p)


@known_bug(
    "004-114",
    "design document 004: the view engine supports optional replica partitions",
    breaks=PartitionReplicas.replicas_are_added_at_any_time,
)
class ReplicasAreAddedOneByOne(PartitionReplicas):
    """No replica was added while another partition was on transfer."""

    @action(by=MANAGER, spends=PartitionReplicas.requests)
    def add_replica(self, p: Term[Partition]) -> None:
        """The partition is passive in the replica index."""
        require(self.on_transfer.is_empty(), "nothing is on transfer")
        super().add_replica(p)


@known_bug(
    "004-115",
    "design document 004, the table of a failover",
    breaks=PartitionReplicas.transfers_start_at_once,
)
class TransfersWaitForTheReplicaIndex(PartitionReplicas):
    """A partition was added to the main index when the replica index had cleaned up what it had of an earlier time."""

    @action(fair=WEAK)
    def start_transfer(self, p: Term[Partition]) -> None:
        """The partition is added to the main index as a passive one."""
        super().start_transfer(p)
        require(~self.replica.group[p].content.cbit, "the replica index is clean")


@known_bug(
    "004-116",
    'design document 004: "Once the indexing is completed it will be switched to active"',
    breaks=PartitionReplicas.transfers_end_with_what_the_replica_has,
    sizes={Partition: 1},
)
class TransfersEndWhenNothingComes(PartitionReplicas):
    """The main index was queried when it had all documents: where they change all the time, never."""

    @action(fair=WEAK)
    def finish_transfer(self, p: Term[Partition]) -> None:
        """The main index has caught up."""
        super().finish_transfer(p)
        require(self.main.group[p].content.seq == self.kv[p], "it has all documents")


@known_bug(
    "004-200",
    'design document 004, "Queries during failover"',
    breaks=PartitionReplicas.copies_are_cleaned_up_during_other_transfers,
)
class CopiesAreKeptForOtherTransfers(PartitionReplicas):
    """The replica index is cleaned up when nothing is on transfer: where one node after the other fails, it only grows."""

    @action(fair=WEAK)
    def clean_up_replica(self, p: Term[Partition]) -> None:
        super().clean_up_replica(p)
        require(self.on_transfer.is_empty(), "nothing is on transfer")


@known_bug(
    "004-201",
    'design document 004: "replica partitions have the same semantics as the main partitions"',
    breaks=PartitionReplicas.replicas_are_added_as_soon_as_they_are_clean,
)
class ReplicasAreAddedWhenNothingIsOnTransfer(PartitionReplicas):
    """A replica that was here before is added again when the transfers of all others are done."""

    @action(fair=WEAK)
    def apply_pending_in_replica(self) -> None:
        active = some(self.replica.group[p].pending_active for p in Partition)
        require(active | self.on_transfer.is_empty(), "nothing else is on transfer")
        super().apply_pending_in_replica()


@known_bug(
    "004-210",
    'design document 004: "The partition is added to the main index as passive partition"',
    breaks=PartitionReplicas.partitions_are_added_as_soon_as_they_are_clean,
)
class AddedWhenTheReplicaIsClean(PartitionReplicas):
    """A partition that is clean in the main index is added there when the replica index has nothing to clean up, either."""

    @action(fair=WEAK)
    def apply_pending_in_main(self) -> None:
        """The main index adds what both have cleaned up."""
        unclean = some(self.replica.group[p].content.cbit for p in Partition)
        require(~unclean, "nothing is to be cleaned up in the replica index")
        super().apply_pending_in_main()


@known_bug(
    "004-213",
    FAILOVER,
    breaks=PartitionReplicas.copies_are_indexable_before_they_are_cleaned_up,
)
class MarksAreKeptForOtherTransfers(PartitionReplicas):
    """A copy that was transferred stays unindexable until nothing is on transfer, and so cannot be cleaned up."""

    @action(fair=WEAK)
    def resume_replica(self, p: Term[Partition]) -> None:
        """What is to be cleaned up in the replica index is made indexable when all transfers have ended."""
        super().resume_replica(p)
        require(self.on_transfer.is_empty(), "nothing is on transfer")


@known_bug(
    "004-214",
    FAILOVER,
    breaks=PartitionReplicas.replicas_are_active_as_soon_as_they_are_wanted,
    sizes={Partition: 1},
    budgets={PartitionReplicas.requests: 6},
)
class ActiveWhenTheMainIndexIsClean(PartitionReplicas):
    """The replica index was told of a failover when the main index could begin with the transfer: until then it went on as if
    nobody queried it.
    """

    @action(fair=WEAK)
    def activate_replica(self, p: Term[Partition]) -> None:
        """The replica index learns that its copy is queried, as the main index has nothing of it to clean up."""
        super().activate_replica(p)
        require(~self.main.group[p].content.cbit, "the main index is clean")


@known_bug(
    "004-215",
    'design document 004: active and passive, "Partition is indexed"',
    breaks=PartitionReplicas.the_main_index_is_updated_during_transfers,
)
class TheMainIndexWorksForTransfersAlone(PartitionReplicas):
    """After a failover the updater of the main index left out all but what is on transfer, so that this ends early."""

    @action(fair=WEAK)
    def index_main(self, p: Term[Partition]) -> None:
        """The updater of the main index indexes a mutation of what is on transfer, if anything is."""
        super().index_main(p)
        require(self.on_transfer.is_empty() | self.on_transfer.has(p), "it is on transfer")


@known_bug(
    "K10-one",
    "design document 004, the table of a failover",
    breaks=PartitionReplicas.partitions_fail_over_at_once,
    budgets={PartitionReplicas.writes: 0},
)
class PartitionsFailOverOneByOne(PartitionReplicas):
    """A replica is queried when the transfer of the last one is done: until then its rows are missing."""

    @action(by=MANAGER, spends=PartitionReplicas.requests)
    def fail_over(self, p: Term[Partition]) -> None:
        """The replica is queried from now on, if no other one is."""
        require(self.on_transfer.is_empty(), "nothing is on transfer")
        super().fail_over(p)


@known_bug(
    "004-236",
    FAILOVER,
    breaks=PartitionReplicas.replicas_are_unindexable_as_soon_as_they_are_active,
)
class ReplicasAreMarkedOneAfterTheOther(PartitionReplicas):
    """A replica became unindexable when no other transfer went on: what was queried meanwhile was indexed twice."""

    @action(fair=WEAK)
    def pause_replica(self, p: Term[Partition]) -> None:
        """No other replica on transfer is unindexable."""
        other = some(self.on_transfer.has(q) & self.replica.paused.has(q) for q in Partition)
        require(~other, "no other transfer goes on")
        super().pause_replica(p)


@known_bug(
    "004-260",
    'design document 004: "The partition is added to the main index as passive partition"',
    breaks=PartitionReplicas.partitions_are_added_as_soon_as_they_are_clean,
    budgets={PartitionReplicas.requests: 8, PartitionReplicas.writes: 0},
)
class AddedWhenAllIsClean(PartitionReplicas):
    """What is on transfer was added to the main index when that had nothing to clean up any more, of whichever partition."""

    @action(fair=WEAK)
    def apply_pending_in_main(self) -> None:
        """The main index is clean."""
        cleans = some(self.main.group[p].content.cbit for p in Partition)
        require(~cleans, "no partition is in cleanup")
        super().apply_pending_in_main()


@known_bug(
    "004-261",
    FAILOVER,
    breaks=PartitionReplicas.transfers_end_with_what_the_replica_has,
    budgets={PartitionReplicas.requests: 8, PartitionReplicas.writes: 0},
)
class TransfersEndWhenNothingIsPending(PartitionReplicas):
    """A transfer did not end while another one waited for the cleaner of the main index, which changes its states together."""

    @action(fair=WEAK)
    def finish_transfer(self, p: Term[Partition]) -> None:
        """Nothing is to be added to the main index."""
        pending = some(self.main.group[q].pending_passive for q in Partition)
        require(~pending, "no partition waits for the cleaner")
        super().finish_transfer(p)


BUGS = known_bugs_in(globals())

"""Partition versions: the list of failover logs in an index header, one for each partition, sorted by id.

The updater is told of new passive partitions by messages, of which several may come before it looks; the
group process, when it takes over what the updater has, adds what is missing itself. Everything that reads the
list takes it to be sorted (`partition_lists.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

from stagewright.machines.couchbase.partitions.partition_lists import (
    LAST_ID,
    Ids,
    PartitionId,
    Place,
    assign,
    has,
    inserted,
    is_empty,
    is_ordset,
    number_of,
    removed,
    rest,
)
from stagewright.spec import (
    Actor,
    Bool,
    Fairness,
    LeadsTo,
    Machine,
    Number,
    SetVar,
    Term,
    action,
    budget,
    final,
    invariant,
    leads_to,
    liveness,
    number,
    per,
    require,
    set_of,
)

WEAK = Fairness.WEAK
MANAGER = Actor("cluster manager")


class PartitionVersions(Machine):
    """The list of partition versions, and the messages to the updater that make it longer.

    There is no profile: the document has no versions, the code says no more than this.
    """

    requests = budget(4, doc="requests of the cluster manager")

    partitions: SetVar[PartitionId] = set_of(PartitionId)  # active or passive
    versions = per(Place, number(0, LAST_ID))  # partition_versions
    told = per(Place, number(0, LAST_ID))  # new_passive_partitions that the updater has to read

    @action(by=MANAGER, spends=requests)
    def add(self, p: Term[PartitionId]) -> None:
        """A partition becomes passive, and the updater is told: its messages are merged."""
        self.partitions.add(p)
        assign(self.told, self._merged(self.told, number_of(p)))

    @action(fair=WEAK)
    def read_message(self) -> None:
        """The updater adds the first of the partitions that it is told of to its list."""
        require(~is_empty(self.told), "there is a message")
        p = self.told[Place.first] + 0
        assign(self.versions, self._merged(self.versions, p))
        assign(self.told, rest(self.told))

    @action
    def take_over(self, p: Term[PartitionId]) -> None:
        """The group process adds a partition that the updater may not have read of yet."""
        require(self.partitions.has(p), "partition is in the index")
        assign(self.versions, self._merged(self.versions, number_of(p)))

    @action(by=MANAGER, spends=requests)
    def remove(self, p: Term[PartitionId]) -> None:
        """A partition is cleaned up: it leaves the list, and nobody is told of it any more."""
        self.partitions.discard(p)
        assign(self.versions, removed(self.versions, number_of(p)))
        assign(self.told, removed(self.told, number_of(p)))

    def _merged(self, ids: Ids, p: Number) -> Mapping[Place, Number]:
        """The union of two ordsets, of which one has one member."""
        return inserted(ids, p)

    @invariant
    def versions_are_sorted(self) -> Bool:
        """MB-14068: keys(partition_versions) are unique and sorted (the stats count duplicates)."""
        return is_ordset(self.versions)

    @invariant
    def messages_are_sorted(self) -> Bool:
        """MB-11371: what the updater merges into its lists is an ordset, too."""
        return is_ordset(self.told)

    @invariant
    def versions_are_of_partitions_of_the_index(self, p: Term[PartitionId]) -> Bool:
        """MB-21594: a partition that comes again does not find the failover log of its last time."""
        return has(self.versions, number_of(p)).implies(self.partitions.has(p))

    @invariant
    def no_partition_is_forgotten(self, p: Term[PartitionId]) -> Bool:
        """Every partition of the index has a version, or the updater is about to give it one."""
        known = has(self.versions, number_of(p)) | has(self.told, number_of(p))
        return self.partitions.has(p).implies(known)

    @invariant
    def messages_are_of_partitions_of_the_index(self, p: Term[PartitionId]) -> Bool:
        """Lemma: nobody is told of a partition that was cleaned up."""
        return has(self.told, number_of(p)).implies(self.partitions.has(p))

    @final
    def nothing_is_to_be_read(self) -> Bool:
        """An updater that has read its messages may stay as it is."""
        return is_empty(self.told)

    @liveness
    def messages_are_read(self, p: Term[PartitionId]) -> LeadsTo:
        """A new partition gets its version."""
        given = has(self.versions, number_of(p)) | ~self.partitions.has(p)
        return leads_to(self.partitions.has(p), given)

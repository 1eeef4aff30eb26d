"""Rollback and purge: an index whose partition has forgotten deletions, or lost its last documents.

The updater resumes from the last sequence number that it has indexed. That is wrong if deletions after it have
been purged, and if the documents are now those of a replica that did not have all of them.
"""

from __future__ import annotations

from typing import Self

from stagewright.spec import (
    Actor,
    Bool,
    Entity,
    Fairness,
    LeadsTo,
    Machine,
    Number,
    NumberVar,
    Record,
    SetVar,
    Term,
    accepts,
    action,
    bounded,
    budget,
    choose,
    constant,
    equivalent_drop,
    equivalent_loss,
    equivalent_replacement,
    equivalent_weakening,
    equivalents,
    every,
    fault_budget,
    final,
    history,
    invariant,
    leads_to,
    liveness,
    number,
    per,
    queue,
    record,
    require,
    scopes,
    set_of,
    step_property,
)

WEAK = Fairness.WEAK
CLIENT = Actor("client")
SOURCE = Actor("document store")
LAST_SEQ = 4
FAILOVERS = 2
DOCUMENTS = "the index follows whatever happens to the documents"


class Item(Entity, scope=2):
    """A document of the one partition."""


class Header(Record):
    """A header of the index file: up to where it is, on which branch of history, and its rows."""

    seq = number(0, LAST_SEQ)
    branch: NumberVar = number(
        0, FAILOVERS
    )  # entries of the failover log that the updater had seen
    rows = set_of(Item)


class Branch(Record):
    """An entry of the failover log: up to where history is the same before and after a failover."""

    seq = number(0, LAST_SEQ)


class PartitionRollback(Machine):
    """One partition, its replica, and an index of it.

    Beyond the document, which says nothing of either: there is no profile.
    """

    changes = budget(3, doc="documents that are written or deleted")
    failovers = fault_budget(2, doc="failovers to the replica")

    exercised_at = scopes({}, {Item: 1, changes: 4})

    # documents
    live: SetVar[Item] = set_of(Item)
    changed_at = per(Item, number(0, LAST_SEQ))  # 0: never, or deleted and purged
    high: NumberVar = number(0, LAST_SEQ)
    purged: NumberVar = number(0, LAST_SEQ)  # purge_seq: deletions up to here may be forgotten
    failover_log = queue(Branch, FAILOVERS)
    # the replica
    replica_live: SetVar[Item] = set_of(Item)
    replica_changed_at = per(Item, number(0, LAST_SEQ))
    replica_high: NumberVar = number(0, LAST_SEQ)
    replica_purged: NumberVar = number(0, LAST_SEQ)
    # the index
    index = record(Header)
    earlier = record(Header)  # the header before the last one
    empty = constant(record(Header))
    # how much of what was indexed last no failover has lost since
    common: NumberVar = history(number(0, LAST_SEQ))

    # -- documents ---------------------------------------------------------------------------------------

    @action(by=CLIENT, spends=changes)
    def write(self, d: Term[Item]) -> None:
        """A client writes a document."""
        self._advance(d)
        self.live.add(d)

    @action(by=CLIENT, spends=changes)
    def delete(self, d: Term[Item]) -> None:
        """A client deletes a document: what is left of it is a tombstone."""
        require(self.live.has(d), "document is there")
        self._advance(d)
        self.live.discard(d)

    @action(by=SOURCE)
    def purge(self, d: Term[Item]) -> None:
        """Compaction of the documents removes a tombstone for good."""
        require(~self.live.has(d), "what is left of the document is a tombstone")
        self.purged = choose(self.purged < self.changed_at[d], self.changed_at[d], self.purged)
        self.changed_at[d] = 0

    @action(by=SOURCE)
    def replicate(self) -> None:
        """The replica gets all documents, or a new one that follows after a failover."""
        self.replica_live = self.live
        self.replica_high = self.high
        self.replica_purged = self.purged
        for d in Item:
            self.replica_changed_at[d] = self.changed_at[d]

    @action(by=SOURCE, spends=failovers)
    def fail_over(self) -> None:
        """The replica takes over, with a new entry in the failover log: what it does not have is lost."""
        bounded(~self.failover_log.is_full(), "the failover log has room")
        self.failover_log.append(Branch(seq=self.replica_high))
        self.common = choose(self.common < self.replica_high, self.common, self.replica_high)
        self.live = self.replica_live
        self.high = self.replica_high
        self.purged = self.replica_purged
        for d in Item:
            self.changed_at[d] = self.replica_changed_at[d]

    # -- index -------------------------------------------------------------------------------------------

    @action(fair=WEAK)
    def update(self) -> None:
        """The updater resumes where the index is, and indexes all that has changed since."""
        require(self._is_behind(), "the index is behind")
        require(~self._has_diverged(), "no rollback is needed")
        require(~self._has_missed_deletions(), "no deletion is missed")
        since = self.index.seq + 0
        self.earlier = self.index
        for d in Item:
            changed = self.changed_at[d] > since
            rows = choose(changed, self.live.has(d), self.index.rows.has(d))
            self.index.rows.put(d, rows)
        self.index.seq = self.high
        self.index.branch = self.failover_log.length
        self.common = self.high

    @action(fair=WEAK)
    def roll_back(self) -> None:
        """The index has documents that were lost: it goes back to a header from before."""
        require(self._has_diverged(), "a rollback is needed")
        require(self._earlier_header_will_do(), "the header is old enough")
        self.index = self.earlier

    @action(fair=WEAK)
    def reset(self) -> None:
        """No header is old enough, or deletions were missed: the index starts again, empty."""
        lost = self._has_diverged() & ~self._earlier_header_will_do()
        require(lost | self._has_missed_deletions(), "no header helps")
        self.index = self.empty

    # -- what recurs -------------------------------------------------------------------------------------

    def _advance(self, d: Term[Item]) -> None:
        self.changed_at[d] = self.high + 1
        self.high = self.high + 1

    def _is_behind(self) -> Bool:
        return (self.index.seq != self.high) | (self.index.branch != self.failover_log.length)

    def _is_common(self, seq: Number, branch: Number) -> Bool:
        """No failover since then has lost what was there: as the failover log says."""
        return every(
            ((self.failover_log.length > i) & (branch <= i)).implies(
                seq <= self.failover_log[i].seq
            )
            for i in range(FAILOVERS)
        )

    def _has_diverged(self) -> Bool:
        """What was indexed last is of a branch of history that has ended before."""
        return ~self._is_common(self.index.seq, self.index.branch)

    def _earlier_header_will_do(self) -> Bool:
        return self._is_common(self.earlier.seq, self.earlier.branch)

    def _has_missed_deletions(self) -> Bool:
        """Deletions after the last one that was indexed may be purged."""
        return (self.index.seq > 0) & (self.index.seq < self.purged)

    # -- promises ----------------------------------------------------------------------------------------

    @accepts(write)
    def documents_change_while_the_index_is_behind(self) -> Bool:
        """No document waits for the index: 004 has the updater bring that "up to date with the KV server"."""
        return self._is_behind()

    @accepts(delete)
    def documents_are_deleted_while_the_index_is_behind(self, d: Term[Item]) -> Bool:
        """The same of a document that is deleted."""
        return self.live.has(d)

    @accepts(purge)
    def tombstones_are_forgotten_while_the_index_is_behind(self, d: Term[Item]) -> Bool:
        """Nor is a tombstone kept until the index has seen it."""
        return (self.changed_at[d] > 0) & ~self.live.has(d)

    @accepts(replicate)
    def replicas_do_not_wait_for_the_index(self) -> Bool:
        """What the replica has may be more than is indexed, or less; and after a failover another one follows."""
        return self._is_behind()

    @invariant
    def an_index_that_has_caught_up_is_right(self, d: Term[Item]) -> Bool:
        """004: the index is "up to date with the KV server": it has a row of every document that there is,
        and none of one that was deleted, or lost (MB-8689, MB-32420).
        """
        return self._is_behind() | (self.index.rows.has(d) == self.live.has(d))

    @step_property
    def the_index_goes_back_only_if_it_has_to(self, after: Self) -> Bool:
        """004: the updater goes on "from last indexed sequence", unless what it has indexed is lost, or what it
        has not is forgotten.
        """
        lost = self.index.seq > self.common
        back = after.index.seq < self.index.seq
        return back.implies(lost | self._needs_what_is_purged())

    @step_property
    def one_rollback_is_enough(self, after: Self) -> Bool:
        """A rollback goes to a header of the common history, and not behind it if there is one."""
        back = after.index.seq < self.index.seq
        useful = (self.earlier.seq <= self.common) & ~self._needs_what_is_purged()
        kept = useful.implies(after.index.seq >= self.earlier.seq)
        return back.implies((after.index.seq <= after.common) & kept)

    def _needs_what_is_purged(self) -> Bool:
        """Of the changes that the index is to get some may be deletions that nobody has any more."""
        return (self.index.seq > 0) & (self.index.seq < self.purged)

    @invariant
    def an_index_starts_empty(self) -> Bool:
        """What has indexed nothing has no rows."""
        return (self.index.seq > 0) | self.index.rows.is_empty()

    @final
    def the_index_has_caught_up(self) -> Bool:
        """An index that is up to date may stay as it is."""
        return ~self._is_behind()

    @liveness
    def the_index_catches_up(self) -> LeadsTo:
        """After every rollback and reset the index catches up."""
        return leads_to(self._is_behind(), ~self._is_behind())

    # -- what no promise can tell ----------------------------------------------------------------------

    harmless = equivalents(
        equivalent_loss(write, live, because=DOCUMENTS),
        equivalent_replacement(write, "live[d] becomes", because=DOCUMENTS),
        equivalent_drop(delete, "document is there", because=DOCUMENTS),
        equivalent_loss(delete, live, because=DOCUMENTS),
        equivalent_replacement(delete, "live[d] becomes", because=DOCUMENTS),
        equivalent_loss(purge, changed_at, because=DOCUMENTS),
        equivalent_replacement(purge, "changed_at[d] becomes", because=DOCUMENTS),
        equivalent_loss(fail_over, high, purged, because=DOCUMENTS),
        equivalent_drop(
            update,
            "the index is behind",
            because="an index that has caught up has nothing to update",
        ),
        equivalent_loss(
            update, earlier, because="with no header but the first a rollback is a reset"
        ),
        equivalent_loss(
            update, Header.rows, because="what has not changed since is what is indexed"
        ),
        equivalent_weakening(reset, "no header helps", because="what is empty stays empty"),
    )

"""Rollback and purge: an index whose partition has forgotten deletions, or lost its latest changes.

The updater resumes from "last indexed sequence" (004, "Index updater operation"). That is wrong if
later deletions have been purged, or if the documents are now those of a replica that did not have
all of the changes.
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
DOCUMENTS = "the index follows its documents, whatever happens to them"


class Item(Entity, scope=2):
    """A document of the one partition."""


class Header(Record):
    """A header of the index file: how far the index has got, on which branch of history, and its rows."""

    seq = number(0, LAST_SEQ)
    branch: NumberVar = number(0, FAILOVERS)  # how much of the failover log the updater had seen
    rows = set_of(Item)


class Branch(Record):
    """An entry of the failover log: up to where history is the same before and after a failover."""

    seq = number(0, LAST_SEQ)


class PartitionRollback(Machine):
    """One partition, its replica, and an index of it.

    This goes beyond the document, which mentions neither rollbacks nor purges; so there is no
    profile.
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
        """A client deletes a document, which leaves a tombstone."""
        require(self.live.has(d), "document is there")
        self._advance(d)
        self.live.discard(d)

    @action(by=SOURCE)
    def purge(self, d: Term[Item]) -> None:
        """Compaction of the document store removes a tombstone for good."""
        require(~self.live.has(d), "what is left of the document is a tombstone")
        self.purged = choose(self.purged < self.changed_at[d], self.changed_at[d], self.purged)
        self.changed_at[d] = 0

    @action(by=SOURCE)
    def replicate(self) -> None:
        """The replica catches up with all documents, or after a failover a new one does."""
        self.replica_live = self.live
        self.replica_high = self.high
        self.replica_purged = self.purged
        for d in Item:
            self.replica_changed_at[d] = self.changed_at[d]

    @action(by=SOURCE, spends=failovers)
    def fail_over(self) -> None:
        """The replica takes over, with a new entry in the failover log: changes that it does not have are lost."""
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
        """The updater resumes from the sequence number of the index, and indexes all that has changed since."""
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
        """The index has changes that were lost: it goes back to a header from before the branches parted."""
        require(self._has_diverged(), "a rollback is needed")
        require(self._earlier_header_will_do(), "the header is old enough")
        self.index = self.earlier

    @action(fair=WEAK)
    def reset(self) -> None:
        """No header is old enough, or deletions were missed: the index starts again, empty."""
        lost = self._has_diverged() & ~self._earlier_header_will_do()
        require(lost | self._has_missed_deletions(), "no header helps")
        self.index = self.empty

    # -- helpers -----------------------------------------------------------------------------------------

    def _advance(self, d: Term[Item]) -> None:
        bounded(self.high < LAST_SEQ, "a sequence number is left")
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
        """The last change that was indexed belongs to a branch of history that ended before it."""
        return ~self._is_common(self.index.seq, self.index.branch)

    def _earlier_header_will_do(self) -> Bool:
        return self._is_common(self.earlier.seq, self.earlier.branch)

    def _has_missed_deletions(self) -> Bool:
        """Deletions later than the last change that was indexed may have been purged."""
        return (self.index.seq > 0) & (self.index.seq < self.purged)

    # -- promises ----------------------------------------------------------------------------------------

    @accepts(write)
    def documents_change_while_the_index_is_behind(self, d: Term[Item]) -> Bool:
        """No document waits for the index: in 004 the updater brings it "up to date with the KV server". Nor does one that was
        deleted.
        """
        return self._is_behind()

    @accepts(delete)
    def documents_are_deleted_while_the_index_is_behind(self, d: Term[Item]) -> Bool:
        """The same for a document that is deleted."""
        return self.live.has(d)

    @accepts(purge)
    def tombstones_are_forgotten_while_the_index_is_behind(self, d: Term[Item]) -> Bool:
        """Nor are tombstones kept until the index has seen them."""
        return (self.changed_at[d] > 0) & ~self.live.has(d)

    @accepts(replicate)
    def replicas_do_not_wait_for_the_index(self) -> Bool:
        """The replica may have more changes than the index, or fewer; and after a failover there is a new one."""
        return self._is_behind()

    @invariant
    def an_index_that_has_caught_up_is_right(self, d: Term[Item]) -> Bool:
        """004: the index is "up to date with the KV server": it has a row for every document that
        there is, and none for one that was deleted, or lost (MB-8689, MB-32420).
        """
        return self._is_behind() | (self.index.rows.has(d) == self.live.has(d))

    @step_property
    def the_index_goes_back_only_if_it_has_to(self, after: Self) -> Bool:
        """004: the updater continues "from last indexed sequence", unless what it has indexed was
        lost, or deletions that it has not seen were purged.
        """
        lost = self.index.seq > self.common
        back = after.index.seq < self.index.seq
        return back.implies(lost | self._needs_what_is_purged())

    @step_property
    def one_rollback_is_enough(self, after: Self) -> Bool:
        """A rollback goes to a header of the common history if there is one, and no further back."""
        back = after.index.seq < self.index.seq
        useful = (self.earlier.seq <= self.common) & ~self._needs_what_is_purged()
        kept = useful.implies(after.index.seq >= self.earlier.seq)
        return back.implies((after.index.seq <= after.common) & kept)

    def _needs_what_is_purged(self) -> Bool:
        """Some of the changes that the index has yet to see may be deletions that nobody remembers."""
        return (self.index.seq > 0) & (self.index.seq < self.purged)

    @invariant
    def an_index_starts_empty(self) -> Bool:
        """An index that has indexed nothing has no rows."""
        return (self.index.seq > 0) | self.index.rows.is_empty()

    @final
    def the_index_has_caught_up(self) -> Bool:
        """An index that is up to date may stay as it is."""
        return ~self._is_behind()

    @liveness
    def the_index_catches_up(self) -> LeadsTo:
        """The index catches up, also after a rollback or a reset."""
        return leads_to(self._is_behind(), ~self._is_behind())

    # -- harmless changes ------------------------------------------------------------------------------

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
            because="an index that has caught up has no changes to index",
        ),
        equivalent_loss(
            update, earlier, because="with only the first header, a rollback is a reset"
        ),
        equivalent_loss(
            update, Header.rows, because="documents that have not changed since are indexed already"
        ),
        equivalent_weakening(
            reset, "no header helps", because="resetting an empty index changes nothing"
        ),
    )

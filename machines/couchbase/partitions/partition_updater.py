"""The updater's batches: how view B-tree and back index stay in step with the documents of a partition.

A changed document replaces its row: the back index says which key it had. Documents come in snapshots, each of
them once in a snapshot, and are written in batches. `partition_index.py` counts what this writes.
"""

from __future__ import annotations

from enum import Enum, auto

from stagewright.spec import (
    Actor,
    Bool,
    Entity,
    Fairness,
    FlagVar,
    LeadsTo,
    Machine,
    SetVar,
    Term,
    action,
    budget,
    choose,
    equivalent_drop,
    equivalent_loss,
    equivalents,
    every,
    final,
    flag,
    invariant,
    leads_to,
    liveness,
    optional,
    per,
    require,
    set_of,
)

CLIENTS = "what clients write is theirs"
WEAK = Fairness.WEAK
CLIENT = Actor("client")
SOURCE = Actor("document store")


class Document(Entity, scope=2):
    """A document of a partition."""


class Key(Enum):
    """What the map function emits for a document: its key in the view."""

    bangalore = auto()
    hyderabad = auto()


class PartitionUpdater(Machine):
    """Snapshots of documents that the updater loads, maps and writes in batches.

    There is no profile: the document and the code say the same.
    """

    mutations = budget(3, doc="changes of documents")
    crashes = budget(1, doc="updaters that die")

    value = per(Document, optional(Key))  # what the document is now; none if it is deleted
    changed: SetVar[Document] = set_of(Document)  # since it was last put into a snapshot
    snapshot: SetVar[Document] = set_of(Document)  # what is still to come of the current one
    in_snapshot = per(Document, optional(Key))  # the documents as the current one has them
    batch: SetVar[Document] = set_of(Document)  # documents that have something in the batch
    inserts = per(Document, set_of(Key))  # what the batch is to insert
    mapped = per(Document, optional(Key))  # the last that was mapped
    boundary: FlagVar = flag()  # the batch has a snapshot marker: nothing may be added to it
    view = per(Document, set_of(Key))  # rows of the view B-tree, by the document that they are of
    back_index = per(Document, optional(Key))

    @action(by=CLIENT, spends=mutations)
    def change(self, d: Term[Document], key: Term[Key]) -> None:
        """A client changes a document."""
        self.value[d] = key
        self.changed.add(d)

    @action(by=CLIENT, spends=mutations)
    def delete(self, d: Term[Document]) -> None:
        """A client deletes a document."""
        self.value[d] = None
        self.changed.add(d)

    @action(by=SOURCE, fair=WEAK)
    def mark_snapshot(self) -> None:
        """The next snapshot has what has changed, once; what is in the batch has to be written first."""
        require(self.snapshot.is_empty(), "the last snapshot is through")
        require(~self.changed.is_empty(), "documents have changed")
        self.snapshot = self.changed
        self.changed = frozenset()
        self.boundary = self._writes_before_the_next_snapshot()
        for d in Document:
            self.in_snapshot[d] = self.value[d]

    @action(by=SOURCE, fair=WEAK)
    def load(self, d: Term[Document]) -> None:
        """A document of the snapshot is loaded, mapped, and put into the batch."""
        require(self.snapshot.has(d), "document is in the snapshot")
        require(~self.boundary, "what came before the snapshot marker is written")
        self.snapshot.discard(d)
        self.batch.add(d)
        self.mapped[d] = self.in_snapshot[d]
        emitted = {key: self.in_snapshot[d] == key for key in Key}
        kept = {key: self.inserts[d].has(key) for key in Key}
        for key in Key:
            self.inserts[d].put(key, kept[key] | emitted[key])

    @action(fair=WEAK)
    def write_batch(self) -> None:
        """The batch is written: what the back index knows of a document is removed, the new key inserted."""
        require(~self.batch.is_empty(), "there is a batch")
        for d in Document:
            written = self.batch.has(d)
            removed = {key: written & (self.back_index[d] == key) for key in Key}
            rows = {key: self.view[d].has(key) & ~removed[key] for key in Key}
            for key in Key:
                self.view[d].put(key, rows[key] | self.inserts[d].has(key))
            self.back_index[d] = choose(written, self.mapped[d], self.back_index[d])
        self.boundary = False
        self._forget_batch()

    @action(spends=crashes)
    def crash(self) -> None:
        """The updater dies: the next one loads again what was not written."""
        self.changed = self.changed | self.snapshot | self.batch
        self.snapshot = frozenset()
        self.boundary = False
        self._forget_batch()

    # -- what recurs -------------------------------------------------------------------------------------

    def _writes_before_the_next_snapshot(self) -> Bool | bool:
        """A document of the next snapshot may be in the batch already."""
        return ~self.batch.is_empty()

    def _forget_batch(self) -> None:
        self.batch = frozenset()
        for d in Document:
            self.inserts[d] = frozenset()

    # -- promises ----------------------------------------------------------------------------------------

    @invariant
    def the_view_has_what_the_back_index_says(self, d: Term[Document]) -> Bool:
        """004: the back index is "to identify what was the previous key generated from a given document":
        the view has that row of it, and no other.
        """
        return every(self.view[d].has(key) == (self.back_index[d] == key) for key in Key)

    @invariant
    def an_index_that_is_up_to_date_is_right(self, d: Term[Document]) -> Bool:
        """004: an update makes the index "up to date with the KV server"."""
        through = self.changed.has(d) | self.snapshot.has(d) | self.batch.has(d)
        return through | (self.back_index[d] == self.value[d])

    @final
    def nothing_is_left_to_index(self) -> Bool:
        """An index that is up to date may stay as it is."""
        return self.changed.is_empty() & self.snapshot.is_empty() & self.batch.is_empty()

    @liveness
    def changes_are_indexed(self, d: Term[Document]) -> LeadsTo:
        """004: "The updater loads a batch of mutations" and "updates the view btrees"."""
        right = self.back_index[d] == self.value[d]
        return leads_to(~right, right)

    @liveness
    def the_updater_comes_to_an_end(self) -> LeadsTo:
        """Nothing is loaded again without need, for ever."""
        through = self.nothing_is_left_to_index()
        return leads_to(~through, through)

    # -- what no promise can tell ----------------------------------------------------------------------

    harmless = equivalents(
        equivalent_loss(change, value, because=CLIENTS),
        equivalent_loss(delete, value, because=CLIENTS),
        equivalent_drop(
            mark_snapshot, "documents have changed", because="a snapshot of nothing is none"
        ),
        equivalent_drop(
            load,
            "document is in the snapshot",
            because="what comes again is what it was in the snapshot",
        ),
        equivalent_drop(write_batch, "there is a batch", because="an empty batch writes nothing"),
        equivalent_loss(
            crash, snapshot, because="a stream that goes on brings what comes again anyway"
        ),
        equivalent_loss(crash, boundary, because="the next snapshot marker says it anew"),
    )

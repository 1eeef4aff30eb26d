"""The updater: loader, mapper and writer, sort records, the initial build and incremental updates.

The loader reads what has changed, each document once in a snapshot. The mapper applies the map
function of each view. The writer looks up the previous keys in the back index and puts operations
into sort record files, one for each tree; these are sorted and inserted into the trees in bulk.
Then a header is appended: it is what queries see.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Self

from stagewright.spec import (
    Actor,
    Bool,
    Entity,
    Fairness,
    FlagVar,
    LeadsTo,
    Machine,
    OptionalVar,
    SetVar,
    States,
    Term,
    accepts,
    action,
    budget,
    choose,
    each,
    equivalent_drop,
    equivalent_loss,
    equivalent_replacement,
    equivalent_value,
    equivalent_weakening,
    equivalents,
    every,
    fault_budget,
    final,
    flag,
    history,
    independent,
    invariant,
    leads_to,
    liveness,
    optional,
    per,
    require,
    scopes,
    set_of,
    some,
    sometimes,
    step_property,
)

WEAK = Fairness.WEAK
CLIENT = Actor("client")
LOADER = Actor("loader")
MAPPER = Actor("mapper")
WRITER = Actor("writer")
CLIENTS = "clients may write anything"
LESS = "a crash that loses less does no harm"
BATCH = 1  # documents in a batch of an incremental update, as 1 MB of operations


class Document(Entity, scope=2):
    """A document of a partition."""


class Tree(Enum):
    """The trees of a design document: those of its two views, which are addressed by number, and the back index."""

    view0 = auto()
    view1 = auto()
    back_index = auto()


class View(States):
    """A view, and its tree."""

    view0 = Tree.view0
    view1 = Tree.view1

    def __init__(self, tree: Tree) -> None:
        self.tree = tree


class City(States):
    """The city in a document; view 0 emits every city, view 1 only some."""

    bangalore = False
    hyderabad = True

    def __init__(self, in_view1: bool) -> None:
        self.in_view1 = in_view1


class IndexUpdate(Machine):
    """Documents of one partition, and the trees of a design document with two views.

    There is no profile: the code does what the document says.
    """

    mutations = budget(3, doc="changes of documents")
    errors = fault_budget(1, doc="changes to what a map function fails for")
    crashes = fault_budget(1, doc="updaters that die")

    # also with a document for which a map function fails once more
    exercised_at = scopes({}, {errors: 2, crashes: 0})

    # documents
    value = per(Document, optional(City))  # none: deleted, or not there yet
    failing: SetVar[Document] = set_of(Document)  # a map function fails for what they are now
    changed: SetVar[Document] = set_of(Document)  # since it was last put into a snapshot
    snapshot: SetVar[Document] = set_of(Document)  # documents that are still to be loaded of it
    in_snapshot = per(Document, optional(City))
    failing_in_snapshot: SetVar[Document] = set_of(Document)
    # the queues, each with room for one
    to_map: OptionalVar[Document] = optional(Document)
    to_write: OptionalVar[Document] = optional(Document)
    results = per(View, optional(City))  # of the map functions, for the document in `to_write`
    # the writer
    batch: SetVar[Document] = set_of(Document)  # documents with operations in the sort records
    removes = per(Document, per(View, set_of(City)))
    inserts = per(Document, per(View, set_of(City)))
    new_keys = per(Document, per(View, optional(City)))  # to be inserted into the back index
    written: SetVar[Tree] = set_of(Tree)  # their new nodes are in the file, but in no header yet
    boundary: FlagVar = flag()  # a snapshot begins: the batch before it is to be written first
    # the index, as the last header has it
    rows = per(Document, per(View, set_of(City)))
    back_index = per(Document, per(View, optional(City)))
    initial: FlagVar = flag(init=True)  # the index was never built: all sequence numbers are 0
    # documents that were there when it began to be built
    there: SetVar[Document] = history(set_of(Document))

    # -- documents ---------------------------------------------------------------------------------------

    @action(by=CLIENT, spends=mutations)
    def change(self, d: Term[Document], city: Term[City]) -> None:
        """A client changes a document."""
        self.value[d] = city
        self.failing.discard(d)
        self.changed.add(d)

    @action(by=CLIENT, spends=errors)
    def change_to_what_fails(self, d: Term[Document], city: Term[City]) -> None:
        """A client changes a document, and a map function fails for what it is now."""
        self.value[d] = city
        self.failing.add(d)
        self.changed.add(d)

    @action(by=CLIENT, spends=mutations)
    def delete(self, d: Term[Document]) -> None:
        """A client deletes a document."""
        self.value[d] = None
        self.failing.discard(d)
        self.changed.add(d)

    # -- loader and mapper -------------------------------------------------------------------------------

    @action(by=LOADER, fair=WEAK)
    def begin_snapshot(self) -> None:
        """The updater requests all updates since it last ran: each document once, in its present version."""
        require(self.snapshot.is_empty() & self._queues_are_empty(), "the last snapshot is through")
        require(~self.changed.is_empty(), "documents have changed")
        begins = self.initial & self.batch.is_empty()
        self.there = choose(begins, self.changed, self.there)
        self.snapshot = self.changed
        self.changed = frozenset()
        self.boundary = self._writes_before_the_next_snapshot()
        self.failing_in_snapshot = self.failing
        for d in Document:
            self.in_snapshot[d] = self.value[d]

    @action(by=LOADER, fair=WEAK)
    def load(self, d: Term[Document]) -> None:
        """A change goes to the queue of the mapper."""
        require(self.snapshot.has(d), "document is in the snapshot")
        require(self.to_map.is_none(), "there is room in the queue")
        require(~self.boundary, "what came before the snapshot is written")
        self.snapshot.discard(d)
        self.to_map = d

    @action(by=MAPPER, fair=WEAK)
    def map_document(self, d: Term[Document]) -> None:
        """The map function of each view is applied: the result is an array, with one entry for each view."""
        require(~self.failing_in_snapshot.has(d), "no map function fails for the document")
        self._dequeue_to_map(d)
        city = self.in_snapshot[d]
        hyderabad = city == City.hyderabad
        self.results[View.view0] = city
        self.results[View.view1] = choose(hyderabad, city, None)

    @action(by=MAPPER, fair=WEAK)
    def fail_to_map(self, d: Term[Document]) -> None:
        """A map function fails: this is logged, and the document gets no rows."""
        require(self.failing_in_snapshot.has(d), "a map function fails for the document")
        self._dequeue_to_map(d)
        self._drop_results(d)

    # -- writer ------------------------------------------------------------------------------------------

    @action(by=WRITER, fair=WEAK)
    def add_operations(self, d: Term[Document]) -> None:
        """The previous keys are looked up in the back index; operations go to the sort record file of each tree."""
        require(self.to_write == d, "the document is in the queue of the writer")
        require(self._has_room(), "there is room in the batch")
        self.to_write = None
        self.batch.add(d)
        for view in View:
            self.new_keys[d][view] = self.results[view]
            for city in City:
                previous = ~self._is_initial() & (self.back_index[d][view] == city)
                emitted = self.results[view] == city
                removed, inserted = self.removes[d][view].has(city), self.inserts[d][view].has(city)
                self.removes[d][view].put(city, removed | previous)
                self.inserts[d][view].put(city, inserted | emitted)

    @action(by=WRITER, fair=WEAK)
    def insert_in_bulk(self, tree: Term[Tree]) -> None:
        """The sort records of a tree are sorted and inserted: its new nodes are appended to the file."""
        require(self._is_due(), "the batch is full, or nothing more comes")
        require(~self.batch.is_empty(), "there are operations")
        require(~self.written.has(tree), "the tree is not written yet")
        self.written.add(tree)

    @action(by=WRITER, fair=WEAK)
    def write_header(self) -> None:
        """A header is appended, with the roots of all trees and the sequence numbers of the batch."""
        require(self._trees_are_written(), "every tree has its new root")
        for d in Document:
            in_batch = self.batch.has(d)
            for view in View:
                there = self.written.has(view.tree)
                for city in City:
                    kept = self.rows[d][view].has(city) & ~self.removes[d][view].has(city)
                    now = kept | self.inserts[d][view].has(city)
                    self.rows[d][view].put(city, choose(there, now, self.rows[d][view].has(city)))
                known = choose(in_batch, self.new_keys[d][view], self.back_index[d][view])
                indexed = self.written.has(Tree.back_index)
                self.back_index[d][view] = choose(indexed, known, self.back_index[d][view])
        self.initial = False
        self.there = frozenset()
        self.boundary = False
        self._forget_batch()

    @action(spends=crashes)
    def crash(self) -> None:
        """The updater dies: the next one loads again what no header covers."""
        lost = self.changed | self.snapshot | self.batch
        for d in Document:
            self.changed.put(d, lost.has(d) | (self.to_map == d) | (self.to_write == d))
        self.snapshot = frozenset()
        self.to_map = None
        self.to_write = None
        self.boundary = False
        self.there = frozenset()
        self._forget_batch()

    # -- helpers -----------------------------------------------------------------------------------------

    def _dequeue_to_map(self, d: Term[Document]) -> None:
        require(self.to_map == d, "the document is in the queue of the mapper")
        require(self.to_write.is_none(), "there is room in the queue of the writer")
        self.to_map = None
        self.to_write = d

    def _drop_results(self, _d: Term[Document]) -> None:
        for view in View:
            self.results[view] = None

    def _queues_are_empty(self) -> Bool:
        return self.to_map.is_none() & self.to_write.is_none()

    def _writes_before_the_next_snapshot(self) -> Bool | bool:
        """A document of the next snapshot may be in the batch already."""
        return ~self.batch.is_empty()

    def _is_initial(self) -> Bool:
        return self.initial

    def _has_room(self) -> Bool:
        """004: in an initial build "the writer do not batch the incoming mutations"."""
        return self._is_initial() | (self.batch.size() < BATCH)

    def _is_due(self) -> Bool:
        ends = self.snapshot.is_empty() & self._queues_are_empty()
        return ends | self.boundary | ~self._has_room()

    def _trees_are_written(self) -> Bool:
        return every(self.written.has(tree) for tree in each(Tree))

    def _forget_batch(self) -> None:
        self.batch = frozenset()
        self.written = frozenset()
        for d in Document:
            for view in View:
                self.removes[d][view] = frozenset()
                self.inserts[d][view] = frozenset()
                self.new_keys[d][view] = None

    def _is_on_its_way(self, d: Term[Document]) -> Bool:
        queued = (self.to_map == d) | (self.to_write == d)
        return self.changed.has(d) | self.snapshot.has(d) | queued | self.batch.has(d)

    # -- promises ----------------------------------------------------------------------------------------

    @accepts(change)
    def documents_change_at_any_time(self, d: Term[Document], city: Term[City]) -> Bool:
        """No document waits for the updater: it requests "all the updates that happened since the
        last time the updater ran".
        """
        return self.value[d] != city

    @accepts(delete)
    def documents_are_deleted_at_any_time(self, d: Term[Document]) -> Bool:
        """The same for a document that is deleted."""
        return self.value[d].is_some()

    @independent(
        load,
        map_document,
        fail_to_map,
        add_operations,
        insert_in_bulk,
        write_header,
        of=(value, failing, changed),
    )
    def updates_wait_for_no_end_of_changes(self) -> None:
        """004: the updater "requests all the updates that happened since the last time the updater ran": what changes while it
        loads, maps and writes them is left to the next snapshot, and nobody waits until nothing does.
        """

    @independent(load, map_document, fail_to_map, of=(batch, written, rows, back_index, initial))
    def loader_and_mapper_work_while_the_writer_does(self) -> None:
        """004: loader, mapper and writer "operate in a pipeline fashion": what is on its way through a queue does not wait until
        the writer is done with a batch, but for the first of a snapshot.
        """

    @independent(map_document, fail_to_map, add_operations, of=snapshot)
    def mapper_and_writer_work_while_the_loader_does(self) -> None:
        """The same of those behind the loader: they take what has come through the queue, and do not wait until all is loaded."""

    @invariant
    def the_views_have_what_the_back_index_says(self, d: Term[Document]) -> Bool:
        """004: "documentId => [view0-key, view1-key, view2-key …]": each view has exactly the rows
        of the document that its entry names.
        """
        return every(
            self.rows[d][view].has(city) == (self.back_index[d][view] == city)
            for view in each(View)
            for city in each(City)
        )

    @invariant
    def an_index_that_is_up_to_date_is_right(self, d: Term[Document]) -> Bool:
        """004: the updater brings the index "up to date with the KV server": each view has what its
        map function emits for the document, and nothing where a map function fails: there is "one
        item per updated document (if there were no errors)".
        """
        city, failing = self.value[d], self.failing.has(d)
        right0 = every(
            self.rows[d][View.view0].has(c) == (~failing & (city == c)) for c in each(City)
        )
        right1 = every(
            self.rows[d][View.view1].has(c)
            == (~failing & (city == c) & c.column(lambda member: member.in_view1))
            for c in each(City)
        )
        return self._is_on_its_way(d) | (right0 & right1)

    @step_property
    def an_initial_build_is_one_snapshot(self, after: Self) -> Bool:
        """004: in an initial build "all mutations written into the sort record files and is used to
        build the initial view btrees": the first header has everything that was there when it
        began.
        """
        built = self.initial & ~after.initial
        left = some(
            self.there.has(d) & (self.snapshot.has(d) | (self.to_map == d) | (self.to_write == d))
            for d in each(Document)
        )
        return (built & ~self.boundary).implies(~left)

    @invariant
    def batches_are_small(self) -> Bool:
        """004: "queries will see updates applied to btree at shortest intervals"."""
        return self.initial | (self.batch.size() <= BATCH)

    @invariant
    def sort_records_are_removed_with_the_header(self) -> Bool:
        """Trees are written only for a batch: nothing is left over for the next one."""
        return self.batch.is_empty().implies(self.written.is_empty())

    @final
    def nothing_is_left_to_index(self) -> Bool:
        """An index that is up to date may stay as it is."""
        through = self.changed.is_empty() & self.snapshot.is_empty() & self._queues_are_empty()
        return through & self.batch.is_empty()

    @liveness
    def changes_are_indexed(self, d: Term[Document]) -> LeadsTo:
        """004: "The updater loads a batch of mutations" and "updates the view btrees"."""
        return leads_to(self._is_on_its_way(d), ~self._is_on_its_way(d))

    @sometimes
    def the_pipeline_is_full(self) -> Bool:
        """004: loader, mapper and writer "operate in a pipeline fashion": one document is loaded
        while another, which is already mapped, waits for the writer.
        """
        return self.to_map.is_some() & self.to_write.is_some()

    @sometimes
    def an_initial_build_has_several_documents(self) -> Bool:
        """All documents go into one build, bottom up."""
        return self.initial & (self.batch.size() > BATCH)

    # -- harmless changes --------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_loss(change, value, failing, because=CLIENTS),
        equivalent_loss(change_to_what_fails, value, failing, because=CLIENTS),
        equivalent_loss(delete, value, failing, because=CLIENTS),
        equivalent_replacement(change, "failing[d] becomes", because=CLIENTS),
        equivalent_replacement(change_to_what_fails, "failing[d] becomes", because=CLIENTS),
        equivalent_replacement(delete, "failing[d] becomes", because=CLIENTS),
        equivalent_drop(
            begin_snapshot, "documents have changed", because="an empty snapshot changes nothing"
        ),
        equivalent_loss(
            begin_snapshot,
            there,
            because="what is noted for a promise alone: where less is noted, less is promised",
        ),
        equivalent_loss(
            write_header, there, because="what is noted for a promise alone is noted once"
        ),
        equivalent_loss(
            crash,
            there,
            because="what is noted for a promise alone is noted again when the build begins again",
        ),
        equivalent_loss(
            add_operations, removes, inserts, because="view 1 emits only one of the cities"
        ),
        equivalent_replacement(
            add_operations,
            "removes[d][view1][bangalore] becomes",
            because="view 1 emits only one of the cities",
        ),
        equivalent_weakening(
            insert_in_bulk,
            "the batch is full, or nothing more comes",
            because="one document fills a batch here",
        ),
        equivalent_drop(
            insert_in_bulk,
            "the tree is not written yet",
            because="writing a tree twice changes nothing",
        ),
        equivalent_loss(
            write_header, rows, back_index, because="a header is written only after every tree"
        ),
        *(
            equivalent_value(
                view, lambda view: view.tree, because="every tree is written before the header"
            )
            for view in (View.view0, View.view1)
        ),
        equivalent_loss(
            _forget_batch, new_keys, because="only the keys of documents in the batch are inserted"
        ),
        equivalent_loss(
            crash,
            snapshot,
            to_map,
            to_write,
            boundary,
            because=LESS,
        ),
    )

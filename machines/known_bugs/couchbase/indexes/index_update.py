"""Mistakes put back into `IndexUpdate`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.couchbase.indexes.index_update import (
    BATCH,
    CLIENT,
    LOADER,
    MAPPER,
    WEAK,
    WRITER,
    City,
    Document,
    IndexUpdate,
    Tree,
    View,
)
from stagewright.spec import (
    Bool,
    Fairness,
    SetVar,
    Term,
    action,
    choose,
    only_when,
    require,
    set_of,
)
from stagewright.spec.known_bugs import known_bug, known_bugs_in

NO_ERRORS = {IndexUpdate.errors: 0}


# -- what goes wrong -------------------------------------------------------------------------------


@known_bug(
    "004-124",
    'design document 004: "They operate in a pipeline fashion"',
    breaks=IndexUpdate.the_pipeline_is_full,
    budgets={IndexUpdate.crashes: 0, IndexUpdate.errors: 0},
)
class OneDocumentAtATime(IndexUpdate):
    """A document was loaded when the last one was mapped, and with the writer."""

    @action(by=LOADER, fair=WEAK)
    def load(self, d: Term[Document]) -> None:
        """A change goes to the queue of the mapper."""
        super().load(d)
        require(self.to_write.is_none(), "the writer has the last one")


@known_bug(
    "004-171",
    'design document 004: "one item per updated document (if there were no errors)"',
    breaks=IndexUpdate.an_index_that_is_up_to_date_is_right,
    budgets={IndexUpdate.crashes: 0},
)
class FailedDocumentsAreLeftOut(IndexUpdate):
    """A document for which a map function has failed is not mapped any more, whatever a client makes of it."""

    failed: SetVar[Document] = set_of(Document)

    @action(by=MAPPER, fair=WEAK)
    def fail_to_map(self, d: Term[Document]) -> None:
        super().fail_to_map(d)
        self.failed.add(d)

    @action(by=MAPPER, fair=WEAK)
    def map_document(self, d: Term[Document]) -> None:
        require(~self.failing_in_snapshot.has(d), "no map function fails for the document")
        self._dequeue_to_map(d)
        city, failed = self.in_snapshot[d], self.failed.has(d)
        self.results[View.view0] = choose(failed, None, city)
        self.results[View.view1] = choose(failed | (city != City.hyderabad), None, city)


@known_bug(
    "K5-error",
    "design document 004: one item per updated document (if there were no errors)",
    breaks=IndexUpdate.an_index_that_is_up_to_date_is_right,
    budgets={IndexUpdate.crashes: 0},
)
class FailedDocumentsKeepTheirRows(IndexUpdate):
    """A document for which a map function failed was left out, and kept the rows of what it was."""

    def _drop_results(self, d: Term[Document]) -> None:
        for view in View:
            self.results[view] = self.back_index[d][view]


@known_bug(
    "K6-header",
    "design document 004, back index: a new index header with new root node information for all btrees",
    breaks=IndexUpdate.the_views_have_what_the_back_index_says,
    budgets=NO_ERRORS,
)
class HeaderWithoutTheBackIndex(IndexUpdate):
    """A header was written when the views were, and the back index was not."""

    def _trees_are_written(self) -> Bool:
        return self.written.has(Tree.view0) & self.written.has(Tree.view1)


@known_bug(
    "K6-lookup",
    "design document 004, back index",
    breaks=IndexUpdate.the_views_have_what_the_back_index_says,
    budgets=NO_ERRORS,
)
class PreviousKeysAreNotLookedUp(IndexUpdate):
    """An incremental update went on as an initial build: it did not look up the previous keys."""

    def _is_initial(self) -> Bool:
        return self.initial | ~self.initial


@known_bug(
    "K7-batch",
    "design document 004, incremental updates: batch our changes in size of 1MB",
    breaks=IndexUpdate.batches_are_small,
    budgets={IndexUpdate.errors: 0, IndexUpdate.crashes: 0},
)
class IncrementalUpdatesAreNotBatched(IndexUpdate):
    """An incremental update collected all changes: queries saw none of them before the last."""

    def _has_room(self) -> Bool:
        return self.batch.size() < BATCH + 1


@known_bug(
    "K7-initial",
    "design document 004, initial index builder",
    breaks=IndexUpdate.an_initial_build_is_one_snapshot,
    budgets={IndexUpdate.errors: 0, IndexUpdate.crashes: 0},
)
class InitialBuildIsBatched(IndexUpdate):
    """The first documents of an initial build were inserted as a batch: the tree was not built bottom up."""

    def _has_room(self) -> Bool:
        return self.batch.is_empty()


@known_bug(
    "K7-single",
    "design document 004, initial index builder",
    breaks=IndexUpdate.an_initial_build_has_several_documents,
    budgets={IndexUpdate.errors: 0, IndexUpdate.crashes: 0},
)
class DocumentsComeOneByOne(IndexUpdate):
    """Every document was a snapshot of its own: an initial build had one, and the others were inserted later."""

    @action
    def begin_snapshot(self) -> None:
        """The updater does not ask for all of them."""
        only_when(False)

    @action(by=LOADER, fair=Fairness.WEAK)
    def begin_with(self, d: Term[Document]) -> None:
        """It asks for the next change, whenever it has indexed one."""
        require(self.snapshot.is_empty() & self._queues_are_empty(), "the last snapshot is through")
        require(self.changed.has(d), "the document has changed")
        self.changed.discard(d)
        self.snapshot.add(d)
        self.in_snapshot[d] = self.value[d]
        self.failing_in_snapshot = self.failing
        self.boundary = self._writes_before_the_next_snapshot()


@known_bug(
    "Z57",
    "MB-13160",
    breaks=IndexUpdate.the_views_have_what_the_back_index_says,
    budgets={IndexUpdate.errors: 0, IndexUpdate.crashes: 0},
)
class BatchesGoAcrossSnapshots(IndexUpdate):
    """A document of the next snapshot came into a batch that had it already.

    Both times the back index, not written yet, says the same of it: the first of the two new rows is never
    removed.
    """

    def _writes_before_the_next_snapshot(self) -> Bool | bool:
        return False


# -- what is never done ----------------------------------------------------------------------------


@known_bug(
    "004-151",
    "design document 004, index updater operation",
    breaks=IndexUpdate.changes_are_indexed,
    budgets={IndexUpdate.crashes: 0},
)
class AMapErrorEndsTheUpdater(IndexUpdate):
    """The updater died of a document whose map function fails, and so did the next one: nothing was indexed any more."""

    @action(by=MAPPER, fair=WEAK)
    def fail_to_map(self, d: Term[Document]) -> None:
        """It is loaded again, with all others."""
        require(self.failing_in_snapshot.has(d), "a map function fails for the document")
        require(self.to_map == d, "the document is in the queue of the mapper")
        lost = self.changed | self.snapshot | self.batch
        for o in Document:
            self.changed.put(o, lost.has(o) | (o == d) | (self.to_write == o))
        self.snapshot = frozenset()
        self.to_map = None
        self.to_write = None
        self.boundary = False
        self._forget_batch()


@known_bug(
    "004-226",
    'design document 004: "one item per updated document (if there were no errors)"',
    breaks=IndexUpdate.changes_are_indexed,
    budgets={IndexUpdate.crashes: 0},
)
class AMapErrorIsTriedAgain(IndexUpdate):
    """A document for which a map function fails stayed in the mapper's queue, and was mapped again for ever."""

    @action(by=MAPPER, fair=WEAK)
    def fail_to_map(self, d: Term[Document]) -> None:
        """It is tried again."""
        require(self.failing_in_snapshot.has(d), "a map function fails for the document")
        require(self.to_map == d, "the document is in the queue of the mapper")


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "004-42",
    "design document 004, index updates",
    breaks=IndexUpdate.documents_are_deleted_at_any_time,
)
class DeletesWaitForTheUpdater(IndexUpdate):
    """A document that is on its way into the index is not deleted."""

    @action(by=CLIENT, spends=IndexUpdate.mutations)
    def delete(self, d: Term[Document]) -> None:
        """It is indexed."""
        require(~self._is_on_its_way(d), "the document is indexed")
        super().delete(d)


@known_bug(
    "K5-documents",
    "design document 004: the updater requests all updates since it last ran",
    breaks=IndexUpdate.documents_change_at_any_time,
)
class DocumentsWaitForTheUpdater(IndexUpdate):
    """No document changes while a snapshot is loaded."""

    @action(by=CLIENT, spends=IndexUpdate.mutations)
    def change(self, d: Term[Document], city: Term[City]) -> None:
        """A document changes when no snapshot is loaded."""
        super().change(d, city)
        require(self.snapshot.is_empty(), "no snapshot is loaded")


@known_bug(
    "004-241",
    "design document 004, initial index builder and incremental updates",
    breaks=IndexUpdate.updates_wait_for_no_end_of_changes,
    budgets=NO_ERRORS,
)
class InitialBuildsWaitForWhatChanges(IndexUpdate):
    """An initial build is written when nothing has changed meanwhile: where documents keep changing, queries see no row."""

    @action(by=WRITER, fair=WEAK)
    def insert_in_bulk(self, tree: Term[Tree]) -> None:
        """All that there is goes into the build."""
        through = self.initial & self.snapshot.is_empty() & self._queues_are_empty()
        require(~through | self.changed.is_empty(), "nothing has changed since")
        super().insert_in_bulk(tree)


@known_bug(
    "004-242",
    'design document 004: loader, mapper and writer "operate in a pipeline fashion"',
    breaks=IndexUpdate.loader_and_mapper_work_while_the_writer_does,
    budgets=NO_ERRORS,
)
class LoadedWhenTheBatchIsWritten(IndexUpdate):
    """In an incremental update the next document is loaded when the batch of the last one is written."""

    @action(by=LOADER, fair=WEAK)
    def load(self, d: Term[Document]) -> None:
        """The writer has no batch, unless the index is built."""
        require(self.initial | self.batch.is_empty(), "the last batch is written")
        super().load(d)


@known_bug(
    "004-262",
    'design document 004: loader, mapper and writer "operate in a pipeline fashion"',
    breaks=IndexUpdate.mapper_and_writer_work_while_the_loader_does,
)
class TheWriterWaitsForTheLoader(IndexUpdate):
    """The writer began when all of a snapshot was loaded: where that is more than the queues have room for, never."""

    @action(by=WRITER, fair=WEAK)
    def add_operations(self, d: Term[Document]) -> None:
        """Everything is loaded."""
        require(self.snapshot.is_empty(), "nothing is left to load")
        super().add_operations(d)


BUGS = known_bugs_in(globals())

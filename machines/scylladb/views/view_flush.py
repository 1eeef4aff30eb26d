"""What a view building worker reads: rows are flushed before a view is built from them.

A batch builds views from the sstables of its base table. Rows that were in the memtable when a view was
created have no view update of their own, so they must be flushed first; rows written since the view exists
update it themselves. The worker remembers for which views it has flushed.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Self

from stagewright.machines.scylladb.views.view_task import COORDINATOR, WORKER
from stagewright.spec import (
    Actor,
    Bool,
    Entity,
    Fairness,
    LeadsTo,
    Machine,
    OneVar,
    SetVar,
    Term,
    action,
    budget,
    equivalent_drop,
    equivalent_loss,
    equivalents,
    final,
    invariant,
    leads_to,
    liveness,
    one_of,
    per,
    require,
    set_of,
    step_property,
)

WEAK = Fairness.WEAK
CLIENT = Actor("client")


class Row(Entity, scope=2):
    """A row of the base table."""


class View(Entity, scope=2):
    """A view of the base table."""


class Flush(Enum):
    """The flush of the base table."""

    none = auto()
    begun = auto()
    done = auto()  # the rows are in sstables; the worker has not noted it yet


class ViewFlush(Machine):
    """Rows in memtable and sstables, views that are created at any time, and the worker that flushes."""

    restarts = budget(1, doc="restarts of the node, or changes of the base that is processed")

    memtable: SetVar[Row] = set_of(Row)
    sstables: SetVar[Row] = set_of(Row)
    created: SetVar[View] = set_of(View)
    rows = per(View, set_of(Row))  # of a view
    built: SetVar[View] = set_of(View)
    # the worker
    flush: OneVar[Flush] = one_of(Flush, init=Flush.none)
    to_flush_for: SetVar[View] = set_of(View)  # the views there were when the flush began
    flushed_views: SetVar[View] = set_of(View)
    batch: SetVar[View] = set_of(View)  # views that the batch builds

    @action(by=CLIENT)
    def write(self, r: Term[Row]) -> None:
        """A row is written to the memtable, and to every view that there is."""
        require(~self.memtable.has(r) & ~self.sstables.has(r), "a new row")
        self.memtable.add(r)
        for v in View:
            self.rows[v].put(r, self.created.has(v))

    @action(by=CLIENT)
    def create_view(self, v: Term[View]) -> None:
        """A view is created, with tasks to build it."""
        require(~self.created.has(v), "not created yet")
        self.created.add(v)

    @action(by=WORKER, fair=WEAK)
    def begin_flush(self) -> None:
        """A task is for a view that was not flushed for: the worker notes the views, and flushes."""
        require(self.flush == Flush.none, "no flush goes on")
        require(~(self.created <= self.flushed_views), "a view was not flushed for")
        self.flush = Flush.begun
        self.to_flush_for = self.created

    @flush.step(Flush.begun, Flush.done, by=WORKER, fair=WEAK)
    def flush_memtable(self) -> None:
        """What is in the memtable goes to sstables."""
        self.sstables = self.sstables | self.memtable
        self.memtable = frozenset()

    @flush.step(Flush.done, Flush.none, by=WORKER, fair=WEAK)
    def end_flush(self) -> None:
        """The worker knows now that it has flushed for the views which there were before."""
        self._note_flushed()

    @action(by=COORDINATOR, fair=WEAK)
    def start_batch(self, v: Term[View]) -> None:
        """A batch with a task of the view starts, once the table was flushed for it."""
        require(~self.built.has(v), "the view is to be built")
        require(self.flushed_views.has(v), "the table was flushed for the view")
        require(self.batch.is_empty(), "no other batch")
        self.batch.add(v)

    @action(by=WORKER, fair=WEAK)
    def build(self, v: Term[View]) -> None:
        """The batch has read the sstables and updated the view; that was the view's last task."""
        require(self.batch.has(v), "the batch builds the view")
        for r in Row:
            self.rows[v].put(r, self.rows[v].has(r) | self.sstables.has(r))
        self.built.add(v)
        self.batch.discard(v)

    @action(by=WORKER, spends=restarts)
    def start_over(self) -> None:
        """The node restarts, or another base is processed: the worker's notes are cleared."""
        self.flush = Flush.none
        self.flushed_views = frozenset()
        self.batch = frozenset()

    def _note_flushed(self) -> None:
        self.flushed_views = self.flushed_views | self.to_flush_for

    # -- promises --------------------------------------------------------------------------------------

    @invariant
    def built_views_are_complete(self, v: Term[View]) -> Bool:
        """SUCCESS of a view means that every row is in it (SCYLLADB-2781)."""
        complete = (self.memtable | self.sstables) <= self.rows[v]
        return self.built.has(v).implies(complete)

    @invariant
    def view_rows_are_rows_of_the_base(self, v: Term[View]) -> Bool:
        """A view has no row that its base table does not have."""
        return self.rows[v] <= (self.memtable | self.sstables)

    @step_property
    def rows_are_kept(self, after: Self) -> Bool:
        """A flush loses no row."""
        return (self.memtable | self.sstables) <= (after.memtable | after.sstables)

    @invariant
    def one_batch_on_the_shard(self) -> Bool:
        """000: "it can execute only one batch per shard"."""
        return self.batch.size() <= 1

    @invariant
    def flushed_views_miss_no_row(self, v: Term[View]) -> Bool:
        """A row that is not in an sstable, after the flush for a view, has updated the view itself."""
        flushed = self.flushed_views.has(v)
        flushing = (self.flush == Flush.done) & self.to_flush_for.has(v)
        return (flushed | flushing).implies(self.memtable <= self.rows[v])

    @invariant
    def the_worker_knows_views_that_are(self) -> Bool:
        """Lemma: what is flushed for, in a batch, or built, is created; a batch is flushed for."""
        known = self.to_flush_for | self.flushed_views | self.built
        return (known <= self.created) & (self.batch <= self.flushed_views)

    @final
    def all_built(self) -> Bool:
        """All views are built."""
        return self.created <= self.built

    @liveness
    def views_are_built(self, v: Term[View]) -> LeadsTo:
        """Every view is built in the end."""
        return leads_to(self.created.has(v), self.built.has(v))

    # -- what no promise can tell ----------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(write, "a new row", because="a row may be written again"),
        equivalent_drop(
            create_view,
            "not created yet",
            because="a view may be there already, or never be created",
        ),
        equivalent_loss(
            create_view, created, because="a view may be there already, or never be created"
        ),
        equivalent_drop(
            begin_flush, "a view was not flushed for", because="a flush too many does no harm"
        ),
        equivalent_loss(
            start_over, flush, flushed_views, because="what the worker still knows is still so"
        ),
    )

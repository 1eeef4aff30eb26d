"""A table whose tablets are to be split or merged: its replicas, which prepare it, and their sstables.

Source: ScyllaDB's split compaction, its split monitor, and the writers of repair and streaming (2024 to 2026).
`tablet_resize.py` adds the decisions, the topology coordinator's steps, and the promises.
"""

from __future__ import annotations

from enum import Enum, auto

from stagewright.spec import (
    ANY,
    Actor,
    Bool,
    Entity,
    Fairness,
    Machine,
    NumberVar,
    OneVar,
    Record,
    SetVar,
    Term,
    action,
    budget,
    equivalent_drop,
    equivalent_loss,
    equivalents,
    every,
    initially,
    number,
    one_of,
    optional,
    per,
    record,
    require,
    set_of,
    some,
)

WEAK = Fairness.WEAK
COORDINATOR = Actor("topology coordinator")
BALANCER = Actor("load balancer")
DECISIONS = 3
NOTHING = "otherwise nothing happens"
NO_DECISION = "a table that needs no decision does no harm"
LAST_TIME = 1


class Node(Entity, scope=2):
    """A node that holds replicas."""


class Half(Enum):
    """The halves of the token ring: the ranges of the two tablets, or of the two parts of the one."""

    left = auto()
    right = auto()


class Layout(Enum):
    """The tablets of the table."""

    one_tablet = auto()
    two_tablets = auto()


class Resize(Enum):
    """A resize decision (`resize_type` of the tablet map)."""

    none = auto()
    split = auto()
    merge = auto()


class Track(Enum):
    """What the topology state machine is doing."""

    idle = auto()
    tablet_migration = auto()
    tablet_resize_finalization = auto()


MIGRATION, FINALIZATION = Track.tablet_migration, Track.tablet_resize_finalization


class View(Record):
    """What a node has learned, maybe behind group0."""

    layout = one_of(Layout)
    decision = one_of(Resize, init=Resize.none)
    sequence = number(0, DECISIONS)
    track = one_of(Track, init=Track.idle)


class ResizeReplicas(Machine):
    """Replicas of a table, as nodes learn of its tablets and of decisions to change them."""

    restarts = budget(0, doc="nodes that start again")

    # committed to group0
    layout: OneVar[Layout] = one_of(Layout)
    decision: OneVar[Resize] = one_of(Resize, init=Resize.none)
    sequence: NumberVar = number(0, DECISIONS)  # `resize_seq_number` of the last decision
    track: OneVar[Track] = one_of(Track, init=Track.idle)
    replicas = per(Half, set_of(Node, init=ANY))
    leaving = per(Half, optional(Node))
    pending = per(Half, optional(Node))
    streams_layout: OneVar[Layout] = one_of(
        Layout
    )  # of the CDC streams of the table, if it has a log
    streams_since: NumberVar = number(0, LAST_TIME + DECISIONS)
    # nodes
    view = per(Node, record(View))
    rows = per(Half, set_of(Node, init=ANY))  # who stores rows of the half
    unsplit: SetVar[Node] = set_of(Node)  # have an sstable with rows of both halves
    splitting: SetVar[Node] = set_of(Node)  # run a split compaction
    ready = per(Node, number(0, DECISIONS))  # `split_ready_seq_number`
    writer = per(Node, optional(Layout))  # of a repair or a stream: the tablets that it began with

    @initially
    def at_rest_with_all_rows_in_place(self, n: Term[Node]) -> Bool:
        """The table has one tablet or two, each with its replicas; the nodes know."""
        left, right = self.replicas[Half.left], self.replicas[Half.right]
        stored = every(self.rows[h] == self.replicas[h] for h in list(Half))
        known = (self.view[n].layout == self.layout) & (self.streams_layout == self.layout)
        one = (self.layout == Layout.one_tablet).implies(left == right)
        return stored & known & one & ~left.is_empty() & (left.size() == right.size())

    # -- split compaction -----------------------------------------------------------------------------------------

    @action(fair=WEAK)
    def learn(self, n: Term[Node]) -> None:
        """A node applies what is committed; storage of a tablet that was split must be split already."""
        require(~self._is_current(n), "node is behind")
        self.view[n].layout = self.layout
        self.view[n].decision = self.decision
        self.view[n].sequence = self.sequence
        self.view[n].track = self.track

    @action
    def flush(self, n: Term[Node]) -> None:
        """A replica writes an sstable: for each half one, where it is to be split."""
        require(self._stores(n), "the node has rows")
        require(self.view[n].layout == Layout.one_tablet, "it knows of one tablet")
        require(~self._splits(n), "it does not split what it writes")
        self.unsplit.add(n)

    @action(fair=WEAK)
    def start_splitting(self, n: Term[Node]) -> None:
        """A replica that has learned of the split starts to split its sstables."""
        require(self._splits(n), "it has learned of the split")
        require(self.unsplit.has(n), "it has something to split")
        require(~self.splitting.has(n), "it does not split yet")
        self.splitting.add(n)

    @action(fair=WEAK)
    def finish_splitting(self, n: Term[Node]) -> None:
        """The sstables are split: new ones, each with rows of one half, replace them."""
        require(self.splitting.has(n), "it splits")
        self._add_rows(n, self.splitting.has(n))
        self.splitting.discard(n)
        self.unsplit.discard(n)

    @action(fair=WEAK)
    def get_ready(self, n: Term[Node]) -> None:
        """All sstables of the node are split: it is ready for this split."""
        require(self._splits(n), "it has learned of the split")
        require(~self.unsplit.has(n), "nothing is left to split")
        require(self.ready[n] != self.view[n].sequence, "it was not ready yet")
        self.ready[n] = self.view[n].sequence

    # -- writers that take long: repair, streaming, load-and-stream -------------------------------------------------

    @action
    def start_writer(self, n: Term[Node]) -> None:
        """A repair begins to write an sstable; not while the table's tablets are about to change."""
        require(self._stores(n), "the node has rows")
        require(self.writer[n].is_none(), "it has no writer")
        require(self.view[n].track != FINALIZATION, "no resize is being finalized")
        leaves = some(self.leaving[half] == n for half in list(Half))
        require(~leaves, "the node does not leave a tablet")
        self.writer[n] = self.view[n].layout

    @action(fair=WEAK)
    def finish_writer(self, n: Term[Node]) -> None:
        """The sstable is added; before that it is split if the node is to split what it has."""
        require(self.writer[n].is_some(), "a writer runs")
        whole = (self.writer[n] == Layout.one_tablet) & ~self._splits_new_sstables(n)
        self.unsplit.put(n, self.unsplit.has(n) | whole)
        self._add_rows(n, self.writer[n] == Layout.one_tablet)
        self.writer[n] = None

    @action(spends=restarts)
    def restart(self, n: Term[Node]) -> None:
        """A node starts again: what it was doing is gone, its sstables and what it had learned are not."""
        self.ready[n] = 0
        self.writer[n] = None
        self.splitting.discard(n)

    # -- what recurs ---------------------------------------------------------------------------------------------

    def _is_current(self, n: Term[Node]) -> Bool:
        view = self.view[n]
        decided = (view.decision == self.decision) & (view.sequence == self.sequence)
        return decided & (view.layout == self.layout) & (view.track == self.track)

    def _stores(self, n: Term[Node]) -> Bool:
        return some(self.rows[half].has(n) for half in list(Half))

    def _add_rows(self, n: Term[Node], whole: Bool) -> None:
        """What a long operation on the node's one tablet has written is added to its rows."""
        rows = {half: self.rows[half].has(n) | whole for half in Half}
        for half in list(Half):
            self.rows[half].put(n, rows[half])

    def _splits(self, n: Term[Node]) -> Bool:
        """The node knows that its one tablet is to be split."""
        view = self.view[n]
        return (view.layout == Layout.one_tablet) & (view.decision == Resize.split)

    def _splits_new_sstables(self, n: Term[Node]) -> Bool:
        """A writer splits what it adds to a table that is to be split (scylladb PR #19427)."""
        return self._splits(n)

    # -- what no promise can tell ----------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(learn, "node is behind", because=NOTHING),
        equivalent_loss(flush, unsplit, because="a replica that writes nothing does no harm"),
        equivalent_drop(
            start_splitting,
            "it has learned of the split",
            because="only one tablet is ever to be split",
        ),
        equivalent_drop(start_splitting, "it does not split yet", because=NOTHING),
        equivalent_drop(
            finish_splitting, "it splits", because="what is split at once does no harm"
        ),
        equivalent_drop(
            get_ready,
            "it has learned of the split",
            because="nobody asks for the number of a decision that is over",
        ),
        equivalent_drop(get_ready, "it was not ready yet", because=NOTHING),
        equivalent_drop(
            start_writer,
            "it has no writer",
            because="a writer that takes the place of another one has ended it",
        ),
        equivalent_loss(start_writer, writer, because="a writer that does not begin does no harm"),
        equivalent_drop(finish_writer, "a writer runs", because=NOTHING),
        equivalent_loss(
            finish_writer, unsplit, because="a writer that leaves nothing unsplit does no harm"
        ),
        equivalent_loss(
            restart, ready, writer, splitting, because="a node that goes on as before does no harm"
        ),
        equivalent_loss(
            _add_rows, rows, because="the rows are there, unless they were removed in the meantime"
        ),
    )

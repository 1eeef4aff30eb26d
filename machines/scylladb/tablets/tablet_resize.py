"""Tablet resize: a table's tablet is split in two, or its two tablets are merged, while data moves.

Sources: ScyllaDB's resize decisions, split compaction, its split monitor, the writers of repair and streaming, and
`tablet_resize_finalization` of its topology coordinator (2024 to 2026); design document 001 for the tracks of the
topology state machine. The guards with which requests hold a tablet across a resize are in `resize_guards.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Annotated, Self

from stagewright.machines.scylladb.tablets.resize_layout import Half, Layout
from stagewright.spec import (
    ANY,
    Actor,
    Bool,
    Entity,
    Fairness,
    FlagVar,
    LeadsTo,
    Machine,
    Number,
    NumberVar,
    OneVar,
    Record,
    SetVar,
    Term,
    accepts,
    action,
    between,
    bounded,
    budget,
    choose,
    equivalent_drop,
    equivalent_loss,
    equivalent_replacement,
    equivalent_weakening,
    equivalents,
    every,
    fault_budget,
    final,
    flag,
    independent,
    initially,
    invariant,
    leads_to,
    lemma,
    liveness,
    number,
    one_of,
    optional,
    per,
    record,
    require,
    scopes,
    set_of,
    some,
    step_property,
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


class TabletResize(Machine):
    """One table: decisions to split or merge, their preparation at the replicas, and their finalization."""

    decisions = budget(2, doc="resize decisions")
    migrations = budget(1, doc="migrations that balance load")
    restarts = fault_budget(0, doc="nodes that start again")
    failovers = fault_budget(0, doc="changes of the topology coordinator")

    exercised_at = scopes(
        {decisions: 1, migrations: 0},
        {decisions: 1, failovers: 1},
        {decisions: 1, restarts: 1},
        {Node: 3, decisions: 0, migrations: 2},
        {Node: 3, decisions: 1, migrations: 0},
        {decisions: 1},
        {decisions: 2, migrations: 0},
        {decisions: 1, migrations: 0, restarts: 2, failovers: 2},
    )

    # committed to group0
    layout: OneVar[Layout] = one_of(Layout)
    decision: OneVar[Resize] = one_of(Resize, init=Resize.none)
    sequence: NumberVar = number(0, DECISIONS)  # `resize_seq_number` of the last decision
    track: OneVar[Track] = one_of(Track, init=Track.idle)
    replicas = per(Half, set_of(Node, init=ANY))
    leaving = per(Half, optional(Node))
    pending = per(Half, optional(Node))
    # of the CDC streams of the table, if it has a log
    streams_layout: OneVar[Layout] = one_of(Layout)
    streams_since: NumberVar = number(0, LAST_TIME + DECISIONS)
    # nodes
    view = per(Node, record(View))
    rows = per(Half, set_of(Node, init=ANY))  # who stores rows of the half
    unsplit: SetVar[Node] = set_of(Node)  # have an sstable with rows of both halves
    splitting: SetVar[Node] = set_of(Node)  # run a split compaction
    ready = per(Node, number(0, DECISIONS))  # `split_ready_seq_number`
    writer = per(Node, optional(Layout))  # of a repair or a stream: the tablets that it began with

    # the topology coordinator
    reported = per(Node, number(0, DECISIONS))  # the last split for which a node was ready
    drained: FlagVar = flag()  # the barrier of the finalization has passed

    # == replicas, which prepare a resize ================================================================

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

    # -- helpers -------------------------------------------------------------------------------------------------

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

    # == decisions, and the topology coordinator's steps =================================================

    # -- decisions ---------------------------------------------------------------------------------------------

    @decision.step(Resize.none, Resize.split, by=BALANCER, spends=decisions)
    def decide_split(self) -> None:
        """The table's tablets have become too large on average."""
        require(self.layout == Layout.one_tablet, "the table has one tablet")
        bounded(self.sequence < DECISIONS, "a number is left")
        self.sequence = self.sequence + 1

    @decision.step(Resize.none, Resize.merge, by=BALANCER, spends=decisions)
    def decide_merge(self) -> None:
        """The table's tablets have become too small on average."""
        require(self.layout == Layout.two_tablets, "the table has two tablets")
        bounded(self.sequence < DECISIONS, "a number is left")
        self.sequence = self.sequence + 1

    @decision.step((Resize.split, Resize.merge), Resize.none, by=BALANCER)
    def revoke(self) -> None:
        """The average size has changed again: the decision is no longer needed."""

    @action(by=COORDINATOR, fair=WEAK)
    def collect_stats(self, n: Term[Node]) -> None:
        """The coordinator asks a node for which split it is ready."""
        require(self.reported[n] != self.ready[n], "there is news")
        self.reported[n] = self.ready[n]

    # -- migrations ------------------------------------------------------------------------------------------------

    @action(by=BALANCER, spends=migrations)
    def migrate(self, h: Term[Half], leaving: Term[Node], pending: Term[Node]) -> None:
        """A tablet is moved to balance load."""
        require(
            self.replicas[h].has(leaving) & ~self.replicas[h].has(pending), "it has such replicas"
        )
        one = self.layout == Layout.one_tablet
        require(~one | (h == Half.left), "the tablet exists")
        self._start_migration(h, leaving, pending)

    @action(by=BALANCER, fair=WEAK)
    def colocate(self, leaving: Term[Node], pending: Term[Node]) -> None:
        """To be merged, tablets must have the same replicas: one of the second moves to one of the first."""
        require(self.decision == Resize.merge, "the tablets are to be merged")
        left, right = self.replicas[Half.left], self.replicas[Half.right]
        require(left.has(pending) & self._lacks(Half.left, leaving), "the replica is not colocated")
        require(
            right.has(leaving) & self._lacks(Half.right, pending),
            "the second tablet has it elsewhere",
        )
        self._start_migration(Term.of(Half.right), leaving, pending)

    @action(by=COORDINATOR, fair=WEAK)
    def finish_migration(self, h: Term[Half], leaving: Term[Node], pending: Term[Node]) -> None:
        """The rows have been streamed to the pending replica, and removed from the leaving one."""
        require(self.leaving[h] == leaving, "the node leaves the tablet")
        require(self.pending[h] == pending, "the other node joins it")
        learned = every(self._is_current(n) for n in Node)
        require(learned, "every node has learned of the migration")
        require(~self.splitting.has(leaving), "no split compaction works on what is removed")
        require(self.writer[leaving].is_none(), "no writer works on what is removed")
        self.leaving[h] = None
        self.pending[h] = None
        whole = self.layout == Layout.one_tablet
        for n in Node:
            moves = {half: (h == half) | whole for half in Half}
            stays = {half: ~(moves[half] & (n == leaving)) for half in Half}
            comes = {half: moves[half] & (n == pending) for half in Half}
            replicas = {x: (self.replicas[x].has(n) & stays[x]) | comes[x] for x in Half}
            rows = {x: (self.rows[x].has(n) & self._keeps(n, x, stays)) | comes[x] for x in Half}
            for half in list(Half):
                self.replicas[half].put(n, replicas[half])
                self.rows[half].put(n, rows[half])
            received = (n == pending) & whole & ~self._splits(n)
            self.unsplit.put(n, (self.unsplit.has(n) & (n != leaving)) | received)

    @action(by=COORDINATOR, fair=WEAK)
    def leave_track(self) -> None:
        """No tablet is in transition: the topology state machine leaves the tablet migration track."""
        require(self.track == MIGRATION, "in the tablet migration track")
        require(~self._migrates(), "no tablet is in transition")
        self.track = Track.idle

    # -- finalization ----------------------------------------------------------------------------------------------

    @action(by=COORDINATOR, fair=WEAK)
    def begin_finalization(self) -> None:
        """The decision can be carried out, and no tablet migrates: finalize it."""
        require(self.track == Track.idle, "topology is idle")
        require(self._is_split_everywhere() | self._is_colocated(), "it is prepared")
        self.track = FINALIZATION

    @action(by=COORDINATOR, fair=WEAK)
    def drain(self) -> None:
        """Barrier: what began under older token metadata is over on every node."""
        require(self.track == FINALIZATION, "a resize is being finalized")
        require(~self.drained, "not passed yet")
        learned = every(self._is_current(n) for n in Node)
        require(learned, "every node has learned of the finalization")
        over = every(self.writer[n].is_none() for n in Node)
        require(over, "no writer of before is left")
        self.drained = True

    @layout.step(
        Layout.one_tablet,
        Layout.two_tablets,
        by=COORDINATOR,
        fair=WEAK,
    )
    def finalize_split(self, now: Annotated[Number, between(0, LAST_TIME)]) -> None:
        """The table gets two tablets, each with the replicas of the one, and streams of its CDC log."""
        require(self._is_split_everywhere(), "every replica is ready, says the plan made anew")
        self._finalize(now)
        self.streams_layout = Layout.two_tablets

    @layout.step(
        Layout.two_tablets,
        Layout.one_tablet,
        by=COORDINATOR,
        fair=WEAK,
    )
    def finalize_merge(self, now: Annotated[Number, between(0, LAST_TIME)]) -> None:
        """The table gets one tablet with the replicas that the two have."""
        require(self._is_colocated(), "the replicas are colocated, says the plan made anew")
        self._finalize(now)
        self.streams_layout = Layout.one_tablet
        # The new map is made from the first tablet's replicas.
        self.replicas[Half.right] = self.replicas[Half.left]

    @action(by=COORDINATOR, fair=WEAK)
    def give_up_finalization(self) -> None:
        """The plan is made again, and has nothing to finalize any more."""
        require(self.track == FINALIZATION, "a resize is being finalized")
        require(self.decision == Resize.none, "the decision was revoked")
        self.track = Track.idle
        self.drained = False

    # -- faults --------------------------------------------------------------------------------------------------

    @action(by=COORDINATOR, spends=failovers)
    def fail_over(self) -> None:
        """Another node becomes the topology coordinator: what only the old one knew is lost."""
        self.drained = False
        for n in Node:
            self.reported[n] = 0

    # -- helpers -------------------------------------------------------------------------------------------------

    def _lacks(self, half: Half, n: Term[Node]) -> Bool:
        return ~self.replicas[half].has(n)

    def _migrates(self) -> Bool:
        return some(self.pending[half].is_some() for half in list(Half))

    def _start_migration(self, h: Term[Half], leaving: Term[Node], pending: Term[Node]) -> None:
        require(self.track != FINALIZATION, "no resize is being finalized")
        require(self.pending[h].is_none(), "the tablet is not in transition")
        self.leaving[h] = leaving
        self.pending[h] = pending
        self.track = MIGRATION

    def _keeps(self, _n: Node | Term[Node], half: Half, stays: Mapping[Half, Bool]) -> Bool:
        """A replica that leaves is cleaned up: its node keeps only rows of tablets that it still replicates."""
        return stays[half]

    def _is_split_everywhere(self) -> Bool:
        """Every replica has reported that it is ready for this split."""
        ready = every(self.reported[n] == self.sequence for n in self.replicas[Half.left])
        return (self.decision == Resize.split) & ready

    def _is_colocated(self) -> Bool:
        """The tablets to be merged have the same replicas."""
        same = self.replicas[Half.left] == self.replicas[Half.right]
        return (self.decision == Resize.merge) & same

    def _finalize(self, now: Number) -> None:
        require(self.track == FINALIZATION, "a resize is being finalized")
        require(self.drained, "older token metadata is out of use")
        self.decision = Resize.none
        self.track = Track.idle
        self.drained = False
        later = self.streams_since < now
        self.streams_since = choose(later, now, self.streams_since + 1)

    # -- promises ------------------------------------------------------------------------------------------------

    @invariant
    def split_tablets_have_split_sstables(self, n: Term[Node]) -> Bool:
        """A split is finalised only if every sstable is split (scylladb #19378, #19416, #19024)."""
        split = self.view[n].layout == Layout.two_tablets
        return (split | (self.layout == Layout.two_tablets)).implies(~self.unsplit.has(n))

    @accepts(migrate)
    def tablets_are_balanced_while_a_resize_is_prepared(
        self, h: Term[Half], leaving: Term[Node], pending: Term[Node]
    ) -> Bool:
        """001, "independently": a decision may take hours to prepare; its finalization alone excludes migrations."""
        there = (self.layout == Layout.two_tablets) | (h == Half.left)
        moves = self.replicas[h].has(leaving) & ~self.replicas[h].has(pending)
        return there & moves & self.pending[h].is_none() & (self.track != FINALIZATION)

    @accepts(colocate)
    def tablets_to_be_merged_are_moved_independently(
        self, leaving: Term[Node], pending: Term[Node]
    ) -> Bool:
        """001: "Tablets are migrated in parallel and independently": also the one that is to lie where the other does, which
        may be on its way itself.
        """
        left, right = self.replicas[Half.left], self.replicas[Half.right]
        apart = left.has(pending) & ~left.has(leaving) & right.has(leaving) & ~right.has(pending)
        rests = self.pending[Half.right].is_none() & (self.track != FINALIZATION)
        return (self.decision == Resize.merge) & apart & rests

    @accepts(finish_migration)
    def migrations_end_while_others_prepare_a_resize(
        self, h: Term[Half], leaving: Term[Node], pending: Term[Node]
    ) -> Bool:
        """The same for a migration that goes on: once all have learned of it, it waits for what works on the replica
        that leaves, and not for what other replicas split or write.
        """
        moves = (self.leaving[h] == leaving) & (self.pending[h] == pending)
        learned = every(self._has_learned(n) for n in Node)
        return moves & learned & ~self.splitting.has(leaving) & self.writer[leaving].is_none()

    def _has_learned(self, n: Term[Node]) -> Bool:
        view = self.view[n]
        decided = (view.decision == self.decision) & (view.sequence == self.sequence)
        return decided & (view.layout == self.layout) & (view.track == self.track)

    @accepts(decide_split)
    def splits_are_decided_at_any_time(self) -> Bool:
        """001: "to incrementally make decision", beside "active migrations": of a table without a decision the balancer
        decides whatever its tablets, and the topology, are doing, and what replicas still do for the last decision.
        """
        return (self.layout == Layout.one_tablet) & (self.decision == Resize.none)

    @accepts(decide_merge)
    def merges_are_decided_at_any_time(self) -> Bool:
        """The same for the two tablets, which need not be colocated before."""
        return (self.layout == Layout.two_tablets) & (self.decision == Resize.none)

    @accepts(revoke)
    def decisions_are_revoked_until_they_are_carried_out(self) -> Bool:
        """ScyllaDB's code: the balancer revokes a decision whose reason is gone, however far its preparation is: prepared, or
        even being finalized, which then finds nothing to finalize.
        """
        return self.decision != Resize.none

    @accepts(start_splitting)
    def replicas_split_as_soon_as_they_know(self, n: Term[Node]) -> Bool:
        """ScyllaDB's code: each replica splits for itself, and waits for no other."""
        splits = (self.view[n].layout == Layout.one_tablet) & (
            self.view[n].decision == Resize.split
        )
        return splits & self.unsplit.has(n) & ~self.splitting.has(n)

    @step_property
    def sstables_are_whole_until_they_are_split(self, after: Self, n: Term[Node]) -> Bool:
        """An sstable with rows of both halves goes when it is split, or with its tablet; a restart splits none, nor does the
        end of the decision for which it was being split.
        """
        gone = self.unsplit.has(n) & ~after.unsplit.has(n)
        left = some(self.leaving[half] == n for half in list(Half))
        split = self.splitting.has(n) & (self.decision == after.decision)
        return gone.implies(split | left)

    @accepts(flush)
    def sstables_are_flushed_whole_as_long_as_no_split_is_decided(self, n: Term[Node]) -> Bool:
        """Sstables are split once a split is decided (scylladb PR #16580): who knows of none writes one sstable
        for its one tablet, which a later split finds.
        """
        stores = some(self.rows[half].has(n) for half in list(Half))
        one = self.view[n].layout == Layout.one_tablet
        return stores & one & (self.view[n].decision != Resize.split)

    @accepts(start_writer)
    def replicas_are_repaired_while_a_resize_is_prepared(self, n: Term[Node]) -> Bool:
        """The same for repairs: what they write is split as it is added."""
        free = self.writer[n].is_none() & (self.view[n].track != FINALIZATION)
        leaves = some(self.leaving[half] == n for half in list(Half))
        return free & ~leaves & some(self.rows[half].has(n) for half in list(Half))

    @independent(
        leave_track,
        finalize_split,
        finalize_merge,
        give_up_finalization,
        of=(view, rows, unsplit, splitting, ready, writer),
    )
    def the_topology_waits_for_no_sstable(self) -> None:
        """001: "to allow for current migrations to drain, after which the state machine will exit the tablet migration
        track": what replicas still split or write does not keep it there, nor in the finalization once its barrier has
        passed.
        """

    @independent(learn, finish_splitting, finish_writer, of=(Node, reported, drained))
    def replicas_prepare_each_for_itself(self) -> None:
        """ScyllaDB's code: what a node has split, or written, takes its place when it is done, wherever the others are;
        and what is committed each node learns for itself.
        """

    @independent(
        start_splitting,
        finish_splitting,
        get_ready,
        collect_stats,
        of=(replicas, leaving, pending, track, Node),
    )
    def resizes_are_prepared_while_tablets_move(self) -> None:
        """001: "to incrementally make decision", beside "active migrations": what is to be split is split, and is heard to
        be, wherever the table's tablets are on their way, and whatever other nodes do.
        """

    @step_property
    def repairs_go_on_while_tablets_change(self, after: Self, n: Term[Node]) -> Bool:
        """001 has a barrier "make sure that no reads that started before this point exist": by waiting for what began before,
        a repair as well, whose operator is not told that it failed because its table was to be resized, or its tablet moved:
        neither when that begins, nor when its node learns of it, nor behind a barrier, nor for another coordinator.
        """
        passes = self.drained != after.drained
        asks = some(self.reported[m] != after.reported[m] for m in Node)
        decided = (self.decision != after.decision) | (self.track != after.track)
        starts = some(self.pending[half] != after.pending[half] for half in list(Half))
        learns = some(self.view[m] != after.view[m] for m in Node)
        changes = passes | asks | decided | starts | learns
        return changes.implies(self.writer[n] == after.writer[n])

    @invariant
    def ready_replicas_have_nothing_to_split(self, n: Term[Node]) -> Bool:
        """Once a node is ready for a split, all that it stores is split (scylladb PR #26528)."""
        ready = self._splits(n) & (self.ready[n] == self.view[n].sequence)
        return ready.implies(~self.unsplit.has(n))

    @invariant
    def replicas_store_the_rows(self, h: Term[Half], n: Term[Node]) -> Bool:
        """A replica of a tablet stores the rows of its range, also after it was split or merged."""
        return self.replicas[h].has(n).implies(self.rows[h].has(n))

    @invariant
    def only_replicas_store_rows(self, h: Term[Half], n: Term[Node]) -> Bool:
        """001, when not in transition: "The storage layer (database) on any node contains writes for keys
        which belong to the tablet only if that shard is one of the current tablet replicas."
        """
        return self.rows[h].has(n).implies(self.replicas[h].has(n))

    @invariant
    def one_tablet_has_one_replica_set(self) -> Bool:
        """Both halves of the ring are of the one tablet, as long as there is one."""
        same = self.replicas[Half.left] == self.replicas[Half.right]
        return (self.layout == Layout.one_tablet).implies(same)

    @invariant
    def tablets_do_not_migrate_while_a_resize_is_finalized(self) -> Bool:
        """Finalization is a state of its own, "to ensure it does not overlap with tablet transitions"
        (scylladb PR #22148), and 001: transitions happen in the tablet_migration track only.
        """
        return self._migrates().implies(self.track == MIGRATION)

    @step_property
    def a_finalization_begins_when_nothing_is_left_to_prepare(self, after: Self) -> Bool:
        """ScyllaDB's code: no tablet migrates meanwhile: it is not begun to wait for sstables that are to be split, nor for
        replicas that are to be moved.
        """
        begins = (self.track != FINALIZATION) & (after.track == FINALIZATION)
        unsplit = some(self.replicas[Half.left].has(n) & self.unsplit.has(n) for n in Node)
        together = self.replicas[Half.left] == self.replicas[Half.right]
        split = (self.decision == Resize.split) & ~unsplit
        return begins.implies(split | ((self.decision == Resize.merge) & together))

    @invariant
    def decisions_fit_the_tablets(self) -> Bool:
        """One tablet can be split, two can be merged."""
        split = (self.decision == Resize.split).implies(self.layout == Layout.one_tablet)
        return split & (self.decision == Resize.merge).implies(self.layout == Layout.two_tablets)

    @invariant
    def log_and_base_table_have_the_same_tablets(self) -> Bool:
        """The CDC streams of a table are switched by the command that resizes it."""
        return self.streams_layout == self.layout

    @step_property
    def stream_timestamps_grow(self, after: Self) -> Bool:
        """Each set of CDC streams starts later than the one before, whoever's clock it is."""
        switched = after.streams_layout != self.streams_layout
        return switched.implies(after.streams_since > self.streams_since)

    @step_property
    def decisions_are_numbered(self, after: Self) -> Bool:
        """Each decision has a sequence number of its own, by which replicas and coordinator mean the same
        (scylladb PR #16580): no number is used again, whatever became of the decision that had it.
        """
        emitted = (self.decision == Resize.none) & (after.decision != Resize.none)
        numbered = emitted == (after.sequence > self.sequence)
        return numbered & (self.sequence <= after.sequence)

    @step_property
    def tablets_change_by_a_decision(self, after: Self) -> Bool:
        """Finalization carries out the current decision, and none that was revoked."""
        split = (self.layout == Layout.one_tablet) & (after.layout == Layout.two_tablets)
        merge = (self.layout == Layout.two_tablets) & (after.layout == Layout.one_tablet)
        is_split = split.implies(self.decision == Resize.split)
        return is_split & merge.implies(self.decision == Resize.merge)

    @step_property
    def nothing_else_revokes_a_decision(self, after: Self, h: Term[Half], n: Term[Node]) -> Bool:
        """001: "to incrementally make decision", beside "active migrations": what was decided and is not carried out is given
        up by the balancer alone: no migration that starts or ends, and no other coordinator, takes it back.
        """
        gone = (self.decision != Resize.none) & (after.decision == Resize.none)
        revoked = gone & (self.layout == after.layout)
        moves = (self.pending[h] != after.pending[h]) | (self.track != after.track)
        learned = (self.reported[n] != after.reported[n]) | (self.drained != after.drained)
        return revoked.implies(~moves & ~learned)

    @step_property
    def a_tablet_has_one_transition_at_a_time(self, after: Self, h: Term[Half]) -> Bool:
        """No migration takes the place of one that is going on (001: a transition has its own state)."""
        both = self.pending[h].is_some() & after.pending[h].is_some()
        return both.implies(after.pending[h] == self.pending[h])

    @invariant
    def a_transition_is_of_a_tablet(self, h: Term[Half]) -> Bool:
        """A transition has a tablet, the only one is the first, and two replicas: one leaves it, and another one comes."""
        whole = self.pending[h].is_some() == self.leaving[h].is_some()
        two = every((self.pending[h] == n).implies(self.leaving[h] != n) for n in Node)
        one = self.layout == Layout.one_tablet
        return whole & two & (one & self.pending[h].is_some()).implies(h == Half.left)

    @invariant
    def a_barrier_is_of_one_finalization(self) -> Bool:
        """A barrier that has passed says nothing about a later resize."""
        return self.drained.implies(self.track == FINALIZATION)

    @liveness
    def decisions_are_carried_out_or_revoked(self) -> LeadsTo:
        """A split or merge concludes, however much is written in the meantime (scylladb #20054)."""
        return leads_to(self.decision != Resize.none, self.decision == Resize.none)

    @liveness
    def finalizations_end(self) -> LeadsTo:
        """Other topology changes have to wait for a finalization, not for ever."""
        return leads_to(self.track == FINALIZATION, self.track != FINALIZATION)

    @liveness
    def migrations_end(self, h: Term[Half]) -> LeadsTo:
        """Preparing a split does not hold up a migration for ever."""
        return leads_to(self.pending[h].is_some(), self.pending[h].is_none())

    # -- lemmas --------------------------------------------------------------------------------------------------

    @lemma
    def nodes_know_what_was_committed(self, n: Term[Node]) -> Bool:
        """What a node knows of the current decision is true; nobody is ahead of what it knows."""
        view = self.view[n]
        known = (view.sequence <= self.sequence) & (self.ready[n] <= view.sequence)
        in_force = (self.decision != Resize.none) & (view.sequence == self.sequence)
        same = (view.decision == self.decision) & (view.layout == self.layout)
        numbered = (view.decision != Resize.none).implies(view.sequence > 0)
        numbered &= (self.decision != Resize.none).implies(self.sequence > 0)
        return known & (self.reported[n] <= view.sequence) & in_force.implies(same) & numbered

    @lemma
    def who_was_ready_stays_so(self, n: Term[Node]) -> Bool:
        """A node that the coordinator knows to be ready has nothing to split, as long as the split is on."""
        ready = self._splits(n) & (self.reported[n] == self.view[n].sequence)
        return ready.implies(~self.unsplit.has(n))

    @lemma
    def only_replicas_of_one_tablet_write_for_it(self, n: Term[Node]) -> Bool:
        """Who has something to split, or writes it, is a replica of the one tablet, and knows of one."""
        whole = self.unsplit.has(n) | (self.writer[n] == Layout.one_tablet)
        one = (self.layout == Layout.one_tablet) & (self.view[n].layout == Layout.one_tablet)
        splits = self.splitting.has(n).implies(self.unsplit.has(n))
        return splits & whole.implies(one & self.replicas[Half.left].has(n))

    @lemma
    def nobody_writes_behind_the_barrier(self, n: Term[Node]) -> Bool:
        """Behind the barrier nobody writes; a replica that has not learned of two tablets splits still."""
        view = self.view[n]
        late = (self.layout == Layout.two_tablets) & (view.layout == Layout.one_tablet)
        quiet = self.writer[n].is_none() & (view.track == FINALIZATION)
        splits = self._stores(n).implies(view.decision == Resize.split)
        return (self.drained | late).implies(quiet) & late.implies(splits)

    @lemma
    def a_decision_puts_streams_ahead_once(self) -> Bool:
        """A timestamp of streams is put ahead of the one before by decisions that were carried out."""
        to_come = choose(self.decision == Resize.none, 0, 1)
        return self.streams_since + to_come <= self.sequence + LAST_TIME

    @final
    def at_rest(self) -> Bool:
        """A table may stay as it is."""
        return (self.decision == Resize.none) & (self.track == Track.idle)

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(learn, "node is behind", because=NOTHING),
        equivalent_loss(flush, unsplit, because="a replica that writes nothing does no harm"),
        equivalent_weakening(
            start_splitting,
            "it has learned of the split",
            because="only one tablet is ever to be split",
        ),
        equivalent_drop(start_splitting, "it does not split yet", because=NOTHING),
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
        equivalent_drop(revoke, "decision is split or merge", because=NO_DECISION),
        equivalent_loss(revoke, decision, because=NO_DECISION),
        equivalent_drop(collect_stats, "there is news", because=NOTHING),
        equivalent_drop(
            colocate, "the tablets are to be merged", because="tablets may be colocated at any time"
        ),
        equivalent_weakening(
            finish_migration,
            "every node has learned of the migration",
            because="a node learns all of it at once",
        ),
        equivalent_replacement(
            finish_migration,
            "every node has learned of the migration: pending for n",
            because="a node learns all of it at once",
        ),
        equivalent_drop(drain, "not passed yet", because=NOTHING),
        equivalent_weakening(
            drain,
            "every node has learned of the finalization",
            because="a node learns all of it at once",
        ),
        equivalent_drop(
            finalize_split, "layout is one_tablet", because="only one tablet can be split"
        ),
        equivalent_drop(
            finalize_merge, "layout is two_tablets", because="only two tablets can be merged"
        ),
        equivalent_weakening(
            finalize_merge,
            "the replicas are colocated, says the plan made anew",
            because="nothing has migrated since",
        ),
        equivalent_loss(
            finalize_merge,
            replicas,
            because="the second one has the same: they are colocated",
        ),
        equivalent_loss(
            fail_over,
            drained,
            reported,
            because="a coordinator that knows all that its predecessor knew does no harm",
        ),
        equivalent_drop(
            _start_migration,
            "no resize is being finalized",
            because="what is to be merged, and is finalized, is colocated",
        ),
        equivalent_drop(
            _start_migration,
            "the tablet is not in transition",
            because="a colocation that is started again is the same one",
        ),
        equivalent_drop(
            _finalize, "a resize is being finalized", because="the barrier is of a finalization"
        ),
        equivalent_drop(
            _finalize,
            "older token metadata is out of use",
            because="what was written for two tablets is good for one",
        ),
        equivalent_loss(
            _finalize,
            track,
            because="what has nothing to finalize any more is given up",
        ),
        equivalent_replacement(
            _finalize,
            "track becomes: tablet_migration for idle",
            because="a track in which no tablet migrates is left at once",
        ),
        equivalent_replacement(
            give_up_finalization,
            "track becomes: tablet_migration for idle",
            because="a track in which no tablet migrates is left at once",
        ),
        equivalent_loss(
            _finalize,
            streams_since,
            because="a timestamp may be later than it need be",
        ),
        equivalent_replacement(
            _finalize,
            "streams_since becomes: 2 for 1",
            because="a timestamp may be later than it need be",
        ),
    )

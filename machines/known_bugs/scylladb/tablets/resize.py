"""Bugs of ScyllaDB's tablet split and merge."""

from __future__ import annotations

from collections.abc import Mapping

from stagewright.machines.scylladb.tablets.resize_guards import Node as Coordinator, ResizeGuards
from stagewright.machines.scylladb.tablets.resize_layout import Half, Layout
from stagewright.machines.scylladb.tablets.tablet_resize import (
    BALANCER,
    COORDINATOR,
    WEAK,
    Node,
    Resize,
    TabletResize,
    Track,
)
from stagewright.spec import Bool, Term, action, require, some
from stagewright.spec.known_bugs import NotFound, known_bug, known_bugs_in


@known_bug(
    "T19",
    "scylladb #19378 #19416 #19024",
    breaks=(
        TabletResize.split_tablets_have_split_sstables,
        TabletResize.ready_replicas_have_nothing_to_split,
    ),
    budgets={TabletResize.decisions: 1, TabletResize.migrations: 0},
)
class RepairAddsUnsplitSstables(TabletResize):
    """A repair adds its sstable as it is to a replica that has said that it is ready for the split.

    The replica, being ready, does not split again: the split is finalized with an sstable of both tablets.
    """

    def _splits_new_sstables(self, n: Term[Node]) -> Bool:
        return self._splits(n) & False


@known_bug(
    "T21",
    "scylladb #26437",
    breaks=(
        ResizeGuards.migrations_wait_for_requests_of_their_tablet,
        ResizeGuards.the_newest_map_has_the_tablet_of_a_guard,
    ),
    sizes={Coordinator: 1},
    budgets={ResizeGuards.resizes: 1},
)
class GuardOutlivesItsTabletMap(ResizeGuards):
    """A guard goes on to take the newest map after a split or merge, by a tablet id of the old one.

    The id then names another tablet, and a migration of the right one does not wait for the request.
    """

    def _names_the_same_tablet(self, n: Term[Coordinator]) -> Bool:
        return super()._names_the_same_tablet(n) | True


@known_bug(
    "001-62",
    "design document 001: only if that shard is one of the current tablet replicas",
    breaks=TabletResize.only_replicas_store_rows,
    budgets={TabletResize.decisions: 1},
)
class TheCleanupSparesTheTable(TabletResize):
    """A node that had left one tablet of a table kept its rows as long as it was a replica of another one."""

    def _keeps(self, n: Node | Term[Node], half: Half, stays: Mapping[Half, Bool]) -> Bool:
        one = (self.layout == Layout.one_tablet) & super()._keeps(n, half, stays)
        of_another = some(self.replicas[other].has(n) & stays[other] for other in list(Half))
        return one | ((self.layout == Layout.two_tablets) & of_another)


@known_bug(
    "001-94",
    'design document 001: "Tablets are migrated in parallel and independently"',
    breaks=TabletResize.tablets_are_balanced_while_a_resize_is_prepared,
    budgets={TabletResize.decisions: 1},
)
class BalancingWaitsForTheResize(TabletResize):
    """No tablet of a table was moved from the decision to split it to the end of the split, hours later."""

    @action(by=BALANCER, spends=TabletResize.migrations)
    def migrate(self, h: Term[Half], leaving: Term[Node], pending: Term[Node]) -> None:
        """A tablet is moved of a table that is not to be resized."""
        super().migrate(h, leaving, pending)
        require(self.decision == Resize.none, "no resize is decided")


@known_bug(
    "001-95",
    'design document 001: what is done for tablets is done "independently"',
    breaks=TabletResize.replicas_are_repaired_while_a_resize_is_prepared,
    budgets={TabletResize.decisions: 1, TabletResize.migrations: 0},
)
class RepairWaitsForTheResize(TabletResize):
    """A table was not repaired as long as it was to be split."""

    @action
    def start_writer(self, n: Term[Node]) -> None:
        """A repair begins to write an sstable of a table that is not to be split."""
        super().start_writer(n)
        require(~self._splits(n), "the table is not to be split")


@known_bug(
    "001-186",
    "design document 001, in the releases: a replica is ready once all its sstables are split",
    breaks=TabletResize.sstables_are_whole_until_they_are_split,
    budgets={TabletResize.migrations: 0, TabletResize.decisions: 1, TabletResize.restarts: 1},
)
class ARestartForgetsWhatIsToBeSplit(TabletResize):
    """A node that restarted took the sstables that it found for split ones."""

    @action(spends=TabletResize.restarts)
    def restart(self, n: Term[Node]) -> None:
        """A node starts again, and knows of nothing to split."""
        super().restart(n)
        self.unsplit.discard(n)


@known_bug(
    "001-251",
    'design document 001: "Tablets are migrated in parallel and independently"',
    breaks=TabletResize.tablets_to_be_merged_are_moved_independently,
    budgets={TabletResize.decisions: 1, TabletResize.migrations: 1},
)
class ColocationWaitsForTheOther(TabletResize):
    """Of two tablets to be merged the second was moved to the first when that was at rest: under a balancer, never."""

    @action(by=BALANCER, fair=WEAK)
    def colocate(self, leaving: Term[Node], pending: Term[Node]) -> None:
        """The second tablet moves to where the first one rests."""
        super().colocate(leaving, pending)
        require(self.pending[Half.left].is_none(), "the first one rests")


@known_bug(
    "001-252",
    "design document 001, in the releases: every replica reports that it is ready for the split",
    breaks=TabletResize.a_finalization_begins_when_nothing_is_left_to_prepare,
    budgets={TabletResize.decisions: 1, TabletResize.migrations: 0},
)
class TheFirstReplicaBeginsTheFinalization(TabletResize):
    """A split was begun to be finalized when one replica was ready, and no tablet of any table migrated until all were."""

    @action(by=COORDINATOR, fair=WEAK)
    def begin_finalization(self) -> None:
        """The decision is carried out in one place, and no tablet migrates: finalize it."""
        require(self.track == Track.idle, "topology is idle")
        replicas = self.replicas[Half.left]
        ready = some(replicas.has(n) & (self.reported[n] == self.sequence) for n in Node)
        begun = (self.decision == Resize.split) & ready
        require(begun | self._is_colocated(), "it is prepared somewhere")
        self.track = Track.tablet_resize_finalization


BUGS = known_bugs_in(globals())
NOT_FOUND: tuple[NotFound, ...] = ()

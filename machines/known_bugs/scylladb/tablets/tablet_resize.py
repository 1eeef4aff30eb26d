"""Mistakes put back into `TabletResize`: a property breaks with each."""

from __future__ import annotations

from collections.abc import Mapping

from stagewright.machines.scylladb.tablets import tablet_resize
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
from stagewright.spec import (
    Bool,
    FlagVar,
    Number,
    SetVar,
    Term,
    action,
    every,
    flag,
    require,
    set_of,
    some,
)
from stagewright.spec.known_bugs import known_bug, known_bugs_in

# -- what goes wrong -------------------------------------------------------------------------------


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


@known_bug(
    "001-334",
    'design document 001: "to incrementally make decision", beside "active migrations"',
    breaks=TabletResize.nothing_else_revokes_a_decision,
    budgets={TabletResize.decisions: 1},
)
class MigrationsRevokeDecisions(TabletResize):
    """A migration that began took the decision to split or merge back: the next one began the preparation anew."""

    @action(by=BALANCER, spends=TabletResize.migrations)
    def migrate(self, h: Term[Half], leaving: Term[Node], pending: Term[Node]) -> None:
        """A tablet is moved, and nothing else is decided."""
        super().migrate(h, leaving, pending)
        self.decision = Resize.none


@known_bug(
    "001-335",
    'design document 001: "to incrementally make decision"',
    breaks=TabletResize.nothing_else_revokes_a_decision,
    budgets={
        TabletResize.decisions: 1,
        TabletResize.migrations: 0,
        TabletResize.failovers: 1,
    },
)
class AnotherCoordinatorRevokesDecisions(TabletResize):
    """A new coordinator, which had not heard of any replica that is ready, gave the decision up."""

    @action(by=COORDINATOR, spends=TabletResize.failovers)
    def fail_over(self) -> None:
        """Another node becomes the topology coordinator, and decides anew."""
        super().fail_over()
        self.decision = Resize.none


@known_bug(
    "001-376",
    'design document 001: the balancer is to "incrementally make decision", beside "active migrations"',
    breaks=(
        TabletResize.split_tablets_have_split_sstables,
        TabletResize.a_finalization_begins_when_nothing_is_left_to_prepare,
    ),
    budgets={TabletResize.decisions: 1, TabletResize.failovers: 1},
)
class WhoCameLaterIsNotAsked(TabletResize):
    """A new coordinator asked those whether they were ready that were replicas when it took over, and nobody who came later."""

    took_over: FlagVar = flag()
    asked: SetVar[tablet_resize.Node] = set_of(tablet_resize.Node)

    @action(by=tablet_resize.COORDINATOR, spends=TabletResize.failovers)
    def fail_over(self) -> None:
        """Another node becomes the topology coordinator, and looks who the replicas are."""
        super().fail_over()
        self.took_over = True
        self.asked = self.replicas[Half.left]

    def _is_split_everywhere(self) -> Bool:
        ready = every(
            (self.reported[n] == self.sequence) | (self.took_over & ~self.asked.has(n))
            for n in self.replicas[Half.left]
        )
        return (self.decision == Resize.split) & ready


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
    "001-404",
    'design document 001: a barrier is to "make sure that no reads that started before this point exist"',
    breaks=TabletResize.repairs_go_on_while_tablets_change,
    budgets={TabletResize.decisions: 1},
)
class BarriersEndRepairs(TabletResize):
    """A barrier that found a repair ended it, that the resize need not wait: its operator had to begin it again."""

    @action(by=COORDINATOR, fair=WEAK)
    def drain(self) -> None:
        """Barrier: nothing that began under older token metadata goes on."""
        require(self.track == Track.tablet_resize_finalization, "a resize is being finalized")
        require(~self.drained, "not passed yet")
        learned = every(self._is_current(n) for n in Node)
        require(learned, "every node has learned of the finalization")
        for n in Node:
            self.writer[n] = None
        self.drained = True


@known_bug(
    "001-723",
    'design document 001: a barrier is to "make sure that no reads that started before this point exist"',
    breaks=TabletResize.repairs_go_on_while_tablets_change,
    budgets={TabletResize.decisions: 0},
)
class WhatLeavesIsNotRepaired(TabletResize):
    """A migration that began ended the repair of the replica that was to leave; as the balancer went on, none came to its end."""

    def _start_migration(self, h: Term[Half], leaving: Term[Node], pending: Term[Node]) -> None:
        super()._start_migration(h, leaving, pending)
        self.writer[leaving] = None


@known_bug(
    "001-405",
    "design document 001, tablets: a decision is told from the one before",
    breaks=TabletResize.decisions_are_numbered,
    budgets={TabletResize.decisions: 1},
)
class ResizedTablesCountFromTheStart(TabletResize):
    """With its new tablets a table began to count its decisions anew: who was ready for the first split was for the next."""

    def _finalize(self, now: Number) -> None:
        super()._finalize(now)
        self.sequence = 0


@known_bug(
    "001-713",
    "design document 001, in the releases: a replica is ready once all its sstables are split",
    breaks=TabletResize.sstables_are_whole_until_they_are_split,
    budgets={TabletResize.migrations: 0, TabletResize.decisions: 1},
)
class WhatIsStoppedCountsAsSplit(TabletResize):
    """A split that was revoked stopped the compactions for it, and their sstables were taken for split ones from then on."""

    @TabletResize.decision.step((Resize.split, Resize.merge), Resize.none, by=BALANCER)
    def revoke(self) -> None:
        """The decision is no longer needed: what splits is stopped, everywhere."""
        for n in Node:
            self.unsplit.put(n, self.unsplit.has(n) & ~self.splitting.has(n))
        self.splitting = frozenset[Node]()


# -- who is refused, or waits ----------------------------------------------------------------------


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
    "001-121",
    'design document 001: an action is taken "on behalf of the tablet" when its stage says so',
    breaks=TabletResize.sstables_are_flushed_whole_as_long_as_no_split_is_decided,
    budgets={TabletResize.decisions: 1, TabletResize.migrations: 0},
)
class EverySstableIsSplit(TabletResize):
    """Whoever had one tablet split whatever it wrote, also where no split was decided."""

    def _splits(self, n: Term[Node]) -> Bool:
        return super()._splits(n) | True


@known_bug(
    "001-184",
    "design document 001, in the releases: the balancer revokes a resize decision",
    breaks=TabletResize.decisions_are_revoked_until_they_are_carried_out,
    budgets={TabletResize.migrations: 0, TabletResize.decisions: 1},
)
class WhatIsPreparedIsCarriedOut(TabletResize):
    """A split that every replica was ready for was not revoked any more, though the table had shrunk."""

    @TabletResize.decision.step((Resize.split, Resize.merge), Resize.none, by=BALANCER)
    def revoke(self) -> None:
        """The average size has changed again, before everybody was ready."""
        require(~self._is_split_everywhere(), "it is not prepared")


@known_bug(
    "001-185",
    "design document 001, in the releases: each replica splits its sstables, and reports",
    breaks=TabletResize.replicas_split_as_soon_as_they_know,
    budgets={TabletResize.migrations: 0, TabletResize.decisions: 1},
)
class ReplicasSplitTogether(TabletResize):
    """No replica split its sstables before every node had learned of the decision: one that was down held up all."""

    @action(fair=WEAK)
    def start_splitting(self, n: Term[Node]) -> None:
        """A replica starts to split once all know that it should."""
        super().start_splitting(n)
        require(every(self._is_current(o) for o in Node), "everybody has learned of it")


@known_bug(
    "001-209",
    'design document 001: "incrementally make decision", beside active migrations',
    breaks=TabletResize.splits_are_decided_at_any_time,
    budgets={TabletResize.decisions: 1, TabletResize.migrations: 1},
)
class SplitsAreDecidedAtRest(TabletResize):
    """No split was decided while a tablet of the table migrated: it grew on meanwhile."""

    @action(by=BALANCER, spends=TabletResize.decisions)
    def decide_split(self) -> None:
        """The tablets have become too large, and are at rest."""
        super().decide_split()
        require(every(self.pending[half].is_none() for half in list(Half)), "no tablet migrates")


@known_bug(
    "001-210",
    'design document 001: "incrementally make decision", beside active migrations',
    breaks=TabletResize.merges_are_decided_at_any_time,
    budgets={TabletResize.decisions: 1, TabletResize.migrations: 0},
)
class OnlyNeighboursAreMerged(TabletResize):
    """Tablets were to be merged if they had the same replicas already: others were never moved together."""

    @action(by=BALANCER, spends=TabletResize.decisions)
    def decide_merge(self) -> None:
        """The tablets have become too small, and lie together."""
        super().decide_merge()
        together = every(
            self.replicas[Half.left].has(n) == self.replicas[Half.right].has(n) for n in Node
        )
        require(together, "their replicas are on the same nodes")


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
    "001-513",
    'design document 001: "Tablets are migrated in parallel and independently"',
    breaks=TabletResize.migrations_end_while_others_prepare_a_resize,
    sizes={Node: 3},
    budgets={TabletResize.decisions: 1},
)
class MigrationsWaitForEverySplit(TabletResize):
    """A migration ended when no replica split its sstables, and not only the one that leaves: with many of them it
    waited for as long as the split was prepared.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def finish_migration(self, h: Term[Half], leaving: Term[Node], pending: Term[Node]) -> None:
        """The migration ends while nobody splits anything."""
        super().finish_migration(h, leaving, pending)
        require(self.splitting.is_empty(), "no split compaction runs")


@known_bug(
    "001-544",
    'design document 001: "after which the state machine will exit the tablet migration track"',
    breaks=TabletResize.the_topology_waits_for_no_sstable,
    budgets={TabletResize.decisions: 1},
)
class TheTrackIsLeftWhenNothingIsSplit(TabletResize):
    """The migration track was left when no replica split its sstables any more: topology changes waited for
    compactions, which take hours.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def leave_track(self) -> None:
        """No tablet is in transition, and nothing is split."""
        super().leave_track()
        require(self.splitting.is_empty(), "no split compaction runs")


@known_bug(
    "001-545",
    "design document 001, in the releases: each replica splits for itself",
    breaks=TabletResize.replicas_prepare_each_for_itself,
    budgets={TabletResize.decisions: 1, TabletResize.migrations: 0},
)
class WritersEndWhenNothingIsSplit(TabletResize):
    """What a repair had written was added when no replica ran a split compaction: the repair, and the barriers that
    wait for it, waited for the slowest node.
    """

    @action(fair=WEAK)
    def finish_writer(self, n: Term[Node]) -> None:
        """The sstable is added, unless a node still splits."""
        require(self.splitting.is_empty(), "no node splits")
        super().finish_writer(n)


@known_bug(
    "001-688",
    'design document 001: "to incrementally make decision", beside "active migrations"',
    breaks=TabletResize.resizes_are_prepared_while_tablets_move,
    budgets={TabletResize.decisions: 1},
)
class NobodyIsReadyWhileTabletsMove(TabletResize):
    """A replica said that it was ready for the split when no tablet of the table was in transition: under a balancer the
    split was put off again and again.
    """

    @action(fair=WEAK)
    def get_ready(self, n: Term[Node]) -> None:
        """All sstables of the node are split, and nothing moves."""
        require(~self._migrates(), "no tablet is in transition")
        super().get_ready(n)


@known_bug(
    "001-689",
    'design document 001: "to incrementally make decision", beside "active migrations"',
    breaks=TabletResize.resizes_are_prepared_while_tablets_move,
    budgets={TabletResize.decisions: 1},
)
class StatisticsAreCollectedAtRest(TabletResize):
    """The coordinator asked no node whether it was ready as long as the topology was in the tablet migration track."""

    @action(by=COORDINATOR, fair=WEAK)
    def collect_stats(self, n: Term[Node]) -> None:
        """A node is asked for which split it is ready, when no tablet migrates."""
        require(self.track != Track.tablet_migration, "not in the tablet migration track")
        super().collect_stats(n)


BUGS = known_bugs_in(globals())

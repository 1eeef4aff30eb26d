"""Bugs of ScyllaDB's tablet migration."""

from __future__ import annotations

from collections.abc import Mapping

from stagewright.machines.scylladb.cluster import Node, Tablet
from stagewright.machines.scylladb.tablets.tablet import TabletCluster
from stagewright.machines.scylladb.tablets.tablet_migration import COORDINATOR, TabletMigration
from stagewright.machines.scylladb.tablets.tablet_stages import Stage
from stagewright.spec import (
    Bool,
    Fairness,
    Number,
    SetOf,
    Term,
    action,
    every,
    least,
    many,
    require,
    some,
)
from stagewright.spec.declarations.budgets import BudgetName
from stagewright.spec.known_bugs import NotFound, known_bug, known_bugs_in, released_bug

WEAK = Fairness.WEAK
ONE_UNREAD_WRITE = {TabletCluster.writes: 1, TabletCluster.reads: 0}

LATE_WRITE_AFTER_CLEANUP_OF_THE_TARGET = released_bug(
    "T01",
    "scylladb #26512",
    "Streaming fails and the pending replica is cleaned up while a coordinator that has not learned of it "
    "still writes to both replicas: the write finds no storage, or is stored after the cleanup.",
    machine=TabletCluster,
    profile="scylla-2025.4",
    breaks=(TabletCluster.writes_find_storage, TabletCluster.cleaned_up_replicas_stay_empty),
    mended_in="scylla-2026.2",
    budgets={**ONE_UNREAD_WRITE, TabletCluster.crashes: 0},
)


class SessionLeftOpen(TabletMigration):
    """A transition whose session outlives its streaming when that is given up."""

    def _close_session(self) -> None:
        """Nothing: the transition's end will delete it."""


@known_bug(
    "T05",
    "scylladb #17682",
    breaks=TabletCluster.cleaned_up_replicas_stay_empty,
    budgets={**ONE_UNREAD_WRITE, TabletCluster.crashes: 0},
)
class ChunkArrivesAfterCleanupOfTheTarget(TabletCluster):
    """Streaming fails and leaves a chunk on the wire. The pending replica is cleaned up, but the session is
    still open: the chunk arrives, is accepted, and the data is back.
    """

    tablets = many(  # type: ignore[assignment]  # the same machine, but for one mistake
        SessionLeftOpen,
        over=Tablet,
        without=(TabletMigration.exclude, TabletMigration.fail_over),
    )


@known_bug(
    "T12",
    "scylladb #17892",
    breaks=(TabletCluster.writes_find_storage, TabletCluster.cleaned_up_replicas_stay_empty),
    budgets={
        TabletCluster.loads: 1,
        TabletCluster.writes: 0,
        TabletCluster.reads: 0,
        TabletCluster.crashes: 0,
    },
)
class LoadIgnoresTheWriteSelector(TabletCluster):
    """Load-and-stream sent rows to the pending replica from the moment that there was one, whatever the
    stage said of writes; what it wrote there was left behind when the migration was undone.
    """

    def _targets_of_load(self, n: Term[Node], t: Term[Tablet]) -> SetOf[Node]:
        view = self.view[n][t]
        return view.replicas | view.next


@known_bug(
    "T13",
    "scylladb #23481",
    breaks=TabletCluster.only_replicas_have_storage,
    budgets={TabletCluster.writes: 0, TabletCluster.reads: 0},
)
class RestartAllocatesStorageOfTheLeavingReplica(TabletCluster):
    """The leaving replica restarts when it has been cleaned up already, and allocates storage because it
    still is a replica, whatever the stage; nothing drops that storage any more.
    """

    def _restores_storage(self, n: Term[Node], t: Term[Tablet]) -> Bool:
        return self.view[n][t].replicas.has(n)


@known_bug(
    "T14",
    "scylladb #19752",
    breaks=TabletCluster.migrations_end,
    budgets={TabletCluster.writes: 0, TabletCluster.reads: 0, TabletCluster.crashes: 0},
)
class CleanupCannotBeRepeated(TabletCluster):
    """The cleanup succeeds, but its answer is lost or the coordinator restarts. The cleanup that is asked for
    again finds no storage, which the first one deallocated, and fails for ever.
    """

    def _remove_rows(self, t: Term[Tablet], n: Term[Node]) -> None:
        super()._remove_rows(t, n)
        require(self.storage[t].has(n), "storage was found")
        self.storage[t].discard(n)


@known_bug(
    "T26",
    "scylladb, split compaction and tablet migration",
    breaks=(TabletCluster.cleaned_up_replicas_stay_empty, TabletCluster.compactions_have_storage),
    budgets={**ONE_UNREAD_WRITE, TabletCluster.crashes: 0, TabletCluster.compactions: 1},
)
class CleanupDoesNotWaitForCompaction(TabletCluster):
    """A split compaction runs on a replica while that is cleaned up; what it wrote takes its place after the
    cleanup, or the storage is gone below it.
    """

    def _waits_for_local_users(self, t: Term[Tablet], n: Term[Node]) -> None:
        """Nothing waits."""


@known_bug(
    "M01",
    "design document 001, stage 4: what reached the leaving replica",
    breaks=TabletCluster.new_replicas_are_complete,
    budgets={**ONE_UNREAD_WRITE, TabletCluster.crashes: 0, TabletMigration.failures: 0},
)
class StreamsOnlyWhatWasAcknowledged(TabletCluster):
    """The stream leaves out a row that the leaving replica stored, and of which no client was told yet: one
    that was read before is gone.
    """

    def _rows_to_stream(self, t: Term[Tablet], source: Term[Node]) -> Number:
        return least(super()._rows_to_stream(t, source), self.acknowledged[t])


TWO_TABLETS: Mapping[BudgetName, int | None] = {
    TabletCluster.migrations: 2,
    TabletCluster.writes: 0,
    TabletCluster.reads: 0,
    TabletCluster.crashes: 0,
    TabletMigration.failures: 0,
}


@known_bug(
    "M02",
    'design document 001: "Tablets are migrated in parallel and independently"',
    breaks=(
        TabletCluster.tablets_are_migrated_independently,
        TabletCluster.two_tablets_stream_at_once,
    ),
    sizes={Tablet: 2},
    budgets=TWO_TABLETS,
)
class OneMigrationAtATime(TabletCluster):
    """A migration begins when all other tablets are at rest."""

    def _may_start(self) -> None:
        super()._may_start()
        at_rest = every(self.tablets[t].stage == Stage.none for t in Tablet)
        require(at_rest, "no other tablet is in transition")


@known_bug(
    "M03",
    'design document 001: tablets are migrated "independently"',
    breaks=TabletCluster.barriers_pass_when_every_node_has_answered,
    sizes={Tablet: 2},
    budgets=TWO_TABLETS,
)
class OneBarrierForAll(TabletCluster):
    """A node that had answered for one tablet was taken to have learned the stages of all."""

    def _acknowledges_barrier(self, n: Term[Node], t: Term[Tablet]) -> Bool:
        answers = super()._acknowledges_barrier
        return answers(n, t) | some(answers(n, u) for u in Tablet)


@known_bug(
    "M05",
    'design document 001: tablets are migrated "independently"',
    breaks=TabletCluster.tablets_are_migrated_independently,
    sizes={Tablet: 2},
    budgets=TWO_TABLETS,
)
class MigrationsWaitForCleanups(TabletCluster):
    """No migration begins while the replica that another tablet has left is cleaned up."""

    def _may_start(self) -> None:
        super()._may_start()
        cleaned = every(self.tablets[t].stage != Stage.cleanup for t in Tablet)
        require(cleaned, "no other tablet is cleaned up")


@known_bug(
    "M06",
    'design document 001: "Tablets are migrated in parallel"',
    breaks=TabletCluster.two_tablets_stream_at_once,
    sizes={Tablet: 2},
    budgets=TWO_TABLETS,
)
class OneStreamAtATime(TabletCluster):
    """Migrations begin at once, but a tablet is not streamed before the stream of another has ended."""

    @action(by=COORDINATOR, fair=WEAK)
    def begin_streaming(self, t: Term[Tablet]) -> None:
        """Every write reaches both replica sets, and no other tablet streams."""
        super().begin_streaming(t)
        alone = every(self.tablets[u].stage != Stage.streaming for u in Tablet)
        require(alone, "no other tablet streams")


BUGS = known_bugs_in(globals())
NOT_FOUND: tuple[NotFound, ...] = ()

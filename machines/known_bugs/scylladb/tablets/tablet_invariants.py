"""Mistakes against one invariant of a tablet's stages (design document 001)."""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import Node, Tablet
from stagewright.machines.scylladb.tablets.tablet import TabletCluster
from stagewright.machines.scylladb.tablets.tablet_migration import (
    COORDINATOR,
    OPERATOR,
    Progress,
    TabletMigration,
)
from stagewright.machines.scylladb.tablets.tablet_stages import Kind, Stage
from stagewright.spec import Bool, Fairness, SetOf, Term, action, choose, every, many, require
from stagewright.spec.declarations.budgets import BudgetName
from stagewright.spec.known_bugs import known_bug, known_bugs_in

WEAK = Fairness.WEAK
NO_CLIENTS: dict[BudgetName, int | None] = {TabletCluster.writes: 0, TabletCluster.reads: 0}
ONE_WRITE: dict[BudgetName, int | None] = {TabletCluster.reads: 0, TabletCluster.crashes: 0}


@known_bug(
    "001-41",
    'design document 001, stage 2: replicas "are prepared for receiving writes"',
    breaks=TabletCluster.replicas_are_ready_for_writes,
    budgets={**NO_CLIENTS, TabletCluster.crashes: 0},
)
class StorageComesWithTheWrites(TabletCluster):
    """The pending replica allocated storage in the stage in which writes come to it, and not in the one before."""

    def _keeps_storage(self, n: Term[Node], t: Term[Tablet]) -> Bool:
        early = self.tablets[t].stage == Stage.allow_write_both_read_old
        return super()._keeps_storage(n, t) & ~(early & self._is_pending(n, t))


@known_bug(
    "001-42",
    'design document 001, stage 3: writes "will reach CL in both" replica sets',
    breaks=TabletCluster.writes_reach_both_replica_sets,
    budgets=ONE_WRITE,
)
class WritesMoveBeforeReads(TabletCluster):
    """While a tablet is streamed its writes go to the new replicas alone: if streaming fails, they are gone."""

    def _targets_of_write(self, n: Term[Node], t: Term[Tablet]) -> SetOf[Node]:
        view = self.view[n][t]
        both = super()._targets_of_write(n, t)
        return choose(view.stage == Stage.streaming, view.next, both)


@known_bug(
    "001-43",
    "design document 001, stage 5: all read requests started after this use the new replica set",
    breaks=TabletCluster.reads_use_the_new_replicas,
    sizes={Node: 3},
    budgets={**NO_CLIENTS, TabletMigration.failures: 0},
)
class TheExcludedComesBackAsItWas(TabletCluster):
    """A node that barriers ignored, and that has no replicas, is taken in again, with the view that it had."""

    @action(by=OPERATOR)
    def take_in_again(self, n: Term[Node]) -> None:
        """The operator finds the node alive, and wants it back, with an empty disk."""
        require(self.excluded.has(n), "it is excluded")
        free = every(~self.replicas[t].has(n) & ~self.next[t].has(n) for t in Tablet)
        require(free, "it has no replicas")
        self.excluded.discard(n)
        self.down.discard(n)
        for t in Tablet:
            self.storage[t].discard(n)


@known_bug(
    "001-44",
    'design document 001, stage 6: no write reaches a replica "which does not belong to the new replica set"',
    breaks=TabletCluster.writes_have_left_the_old_replicas,
    budgets={**ONE_WRITE, TabletMigration.failures: 0},
)
class TheFenceComesWithTheCleanup(TabletCluster):
    """The barrier before the cleanup only waited; what had timed out by then was cut off by the cleanup itself."""

    @action(by=COORDINATOR, fair=WEAK)
    def pass_barrier(self, t: Term[Tablet]) -> None:
        """Every node has learned the stage, and drained what clients wait for."""
        drained = every(self._acknowledges_barrier(n, t) for n in Node)
        require(drained, "every node that is not excluded has learned the stage and drained")
        self.tablets[t].pass_barrier()
        fenced = self.tablets[t].stage != Stage.use_new
        for n in Node:
            self._forget(n, where=self._is_older(n, t) & self.request[n].abandoned & fenced)

    @action(fair=WEAK)
    def clean_up(self, t: Term[Tablet], n: Term[Node]) -> None:
        """The replica removes its rows, and takes no older requests any more."""
        super().clean_up(t, n)
        for m in Node:
            self._forget(m, where=self._is_older(m, t) & self.request[m].abandoned)


@known_bug(
    "001-45",
    "design document 001: without a transition, only the current replicas' shards have a tablet's writes",
    breaks=TabletCluster.only_replicas_hold_data,
    budgets={TabletCluster.reads: 0, TabletMigration.failures: 0},
)
class TheExcludedKeepsItsFiles(TabletCluster):
    """A node that was excluded comes back, and up to date. It has no storage for what moved away, but the files."""

    @action(by=OPERATOR)
    def take_in_again(self, n: Term[Node]) -> None:
        """The operator takes the node in again, where it has no replicas and nothing moves."""
        require(self.excluded.has(n), "it is excluded")
        rests = every(self.tablets[t].stage == Stage.none for t in Tablet)
        require(rests, "no tablet is in transition")
        require(every(~self.replicas[t].has(n) for t in Tablet), "it has no replicas")
        self.excluded.discard(n)
        self.down.discard(n)
        for t in Tablet:
            view = self.view[n][t]
            view.stage = self.tablets[t].stage
            view.session = self.tablets[t].session
            view.replicas = self.replicas[t]
            view.next = self.next[t]
            self.storage[t].discard(n)


class WhatRunsIsTakenForDone(TabletMigration):
    """A transition whose coordinator believes that what the last one began has ended well."""

    @action(by=COORDINATOR, spends=TabletMigration.failovers)
    def fail_over(self) -> None:
        """The next coordinator asks for nothing that was asked for already."""
        self.barrier = Progress.none
        runs = self.operation == Progress.running
        self.operation = choose(runs, Progress.done, self.operation)


@known_bug(
    "001-76",
    "design document 001: the action is taken before the tablet can move to the next step",
    breaks=TabletCluster.actions_are_done_when_replicas_say_so,
    budgets={**NO_CLIENTS, TabletCluster.crashes: 0, TabletCluster.coordinator_changes: 1},
)
class TheNextCoordinatorDoesNotAskAgain(TabletCluster):
    """The coordinator changed while a tablet was streamed: the new one found the stream begun, and went on to reads."""

    tablets = many(  # type: ignore[assignment]  # the same machine, but for one mistake
        WhatRunsIsTakenForDone,
        over=Tablet,
        without=(TabletMigration.exclude, WhatRunsIsTakenForDone.fail_over),
    )


@known_bug(
    "001-77",
    'design document 001, stage 3: the replica set "will reflect all successful writes"',
    breaks=TabletCluster.replicas_that_are_read_are_complete,
    budgets={**ONE_WRITE, TabletCluster.migrations: 0, TabletCluster.rebuilds: 1},
)
class WhoStaysIsCleanedUp(TabletCluster):
    """A tablet got one replica more, and the one that it had was cleaned up as if it were left."""

    def _to_be_cleaned(self, n: Term[Node], t: Term[Tablet]) -> Bool:
        cleanup = self.tablets[t].stage == Stage.cleanup
        return super()._to_be_cleaned(n, t) | (cleanup & self.replicas[t].has(n))


@known_bug(
    "001-91",
    'design document 001, stage 3: the replica set "will reflect all successful writes"',
    breaks=TabletCluster.replicas_that_are_read_are_complete,
    budgets={**ONE_WRITE, TabletCluster.writes: 2, TabletCluster.migrations: 0},
)
class TheLastToArriveWins(TabletCluster):
    """What a client wrote earlier, and was stored late, took the place of what it wrote since."""

    @action(fair=WEAK)
    def store_write(self, n: Term[Node], r: Term[Node], t: Term[Tablet]) -> None:
        """Replica `r` stores the write, whatever it has."""
        request = self.request[n]
        require((request.tablet == t) & request.write, "a write is on its way")
        require(request.targets.has(r) & ~request.reached.has(r), "it is sent to the replica")
        require(~self.down.has(r) & self.storage[t].has(r), "replica is up, and has storage")
        self.data[t][r] = request.value
        request.reached.add(r)


@known_bug(
    "001-116",
    'design document 001, stage 3: writes "will reach CL in both" replica sets',
    breaks=TabletCluster.writes_reach_both_replica_sets,
    budgets={TabletCluster.reads: 0, TabletMigration.failures: 0},
)
class WritesLeaveOutTheExcluded(TabletCluster):
    """With the leaving replica excluded a write succeeded at the pending one alone, whose rows went when it was undone."""

    def _targets_of_write(self, n: Term[Node], t: Term[Tablet]) -> SetOf[Node]:
        named = super()._targets_of_write(n, t)
        left = named - self.excluded
        return choose(left.is_empty(), named, left)


@known_bug(
    "001-240",
    'design document 001: a node stores rows "only if that shard is one of the current tablet replicas"',
    breaks=TabletMigration.replicas_are_cleaned_up_before_they_lose_their_storage,
)
class CleanupIsSkipped(TabletMigration):
    """When no write used the old replicas any more the migration was ended: the rows of the one that left stayed there."""

    @TabletMigration.stage.step(Stage.use_new, Stage.end_migration, by=COORDINATOR, fair=WEAK)
    def begin_cleanup(self) -> None:
        """No write reaches the leaving replica any more: end the migration."""
        self._barrier_done()
        self._enter()


@known_bug(
    "001-241",
    'design document 001: the stage says "which action should be taken … before it can move to the next step"',
    breaks=TabletMigration.session_is_open_only_while_something_streams,
)
class RepairsEndAsTheyBegin(TabletMigration):
    """A requested repair entered its last stage at once: its replicas were told to end what none had begun."""

    @TabletMigration.stage.step(Stage.none, Stage.end_repair, by=COORDINATOR)
    def start_repair(self) -> None:
        """A repair of the tablet was requested."""
        self.kind = Kind.repair
        self.session = True
        self._enter()


BUGS = known_bugs_in(globals())

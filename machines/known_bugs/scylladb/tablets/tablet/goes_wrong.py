"""Mistakes put back into `TabletCluster`: what goes wrong."""

from __future__ import annotations

from collections.abc import Mapping

from stagewright.machines.scylladb.cluster import Node, Tablet, Track
from stagewright.machines.scylladb.tablets.intranode_migration import COORDINATOR
from stagewright.machines.scylladb.tablets.load_balancer import OPERATOR
from stagewright.machines.scylladb.tablets.tablet import TabletCluster
from stagewright.machines.scylladb.tablets.tablet_migration import Progress, TabletMigration
from stagewright.machines.scylladb.tablets.tablet_stages import Stage
from stagewright.spec import (
    Bool,
    Fairness,
    Number,
    SetOf,
    Term,
    action,
    choose,
    every,
    least,
    many,
    require,
    some,
)
from stagewright.spec.declarations.budgets import BudgetName
from stagewright.spec.known_bugs import known_bug, known_bugs_in, released_bug

NO_CLIENTS: dict[BudgetName, int | None] = {TabletCluster.writes: 0, TabletCluster.reads: 0}
ONE_WRITE: dict[BudgetName, int | None] = {TabletCluster.reads: 0, TabletCluster.crashes: 0}
WEAK = Fairness.WEAK
ONE_UNREAD_WRITE = {TabletCluster.writes: 1, TabletCluster.reads: 0}
TWO_TABLETS: Mapping[BudgetName, int | None] = {
    TabletCluster.migrations: 2,
    TabletCluster.writes: 0,
    TabletCluster.reads: 0,
    TabletCluster.crashes: 0,
    TabletMigration.failures: 0,
}
Budgets = Mapping[BudgetName, int | None]
NO_FAULTS: Budgets = {TabletCluster.crashes: 0, TabletMigration.failures: 0}
SUCCESSFUL = "design document 001, stage 3: writes are executed on behalf of successful requests"
DRAIN = 'design document 001: a pending request is "to allow for current migrations to drain"'
INDEPENDENTLY = 'design document 001: "Tablets are migrated in parallel and independently"'
TWO_MIGRATIONS: dict[BudgetName, int | None] = {
    TabletCluster.writes: 0,
    TabletCluster.reads: 0,
    TabletCluster.crashes: 0,
    TabletCluster.migrations: 2,
}


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


@known_bug(
    "001-75",
    "design document 001, stage 3: writes are executed on behalf of successful requests",
    breaks=TabletCluster.stages_cut_nobody_off,
    budgets={**NO_FAULTS, TabletCluster.reads: 0},
)
class WhoLearnsDropsItsRequests(TabletCluster):
    """A node that learned of a stage ended what it coordinated by the one before: clients saw timeouts at every stage."""

    @action(fair=WEAK)
    def learn(self, n: Term[Node]) -> None:
        """Node `n` applies what is committed, and gives up what began before."""
        super().learn(n)
        self._abandon(n)


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
    "001-136",
    'design document 001: a node stores rows "only if that shard is one of the current tablet replicas"',
    breaks=TabletCluster.cleaned_up_replicas_stay_empty,
    sizes={Node: 3},
    budgets={TabletCluster.reads: 0, TabletCluster.crashes: 0, TabletMigration.failures: 0},
)
class WhoIsNoReplicaIsCleanedUp(TabletCluster):
    """A node that was neither an old replica nor a new one was cleaned up, and the rows of the one that left stayed."""

    def _is_leaving(self, n: Term[Node], t: Term[Tablet]) -> Bool:
        return ~self.next[t].has(n)


@known_bug(
    "001-253",
    SUCCESSFUL,
    breaks=TabletCluster.replicas_answer_that_they_stored,
    budgets={**NO_FAULTS, TabletCluster.reads: 0},
)
class OnlyItsOwnRowsAreAnswered(TabletCluster):
    """Whoever coordinated a write counted what it had stored itself, and the answer of no other node."""

    @action(fair=WEAK)
    def store_write(self, n: Term[Node], r: Term[Node], t: Term[Tablet]) -> None:
        """Replica `r` stores the write; its answer counts if it coordinates it."""
        request = self.request[n]
        require((request.tablet == t) & request.write, "a write is on its way")
        require(request.targets.has(r) & ~request.reached.has(r), "it is sent to the replica")
        require(~self.down.has(r) & self.storage[t].has(r), "replica is up, and has storage")
        newer = self.data[t][r] < request.value
        self.data[t][r] = choose(newer, request.value, self.data[t][r])
        request.reached.put(r, n == r)


@known_bug(
    "001-254",
    SUCCESSFUL,
    breaks=TabletCluster.nothing_is_remembered_of_a_request,
    budgets={**NO_FAULTS, TabletCluster.reads: 0},
)
class TheNextRequestIsGivenUp(TabletCluster):
    """What was known of a write that had timed out was kept for the next one: it was taken for given up as it began."""

    def _forget(self, n: Term[Node], where: Bool | None = None) -> None:
        request = self.request[n]
        over = where if where is not None else request.tablet.is_some()
        request.tablet = choose(over, None, request.tablet)
        request.write = request.write & ~over
        request.stage = choose(over, Stage.none, request.stage)
        request.targets = choose(over, frozenset(), request.targets)
        request.reached = choose(over, frozenset(), request.reached)
        request.value = choose(over, 0, request.value)


@known_bug(
    "001-255",
    SUCCESSFUL,
    breaks=TabletCluster.requests_end_as_they_began,
    budgets=NO_FAULTS,
)
class AnAnswerEndsWhatItsReplicaCoordinates(TabletCluster):
    """A replica that had answered a read forgot its own request with it: a write that it coordinated was never told of."""

    @action(fair=WEAK)
    def answer_read(self, n: Term[Node], r: Term[Node], t: Term[Tablet]) -> None:
        """Replica `r` answers the read that node `n` coordinates, and is done."""
        request = self.request[n]
        require((request.tablet == t) & ~request.write, "a read is on its way")
        require(request.targets.has(r), "it is sent to the replica")
        require(~self.down.has(r), "replica is up")
        self.stale_read = self.stale_read | (self.data[t][r] < request.value)
        for m in Node:
            self._forget(m, where=(m == n) | (m == r))


@known_bug(
    "001-256",
    'design document 001: "node operations will have to wait for tablet migration track to finish"',
    breaks=TabletCluster.requests_wait_until_migrations_have_drained,
    budgets={
        **NO_FAULTS,
        TabletCluster.writes: 0,
        TabletCluster.reads: 0,
        TabletCluster.topology_changes: 1,
    },
)
class RequestsAreForgottenWhileTabletsMove(TabletCluster):
    """A request that came while a tablet moved was taken, and not noted: its node waited for an operation that never began."""

    @action(by=OPERATOR, spends=TabletCluster.topology_changes)
    def request_topology_change(self) -> None:
        """A node asks to join or leave: noted where the state machine is not busy with tablets."""
        self.request_pending = self.request_pending | (self.track != Track.tablet_migration)


@known_bug(
    "001-257",
    "design document 001, in the releases: a migration whose barrier fails for good is undone",
    breaks=TabletCluster.migrations_are_undone_where_a_node_is_lost,
    budgets={
        TabletMigration.failures: 0,
        TabletCluster.writes: 0,
        TabletCluster.reads: 0,
    },
)
class BarriersOfTheDeadAreTriedAgain(TabletCluster):
    """A barrier that a dead node did not answer was tried again and again, until the operator had given that node up."""

    @action(by=COORDINATOR)
    def fail_barrier(self, t: Term[Tablet]) -> None:
        """A node that is down does not answer the barrier: it is asked once more."""
        require(some(self.down.has(n) & ~self.excluded.has(n) for n in Node), "a node is down")
        tablet = self.tablets[t]
        waits = tablet.stage.column(lambda stage: stage.barrier)
        require(waits & (tablet.barrier == Progress.none), "stage has a barrier")
        tablet.barrier = Progress.none


@known_bug(
    "001-336",
    DRAIN,
    breaks=TabletCluster.requests_let_migrations_drain,
    budgets={
        TabletCluster.writes: 0,
        TabletCluster.reads: 0,
        TabletCluster.crashes: 0,
        TabletCluster.topology_changes: 1,
        TabletMigration.failures: 0,
    },
)
class RequestsMakeMigrationsPointless(TabletCluster):
    """With a topology change that was asked for, what streamed was unwanted: where it failed it was undone."""

    @action(by=OPERATOR, spends=TabletCluster.topology_changes)
    def request_topology_change(self) -> None:
        """A node asks to join or leave: no migration is worth another attempt."""
        self.request_pending = True
        for t in Tablet:
            tablet = self.tablets[t]
            tablet.unwanted = tablet.unwanted | (tablet.stage == Stage.streaming)


@known_bug(
    "001-362",
    'design document 001: expected invariants hold of "cluster-wide state"; who is gone for good is committed',
    breaks=(
        TabletCluster.replicas_are_ready_for_writes,
        TabletCluster.reads_use_the_new_replicas,
        TabletCluster.only_replicas_have_storage,
    ),
    budgets={
        TabletCluster.writes: 0,
        TabletCluster.reads: 0,
        TabletMigration.failures: 0,
        TabletCluster.rebuilds: 1,
        TabletCluster.coordinator_changes: 1,
    },
)
class WhoIsGoneIsForgotten(TabletCluster):
    """Which nodes are gone for good only the coordinator knew whom the operator had told: they came back under the next."""

    @action(by=COORDINATOR, spends=TabletCluster.coordinator_changes)
    def fail_over(self) -> None:
        """Another node becomes the topology coordinator."""
        super().fail_over()
        self.excluded = frozenset[Node]()


@known_bug(
    "001-363",
    "design document 001, Tablet migration: an action is taken before the stage is left",
    breaks=TabletCluster.actions_are_done_when_replicas_say_so,
    budgets={
        TabletCluster.writes: 0,
        TabletCluster.reads: 0,
        TabletMigration.failures: 0,
        TabletCluster.rebuilds: 1,
        TabletCluster.coordinator_changes: 1,
    },
)
class ARepairThatFailsIsDone(TabletCluster):
    """The repair before a rebuild was taken for done when it ended, also with an error, for its replicas were down."""

    @action(by=COORDINATOR, fair=WEAK)
    def fail_unanswered(self, t: Term[Tablet]) -> None:
        """The action ends because a node that it needs is down."""
        tablet = self.tablets[t]
        dead = some(self._needs(n, t) & self.down.has(n) for n in Node)
        require(dead | ~self._will_be_answered(t), "nobody can answer")
        require(tablet.operation == Progress.running, "action running")
        repairs = tablet.stage == Stage.rebuild_repair
        tablet.operation = choose(repairs, Progress.done, Progress.failed)


@known_bug(
    "001-398",
    INDEPENDENTLY,
    breaks=TabletCluster.two_tablets_stream_at_once,
    sizes={Tablet: 2},
    budgets=TWO_MIGRATIONS,
)
class NodesStreamOneTabletAtATime(TabletCluster):
    """The limit of a shard was applied to its node: one tablet was streamed to it at a time, on whichever shard."""

    @action(by=COORDINATOR, fair=WEAK)
    def ask_to_stream(self, t: Term[Tablet], pending: Term[Node]) -> None:
        """The pending replica starts to stream, when its node has done with other tablets."""
        others = every((o == t) | (self.streaming_at[o] != pending) for o in Tablet)
        require(others, "the node streams no other tablet")
        super().ask_to_stream(t, pending)


@known_bug(
    "001-399",
    INDEPENDENTLY,
    breaks=TabletCluster.requests_end_as_they_began,
    sizes={Tablet: 2},
    budgets={
        TabletCluster.reads: 0,
        TabletCluster.crashes: 0,
        TabletMigration.failures: 0,
    },
)
class BarriersRefuseWhatIsOfOtherTablets(TabletCluster):
    """A barrier waited for requests to its own tablet, and the fence that moved with it refused what had begun before, to
    whichever tablet: clients of a tablet at rest were cut off.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def pass_barrier(self, t: Term[Tablet]) -> None:
        """Every node has learned the stage and drained older requests to the tablet; then all that is older is refused."""
        drained = every(self._acknowledges_barrier(n, t) for n in Node)
        require(drained, "every node has learned the stage and drained older requests")
        self.tablets[t].pass_barrier()
        for n in Node:
            other = self.request[n].tablet.is_some() & (self.request[n].tablet != t)
            self._forget(n, where=other | self._is_older(n, t))


@known_bug(
    "001-400",
    'design document 001: node operations "have to wait for tablet migration track to finish"',
    breaks=TabletCluster.topology_changes_are_not_interrupted,
    budgets={
        TabletCluster.writes: 0,
        TabletCluster.reads: 0,
        TabletCluster.crashes: 0,
        TabletMigration.failures: 0,
        TabletCluster.topology_changes: 2,
    },
)
class RequestsGoWithTheChangeBefore(TabletCluster):
    """At the end of a topology change the request was deleted, once more: it was that of another node, which had asked
    meanwhile, and waited for ever.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def end_topology_change(self) -> None:
        """The topology change is done, and its request."""
        super().end_topology_change()
        self.request_pending = False


@known_bug(
    "001-401",
    INDEPENDENTLY,
    breaks=TabletCluster.streams_come_from_live_replicas,
    budgets={
        TabletCluster.writes: 0,
        TabletCluster.reads: 0,
        TabletMigration.failures: 0,
        TabletCluster.repairs: 1,
    },
)
class CrashesStopAllStreams(TabletCluster):
    """Whoever streamed gave up when a node died, from which it may have streamed nothing: each crash had all tablets of the
    cluster streamed anew.
    """

    @action(spends=TabletCluster.crashes)
    def crash(self, n: Term[Node]) -> None:
        """Node `n` stops, and so do all that stream."""
        require(~self.down.has(n), "node is up")
        self.down.add(n)
        self._abandon(n)
        for t in Tablet:
            self.streaming_at[t] = None
            self.copied[t] = False
            self.compacting[t][n] = 0


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
    "001-700",
    'design document 001, stage 3: the replica set "will reflect all successful writes"',
    breaks=TabletCluster.replicas_that_are_read_are_complete,
    budgets={
        **NO_FAULTS,
        TabletCluster.reads: 0,
        TabletCluster.migrations: 0,
        TabletCluster.writes: 2,
        TabletCluster.compactions: 1,
    },
)
class CompactionsReplaceWhatCameSince(TabletCluster):
    """What a compaction had rewritten took the place of all that its replica stored, and what clients had written meanwhile
    was gone.
    """

    @action(fair=WEAK)
    def end_compaction(self, t: Term[Tablet], n: Term[Node]) -> None:
        """What was rewritten takes the place of what is there."""
        require(self.compacting[t][n] > 0, "the node compacts")
        self.data[t][n] = self.compacting[t][n]
        self.compacting[t][n] = 0


BUGS = known_bugs_in(globals())

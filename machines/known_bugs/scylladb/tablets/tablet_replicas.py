"""Mistakes put back into `TabletReplicas`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.scylladb.tablets import tablet_replica_stages, tablet_replicas
from stagewright.machines.scylladb.tablets.tablet_replica_stages import Stage
from stagewright.machines.scylladb.tablets.tablet_replicas import (
    CLIENT,
    COORDINATOR,
    LAST_VALUE,
    Client,
    Node,
    TabletReplicas,
)
from stagewright.spec import (
    Bool,
    Fairness,
    Number,
    SetOf,
    Term,
    action,
    choose,
    every,
    greatest,
    least,
    require,
    some,
)
from stagewright.spec.declarations.budgets import BudgetName
from stagewright.spec.known_bugs import known_bug, known_bugs_in

NOBODY_WAITS = (
    'design document 001, write_both_read_old: "Writes are going to both new and old replicas"'
)
WEAK = Fairness.WEAK
ONE_MOVE: dict[BudgetName, int | None] = {
    TabletReplicas.removals: 0,
    TabletReplicas.additions: 0,
    TabletReplicas.failures: 0,
}


# -- what goes wrong -------------------------------------------------------------------------------


@known_bug(
    "001-198",
    "design document 001, in the releases: a quorum is half of the replication factor and one more",
    breaks=TabletReplicas.more_than_half_have_what_is_acknowledged,
    sizes={Node: 4},
    budgets={
        TabletReplicas.removals: 0,
        TabletReplicas.additions: 0,
        TabletReplicas.moves: 0,
        TabletReplicas.failures: 0,
    },
)
class HalfIsAQuorum(TabletReplicas):
    """Of four replicas two were a quorum."""

    def _quorum(self, replicas: SetOf[Node]) -> Number:
        return choose(replicas.size() <= 1, 1, 2)


@known_bug(
    "001-243",
    'design document 001: "replicas: the old replicas", "new_replicas: the new replicas"',
    breaks=TabletReplicas.replicas_are_moved,
    sizes={Node: 2},
    budgets={**ONE_MOVE, TabletReplicas.writes: 0},
)
class TheSourceOfAMoveStays(TabletReplicas):
    """A replica was moved by adding one: the other one stayed, and the tablet had one more after each migration."""

    @TabletReplicas.stage.step(
        Stage.none, Stage.allow_write_both_read_old, by=COORDINATOR, spends=TabletReplicas.moves
    )
    def move_replica(self, leaving: Term[Node], pending: Term[Node]) -> None:
        """The load balancer moves a replica."""
        require(self.replicas.has(leaving), "the leaving node is a replica")
        require(~self.replicas.has(pending), "the pending node is no replica")
        self._barrier()
        self.next.add(pending)


@known_bug(
    "001-244",
    "design document 001, in the releases: a rebuild repairs the replicas that it reads from first",
    breaks=TabletReplicas.replicas_store_what_was_written,
    sizes={Node: 2},
    budgets={TabletReplicas.moves: 0, TabletReplicas.removals: 1},
)
class RepairedRowsAreNew(TabletReplicas):
    """A repair wrote its rows with the time of the repair: they won over what clients had written since."""

    @action(by=COORDINATOR, fair=WEAK)
    def repair(self) -> None:
        """Each replica to be read from gets the newest value, as one that was written now."""
        require(self.stage == Stage.rebuild_repair, "stage is rebuild_repair")
        require(~self.operated, "not repaired yet")
        newest = greatest((self.data[r] for r in self.replicas), default=0)
        now = choose(newest < LAST_VALUE, newest + 1, newest)
        for n in Node:
            self.data[n] = choose(self.replicas.has(n), now, self.data[n])
        self.operated = True


@known_bug(
    "001-245",
    "design document 001, stage 3: writes are executed on behalf of successful requests",
    breaks=TabletReplicas.replicas_answer_that_they_stored,
    sizes={Node: 2},
    budgets={**ONE_MOVE, TabletReplicas.moves: 0},
)
class AnswersAreTakenForLateOnes(TabletReplicas):
    """Whoever coordinated a write took each answer for one that had come too late: no client was told of success."""

    @action(fair=WEAK)
    def store(self, c: Term[Client], r: Term[Node]) -> None:
        """A replica stores the write, and its answer is passed over."""
        write = self.write[c]
        require(write.targets.has(r), "the write is sent to the node")
        self.data[r] = choose(self.data[r] < write.value, write.value, self.data[r])


@known_bug(
    "001-345",
    'design document 001, write_both_read_old: "Writes are going to both new and old replicas"',
    breaks=TabletReplicas.what_is_done_stays_done,
    sizes={Node: 2},
    budgets={
        TabletReplicas.writes: 1,
        TabletReplicas.removals: 0,
        TabletReplicas.additions: 0,
        TabletReplicas.failures: 0,
    },
)
class StreamsFollowWrites(TabletReplicas):
    """The same between nodes: a write had the replicas streamed anew."""

    @action(by=CLIENT, spends=TabletReplicas.writes)
    def begin_write(self, c: Term[Client]) -> None:
        """A client writes: what was streamed is out of date."""
        super().begin_write(c)
        self.operated = self.operated & (self.stage != Stage.streaming)


@known_bug(
    "001-375",
    'design document 001, stage 6: "No write request will reach tablet replica … which does not belong"',
    breaks=(
        TabletReplicas.only_replicas_hold_data,
        TabletReplicas.nobody_is_behind_the_last_barrier,
    ),
    sizes={Client: 2, tablet_replicas.Node: 2},
    budgets={TabletReplicas.removals: 0, TabletReplicas.additions: 0},
)
class OneAnswerIsEnoughToUndo(TabletReplicas):
    """To undo a move the barrier of whoever answered first was enough: others still wrote to the pending replica."""

    def _has_drained(self) -> Bool:
        back = self.stage.any_of(
            tablet_replica_stages.Stage.cleanup_target, tablet_replica_stages.Stage.revert_migration
        )
        one = some(
            (self.view[c].stage == self.stage)
            & ((self.write[c].value == 0) | (self.write[c].stage == self.stage))
            for c in Client
        )
        return super()._has_drained() | (back & one)


@known_bug(
    "M04",
    "design document 001, stage 4: what reached the leaving replica",
    breaks=TabletReplicas.new_replicas_are_complete,
    budgets={TabletReplicas.removals: 0, TabletReplicas.additions: 0, TabletReplicas.failures: 0},
)
class StreamsOnlyWhatWasAcknowledged(TabletReplicas):
    """The stream leaves out what the leaving replica stored and no quorum acknowledged yet."""

    def _rows_to_stream(self, source: Term[Node]) -> Number:
        return least(super()._rows_to_stream(source), self.acknowledged)


@known_bug(
    "T23",
    "SCYLLADB-1418, scylladb PR #29376",
    breaks=(
        TabletReplicas.acknowledged_writes_are_kept,
        TabletReplicas.quorum_reads_see_acknowledged_writes,
    ),
)
class RemovalSkipsTheRepair(TabletReplicas):
    """A replica is removed without a repair, because nothing is streamed. The replication factor falls from 3
    to 2 to 1, and the two replicas that acknowledged a write are those that leave.
    """

    def _repairs_first(self) -> Bool:
        return super()._repairs_first() & ~self._pending().is_empty()


@known_bug(
    "001-716",
    NOBODY_WAITS,
    breaks=TabletReplicas.writes_go_on_while_replicas_change,
    sizes={Node: 2},
    budgets=ONE_MOVE,
)
class WhoLearnsDropsItsWrite(TabletReplicas):
    """Whoever coordinated a write dropped it when it learned of a stage, so that no barrier had anything to wait for."""

    @action(fair=WEAK)
    def learn(self, c: Term[Client]) -> None:
        """A coordinator of requests learns what is committed, and begins anew."""
        super().learn(c)
        write = self.write[c]
        write.value = 0
        write.stage = Stage.none
        write.targets = frozenset[Node]()
        write.stored = frozenset[Node]()
        write.needed = 0


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "001-20",
    "design document 001: write_both_read_old",
    breaks=TabletReplicas.clients_write_while_replicas_change,
)
class WritesWaitForTheReplicas(TabletReplicas):
    """A tablet takes no writes while a replica is added, removed or moved."""

    @action(by=CLIENT, spends=TabletReplicas.writes)
    def begin_write(self, c: Term[Client]) -> None:
        """A client writes to a tablet at rest."""
        super().begin_write(c)
        require(self.view[c].stage == Stage.none, "the tablet is at rest")


@known_bug(
    "001-89",
    'design document 001: "Writes are going to both new and old replicas"',
    breaks=TabletReplicas.writes_are_stored_while_replicas_change,
    budgets={TabletReplicas.removals: 0, TabletReplicas.additions: 0, TabletReplicas.failures: 0},
)
class ThePendingReplicaTakesNoWrites(TabletReplicas):
    """The pending replica took no writes before it had streamed, so that writes which needed it failed."""

    @action(fair=WEAK)
    def store(self, c: Term[Client], r: Term[Node]) -> None:
        """A replica stores the write, unless it streams."""
        super().store(c, r)
        streams = (self.stage == Stage.streaming) & self._pending().has(r)
        require(~streams, "the replica does not stream")


@known_bug(
    "001-90",
    "design document 001, stage 3: writes are executed on behalf of successful requests",
    breaks=TabletReplicas.writes_succeed_while_replicas_change,
    budgets={TabletReplicas.removals: 0, TabletReplicas.additions: 0, TabletReplicas.failures: 0},
)
class WritesAreAcknowledgedAtRest(TabletReplicas):
    """A write that enough replicas had stored was acknowledged when the tablet was at rest."""

    @action(fair=WEAK)
    def acknowledge(self, c: Term[Client]) -> None:
        """Enough replicas have stored the write, and their set does not change."""
        super().acknowledge(c)
        require(self.stage == Stage.none, "the tablet is at rest")


@known_bug(
    "001-92",
    'design document 001: barriers wait for what is older, "writes are going to both new and old replicas"',
    breaks=TabletReplicas.replicas_are_moved_while_clients_write,
    budgets={TabletReplicas.removals: 0, TabletReplicas.additions: 0, TabletReplicas.failures: 0},
)
class MovesWaitForSilence(TabletReplicas):
    """A replica was moved when no write was on its way, of whichever version: under load that never happened."""

    def _has_drained(self) -> Bool:
        silent = every(self.write[c].value == 0 for c in Client)
        return super()._has_drained() & ((self.stage != Stage.none) | silent)


@known_bug(
    "001-120",
    "design document 001, stage 3: writes are executed on behalf of successful requests",
    breaks=TabletReplicas.writes_succeed_while_replicas_change,
    budgets={
        TabletReplicas.removals: 0,
        TabletReplicas.additions: 0,
        TabletReplicas.moves: 0,
        TabletReplicas.failures: 0,
    },
)
class ThreeReplicasAllHaveToAnswer(TabletReplicas):
    """Of three replicas a quorum was three, of reads and of writes: one that was down, and no client was served."""

    def _quorum(self, replicas: SetOf[Node]) -> Number:
        return choose(replicas.size() == 3, 3, super()._quorum(replicas))


@known_bug(
    "001-177",
    "design document 001, the change of replicas: none is the last but the last",
    breaks=TabletReplicas.replicas_are_removed_while_clients_write,
    budgets={TabletReplicas.writes: 0},
)
class TwoReplicasStay(TabletReplicas):
    """A replication factor of two was never lowered to one."""

    @TabletReplicas.stage.step(
        Stage.none,
        Stage.allow_write_both_read_old,
        by=COORDINATOR,
        spends=TabletReplicas.removals,
    )
    def remove_replica(self, leaving: Term[Node]) -> None:
        """The replication factor falls by one, unless it is two."""
        require(self.replicas.has(leaving), "the node is a replica")
        require(self.replicas.size() > 2, "two others are left")
        self._barrier()
        self.next.discard(leaving)


@known_bug(
    "001-178",
    "design document 001, in the releases: rebuild_repair, if it fails, is followed by cleanup_target",
    breaks=TabletReplicas.what_cannot_be_done_is_undone,
    budgets={TabletReplicas.writes: 0},
)
class FailedRepairsAreNotUndone(TabletReplicas):
    """A rebuild was undone if streaming failed; if its repair failed, it was tried for ever."""

    @TabletReplicas.stage.step(
        Stage.streaming, Stage.cleanup_target, by=COORDINATOR, spends=TabletReplicas.failures
    )
    def give_up_streaming(self) -> None:
        """Streaming failed for good: undo."""
        require(~self.operated, "the action is not done")


@known_bug(
    "001-179",
    NOBODY_WAITS,
    breaks=TabletReplicas.replicas_stream_while_clients_write,
    sizes={Node: 2},
    budgets={TabletReplicas.moves: 0},
)
class StreamsWaitForWrites(TabletReplicas):
    """A replica was streamed to when no write was on its way: under load that took for ever."""

    @action(by=COORDINATOR, fair=WEAK)
    def stream(self, source: Term[Node], pending: Term[Node]) -> None:
        """The pending replica copies another, while nobody writes."""
        super().stream(source, pending)
        require(every(self.write[c].value == 0 for c in Client), "nobody writes")


@known_bug(
    "001-542",
    'design document 001, stage 2: replicas "see the transition info … via local token metadata"',
    breaks=TabletReplicas.no_step_waits_for_clients,
    sizes={Node: 2},
    budgets=ONE_MOVE,
)
class WhoCoordinatesDoesNotLearn(TabletReplicas):
    """A coordinator learned of a stage between two writes: one that always had one on its way never did."""

    @action(fair=WEAK)
    def learn(self, c: Term[Client]) -> None:
        """A coordinator without a write on its way learns what is committed."""
        super().learn(c)
        require(self.write[c].value == 0, "no write is on its way")


@known_bug(
    "001-680",
    NOBODY_WAITS,
    breaks=TabletReplicas.replicas_are_repaired_while_clients_write,
    sizes={Node: 2},
    budgets={TabletReplicas.moves: 0, TabletReplicas.removals: 1},
)
class RepairsWaitForWrites(TabletReplicas):
    """The repair before a replica is added or removed began when no write was on its way."""

    @action(by=COORDINATOR, fair=WEAK)
    def repair(self) -> None:
        """The replicas are repaired while nobody writes."""
        require(every(self.write[c].value == 0 for c in Client), "nobody writes")
        super().repair()


@known_bug(
    "001-681",
    'design document 001, stage 6: "No write request will reach" the replica that leaves',
    breaks=TabletReplicas.replicas_are_cleaned_up_while_clients_write,
    sizes={Node: 2},
    budgets=ONE_MOVE,
)
class CleanupsWaitForWrites(TabletReplicas):
    """A replica that had left kept its rows until no write was on its way, though none went there any more."""

    @action(by=COORDINATOR, fair=WEAK)
    def clean_up(self, n: Term[Node]) -> None:
        """The replica removes its rows; one that leaves, while nobody writes."""
        silent = every(self.write[c].value == 0 for c in Client)
        require(silent | (self.stage != Stage.cleanup), "nobody writes")
        super().clean_up(n)


@known_bug(
    "001-682",
    NOBODY_WAITS,
    breaks=TabletReplicas.stages_are_left_while_clients_write,
    sizes={Node: 2},
    budgets={TabletReplicas.moves: 0, TabletReplicas.removals: 1},
)
class BarriersWaitForSilence(TabletReplicas):
    """A barrier waited for whatever was on its way, also for what had begun in the stage itself: under load no stage ended."""

    def _has_drained(self) -> Bool:
        silent = every(self.write[c].value == 0 for c in Client)
        return super()._has_drained() & ((self.stage == Stage.none) | silent)


@known_bug(
    "001-708",
    "design document 001, in the releases: a transition is undone when its action has failed, and for a reason",
    breaks=TabletReplicas.what_is_done_stays_done,
    sizes={Node: 2},
    budgets={TabletReplicas.writes: 0, TabletReplicas.removals: 0, TabletReplicas.additions: 0},
)
class WhatHasStreamedIsUndone(TabletReplicas):
    """A failure that was heard of late undid a change whose rows had all been streamed."""

    @TabletReplicas.stage.step(
        (Stage.rebuild_repair, Stage.streaming),
        Stage.cleanup_target,
        by=COORDINATOR,
        spends=TabletReplicas.failures,
    )
    def give_up_streaming(self) -> None:
        """The action failed, or had failed before: undo."""
        self.operated = False


BUGS = known_bugs_in(globals())

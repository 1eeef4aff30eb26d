"""Bugs of changes to the replication factor."""

from __future__ import annotations

from stagewright.machines.scylladb.tablets.tablet_replica_stages import Stage
from stagewright.machines.scylladb.tablets.tablet_replicas import (
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
)
from stagewright.spec.declarations.budgets import BudgetName
from stagewright.spec.known_bugs import NotFound, known_bug, known_bugs_in

WEAK = Fairness.WEAK


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


ONE_MOVE: dict[BudgetName, int | None] = {
    TabletReplicas.removals: 0,
    TabletReplicas.additions: 0,
    TabletReplicas.failures: 0,
}


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


BUGS = known_bugs_in(globals())
NOT_FOUND: tuple[NotFound, ...] = ()

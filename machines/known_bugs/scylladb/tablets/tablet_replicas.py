"""Bugs of changes to the replication factor."""

from __future__ import annotations

from stagewright.machines.scylladb.tablets.tablet_replica_stages import Stage
from stagewright.machines.scylladb.tablets.tablet_replicas import Client, Node, TabletReplicas
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
    require,
)
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


BUGS = known_bugs_in(globals())
NOT_FOUND: tuple[NotFound, ...] = ()

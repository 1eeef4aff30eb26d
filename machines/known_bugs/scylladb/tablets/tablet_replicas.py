"""Bugs of changes to the replication factor."""

from __future__ import annotations

from stagewright.machines.scylladb.tablets.tablet_replicas import Node, TabletReplicas
from stagewright.spec import Bool, Number, Term, least
from stagewright.spec.known_bugs import NotFound, known_bug, known_bugs_in


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


BUGS = known_bugs_in(globals())
NOT_FOUND: tuple[NotFound, ...] = ()

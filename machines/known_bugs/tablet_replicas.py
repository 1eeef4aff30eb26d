"""Bugs of changes to the replication factor."""

from __future__ import annotations

from stagewright.machines.scylladb.tablets.tablet_replicas import TabletReplicas
from stagewright.spec import Bool
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


BUGS = known_bugs_in(globals())
NOT_FOUND: tuple[NotFound, ...] = ()

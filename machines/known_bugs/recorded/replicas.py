"""Mistakes put back into `RecordedReplica`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.recorded.replicas import RecordedReplica
from stagewright.spec import action
from stagewright.spec.known_bugs import known_bug, known_bugs_in


@known_bug(
    "001-697",
    'design document 001: a node stores rows "only if that shard is one of the current tablet replicas"',
    breaks=RecordedReplica.rows_go_before_their_storage,
)
class RowsGoWithTheirStorage(RecordedReplica):
    """Whatever a replica still had went with its storage, and nobody had asked for its cleanup."""

    @action
    def deallocate(self) -> None:
        """The node learns a stage in which it has no storage, and has no rows then."""
        self.storage = False
        self.rows = False


BUGS = known_bugs_in(globals())

"""Bugs of triggers: thresholds that are never reached, and jobs that wait for each other."""

from __future__ import annotations

from stagewright.machines.couchbase.indexes.index_triggers import (
    CHANGES,
    FRAGMENTATION,
    IndexTriggers,
)
from stagewright.spec import Bool
from stagewright.spec.known_bugs import NotFound, known_bug, known_bugs_in

BY = "design document 004: by time duration or number of changes threshold"


@known_bug("K12-time", BY, breaks=IndexTriggers.time_triggers_an_update)
class FewChangesAreNotIndexed(IndexTriggers):
    """The server asks for both, the time and the number: fewer changes than that stay away for ever."""

    def _has_old_changes(self) -> Bool:
        return super()._has_old_changes() & self._has_many_changes()


@known_bug("K12-changes", BY, breaks=IndexTriggers.many_changes_trigger_an_update)
class ManyChangesWait(IndexTriggers):
    """However many changes there were, an update was triggered by the time alone."""

    def _has_many_changes(self) -> Bool:
        return (self.waiting >= CHANGES) & self._has_old_changes()


@known_bug(
    "K12-fragmentation",
    "design document 004: by fragmentation threshold",
    breaks=IndexTriggers.fragmentation_triggers_a_compaction,
)
class CompactionWaitsForTheUpdater(IndexTriggers):
    """A file was not compacted while its updater ran: that of a busy index never was."""

    def _is_fragmented(self) -> Bool:
        return (self.fragmentation >= FRAGMENTATION) & ~self.updater


BUGS = known_bugs_in(globals())
NOT_FOUND: tuple[NotFound, ...] = ()

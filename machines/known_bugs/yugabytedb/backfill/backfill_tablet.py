"""Mistakes put back into `BackfillTablet`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.yugabytedb.backfill.backfill_table import MASTER, WEAK
from stagewright.machines.yugabytedb.backfill.backfill_tablet import BackfillTablet, Begin, Scan
from stagewright.spec import action, require
from stagewright.spec.known_bugs import known_bug, known_bugs_in

CHECKPOINTS = "design document 002, Fault tolerance using checkpointing"


@known_bug("002-32", CHECKPOINTS, breaks=BackfillTablet.checkpoints_only_advance)
class LaterChunksAreNotKnown(BackfillTablet):
    """A new leader knows that the tablet was begun, and not how far it is: it asks for the first chunk."""

    @action
    def begin_anew(self) -> None:
        """A chunk after the first was going on."""
        require(self.scan == Scan.taken_over, "another master is the leader")
        require(self.begin.any_of(Begin.same, Begin.further), "it was not the first chunk")
        self.scan = Scan.chunk
        self.begin = Begin.at_the_start


@known_bug(
    "002-33",
    'design document 002: an answer says "how far it managed to successfully build"',
    breaks=BackfillTablet.what_is_done_was_scanned,
)
class AFailureIsAnEnd(BackfillTablet):
    """A chunk has failed for one index, and the tablet is taken for done for the others, too."""

    @action(by=MASTER, fair=WEAK)
    def finish(self) -> None:
        """No chunk of it is going on any more."""
        require(self.scan.any_of(Scan.chunk, Scan.failed), "a chunk was asked for")
        self.scan = Scan.done


@known_bug(
    "002-230",
    "design document 002, Resilience: the index build should be resilient to failures",
    breaks=BackfillTablet.chunks_fail_for_an_index,
)
class FailuresWaitForTheNextLeader(BackfillTablet):
    """A leader for which a chunk had failed left the tablet to whoever came after it."""

    @action(by=MASTER)
    def fail(self) -> None:
        """A chunk fails for an index of the job: this leader does no more about it."""
        require(self.scan == Scan.chunk, "a chunk is going on")
        self.scan = Scan.taken_over


@known_bug(
    "Y31",
    "design document 002, Fault tolerance using checkpointing",
    breaks=BackfillTablet.checkpoints_only_advance,
)
class TheNextLeaderBeginsAnew(BackfillTablet):
    """A new leader does not know the checkpoint, and asks for the tablet from its start."""

    @action
    def begin_anew(self) -> None:
        """It begins at the start of the tablet."""
        require(self.scan == Scan.taken_over, "another master is the leader")
        self.scan = Scan.chunk
        self.begin = Begin.at_the_start


BUGS = known_bugs_in(globals())

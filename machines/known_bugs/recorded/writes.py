"""Mistakes put back into `RecordedWrite`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.recorded.writes import REPLICA, RecordedWrite
from stagewright.spec import action, require
from stagewright.spec.known_bugs import known_bug, known_bugs_in


@known_bug(
    "001-696",
    'design document 001, stage 3: such a write "will reach CL in both old and new replica sets"',
    breaks=RecordedWrite.replicas_that_are_late_answer,
)
class NobodyAnswersWhenTheClientKnows(RecordedWrite):
    """A replica that stored a write after its client had been told was taken for one that must not: the trace was refused."""

    @action(by=REPLICA)
    def answer(self) -> None:
        """One more replica has stored it, in time."""
        super().answer()
        require(~self.acknowledged, "the client waits")


BUGS = known_bugs_in(globals())

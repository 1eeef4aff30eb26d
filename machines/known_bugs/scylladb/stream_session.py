"""Bugs of stream sessions."""

from __future__ import annotations

from stagewright.machines.scylladb.tablets.stream_session import MASTER, StreamSession
from stagewright.spec import Fairness, action, only_when
from stagewright.spec.known_bugs import NotFound, known_bug, known_bugs_in


@known_bug(
    "T27",
    "scylladb #20227",
    breaks=StreamSession.failures_are_reported,
    budgets={StreamSession.restarts: 0},
)
class NobodyGivesUpAnIdleSession(StreamSession):
    """The follower fails, and the message that says so is lost. The master waits for 43 minutes, and so do the
    coordinator and the operations that are next.
    """

    @action(by=MASTER, fair=Fairness.WEAK)
    def give_up_idle_session(self) -> None:
        """There is no such limit."""
        only_when(False)


BUGS = known_bugs_in(globals())
NOT_FOUND: tuple[NotFound, ...] = ()

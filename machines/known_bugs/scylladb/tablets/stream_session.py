"""Bugs of stream sessions."""

from __future__ import annotations

from stagewright.machines.scylladb.tablets.stream_session import (
    MASTER,
    ROWS,
    Message,
    Session,
    StreamSession,
)
from stagewright.spec import Fairness, action, choose, only_when, require
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


@known_bug(
    "T27-answer",
    "design document 001: stage 4 ends when the rows are there",
    breaks=StreamSession.rows_are_wanted_until_they_are_there,
    budgets={StreamSession.restarts: 0},
)
class AnyAnswerIsTakenForSuccess(StreamSession):
    """The coordinator took the master's answer for the rows' arrival, whatever it said."""

    @action(by=MASTER, fair=Fairness.WEAK)
    def report(self) -> None:
        """The master answers the coordinator, which does not look at the answer."""
        require(self.master.any_of(Session.complete, Session.failed), "the session has ended")
        self.wanted = False
        self.waiting = False
        self.master = Session.none


@known_bug(
    "001-61",
    "design document 001, stage 4: all the writes which reached the leaving replicas",
    breaks=StreamSession.complete_means_that_all_rows_arrived,
    budgets={StreamSession.failures: 0, StreamSession.losses: 0},
)
class AnyPlanCompletesTheSession(StreamSession):
    """The message `complete` of a session before was taken for that of this one; rows were counted at the end, and where
    some were missing the whole was streamed once more.
    """

    @action(by=MASTER, fair=Fairness.WEAK)
    def receive_complete(self) -> None:
        """A follower has sent everything."""
        self._arrives(Message.complete)
        streams = self.master == Session.streaming
        self.master = choose(streams, Session.complete, self.master)
        self._take_off_the_wire()

    @action(by=MASTER, fair=Fairness.WEAK)
    def report(self) -> None:
        """The master answers the coordinator: all is well if the rows are as many as they should be."""
        require(self.master.any_of(Session.complete, Session.failed), "the session has ended")
        self.wanted = (self.master == Session.failed) | (self.received < ROWS)
        self.waiting = False
        self.master = Session.none


BUGS = known_bugs_in(globals())
NOT_FOUND: tuple[NotFound, ...] = ()

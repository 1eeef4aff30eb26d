"""Mistakes put back into `StreamSession`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.scylladb.tablets.stream_session import (
    FOLLOWER,
    MASTER,
    ROWS,
    Message,
    Session,
    StreamSession,
)
from stagewright.spec import Fairness, action, choose, require
from stagewright.spec.known_bugs import known_bug, known_bugs_in

WEAK = Fairness.WEAK


# -- what goes wrong -------------------------------------------------------------------------------


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


@known_bug(
    "001-248",
    'design document 001: migrations go on "to keep the cluster saturated with streaming"',
    breaks=StreamSession.failures_are_heard_at_once,
)
class MastersHearOfNoFailure(StreamSession):
    """A master took the failure of its follower for the end of the stream's messages, and waited until it timed out."""

    @action(by=MASTER, fair=WEAK)
    def receive_failure(self) -> None:
        """The follower says that its session has failed: nothing more will come."""
        self._arrives(Message.failed)
        self._take_off_the_wire()


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
    "001-720",
    'design document 001: migrations go on "to keep the cluster saturated with streaming"',
    breaks=StreamSession.sessions_fail_for_themselves,
)
class LateCompletionsFailTheSession(StreamSession):
    """The last message of an older session, which its master had forgotten, was taken for an error of the one that had been
    begun since: that one was begun anew.
    """

    @action(by=MASTER, fair=WEAK)
    def receive_complete(self) -> None:
        """The follower has sent everything; what is of another session than the master's fails this one."""
        self._arrives(Message.complete)
        late = (self.master == Session.streaming) & ~self._is_of_session()
        ended = choose(self._is_of_session(), Session.complete, self.master)
        self.master = choose(late, Session.failed, ended)
        self._take_off_the_wire()


# -- what is never done ----------------------------------------------------------------------------


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
        """There is no such limit for a session that the follower has begun."""
        super().give_up_idle_session()
        require(self.follower_plan < self.plan, "the follower has not begun")


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "001-208",
    'design document 001: migrations go on "to keep the cluster saturated with streaming"',
    breaks=StreamSession.failures_are_told_at_once,
)
class WhoHasSentNothingSaysNothing(StreamSession):
    """A follower whose session failed before it had sent anything told nobody: its master waited for its timeout."""

    @action(by=FOLLOWER, fair=Fairness.WEAK)
    def send_failure(self) -> None:
        """The follower says so, of what it has begun to send."""
        super().send_failure()
        require(self.sent > 0, "it has sent something")


@known_bug(
    "001-547",
    'design document 001: "to keep the cluster saturated with streaming"',
    breaks=StreamSession.nobody_waits_for_an_old_session,
)
class FailuresAreReportedWhenTheFollowerIsDone(StreamSession):
    """A master reported its session's end when the follower had forgotten it, too: one that had given up an idle
    session went on waiting for it.
    """

    @action(by=MASTER, fair=WEAK)
    def report(self) -> None:
        """The master answers the coordinator, and nobody works for it any more."""
        over = (self.follower == Session.none) | (self.follower_plan != self.plan)
        require(over, "the follower has ended as well")
        super().report()


@known_bug(
    "001-695",
    'design document 001: "to keep the cluster saturated with streaming"',
    breaks=StreamSession.new_sessions_wait_for_no_old_one,
)
class FollowersEndOneSessionFirst(StreamSession):
    """A follower began a session when it had ended the one before, whose master had long given it up."""

    @action(by=FOLLOWER, fair=WEAK)
    def begin_session(self) -> None:
        """The follower prepares a session, if it has no other."""
        require(self.follower == Session.none, "the last session is over")
        super().begin_session()


@known_bug(
    "001-706",
    'design document 001: "to keep the cluster saturated with streaming"',
    breaks=StreamSession.sessions_that_never_began_are_given_up,
)
class MastersWaitForAnotherSession(StreamSession):
    """A master whose request was lost gave its session up when the follower had ended the one before."""

    @action(by=MASTER, fair=WEAK)
    def give_up_idle_session(self) -> None:
        """Nothing has come for long, and the follower has no session."""
        super().give_up_idle_session()
        require(self.follower == Session.none, "the follower has no session")


BUGS = known_bugs_in(globals())

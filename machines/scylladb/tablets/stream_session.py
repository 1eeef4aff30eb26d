"""A stream session: the pending replica asks another node to send rows, and tells the coordinator how it went.

The master of the session (the node that needs the rows) and its follower (the one that has them) know of each
other by messages alone, which name the stream plan. A message may be lost, either node may restart, and then the
coordinator must learn that the session failed, or it waits for ever.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Self

from stagewright.spec import (
    Actor,
    Bool,
    Fairness,
    FlagVar,
    LeadsTo,
    Machine,
    NumberVar,
    OneVar,
    accepts,
    action,
    choose,
    equivalent_drop,
    equivalent_loss,
    equivalent_replacement,
    equivalents,
    fault_budget,
    final,
    flag,
    independent,
    invariant,
    leads_to,
    lemma,
    liveness,
    number,
    one_of,
    require,
    scopes,
    sometimes,
    step_property,
)

WEAK = Fairness.WEAK
COORDINATOR = Actor("topology coordinator")
MASTER = Actor("master")
FOLLOWER = Actor("follower")
NETWORK = Actor("network")
LAST_PLAN = 8
ROWS = 2


class Session(Enum):
    """The state of a session, at either end."""

    none = auto()
    streaming = auto()
    complete = auto()
    failed = auto()


class Message(Enum):
    """What a follower sends."""

    none = auto()
    rows = auto()  # answered: the follower learns whether they arrived
    complete = auto()  # these two are not
    failed = auto()


class StreamSession(Machine):
    """Sessions that are tried until one succeeds, each under a plan of its own."""

    failures = fault_budget(1, doc="sessions that fail at the follower")
    losses = fault_budget(1, doc="messages that are lost")
    restarts = fault_budget(1, doc="nodes that restart")

    exercised_at = scopes({}, {failures: 2, losses: 2, restarts: 2})

    # the topology coordinator
    wanted: FlagVar = flag(init=True)  # the rows are to be streamed
    waiting: FlagVar = flag()  # for the answer of the master
    plan: NumberVar = number(0, LAST_PLAN)  # of the last session
    # the master
    master: OneVar[Session] = one_of(Session, init=Session.none)
    received: NumberVar = number(0, ROWS)  # in this session
    # the follower
    follower: OneVar[Session] = one_of(Session, init=Session.none)
    follower_plan: NumberVar = number(0, LAST_PLAN)
    sent: NumberVar = number(0, ROWS)
    # on the wire
    prepare: NumberVar = number(0, LAST_PLAN)  # the plan of a request to prepare; 0: none
    message: OneVar[Message] = one_of(Message, init=Message.none)
    message_plan: NumberVar = number(0, LAST_PLAN)

    # -- the coordinator and the master --------------------------------------------------------------------

    @action(by=COORDINATOR, fair=WEAK)
    def ask_to_stream(self) -> None:
        """The coordinator asks for the rows; the master asks a follower to prepare, under a new plan."""
        require(self.wanted & ~self.waiting, "rows are wanted, and nobody is asked")
        self.waiting = True
        self.master = Session.streaming
        self.received = 0
        self.prepare = self.plan + 1
        self.plan = self.plan + 1

    @action(by=MASTER, fair=WEAK)
    def receive_rows(self) -> None:
        """The master stores rows of its session; those of another one it refuses, and the follower learns it."""
        self._arrives(Message.rows)
        known = self._is_of_session()
        self.received = choose(known, self.received + 1, self.received)
        self._fail_sender(~known)
        self._take_off_the_wire()

    @action(by=MASTER, fair=WEAK)
    def receive_complete(self) -> None:
        """The follower has sent everything."""
        self._arrives(Message.complete)
        self.master = choose(self._is_of_session(), Session.complete, self.master)
        self._take_off_the_wire()

    @action(by=MASTER, fair=WEAK)
    def receive_failure(self) -> None:
        """The follower says that its session has failed."""
        self._arrives(Message.failed)
        self.master = choose(self._is_of_session(), Session.failed, self.master)
        self._take_off_the_wire()

    @action(by=MASTER, fair=WEAK)
    def give_up_idle_session(self) -> None:
        """Nothing has come for so long that nothing will: the master's session fails."""
        require(self.master == Session.streaming, "the session goes on, says the master")
        works = (self.follower == Session.streaming) & (self.follower_plan == self.plan)
        quiet = (self.prepare == 0) & (self.message == Message.none)
        require(quiet & ~works, "nothing is on the wire, and nobody works on it")
        self.master = Session.failed

    @action(by=MASTER, fair=WEAK)
    def report(self) -> None:
        """The master answers the coordinator."""
        done = self.master == Session.complete
        require(done | (self.master == Session.failed), "the session has ended")
        self.wanted = ~done
        self.waiting = False
        self.master = Session.none

    @action(by=COORDINATOR, fair=WEAK)
    def hear_of_restart(self) -> None:
        """The master has restarted: the coordinator's request to it fails."""
        require(self.master == Session.none, "the master knows of no session")
        require(self.waiting, "the coordinator waits")
        self.waiting = False

    # -- the follower --------------------------------------------------------------------------------------

    @action(by=FOLLOWER, fair=WEAK)
    def begin_session(self) -> None:
        """The follower prepares a session under the plan that the master names; an older one is dropped."""
        require(self.prepare > 0, "a request to prepare is on the wire")
        self.follower = Session.streaming
        self.follower_plan = self.prepare
        self.sent = 0
        self.prepare = 0

    @action(by=FOLLOWER, fair=WEAK)
    def send_rows(self) -> None:
        """The follower sends the next rows once the last have arrived."""
        self._may_send()
        require(self.sent < ROWS, "rows are left")
        self.sent = self.sent + 1
        self._send(Message.rows)

    @action(by=FOLLOWER, fair=WEAK)
    def send_complete(self) -> None:
        """All rows have arrived: the follower is done."""
        self._may_send()
        require(self.sent == ROWS, "all rows are sent")
        self._send(Message.complete)
        self.follower = Session.none

    @action(by=FOLLOWER, spends=failures)
    def fail(self) -> None:
        """The follower cannot go on: an error on its disk, or a stage that has moved on."""
        require(self.follower == Session.streaming, "the session goes on")
        self.follower = Session.failed

    @action(by=FOLLOWER, fair=WEAK)
    def send_failure(self) -> None:
        """The follower says so, and forgets the session."""
        require(self.follower == Session.failed, "the session has failed")
        require(self.message == Message.none, "the last message has arrived")
        self._send(Message.failed)
        self.follower = Session.none

    # -- faults --------------------------------------------------------------------------------------------

    @action(by=NETWORK, spends=losses)
    def lose_message(self) -> None:
        """A message of the follower is lost; it notices only if it waits for an answer."""
        require(self.message != Message.none, "a message is on the wire")
        self._fail_sender(self.message == Message.rows)
        self._take_off_the_wire()

    @action(by=NETWORK, spends=losses)
    def lose_prepare(self) -> None:
        """The request to prepare is lost."""
        require(self.prepare > 0, "a request to prepare is on the wire")
        self.prepare = 0

    @action(spends=restarts)
    def restart_master(self) -> None:
        """The master restarts, and knows of no session; its follower goes on."""
        self.master = Session.none

    @action(spends=restarts)
    def restart_follower(self) -> None:
        """The follower restarts; its master is not told."""
        self.follower = Session.none

    # -- helpers -------------------------------------------------------------------------------------------

    def _arrives(self, message: Message) -> None:
        require(self.message == message, f"a message `{message.name}` is on the wire")

    def _is_of_session(self) -> Bool:
        return (self.master == Session.streaming) & (self.message_plan == self.plan)

    def _may_send(self) -> None:
        require(self.follower == Session.streaming, "the session goes on")
        require(self.message == Message.none, "the last message has arrived")

    def _send(self, message: Message) -> None:
        self.message = message
        self.message_plan = self.follower_plan

    def _take_off_the_wire(self) -> None:
        self.message = Message.none

    def _fail_sender(self, where: Bool) -> None:
        """The follower learns that what it sent did not arrive, if it still has that session."""
        has = (self.follower == Session.streaming) & (self.follower_plan == self.message_plan)
        self.follower = choose(has & where, Session.failed, self.follower)

    # -- promises ------------------------------------------------------------------------------------------

    @invariant
    def complete_means_that_all_rows_arrived(self) -> Bool:
        """A session that is complete has received every row, under its own plan: 001, stage 4, "new tablet
        replicas contain all the writes which reached the matching leaving tablet replicas".
        """
        return (self.master == Session.complete).implies(self.received == ROWS)

    @invariant
    def rows_are_wanted_until_they_are_there(self) -> Bool:
        """001, stage 4: streaming is over when the pending replica has every row; a session that failed is
        tried again.
        """
        return self.wanted | (self.received == ROWS)

    @invariant
    def rows_are_wanted_by_who_waits(self) -> Bool:
        """The coordinator waits for a session only while it wants the rows."""
        return self.waiting.implies(self.wanted)

    @invariant
    def sessions_are_waited_for(self) -> Bool:
        """The master has a session only for a coordinator that waits for it."""
        return (self.master != Session.none).implies(self.waiting)

    @step_property
    def sessions_fail_for_themselves(self, after: Self) -> Bool:
        """001: "to keep the cluster saturated with streaming", a session goes on whatever comes late of an older one: its rows,
        or that it has failed, end no other, whose rows would have to be streamed again.
        """
        fails = (self.master == Session.streaming) & (after.master == Session.failed)
        late = (self.message != Message.none) & (self.message_plan < self.plan)
        return fails.implies(~late)

    @accepts(send_failure)
    def failures_are_told_at_once(self) -> Bool:
        """001: migrations go on "to keep the cluster saturated with streaming": who has failed says so, if nothing else of
        its session is on the wire, and its master need not wait until nothing has come for long.
        """
        return (self.follower == Session.failed) & (self.message == Message.none)

    @accepts(give_up_idle_session)
    def sessions_that_never_began_are_given_up(self) -> Bool:
        """The same of a session whose request was lost: its master asks anew, whatever the follower does for another one."""
        quiet = (self.prepare == 0) & (self.message == Message.none)
        return (self.master == Session.streaming) & quiet & (self.follower_plan < self.plan)

    @sometimes(at={failures: 1, losses: 0, restarts: 0})
    def failures_are_heard_at_once(self, after: Self) -> Bool:
        """001: "to keep the cluster saturated with streaming", a master that is told of its session's failure fails then, and
        does not wait for its timeout.
        """
        goes_on = (self.master == Session.streaming) & (self.message_plan == self.plan)
        return (self.message == Message.failed) & goes_on & (after.master == Session.failed)

    @independent(
        ask_to_stream,
        receive_rows,
        receive_complete,
        receive_failure,
        report,
        hear_of_restart,
        of=(follower, follower_plan, sent, prepare),
    )
    def nobody_waits_for_an_old_session(self) -> None:
        """001: migrations go on "to keep the cluster saturated with streaming": a session that has ended is reported,
        and the next one asked for, whatever the follower still does for the last.
        """

    @independent(
        begin_session, of=(follower, follower_plan, sent, message, message_plan, waiting, master)
    )
    def new_sessions_wait_for_no_old_one(self) -> None:
        """001: "to keep the cluster saturated with streaming": whoever is asked to send rows begins, whatever it still
        does, or has on the wire, for a session before.
        """

    @lemma
    def plans_are_in_order(self) -> Bool:
        """No message is of a plan that its sender does not have yet."""
        order = (self.message_plan <= self.follower_plan) & (self.follower_plan <= self.plan)
        new = (self.prepare > 0).implies(self.follower_plan < self.prepare)
        return order & new & (self.prepare <= self.plan)

    @lemma
    def rows_arrive_in_order(self) -> Bool:
        """What the master has received, and what is on the wire, was sent in this session."""
        has = (self.follower_plan == self.plan) & (self.master == Session.streaming)
        of_plan = self.message_plan == self.plan
        arrives = choose((self.message == Message.rows) & of_plan, self.received + 1, self.received)
        going_on = has & (self.follower == Session.streaming)
        all_sent = (self.message == Message.complete) & of_plan & has
        return (
            (has.implies(arrives <= self.sent))
            & going_on.implies(arrives == self.sent)
            & all_sent.implies(self.received == ROWS)
            & (self.follower_plan < self.plan).implies(self.received == 0)
        )

    @final
    def streamed(self) -> Bool:
        """When the rows are there, nothing more need happen."""
        return ~self.wanted & (self.follower == Session.none)

    @liveness
    def failures_are_reported(self) -> LeadsTo:
        """A coordinator that waits for a session gets an answer, whatever is lost (scylladb #20227)."""
        return leads_to(self.waiting, ~self.waiting)

    @liveness
    def rows_are_streamed(self) -> LeadsTo:
        """In the end a session succeeds."""
        return leads_to(self.wanted, ~self.wanted)

    @liveness
    def followers_end(self) -> LeadsTo:
        """No session is left behind at a follower whose master has gone."""
        return leads_to(self.follower != Session.none, self.follower == Session.none)

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_loss(receive_rows, follower, because="a follower that goes on sends to nobody"),
        equivalent_replacement(
            receive_rows,
            "follower becomes",
            because="a follower that goes on, or that forgets its session, sends nobody anything",
        ),
        equivalent_replacement(
            receive_complete,
            "message becomes: rows for none",
            because="what comes after a session has ended is refused",
        ),
        equivalent_replacement(
            receive_failure,
            "message becomes: rows for none",
            because="what comes after a session has ended is refused",
        ),
        equivalent_replacement(
            give_up_idle_session,
            "master becomes: none for failed",
            because="of a master that knows of no session the coordinator hears, and asks again",
        ),
        equivalent_drop(
            hear_of_restart, "the coordinator waits", because="nobody waits who could be told"
        ),
        equivalent_drop(
            send_rows,
            "the session goes on",
            because="what a session sends that has ended is refused",
        ),
        equivalent_drop(
            fail, "the session goes on", because="of a session that has ended nobody hears"
        ),
        equivalent_drop(
            send_failure,
            "the last message has arrived",
            because="the master gives up by itself, only later",
        ),
        equivalent_drop(
            lose_message,
            "a message is on the wire",
            because="nothing is lost, or its sender fails without need",
        ),
        equivalent_loss(
            lose_message,
            follower,
            message,
            because="nothing is lost, or its sender fails without need",
        ),
        equivalent_drop(
            lose_prepare, "a request to prepare is on the wire", because="nothing is lost"
        ),
        equivalent_loss(lose_prepare, prepare, because="nothing is lost"),
        equivalent_loss(restart_master, master, because="it goes on as without the restart"),
        equivalent_loss(restart_follower, follower, because="it goes on as without the restart"),
        equivalent_loss(
            _send, message_plan, because="the follower's last message was of the same session"
        ),
    )

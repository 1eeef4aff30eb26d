"""Sessions of the topology: who may stream, and that nothing of an older operation still runs.

`session` in group0 is the id of the one open session. A node lets work in only under the session that it
has learned; work that is in holds a guard, and a barrier waits for the guards of closed sessions.
"""

from __future__ import annotations

from typing import Self

from stagewright.machines.tablet_nodes import NETWORK, Node
from stagewright.machines.topology_group0 import COORDINATOR, OPERATOR
from stagewright.machines.topology_states import TransitionState
from stagewright.spec import (
    Bool,
    Entity,
    Fairness,
    FlagVar,
    LeadsTo,
    Machine,
    OneVar,
    OptionalVar,
    SetVar,
    Term,
    action,
    budget,
    choose,
    every,
    final,
    flag,
    invariant,
    leads_to,
    liveness,
    one_of,
    optional,
    per,
    require,
    set_of,
    step_property,
)

WEAK = Fairness.WEAK
T = TransitionState


class Session(Entity, scope=2):
    """The id of a session, and of the request that it is for; no id is used twice."""


class TopologySessions(Machine):
    """Operations that stream, and TRUNCATE, one after the other, each in a session of its own."""

    operations = budget(1, doc="operations on nodes that stream")
    truncations = budget(1, doc="TRUNCATE requests")
    failures = budget(1, doc="nodes that drive a stream and restart")

    # committed to group0
    transition_state: OneVar[TransitionState] = one_of(TransitionState, init=T.null)
    session: OptionalVar[Session] = optional(Session)
    used: SetVar[Session] = set_of(Session)
    truncate: OptionalVar[Session] = optional(Session)  # the queued or running request, by its id
    # what the coordinator of the operation knows
    streams_in: OptionalVar[Session] = optional(Session)  # the session that its streams name
    finished: SetVar[Node] = set_of(Node)  # nodes that have done their work
    # the nodes
    known = per(Node, optional(Session))  # the open session, as far as the node has learned
    message = per(Node, optional(Session))  # work that is on its way to the node
    guard = per(Node, optional(Session))  # the session that work at the node holds open
    orphaned: SetVar[Node] = set_of(Node)  # its work was driven by a node that restarted
    refused: FlagVar = flag()  # "Session not found" for an operation that goes on

    # -- operations ------------------------------------------------------------------------------------

    @transition_state.step(T.null, T.write_both_read_old, by=COORDINATOR, spends=operations)
    def start_operation(self, s: Term[Session]) -> None:
        """An operation begins that streams: it opens a session."""
        require(~self.used.has(s), "the id is new")
        self.used.add(s)
        self._open(s)

    @transition_state.step(T.write_both_read_old, T.write_both_read_new, by=COORDINATOR, fair=WEAK)
    def read_new(self) -> None:
        """Everything is streamed: the session closes."""
        self._all_finished()
        self.session = None
        self.streams_in = None

    @transition_state.step(T.write_both_read_old, T.rollback_to_normal, by=COORDINATOR, fair=WEAK)
    def roll_back(self) -> None:
        """A stream failed: the session closes, the operation is undone."""
        require(~self.orphaned.is_empty(), "a stream failed")
        self.session = None
        self.streams_in = None

    @transition_state.step(
        (T.write_both_read_new, T.rollback_to_normal), T.null, by=COORDINATOR, fair=WEAK
    )
    def finish_operation(self) -> None:
        """A barrier has drained the closed session."""
        self._drained()

    # -- TRUNCATE --------------------------------------------------------------------------------------

    @action(by=OPERATOR, spends=truncations)
    def ask_to_truncate(self, s: Term[Session]) -> None:
        """TRUNCATE TABLE is queued; the id of the request will be that of its session."""
        require(~self.used.has(s), "the id is new")
        require(self.truncate.is_none(), "no other is queued")
        self.used.add(s)
        self.truncate = s
        self._queue(s)

    def _queue(self, s: Term[Session]) -> None:
        """The session is opened when the request is handled, not before."""

    @transition_state.step(T.null, T.truncate_table, by=COORDINATOR, fair=WEAK)
    def start_truncating(self, s: Term[Session]) -> None:
        """The request is handled, and opens its session."""
        require(self.truncate == s, "the request is queued")
        self._open(s)

    @action(by=COORDINATOR, fair=WEAK)
    def clear_session(self) -> None:
        """Every node has truncated: the session closes."""
        require(self.transition_state == T.truncate_table, "a table is truncated")
        require(self.session.is_some(), "the session is open")
        over = self._have_all_finished() | ~self.orphaned.is_empty()
        require(over, "every node has done its work, or one failed")
        self.session = None
        self.streams_in = None

    @transition_state.step(T.truncate_table, T.null, by=COORDINATOR, fair=WEAK)
    def finish_truncating(self) -> None:
        """A second barrier has drained the session."""
        require(self.session.is_none(), "the session is closed")
        self._drained()
        self.truncate = None

    # -- work at the nodes -----------------------------------------------------------------------------

    @action(by=COORDINATOR, fair=WEAK)
    def send(self, n: Term[Node]) -> None:
        """Every node has learned the session: work is sent to the node."""
        require(self.streams_in.is_some(), "an operation streams")
        require(~self.finished.has(n) & self._is_idle(n), "the node has work to do")
        require(every(self._has_learned(m) for m in Node), "every node has learned the session")
        self.message[n] = self.streams_in

    @action(fair=WEAK)
    def admit(self, n: Term[Node], s: Term[Session]) -> None:
        """The session is the open one, as far as the node knows: the work holds it open."""
        require(self.message[n] == s, "work has arrived")
        require(self.known[n] == s, "its session is the one that the node knows")
        require(self.guard[n].is_none(), "no other work holds a guard")
        self.message[n] = None
        self.guard[n] = s

    @action(fair=WEAK)
    def refuse(self, n: Term[Node], s: Term[Session]) -> None:
        """Session not found."""
        require(self.message[n] == s, "work has arrived")
        require(self.known[n] != s, "its session is not the one that the node knows")
        self.message[n] = None
        self.refused = self.refused | (self.streams_in == s)

    @action(fair=WEAK)
    def finish_work(self, n: Term[Node]) -> None:
        """The work is done, and its driver is told."""
        require(self.guard[n].is_some(), "work is going on")
        require(~self.orphaned.has(n), "its driver still drives it")
        self.finished.put(n, self.finished.has(n) | (self.guard[n] == self.streams_in))
        self.guard[n] = None

    @action(fair=WEAK)
    def abort_work(self, n: Term[Node]) -> None:
        """The session of the work was closed: the node aborts what holds it."""
        require(self.guard[n].is_some(), "work is going on")
        require(self.known[n] != self.guard[n], "its session is closed as far as the node knows")
        self._aborts(n)
        self.guard[n] = None
        self.orphaned.discard(n)

    def _aborts(self, n: Term[Node]) -> None:
        """Closing a session aborts whoever holds it."""

    @action(by=NETWORK, spends=failures)
    def restart_driver(self, n: Term[Node]) -> None:
        """The node that drives the work at `n` crashes and is back before anybody sees it down."""
        require(self.guard[n].is_some() & ~self.orphaned.has(n), "work is going on")
        self.orphaned.add(n)

    @action(fair=WEAK)
    def learn(self, n: Term[Node]) -> None:
        """Node `n` applies what is committed to group0."""
        require(~self._has_learned(n), "node is behind")
        self.known[n] = self.session

    # -- what recurs -----------------------------------------------------------------------------------

    def _open(self, s: Term[Session]) -> None:
        self.session = s
        self.streams_in = s
        self.finished = frozenset()
        self.refused = False

    def _has_learned(self, n: Term[Node]) -> Bool:
        return self.known[n] == self.session

    def _is_idle(self, n: Term[Node]) -> Bool:
        return self.message[n].is_none() & self.guard[n].is_none()

    def _have_all_finished(self) -> Bool:
        return every(self.finished.has(n) for n in Node)

    def _all_finished(self) -> None:
        require(self._have_all_finished(), "every node has done its work")

    def _drained(self) -> None:
        learned = every(self._has_learned(n) for n in Node)
        require(learned, "every node has learned that the session is closed")
        require(every(self.guard[n].is_none() for n in Node), "no guard of it is held")

    # -- promises --------------------------------------------------------------------------------------

    @step_property
    def only_the_owner_replaces_the_session(self, after: Self) -> Bool:
        """A session stays until the operation that opened it closes it (scylladb #22613)."""
        replaced = self.session.is_some() & (after.session != self.session)
        return replaced.implies(after.session.is_none() & after.streams_in.is_none())

    @invariant
    def sessions_are_opened_by_who_streams(self) -> Bool:
        """An open session is that of the operation that goes on (scylladb #16741)."""
        return self.session == self.streams_in

    @invariant
    def streams_find_their_session(self) -> Bool:
        """No stream of an operation that goes on is told "Session not found"."""
        return ~self.refused

    @invariant
    def nothing_of_a_closed_session_runs(self, n: Term[Node]) -> Bool:
        """What an operation has started is over before the next one may begin."""
        return (self.transition_state == T.null).implies(self.guard[n].is_none())

    @invariant
    def work_is_done_before_its_result_counts(self, n: Term[Node]) -> Bool:
        """001: "When streaming finishes, we move to write_both_read_new state"."""
        counts = self.transition_state == T.write_both_read_new
        return counts.implies(self.finished.has(n))

    @step_property
    def ids_are_used_once(self, after: Self, s: Term[Session]) -> Bool:
        """A new session has an id that no earlier one had."""
        opened = (after.session == s) & (self.session != s)
        return opened.implies(~self.used.has(s) | (self.truncate == s))

    @final
    def at_rest(self) -> Bool:
        """Nothing is asked for and nothing goes on."""
        return (self.transition_state == T.null) & self.truncate.is_none()

    @liveness
    def every_operation_ends(self) -> LeadsTo:
        """A barrier terminates, so every operation ends, whatever became of who streamed
        (scylladb SCYLLADB-1805).
        """
        moving = self.transition_state != T.null
        return leads_to(moving, ~moving)

    @liveness
    def truncations_end(self) -> LeadsTo:
        """A queued TRUNCATE is handled in the end."""
        return leads_to(self.truncate.is_some(), self.truncate.is_none())

"""Sessions of the topology: who may stream, and that nothing of an older operation still runs.

`session` in group0 is the id of the one open session. A node lets work in only under the session that it
has learned; work that is in holds a guard, and a barrier waits for the guards of closed sessions.
"""

from __future__ import annotations

from typing import Self

from stagewright.machines.scylladb.cluster import NETWORK, Node
from stagewright.machines.scylladb.topology.control.topology_record import COORDINATOR, OPERATOR
from stagewright.spec import (
    Bool,
    Entity,
    Fairness,
    LeadsTo,
    Machine,
    OneVar,
    OptionalVar,
    SetVar,
    States,
    Term,
    accepts,
    action,
    budget,
    equivalent_drop,
    equivalent_loss,
    equivalent_weakening,
    equivalents,
    every,
    fault_budget,
    final,
    independent,
    invariant,
    leads_to,
    liveness,
    one_of,
    optional,
    per,
    require,
    scopes,
    set_of,
    some,
    step_property,
)

WEAK = Fairness.WEAK


class Session(Entity, scope=2):
    """The id of a request, and of the session that is opened for it; no id is used twice."""


class Transition(States):
    """The transition states in which a session is open, or was until just now."""

    # fmt: off
    #                     before it
    null                = "write_both_read_new", "rollback_to_normal", "truncate_table"
    write_both_read_old = ("null",)
    write_both_read_new = ("write_both_read_old",)
    rollback_to_normal  = ("write_both_read_old",)
    truncate_table      = ("null",)
    # fmt: on

    def __init__(self, *before: str) -> None:
        self.before = before


T = Transition
FOLLOWERS = {t: frozenset(n for n in T if t.name in n.before) for t in T}


class TopologySessions(Machine):
    """Operations that stream, and TRUNCATE, one after the other, each in a session of its own."""

    operations = budget(1, doc="operations on nodes that stream")
    truncations = budget(1, doc="TRUNCATE requests")
    failures = fault_budget(1, doc="nodes that drive a stream and restart")
    exercised_at = scopes({}, {truncations: 2, Session: 3}, {failures: 2})

    # committed to group0
    transition_state: OneVar[Transition] = one_of(Transition, init=T.null)
    session: OptionalVar[Session] = optional(Session)
    running: OptionalVar[Session] = optional(Session)  # the request that is worked on
    queued: OptionalVar[Session] = optional(Session)  # a TRUNCATE that waits
    used: SetVar[Session] = set_of(Session)
    done: SetVar[Session] = set_of(Session)
    failed: SetVar[Session] = set_of(Session)
    # the nodes
    known = per(Node, optional(Session))  # the open session, as far as the node has learned
    message = per(Node, optional(Session))  # work that is on its way to the node
    guard = per(Node, optional(Session))  # the session that work at the node holds open
    driven: SetVar[Node] = set_of(Node)  # nodes whose work has a driver that still knows of it
    worked = per(Node, set_of(Session))  # what the node has done its work for

    # -- operations ------------------------------------------------------------------------------------

    @transition_state.step(T.null, T.write_both_read_old, by=COORDINATOR, spends=operations)
    def start_operation(self, s: Term[Session]) -> None:
        """An operation begins that streams: it opens a session."""
        self._new(s)
        self.running = s
        self.session = s

    @transition_state.step(T.write_both_read_old, T.write_both_read_new, by=COORDINATOR, fair=WEAK)
    def read_new(self) -> None:
        """Everything is streamed: the session closes."""
        require(self._all_worked(), "every node has done its work")
        self.session = None

    @transition_state.step(T.write_both_read_old, T.rollback_to_normal, by=COORDINATOR, fair=WEAK)
    def roll_back(self) -> None:
        """A stream failed: the session closes, the operation is undone."""
        self._driver_lost()
        self.session = None
        self._fail()

    # -- TRUNCATE --------------------------------------------------------------------------------------

    @action(by=OPERATOR, spends=truncations)
    def ask_to_truncate(self, s: Term[Session]) -> None:
        """TRUNCATE TABLE is queued; the id of the request will be that of its session."""
        self._new(s)
        require(self.queued.is_none(), "no other is queued")
        self.queued = s
        self._queue(s)

    def _queue(self, s: Term[Session]) -> None:
        """The session is opened when the request is handled, not before."""

    @transition_state.step(T.null, T.truncate_table, by=COORDINATOR, fair=WEAK)
    def start_truncating(self, s: Term[Session]) -> None:
        """The request is handled, and opens its session."""
        require(self.queued == s, "the request is queued")
        self.queued = None
        self.running = s
        self.session = s

    @action(by=COORDINATOR, fair=WEAK)
    def clear_session(self) -> None:
        """Every node has truncated: the session closes."""
        require(self.transition_state == T.truncate_table, "a table is truncated")
        require(self.session.is_some(), "the session is open")
        require(self._all_worked(), "every node has done its work")
        self.session = None

    @action(by=COORDINATOR, fair=WEAK)
    def fail_to_truncate(self) -> None:
        """A node that drives the work has restarted: the session closes."""
        require(self.transition_state == T.truncate_table, "a table is truncated")
        require(self.session.is_some(), "the session is open")
        self._driver_lost()
        self.session = None
        self._fail()

    # -- the end of both -------------------------------------------------------------------------------

    @transition_state.step(
        (T.write_both_read_new, T.rollback_to_normal, T.truncate_table),
        T.null,
        by=COORDINATOR,
        fair=WEAK,
    )
    def finish(self) -> None:
        """A barrier has drained the closed session."""
        require(self.session.is_none(), "the session is closed")
        require(every(self._has_learned(n) for n in Node), "every node has learned that")
        require(every(self.guard[n].is_none() for n in Node), "no guard of it is held")
        for s in Session:
            self.done.put(s, self.done.has(s) | (self.running == s))
        self.running = None

    # -- work at the nodes -----------------------------------------------------------------------------

    @action(by=COORDINATOR, fair=WEAK)
    def send(self, n: Term[Node], s: Term[Session]) -> None:
        """Every node has learned the session: work is sent to the node."""
        require((self.running == s) & self.session.is_some(), "a request streams")
        require(~self.worked[n].has(s), "the node has work to do")
        require(self.message[n].is_none() & self.guard[n].is_none(), "the node is free")
        require(every(self._has_learned(m) for m in Node), "every node has learned the session")
        self.message[n] = s

    @action(fair=WEAK)
    def admit(self, n: Term[Node], s: Term[Session]) -> None:
        """The session is the open one, as far as the node knows: the work holds it open."""
        require(self.message[n] == s, "work has arrived")
        require(self.known[n] == s, "its session is the one that the node knows")
        self.message[n] = None
        self.guard[n] = s
        self.driven.add(n)

    @action(fair=WEAK)
    def refuse(self, n: Term[Node], s: Term[Session]) -> None:
        """Session not found."""
        require(self.message[n] == s, "work has arrived")
        require(self.known[n] != s, "its session is not the one that the node knows")
        self.message[n] = None

    @action(fair=WEAK)
    def finish_work(self, n: Term[Node], s: Term[Session]) -> None:
        """The work is done, and its driver is told."""
        require(self.guard[n] == s, "work is going on")
        require(self.known[n] == s, "its session is open, as far as the node knows")
        require(self.driven.has(n), "its driver still drives it")
        self.worked[n].add(s)
        self.guard[n] = None

    @action(fair=WEAK)
    def abort_work(self, n: Term[Node]) -> None:
        """The session of the work was closed: the node aborts what holds it."""
        require(self.guard[n].is_some(), "work is going on")
        require(self.known[n] != self.guard[n], "its session is closed as far as the node knows")
        self._aborts(n)
        self.guard[n] = None

    def _aborts(self, n: Term[Node]) -> None:
        """Closing a session aborts whoever holds it."""

    @action(by=NETWORK, spends=failures)
    def restart_driver(self, n: Term[Node]) -> None:
        """The node that drives the work at `n` crashes and is back before anybody sees it down."""
        require(self.guard[n].is_some(), "work is going on")
        self.driven.discard(n)

    @action(fair=WEAK)
    def learn(self, n: Term[Node]) -> None:
        """Node `n` applies what is committed to group0."""
        require(~self._has_learned(n), "node is behind")
        self.known[n] = self.session

    # -- helpers ---------------------------------------------------------------------------------------

    def _new(self, s: Term[Session]) -> None:
        require(~self.used.has(s), "the id is new")
        self.used.add(s)

    def _has_learned(self, n: Term[Node]) -> Bool:
        return self.known[n] == self.session

    def _all_worked(self) -> Bool:
        return every(every(self.worked[n].has(s) for s in self.running) for n in Node)

    def _is_lost(self) -> Bool:
        """Work of the running request has lost its driver."""
        return some(self.guard[n].is_some() & ~self.driven.has(n) for n in Node)

    def _driver_lost(self) -> None:
        require(self._is_lost(), "a driver restarted")

    def _fail(self) -> None:
        for s in Session:
            self.failed.put(s, self.failed.has(s) | (self.running == s))

    # -- promises --------------------------------------------------------------------------------------

    @accepts(start_operation)
    def operations_begin_whatever_is_queued(self, s: Term[Session]) -> Bool:
        """001: requests are of nodes, "Separately" from the global one: a queued TRUNCATE holds no operation up."""
        rests = (self.transition_state == T.null) & self.running.is_none()
        return rests & self.session.is_none() & ~self.used.has(s)

    @accepts(ask_to_truncate)
    def tables_are_truncated_at_any_time(self, s: Term[Session]) -> Bool:
        """TRUNCATE is queued whatever streams meanwhile: the request does not wait for its session."""
        return ~self.used.has(s) & self.queued.is_none()

    @independent(learn, of=(message, guard, driven, worked, queued, done, failed, Node))
    def nodes_learn_whatever_they_do(self) -> None:
        """001: "After the entire cluster learns about it, streaming starts": a node learns which session is open, or closed,
        while work for it is on its way, waits or goes on; the barrier waits for that, not who learns.
        """

    @independent(admit, refuse, finish_work, abort_work, of=(queued, done, failed, Node))
    def nodes_work_each_for_itself(self) -> None:
        """001: "After the entire cluster learns about it, streaming starts": a node takes up the work that it was sent, ends it
        or gives it up, however far the others are with theirs.
        """

    @step_property
    def the_topology_follows_its_table(self, after: Self) -> Bool:
        """One operation after the other: 001, "write_both_read_old", and truncate_table of the releases."""
        old, new = self.transition_state, after.transition_state
        return (old != new).implies(old.column(lambda state: FOLLOWERS[state]).has(new))

    @step_property
    def only_the_owner_replaces_the_session(self, after: Self) -> Bool:
        """A session stays until the request that opened it closes it (scylladb #22613)."""
        replaced = self.session.is_some() & (after.session != self.session)
        return replaced.implies(after.session.is_none())

    @invariant
    def who_streams_has_an_open_session(self) -> Bool:
        """The open session is that of the request that streams (scylladb #16741)."""
        streams = self.transition_state == T.write_both_read_old
        truncates = self.transition_state == T.truncate_table
        closed = self.session.is_none()
        own = (self.session == self.running) & ~closed
        rests = self.transition_state == T.null
        return (rests == self.running.is_none()) & (
            (streams & own) | (truncates & (own | closed)) | (~streams & ~truncates & closed)
        )

    @step_property
    def streams_find_their_session(self, after: Self, n: Term[Node], s: Term[Session]) -> Bool:
        """No stream of a request that goes on is told "Session not found"."""
        taken = (self.message[n] == s) & (after.message[n] != s)
        streams = (self.running == s) & self.session.is_some()
        return (taken & streams).implies(after.guard[n] == s)

    @step_property
    def work_was_sent_and_let_in(self, after: Self, n: Term[Node], s: Term[Session]) -> Bool:
        """A node works for what was sent to it in the session that it knows to be open, and reports it to who still drives
        it: what comes late of an earlier session is refused, whichever is open by then.
        """
        let_in = (self.guard[n] != s) & (after.guard[n] == s)
        reported = ~self.worked[n].has(s) & after.worked[n].has(s)
        driven = self.driven.has(n) & after.driven.has(n)
        right = (self.guard[n] == s) & driven & (self.known[n] == s)
        sent = (self.message[n] == s) & (self.known[n] == s) & after.driven.has(n)
        return let_in.implies(sent) & reported.implies(right)

    @invariant
    def streaming_starts_when_all_have_learned(self, n: Term[Node], s: Term[Session]) -> Bool:
        """001: "After the entire cluster learns about it, streaming starts": while a node works for the session that is
        open, there is no node that does not know of the operation.
        """
        works = (self.guard[n] == s) & (self.session == s)
        return works.implies(every(self.known[m] == s for m in Node))

    @invariant
    def nothing_of_a_closed_session_runs(self, n: Term[Node], s: Term[Session]) -> Bool:
        """001: "When streaming finishes, we move": what a request has started is over when it is reported as done, well or
        with an error, and so before the next one begins: no table is truncated after its client was told that this failed.
        """
        return self.done.has(s).implies(self.guard[n] != s)

    @invariant
    def done_means_done_by_all(self, n: Term[Node], s: Term[Session]) -> Bool:
        """001: "When streaming finishes, we move to write_both_read_new state": everywhere."""
        return (self.done.has(s) & ~self.failed.has(s)).implies(self.worked[n].has(s))

    @invariant
    def nothing_is_done_before_the_transition_ends(self, s: Term[Session]) -> Bool:
        """001: "Finally we remove the transitioning state": an operation that streams is reported as done, well or not, when
        that is gone: not when its session is closed, while reads move to the new ring, or writes back to the old one.
        """
        states = T.write_both_read_old, T.write_both_read_new, T.rollback_to_normal
        goes_on = self.transition_state.any_of(*states) & (self.running == s)
        return goes_on.implies(~self.done.has(s))

    @step_property
    def nothing_fails_without_need(self, after: Self, s: Term[Session]) -> Bool:
        """A request fails, or is undone, only when a node that drove its work has lost it, while some node still held its
        session: 001, "When streaming finishes, we move to write_both_read_new state".
        """
        fails = ~self.failed.has(s) & after.failed.has(s)
        back = self.transition_state != after.transition_state
        back = back & (after.transition_state == T.rollback_to_normal) & (after.running == s)
        orphaned = some((self.guard[n] == s) & ~self.driven.has(n) for n in Node)
        return (fails | back).implies((self.running == s) & (self.session == s) & orphaned)

    @step_property
    def ids_are_used_once(self, after: Self, s: Term[Session]) -> Bool:
        """A request has an id that no earlier one had, and a queued one is not pushed out."""
        starts = (self.running != s) & (after.running == s)
        queues = (self.queued != s) & (after.queued == s)
        fresh = ~self.used.has(s) & after.used.has(s)
        kept = (self.queued == s).implies((after.queued == s) | (after.running == s))
        return starts.implies(fresh | (self.queued == s)) & queues.implies(fresh) & kept

    @final
    def at_rest(self) -> Bool:
        """Nothing is asked for and nothing goes on."""
        return (self.transition_state == T.null) & self.queued.is_none()

    @liveness
    def every_request_ends(self, s: Term[Session]) -> LeadsTo:
        """A barrier terminates, so every request ends, whatever became of who streamed
        (scylladb SCYLLADB-1805).
        """
        return leads_to(self.used.has(s), self.done.has(s))

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(
            clear_session, "the session is open", because="a session that is closed stays closed"
        ),
        equivalent_drop(
            fail_to_truncate, "the session is open", because="what has failed may fail again"
        ),
        equivalent_drop(
            finish,
            "transition_state is write_both_read_new or rollback_to_normal or truncate_table",
            because="what is at rest may be finished again",
        ),
        equivalent_weakening(
            send, "a request streams", because="a node refuses work of a session that is not open"
        ),
        equivalent_drop(
            send,
            "the node has work to do",
            "the node is free",
            because="work that is sent twice is done once more, to the same effect",
        ),
        equivalent_loss(
            admit, message, because="a message that arrives twice is work that is done once more"
        ),
        equivalent_loss(
            finish_work, guard, because="a guard that is kept is given up when its session closes"
        ),
        equivalent_drop(
            abort_work, "work is going on", because="where there is no work, nothing is aborted"
        ),
        equivalent_drop(
            restart_driver,
            "work is going on",
            because="a restart that nobody's work depends on, or that does not happen",
        ),
        equivalent_loss(
            restart_driver,
            driven,
            because="a restart that nobody's work depends on, or that does not happen",
        ),
        equivalent_drop(learn, "node is behind", because="to learn what is known changes nothing"),
    )

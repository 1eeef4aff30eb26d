"""Mistakes put back into `TopologySessions`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.scylladb import cluster
from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.topology.control.topology_record import COORDINATOR
from stagewright.machines.scylladb.topology.topology_sessions import (
    Session,
    TopologySessions,
    Transition,
)
from stagewright.spec import Bool, Fairness, Term, action, every, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

WEAK = Fairness.WEAK


# -- what goes wrong -------------------------------------------------------------------------------


@known_bug(
    "001-93",
    "design document 001: streaming is of one operation, and over before the next begins",
    breaks=TopologySessions.work_was_sent_and_let_in,
    budgets={TopologySessions.failures: 1},
)
class AnyOpenSessionLetsIn(TopologySessions):
    """A node asked whether a session is open, and not which: a stream of an operation that was over went on in the
    session of a TRUNCATE.
    """

    @action(fair=WEAK)
    def admit(self, n: Term[Node], s: Term[Session]) -> None:
        """A session is open, as far as the node knows."""
        require(self.message[n] == s, "work has arrived")
        require(self.known[n].is_some(), "a session is open")
        self.message[n] = None
        self.guard[n] = s
        self.driven.add(n)


@known_bug(
    "001-122",
    'design document 001: "When streaming finishes, we move to write_both_read_new state"',
    breaks=TopologySessions.nothing_fails_without_need,
)
class WhoHasNoWorkHasLostIt(TopologySessions):
    """A node without a driver counted as one that had lost it, also before work was sent to it: operations failed at
    once.
    """

    def _is_lost(self) -> Bool:
        return some(~self.driven.has(n) for n in Node)


@known_bug(
    "001-303",
    'design document 001: "After the entire cluster learns about it, streaming starts"',
    breaks=TopologySessions.streaming_starts_when_all_have_learned,
)
class StreamingStartsWhereItIsKnown(TopologySessions):
    """A node was sent its work as soon as it had learned the session itself: it streamed from nodes that did not write to
    both rings yet.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def send(self, n: Term[Node], s: Term[Session]) -> None:
        """The node has learned the session: work is sent to it."""
        require((self.running == s) & self.session.is_some(), "a request streams")
        require(~self.worked[n].has(s), "the node has work to do")
        require(self.message[n].is_none() & self.guard[n].is_none(), "the node is free")
        require(self._has_learned(n), "the node has learned the session")
        self.message[n] = s


@known_bug(
    "001-406",
    'design document 001: "Finally we remove the transitioning state"',
    breaks=TopologySessions.nothing_is_done_before_the_transition_ends,
    budgets={TopologySessions.truncations: 0, TopologySessions.failures: 0},
)
class OperationsAreDoneWhenTheyHaveStreamed(TopologySessions):
    """An operation was reported as done when its session was closed: its node was shut down, which others read from still."""

    @TopologySessions.transition_state.step(
        Transition.write_both_read_old,
        Transition.write_both_read_new,
        by=COORDINATOR,
        fair=WEAK,
    )
    def read_new(self) -> None:
        """Everything is streamed: the session closes, and the request ends with it."""
        require(self._all_worked(), "every node has done its work")
        self.session = None
        for s in Session:
            self.done.put(s, self.done.has(s) | (self.running == s))


@known_bug(
    "001-369",
    'design document 001: "When streaming finishes, we move"',
    breaks=TopologySessions.nothing_of_a_closed_session_runs,
)
class AFailureIsToldAtOnce(TopologySessions):
    """TRUNCATE was reported as failed when its session was closed: a node that still worked for it truncated later."""

    @action(by=COORDINATOR, fair=WEAK)
    def fail_to_truncate(self) -> None:
        """A node that drives the work has restarted: whoever asked is told so."""
        super().fail_to_truncate()
        for s in Session:
            self.done.put(s, self.done.has(s) | (self.running == s))


@known_bug(
    "001-601",
    'design document 001: "When streaming finishes, we move to write_both_read_new state"',
    breaks=TopologySessions.work_was_sent_and_let_in,
    budgets={TopologySessions.truncations: 0},
)
class WorkWithoutADriverIsDone(TopologySessions):
    """Work whose driver had restarted was taken for done: a node had streamed half of its ranges, and reads moved."""

    @action(by=cluster.NETWORK, spends=TopologySessions.failures)
    def restart_driver(self, n: Term[Node]) -> None:
        """The node that drives the work crashes, and nobody is left who would say that it is not done."""
        super().restart_driver(n)
        for s in Session:
            self.worked[n].put(s, self.worked[n].has(s) | (self.guard[n] == s))
        self.guard[n] = None


@known_bug(
    "P05",
    "scylladb #22613",
    breaks=(
        TopologySessions.only_the_owner_replaces_the_session,
        TopologySessions.streams_find_their_session,
    ),
    budgets={TopologySessions.failures: 0},
)
class TruncateOpensItsSessionWhenItIsQueued(TopologySessions):
    """TRUNCATE set the session of the topology when it was queued: the decommission that streamed lost its
    own, and its streams were told "Session not found".
    """

    def _queue(self, s: Term[Session]) -> None:
        self.session = s


# -- what is never done ----------------------------------------------------------------------------


@known_bug(
    "001-380",
    "design document 001: requests that wait are worked on when the one before has ended",
    breaks=(TopologySessions.every_request_ends, TopologySessions.ids_are_used_once),
    sizes={Session: 3},
    budgets={TopologySessions.truncations: 2},
)
class AFailureEmptiesTheQueue(TopologySessions):
    """A TRUNCATE that failed took the one along that waited behind it: its client was never answered."""

    @action(by=COORDINATOR, fair=WEAK)
    def fail_to_truncate(self) -> None:
        """A node that drives the work has restarted: nothing is left to do."""
        super().fail_to_truncate()
        self.queued = None


@known_bug(
    "P12",
    "scylladb SCYLLADB-1805",
    breaks=TopologySessions.every_request_ends,
    budgets={TopologySessions.truncations: 0},
)
class ClosedSessionIsHeldForEver(TopologySessions):
    """The node that drove a repair restarted before anybody saw it down; at the other nodes its work held
    the guard of a session that was closed since, and the barrier waited for it for ever.
    """

    def _aborts(self, n: Term[Node]) -> None:
        require(self.driven.has(n), "its driver gives it up")


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "001-24",
    "design document 001: a global request, beside those of nodes",
    breaks=TopologySessions.tables_are_truncated_at_any_time,
    budgets={TopologySessions.failures: 0},
)
class TruncateIsRefusedWhileNodesStream(TopologySessions):
    """TRUNCATE finds the session of a decommission, and fails instead of waiting in the queue."""

    def _queue(self, s: Term[Session]) -> None:
        super()._queue(s)
        require(self.session.is_none(), "nothing streams")


@known_bug(
    "001-197",
    'design document 001: the global request is there "Separately from the per-node requests"',
    breaks=TopologySessions.operations_begin_whatever_is_queued,
)
class OperationsWaitForTruncate(TopologySessions):
    """No operation on a node began while a TRUNCATE was queued: one after the other, they held it up for ever."""

    @TopologySessions.transition_state.step(
        Transition.null,
        Transition.write_both_read_old,
        by=COORDINATOR,
        spends=TopologySessions.operations,
    )
    def start_operation(self, s: Term[Session]) -> None:
        """An operation begins, where no TRUNCATE is queued."""
        require(self.queued.is_none(), "no TRUNCATE is queued")
        self._new(s)
        self.running = s
        self.session = s


@known_bug(
    "001-551",
    'design document 001: "After the entire cluster learns about it, streaming starts"',
    breaks=TopologySessions.nodes_learn_whatever_they_do,
)
class WhoIsSentWorkLearnsLater(TopologySessions):
    """A node took what had arrived before it learned what was committed: work that was late was let in, in a session
    that had been closed long before.
    """

    @action(fair=WEAK)
    def learn(self, n: Term[Node]) -> None:
        """A node to which no work is on its way applies what is committed."""
        super().learn(n)
        require(self.message[n].is_none(), "no work is on its way")


@known_bug(
    "001-602",
    'design document 001: "After the entire cluster learns about it, streaming starts"',
    breaks=TopologySessions.nodes_work_each_for_itself,
    budgets={TopologySessions.failures: 0},
)
class OneNodeStreamsAtATime(TopologySessions):
    """A node began its work when no other was at work: an operation took as long as all nodes one after the other."""

    @action(fair=WEAK)
    def admit(self, n: Term[Node], s: Term[Session]) -> None:
        """The session is the open one, and nobody else works in it."""
        super().admit(n, s)
        require(every(self.guard[m].is_none() for m in Node), "no node works")


BUGS = known_bugs_in(globals())

"""Mistakes by which requests wait for barriers, or nodes that learn for requests, and TRUNCATE holds operations up."""

from __future__ import annotations

from stagewright.machines.scylladb.topology.fencing import (
    CLIENT,
    COORDINATOR,
    Fencing,
    Node,
    Phase,
)
from stagewright.machines.scylladb.topology.topology_sessions import (
    Session,
    TopologySessions,
    Transition,
)
from stagewright.spec import Fairness, Term, action, require
from stagewright.spec.known_bugs import known_bug, known_bugs_in

WEAK = Fairness.WEAK
ONLINE = 'design document 001, write_both_read_old: "Writes are going to both new and old replicas"'
STALE = "design document 001, in the releases: a replica refuses what is below the fence"


@known_bug("001-190", ONLINE, breaks=Fencing.clients_write_whatever_is_fenced)
class WritesWaitForBarriers(Fencing):
    """No write began while a barrier went on."""

    @action(by=CLIENT, spends=Fencing.writes)
    def begin_write(self, n: Term[Node], r: Term[Node]) -> None:
        """A client writes, where no barrier goes on."""
        require(self.phase == Phase.none, "no barrier goes on")
        super().begin_write(n, r)


@known_bug(
    "001-191",
    ONLINE,
    breaks=Fencing.transactions_begin_whatever_is_fenced,
    budgets={Fencing.writes: 0, Fencing.bumps: 0, Fencing.failures: 0, Fencing.transactions: 1},
)
class TransactionsWaitForTheNewest(Fencing):
    """A node that was behind took no lightweight transaction."""

    @action(by=CLIENT, spends=Fencing.transactions)
    def begin_transaction(self, n: Term[Node], r: Term[Node]) -> None:
        """A client sends a transaction through a node that knows the newest version."""
        require(self.view[n].version == self.version, "the node is current")
        super().begin_transaction(n, r)


@known_bug("001-192", STALE, breaks=Fencing.writes_that_the_fence_lets_pass_are_stored)
class ReplicasTakeTheirOwnVersionAlone(Fencing):
    """A replica refused to store what was older than its own version, though not below the fence: each stage broke the
    writes under way.
    """

    def _passes_the_fence(self, n: Term[Node], r: Term[Node]) -> None:
        super()._passes_the_fence(n, r)
        require(self.request[n].version >= self.view[r].version, "it is not older than the replica")


@known_bug("001-193", STALE, breaks=Fencing.what_is_below_the_fence_is_refused)
class StaleRequestsHangUntilTheBarrier(Fencing):
    """A replica answered nothing to what is below the fence as long as a barrier went on."""

    @action(fair=WEAK)
    def refuse(self, n: Term[Node], r: Term[Node]) -> None:
        """Replica `r` refuses a stale request, after the barrier."""
        require(self.phase == Phase.none, "no barrier goes on")
        super().refuse(n, r)


@known_bug(
    "001-194",
    "design document 001: requests hold their version; the node learns of the next stage meanwhile",
    breaks=Fencing.nodes_learn_whatever_they_hold,
)
class NodesLearnBetweenRequests(Fencing):
    """A node applied what was committed when it coordinated nothing: a busy one stayed behind."""

    @action(fair=WEAK)
    def learn(self, n: Term[Node]) -> None:
        """Node `n` applies what is committed, between two requests."""
        super().learn(n)
        require(self.request[n].replica.is_none(), "it coordinates nothing")


@known_bug(
    "001-195",
    "design document 001: a barrier waits for requests, and requests for no barrier",
    breaks=Fencing.requests_are_given_up_at_any_time,
)
class RequestsTimeOutAfterTheBarrier(Fencing):
    """A request was not given up while a barrier went on, which waited for it."""

    @action(by=CLIENT, fair=WEAK)
    def time_out(self, n: Term[Node]) -> None:
        """The coordinator gives up, where no barrier goes on."""
        require(self.phase != Phase.draining, "nobody waits for it")
        super().time_out(n)


@known_bug(
    "001-196",
    "design document 001, in the releases: streaming is accepted in an open session",
    breaks=Fencing.nodes_stream_as_soon_as_the_session_is_open,
    budgets={Fencing.writes: 0, Fencing.streams: 2, Fencing.bumps: 0, Fencing.failures: 0},
)
class StreamsWaitForBarriers(Fencing):
    """No node began to stream while a barrier went on, be it for another table."""

    @action(spends=Fencing.streams)
    def begin_streaming(self, n: Term[Node]) -> None:
        """Node `n` streams, where no barrier goes on."""
        super().begin_streaming(n)
        require(self.phase == Phase.none, "no barrier goes on")


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


CALM = {Fencing.bumps: 0, Fencing.cleanups: 0, Fencing.failures: 0}


@known_bug("001-308", ONLINE, breaks=Fencing.writes_are_stored_by_each_replica, budgets=CALM)
class OnlyTheOwnReplicaIsWaitedFor(Fencing):
    """A coordinator gave up at once what it had sent to another node, and called it a background write: no barrier waited
    for it, and nobody was told when the fence refused it.
    """

    @action(by=CLIENT, spends=Fencing.writes)
    def begin_write(self, n: Term[Node], r: Term[Node]) -> None:
        """A client writes through node `n`, which waits for itself alone."""
        super().begin_write(n, r)
        self.request[n].abandoned = r != n


@known_bug(
    "001-309",
    ONLINE,
    breaks=Fencing.transactions_are_executed_by_each_replica,
    budgets={**CALM, Fencing.writes: 0, Fencing.transactions: 1},
)
class TransactionsAreWritesElsewhere(Fencing):
    """A lightweight transaction was sent as a plain write to replicas that do not coordinate it: only on its own node it
    locked the row.
    """

    @action(by=CLIENT, spends=Fencing.transactions)
    def begin_transaction(self, n: Term[Node], r: Term[Node]) -> None:
        """A client sends a lightweight transaction, which is one where the coordinator is the replica."""
        self._begin(n, r)
        self.request[n].lwt = r == n


@known_bug(
    "001-310",
    "design document 001: a lightweight transaction holds its locks on the replica",
    breaks=Fencing.transactions_hold_their_locks,
    budgets={**CALM, Fencing.writes: 0, Fencing.transactions: 2},
)
class WhoIsLockedOutStoresAllTheSame(Fencing):
    """A replica stored a lightweight transaction as it stores a plain write, whoever had the row locked."""

    @action(fair=WEAK)
    def store(self, n: Term[Node], r: Term[Node]) -> None:
        """Replica `r` stores what is not below the fence, as far as it has learned."""
        request = self.request[n]
        require((request.replica == r) & (request.executed == 0), "a request is on its way")
        self._passes_the_fence(n, r)
        self._store(n, r)
        self._forget(n)


BUGS = known_bugs_in(globals())

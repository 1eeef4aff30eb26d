"""Mistakes put back into `Fencing`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.scylladb.topology import fencing
from stagewright.machines.scylladb.topology.fencing import (
    API,
    CLIENT,
    COORDINATOR,
    NETWORK,
    OPERATOR,
    Answer,
    Fencing,
    Node,
    NodeState,
    Phase,
    Purpose,
)
from stagewright.spec import Bool, Fairness, Number, Term, action, choose, every, require
from stagewright.spec.known_bugs import known_bug, known_bugs_in, released_bug

QUIET = {Fencing.bumps: 0, Fencing.cleanups: 0}
ONLINE = 'design document 001, write_both_read_old: "Writes are going to both new and old replicas"'
STALE = "design document 001, in the releases: a replica refuses what is below the fence"
WEAK = Fairness.WEAK
CALM = {Fencing.bumps: 0, Fencing.cleanups: 0, Fencing.failures: 0}
BARRIER = 'design document 001: "no reads that started before this point exist in the system"'
FENCE = {Fencing.writes: 1, Fencing.bumps: 0, Fencing.failures: 0, Fencing.cleanups: 0}
INDEPENDENTLY = 'design document 001: "Tablets are migrated in parallel and independently"'
ALIVE = 'design document 001: "streamed to nodes that took over from still alive owners"'
LEARNS = 'design document 001: "After the entire cluster learns about it"'


# -- what goes wrong -------------------------------------------------------------------------------


@known_bug(
    "001-130",
    BARRIER,
    breaks=(
        Fencing.no_coordinator_is_older_than_the_barrier,
        Fencing.stages_leave_nothing_older_behind,
    ),
    budgets={**QUIET, Fencing.failures: 0},
)
class NobodyWaitsForItself(Fencing):
    """A barrier did not wait for a request whose coordinator is its replica, too, since nothing of it is on the wire."""

    def _waits(self, n: Term[Node]) -> Bool:
        return super()._waits(n) & (self.request[n].replica != n)


@known_bug(
    "001-131",
    'design document 001: "expected invariants about cluster-wide state" hold',
    breaks=Fencing.transactions_exclude_each_other,
    budgets={**QUIET, Fencing.failures: 0, Fencing.writes: 0, Fencing.transactions: 2},
)
class ACoordinatorTakesNoLocks(Fencing):
    """A transaction took no locks, and was not waited for, on the replica that coordinated it."""

    def _executes(self, r: Term[Node], n: Term[Node]) -> Bool:
        return super()._executes(r, n) & (r != n)


@known_bug(
    "001-133",
    'design document 001: node operations "can take over the state machine"',
    breaks=Fencing.a_topology_change_goes_on_with_the_fence,
)
class NoBarrierFallsBack(Fencing):
    """Topology changes, too, tried a barrier again until every node had drained: one that hung held them up."""

    def _may_fall_back(self) -> Bool:
        return super()._may_fall_back() & False


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


@known_bug(
    "001-337",
    BARRIER,
    breaks=Fencing.what_began_before_is_waited_for,
    budgets={Fencing.bumps: 0, Fencing.cleanups: 0, Fencing.failures: 0},
)
class TheFenceMovesFirst(Fencing):
    """The fence moved when a barrier began: what was on its way was refused, though each node would have drained it."""

    @action(by=COORDINATOR)
    def begin_barrier(self, purpose: Term[Purpose]) -> None:
        """The fence is committed, and the command sent."""
        super().begin_barrier(purpose)
        self.fence = self.version


@known_bug(
    "001-338",
    "design document 001, stage 6: no write request reaches a replica which does not belong to the new replica set",
    breaks=Fencing.requests_keep_their_version,
    budgets={Fencing.cleanups: 0, Fencing.failures: 0},
)
class RequestsTakeTheVersionOfNow(Fencing):
    """A node that had learned of a version took it for the request that it coordinated: the barrier did not wait for what
    was on its way to the replicas of before, and no fence refused it.
    """

    def _apply(self, n: Term[Node]) -> None:
        super()._apply(n)
        held = self.request[n].version
        self.request[n].version = choose(held > 0, self.version, 0)


@known_bug(
    "001-339",
    LEARNS,
    breaks=Fencing.barriers_pass_once_all_have_answered,
    budgets={Fencing.writes: 0, Fencing.bumps: 0, Fencing.cleanups: 0, Fencing.failures: 2},
)
class AFailedBarrierHasPassed(Fencing):
    """The second command failed, too, and the coordinator went on as if all had drained."""

    @action(by=NETWORK, spends=Fencing.failures)
    def fail_to_inform(self) -> None:
        """A node does not answer the second command either: never mind."""
        require(self.phase == Phase.informing, "phase is informing")
        self.phase = Phase.done
        self.drain_failed = False


@known_bug(
    "001-340",
    LEARNS,
    breaks=Fencing.stages_leave_nothing_older_behind,
    budgets={Fencing.cleanups: 0, Fencing.failures: 0, Fencing.failovers: 1},
)
class TheBarrierGoesOnForALaterVersion(Fencing):
    """A new coordinator went on with the barrier of its predecessor, for the version that it found: nodes had answered for
    an older one.
    """

    @action(by=COORDINATOR, spends=Fencing.failovers)
    def fail_over(self) -> None:
        """Another node becomes the topology coordinator, and takes over what runs."""
        require(self.phase != Phase.none, "a barrier runs")
        self.barrier_version = self.version


@known_bug(
    "001-367",
    'design document 001: "After the entire cluster learns about it"',
    breaks=(
        Fencing.fence_holds_on_every_replica,
        Fencing.barriers_pass_once_all_have_answered,
        Fencing.answers_say_what_is_so,
    ),
    budgets={Fencing.bumps: 0, Fencing.cleanups: 0, Fencing.failovers: 1},
)
class TheFenceIsFoundCommitted(Fencing):
    """A new coordinator that found the fence committed took the barrier for passed, with nodes that had not learned it."""

    @action(by=fencing.COORDINATOR, spends=Fencing.failovers)
    def fail_over(self) -> None:
        """Another node becomes the topology coordinator, and finds where the fence is."""
        found = self.phase == Phase.informing
        self.phase = choose(found, Phase.done, Phase.none)
        self.purpose = choose(found, self.purpose, Purpose.tablets)
        self.barrier_version = choose(found, self.barrier_version, 0)
        self.drain_failed = found & self.drain_failed


@known_bug(
    "001-378",
    'design document 001: "After the entire cluster learns about it"',
    breaks=(
        Fencing.fence_holds_on_every_replica,
        Fencing.barriers_pass_once_all_have_answered,
        Fencing.answers_say_what_is_so,
    ),
    budgets={Fencing.bumps: 0, Fencing.cleanups: 0, Fencing.decommissions: 1},
)
class WhoLeavesNeedNotKnowTheFence(Fencing):
    """The second command of a barrier waited for normal nodes only: one that was leaving stored what all others refused."""

    def _all_have_acknowledged(self) -> None:
        informs = self.phase == Phase.informing
        answers = every(
            (self.answer[n] == Answer.acknowledged)
            | ~self._is_asked(n)
            | (informs & (self.node[n] == fencing.NodeState.decommissioning))
            for n in fencing.Node
        )
        require(answers, "every node has acknowledged")


@known_bug(
    "001-391",
    LEARNS,
    breaks=Fencing.barriers_are_for_what_is_committed_by_then,
    budgets={Fencing.cleanups: 0, Fencing.failures: 0, Fencing.failovers: 1},
)
class BarriersAreTriedAgainForTheirOldVersion(Fencing):
    """A coordinator that found a barrier without an end ran it again, for the version that it had been for: what another
    change had committed meanwhile was taken for learned.
    """

    def _forget_barrier(self) -> None:
        self.purpose = Purpose.tablets
        self.drain_failed = False

    @action(by=COORDINATOR)
    def begin_barrier(self, purpose: Term[Purpose]) -> None:
        """The coordinator sends `barrier_and_drain`, for the version that is not fenced yet."""
        require(self.phase == Phase.none, "the coordinator is free")
        failed = self.barrier_version > self.fence
        self.phase = Phase.draining
        self.barrier_version = choose(failed, self.barrier_version, self.version)
        self.purpose = purpose
        self._send_command()


@known_bug(
    "001-392",
    'design document 001, "still alive owners": who is given up may live on',
    breaks=Fencing.excluded_nodes_are_left_alone,
    budgets={Fencing.bumps: 0, Fencing.cleanups: 0, Fencing.failures: 0, Fencing.exclusions: 1},
)
class WhoIsGivenUpHasSentNothing(Fencing):
    """With a node that was given up its requests were forgotten, and a replica that executed one released its locks: another
    transaction ran on the row beside it.
    """

    @action(by=OPERATOR, spends=Fencing.exclusions)
    def exclude(self, n: Term[Node]) -> None:
        """The operator declares a node gone for good."""
        super().exclude(n)
        self._forget(n)


BARRIER_OF_A_STAGE_PASSES_UNDRAINED = released_bug(
    "T04",
    "scylladb #26864, #26375",
    "A node fails to drain, and the barrier of a tablet's stage falls back on the fence: what the node runs "
    "under the old version goes on beside the next stages, with locks on shards that these do not lock.",
    machine=Fencing,
    profile="scylla-2025.4",
    breaks=(Fencing.transactions_exclude_each_other, Fencing.nothing_older_runs_after_the_barrier),
    mended_in="scylla-2026.2",
    budgets={**QUIET, Fencing.writes: 0, Fencing.transactions: 2},
)


@known_bug(
    "T07",
    "scylladb #18699",
    breaks=Fencing.current_requests_are_not_fenced_out,
    budgets={Fencing.cleanups: 0, Fencing.failures: 0},
)
class FenceMovesToTheLatestVersion(Fencing):
    """`move_tablet` commits a version while a barrier runs; the fence moves to that version, and not to the
    one that was current when the barrier began. Requests of the latter, which nobody drained, are refused.
    """

    def _new_fence(self) -> Number:
        return self.version


@known_bug(
    "T09",
    "scylladb #15804",
    breaks=Fencing.no_coordinator_is_older_than_the_barrier,
    budgets={**QUIET, Fencing.failures: 0, Fencing.decommissions: 1},
)
class DecommissioningNodesAreNotAsked(Fencing):
    """Barriers go to normal nodes alone; one that is decommissioning goes on coordinating requests under
    its old version.
    """

    def _is_asked(self, n: Term[Node]) -> Bool:
        return super()._is_asked(n) & (self.node[n] == NodeState.normal)


@known_bug(
    "T10",
    "scylladb #17108",
    breaks=Fencing.fence_holds_on_every_replica,
    budgets={**QUIET, Fencing.decommissions: 1},
)
class FallbackLeavesOutDecommissioningNodes(Fencing):
    """Draining fails, and the second command, which is to make all replicas learn the fence, does not go to
    the node that is decommissioning: it stores a stale write.
    """

    def _is_asked(self, n: Term[Node]) -> Bool:
        drains = self.phase == Phase.draining
        return super()._is_asked(n) & (drains | (self.node[n] == NodeState.normal))


# -- what is never done ----------------------------------------------------------------------------


@known_bug(
    "001-377",
    "design document 001, removing: the cluster goes on with nodes that are alive",
    breaks=(Fencing.barriers_end, Fencing.the_last_stage_can_be_reached),
    budgets={Fencing.bumps: 0, Fencing.exclusions: 1},
)
class TheFenceWaitsForWhoIsGone(Fencing):
    """Nodes that were gone for good did not hold up a drain; but where that had failed, the second command waited for them."""

    def _all_have_acknowledged(self) -> None:
        informs = self.phase == Phase.informing
        answers = every(
            (self.answer[n] == Answer.acknowledged) | ~(self._is_asked(n) | informs)
            for n in fencing.Node
        )
        require(answers, "every node has acknowledged")


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "001-132",
    BARRIER,
    breaks=Fencing.barriers_wait_for_no_request_that_is_given_up,
    budgets={**QUIET, Fencing.failures: 0},
)
class WhatIsGivenUpIsWaitedFor(Fencing):
    """A node that had given a request up kept its version until nothing of it was on its way: barriers took minutes."""

    def _waits(self, n: Term[Node]) -> Bool:
        return self.request[n].replica.is_some()


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
    "001-211",
    INDEPENDENTLY,
    breaks=Fencing.versions_are_committed_at_any_time,
    budgets={**FENCE, Fencing.writes: 0, Fencing.bumps: 1},
)
class TheApiWaitsForBarriers(Fencing):
    """`move_tablet` waited until no barrier ran: on a busy cluster, as long as it was busy."""

    @action(by=API, spends=Fencing.bumps)
    def bump(self) -> None:
        """A request of the API commits a version between barriers."""
        super().bump()
        require(self.phase == Phase.none, "no barrier runs")


@known_bug(
    "001-212",
    'design document 001: decommissioning, "the node is being decomissioned"',
    breaks=Fencing.nodes_begin_to_leave_whatever_is_fenced,
    budgets={**FENCE, Fencing.decommissions: 1},
)
class WhoHasRequestsStays(Fencing):
    """A node began to leave when it coordinated no request: under clients, never."""

    @action(by=COORDINATOR, spends=Fencing.decommissions)
    def decommission(self, n: Term[Node]) -> None:
        """A node that has nothing to do begins to leave."""
        super().decommission(n)
        require(self.request[n].replica.is_none(), "it coordinates no request")


@known_bug(
    "001-213",
    'design document 001, stage 6: "No write request will reach tablet replica"',
    breaks=Fencing.replicas_are_cleaned_up_after_their_barrier,
    budgets={**FENCE, Fencing.cleanups: 1},
)
class CleanupsWaitForAllRequests(Fencing):
    """A replica was cleaned up when no request was on its way to it, not even one that the fence lets pass."""

    @action(by=COORDINATOR, spends=Fencing.cleanups)
    def clean_up(self, r: Term[Node]) -> None:
        """A replica to which nobody writes is cleaned up."""
        super().clean_up(r)
        require(every(self.request[n].replica != r for n in Node), "nobody writes to it")


@known_bug(
    "001-214",
    ALIVE,
    breaks=Fencing.dead_nodes_are_given_up_at_any_time,
    budgets={**FENCE, Fencing.writes: 0, Fencing.exclusions: 1},
)
class NobodyIsGivenUpDuringABarrier(Fencing):
    """The operator could not give a node up while a barrier waited for it, which is when one does."""

    @action(by=OPERATOR, spends=Fencing.exclusions)
    def exclude(self, n: Term[Node]) -> None:
        """The node is gone for good, and no barrier waits."""
        super().exclude(n)
        waits = self.phase.any_of(Phase.draining, Phase.informing)
        require(~waits, "no barrier waits for nodes")


@known_bug(
    "001-215",
    "design document 001: what runs before a barrier has run out after it, locks of the row included",
    breaks=Fencing.transactions_run_where_nobody_holds_the_row,
    budgets={**FENCE, Fencing.writes: 0, Fencing.transactions: 2},
)
class OneLockInTheCluster(Fencing):
    """A transaction waited for those on all replicas, not on its own alone: two of them for each other, for ever."""

    @action(fair=WEAK)
    def take_locks(self, n: Term[Node], r: Term[Node]) -> None:
        """A replica locks the row when nobody has."""
        super().take_locks(n, r)
        require(every(self.request[m].executed == 0 for m in Node), "no row is locked")


@known_bug(
    "001-227",
    'design document 001: "share the infrastructure for fencing"',
    breaks=Fencing.fences_wait_for_no_request,
    budgets={**FENCE, Fencing.failures: 1, Fencing.bumps: 1},
)
class TheFenceWaitsForTheDrain(Fencing):
    """A node acknowledged the fence when it had drained as well: what did not drain held up each topology change."""

    @action(fair=WEAK)
    def acknowledge_fence(self, n: Term[Node]) -> None:
        """A node has learned the fence, and holds no older version."""
        super().acknowledge_fence(n)
        require(~self._holds_older(n), "older versions are released")


@known_bug(
    "001-228",
    'design document 001: "When stage is advanced, it means that expected invariants … hold"',
    breaks=Fencing.stages_wait_for_their_barrier_alone,
    budgets=FENCE,
)
class StagesWaitForSilence(Fencing):
    """After its barrier a stage waited for a moment without requests: under clients there is none."""

    @action(by=COORDINATOR)
    def advance(self) -> None:
        """The barrier of the stage has passed, and nobody asks for anything."""
        require(every(self.request[n].replica.is_none() for n in Node), "no request")
        super().advance()


@known_bug(
    "001-577",
    LEARNS,
    breaks=Fencing.barriers_wait_for_what_nodes_answer,
    budgets={**FENCE, Fencing.failures: 1, Fencing.bumps: 1},
)
class TheFenceMovesInSilence(Fencing):
    """Where a node had not drained, the fence moved when nobody waited for a request that it would refuse."""

    @action(by=COORDINATOR, fair=WEAK)
    def move_fence(self) -> None:
        """The fence moves, if all that is older is over."""
        super().move_fence()
        require(every(~self._holds_older(n) for n in Node), "nothing older is under way")


@known_bug("001-578", LEARNS, breaks=Fencing.nodes_learn_each_for_itself, budgets=FENCE)
class NodesDrainInTurn(Fencing):
    """A node took the command of a barrier up when no other was draining: the barrier took as long as all of them together."""

    @action(fair=WEAK)
    def read_what_is_committed(self, n: Term[Node]) -> None:
        """The node receives the command, after those that drain."""
        require(every(self.answer[m] != Answer.applied for m in Node), "no node drains")
        super().read_what_is_committed(n)


@known_bug(
    "001-579",
    BARRIER,
    breaks=Fencing.what_runs_ends_whatever_is_fenced,
    budgets={**QUIET, Fencing.failures: 1, Fencing.writes: 0, Fencing.transactions: 1},
)
class LocksAreKeptUntilAllKnowTheFence(Fencing):
    """While nodes were told of the fence, a transaction that had ended kept its locks."""

    @action(fair=WEAK)
    def release_locks(self, n: Term[Node]) -> None:
        """The transaction ends, unless a fence is on its way."""
        super().release_locks(n)
        require(self.phase != Phase.informing, "no fence is on its way")


@known_bug(
    "001-603",
    BARRIER,
    breaks=Fencing.what_runs_ends_whatever_is_fenced,
    budgets={**QUIET, Fencing.writes: 0, Fencing.streams: 1},
)
class StreamsLastAsLongAsTheirSession(Fencing):
    """What had streamed was held until its node knew that the session is closed: each barrier waited for nodes that
    were done.
    """

    @action(fair=WEAK)
    def end_streaming(self, n: Term[Node]) -> None:
        """Its session is closed, so that the node does not stream any more."""
        super().end_streaming(n)
        require(~self._session_is_open(n), "its session is closed")


BUGS = known_bugs_in(globals())

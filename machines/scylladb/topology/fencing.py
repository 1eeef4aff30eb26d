"""Fencing: after the global barrier nothing of an older topology version has effects any more.

Every request holds the version of the token metadata that it began under until it ends or its coordinator gives
up; a lightweight transaction holds locks on a replica, and streaming holds its session.

`global_token_metadata_barrier`: the command `barrier_and_drain` to every node that is not excluded; then the fence,
below which replicas refuse, moves to the version that was current when the barrier began; where draining failed
and the barrier may do without, the command `barrier` makes every node learn the fence.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Self

from stagewright.spec import (
    Actor,
    Bool,
    Entity,
    Fairness,
    FlagVar,
    LeadsTo,
    Machine,
    Number,
    NumberVar,
    OneVar,
    Profile,
    Record,
    States,
    Term,
    accepts,
    action,
    always_reachable,
    bounded,
    budget,
    choose,
    equivalent_disabled,
    equivalent_drop,
    equivalent_loss,
    equivalent_replacement,
    equivalent_value,
    equivalent_weakening,
    equivalents,
    every,
    fault_budget,
    final,
    flag,
    independent,
    invariant,
    known_violations,
    leads_to,
    lemma,
    liveness,
    never_happens,
    number,
    one_of,
    optional,
    per,
    profiles,
    record,
    require,
    scopes,
    set_of,
    some,
    sometimes,
    step_property,
    unexercised,
    vacuous,
    violated,
)

WEAK = Fairness.WEAK
API = Actor("API")
CLIENT = Actor("client")
NETWORK = Actor("network")
LAST_VERSION = 5
COORDINATOR = Actor("topology coordinator")
OPERATOR = Actor("operator")


class Node(Entity, scope=2):
    """A node: a replica, and a coordinator of requests."""


class NodeState(Enum):
    """The states of a node that coordinates requests (001)."""

    normal = auto()
    decommissioning = auto()


class Shard(Enum):
    """The shards of a node between which a tablet moves."""

    leaving = auto()
    pending = auto()


LEAVING, PENDING = Shard.leaving, Shard.pending


class Stage(States):
    """The stages of an intranode migration, as far as they differ for locks and sessions."""

    # fmt: off
    #     left  locks               session
    old  = 2,    {LEAVING},          False
    both = 1,    {LEAVING, PENDING}, True
    new  = 0,    {PENDING},          False
    # fmt: on

    def __init__(self, left: int, locks: set[Shard], session: bool) -> None:
        self.left = left  # how many stages follow
        self.locks = locks  # the shards of a replica on which a transaction locks its row
        self.session = session  # it is open: streaming is accepted


class View(Record):
    """What a node has learned of group0."""

    version = number(1, LAST_VERSION)
    stage = one_of(Stage, init=Stage.old)
    fence = number(0, LAST_VERSION)


class Request(Record):
    """The request that a node coordinates, with the version that it began under."""

    replica = optional(Node)
    version = number(0, LAST_VERSION)
    lwt = flag()  # a lightweight transaction, or a plain write
    executed = number(0, LAST_VERSION)  # the replica's own version, if it executes the transaction
    stage = one_of(Stage, init=Stage.old)  # and the stage that says where it has locked the row
    # its coordinator gave up; messages may still arrive, locks may still be held
    abandoned = flag()


class Purpose(Enum):
    """What a barrier is for."""

    tablets = auto()  # the stage of a tablet
    topology = auto()  # the state of a topology change


class Phase(Enum):
    """Where the topology coordinator is in a barrier; volatile."""

    none = auto()
    draining = auto()  # `barrier_and_drain` was sent
    fencing = auto()  # drained, or failed to: the fence is to be committed
    informing = auto()  # failed to drain: `barrier` was sent
    done = auto()


class Answer(Enum):
    """How far a node is with the command that it was sent."""

    none = auto()
    applied = auto()  # its raft read barrier is done
    acknowledged = auto()


@dataclass(frozen=True)
class Barriers(Profile):
    """What a version of ScyllaDB does about barriers."""

    tablets_drain_everywhere: bool  # the barrier of a stage never falls back on the fence (2026-02)


SCYLLA_2025_4 = Barriers("scylla-2025.4", False)


class Fencing(Machine):
    """A barrier drains requests of older versions, and a fence refuses the rest."""

    release = profiles(SCYLLA_2025_4, Barriers("scylla-2026.2", True))
    writes = budget(1, doc="writes that clients send")
    transactions = budget(0, doc="lightweight transactions that clients send")
    streams = budget(0, doc="times that a node starts to stream")
    bumps = budget(1, doc="versions that the API commits, whatever the topology coordinator does")
    cleanups = budget(1, doc="replicas that are cleaned up")
    decommissions = budget(0, doc="nodes that are asked to leave")
    exclusions = budget(0, doc="nodes that are declared gone for good")
    failures = fault_budget(1, doc="commands to which a node does not answer")
    failovers = fault_budget(0, doc="changes of the topology coordinator")

    exercised_at = scopes(
        {writes: 0, bumps: 0, cleanups: 0, failures: 2},
        {writes: 0, bumps: 3, decommissions: 1, failures: 0},
        {writes: 0, bumps: 0, streams: 2, failures: 0},
        {writes: 2, bumps: 0, cleanups: 0, failures: 0},
        {cleanups: 0, failures: 0},
        {bumps: 0, cleanups: 0, decommissions: 1},
        {bumps: 0, failures: 0, failovers: 1},
        {bumps: 0, cleanups: 0, failovers: 1},
        {cleanups: 0, failures: 0, failovers: 1},
        {bumps: 0},
        {writes: 0, bumps: 0, failures: 0, transactions: 1},
        {writes: 0, bumps: 0, failures: 0, cleanups: 0, transactions: 2},
        {bumps: 0, exclusions: 1},
        {bumps: 0, cleanups: 0, failovers: 2},
    )

    # committed to group0
    version: NumberVar = number(1, LAST_VERSION)
    fence: NumberVar = number(0, LAST_VERSION)
    stage: OneVar[Stage] = one_of(Stage, init=Stage.old)
    node = per(Node, one_of(NodeState, init=NodeState.normal))
    excluded = set_of(Node)  # ignored by barriers; such a node may live on behind a partition
    # the barrier
    phase: OneVar[Phase] = one_of(Phase, init=Phase.none)
    purpose: OneVar[Purpose] = one_of(Purpose, init=Purpose.tablets)
    barrier_version: NumberVar = number(0, LAST_VERSION)  # current when the barrier began
    drain_failed: FlagVar = flag()
    answer = per(Node, one_of(Answer, init=Answer.none))
    # the nodes
    view = per(Node, record(View))
    request = per(Node, record(Request))
    streaming = set_of(Node)  # they work in the session of stage `both`
    cleaned = per(Node, number(0, LAST_VERSION))  # the version of the barrier before its cleanup
    stale_effect: FlagVar = flag()  # a replica stored what is older than its cleanup
    refused_current: FlagVar = flag()  # a request that a client waits for, not below the fence

    # == nodes that learn topology versions late =========================================================

    # -- versions --------------------------------------------------------------------------------------

    @action(by=API, spends=bumps)
    def bump(self) -> None:
        """A request of the API, as `move_tablet`, commits a version of its own, also during a barrier."""
        self._commit_version_beside_stages()

    @action(fair=WEAK)
    def learn(self, n: Term[Node]) -> None:
        """Node `n` applies what is committed, at its own pace."""
        view = self.view[n]
        current = (view.version == self.version) & (view.fence == self.fence)
        require(~self.excluded.has(n), "node is not excluded")
        require(~current, "node is behind")
        self._apply(n)

    # -- requests --------------------------------------------------------------------------------------

    @action(by=CLIENT, spends=writes)
    def begin_write(self, n: Term[Node], r: Term[Node]) -> None:
        """A client writes through node `n`, which holds its version of the token metadata meanwhile."""
        self._begin(n, r)

    @action(by=CLIENT, spends=transactions)
    def begin_transaction(self, n: Term[Node], r: Term[Node]) -> None:
        """A client sends a lightweight transaction through node `n`."""
        self._begin(n, r)
        self.request[n].lwt = True

    @action(fair=WEAK)
    def store(self, n: Term[Node], r: Term[Node]) -> None:
        """Replica `r` stores a write that is not below the fence, as far as it has learned."""
        request = self.request[n]
        require((request.replica == r) & ~request.lwt, "a write is on its way to the replica")
        self._passes_the_fence(n, r)
        self._store(n, r)
        self._forget(n)

    @action(fair=WEAK)
    def take_locks(self, n: Term[Node], r: Term[Node]) -> None:
        """Replica `r` locks the row for a transaction, on the shards that its own stage names, and stores it."""
        request = self.request[n]
        require((request.replica == r) & request.lwt, "a transaction is on its way")
        self._passes_the_fence(n, r)
        self._store(n, r)
        taken = some(
            self._executes(r, m) & self._locks_the_same(self.view[r].stage, self.request[m].stage)
            for m in Node
        )
        require(~taken, "nobody has locked the row on one of them")
        request.executed = self.view[r].version
        request.stage = self.view[r].stage

    @action(fair=WEAK)
    def release_locks(self, n: Term[Node]) -> None:
        """The transaction ends on the replica."""
        require(self.request[n].executed > 0, "the transaction holds locks")
        self._forget(n)

    @action(fair=WEAK)
    def refuse(self, n: Term[Node], r: Term[Node]) -> None:
        """Replica `r` refuses a request that is below the fence: a stale topology exception."""
        request = self.request[n]
        require((request.replica == r) & (request.executed == 0), "a request is on its way")
        require(request.version < self.view[r].fence, "its version is below the replica's fence")
        current = self._waits(n) & (request.version >= self.fence)
        self.refused_current = self.refused_current | current
        self._forget(n)

    @action(by=NETWORK, fair=WEAK)
    def time_out(self, n: Term[Node]) -> None:
        """The coordinator gives up and releases its version; what it sent may still arrive."""
        request = self.request[n]
        require(request.replica.is_some() & ~request.abandoned, "a request is on its way")
        request.abandoned = True

    @action(by=NETWORK, fair=WEAK)
    def lose(self, n: Term[Node]) -> None:
        """What is left of an abandoned request is lost on the way."""
        require(self.request[n].abandoned, "request is abandoned")
        require(self.request[n].executed == 0, "no replica works on it")
        self._forget(n)

    # -- sessions --------------------------------------------------------------------------------------

    @action(spends=streams)
    def begin_streaming(self, n: Term[Node]) -> None:
        """Node `n` streams in a session that is open as far as it has learned."""
        require(self._session_is_open(n), "the session is open, as far as it has learned")
        self.streaming.add(n)

    @action(fair=WEAK)
    def end_streaming(self, n: Term[Node]) -> None:
        """Node `n` is done with what it streamed."""
        require(self.streaming.has(n), "it streams")
        self.streaming.discard(n)

    # -- helpers ---------------------------------------------------------------------------------------

    def _commit_version_beside_stages(self) -> None:
        left = self.stage.number_column(lambda stage: stage.left)
        bounded(
            self.version + left < LAST_VERSION, "there is a version for each stage that is left"
        )
        self.version = self.version + 1

    def _store(self, n: Term[Node], r: Term[Node]) -> None:
        stale = self.request[n].version < self.cleaned[r]
        self.stale_effect = self.stale_effect | stale

    def _apply(self, n: Term[Node]) -> None:
        view = self.view[n]
        view.version = self.version
        view.stage = self.stage
        view.fence = self.fence

    def _begin(self, n: Term[Node], r: Term[Node]) -> None:
        request = self.request[n]
        require(request.replica.is_none(), "node is free")
        request.replica = r
        request.version = self.view[n].version

    def _passes_the_fence(self, n: Term[Node], r: Term[Node]) -> None:
        passes = self.request[n].version >= self.view[r].fence
        require(passes, "its version is not below the replica's fence")

    def _locks_the_same(self, stage: Term[Stage], other: Term[Stage]) -> Bool:
        """There is a shard on which transactions of both stages lock the row."""
        shards = stage.column(lambda s: s.locks) & other.column(lambda s: s.locks)
        return ~shards.is_empty()

    def _session_is_open(self, n: Term[Node]) -> Bool:
        return self.view[n].stage.column(lambda stage: stage.session)

    def _holds_older(self, n: Term[Node]) -> Bool:
        """Node `n` coordinates, or executes for another, what began under a version before its own."""
        current = self.view[n].version
        coordinates = self._waits(n) & (self.request[n].version < current)
        executes = some(self._executes(n, m) & (self.request[m].executed < current) for m in Node)
        return coordinates | executes

    def _waits(self, n: Term[Node]) -> Bool:
        """Node `n` coordinates a request that its client waits for."""
        return self.request[n].replica.is_some() & ~self.request[n].abandoned

    def _executes(self, r: Term[Node], n: Term[Node]) -> Bool:
        """Replica `r` executes a transaction that node `n` coordinates, or did."""
        return (self.request[n].replica == r) & (self.request[n].executed > 0)

    def _forget(self, n: Term[Node]) -> None:
        request = self.request[n]
        request.replica = None
        request.version = 0
        request.lwt = False
        request.executed = 0
        request.stage = Stage.old
        request.abandoned = False

    # == the topology coordinator ========================================================================

    # -- the barrier -----------------------------------------------------------------------------------

    @action(by=COORDINATOR)
    def begin_barrier(self, purpose: Term[Purpose]) -> None:
        """The coordinator sends `barrier_and_drain` to every node that is not excluded."""
        require(self.phase == Phase.none, "the coordinator is free")
        self.phase = Phase.draining
        self.barrier_version = self.version
        self.purpose = purpose
        self._send_command()

    @action(fair=WEAK)
    def read_what_is_committed(self, n: Term[Node]) -> None:
        """Node `n` receives the command and runs a raft read barrier."""
        require(self.phase.any_of(Phase.draining, Phase.informing), "a command was sent")
        require(self._is_asked(n), "it was sent to the node")
        require(self.answer[n] == Answer.none, "the node has not received it yet")
        self.answer[n] = Answer.applied
        self._apply(n)

    @action(fair=WEAK)
    def acknowledge_drain(self, n: Term[Node]) -> None:
        """Node `n` holds no older version and works in no closed session any more."""
        require(self.phase == Phase.draining, "phase is draining")
        require(self.answer[n] == Answer.applied, "node has read what is committed")
        require(~self._holds_older(n), "older versions are released")
        works = self.streaming.has(n) & ~self._session_is_open(n)
        require(~works, "closed sessions are drained")
        self.answer[n] = Answer.acknowledged

    @action(fair=WEAK)
    def acknowledge_fence(self, n: Term[Node]) -> None:
        """Node `n` has learned the fence."""
        require(self.phase == Phase.informing, "phase is informing")
        require(self.answer[n] == Answer.applied, "node has read what is committed")
        self.answer[n] = Answer.acknowledged

    @action(by=COORDINATOR, fair=WEAK)
    def drain(self) -> None:
        """Every node has drained: the fence is to move."""
        require(self.phase == Phase.draining, "phase is draining")
        self._all_have_acknowledged()
        self.phase = Phase.fencing

    @action(by=NETWORK, spends=failures)
    def fail_to_drain(self) -> None:
        """A node does not answer: a topology change goes on with the fence, a stage tries again."""
        require(self.phase == Phase.draining, "phase is draining")
        falls_back = self._may_fall_back()
        self.drain_failed = falls_back
        self.phase = choose(falls_back, Phase.fencing, Phase.none)
        self.purpose = choose(falls_back, self.purpose, Purpose.tablets)
        self.barrier_version = choose(falls_back, self.barrier_version, 0)

    @action(by=COORDINATOR, fair=WEAK)
    def move_fence(self) -> None:
        """The fence moves to the version that was current when the barrier began."""
        require(self.phase == Phase.fencing, "phase is fencing")
        self.fence = self._new_fence()
        self.phase = choose(self.drain_failed, Phase.informing, Phase.done)
        self._send_command()

    @action(by=COORDINATOR, fair=WEAK)
    def inform(self) -> None:
        """Every node has learned the fence, where draining failed."""
        require(self.phase == Phase.informing, "phase is informing")
        self._all_have_acknowledged()
        self.phase = Phase.done

    @action(by=NETWORK, spends=failures)
    def fail_to_inform(self) -> None:
        """A node does not answer the second command either: the barrier has failed."""
        require(self.phase == Phase.informing, "phase is informing")
        self.phase = Phase.none
        self._forget_barrier()

    @action(by=COORDINATOR, spends=failovers)
    def fail_over(self) -> None:
        """Another node becomes the topology coordinator, and knows of no barrier."""
        self.phase = Phase.none
        self._forget_barrier()

    # -- what a barrier is for -------------------------------------------------------------------------

    @action(by=COORDINATOR)
    def advance(self) -> None:
        """The barrier of the stage has passed: the next stage is committed, with a version of its own."""
        self._passed(Purpose.tablets)
        require(self.stage != Stage.new, "a stage is left")
        self.version = self.version + 1
        self.stage = choose(self.stage == Stage.old, Stage.both, Stage.new)
        self.phase = Phase.none
        self._forget_barrier()

    @action(by=COORDINATOR, spends=decommissions)
    def decommission(self, n: Term[Node]) -> None:
        """A node begins to leave: it goes on coordinating requests, and storing those of others."""
        self._commit_version_beside_stages()
        self.node[n] = NodeState.decommissioning

    @action(by=COORDINATOR, spends=cleanups)
    def clean_up(self, r: Term[Node]) -> None:
        """After a barrier replica `r` is asked to clean up; it runs a raft read barrier first."""
        require(self.phase == Phase.done, "the barrier has passed")
        require(~self.excluded.has(r), "the replica is not excluded")
        self._apply(r)
        self.cleaned[r] = self.barrier_version

    @action(by=COORDINATOR)
    def end_barrier(self) -> None:
        """What the barrier was for is done."""
        require(self.phase == Phase.done, "the barrier has passed")
        self.phase = Phase.none
        self._forget_barrier()

    @action(by=OPERATOR, spends=exclusions)
    def exclude(self, n: Term[Node]) -> None:
        """The operator declares a node gone for good; it is cut off from group0, and may live on."""
        self.excluded.add(n)

    # -- helpers ---------------------------------------------------------------------------------------

    def _passed(self, purpose: Purpose) -> None:
        require(self.phase == Phase.done, "the barrier has passed")
        require(self.purpose == purpose, "it was a barrier for this purpose")

    def _is_asked(self, n: Term[Node]) -> Bool:
        """Commands go to normal nodes and to those in transition, but not to excluded ones."""
        return ~self.excluded.has(n)

    def _all_have_acknowledged(self) -> None:
        answers = every((self.answer[n] == Answer.acknowledged) | ~self._is_asked(n) for n in Node)
        require(answers, "every node has acknowledged")

    def _may_fall_back(self) -> Bool:
        """A topology change may go on with requests that nobody drained, once all replicas refuse them."""
        if self.release.tablets_drain_everywhere:
            return self.purpose == Purpose.topology
        return self.purpose.any_of(Purpose.topology, Purpose.tablets)

    def _new_fence(self) -> Number:
        return self.barrier_version

    def _send_command(self) -> None:
        for n in Node:
            self.answer[n] = Answer.none

    def _forget_barrier(self) -> None:
        self.purpose = Purpose.tablets
        self.barrier_version = 0
        self.drain_failed = False

    def _has_drained(self) -> Bool:
        """The barrier has passed, and was one that promises to drain."""
        drains = (self.purpose == Purpose.tablets) | ~self.drain_failed
        return (self.phase == Phase.done) & drains

    # -- promises --------------------------------------------------------------------------------------

    @invariant
    def no_coordinator_is_older_than_the_barrier(self, n: Term[Node]) -> Bool:
        """After a barrier at version x "no coordinator with version < x" is left (ScyllaDB's code); nodes that
        are decommissioning coordinate too (scylladb #15804).
        """
        return (self._has_drained() & ~self.excluded.has(n)).implies(~self._is_older(n))

    @invariant
    def nothing_older_runs_after_the_barrier(self, r: Term[Node], n: Term[Node]) -> Bool:
        """Nor does replica `r` still execute under an older version of its own, be it for a coordinator
        that gave up (scylladb #26864).
        """
        since = self.request[n].executed
        older = (self.request[n].replica == r) & (since > 0) & (since < self.barrier_version)
        return (self._has_drained() & ~self.excluded.has(r)).implies(~older)

    @invariant
    def requests_hold_a_version(self, n: Term[Node]) -> Bool:
        """ScyllaDB's code: requests hold their version of the token metadata, transactions too, and nothing else does: of one
        that is over nothing is left that would be taken for the next one's.
        """
        request = self.request[n]
        sent = request.replica.is_some()
        left = request.lwt | request.abandoned | (request.executed > 0)
        return (sent == (request.version > 0)) & left.implies(sent)

    @step_property
    def requests_keep_their_version(self, after: Self, n: Term[Node]) -> Bool:
        """001, stage 6: "No write request will reach tablet replica in the database layer which does not belong to the new
        replica set": a request was sent to the replicas of the version that it began under, and is of no newer one when its
        coordinator has learned of that.
        """
        old, new = self.request[n], after.request[n]
        goes_on = old.replica.is_some() & new.replica.is_some()
        return goes_on.implies(old.version == new.version)

    @step_property
    def what_began_before_is_waited_for(self, after: Self, n: Term[Node]) -> Bool:
        """001: "make sure that no reads that started before this point exist in the system": they end, and are not refused,
        unless a node did not drain; the fence moves when there is none left for whom a client waits.
        """
        moves = (self.fence < after.fence) & ~self.drain_failed & ~self.excluded.has(n)
        request = self.request[n]
        waits = request.replica.is_some() & ~request.abandoned
        return moves.implies(~(waits & (request.version < after.fence)))

    @step_property
    def transactions_hold_their_locks(self, after: Self, n: Term[Node]) -> Bool:
        """ScyllaDB's code: the replica has the row locked from when it executes a transaction until that has ended; none ends
        well without, as a plain write would, and what becomes of others unlocks no row.
        """
        old, new = self.request[n], after.request[n]
        over = old.replica.is_some() & new.replica.is_none()
        unlocked = (old.executed > 0) & (new.executed == 0)
        refused = some((old.replica == r) & (old.version < self.view[r].fence) for r in Node)
        unfinished = old.lwt & (old.executed == 0) & over
        return unlocked.implies(over) & unfinished.implies(old.abandoned | refused)

    @invariant
    def closed_sessions_are_drained(self, n: Term[Node]) -> Bool:
        """The session is open in the stage between the others; after the barrier of another one nobody works
        in it (ScyllaDB's code: "drain closed sessions").
        """
        works = self.streaming.has(n) & ~self.excluded.has(n)
        return (self._has_drained() & works).implies(self.stage == Stage.both)

    @step_property
    def stages_leave_nothing_older_behind(self, after: Self, n: Term[Node]) -> Bool:
        """When the next stage is committed, no coordinator is older than the barrier of the last one: 001,
        "expected invariants about cluster-wide state relevant to the tablet, associated with the next
        stage, hold".
        """
        moves = (self.stage != after.stage) & ~self.excluded.has(n)
        return moves.implies(~self._is_older(n))

    def _is_older(self, n: Term[Node]) -> Bool:
        """Node `n` uses a version before that of the barrier, for a client that it has not given up."""
        version = self.request[n].version
        return (version > 0) & (version < self.barrier_version) & ~self.request[n].abandoned

    @step_property
    def barriers_are_for_what_is_committed_by_then(self, after: Self) -> Bool:
        """001: "After the entire cluster learns about it": a barrier is for the version that is current as it begins, which may
        be that of another change than the one whose barrier has failed before.
        """
        begins = (self.phase == Phase.none) & (after.phase != Phase.none)
        return begins.implies(after.barrier_version == self.version)

    @accepts(begin_write)
    def clients_write_whatever_is_fenced(self, n: Term[Node], r: Term[Node]) -> Bool:
        """001: the cluster learns of a stage while "Writes are going to both new and old replicas": no barrier keeps a
        client from writing to any of them, nor does what its node has not learned yet, or the replica has to do.
        """
        return self.request[n].replica.is_none()

    @accepts(begin_transaction)
    def transactions_begin_whatever_is_fenced(
        self,
        n: Term[Node],
        r: Term[Node],
    ) -> Bool:
        """Nor from a lightweight transaction."""
        return self.request[n].replica.is_none()

    @sometimes(at={bumps: 0, cleanups: 0, failures: 0})
    def writes_are_stored_by_each_replica(self, after: Self, n: Term[Node], r: Term[Node]) -> Bool:
        """001: "Writes are going to both new and old replicas", whichever node coordinates them."""
        request = self.request[n]
        sent = (request.replica == r) & ~request.lwt & ~request.abandoned
        passes = request.version >= self.view[r].fence
        return sent & passes & after.request[n].replica.is_none()

    @sometimes(at={writes: 0, bumps: 0, cleanups: 0, failures: 0, transactions: 1})
    def transactions_are_executed_by_each_replica(self, n: Term[Node], r: Term[Node]) -> Bool:
        """And so are those of lightweight transactions, under locks of the replica."""
        return (self.request[n].replica == r) & (self.request[n].executed > 0)

    @accepts(store)
    def writes_that_the_fence_lets_pass_are_stored(self, n: Term[Node], r: Term[Node]) -> Bool:
        """ScyllaDB's code: a replica refuses what is below the fence, and takes everything else, newer or older than itself."""
        request = self.request[n]
        sent = (request.replica == r) & ~request.lwt
        return sent & (request.version >= self.view[r].fence)

    @accepts(refuse)
    def what_is_below_the_fence_is_refused(self, n: Term[Node], r: Term[Node]) -> Bool:
        """ScyllaDB's code: "stale topology exception": its client hears of it at once, and need not wait."""
        request = self.request[n]
        sent = (request.replica == r) & (request.executed == 0)
        return sent & (request.version < self.view[r].fence)

    @accepts(time_out)
    def requests_are_given_up_at_any_time(self, n: Term[Node]) -> Bool:
        """A client's time is up whatever the topology coordinator waits for."""
        return self.request[n].replica.is_some() & ~self.request[n].abandoned

    @accepts(learn)
    def nodes_learn_whatever_they_hold(self, n: Term[Node]) -> Bool:
        """ScyllaDB's code: requests hold their version of the token metadata; the node itself takes the next one meanwhile."""
        behind = (self.view[n].version < self.version) | (self.view[n].fence < self.fence)
        return behind & ~self.excluded.has(n)

    @accepts(begin_streaming)
    def nodes_stream_as_soon_as_the_session_is_open(self, n: Term[Node]) -> Bool:
        """ScyllaDB's code: who has learned of a session streams in it, also while the next barrier goes on."""
        return self.view[n].stage == Stage.both

    @accepts(bump)
    def versions_are_committed_at_any_time(self) -> Bool:
        """001: "Tablets are migrated in parallel and independently": what the API does to another tablet waits for no
        barrier, and has a version of its own.
        """
        return self.phase.any_of(*Phase)

    @accepts(decommission)
    def nodes_begin_to_leave_whatever_is_fenced(self, n: Term[Node]) -> Bool:
        """001, decommissioning: a node that "is being decomissioned" is in transition, and requests through it go on: no
        request, and no barrier of a tablet's stage, is in the way.
        """
        return self.node[n] == NodeState.normal

    @accepts(clean_up)
    def replicas_are_cleaned_up_after_their_barrier(self, r: Term[Node]) -> Bool:
        """001, stage 6, cleanup, whose precondition is about write requests alone: a replica is asked when the barrier has
        passed, whatever the next one is for, and however far the replica has learned.
        """
        return (self.phase == Phase.done) & ~self.excluded.has(r)

    @accepts(exclude)
    def dead_nodes_are_given_up_at_any_time(self, n: Term[Node]) -> Bool:
        """001: "still alive owners": an operator says which nodes are gone for good, even while a barrier waits for them."""
        return ~self.excluded.has(n)

    @accepts(take_locks)
    def transactions_run_where_nobody_holds_the_row(self, n: Term[Node], r: Term[Node]) -> Bool:
        """ScyllaDB's code: a transaction waits for those that have locked its row on the replica, and for none elsewhere."""
        request = self.request[n]
        sent = (request.replica == r) & request.lwt & (request.executed == 0)
        held = some((self.request[m].replica == r) & (self.request[m].executed > 0) for m in Node)
        return sent & ~held & (request.version >= self.view[r].fence)

    @accepts(acknowledge_drain)
    def barriers_wait_for_no_request_that_is_given_up(self, n: Term[Node]) -> Bool:
        """ScyllaDB's code: a node drains when "token-metadata versions < current are released": whoever gives a request up
        releases its version, and what becomes of it on its way is the fence's to refuse.
        """
        asked = (self.phase == Phase.draining) & (self.answer[n] == Answer.applied)
        request, current = self.request[n], self.view[n].version
        released = request.replica.is_none() | request.abandoned | (request.version >= current)
        runs = some(
            (self.request[m].replica == n)
            & (self.request[m].executed > 0)
            & (self.request[m].executed < current)
            for m in Node
        )
        streams = self.streaming.has(n) & (self.view[n].stage != Stage.both)
        return asked & released & ~runs & ~streams

    @accepts(acknowledge_fence)
    def fences_wait_for_no_request(self, n: Term[Node]) -> Bool:
        """ScyllaDB's code: where a node did not drain, the fence stands for it: who has read it says so, whatever it still runs."""
        return (self.phase == Phase.informing) & (self.answer[n] == Answer.applied)

    @accepts(advance)
    def stages_wait_for_their_barrier_alone(self) -> Bool:
        """001: "When stage is advanced, it means that expected invariants … hold": what began since the barrier, or is behind
        the fence, is in the way of none of them.
        """
        passed = (self.phase == Phase.done) & (self.purpose == Purpose.tablets)
        return passed & (self.stage != Stage.new)

    @independent(
        begin_barrier,
        read_what_is_committed,
        drain,
        move_fence,
        inform,
        end_barrier,
        of=(request, streaming),
    )
    def barriers_wait_for_what_nodes_answer(self) -> None:
        """001: "After the entire cluster learns about it": each node answers when it has drained what "started before this point";
        the coordinator looks at nothing that a client has sent since, nor at what is behind the fence.
        """

    @independent(read_what_is_committed, acknowledge_fence, learn, of=Node)
    def nodes_learn_each_for_itself(self) -> None:
        """001: "the entire cluster learns about it": what one node has not learned yet, or does not answer, holds up no other."""

    @independent(
        release_locks,
        lose,
        end_streaming,
        of=(phase, purpose, barrier_version, drain_failed, answer, stage, version, fence, view),
    )
    def what_runs_ends_whatever_is_fenced(self) -> None:
        """001: "make sure that no reads that started before this point exist in the system": what has begun comes to its end by
        itself, at whatever point of a barrier, and whatever its node has learned.
        """

    @sometimes(at={writes: 0, bumps: 0, cleanups: 0, failures: 1})
    def a_topology_change_goes_on_with_the_fence(self) -> Bool:
        """ScyllaDB's code: a node that does not drain holds up no topology change: the fence makes all replicas refuse what it
        still sends.
        """
        passed = (self.phase == Phase.done) & self.drain_failed
        return passed & (self.purpose == Purpose.topology)

    @invariant
    def barriers_have_a_version(self) -> Bool:
        """A barrier is for a version that was committed when it began."""
        committed = (self.barrier_version > 0) & (self.barrier_version <= self.version)
        return (self.phase != Phase.none).implies(committed)

    @invariant
    def only_what_is_below_the_fence_is_refused(self) -> Bool:
        """Replicas refuse stale requests, and no others."""
        return ~self.refused_current

    @invariant
    def current_requests_are_not_fenced_out(self, n: Term[Node]) -> Bool:
        """A request using a version that was current when the barrier began is not fenced out by it
        (scylladb #18699).
        """
        request = self.request[n]
        waits = (request.version > 0) & ~request.abandoned
        current = waits & (request.version >= self.barrier_version)
        fenced_out = request.version < self.fence
        return ((self.phase != Phase.none) & current).implies(~fenced_out)

    @invariant
    def fence_holds_on_every_replica(self, r: Term[Node]) -> Bool:
        """After a barrier that fell back on the fence every replica refuses what is older; those that are
        decommissioning store too (scylladb #17108).
        """
        fell_back = (self.phase == Phase.done) & self.drain_failed & ~self.excluded.has(r)
        return fell_back.implies(self.view[r].fence >= self.barrier_version)

    @invariant
    def nothing_stale_is_stored(self) -> Bool:
        """No replica stores, after a cleanup, a write that is older than the barrier before the cleanup:
        "no stale side effects" (scylladb #26375).
        """
        return ~self.stale_effect

    @invariant
    def transactions_exclude_each_other(self, n: Term[Node], m: Term[Node]) -> Bool:
        """Lightweight transactions exclude each other on a replica, whose locks are on the old shard, on
        both and on the new one as the stages go by (scylladb #26864).
        """
        one, other = self.request[n], self.request[m]
        there = some((one.replica == r) & (other.replica == r) for r in Node)
        together = there & (one.executed > 0) & (other.executed > 0)
        return (n != m).implies(~together)

    @invariant
    def views_are_at_most_one_stage_behind(self, n: Term[Node]) -> Bool:
        """ScyllaDB's code: "skew at most one stage each way"."""
        skipped = (self.stage == Stage.new) & (self.view[n].stage == Stage.old)
        return (~self.excluded.has(n)).implies(~skipped)

    @step_property
    def what_is_committed_is_applied_whole(self, after: Self, n: Term[Node]) -> Bool:
        """ScyllaDB's code: a node runs a raft read barrier, after which it has all that is committed: version,
        stage and fence are never of different times.
        """
        old, new = self.view[n], after.view[n]
        unchanged = (
            (new.version == old.version) & (new.stage == old.stage) & (new.fence == old.fence)
        )
        latest = (
            (new.version == self.version) & (new.stage == self.stage) & (new.fence == self.fence)
        )
        return unchanged | latest

    @step_property
    def excluded_nodes_are_left_alone(self, after: Self, n: Term[Node]) -> Bool:
        """ScyllaDB's code: commands go to all nodes "except ignored_nodes", which are cut off from group0: such a
        node receives nothing, learns nothing, and is asked for nothing; what it has sent before goes on where it is.
        """
        receives = (self.answer[n] == Answer.none) & (after.answer[n] != Answer.none)
        learns = after.view[n].version != self.view[n].version
        cleaned = after.cleaned[n] != self.cleaned[n]
        gone = self.request[n].replica.is_some() & after.request[n].replica.is_none()
        silent = ~receives & ~learns & ~cleaned
        before = self.excluded.has(n)
        return after.excluded.has(n).implies(choose(before, silent, ~gone))

    @step_property
    def only_commands_are_answered(self, after: Self, n: Term[Node]) -> Bool:
        """ScyllaDB's code: a node answers `barrier_and_drain`, or the `barrier` after it, that the coordinator waits for."""
        answers = (after.answer[n] != self.answer[n]) & (after.answer[n] != Answer.none)
        return answers.implies(self.phase.any_of(Phase.draining, Phase.informing))

    @step_property
    def barriers_pass_once_all_have_answered(self, after: Self, n: Term[Node]) -> Bool:
        """001: "After the entire cluster learns about it": each node that is not excluded has answered the command that was
        sent last; a barrier to which one did not answer has not passed.
        """
        passes = (self.phase != Phase.done) & (after.phase == Phase.done)
        return (passes & ~self.excluded.has(n)).implies(self.answer[n] == Answer.acknowledged)

    @step_property
    def fence_never_falls(self, after: Self) -> Bool:
        """The fence moves forward, and never beyond what is committed."""
        return (self.fence <= after.fence) & (after.fence <= after.version)

    # -- lemmas ----------------------------------------------------------------------------------------

    @lemma
    def versions_are_in_order(self, n: Term[Node]) -> Bool:
        """Nobody is ahead of what is committed, and nothing that was cleaned up of what it knows."""
        view, request = self.view[n], self.request[n]
        known = (view.version <= self.version) & (view.fence <= self.fence)
        barrier = (self.phase == Phase.none) | (self.fence <= self.barrier_version)
        cleaned = self.cleaned[n] <= view.fence
        idle = request.replica.is_none().implies(request.executed == 0)
        idle &= request.replica.is_some() == (request.version > 0)
        return (
            known
            & idle
            & barrier
            & cleaned
            & (self.fence <= self.version)
            & (request.version <= view.version)
        )

    @lemma
    def stages_go_with_versions(self, n: Term[Node]) -> Bool:
        """Who has the latest version has the latest stage; nobody has a later one."""
        view = self.view[n]
        mine = view.stage.number_column(lambda stage: stage.left)
        left = self.stage.number_column(lambda stage: stage.left)
        return (left <= mine) & (view.version == self.version).implies(view.stage == self.stage)

    @lemma
    def what_is_executed_goes_with_the_view(self, r: Term[Node], n: Term[Node]) -> Bool:
        """A replica executes under the version and the stage that it had, and these go together."""
        view, request = self.view[r], self.request[n]
        mine = view.stage.number_column(lambda stage: stage.left)
        left = request.stage.number_column(lambda stage: stage.left)
        same = (request.executed == view.version).implies(request.stage == view.stage)
        skipped = (request.stage == Stage.old) & (view.stage == Stage.new)
        behind = (request.stage == Stage.old) & (self.stage == Stage.new) & ~self.excluded.has(r)
        ordered = (request.executed <= view.version) & (mine <= left)
        return self._executes(r, n).implies(same & ordered & ~skipped & ~behind)

    @lemma
    def answers_say_what_is_so(self, r: Term[Node], n: Term[Node]) -> Bool:
        """A node that has applied a command is up to date; one that has drained holds nothing old."""
        view, stage = self.view[r], self.stage
        up_to_date = (view.version >= self.barrier_version) & (view.stage == stage)
        fence = (self.phase == Phase.informing).implies(view.fence >= self.barrier_version)
        informed = (self.phase == Phase.done) & self.drain_failed
        going_on = self.phase.any_of(Phase.draining, Phase.informing)
        applied = going_on & (self.answer[r] != Answer.none)
        drained = (self.phase == Phase.draining) & (self.answer[r] == Answer.acknowledged)
        passed = self.phase.any_of(Phase.fencing, Phase.done) & ~self.drain_failed
        waits = self._waits(r).implies(self.request[r].version >= self.barrier_version)
        streams = self.streaming.has(r).implies(stage == Stage.both)
        executes = self._executes(r, n).implies(
            (self.request[n].executed >= self.barrier_version) & (self.request[n].stage == stage)
        )
        nothing_old = up_to_date & waits & streams & executes
        to_fence = (self.phase == Phase.fencing) & ~self.drain_failed
        return self.excluded.has(r) | (
            applied.implies(up_to_date & fence)
            & informed.implies(view.fence >= self.barrier_version)
            & (drained | passed).implies(nothing_old)
            & to_fence.implies(self.answer[r] == Answer.acknowledged)
        )

    @lemma
    def a_stage_never_falls_back(self) -> Bool:
        """Only a barrier that may fall back has failed to drain and goes on; then the fence is there."""
        fails = self.drain_failed.implies(self.phase != Phase.none)
        if self.release.tablets_drain_everywhere:
            fails &= self.drain_failed.implies(self.purpose == Purpose.topology)
        at = self.phase.any_of(Phase.informing, Phase.done)
        draining = (self.phase == Phase.draining).implies(~self.drain_failed)
        informing = (self.phase == Phase.informing).implies(self.drain_failed)
        return fails & draining & informing & at.implies(self.fence == self.barrier_version)

    # -- goals -----------------------------------------------------------------------------------------

    @always_reachable
    def the_last_stage_can_be_reached(self) -> Bool:
        """Whatever happened, barriers can pass and the tablet can go on to its last stage."""
        return self.stage == Stage.new

    @final
    def nobody_waits(self) -> Bool:
        """A cluster without requests and without a barrier may stay as it is."""
        idle = every(self.request[n].replica.is_none() for n in Node)
        return idle & self.phase.any_of(Phase.none, Phase.done)

    @liveness
    def barriers_end(self) -> LeadsTo:
        """Every barrier ends, passed or given up: nodes that are not excluded answer in the end."""
        going_on = self.phase.any_of(Phase.draining, Phase.fencing, Phase.informing)
        return leads_to(going_on, ~going_on)

    # -- what older versions break ---------------------------------------------------------------------

    left_open = known_violations(
        violated(
            no_coordinator_is_older_than_the_barrier,
            nothing_older_runs_after_the_barrier,
            closed_sessions_are_drained,
            stages_leave_nothing_older_behind,
            transactions_exclude_each_other,
            under=SCYLLA_2025_4,
            because="the barrier of a tablet's stage falls back on the fence where a node does not drain "
            "(scylladb #26864, #26375)",
        ),
    )

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_weakening(
            time_out, "a request is on its way", because="one that is abandoned may be so again"
        ),
        equivalent_drop(
            learn, "node is behind", because="who learns again what it knows learns nothing"
        ),
        equivalent_weakening(
            store,
            "a write is on its way to the replica",
            because="another one is stored, or lost, instead",
        ),
        equivalent_weakening(
            take_locks,
            "a transaction is on its way",
            because="a plain write that took locks would only wait longer",
        ),
        equivalent_drop(
            refuse, "a request is on its way", because="another one is refused, or lost, instead"
        ),
        equivalent_loss(refuse, refused_current, because="it notes what must not happen"),
        equivalent_loss(time_out, Request.abandoned, because="a request may end in any other way"),
        equivalent_replacement(
            time_out, "no for yes", because="a request may end in any other way"
        ),
        equivalent_drop(
            lose,
            "no replica works on it",
            because="a request may end at any time",
        ),
        equivalent_loss(begin_streaming, streaming, because="nobody need stream"),
        equivalent_replacement(begin_streaming, "no for yes", because="nobody need stream"),
        equivalent_drop(end_streaming, "it streams", because="nothing ends"),
        equivalent_loss(_commit_version_beside_stages, version, because="nothing is committed"),
        equivalent_replacement(
            _commit_version_beside_stages, "0 for 1", because="nothing is committed"
        ),
        equivalent_loss(_store, stale_effect, because="it notes what must not happen"),
        equivalent_loss(
            store, Request.lwt, Request.executed, because="a plain write is no transaction"
        ),
        equivalent_loss(refuse, Request.executed, because="what is refused is not executed"),
        equivalent_loss(lose, Request.executed, because="no replica works on what is lost"),
        equivalent_loss(
            _forget,
            Request.stage,
            because="the stage is recorded again when a transaction takes its locks",
        ),
        equivalent_replacement(
            _forget,
            "both for old",
            because="the stage is recorded again when a transaction takes its locks",
        ),
        equivalent_drop(
            fail_to_drain, "phase is draining", because="a barrier may fail at any time"
        ),
        equivalent_loss(
            fail_to_drain,
            purpose,
            barrier_version,
            because="nobody looks at a barrier that is over",
        ),
        equivalent_drop(
            fail_to_inform, "phase is informing", because="a barrier may fail at any time"
        ),
        equivalent_loss(
            decommission,
            node,
            because="nodes in either state are asked; that they were not, was a bug",
        ),
        equivalent_replacement(
            decommission,
            "normal for decommissioning",
            because="nodes in either state are asked; that they were not, was a bug",
        ),
        equivalent_disabled(
            lose, because="what a client no longer waits for may be stored, or refused, instead"
        ),
        equivalent_loss(clean_up, cleaned, because="what is not cleaned up may be stored to"),
        equivalent_loss(
            clean_up,
            View.stage,
            because="a barrier has passed, which every replica has the stage since",
        ),
        equivalent_drop(
            end_barrier, "the barrier has passed", because="a barrier may be given up at any time"
        ),
        equivalent_loss(exclude, excluded, because="a node that is not excluded is asked"),
        equivalent_replacement(
            exclude, "no for yes", because="a node that is not excluded is asked"
        ),
        equivalent_loss(
            _forget_barrier,
            purpose,
            barrier_version,
            drain_failed,
            because="nobody looks at a barrier that is over",
        ),
        equivalent_replacement(
            _forget_barrier,
            "purpose becomes",
            "barrier_version becomes",
            because="nobody looks at a barrier that is over",
        ),
        equivalent_value(
            Stage.both, lambda stage: stage.left, 2, because="with fewer versions less happens"
        ),
        equivalent_value(
            Stage.new, lambda stage: stage.left, 1, because="with fewer versions less happens"
        ),
    )

    beyond_the_default_scope = unexercised(
        never_happens(
            take_locks,
            release_locks,
            because="replicas lock rows where there are `transactions`",
        ),
        vacuous(
            what_is_executed_goes_with_the_view,
            transactions_hold_their_locks,
            transactions_run_where_nobody_holds_the_row,
            because="replicas lock rows where there are `transactions`",
        ),
        never_happens(end_streaming, because="nodes stream where there are `streams`"),
        vacuous(closed_sessions_are_drained, because="nodes stream where there are `streams`"),
        never_happens(
            fail_to_inform,
            because="it takes two `failures`: the first is that a node does not drain",
        ),
        vacuous(
            excluded_nodes_are_left_alone, because="nodes are excluded where there are `exclusions`"
        ),
    )

"""One version and one fence for two kinds of change: to the ring of vnodes, and to a tablet.

001: the load balancer "is part of the main state machine" because "we want to share the
infrastructure for fencing between vnode-based topology changes and tablet migration"; the two are
excluded "so that they don't interfere". Later releases let tablets move while a node bootstraps:
both kinds commit versions, and one barrier covers all of them. One row of a table with vnodes and
one of a table with tablets move from one node to another. `fencing.py` has how nodes answer a
barrier and learn the fence.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Self

from stagewright.machines.scylladb.cluster import CLIENT, NETWORK, Node
from stagewright.spec import (
    Actor,
    Bool,
    Fairness,
    LeadsTo,
    Machine,
    NumberVar,
    OneVar,
    Profile,
    Record,
    States,
    Term,
    accepts,
    action,
    always_reachable,
    budget,
    constant,
    equivalent_drop,
    equivalent_loss,
    equivalent_replacement,
    equivalent_value,
    equivalent_weakening,
    equivalents,
    every,
    fault_budget,
    final,
    independent,
    initially,
    invariant,
    leads_to,
    liveness,
    number,
    one_of,
    only_when,
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
    volatile,
)

WEAK = Fairness.WEAK
COORDINATOR = Actor("topology coordinator")
LAST_VERSION = 7


class Kind(Enum):
    """What is changed: it determines the replicas of a table."""

    vnodes = auto()
    tablets = auto()


class Stage(States):
    """How far a change has got: the transition states of the topology and the stages of a tablet alike."""

    # fmt: off
    #                     writes old, new     reads new
    none                = True,       False,  False
    write_both_read_old = True,       True,   False
    write_both_read_new = True,       True,   True
    use_new             = False,      True,   True
    # fmt: on

    def __init__(self, writes_old: bool, writes_new: bool, reads_new: bool) -> None:
        self.writes_old = writes_old
        self.writes_new = writes_new
        self.reads_new = reads_new


NEXT = {
    Stage.none: Stage.write_both_read_old,
    Stage.write_both_read_old: Stage.write_both_read_new,
    Stage.write_both_read_new: Stage.use_new,
    Stage.use_new: Stage.use_new,
}


def _next(stage: Stage) -> Stage:
    return NEXT[stage]


class Request(Record):
    """The write that is on its way, if any, and the version of the token metadata that it holds."""

    coordinator = optional(Node)
    kind = one_of(Kind, init=Kind.vnodes)  # of the table
    version = number(0, LAST_VERSION)
    targets = set_of(Node)
    reached = set_of(Node)


@dataclass(frozen=True)
class Tracks(Profile):
    """Whether changes of both kinds may go on at once."""

    exclude: bool  # "the tablet migration track excludes with other topology changes"


class SharedFence(Machine):
    """Two changes with one version and one fence, while clients write to both tables."""

    release = profiles(Tracks("seed", True), Tracks("scylla-master", False))
    writes = budget(1, doc="rows that clients write")
    failures = fault_budget(1, doc="barriers to which a node does not answer in time")

    exercised_at = scopes({failures: 0}, {}, {writes: 0, failures: 2})

    old: OneVar[Node] = constant(one_of(Node))  # the replica of both rows
    new: OneVar[Node] = constant(one_of(Node))  # the node that they move to
    # committed
    version: NumberVar = number(1, LAST_VERSION)
    fence: NumberVar = number(0, LAST_VERSION)
    stage = per(Kind, one_of(Stage, init=Stage.none))
    since = per(Kind, number(0, LAST_VERSION))  # the version in which its stage was committed
    # what only the present coordinator knows
    barrier: NumberVar = volatile(
        number(0, LAST_VERSION), of=COORDINATOR
    )  # the version of the one that runs; 0: none
    passed: NumberVar = volatile(
        number(0, LAST_VERSION), of=COORDINATOR
    )  # the version of the last one that passed
    streamed = volatile(set_of(Kind), of=COORDINATOR)  # changes whose new replica has the rows
    # what a node has learned of group0
    known_version = per(Node, number(1, LAST_VERSION))
    known_fence = per(Node, number(0, LAST_VERSION))
    known_stage = per(Node, per(Kind, one_of(Stage, init=Stage.none)))
    # requests and rows
    request = record(Request)
    stored = per(Kind, set_of(Node))
    acknowledged = set_of(Kind)

    @initially
    def each_row_moves(self) -> Bool:
        """Each row moves from one node to another."""
        return self.old != self.new

    # -- clients ---------------------------------------------------------------------------------------

    @action(by=CLIENT, spends=writes)
    def begin_write(self, n: Term[Node], k: Term[Kind]) -> None:
        """A client writes the row of a table through a node, to the replicas that the node knows of."""
        request, stage = self.request, self.known_stage[n][k]
        require(request.coordinator.is_none(), "no request is on its way")
        request.coordinator = n
        request.kind = k
        request.version = self.known_version[n]
        for m in Node:
            of_old = (self.old == m) & stage.column(lambda stage: stage.writes_old)
            of_new = (self.new == m) & stage.column(lambda stage: stage.writes_new)
            request.targets.put(m, of_old | of_new)

    @action(fair=WEAK)
    def store(self, r: Term[Node], k: Term[Kind]) -> None:
        """A replica stores the row, unless the request is older than the fence that the replica has learned."""
        request = self.request
        require(request.targets.has(r) & (request.kind == k), "it is sent to the replica")
        require(~request.reached.has(r), "the replica has not stored it yet")
        require(self._passes_the_fence(r), "it is not below the replica's fence")
        self.stored[k].add(r)
        request.reached.add(r)

    def _passes_the_fence(self, r: Term[Node]) -> Bool:
        return self.request.version >= self.known_fence[r]

    @action(fair=WEAK)
    def acknowledge(self, k: Term[Kind]) -> None:
        """All replicas to which the row was sent have stored it."""
        request = self.request
        going_on = request.coordinator.is_some() & (request.kind == k)
        require(going_on, "a write is on its way")
        require(request.targets <= request.reached, "every replica has stored it")
        self.acknowledged.add(k)
        self._forget()

    @action(by=NETWORK, fair=WEAK)
    def time_out(self) -> None:
        """The write is refused or lost; replicas that it has reached keep it."""
        require(self.request.coordinator.is_some(), "a request is on its way")
        self._forget()

    def _forget(self) -> None:
        request = self.request
        request.coordinator = None
        request.kind = Kind.vnodes
        request.version = 0
        request.targets = frozenset()
        request.reached = frozenset()

    # -- the barrier -----------------------------------------------------------------------------------

    @action(by=COORDINATOR, fair=WEAK)
    def begin_barrier(self) -> None:
        """`barrier_and_drain` is sent to every node, for whatever either kind of change has committed so far."""
        require(self.barrier == 0, "no barrier is run")
        require(self.passed < self.version, "a version was committed since the last one")
        self.barrier = self.version

    @action(fair=WEAK)
    def learn(self, n: Term[Node]) -> None:
        """A node applies what is committed to group0."""
        behind = (self.known_version[n] < self.version) | (self.known_fence[n] < self.fence)
        require(behind, "the node is behind")
        self.known_version[n] = self.version
        self.known_fence[n] = self.fence
        for k in Kind:
            self.known_stage[n][k] = self.stage[k]

    @action(by=COORDINATOR, fair=WEAK)
    def pass_barrier(self) -> None:
        """Every node has learned the version, and older requests are drained, or refused by every replica."""
        require(self.barrier > 0, "a barrier is run")
        learned = every(self.known_version[n] >= self.barrier for n in Node)
        require(learned, "every node has learned the version")
        refused = every(self.known_fence[r] >= self.barrier for r in Node)
        require(~self._holds_older() | refused, "older versions are released, or refused")
        self._pass()

    def _pass(self) -> None:
        self.fence = self.barrier
        self.passed = self.barrier
        self.barrier = 0

    @action(by=NETWORK, spends=failures)
    def fail_to_drain(self) -> None:
        """A node does not drain in time: the fence moves nevertheless, and every replica has to learn it."""
        require(self._holds_older(), "a node holds an older version")
        self.fence = self.barrier

    def _holds_older(self) -> Bool:
        """A node coordinates a request, to either table, that began under an older version than the barrier's."""
        older = self.request.version < self.barrier
        return self.request.coordinator.is_some() & older

    # -- the changes -----------------------------------------------------------------------------------

    @action(by=COORDINATOR, fair=WEAK)
    def stream(self, k: Term[Kind]) -> None:
        """Writes go to both replicas, and the whole cluster has learned that: the new one gets the
        rows of the old one.
        """
        require(self.stage[k] == Stage.write_both_read_old, "writes go to both")
        require(~self.streamed.has(k), "it has not streamed yet")
        self._is_known(k)
        had = some(self.stored[k].has(m) & (self.old == m) for m in Node)
        for m in Node:
            self.stored[k].put(m, self.stored[k].has(m) | (had & (self.new == m)))
        self.streamed.add(k)

    @action(by=COORDINATOR, fair=WEAK)
    def advance(self, k: Term[Kind]) -> None:
        """The next stage is committed, with a version of its own."""
        require(self.stage[k] != Stage.use_new, "a stage is left")
        self._has_the_track(k)
        begins = self.stage[k] == Stage.none
        streams = self.stage[k] == Stage.write_both_read_old
        require(~streams | self.streamed.has(k), "the rows are streamed")
        require(begins | (self.passed >= self.since[k]), "a barrier passed since its last stage")
        self.stage[k] = self.stage[k].column(_next)
        self._commit(k)

    def _commit(self, k: Term[Kind]) -> None:
        self.since[k] = self.version + 1
        self.version = self.version + 1

    def _is_known(self, k: Term[Kind]) -> None:
        require(self.passed >= self.since[k], "a barrier passed since its stage")

    def _has_the_track(self, k: Term[Kind]) -> None:
        """Only one kind of change goes on at a time, where they exclude each other."""
        if self.release.exclude:
            others = every((k == m) | ~self._is_going_on(m) for m in Kind)
            require(others, "no change of the other kind goes on")

    def _is_going_on(self, k: Term[Kind] | Kind) -> Bool:
        stage = self.stage[k]
        unknown = self.passed < self.since[k]
        return (stage != Stage.none) & ((stage != Stage.use_new) | unknown)

    # -- promises --------------------------------------------------------------------------------------

    @accepts(begin_write)
    def clients_write_while_both_change(self, n: Term[Node], k: Term[Kind]) -> Bool:
        """Clients can write through every node, to either table, whatever changes."""
        return self.request.coordinator.is_none()

    @accepts(store)
    def writes_are_stored_while_both_change(self, r: Term[Node], k: Term[Kind]) -> Bool:
        """Only the fence refuses a write: it is not enough that a replica knows a newer version."""
        request = self.request
        sent = request.targets.has(r) & ~request.reached.has(r) & (request.kind == k)
        return sent & (request.version >= self.known_fence[r])

    @accepts(acknowledge)
    def writes_succeed_while_both_change(self, k: Term[Kind]) -> Bool:
        """001, stage 3, "a successful request": a write is one once all replicas have stored it, whatever changes."""
        waits = self.request.coordinator.is_some() & (self.request.kind == k)
        return waits & (self.request.targets <= self.request.reached)

    @accepts(time_out)
    def requests_are_given_up_at_any_time(self) -> Bool:
        """001: "Writes are going to both new and old replicas": a client whose time is up is told so, whatever is changed."""
        return self.request.coordinator.is_some()

    @sometimes(at={failures: 0})
    def a_write_succeeds_while_its_replicas_change(self, after: Self, k: Term[Kind]) -> Bool:
        """001, stage 3, "a successful request": one that began while writes go to both replicas can become one."""
        replicas = every(
            self.request.targets.has(m) | ((self.old != m) & (self.new != m)) for m in Node
        )
        return replicas & ~self.acknowledged.has(k) & after.acknowledged.has(k)

    @accepts(begin_barrier)
    def barriers_wait_for_no_stream(self) -> Bool:
        """001, "independently": what one kind of change commits gets a barrier at once, whatever
        the other is still doing.
        """
        return (self.barrier == 0) & (self.passed < self.version)

    @accepts(pass_barrier)
    def barriers_wait_for_what_was_before_them(self) -> Bool:
        """001: "After the entire cluster learns about it": a barrier is over once all nodes have learned its own
        version, and what is older is drained or refused; a version that the other kind of change commits meanwhile
        gets the next one.
        """
        learned = every(self.known_version[n] >= self.barrier for n in Node)
        refused = every(self.known_fence[n] >= self.barrier for n in Node)
        drained = self.request.coordinator.is_none() | (self.request.version >= self.barrier)
        return (self.barrier > 0) & learned & (drained | refused)

    @accepts(stream)
    def rows_are_streamed_independently(self, k: Term[Kind]) -> Bool:
        """001: "After the entire cluster learns about it, streaming starts", whatever the other kind of change is
        doing.
        """
        learned = (self.stage[k] == Stage.write_both_read_old) & (self.passed >= self.since[k])
        return learned & ~self.streamed.has(k)

    @accepts(advance)
    def changes_advance_independently(self, k: Term[Kind]) -> Bool:
        """001, "independently": a change goes on once the cluster has learned its stage, and what this stage streams
        has streamed, wherever the other one is. Only where the tracks exclude each other one begins when the other is
        over.
        """
        stage = self.stage[k]
        learned = (stage == Stage.none) | (self.passed >= self.since[k])
        streamed = (stage != Stage.write_both_read_old) | self.streamed.has(k)
        ready = (stage != Stage.use_new) & learned & streamed
        if not self.release.exclude:
            return ready
        return ready & every((k == m) | self._is_out_of_its_track(m) for m in Kind)

    @independent(begin_barrier, learn, stream, advance, of=(request, stored, acknowledged))
    def only_barriers_wait_for_clients(self) -> None:
        """001: "After the entire cluster learns about it, streaming starts": a node learns of a stage while it has
        requests under way; what is older is waited for by the barrier, and by nothing else.
        """

    def _is_out_of_its_track(self, k: Kind | Term[Kind]) -> Bool:
        """It has not begun, or the cluster has learned its last stage."""
        learned = (self.stage[k] == Stage.use_new) & (self.passed >= self.since[k])
        return (self.stage[k] == Stage.none) | learned

    @step_property
    def requests_go_on_while_both_change(self, after: Self) -> Bool:
        """001: "make sure that no reads that started before this point exist", by waiting for them: no stage of either kind
        that is committed or learned, and no barrier that begins, ends a request.
        """
        commits = (self.version != after.version) | (self.barrier != after.barrier)
        learns = some(self.known_version[n] != after.known_version[n] for n in Node)
        same = self.request.coordinator == after.request.coordinator
        return (commits | learns).implies(same)

    @step_property
    def what_one_has_streamed_the_other_leaves(self, after: Self, k: Term[Kind]) -> Bool:
        """001, of both kinds of change: "so that they don't interfere with each other": what one of them has streamed, in its
        stage, need not be streamed again, whatever the other commits.
        """
        stays = self.streamed.has(k) & (self.stage[k] == after.stage[k])
        return stays.implies(after.streamed.has(k))

    @step_property
    def barriers_end_by_passing(self, after: Self) -> Bool:
        """001, "independently": no commit stops a running barrier, or else one kind of change would
        hold up the other for as long as it commits.
        """
        ends = (self.barrier > 0) & (after.barrier == 0)
        return ends.implies(after.passed == self.barrier)

    @invariant
    def reads_see_acknowledged_writes(self, n: Term[Node], k: Term[Kind], r: Term[Node]) -> Bool:
        """001: the replicas that are read "will reflect all successful writes": whichever node a
        client reads through, even one that is behind, and whatever the other kind of change commits
        meanwhile.
        """
        reads_new = self.known_stage[n][k].column(lambda stage: stage.reads_new)
        reads = (reads_new & (self.new == r)) | (~reads_new & (self.old == r))
        asked = reads & (self.known_version[n] >= self.known_fence[r])
        return (self.acknowledged.has(k) & asked).implies(self.stored[k].has(r))

    @invariant
    def nothing_older_has_effects(self, r: Term[Node]) -> Bool:
        """After a barrier, requests from before it, to either table, are drained, or refused by every replica."""
        older = self.request.coordinator.is_some() & (self.request.version < self.passed)
        return older.implies(~self._passes_the_fence(r))

    @step_property
    def what_is_learned_is_what_is_committed(self, after: Self, n: Term[Node]) -> Bool:
        """A node applies group0 as a whole: the version, the fence, and the stages of both kinds."""
        learns = (self.known_version[n] != after.known_version[n]) | (
            self.known_fence[n] != after.known_fence[n]
        )
        current = (after.known_version[n] == self.version) & (after.known_fence[n] == self.fence)
        stages = every(after.known_stage[n][k] == self.stage[k] for k in Kind)
        return learns.implies(current & stages)

    @step_property
    def the_fence_moves_with_the_barrier(self, after: Self) -> Bool:
        """The fence never falls, and when a barrier has passed it is at the barrier's version; it moves for a barrier that
        runs, and not before: requests that it would have waited for are not refused when it begins.
        """
        passes = (self.passed != after.passed).implies(after.fence == after.passed)
        moves = (self.fence != after.fence).implies(after.fence == self.barrier)
        return (self.fence <= after.fence) & passes & moves

    @step_property
    def each_stage_has_its_own_version(self, after: Self) -> Bool:
        """Every stage of either kind has a version of its own: the version of a request says which
        stage of both it began under.
        """
        moved = some(self.stage[k] != after.stage[k] for k in Kind)
        return moved.implies(after.version == self.version + 1)

    @step_property
    def tracks_exclude_each_other(self, after: Self, k: Term[Kind], other: Term[Kind]) -> Bool:
        """001: "The tablet migration track excludes with other topology changes"; a track is left when the cluster has
        learned the last stage, too: before "cleanup" no write is to reach the old replicas any more.
        """
        only_when(self.release.exclude)
        begins = self.stage[k] != after.stage[k]
        return ((k != other) & begins).implies(self._is_out_of_its_track(other))

    @final
    def nobody_waits(self) -> Bool:
        """All barriers have passed, and no client waits."""
        return self.request.coordinator.is_none() & (self.passed == self.version)

    @liveness
    def changes_end(self, k: Term[Kind]) -> LeadsTo:
        """Neither change holds up the other for good: each ends."""
        return leads_to(self.stage[k] != Stage.none, self.stage[k] == Stage.use_new)

    @always_reachable
    def both_can_end(self) -> Bool:
        """Whatever has failed, both changes can still end."""
        return every(self.stage[k] == Stage.use_new for k in Kind)

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(
            begin_write, "no request is on its way", because="the earlier one is lost instead"
        ),
        equivalent_drop(
            store,
            "the replica has not stored it yet",
            because="storing a row twice changes nothing",
        ),
        equivalent_loss(
            _forget,
            Request.kind,
            Request.version,
            Request.targets,
            Request.reached,
            because="nobody looks at what is left of a request that is over",
        ),
        equivalent_replacement(
            _forget,
            "request.kind becomes",
            "request.version becomes",
            because="nobody looks at what is left of a request that is over",
        ),
        equivalent_drop(
            time_out,
            "a request is on its way",
            because="without a request there is nothing to lose",
        ),
        equivalent_drop(
            begin_barrier,
            "no barrier is run",
            "a version was committed since the last one",
            because="one more barrier does no harm",
        ),
        equivalent_drop(learn, "the node is behind", because="learning again changes nothing"),
        equivalent_loss(
            fail_to_drain, fence, because="the fence moves when the barrier passes, at the latest"
        ),
        equivalent_weakening(
            fail_to_drain,
            "a node holds an older version",
            because="a node that holds none may be late to answer, too",
        ),
        equivalent_drop(
            stream, "it has not streamed yet", because="rows may be streamed more than once"
        ),
        equivalent_value(
            Stage.use_new,
            lambda stage: stage.writes_old,
            True,
            because="a replica that nobody reads any more may be written",
        ),
        equivalent_value(
            Stage.none,
            lambda stage: stage.writes_new,
            True,
            because="a replica that nobody reads yet may be written",
        ),
    )

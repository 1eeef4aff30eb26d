"""What fencing is about: nodes that learn topology versions late, and what they do under an older one.

A request holds the version of the token metadata that it began under until it ends or its coordinator gives
up; a lightweight transaction holds locks on a replica, and streaming holds its session. `fencing.py` adds the
topology coordinator's barrier and the promises.
"""

from __future__ import annotations

from enum import Enum, auto

from stagewright.spec import (
    Actor,
    Bool,
    Entity,
    Fairness,
    FlagVar,
    Machine,
    NumberVar,
    OneVar,
    Record,
    States,
    Term,
    action,
    bounded,
    budget,
    equivalent_drop,
    equivalent_loss,
    equivalents,
    flag,
    number,
    one_of,
    optional,
    per,
    record,
    require,
    set_of,
    some,
)

WEAK = Fairness.WEAK
API = Actor("API")
CLIENT = Actor("client")
NETWORK = Actor("network")
LAST_VERSION = 5


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
    abandoned = (
        flag()
    )  # its coordinator gave up; messages may still arrive, locks may still be held


class FencingNodes(Machine):
    """Nodes with views that lag, and requests under the versions of these views."""

    writes = budget(1, doc="writes that clients send")
    transactions = budget(0, doc="lightweight transactions that clients send")
    streams = budget(0, doc="times that a node starts to stream")
    bumps = budget(1, doc="versions that the API commits, whatever the topology coordinator does")

    # committed to group0
    version: NumberVar = number(1, LAST_VERSION)
    fence: NumberVar = number(0, LAST_VERSION)
    stage: OneVar[Stage] = one_of(Stage, init=Stage.old)
    node = per(Node, one_of(NodeState, init=NodeState.normal))
    excluded = set_of(Node)  # ignored by barriers; such a node may live on behind a partition
    # the nodes
    view = per(Node, record(View))
    request = per(Node, record(Request))
    streaming = set_of(Node)  # they work in the session of stage `both`
    cleaned = per(Node, number(0, LAST_VERSION))  # the version of the barrier before its cleanup
    stale_effect: FlagVar = flag()  # a replica stored what is older than its cleanup
    refused_current: FlagVar = flag()  # a request that a client waits for, not below the fence

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

    # -- what recurs -----------------------------------------------------------------------------------

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

    # -- what no promise can tell ----------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(
            learn, "node is behind", because="who learns again what it knows learns nothing"
        ),
        equivalent_loss(
            begin_transaction, Request.lwt, because="a plain write may be sent as well"
        ),
        equivalent_drop(
            store,
            "a write is on its way to the replica",
            because="another one is stored, or lost, instead",
        ),
        equivalent_drop(
            take_locks,
            "a transaction is on its way",
            because="a plain write that took locks would only wait longer",
        ),
        equivalent_loss(
            take_locks, Request.executed, because="who does not execute excludes nobody"
        ),
        equivalent_drop(release_locks, "the transaction holds locks", because="it is lost instead"),
        equivalent_drop(
            refuse, "a request is on its way", because="another one is refused, or lost, instead"
        ),
        equivalent_loss(refuse, refused_current, because="it notes what must not happen"),
        equivalent_drop(
            time_out, "a request is on its way", because="a request may end in any other way"
        ),
        equivalent_loss(time_out, Request.abandoned, because="a request may end in any other way"),
        equivalent_drop(
            lose,
            "request is abandoned",
            "no replica works on it",
            because="a request may end at any time",
        ),
        equivalent_loss(begin_streaming, streaming, because="nobody need stream"),
        equivalent_drop(end_streaming, "it streams", because="nothing ends"),
        equivalent_loss(_commit_version_beside_stages, version, because="nothing is committed"),
        equivalent_loss(_store, stale_effect, because="it notes what must not happen"),
        equivalent_drop(
            _begin, "node is free", because="what the node coordinated before is lost instead"
        ),
        equivalent_loss(_begin, Request.replica, because="a request that nobody sends"),
        equivalent_loss(
            _forget,
            Request.version,
            Request.lwt,
            Request.executed,
            Request.stage,
            Request.abandoned,
            because="nobody looks at the rest of a request that is over",
        ),
    )

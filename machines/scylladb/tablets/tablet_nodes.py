"""What surrounds tablet migration: nodes whose view lags, their storage, requests and data, and faults.

A node learns the committed stage late; requests that began under an older version are still on their way;
nodes crash. `tablet.py` adds the topology coordinator's steps and the promises.
"""

from __future__ import annotations

from enum import Enum, auto

from stagewright.machines.scylladb.tablets.tablet_migration import OPERATOR, TabletMigration
from stagewright.machines.scylladb.tablets.tablet_stages import (
    SCYLLA_2025_4,
    SCYLLA_2026_2,
    SEED,
    Replicas,
    Role,
    Stage,
)
from stagewright.spec import (
    ANY,
    Actor,
    Bool,
    Entity,
    Fairness,
    FlagVar,
    Machine,
    OneVar,
    Record,
    SetOf,
    Term,
    action,
    bounded,
    budget,
    choose,
    equivalent_drop,
    equivalent_loss,
    equivalents,
    flag,
    initially,
    many,
    number,
    one_of,
    optional,
    per,
    profiles,
    record,
    require,
    set_of,
    some,
)

WEAK = Fairness.WEAK
CLIENT = Actor("client")
NETWORK = Actor("network")
LAST_VALUE = 3


class Node(Entity, scope=2):
    """A ScyllaDB node: a replica of tablets, and a coordinator of requests."""


class Tablet(Entity, scope=1):
    """A tablet of a table."""


class Track(Enum):
    """What the topology state machine is doing (`transition_state`)."""

    idle = auto()
    tablet_migration = auto()
    topology_change = auto()


class View(Record):
    """What a node has learned of a tablet: its token metadata, maybe behind group0."""

    stage = one_of(Stage, init=Stage.none)
    replicas = set_of(Node)
    next = set_of(Node)
    session = flag()


class Request(Record):
    """The request that a node coordinates, if any, with the stage that it began under as its version."""

    tablet = optional(Tablet)
    write = flag()
    stage = one_of(Stage, init=Stage.none)
    targets = set_of(Node)
    reached = set_of(Node)
    value = number(0, LAST_VALUE)  # of a read: the newest value acknowledged before it began
    abandoned = flag()  # timed out, or its coordinator crashed; its messages may still arrive


class Chunk(Record):
    """Streamed data on the wire."""

    target = optional(Node)
    value = number(0, LAST_VALUE)
    closed = flag()  # the target has learned since that its session is closed


class TabletNodes(Machine):
    """Nodes that hold replicas of tablets and coordinate requests, under a topology that changes."""

    release = profiles(SEED, SCYLLA_2025_4, SCYLLA_2026_2)
    writes = budget(1, doc="writes that clients send")
    reads = budget(1, doc="reads that clients send")
    compactions = budget(0, doc="split compactions that replicas start")
    loads = budget(0, doc="loads of rows from a backup")
    crashes = budget(1, doc="nodes that crash")

    # committed to group0
    tablets = many(
        TabletMigration,
        over=Tablet,
        without=(TabletMigration.exclude, TabletMigration.fail_over),
    )
    replicas = per(Tablet, set_of(Node, init=ANY))
    next = per(Tablet, set_of(Node, init=ANY))  # the same at rest
    excluded = set_of(Node)  # down for good, says the operator; barriers ignore them
    track: OneVar[Track] = one_of(Track, init=Track.idle)
    request_pending: FlagVar = flag()  # a topology change was requested
    # the nodes
    view = per(Node, per(Tablet, record(View)))
    down = set_of(Node)
    storage = per(Tablet, set_of(Node, init=ANY))
    data = per(Tablet, per(Node, number(0, LAST_VALUE)))  # the newest value that a replica stores
    # clients
    request = per(Node, record(Request))
    written = per(Tablet, number(0, LAST_VALUE))
    acknowledged = per(Tablet, number(0, LAST_VALUE))
    stale_read: FlagVar = flag()
    # actions of a stage, at the replicas and on the wire
    streaming_at = per(Tablet, optional(Node))
    copied = per(Tablet, flag())
    chunk = per(Tablet, record(Chunk))
    cleanup_at = per(Tablet, optional(Node))
    cleaned = per(Tablet, flag())
    compacting = per(Tablet, per(Node, number(0, LAST_VALUE)))  # the newest value that it rewrites

    @initially
    def one_replica_everywhere(self, t: Term[Tablet]) -> Bool:
        """Each tablet starts at rest on one node, which has storage for it."""
        at_rest = (self.next[t] == self.replicas[t]) & (self.storage[t] == self.replicas[t])
        return at_rest & (self.replicas[t].size() == 1)

    # -- nodes learn -----------------------------------------------------------------------------------

    @action(fair=WEAK)
    def learn(self, n: Term[Node]) -> None:
        """Node `n` applies what is committed; it allocates and drops storage as the stage says."""
        require(~self.down.has(n), "node is up")
        require(some(~self._current(n, t) for t in Tablet), "node is behind")
        for t in Tablet:
            view, stage = self.view[n][t], self.tablets[t].stage
            stores = self._keeps_storage(n, t)
            view.stage = stage
            view.session = self.tablets[t].session
            view.replicas = self.replicas[t]
            view.next = self.next[t]
            self.storage[t].put(n, stores)
            if self.release.sessions:
                self.chunk[t].closed = self.chunk[t].closed | self._learns_of_closing(n, t)
            aborted = (self.streaming_at[t] == n) & (stage != Stage.streaming)
            self.data[t][n] = choose(stores, self.data[t][n], 0)
            self.streaming_at[t] = choose(aborted, None, self.streaming_at[t])

    # -- clients ---------------------------------------------------------------------------------------

    @action(by=CLIENT, spends=writes)
    def begin_write(self, n: Term[Node], t: Term[Tablet]) -> None:
        """A client writes through node `n`, which sends the write to the replicas that its view names."""
        self._begin(n, t, self._targets_of_write(n, t))
        self._write_next_value(n, t)

    @action(by=CLIENT, spends=loads)
    def begin_load(self, n: Term[Node], t: Term[Tablet]) -> None:
        """Load-and-stream: node `n` sends rows of a backup to the replicas that its view names."""
        self._begin(n, t, self._targets_of_load(n, t))
        self._write_next_value(n, t)

    @action(fair=WEAK)
    def store_write(self, n: Term[Node], r: Term[Node], t: Term[Tablet]) -> None:
        """Replica `r` stores the write that node `n` coordinates."""
        request = self.request[n]
        require((request.tablet == t) & request.write, "a write is on its way")
        require(request.targets.has(r) & ~request.reached.has(r), "it is sent to the replica")
        require(~self.down.has(r), "replica is up")
        require(self.storage[t].has(r), "replica has storage")
        newer = self.data[t][r] < request.value
        self.data[t][r] = choose(newer, request.value, self.data[t][r])
        request.reached.add(r)

    @action(fair=WEAK)
    def acknowledge_write(self, n: Term[Node], t: Term[Tablet]) -> None:
        """All replicas have answered: the client is told that its write succeeded."""
        request = self.request[n]
        waits = (request.tablet == t) & request.write & ~request.abandoned
        require(waits, "a write is on its way")
        require(request.targets <= request.reached, "every replica has stored it")
        newer = self.acknowledged[t] < request.value
        self.acknowledged[t] = choose(newer, request.value, self.acknowledged[t])
        self._forget(n)

    @action(by=CLIENT, spends=reads)
    def begin_read(self, n: Term[Node], t: Term[Tablet]) -> None:
        """A client reads through node `n`, which asks the replicas that its view names."""
        view = self.view[n][t]
        reads = view.stage.column(lambda stage: stage.reads)
        self._begin(n, t, self._chosen(reads, view.replicas, view.next))
        self.request[n].value = self.acknowledged[t]

    @action(fair=WEAK)
    def answer_read(self, n: Term[Node], r: Term[Node], t: Term[Tablet]) -> None:
        """Replica `r` answers the read that node `n` coordinates."""
        request = self.request[n]
        require((request.tablet == t) & ~request.write, "a read is on its way")
        require(request.targets.has(r), "it is sent to the replica")
        require(~self.down.has(r), "replica is up")
        self.stale_read = self.stale_read | (self.data[t][r] < request.value)
        self._forget(n)

    @action(by=NETWORK, fair=WEAK)
    def time_out(self, n: Term[Node]) -> None:
        """A replica does not answer in time: the client is told so, but messages may still arrive."""
        request = self.request[n]
        require(request.tablet.is_some() & ~request.abandoned, "a request is on its way")
        self._abandon(n)

    @action(by=NETWORK, fair=WEAK)
    def lose_messages(self, n: Term[Node]) -> None:
        """What is left of an abandoned request is lost."""
        require(self.request[n].abandoned, "request is abandoned")
        self._forget(n)

    # -- faults ------------------------------------------------------------------------------------------

    @action(spends=crashes)
    def crash(self, n: Term[Node]) -> None:
        """Node `n` stops: what it coordinated is abandoned, what it stored stays."""
        require(~self.down.has(n), "node is up")
        self.down.add(n)
        self._abandon(n)
        for t in Tablet:
            stops = self.streaming_at[t] == n
            self.streaming_at[t] = choose(stops, None, self.streaming_at[t])
            self.copied[t] = self.copied[t] & ~stops
            self.compacting[t][n] = 0

    @action(by=OPERATOR, fair=WEAK)
    def restart(self, n: Term[Node]) -> None:
        """Node `n` comes back, with the view that it had; it allocates storage as the stage says."""
        require(self.down.has(n) & ~self.excluded.has(n), "node is down and not excluded")
        self.down.discard(n)
        for t in Tablet:
            self.storage[t].put(n, self.storage[t].has(n) | self._restores_storage(n, t))

    @action(by=OPERATOR)
    def exclude(self, n: Term[Node]) -> None:
        """The operator declares node `n` gone for good: barriers ignore it, and it never comes back."""
        require(self.down.has(n) & ~self.excluded.has(n), "node is down and not excluded")
        self.excluded.add(n)
        for t in Tablet:
            old, new = self.replicas[t].has(n), self.next[t].has(n)
            tablet = self.tablets[t]
            moving = tablet.stage != Stage.none
            leaving = tablet.excluded.has(Role.leaving) | (moving & old & ~new)
            pending = tablet.excluded.has(Role.pending) | (moving & new & ~old)
            staying = tablet.excluded.has(Role.staying) | (moving & old & new)
            tablet.excluded.put(Role.leaving, leaving)
            tablet.excluded.put(Role.pending, pending)
            tablet.excluded.put(Role.staying, staying)

    # -- what recurs -----------------------------------------------------------------------------------

    def _current(self, n: Term[Node], t: Term[Tablet]) -> Bool:
        """Node `n` has learned all that is committed of a tablet."""
        view = self.view[n][t]
        same_sets = (view.replicas == self.replicas[t]) & (view.next == self.next[t])
        return (
            (view.stage == self.tablets[t].stage)
            & same_sets
            & (view.session == self.tablets[t].session)
        )

    def _learns_of_closing(self, n: Term[Node], t: Term[Tablet]) -> Bool:
        """The session of a chunk that is on its way to node `n` is closed, as the node learns now."""
        return (self.chunk[t].target == n) & ~self.tablets[t].session

    def _keeps_storage(self, n: Term[Node], t: Term[Tablet]) -> Bool:
        """Storage is allocated where the stage asks for it, and dropped in the stages that end a move."""
        stage = self.tablets[t].stage
        asked = self._stores(stage, self.replicas[t], self.next[t]).has(n)
        if not self.release.end_migration:
            return asked | self.storage[t].has(n)
        drops = stage.any_of(Stage.end_migration, Stage.revert_migration)
        return asked | (self.storage[t].has(n) & ~drops)

    def _restores_storage(self, n: Term[Node], t: Term[Tablet]) -> Bool:
        """A node that starts allocates storage for what it knows to be its replicas in that stage."""
        view = self.view[n][t]
        return self._stores(view.stage, view.replicas, view.next).has(n)

    def _stores(self, stage: Term[Stage], replicas: SetOf[Node], new: SetOf[Node]) -> SetOf[Node]:
        return self._chosen(stage.column(lambda s: s.storage), replicas, new)

    def _chosen(
        self, which: Term[Replicas], replicas: SetOf[Node], new: SetOf[Node]
    ) -> SetOf[Node]:
        """The replica set that a column of the stage's table names."""
        both = choose(which == Replicas.both, replicas | new, new)
        return choose(which == Replicas.previous, replicas, both)

    def _targets_of_write(self, n: Term[Node], t: Term[Tablet]) -> SetOf[Node]:
        view = self.view[n][t]
        writes = view.stage.column(lambda stage: stage.writes)
        return self._chosen(writes, view.replicas, view.next)

    def _targets_of_load(self, n: Term[Node], t: Term[Tablet]) -> SetOf[Node]:
        return self._targets_of_write(n, t)

    def _begin(self, n: Term[Node], t: Term[Tablet], targets: SetOf[Node]) -> None:
        request = self.request[n]
        require(~self.down.has(n), "node is up")
        require(request.tablet.is_none(), "node is free")
        require(~targets.is_empty(), "node has learned of the tablet's replicas")
        request.tablet = t
        request.targets = targets
        request.stage = self.view[n][t].stage

    def _write_next_value(self, n: Term[Node], t: Term[Tablet]) -> None:
        self.request[n].write = True
        bounded(self.written[t] < LAST_VALUE, "a value is left")
        self.request[n].value = self.written[t] + 1
        self.written[t] = self.written[t] + 1

    def _abandon(self, n: Term[Node]) -> None:
        """The messages of a write may still arrive; those of a read have no effect any more."""
        request = self.request[n]
        request.tablet = choose(request.write, request.tablet, None)
        request.stage = choose(request.write, request.stage, Stage.none)
        request.targets = choose(request.write, request.targets, frozenset())
        request.value = choose(request.write, request.value, 0)
        request.abandoned = request.write

    def _forget(self, n: Term[Node], where: Bool | None = None) -> None:
        """Node `n` coordinates nothing any more (`where` that holds)."""
        request = self.request[n]
        if where is None:
            request.tablet = None
            request.write = False
            request.stage = Stage.none
            request.targets = frozenset()
            request.reached = frozenset()
            request.value = 0
            request.abandoned = False
            return
        request.tablet = choose(where, None, request.tablet)
        request.write = request.write & ~where
        request.stage = choose(where, Stage.none, request.stage)
        request.targets = choose(where, frozenset(), request.targets)
        request.reached = choose(where, frozenset(), request.reached)
        request.value = choose(where, 0, request.value)
        request.abandoned = request.abandoned & ~where

    # -- what no promise can tell ----------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(
            learn,
            "node is up",
            "node is behind",
            because="a node that learns again, or as it starts, learns the same",
        ),
        equivalent_loss(
            learn,
            data,
            streaming_at,
            because="storage that is dropped is clean; a stream without session is refused",
        ),
        equivalent_drop(
            store_write,
            "it is sent to the replica",
            because="a write that comes twice is stored once: the newest value stays",
        ),
        equivalent_drop(store_write, "replica has storage", because="writes find storage"),
        equivalent_loss(store_write, data, because="with one write there is none that is newer"),
        equivalent_loss(store_write, Request.reached, because="an answer that is lost"),
        equivalent_drop(
            acknowledge_write,
            "a write is on its way",
            because="to acknowledge late what all replicas have stored",
        ),
        equivalent_loss(
            acknowledge_write,
            acknowledged,
            because="nothing is promised of what was not acknowledged",
        ),
        equivalent_loss(
            begin_read, Request.value, because="a read that may miss everything promises nothing"
        ),
        equivalent_drop(
            answer_read, "replica is up", because="a replica that is down may crash later instead"
        ),
        equivalent_loss(answer_read, stale_read, because="it notes what must not happen"),
        equivalent_drop(time_out, "a request is on its way", because="nothing is abandoned"),
        equivalent_drop(
            lose_messages, "request is abandoned", because="a request may be abandoned before"
        ),
        equivalent_drop(
            crash,
            "node is up",
            because="what a crash does not stop is as it would be without the crash",
        ),
        equivalent_loss(
            crash,
            down,
            streaming_at,
            copied,
            compacting,
            because="what a crash does not stop is as it would be without the crash",
        ),
        equivalent_drop(
            restart,
            "node is down and not excluded",
            because="a node that starts while it is up has what it has",
        ),
        equivalent_loss(
            restart, storage, because="storage that the stage asks for is there already"
        ),
        equivalent_drop(
            exclude,
            "node is down and not excluded",
            because="to exclude a node twice is to exclude it once",
        ),
        equivalent_drop(
            _begin,
            "node is up",
            "node is free",
            "node has learned of the tablet's replicas",
            because="a request that nobody sends, or that another one takes the place of",
        ),
        equivalent_loss(
            _begin,
            Request.tablet,
            Request.targets,
            because="a request that nobody sends, or that another one takes the place of",
        ),
        equivalent_loss(
            _begin,
            Request.stage,
            because="a request that is taken for older than it is, is drained as well",
        ),
        equivalent_loss(
            _write_next_value, Request.value, written, because="a write of nothing is none"
        ),
        equivalent_loss(
            _abandon,
            Request.tablet,
            Request.stage,
            Request.targets,
            Request.value,
            Request.abandoned,
            because="messages of a request that is abandoned may be lost at once",
        ),
        equivalent_loss(
            _forget,
            Request.tablet,
            Request.write,
            Request.stage,
            Request.targets,
            Request.reached,
            Request.value,
            Request.abandoned,
            because="nobody looks at the rest of a request that is over",
        ),
    )

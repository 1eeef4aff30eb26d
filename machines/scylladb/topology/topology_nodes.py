"""What surrounds the topology state machine: nodes whose ring lags, a key range that moves, requests, faults.

One range of the token ring is followed, with its owners before and after the change that goes on. A node
learns the committed topology late; requests that began under an older version are still on their way.
`topology.py` adds the topology coordinator's steps and the promises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from stagewright.machines.scylladb.tablets.tablet_nodes import CLIENT, NETWORK, Node
from stagewright.machines.scylladb.topology.topology_control import LAST_VERSION, OPERATOR
from stagewright.machines.scylladb.topology.topology_of_ranges import (
    NO_PART_OF_IT,
    TopologyOfRanges,
)
from stagewright.machines.scylladb.topology.topology_states import (
    SCYLLA_6_0,
    SCYLLA_2025_4,
    SCYLLA_2026_2,
    SEED,
    NodeState,
    Ring,
    TransitionState,
)
from stagewright.spec import (
    ANY,
    Bool,
    Fairness,
    FlagVar,
    Machine,
    NumberVar,
    Record,
    SetOf,
    SetVar,
    Term,
    action,
    bounded,
    budget,
    choose,
    equivalent_drop,
    equivalent_loss,
    equivalents,
    every,
    flag,
    initially,
    number,
    optional,
    part,
    per,
    profiles,
    record,
    require,
    set_of,
    step_property,
)

WEAK = Fairness.WEAK
FIRST_VALUE = 1  # what the range holds at first
LAST_VALUE = 3


class View(Record):
    """What a node has learned of the topology: its token metadata, maybe behind group0."""

    version = number(0, LAST_VERSION)
    fence = number(0, LAST_VERSION)  # requests of older versions are refused
    writes = set_of(Node)  # the range's replicas, for writes
    reads = set_of(Node)


class ClientRequest(Record):
    """The request that is on its way, if any."""

    coordinator = optional(Node)
    write = flag()
    version = number(0, LAST_VERSION)
    targets = set_of(Node)
    reached = set_of(Node)
    value = number(0, LAST_VALUE)  # of a read: the newest value acknowledged before it began
    abandoned = flag()  # timed out, or its coordinator died; its messages may still arrive


class TopologyNodes(Machine):
    """Nodes that own a range and coordinate requests, under a topology that changes."""

    release = profiles(SEED, SCYLLA_6_0, SCYLLA_2025_4, SCYLLA_2026_2)
    writes = budget(1, doc="writes that clients send")
    reads = budget(1, doc="reads that clients send")
    crashes = budget(0, doc="nodes that crash")

    topology = part(TopologyOfRanges, without=NO_PART_OF_IT)
    owners: SetVar[Node] = set_of(Node, init=ANY)  # of the range, in the old ring
    next: SetVar[Node] = set_of(Node)  # in the new ring, while the two differ
    # the nodes
    view = per(Node, record(View))
    data = per(Node, number(0, LAST_VALUE, init=ANY))  # the newest value that a node stores
    copied: FlagVar = flag()  # the new owner has streamed the range
    # clients
    request = record(ClientRequest)
    written: NumberVar = number(0, LAST_VALUE, init=FIRST_VALUE)
    acknowledged: NumberVar = number(0, LAST_VALUE, init=FIRST_VALUE)
    stale_read: FlagVar = flag()

    @initially
    def normal_nodes_own_the_range(self) -> Bool:
        """Some normal nodes own the range and store its rows; there are no tablets."""
        normal = every(self.topology.node_state[n] == NodeState.normal for n in self.owners)
        rows = every(self.data[n] == choose(self.owners.has(n), FIRST_VALUE, 0) for n in Node)
        return normal & rows & ~self.owners.is_empty() & self.topology.tablet_hosts.is_empty()

    # -- nodes learn -----------------------------------------------------------------------------------

    @action(fair=WEAK)
    def learn(self, n: Term[Node]) -> None:
        """Node `n` applies what is committed to group0."""
        up = self.topology.members.has(n) & ~self.topology.down.has(n)
        require(up, "node is an up member")
        require(~self._is_current(n), "node is behind")
        self._learn(n)

    def _learn(self, n: Term[Node]) -> None:
        view = self.view[n]
        view.version = self.topology.version
        view.fence = self.topology.fence_version
        view.writes = self._ring(lambda state: state.writes)
        view.reads = self._ring(lambda state: state.reads)

    def _ring(self, column: Callable[[TransitionState], Ring]) -> SetOf[Node]:
        """The owners that a column of the transition state names."""
        ring = self.topology.transition_state.column(column)
        newer = choose(ring == Ring.both, self.owners | self.next, self.next)
        return choose(ring == Ring.old, self.owners, newer)

    def _is_current(self, n: Term[Node]) -> Bool:
        view, topology = self.view[n], self.topology
        same = (view.version == topology.version) & (view.fence == topology.fence_version)
        return same & ~view.reads.is_empty()

    @step_property
    def what_is_learned_is_what_is_committed(self, after: Self, n: Term[Node]) -> Bool:
        """A member of group0 applies a commit as a whole: the version, the fence, and both rings."""
        view, topology = after.view[n], self.topology
        learns = (self.view[n].version != view.version) | (self.view[n].fence != view.fence)
        learns = learns | (self.view[n].writes != view.writes) | (self.view[n].reads != view.reads)
        whole = (view.version == topology.version) & (view.fence == topology.fence_version)
        writes = view.writes == self._ring(lambda state: state.writes)
        rings = writes & (view.reads == self._ring(lambda state: state.reads))
        return learns.implies(topology.members.has(n) & whole & rings)

    # -- clients ---------------------------------------------------------------------------------------

    @action(by=CLIENT, spends=writes)
    def begin_write(self, n: Term[Node]) -> None:
        """A client writes through node `n`, which sends the write to the owners that it knows of."""
        bounded(self.written < LAST_VALUE, "a value is left")
        self.request.value = self.written + 1
        self.written = self.written + 1
        self._begin(n, self.view[n].writes)
        self.request.write = True

    @action(fair=WEAK)
    def store_write(self, r: Term[Node]) -> None:
        """Replica `r` stores the write, unless its version is fenced as far as the replica knows."""
        request = self.request
        require(request.write & request.targets.has(r), "it is sent to the replica")
        require(~self.topology.down.has(r), "replica is up")
        self._not_fenced(r)
        self.data[r] = request.value
        request.reached.add(r)

    @action(fair=WEAK)
    def acknowledge_write(self) -> None:
        """All replicas have answered: while one is dead, writes to it time out."""
        request = self.request
        require(request.write, "a write is on its way")
        require(~request.abandoned, "the client still waits")
        require(request.targets <= request.reached, "every replica has stored it")
        self.acknowledged = request.value
        self._forget()

    @action(by=CLIENT, spends=reads)
    def begin_read(self, n: Term[Node]) -> None:
        """A client reads through node `n`, which asks one of the owners that it knows of."""
        self._begin(n, self.view[n].reads)
        self.request.value = self.acknowledged

    @action(fair=WEAK)
    def answer_read(self, r: Term[Node]) -> None:
        """Replica `r` answers the read, unless its version is fenced as far as the replica knows."""
        request = self.request
        require(~request.write & request.targets.has(r), "the replica is asked")
        require(~self.topology.down.has(r), "replica is up")
        require(~request.abandoned, "the client still waits")
        self._not_fenced(r)
        self.stale_read = self.stale_read | (self.data[r] < request.value)
        self._forget()

    @action(by=NETWORK, fair=WEAK)
    def time_out(self) -> None:
        """A replica does not answer in time: the client is told so, but messages may still arrive."""
        request = self.request
        require(request.coordinator.is_some() & ~request.abandoned, "a request is on its way")
        request.abandoned = True

    @action(by=NETWORK, fair=WEAK)
    def lose_messages(self) -> None:
        """What is left of an abandoned request is lost, or refused."""
        require(self.request.abandoned, "request is abandoned")
        self._forget()

    def _begin(self, n: Term[Node], targets: SetOf[Node]) -> None:
        topology = self.topology
        serves = topology.node_state[n].column(lambda state: state.owns)
        require(self.request.coordinator.is_none(), "no request is on its way")
        require(serves & ~topology.down.has(n), "node serves and is up")
        require(~targets.is_empty(), "node has learned of the owners")
        self.request.version = self.view[n].version
        self.request.coordinator = n
        self.request.targets = targets

    def _not_fenced(self, r: Term[Node]) -> None:
        require(self.view[r].fence <= self.request.version, "its version is not fenced")

    def _forget(self) -> None:
        request = self.request
        request.coordinator = None
        request.write = False
        request.version = 0
        request.targets = frozenset()
        request.reached = frozenset()
        request.value = 0
        request.abandoned = False

    # -- faults ----------------------------------------------------------------------------------------

    @action(spends=crashes)
    def crash(self, n: Term[Node]) -> None:
        """Node `n` stops: what it coordinated is abandoned, what it stored stays."""
        self.topology.crash(n)
        self._abandon(n)

    @action(by=OPERATOR)
    def restart(self, n: Term[Node]) -> None:
        """Node `n` comes back, and serves once it has caught up with group0."""
        self.topology.restart(n)
        member = self.topology.members.has(n)
        require(member, "the node is in group0")
        self._learn(n)

    def _abandon(self, n: Term[Node]) -> None:
        stops = self.request.coordinator == n
        self.request.abandoned = self.request.abandoned | stops

    # -- what no promise can tell ----------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(learn, "node is behind", because="to learn again changes nothing"),
        equivalent_loss(
            begin_write, ClientRequest.value, written, because="a client may write no more"
        ),
        equivalent_loss(
            store_write, ClientRequest.reached, because="a write need not be acknowledged"
        ),
        equivalent_loss(
            acknowledge_write, acknowledged, because="a write need not be acknowledged"
        ),
        equivalent_loss(
            begin_read,
            ClientRequest.coordinator,
            ClientRequest.targets,
            ClientRequest.value,
            because="a client need not read",
        ),
        equivalent_drop(
            answer_read,
            "replica is up",
            because="a dead owner stores what was acknowledged, too: it would answer the same",
        ),
        equivalent_drop(
            answer_read,
            "the client still waits",
            "its version is not fenced",
            because="a barrier waits for reads, so that none is left to be refused",
        ),
        equivalent_loss(
            answer_read, stale_read, because="it records that a promise was broken, and none is"
        ),
        equivalent_drop(
            time_out, "a request is on its way", because="a request may take long, or be over"
        ),
        equivalent_loss(
            time_out, ClientRequest.abandoned, because="a request may take long, or be over"
        ),
        equivalent_drop(
            lose_messages,
            "request is abandoned",
            because="what is lost is never answered: as if it had timed out first",
        ),
        equivalent_drop(
            _begin,
            "no request is on its way",
            "node serves and is up",
            "node has learned of the owners",
            because="one request at a time is followed, through a node that knows the owners",
        ),
        equivalent_loss(
            _begin,
            ClientRequest.version,
            because="a request of an older version is refused sooner, and drained later",
        ),
        equivalent_loss(
            _forget,
            ClientRequest.coordinator,
            ClientRequest.write,
            ClientRequest.version,
            ClientRequest.targets,
            ClientRequest.reached,
            ClientRequest.value,
            ClientRequest.abandoned,
            because="what is left of a request that is over tells nobody anything",
        ),
        equivalent_loss(
            _abandon,
            ClientRequest.abandoned,
            because="the client gives up by its own timeout at the latest",
        ),
    )

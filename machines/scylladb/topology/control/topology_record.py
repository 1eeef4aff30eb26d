"""The topology as group0 stores it (001, "Topology state persistence table"), and what the coordinator knows beyond that.

`topology_properties.py` says what holds, and `topology_control.py` what happens; the tables are in
`topology_states.py`.
"""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import NETWORK, Node
from stagewright.machines.scylladb.topology.topology_states import (
    LEAVING,
    SCYLLA_6_0,
    SCYLLA_2025_4,
    SCYLLA_2026_2,
    SEED,
    Barrier,
    GlobalRequest,
    NodeState,
    Request,
    TransitionState,
    Work,
)
from stagewright.spec import (
    ANY,
    Actor,
    Bool,
    Fairness,
    FlagVar,
    Machine,
    NumberVar,
    OneVar,
    OptionalVar,
    Term,
    budget,
    every,
    fault_budget,
    flag,
    history,
    initially,
    number,
    observed,
    one_of,
    optional,
    per,
    profiles,
    set_of,
    some,
    volatile,
)

T = TransitionState
NULL = TransitionState.null
NORMAL = NodeState.normal
WEAK = Fairness.WEAK
COORDINATOR = Actor("topology coordinator")
OPERATOR = Actor("operator")
NODE = Actor("node")
BALANCER = Actor("load balancer")
PUBLISHER = Actor("CDC generation publisher")
LAST_VERSION = 30


class TopologyRecord(Machine):
    """`system.topology` with a row for each node and its static columns, and the topology coordinator's memory."""

    release = profiles(SEED, SCYLLA_6_0, SCYLLA_2025_4, SCYLLA_2026_2)
    requests = budget(2, doc="requests of nodes and of the cluster, plans of the balancer, locks")
    faults = fault_budget(1, doc="crashes, failed steps, and changes of the topology coordinator")
    stages = budget(0, doc="changes of the stages of tablets, and their fences")

    # a row for every node
    node_state = per(Node, one_of(NodeState))
    topology_request = per(Node, optional(Request))
    tokens = set_of(Node, init=ANY)  # nodes that own tokens
    replaced_id = per(Node, optional(Node))  # the node that it replaces, or replaced
    cleanup_needed = set_of(Node)  # nodes that may hold rows of ranges that they have lost

    # static columns
    transition_state: OneVar[TransitionState] = one_of(TransitionState, init=NULL)
    version: NumberVar = number(0, LAST_VERSION)
    fence_version: NumberVar = number(0, LAST_VERSION)
    session: FlagVar = flag()  # open: streaming for a topology change is accepted
    new_cdc_generation: FlagVar = flag()  # its data is written, and it is to be committed
    unpublished_cdc_generations: FlagVar = flag()  # committed, but users do not see them yet
    global_request: OptionalVar[GlobalRequest] = optional(GlobalRequest)

    # the request table
    asked = per(Node, optional(Request))  # the newest request of the node
    done = set_of(Node)  # it has ended
    error = set_of(Node)  # it has failed, or is bound to fail

    # raft, tablets
    members = set_of(Node, init=ANY)  # of group0
    tablet_hosts = set_of(Node, init=ANY)  # nodes that hold tablet replicas
    tablet_work: OptionalVar[Work] = optional(Work)  # why tablets are in transition, if any are
    dropped: FlagVar = history(flag())  # flips with every table that is dropped

    # nodes, as the failure detector sees them
    down = observed(set_of(Node), of=NETWORK)

    # what only the present coordinator knows
    barrier: OneVar[Barrier] = volatile(one_of(Barrier, init=Barrier.none), of=COORDINATOR)
    streamed: FlagVar = volatile(flag(), of=COORDINATOR)  # stream_ranges has succeeded
    # `_rollback`: an action has failed, and the operation is to be undone
    giving_up: FlagVar = volatile(flag(), of=COORDINATOR)

    @initially
    def a_cluster_of_normal_nodes(self) -> Bool:
        """Some nodes are normal and members of group0; others have not joined yet."""
        rows = every(self.node_state[n].any_of(NodeState.normal, NodeState.absent) for n in Node)
        fits = every(
            (self.tokens.has(n) == self._is(n, NodeState.normal))
            & (self.members.has(n) == self._is(n, NodeState.normal))
            & self.tablet_hosts.has(n).implies(self._is(n, NodeState.normal))
            for n in Node
        )
        return rows & fits & some(self._is(n, NodeState.normal) for n in Node)

    # -- nodes ---------------------------------------------------------------------------------------

    def _is(self, n: Term[Node], *states: NodeState) -> Bool:
        return self.node_state[n].any_of(*(state for state in NodeState if state in states))

    def _exists(self, n: Term[Node]) -> Bool:
        return ~self._is(n, NodeState.absent, NodeState.left)

    def _in_transition(self, n: Term[Node]) -> Bool:
        return self.node_state[n].column(lambda state: state.in_transition)

    def is_at_rest(self) -> Bool:
        """No transition state, and no node in transition."""
        moving = some(self._in_transition(n) for n in Node)
        return (self.transition_state == NULL) & ~moving

    def _being_replaced(self, n: Term[Node]) -> Bool:
        return some(self._is(m, NodeState.replacing) & (self.replaced_id[m] == n) for m in Node)

    def _has_ended(self, n: Term[Node]) -> Bool:
        """The node has left the token ring and its request is reported as done: it will not come back."""
        reported = self._in_transition(n) & self.done.has(n)
        return (self.transition_state == TransitionState.left_token_ring) & reported

    def is_ignored(self, n: Term[Node]) -> Bool:
        """Barriers do not ask a node that is being removed or replaced."""
        return self._is(n, NodeState.removing) | self._being_replaced(n)

    def takes_part(self, n: Term[Node]) -> Bool:
        """Barriers ask the normal nodes and the one in transition."""
        present = self._is(n, NodeState.normal) | self._in_transition(n)
        return present & ~self.is_ignored(n)

    # -- rings ---------------------------------------------------------------------------------------

    def in_old_ring(self, n: Term[Node]) -> Bool:
        return self.tokens.has(n) & self.node_state[n].column(lambda state: state.owns)

    def in_new_ring(self, n: Term[Node]) -> Bool:
        will_own = self.node_state[n].column(lambda state: state.will_own)
        return self.tokens.has(n) & will_own & ~self._being_replaced(n)

    # -- requests ------------------------------------------------------------------------------------

    def _ready(self, n: Term[Node]) -> Bool:
        """A request is pending and not paused, and no node that it needs is down."""
        return some(self._waits_for(n, request) for request in Request)

    def _waits_for(self, n: Term[Node], request: Request) -> Bool:
        return (self.topology_request[n] == request) & self._can_proceed(n, request)

    def _can_proceed(self, n: Term[Node], request: Request) -> Bool:
        """A request of this kind is not paused, and no node that it needs is down."""
        needs: list[Bool] = []
        if self.release.parallel_draining and request.begins_as in LEAVING:
            needs.append(~self.tablet_hosts.has(n))
        if self.release.rollback:
            needs.append(self._alive_enough(n, request))
        return every(needs)

    def _alive_enough(self, n: Term[Node], request: Request) -> Bool:
        """All normal nodes are up, except the one to be removed or replaced, which is down; a node that joins is up."""
        if request is Request.remove:
            return every(self._is(m, NORMAL).implies(self.down.has(m) == (m == n)) for m in Node)
        if request is Request.replace:
            dead = self.replaced_id[n]
            up = every(self._is(m, NORMAL).implies(self.down.has(m) == (dead == m)) for m in Node)
        else:
            up = every(self._is(m, NORMAL).implies(~self.down.has(m)) for m in Node)
        return up & ~self.down.has(n) if request in (Request.join, Request.replace) else up

    def _paused(self, n: Term[Node]) -> Bool:
        """A node that is asked to leave stays normal as long as it holds tablet replicas."""
        return self._wants_to_go(n) & self.tablet_hosts.has(n)

    def _wants_to_go(self, n: Term[Node]) -> Bool:
        return self.topology_request[n].any_of(Request.leave, Request.remove)

    def _pending(self) -> Bool:
        """A topology change waits for its turn."""
        if self.release.parallel_draining:
            return some(self.topology_request[n].is_some() & ~self._paused(n) for n in Node)
        return some(self.topology_request[n].is_some() for n in Node)

    def stays(self, n: Term[Node]) -> Bool:
        """A normal node that is neither to leave nor to be replaced."""
        wanted = some(
            (self.replaced_id[m] == n) & ~self._is(m, NodeState.left, NodeState.normal)
            for m in Node
        )
        return self._is(n, NodeState.normal) & ~self._wants_to_go(n) & ~wanted

    def _others_stay(self, n: Term[Node]) -> Bool:
        return some((m != n) & self.stays(m) for m in Node)

    def _nothing_is_asked(self, n: Term[Node]) -> Bool:
        return self.topology_request[n].is_none() & self._nobody_wants_it_gone(n)

    def _nobody_wants_it_gone(self, n: Term[Node]) -> Bool:
        """A normal node that is not to leave, and that no other node is to replace: one that was
        to, but has left, does not count.
        """
        goes = self.topology_request[n].any_of(Request.leave, Request.remove)
        to_come = (NodeState.none, NodeState.replacing)
        replaced = some((self.replaced_id[m] == n) & self._is(m, *to_come) for m in Node)
        return self._is(n, NodeState.normal) & ~goes & ~replaced

    # -- barriers ------------------------------------------------------------------------------------

    def _blocks(self, n: Term[Node]) -> Bool:
        return self.takes_part(n) & self.down.has(n)

    def _gives_up(self) -> Bool:
        """A failure in this state rolls back the operation on a node."""
        back = self.release.rollback
        there_is = self.transition_state.column(lambda state: state.gives_up and back)
        return there_is & some(self._in_transition(n) for n in Node)

    def _waives(self) -> Bool:
        """A barrier that fails in this state is waived once ring_delay is over."""
        if not self.release.rollback:
            return self.transition_state == T.write_both_read_new
        return self.transition_state.any_of(
            T.write_both_read_new, T.left_token_ring, T.rollback_to_normal
        )

    def _has_source(self, n: Term[Node]) -> Bool:
        return some((m != n) & self.tokens.has(m) & ~self.down.has(m) for m in Node)

    # -- tablets -------------------------------------------------------------------------------------

    def _may_settle(self, n: Term[Node]) -> Bool:
        return self._is(n, NORMAL) & ~self._being_replaced(n)

    def _to_be_drained(self, n: Term[Node]) -> Bool:
        """Its tablets are to be moved, or rebuilt from other replicas, on the tablet migration track."""
        lost = self._is(n, NodeState.left) & self.tablet_hosts.has(n)
        return self._paused(n) | lost

    def _keeps_tablets(self, n: Term[Node]) -> Bool:
        """It is to be drained, or it must be empty and still holds tablets."""
        return self._to_be_drained(n) | self._leaves_with_tablets(n)

    def _leaves_with_tablets(self, n: Term[Node]) -> Bool:
        return self._must_be_empty(n) & self.tablet_hosts.has(n)

    def _must_be_empty(self, n: Term[Node]) -> Bool:
        """Where tablets drain in a transition state of their own, they also drain from a node that is being replaced."""
        leaves = self._is(n, NodeState.decommissioning, NodeState.removing)
        return leaves | self._being_replaced(n) if self.release.draining_state else leaves

    def _takes_over(self, n: Term[Node]) -> Bool:
        """Tablets move to a node that stays; those on their way to a node that is then asked to leave still arrive."""
        return self.stays(n) | (self._may_settle(n) & self.tablet_hosts.has(n))

    def _is_drained_last(self, n: Term[Node]) -> Bool:
        """It is to be emptied, and is the last such node that holds tablets: draining ends with it."""
        others = some((m != n) & self._still_goes(m) & self.tablet_hosts.has(m) for m in Node)
        return self._still_goes(n) & ~others

    def _still_goes(self, n: Term[Node]) -> Bool:
        """It is asked to leave, is leaving, or has left with tablets that are still to be rebuilt."""
        return self._to_be_drained(n) | self._must_be_empty(n)

"""The topology state machine and its promises, as a whole: what group0 keeps, requests, tracks, operations, the
way back, and what is promised of all of them.

The tables are in `topology_states.py`; `topology.py` puts nodes, client requests and data around it.
"""

from __future__ import annotations

from typing import Self

from stagewright.machines.scylladb.cluster import NETWORK, Node
from stagewright.machines.scylladb.topology.topology_reasons import TABLES
from stagewright.machines.scylladb.topology.topology_states import (
    JOINING,
    LEAVING,
    NODE_DIAGRAM,
    SCYLLA_6_0,
    SCYLLA_2025_4,
    SCYLLA_2026_2,
    SEED,
    SEED_DIAGRAM,
    SEED_TABLE,
    TRANSITION_TABLE,
    Barrier,
    GlobalRequest,
    NodeState,
    Owner,
    Request,
    Ring,
    TransitionState,
    Work,
)
from stagewright.spec import (
    ANY,
    Actor,
    Bool,
    Fairness,
    FlagVar,
    LeadsTo,
    Machine,
    NumberVar,
    OneVar,
    OptionalVar,
    Term,
    accepts,
    action,
    always_reachable,
    budget,
    choose,
    count,
    equivalent_drop,
    equivalent_loss,
    equivalent_weakening,
    equivalents,
    every,
    final,
    flag,
    initially,
    invariant,
    known_violations,
    leads_to,
    liveness,
    number,
    observed,
    one_of,
    only_when,
    optional,
    per,
    profiles,
    require,
    scopes,
    set_of,
    some,
    step_property,
    unexercised,
    vacuous,
    violated,
    volatile,
)

T = TransitionState
COORDINATOR = Actor("topology coordinator")
OPERATOR = Actor("operator")
NODE = Actor("node")
LAST_VERSION = 30
NULL = TransitionState.null
NORMAL = NodeState.normal
IN_NO_OTHER = "tablets are in transition in no other state but tablet_draining, of older releases"
CANCELLED = "a request that cannot proceed is cancelled"
REMOVED_AGAIN = "what is removed may be removed again"
PUBLISHED_AGAIN = "what is published may be published again"
GIVEN_UP_AGAIN = "what is given up may be given up again, or not at all"
CRASHES = "what does not run cannot crash, and what crashes need not"
MOVES_WITH_OTHERS = "a tablet that moves with others, or not at all"
TABLETS_ELSEWHERE = "a table that has its tablets elsewhere"
STREAMS_MAY_FAIL = "a stream may fail at any time, or not"
ASKED_TWICE = "a request that is not made asks for nothing, and one made twice is one"
STILL_NORMAL = "who asks to go is normal until its tablets have moved"
NO_TABLETS = "a node without tablets has nothing to drain"
NEW_TABLES = "a new table may have tablets there at any time, or none"
A_DEAD_NODE_WAITS = "while a dead node waits for that, no other request can proceed"
NOT_NEEDED = "who is down and not needed was refused: it takes a third request to tell"
WEAK = Fairness.WEAK
WAITING = "one request can proceed and another cannot: it takes three nodes, some dead, to tell"
BALANCER = Actor("load balancer")
PUBLISHER = Actor("CDC generation publisher")
ORDER = (Request.replace, Request.join, Request.remove, Request.leave, Request.rebuild)


class TopologyControl(Machine):
    """The states of nodes and of the topology as a whole, driven by the topology coordinator.

    A barrier that passed is taken to mean that every node has learned the version, with the fence of those before, and
    drained what was older. `topology`, this machine among nodes that learn in their own time, promises so:
    `a_passed_barrier_means_a_learned_fence`, `a_barrier_waits_for_older_requests`.
    """

    release = profiles(SEED, SCYLLA_6_0, SCYLLA_2025_4, SCYLLA_2026_2)
    requests = budget(2, doc="requests of nodes and of the cluster, plans of the balancer, locks")
    faults = budget(1, doc="crashes, failed steps, and changes of the topology coordinator")
    stages = budget(0, doc="changes of the stages of tablets, and their fences")

    # a row for every node
    node_state = per(Node, one_of(NodeState))
    topology_request = per(Node, optional(Request))
    tokens = set_of(Node, init=ANY)  # nodes that own tokens
    replaced_id = per(Node, optional(Node))  # the node that it replaces, or has replaced
    cleanup_needed = set_of(Node)  # nodes that hold rows of ranges which they have lost

    # static columns
    transition_state: OneVar[TransitionState] = one_of(TransitionState, init=NULL)
    version: NumberVar = number(0, LAST_VERSION)
    fence_version: NumberVar = number(0, LAST_VERSION)
    session: FlagVar = flag()  # an open session: streaming for the topology is accepted
    new_cdc_generation: FlagVar = flag()  # its data is written, it is to be committed
    unpublished_cdc_generations: FlagVar = flag()  # committed; users do not see it yet
    global_request: OptionalVar[GlobalRequest] = optional(GlobalRequest)

    # the request table
    asked = per(Node, optional(Request))  # the newest request of the node
    done = set_of(Node)  # it has ended
    error = set_of(Node)  # it has failed, or is bound to

    # raft, tablets
    members = set_of(Node, init=ANY)  # of group0
    tablet_hosts = set_of(Node, init=ANY)  # nodes that hold tablet replicas
    tablet_work: OptionalVar[Work] = optional(Work)  # why tablets are in transition, if any are

    # nodes, as the failure detector sees them
    down = observed(set_of(Node), of=NETWORK)

    # what only the coordinator of the moment knows
    barrier: OneVar[Barrier] = volatile(one_of(Barrier, init=Barrier.none), of=COORDINATOR)
    streamed: FlagVar = volatile(flag(), of=COORDINATOR)  # stream_ranges has ended well
    giving_up: FlagVar = volatile(
        flag(), of=COORDINATOR
    )  # `_rollback`: an action has failed, the operation is to be undone

    @initially
    def a_cluster_of_normal_nodes(self) -> Bool:
        """Some nodes are normal and members of group0, others are not there yet."""
        rows = every(self.node_state[n].any_of(NodeState.normal, NodeState.absent) for n in Node)
        fits = every(
            (self.tokens.has(n) == self._is(n, NodeState.normal))
            & (self.members.has(n) == self._is(n, NodeState.normal))
            & self.tablet_hosts.has(n).implies(self._is(n, NodeState.normal))
            for n in Node
        )
        return rows & fits & some(self._is(n, NodeState.normal) for n in Node)

    # -- nodes -----------------------------------------------------------------------------------------

    def _is(self, n: Term[Node], *states: NodeState) -> Bool:
        return self.node_state[n].any_of(*(state for state in NodeState if state in states))

    def _in_transition(self, n: Term[Node]) -> Bool:
        return self.node_state[n].column(lambda state: state.in_transition)

    def is_at_rest(self) -> Bool:
        """No transition state, and no node in transition."""
        moving = some(self._in_transition(n) for n in Node)
        return (self.transition_state == NULL) & ~moving

    def _being_replaced(self, n: Term[Node]) -> Bool:
        return some(self._is(m, NodeState.replacing) & (self.replaced_id[m] == n) for m in Node)

    def _has_ended(self, n: Term[Node]) -> Bool:
        """The node has left the token ring, and its request is reported as done: it is not coming back."""
        reported = self._in_transition(n) & self.done.has(n)
        return (self.transition_state == TransitionState.left_token_ring) & reported

    def is_ignored(self, n: Term[Node]) -> Bool:
        """Barriers do not ask a node that is being removed or replaced."""
        return self._is(n, NodeState.removing) | self._being_replaced(n)

    def takes_part(self, n: Term[Node]) -> Bool:
        """Barriers ask the normal nodes and the one in transition."""
        present = self._is(n, NodeState.normal) | self._in_transition(n)
        return present & ~self.is_ignored(n)

    def _move(self, n: Term[Node], source: NodeState, target: NodeState) -> None:
        require(self.node_state[n] == source, f"node is {source.name}")
        self.node_state[n] = target

    def _enters(self, after: Self, *states: TransitionState) -> Bool:
        """The topology comes to one of the states, from another one."""
        moves = self.transition_state != after.transition_state
        return moves & after.transition_state.any_of(*states)

    # -- rings -----------------------------------------------------------------------------------------

    def in_old_ring(self, n: Term[Node]) -> Bool:
        return self.tokens.has(n) & self.node_state[n].column(lambda state: state.owns)

    def in_new_ring(self, n: Term[Node]) -> Bool:
        will_own = self.node_state[n].column(lambda state: state.will_own)
        return self.tokens.has(n) & will_own & ~self._being_replaced(n)

    # -- requests --------------------------------------------------------------------------------------

    def _ask(self, n: Term[Node], request: Request | Term[Request]) -> None:
        """A request enters the node's row and the request table."""
        require(self.topology_request[n].is_none(), "no request of the node is pending")
        self.topology_request[n] = request
        self.asked[n] = request
        self.done.discard(n)
        self.error.discard(n)

    def _begin(self, n: Term[Node], request: Request) -> None:
        """The request is taken up: it is deleted from the row, the node is in transition."""
        require(self.is_at_rest(), "the topology is at rest")
        require(self.topology_request[n] == request, f"the node asks for {request.name}")
        if self.release.parallel_draining and request.begins_as in LEAVING:
            self._is_drained(n)
        if self.release.rollback:
            self._lacks_no_node(n, request)
        self._is_its_turn(request)
        require(self.node_state[n] == request.asked_in, f"node is {request.asked_in.name}")
        self.node_state[n] = request.begins_as
        self.topology_request[n] = None

    def _end(self, n: Term[Node], error: bool = False) -> None:
        self.done.add(n)
        if error:
            self.error.add(n)

    def _is_drained(self, n: Term[Node]) -> None:
        require(~self.tablet_hosts.has(n), "the request is not paused")

    def _lacks_no_node(self, n: Term[Node], request: Request) -> None:
        require(self._alive_enough(n, request), "no node that it needs is down")

    def _is_its_turn(self, request: Request) -> None:
        """Replace, join, remove, leave, rebuild: no request that could proceed comes before this one."""
        for earlier in [r for r in Request if r.priority < request.priority]:
            self._none_waits(earlier)

    def _none_waits(self, earlier: Request) -> None:
        waits = some(self._waits_for(m, earlier) for m in Node)
        require(~waits, f"no request to {earlier.name} comes before it")

    def _ready(self, n: Term[Node]) -> Bool:
        """A request is pending, not paused, and no node that it needs is down."""
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
        """All normal nodes are up, but the one that is to be removed or replaced is down; who joins is up."""
        if request is Request.remove:
            return every(self._is(m, NORMAL).implies(self.down.has(m) == (m == n)) for m in Node)
        if request is Request.replace:
            dead = self.replaced_id[n]
            up = every(self._is(m, NORMAL).implies(self.down.has(m) == (dead == m)) for m in Node)
        else:
            up = every(self._is(m, NORMAL).implies(~self.down.has(m)) for m in Node)
        return up & ~self.down.has(n) if request in (Request.join, Request.replace) else up

    def _paused(self, n: Term[Node]) -> Bool:
        """A node that still holds tablet replicas does not begin to leave; it stays normal meanwhile."""
        return self._wants_to_go(n) & self.tablet_hosts.has(n)

    def _to_be_drained(self, n: Term[Node]) -> Bool:
        """Its tablets are to be moved, or rebuilt from other replicas, while the tablet migration track goes on."""
        lost = self._is(n, NodeState.left) & self.tablet_hosts.has(n)
        return self._paused(n) | lost

    def _wants_to_go(self, n: Term[Node]) -> Bool:
        return self.topology_request[n].any_of(Request.leave, Request.remove)

    def _pending(self) -> Bool:
        """A topology change waits for its turn."""
        if self.release.parallel_draining:
            return some(self.topology_request[n].is_some() & ~self._paused(n) for n in Node)
        return some(self.topology_request[n].is_some() for n in Node)

    def stays(self, n: Term[Node]) -> Bool:
        """A normal node that nobody has asked to go."""
        wanted = some(
            (self.replaced_id[m] == n) & ~self._is(m, NodeState.left, NodeState.normal)
            for m in Node
        )
        return self._is(n, NodeState.normal) & ~self._wants_to_go(n) & ~wanted

    def _others_stay(self, n: Term[Node]) -> Bool:
        return some((m != n) & self.stays(m) for m in Node)

    def _nothing_goes_on(self) -> None:
        require(self.is_at_rest(), "the topology is at rest")

    # -- the coordinator -------------------------------------------------------------------------------

    def _enter(self, *, new_version: bool = True) -> None:
        """A new state is committed: what was learned under the old one does not count."""
        self.barrier = Barrier.none
        self.streamed = False
        self.giving_up = False
        if new_version:
            self.version = self.version + 1

    def _barrier_passed(self) -> None:
        require(self.barrier == Barrier.passed, "barrier passed")

    def _barrier_passed_or_waived(self) -> None:
        over = self.barrier.any_of(Barrier.passed, Barrier.waived)
        require(over, "barrier passed, or it failed and ring_delay is over")

    # -- requests --------------------------------------------------------------------------------------

    @action(by=NODE, spends=requests)
    def ask_to_join(self, n: Term[Node]) -> None:
        """JOIN_NODE_REQUEST: a row in state none, with the request to join."""
        self._move(n, NodeState.absent, NodeState.none)
        self._ask(n, Request.join)
        if not self.release.join_group0:
            self.members.add(n)

    @action(by=NODE, spends=requests)
    def ask_to_replace(self, n: Term[Node], dead: Term[Node]) -> None:
        """The same, in the place of a dead node."""
        free = self.stays(dead) & self.topology_request[dead].is_none()
        require(self.down.has(dead) & free, "the replaced node is down, and asks for nothing")
        self._move(n, NodeState.absent, NodeState.none)
        self._ask(n, Request.replace)
        self.replaced_id[n] = dead
        if not self.release.join_group0:
            self.members.add(n)

    @action(by=OPERATOR, spends=requests)
    def ask_to_leave(self, n: Term[Node]) -> None:
        """The operator decommissions a node."""
        require(~self.down.has(n) & self.stays(n), "node is normal and up")
        require(self._others_stay(n), "another node stays")
        self._ask(n, Request.leave)

    @action(by=OPERATOR, spends=requests)
    def ask_to_remove(self, n: Term[Node]) -> None:
        """The operator removes a dead node."""
        require(self.down.has(n) & self.stays(n), "node is normal and down")
        require(self._others_stay(n), "another node stays")
        self._ask(n, Request.remove)

    @action(by=OPERATOR, spends=requests)
    def ask_to_rebuild(self, n: Term[Node]) -> None:
        """The operator wants a node's data streamed anew from other replicas."""
        require(~self.down.has(n) & self.stays(n), "node is normal and up")
        self._ask(n, Request.rebuild)

    @action(by=OPERATOR, spends=requests)
    def ask_globally(self, request: Term[GlobalRequest]) -> None:
        """A request that affects no specific node but the entire cluster."""
        require(self.global_request.is_none(), "no global request is pending")
        self.global_request = request
        if not self.release.cleanup:
            require(request == GlobalRequest.new_cdc_generation, "only new_cdc_generation is known")
        elif not self.release.snapshots:
            require(request != GlobalRequest.snapshot_tables, "snapshot_tables is not known yet")
            if not self.release.finalization:
                require(request != GlobalRequest.truncate_table, "truncate_table is not known yet")

    @action(by=COORDINATOR, fair=WEAK)
    def cancel(self, n: Term[Node]) -> None:
        """No request can proceed because nodes are dead: they are cancelled; who is not in yet is left."""
        only_when(self.release.rollback)
        self._nothing_goes_on()
        require(self.topology_request[n].is_some(), "a request is pending")
        if self.release.parallel_draining:
            require(~self._paused(n), "it is not paused")
        require(~some(self._ready(m) for m in Node), "no request can proceed")
        self._refuse(n)

    @action(by=COORDINATOR)
    def reject(self, n: Term[Node]) -> None:
        """Validation fails: a node is not let in, or not let go; to leave may be refused while it is paused."""
        self._nothing_goes_on()
        require(self._ready(n) | self._wants_to_go(n), "its request can proceed, or is paused")
        if not self.release.parallel_draining:
            require(self.node_state[n] == NodeState.none, "the node wants to join")
        self._refuse(n)

    def _refuse(self, n: Term[Node]) -> None:
        joins = self.node_state[n] == NodeState.none
        self.node_state[n] = choose(joins, NodeState.left, self.node_state[n])
        if not self.release.join_group0:
            self.members.put(n, self.members.has(n) & ~joins)
        self.down.put(n, self.down.has(n) | joins)
        self.topology_request[n] = None
        self._end(n, error=True)

    @action(by=OPERATOR, spends=faults)
    def abort(self, n: Term[Node]) -> None:
        """The operator aborts a request to leave or remove that is pending or paused."""
        only_when(self.release.parallel_draining)
        require(self._wants_to_go(n), "a request to leave is pending or paused")
        self.topology_request[n] = None
        self._end(n, error=True)

    # -- faults ----------------------------------------------------------------------------------------

    @action(spends=faults)
    def crash(self, n: Term[Node]) -> None:
        """Node `n` stops."""
        require(~self.down.has(n) & self._exists(n), "node is up")
        self.down.add(n)

    @action(by=OPERATOR)
    def restart(self, n: Term[Node]) -> None:
        """Node `n` comes back, unless it was removed, replaced, or told to shut down; it need not."""
        require(self.down.has(n) & self._exists(n), "node is down")
        require(~self.is_ignored(n), "it is not being removed or replaced")
        require(~self._has_ended(n), "it is not told to shut down, or banned")
        self.down.discard(n)

    @action(by=COORDINATOR, spends=faults)
    def fail_over(self) -> None:
        """Another node becomes the topology coordinator, or the commit races: what only memory held is lost."""
        self._enter(new_version=False)

    def _exists(self, n: Term[Node]) -> Bool:
        return ~self._is(n, NodeState.absent, NodeState.left)

    @action(by=COORDINATOR, fair=WEAK)
    def start_rebuild(self, n: Term[Node]) -> None:
        """The node streams its data anew; the topology as a whole does not transition."""
        self._begin(n, Request.rebuild)
        self._open_rebuild_session()
        self._enter(new_version=False)

    def _open_rebuild_session(self) -> None:
        self.session = True

    @action(by=COORDINATOR, fair=WEAK)
    def finish_rebuild(self, n: Term[Node]) -> None:
        """Its data is streamed from other replicas: it is normal again."""
        require(~self.down.has(n), "the node is up")
        require(self._has_source(n), "another replica is up")
        self._rebuilt(n)
        self._end(n)

    def _has_source(self, n: Term[Node]) -> Bool:
        return some((m != n) & self.tokens.has(m) & ~self.down.has(m) for m in Node)

    @action(by=COORDINATOR, fair=WEAK)
    def fail_to_rebuild(self, n: Term[Node]) -> None:
        """A node died while it streamed, or there is no other replica."""
        dead = some(self._blocks(m) for m in Node)
        require(dead | ~self._has_source(n), "a node is down, or there is no source")
        self._rebuilt(n)
        self._end(n, error=True)

    def _rebuilt(self, n: Term[Node]) -> None:
        self._move(n, NodeState.rebuilding, NodeState.normal)
        self.session = False

    # -- barriers --------------------------------------------------------------------------------------

    @action(by=COORDINATOR, fair=WEAK)
    def start_barrier(self) -> None:
        """barrier_and_drain is sent to the normal nodes and the one in transition."""
        require(self.transition_state.column(lambda state: state.barrier), "state has a barrier")
        require(self.barrier == Barrier.none, "no barrier yet")
        require(~self.giving_up, "nothing is given up")
        self._still_matters()
        self.barrier = Barrier.running

    def _still_matters(self) -> None:
        """A node whose request was reported as done may have shut down: nobody waits for it any more."""
        reported = some(self._in_transition(n) & self.done.has(n) for n in Node)
        require(~reported, "the request is not reported as done")

    @action(by=COORDINATOR, fair=WEAK)
    def pass_barrier(self) -> None:
        """Every node has acknowledged the version and drained what was before it: older ones are fenced."""
        require(self.barrier == Barrier.running, "barrier is running")
        self._all_are_up()
        self.barrier = Barrier.passed
        self.fence_version = self.version

    def _all_are_up(self) -> None:
        require(every(~self._blocks(n) for n in Node), "all nodes that take part are up")

    def _blocks(self, n: Term[Node]) -> Bool:
        return self.takes_part(n) & self.down.has(n)

    @action(by=COORDINATOR, fair=WEAK)
    def fail_barrier(self) -> None:
        """A node that takes part is down and does not answer."""
        require(self.barrier == Barrier.running, "barrier is running")
        require(some(self._blocks(n) for n in Node), "a node that takes part is down")
        self.barrier = Barrier.failed

    @action(by=NETWORK, spends=faults)
    def lose_barrier(self) -> None:
        """An answer to the barrier is lost."""
        require(self.barrier == Barrier.running, "barrier is running")
        self.barrier = Barrier.failed

    @action(by=COORDINATOR, fair=WEAK)
    def wait_ring_delay(self) -> None:
        """Past the point of no return a failed barrier is put up with: what was older times out meanwhile."""
        require(self.barrier == Barrier.failed, "barrier failed")
        require(self._puts_up(), "there is no way back")
        self.barrier = Barrier.waived

    @action(by=COORDINATOR, fair=WEAK)
    def retry_barrier(self) -> None:
        """A barrier on which no node's operation depends is tried again."""
        self._try_again()

    def _try_again(self) -> None:
        require(self.barrier == Barrier.failed, "barrier failed")
        require(~self._gives_up() & ~self._puts_up(), "nothing is to be undone or put up with")
        self.barrier = Barrier.none

    def _gives_up(self) -> Bool:
        """A failure in this state rolls the operation on a node back."""
        back = self.release.rollback
        there_is = self.transition_state.column(lambda state: state.gives_up and back)
        return there_is & some(self._in_transition(n) for n in Node)

    def _puts_up(self) -> Bool:
        """A failed barrier of this state is put up with once ring_delay is over."""
        if not self.release.rollback:
            return self.transition_state == T.write_both_read_new
        return self.transition_state.any_of(
            T.write_both_read_new, T.left_token_ring, T.rollback_to_normal
        )

    # -- tablets ---------------------------------------------------------------------------------------

    @action(by=BALANCER, spends=requests)
    def start_balancing(self) -> None:
        """There is no other work: the load balancer's plan moves tablets into transition, and enters the track."""
        self._enter_tablet_track(Work.balancing)

    @action(by=BALANCER, fair=WEAK)
    def start_draining(self, n: Term[Node]) -> None:
        """A node whose request is paused still holds tablets: the load balancer moves them away; those of a
        node that was replaced it rebuilds from other replicas.
        """
        only_when(self.release.parallel_draining)
        require(self._to_be_drained(n), "the request of the node is paused, or it was replaced")
        self._enter_tablet_track(Work.draining)

    def _enter_tablet_track(self, work: Work) -> None:
        require(self.is_at_rest(), "the topology is at rest")
        require(~self._pending(), "no topology change is pending")
        require(self.global_request.is_none(), "no global request is pending")
        self.transition_state = T.tablet_migration
        self.tablet_work = work
        self._enter()

    @action(by=OPERATOR, spends=requests)
    def move_tablet(self) -> None:
        """An operator moves a tablet by hand: where the topology is busy, the API waits."""
        self._not_busy()
        require(self.tablet_work.is_none(), "no tablet is in transition")
        self.tablet_work = Work.moving
        self.transition_state = T.tablet_migration
        self._enter()

    def _not_busy(self) -> None:
        require(self._may_move_tablets(), "topology is not busy")

    def _may_move_tablets(self) -> Bool:
        return self.transition_state.any_of(NULL, T.tablet_migration)

    @action(by=COORDINATOR, fair=WEAK)
    def settle_tablets(self) -> None:
        """The tablets in transition have all come to rest where they were, or elsewhere."""
        require(self.tablet_work.is_some(), "tablets are in transition")
        require(self.transition_state == T.tablet_migration, "in the tablet migration track")
        leaving = some(self._to_be_drained(n) & self._others_stay(n) for n in Node)
        drains = (self.tablet_work == Work.draining) & leaving
        require(~drains, "no node is drained that others can stand in for")
        self.tablet_work = None

    @action(by=COORDINATOR, fair=WEAK)
    def finish_draining_node(self, n: Term[Node], heir: Term[Node]) -> None:
        """The last tablet of a node that is to leave, or is replaced, has moved away."""
        require(self.tablet_work == Work.draining, "a node is drained")
        require(self.tablet_hosts.has(n), "the node holds tablets")
        require(self._to_be_drained(n) | self._must_be_empty(n), "the node is to leave")
        require((heir != n) & self._takes_over(heir), "another node stays, or has taken some")
        self._hand_over(n, heir)
        self.tablet_work = None

    def _takes_over(self, n: Term[Node]) -> Bool:
        """Tablets move to a node that stays; those that were on their way when it was asked to go still arrive."""
        return self.stays(n) | (self._may_settle(n) & self.tablet_hosts.has(n))

    def _may_settle(self, n: Term[Node]) -> Bool:
        return self._is(n, NORMAL) & ~self._being_replaced(n)

    def _hand_over(self, n: Term[Node], heir: Term[Node]) -> None:
        for m in Node:
            self.tablet_hosts.put(m, (self.tablet_hosts.has(m) & (m != n)) | (m == heir))

    @action(by=COORDINATOR, spends=requests)
    def settle_tablets_on(self, n: Term[Node]) -> None:
        """Some of the tablets in transition have come to rest on a node that had none; what has streamed to it ends
        there even if it is down, and asked to go, by then.
        """
        require(self.tablet_work.is_some(), "tablets are moving")
        require(self._may_settle(n), "the node is normal")
        require(~self.tablet_hosts.has(n), "the node holds no tablets")
        self.tablet_hosts.add(n)

    @action(by=COORDINATOR, spends=requests)
    def move_last_tablet(self, n: Term[Node], heir: Term[Node]) -> None:
        """For balance, or by hand, a node's last tablet has moved; or it was on its way when its drain was aborted."""
        moving = self.tablet_work.any_of(Work.balancing, Work.moving)
        aborted = (self.tablet_work == Work.draining) & ~self._still_goes(n)
        require(moving | aborted, "tablets are moved, and the node is not drained")
        require(self.tablet_hosts.has(n), "the node holds tablets")
        require((heir != n) & self._may_settle(heir), "the other node is normal")
        self._hand_over(n, heir)

    def _still_goes(self, n: Term[Node]) -> Bool:
        """It is asked to leave, or leaves: whoever drains it waits for its last tablet."""
        return self._to_be_drained(n) | self._must_be_empty(n)

    @action(by=COORDINATOR, spends=stages)
    def change_stages(self) -> None:
        """Tablets enter other stages: what began before is to be drained."""
        self._has_moving_tablets()
        self.version = self.version + 1

    @action(by=COORDINATOR, spends=stages)
    def fence_stages(self) -> None:
        """Every node has drained what began before the stages that tablets are in."""
        self._has_moving_tablets()
        require(self.fence_version < self.version, "older requests are not fenced")
        self.fence_version = self.version

    def _has_moving_tablets(self) -> None:
        require(self.tablet_work.is_some(), "tablets are in transition")
        require(self.transition_state == T.tablet_migration, "in the tablet migration track")

    @action(by=OPERATOR, spends=requests)
    def create_table(self, n: Term[Node]) -> None:
        """A new table has tablets on a node that had none; one that is about to leave is not spared."""
        reads_new = self.transition_state == T.write_both_read_new
        require(self.in_old_ring(n) & ~reads_new, "the node serves")
        require(~self.tablet_hosts.has(n) & ~self.down.has(n), "the node is up and has no tablets")
        self.tablet_hosts.add(n)

    @action(by=COORDINATOR, fair=WEAK)
    def leave_tablet_track(self) -> None:
        """No tablet is in transition: the tablet migration track ends."""
        require(self.transition_state == T.tablet_migration, "in the tablet migration track")
        self._tablets_are_at_rest()
        self.transition_state = NULL
        self._enter()

    def _tablets_are_at_rest(self) -> None:
        require(self.tablet_work.is_none(), "no tablet is in transition")

    @action(by=COORDINATOR, spends=requests)
    def start_resize_finalization(self) -> None:
        """Tablets of a table are to be split or merged for good, and none is in transition."""
        only_when(self.release.finalization)
        require(self.is_at_rest(), "the topology is at rest")
        require(~self._pending(), "no topology change is pending")
        require(self.global_request.is_none(), "no global request is pending")
        self.transition_state = T.tablet_resize_finalization
        self._enter()

    @action(by=COORDINATOR, fair=WEAK)
    def finish_resize(self) -> None:
        """All nodes have seen that no tablet is in transition: the new tablet map is committed."""
        only_when(self.release.finalization)
        require(self.transition_state == T.tablet_resize_finalization, "tablets are resized")
        self._barrier_passed()
        self.transition_state = NULL
        self._enter()

    # -- CDC generations -------------------------------------------------------------------------------

    @action(by=COORDINATOR, fair=WEAK)
    def prepare_generation(self) -> None:
        """A new CDC generation was asked for by itself: its data is written."""
        self._take_up(GlobalRequest.new_cdc_generation)
        self.new_cdc_generation = True

    @action(by=COORDINATOR, fair=WEAK)
    def commit_generation(self) -> None:
        """Every node has the data of a generation that was asked for by itself: it gets its timestamp."""
        require(self.transition_state == T.commit_cdc_generation, "a generation is to be committed")
        require(~some(self._in_transition(n) for n in Node), "no node bootstraps")
        self._commit_generation()
        if self.release.publish_state:
            self.transition_state = T.publish_cdc_generation
        else:
            self.transition_state = NULL
            self.global_request = None

    def _commit_generation(self) -> None:
        self._barrier_passed()
        self._enter(new_version=False)
        self.new_cdc_generation = False
        self.unpublished_cdc_generations = True

    @action(by=COORDINATOR, fair=WEAK)
    def publish_requested_generation(self) -> None:
        """The generation is written to the tables that users read."""
        only_when(self.release.publish_state)
        require(self.transition_state == T.publish_cdc_generation, "a generation is published")
        require(~some(self._in_transition(n) for n in Node), "no node bootstraps")
        self.unpublished_cdc_generations = False
        self.transition_state = NULL
        self.global_request = None
        self._enter(new_version=False)

    @action(by=PUBLISHER, fair=WEAK)
    def publish_generation(self) -> None:
        """The same, by a fiber that works beside the state machine."""
        only_when(not self.release.publish_state)
        require(self.unpublished_cdc_generations, "a generation is not published yet")
        self.unpublished_cdc_generations = False

    # -- global requests -------------------------------------------------------------------------------

    def _take_up(self, request: GlobalRequest) -> None:
        require(self.is_at_rest(), "the topology is at rest")
        require(self.global_request == request, f"{request.name} is asked for")
        require(~some(self._ready(n) for n in Node), "no request of a node can proceed")
        self.transition_state = request.done_in
        self._enter(new_version=False)

    @action(by=COORDINATOR, fair=WEAK)
    def start_truncating(self) -> None:
        """TRUNCATE TABLE: its session replaces none, for nothing else is going on."""
        only_when(self.release.finalization)
        self._take_up(GlobalRequest.truncate_table)
        self.session = True

    @action(by=COORDINATOR, fair=WEAK)
    def start_snapshots(self) -> None:
        """Tables are snapshot in all of the cluster, in a session."""
        only_when(self.release.snapshots)
        self._take_up(GlobalRequest.snapshot_tables)
        self.session = True

    @action(by=COORDINATOR, fair=WEAK)
    def clear_request_session(self) -> None:
        """Every node has truncated, or made its snapshot: the session closes, and a second barrier follows."""
        only_when(self.release.finalization)
        self._working_globally()
        require(self.session, "session is open")
        self._barrier_passed()
        self.session = False
        self._enter(new_version=False)

    @action(by=COORDINATOR, fair=WEAK)
    def finish_global_request(self) -> None:
        """Nothing of the closed session still runs."""
        only_when(self.release.finalization)
        self._working_globally()
        require(~self.session, "session is closed")
        self._barrier_passed()
        self.transition_state = NULL
        self.global_request = None
        self._enter(new_version=False)

    def _working_globally(self) -> None:
        works = self.transition_state.any_of(T.truncate_table, T.snapshot_tables)
        require(works, "a global request is worked on")

    # -- cleanup ---------------------------------------------------------------------------------------

    @action(by=COORDINATOR, fair=WEAK)
    def fence_before_cleanup(self) -> None:
        """A barrier ends the requests which still go to ranges that were lost (scylladb #26315)."""
        only_when(self.release.barrier_before_cleanup)
        self._nothing_goes_on()
        require(~self.cleanup_needed.is_empty(), "cleanup is needed")
        require(self.fence_version < self.version, "older requests are not fenced")
        self.fence_version = self.version

    @action(by=COORDINATOR, fair=WEAK)
    def clean_up(self, n: Term[Node]) -> None:
        """A node removes the rows of ranges which it has lost, before any node leaves, or on request."""
        only_when(self.release.cleanup)
        self._nothing_goes_on()
        require(~self.down.has(n), "node is up")
        require(self.cleanup_needed.has(n), "node holds rows of ranges that it has lost")
        if self.release.barrier_before_cleanup:
            require(self.fence_version == self.version, "older requests are fenced")
        self.cleanup_needed.discard(n)

    @action(by=COORDINATOR, fair=WEAK)
    def finish_cleanup(self) -> None:
        """The cleanup that was asked for is done."""
        only_when(self.release.cleanup)
        self._nothing_goes_on()
        self._cleanup_is_asked_for()
        waits = some(self.cleanup_needed.has(n) & ~self.down.has(n) for n in Node)
        require(~waits, "no node that is up needs cleanup")
        self.global_request = None

    def _cleanup_is_asked_for(self) -> None:
        require(self.global_request == GlobalRequest.cleanup, "cleanup is asked for")

    # -- a lock from outside ---------------------------------------------------------------------------

    @action(by=OPERATOR, spends=requests)
    def lock(self) -> None:
        """Somebody outside locks the topology, as tests do."""
        only_when(self.release.finalization)
        require(self.transition_state == NULL, "topology is not busy")
        self.transition_state = T.lock
        self._enter(new_version=False)

    @action(by=OPERATOR, fair=WEAK)
    def unlock(self) -> None:
        """And gives it free again."""
        only_when(self.release.finalization)
        require(self.transition_state == T.lock, "topology is locked")
        self.transition_state = NULL

    # -- bootstrap and replace -------------------------------------------------------------------------

    @action(by=COORDINATOR, fair=WEAK)
    def accept_join(self, n: Term[Node]) -> None:
        """Bootstrap: the node is accepted."""
        only_when(self.release.join_group0)
        self._begin(n, Request.join)
        self.transition_state = T.join_group0
        self._enter(new_version=False)

    @action(by=COORDINATOR, fair=WEAK)
    def accept_replace(self, n: Term[Node]) -> None:
        """Replace: the node is accepted."""
        only_when(self.release.join_group0)
        self._begin(n, Request.replace)
        self.transition_state = T.join_group0
        self._enter(new_version=False)

    @action(by=COORDINATOR, fair=WEAK)
    def fail_to_accept(self, n: Term[Node]) -> None:
        """The node does not take JOIN_NODE_RESPONSE: it is left."""
        only_when(self.release.join_group0)
        self._joining(n)
        require(self.down.has(n), "the node is down")
        require(~self.members.has(n), "the node is not in group0")
        self.node_state[n] = NodeState.left
        self.transition_state = NULL
        self._end(n, error=True)
        self._enter(new_version=False)

    @action(by=COORDINATOR, fair=WEAK)
    def join_group0(self, n: Term[Node]) -> None:
        """The node has taken JOIN_NODE_RESPONSE and is a member of group0."""
        only_when(self.release.join_group0)
        self._joining(n)
        require(~self.down.has(n), "the node is up")
        require(~self.members.has(n), "the node is not in group0")
        self.members.add(n)

    @action(by=COORDINATOR, fair=WEAK)
    def insert_tokens(self, n: Term[Node]) -> None:
        """Bootstrap: tokens are chosen, and the data of a CDC generation for them is written."""
        only_when(self.release.join_group0)
        self._joining(n)
        require(self._is(n, NodeState.bootstrapping), "the node bootstraps")
        self._joined(n)
        self._insert_tokens(n)

    @action(by=COORDINATOR, fair=WEAK)
    def start_bootstrap(self, n: Term[Node]) -> None:
        """001: "When a node bootstraps, we create new tokens for it and a new CDC generation"."""
        only_when(not self.release.join_group0)
        self._begin(n, Request.join)
        self._insert_tokens(n)

    def _insert_tokens(self, n: Term[Node]) -> None:
        self.tokens.add(n)
        self.new_cdc_generation = True
        self.transition_state = T.commit_cdc_generation
        self._enter(new_version=False)

    @action(by=COORDINATOR, fair=WEAK)
    def commit_cdc_generation(self, n: Term[Node]) -> None:
        """Every node has the data of the new generation: it is committed with its timestamp."""
        require(self.transition_state == T.commit_cdc_generation, "a generation is to be committed")
        self._is_for(n)
        self._barrier_passed()
        self.new_cdc_generation = False
        self.unpublished_cdc_generations = True
        if self.release.publish_state:
            self.transition_state = T.publish_cdc_generation
            self._enter(new_version=False)
        else:
            self._write_both()

    def _is_for(self, n: Term[Node]) -> None:
        require(self._is(n, NodeState.bootstrapping), "the node bootstraps")

    @action(by=COORDINATOR, fair=WEAK)
    def publish_cdc_generation(self, n: Term[Node]) -> None:
        """001: "Once the generation is published, we enter write_both_read_old state"."""
        only_when(self.release.publish_state)
        require(self.transition_state == T.publish_cdc_generation, "a generation is published")
        require(self._is(n, NodeState.bootstrapping), "the node bootstraps")
        self.unpublished_cdc_generations = False
        self._write_both()

    @action(by=COORDINATOR, fair=WEAK)
    def take_tokens(self, n: Term[Node]) -> None:
        """Replace: the node takes ownership of the replaced node's tokens; up to 2026.1 tablets are drained first."""
        only_when(self.release.join_group0)
        self._joining(n)
        require(self._is(n, NodeState.replacing), "the node replaces another")
        self._joined(n)
        self.tokens.add(n)
        if self.release.draining_state:
            self.session = True
            self.transition_state = T.tablet_draining
            drains = some(self._leaves_with_tablets(m) for m in Node)
            self.tablet_work = choose(drains, Work.draining, self.tablet_work)
            self._enter()
        else:
            self._write_both()

    @action(by=COORDINATOR, fair=WEAK)
    def start_replace(self, n: Term[Node]) -> None:
        """The same, at once."""
        only_when(not self.release.join_group0)
        self._begin(n, Request.replace)
        self.tokens.add(n)
        self._write_both()

    @action(by=COORDINATOR)
    def fail_to_join(self, n: Term[Node]) -> None:
        """001 draws an edge from bootstrapping and replacing to left, and says no more of it: here a node that
        died before reads use it is left at once, and the transition state ends with it.
        """
        only_when(not self.release.join_group0)
        require(self._is(n, *JOINING) & self.down.has(n), "the node joins, and is down")
        reads_old = self.transition_state.any_of(T.commit_cdc_generation, T.write_both_read_old)
        require(reads_old, "a generation is to be committed, or writes go to both rings")
        self.node_state[n] = NodeState.left
        self.tokens.discard(n)
        self.members.discard(n)
        self.new_cdc_generation = False
        self.session = False
        self._end(n, error=True)
        self._finish()

    @action(by=COORDINATOR, fair=WEAK)
    def finish_bootstrap(self, n: Term[Node]) -> None:
        """No read that began before uses the old ring: the node is normal."""
        self._past_read_fence()
        self._mark_for_cleanup()
        self._move(n, NodeState.bootstrapping, NodeState.normal)
        self._end(n)
        self._finish()

    @action(by=COORDINATOR, fair=WEAK)
    def remove_replaced(self, n: Term[Node], dead: Term[Node]) -> None:
        """The replaced node is removed from group0 before it is left."""
        self._past_read_fence()
        replaced = self._is(n, NodeState.replacing) & (self.replaced_id[n] == dead)
        require(replaced, "it is replaced")
        require(self.members.has(dead), "it is still in group0")
        self.members.discard(dead)

    @action(by=COORDINATOR, fair=WEAK)
    def finish_replace(self, n: Term[Node]) -> None:
        """The replacing node is normal and the replaced one left, in one commit."""
        self._past_read_fence()
        require(self._is(n, NodeState.replacing), "the node replaces another")
        self._replaced_is_out(n)
        self._take_the_place(n)
        self._end(n)
        self._finish()

    def _take_the_place(self, n: Term[Node]) -> None:
        for m in Node:
            dead = self.replaced_id[n] == m
            becomes = choose(dead, NodeState.left, self.node_state[m])
            self.node_state[m] = choose(m == n, NodeState.normal, becomes)
            self.tokens.put(m, self.tokens.has(m) & ~dead)
            self.cleanup_needed.put(m, self.cleanup_needed.has(m) & ~dead)

    def _replaced_is_out(self, n: Term[Node]) -> None:
        out = ~some(self.members.has(m) for m in self.replaced_id[n])
        require(out, "the replaced node is removed from group0")

    def _joining(self, n: Term[Node]) -> None:
        require(self.transition_state == T.join_group0, "a node joins group0")
        require(self._in_transition(n), "the node is in transition")
        require(~self.giving_up, "the operation goes on")

    def _joined(self, n: Term[Node]) -> None:
        require(self.members.has(n), "the node is in group0")

    # -- decommission and remove -----------------------------------------------------------------------

    @action(by=COORDINATOR, fair=WEAK)
    def start_decommission(self, n: Term[Node]) -> None:
        """The node is to stream its data to those that take over."""
        self._begin(n, Request.leave)
        self._start_leaving(n)

    @action(by=COORDINATOR, fair=WEAK)
    def start_remove(self, n: Term[Node]) -> None:
        """Its data is to be streamed from owners that are still alive."""
        self._begin(n, Request.remove)
        self._start_leaving(n)

    def _start_leaving(self, n: Term[Node]) -> None:
        if self.release.cleanup:
            clean = ~some(self.cleanup_needed.has(m) & ~self.down.has(m) for m in Node)
            require(clean, "no node that is up needs cleanup")
        if self.release.draining_state:
            self.session = True
            self.transition_state = T.tablet_draining
            self.tablet_work = choose(self.tablet_hosts.has(n), Work.draining, self.tablet_work)
            self._enter()
        else:
            self._write_both()

    @action(by=COORDINATOR, fair=WEAK)
    def drain_again(self, n: Term[Node]) -> None:
        """Tablets are on the node, yet none is in transition: more of them are moved away."""
        only_when(self.release.draining_state)
        require(self.transition_state == T.tablet_draining, "tablets are drained")
        require(self.tablet_work.is_none() & ~self.giving_up, "no tablet is in transition")
        require(self._leaves_with_tablets(n), "a node that leaves or is replaced has tablets")
        self.tablet_work = Work.draining

    @action(by=COORDINATOR, fair=WEAK)
    def finish_draining(self, n: Term[Node]) -> None:
        """No tablet is in transition, and none is left on the node."""
        only_when(self.release.draining_state)
        require(self.transition_state == T.tablet_draining, "tablets are drained")
        require(self.tablet_work.is_none() & ~self.giving_up, "no tablet is in transition")
        require(self._in_transition(n), "the node is in transition")
        drained = every(~self._leaves_with_tablets(m) for m in Node)
        require(drained, "no tablet is on a node that leaves or is replaced")
        self._write_both()

    @action(by=COORDINATOR, fair=WEAK)
    def find_no_place(self, n: Term[Node]) -> None:
        """No other node can take the tablets: the operation is given up."""
        only_when(self.release.draining_state)
        require(self.transition_state == T.tablet_draining, "tablets are drained")
        require(self._leaves_with_tablets(n), "a node that leaves or is replaced has tablets")
        require(~self._others_stay(n), "no other node stays")
        require(~self.giving_up, "it is not given up yet")
        self.giving_up = True

    @action(by=COORDINATOR, spends=faults)
    def fail_to_drain(self) -> None:
        """Tablets cannot move away: the operation is given up, while some of them are in transition."""
        only_when(self.release.draining_state)
        require(self.transition_state == T.tablet_draining, "tablets are drained")
        require(~self.giving_up, "it is not given up yet")
        self.giving_up = True

    @action(by=COORDINATOR, fair=WEAK)
    def leave_token_ring(self, n: Term[Node]) -> None:
        """The node has no tokens any more; it still takes part until all know."""
        only_when(self.release.rollback)
        self._past_read_fence()
        leaves = self._is(n, NodeState.decommissioning)
        if self.release.removing_leaves_ring:
            leaves = self._is(n, NodeState.decommissioning, NodeState.removing)
        require(leaves, "the node leaves")
        self.tokens.discard(n)
        self.transition_state = T.left_token_ring
        self._enter()

    @action(by=COORDINATOR, fair=WEAK)
    def remove_leaving(self, n: Term[Node]) -> None:
        """Where no left_token_ring follows, the node is removed from group0 before it is left."""
        only_when(not self.release.removing_leaves_ring)
        self._past_read_fence()
        self._leaves_at_once(n)
        require(self.members.has(n), "it is still in group0")
        self.members.discard(n)

    @action(by=COORDINATOR, fair=WEAK)
    def finish_leaving(self, n: Term[Node]) -> None:
        """And then is left."""
        only_when(not self.release.removing_leaves_ring)
        self._past_read_fence()
        self._leaves_at_once(n)
        self._out_of_group0(n)
        self.node_state[n] = NodeState.left
        self.tokens.discard(n)
        self.cleanup_needed.discard(n)
        self._end(n)
        self._finish()

    def _out_of_group0(self, n: Term[Node]) -> None:
        require(~self.members.has(n), "it is removed from group0")

    def _leaves_at_once(self, n: Term[Node]) -> None:
        leaves = self._is(n, NodeState.removing)
        if not self.release.rollback:
            leaves = self._is(n, NodeState.decommissioning, NodeState.removing)
        require(leaves, "the node leaves")

    # -- from both sets of owners to the new one -------------------------------------------------------

    def _write_both(self) -> None:
        self.transition_state = T.write_both_read_old
        self.session = True
        self._enter()

    @action(by=COORDINATOR, fair=WEAK)
    def stream_ranges(self) -> None:
        """001: "After the entire cluster learns about it, streaming starts": and ends well."""
        self._barrier_passed()
        require(self.transition_state == T.write_both_read_old, "writes go to both rings")
        require(~self.streamed & ~self.giving_up, "it has not ended yet")
        require(self.session, "session is open")
        self._all_are_up()
        self.streamed = True

    @action(by=COORDINATOR, spends=faults)
    def fail_to_stream(self) -> None:
        """Streaming fails."""
        self._streaming_fails()

    @action(by=COORDINATOR, fair=WEAK)
    def stream_with_dead_node(self) -> None:
        """Streaming fails, for a node that takes part is down."""
        require(some(self._blocks(n) for n in Node), "a node that takes part is down")
        self._streaming_fails()

    def _streaming_fails(self) -> None:
        require(self.transition_state == T.write_both_read_old, "writes go to both rings")
        self._barrier_passed()
        require(~self.streamed & ~self.giving_up, "it has not ended yet")
        if self.release.rollback:
            self.giving_up = True
        else:
            self.barrier = Barrier.none

    @action(by=COORDINATOR, fair=WEAK)
    def read_new(self, n: Term[Node]) -> None:
        """001: "When streaming finishes, we move to write_both_read_new state"."""
        require(self.transition_state == T.write_both_read_old, "writes go to both rings")
        require(self._in_transition(n), "the node is in transition")
        require(self.streamed & ~self.giving_up, "streaming is done")
        if self.release.rollback:
            require(~self._leaves_with_tablets(n), "a node that leaves has no tablets")
        self.transition_state = T.write_both_read_new
        self.session = False
        self._enter()

    def _must_be_empty(self, n: Term[Node]) -> Bool:
        """Where tablets drain in a transition state of their own, they do so from a node that is replaced, too."""
        leaves = self._is(n, NodeState.decommissioning, NodeState.removing)
        return leaves | self._being_replaced(n) if self.release.draining_state else leaves

    def _leaves_with_tablets(self, n: Term[Node]) -> Bool:
        return self._must_be_empty(n) & self.tablet_hosts.has(n)

    def _past_read_fence(self) -> None:
        """The cluster has learned of it, and "no reads that started before this point exist"."""
        require(self.transition_state == T.write_both_read_new, "reads use the new ring")
        self._barrier_passed_or_waived()

    def _finish(self) -> None:
        self.transition_state = NULL
        self._enter()

    def _mark_for_cleanup(self) -> None:
        """The other nodes may hold rows of ranges which they do not own any more."""
        if self.release.cleanup:
            for m in Node:
                others = self._is(m, NodeState.normal)
                self.cleanup_needed.put(m, self.cleanup_needed.has(m) | others)

    # -- the end of a node -----------------------------------------------------------------------------

    @action(by=COORDINATOR, fair=WEAK)
    def report_completion(self, n: Term[Node]) -> None:
        """The request is done, and recorded as such while its node can still be told."""
        self._leaving_ring(n)
        self._barrier_passed_or_waived()
        require(~self.done.has(n), "the request is not reported as done")
        self._end(n)

    @action(by=COORDINATOR, fair=WEAK)
    def shut_down(self, n: Term[Node]) -> None:
        """The node is told by a barrier that it may shut down."""
        self._leaving_ring(n)
        require(self.done.has(n), "its request is done")
        require(~self.down.has(n), "it is up")
        self.down.add(n)

    @action(by=COORDINATOR, fair=WEAK)
    def remove_from_group0(self, n: Term[Node]) -> None:
        """The node is removed from group0."""
        self._leaving_ring(n)
        require(self.done.has(n) & self.down.has(n), "its request is done and it is down")
        require(self.members.has(n), "it is still in group0")
        self.members.discard(n)

    @action(by=COORDINATOR, fair=WEAK)
    def finish_left(self, n: Term[Node]) -> None:
        """And is left, for ever."""
        self._leaving_ring(n)
        self._out_of_group0(n)
        self.node_state[n] = NodeState.left
        self.tokens.discard(n)
        self.cleanup_needed.discard(n)
        self.transition_state = NULL
        self._enter(new_version=False)

    def _leaving_ring(self, n: Term[Node]) -> None:
        only_when(self.release.rollback)
        require(self.transition_state == T.left_token_ring, "a node has left the token ring")
        require(self._in_transition(n), "the node is in transition")

    # -- the way back ----------------------------------------------------------------------------------

    @action(by=COORDINATOR, fair=WEAK)
    def give_up(self) -> None:
        """A barrier failed before reads used the new ring: the operation is to be undone."""
        only_when(self.release.rollback)
        require(self.barrier == Barrier.failed, "barrier failed")
        self._has_a_way_back()
        self.giving_up = True

    def _has_a_way_back(self) -> None:
        require(self._gives_up(), "there is a way back")

    @action(by=COORDINATOR, spends=faults)
    def give_up_join(self) -> None:
        """No tokens can be had for the node, or its rack does not fit."""
        only_when(self.release.rollback)
        require(self.transition_state == T.join_group0, "a node joins group0")
        require(some(self._in_transition(n) & self.members.has(n) for n in Node), "it has joined")
        require(~self.giving_up, "it is not given up yet")
        self.giving_up = True

    @action(by=COORDINATOR, fair=WEAK)
    def give_up_with_tablets(self, n: Term[Node]) -> None:
        """A table was made meanwhile: the node that leaves holds tablets again."""
        only_when(self.release.rollback)
        require(self.transition_state == T.write_both_read_old, "writes go to both rings")
        require(self._leaves_with_tablets(n), "a node that leaves has tablets")
        require(~self.giving_up, "it is not given up yet")
        self.giving_up = True

    @action(by=COORDINATOR, fair=WEAK)
    def roll_back_join(self, n: Term[Node]) -> None:
        """The node that was to join leaves the token ring."""
        self._roll_back(n, *JOINING)
        self.tablet_work = None
        self.new_cdc_generation = False
        self.transition_state = T.left_token_ring

    @action(by=COORDINATOR, fair=WEAK)
    def roll_back_leave(self, n: Term[Node]) -> None:
        """The node that was to leave stays; the others may hold rows of it."""
        self._roll_back(n, *LEAVING)
        self._mark_for_cleanup()
        self.transition_state = T.rollback_to_normal

    def _roll_back(self, n: Term[Node], *states: NodeState) -> None:
        only_when(self.release.rollback)
        require(self.giving_up, "the operation is to be undone")
        require(self._is(n, *states), "the node is in transition")
        self.error.add(n)
        self.session = False
        self._enter()

    @action(by=COORDINATOR, fair=WEAK)
    def complete_rollback(self, n: Term[Node]) -> None:
        """The node is normal again; tablets whose transition was resumed may go on."""
        only_when(self.release.rollback)
        require(self.transition_state == T.rollback_to_normal, "a node goes back to normal")
        self._barrier_passed_or_waived()
        require(self._in_transition(n), "the node is in transition")
        self.node_state[n] = NodeState.normal
        self.fence_version = self.version
        self._end(n)
        self.transition_state = T.tablet_migration
        self._enter(new_version=False)

    # -- the tables ------------------------------------------------------------------------------------

    @step_property
    def nodes_follow_the_diagram(self, after: Self, n: Term[Node]) -> Bool:
        """001, "State transition diagram for nodes", with the releases' edges back to normal."""
        old, new = self.node_state[n], after.node_state[n]
        diagram = NODE_DIAGRAM if self.release.rollback else SEED_DIAGRAM
        return (old != new).implies(old.column(lambda state: diagram[state]).has(new))

    @step_property
    def nodes_that_left_are_kept(self, after: Self, n: Term[Node]) -> Bool:
        """001: "Nodes in state left are never removed from the state"."""
        is_left = self.node_state[n] == NodeState.left
        return is_left.implies(after.node_state[n] == NodeState.left)

    @step_property
    def the_topology_follows_its_table(self, after: Self) -> Bool:
        """001: the order of the transition states, with the releases' states between them."""
        old, new = self.transition_state, after.transition_state
        table = TRANSITION_TABLE if self.release.rollback else SEED_TABLE
        return (old != new).implies(old.column(lambda state: table[state]).has(new))

    @invariant
    def one_node_in_transition(self) -> Bool:
        """001: "one of the nodes is in a bootstrapping/decommissioning/removing/replacing state"."""
        return count(self._in_transition(n) for n in Node) <= 1

    @invariant
    def node_state_fits_transition_state(self, n: Term[Node]) -> Bool:
        """The state of the node and that of the topology are a pair of the table (scylladb #16568)."""
        states = self.transition_state.column(lambda state: state.of)
        return self._in_transition(n).implies(states.has(self.node_state[n]))

    @invariant
    def transition_state_has_its_owner(self) -> Bool:
        """`transition_state` is set on behalf of who owns it, and of nobody else (scylladb #23751)."""
        state = self.transition_state
        owner = state.column(lambda state: state.owner)
        moving = some(self._in_transition(n) for n in Node)
        generation = self.new_cdc_generation | (state == T.publish_cdc_generation)
        wanted = self.global_request == GlobalRequest.new_cdc_generation
        asked = some(
            request.column(lambda r: r.done_in) == state for request in self.global_request
        )
        return (
            (owner == Owner.node).implies(moving)
            & (owner == Owner.generation).implies(generation & (moving | wanted))
            & (owner == Owner.request).implies(asked)
            & ((owner == Owner.nobody) == (state == NULL))
        )

    @invariant
    def what_goes_on_owns_the_transition_state(self) -> Bool:
        """A node that joins or leaves, a generation, tablets, a request: each has its own states (scylladb #23751)."""
        state = self.transition_state
        owner = state.column(lambda state: state.owner)
        moves = some(self._is(n, *JOINING, *LEAVING) for n in Node)
        tracks = state.column(lambda state: state.tablets)
        leaving = state.any_of(T.tablet_draining, T.rollback_to_normal)
        return (
            moves.implies(owner.any_of(Owner.node, Owner.generation))
            & self.new_cdc_generation.implies(owner == Owner.generation)
            & (owner == Owner.tablets).implies(tracks)
            & tracks.implies((owner == Owner.tablets) | leaving)
        )

    @invariant
    def requests_on_tables_have_states_of_their_own(self) -> Bool:
        """Tables are truncated in truncate_table, and snapshot in snapshot_tables (scylladb #23751)."""
        state, request = self.transition_state, self.global_request
        owned = state.column(lambda state: state.owner) == Owner.request
        truncates = owned & (request == GlobalRequest.truncate_table)
        snapshots = owned & (request == GlobalRequest.snapshot_tables)
        return (state == T.truncate_table).implies(truncates) & (
            state == T.snapshot_tables
        ).implies(snapshots)

    @invariant
    def tablets_move_in_their_tracks(self) -> Bool:
        """001: "When the topology state machine is not in the tablet_migration track, it is guaranteed
        that there are no tablet transitions in the system." Later they also drain from a node that leaves.
        """
        tracks = self.transition_state.column(lambda state: state.tablets)
        resizing = self.transition_state == T.tablet_resize_finalization
        return self.tablet_work.is_some().implies(tracks & ~resizing)

    @invariant
    def tablets_are_drained_where_a_node_leaves(self) -> Bool:
        """Lemma: tablets drain from a node that leaves, or from one that is replaced."""
        drains = (self.transition_state == T.tablet_draining) & self.tablet_work.is_some()
        return drains.implies(some(self._is(n, *LEAVING, NodeState.replacing) for n in Node))

    @step_property
    def the_load_balancer_waits(self, after: Self) -> Bool:
        """001: "If there is a pending topology change request, the load balancer will not be invoked"."""
        begins = self._enters(after, T.tablet_migration, T.tablet_resize_finalization)
        planned = after.tablet_work.any_of(Work.balancing, Work.draining) | (
            after.transition_state == T.tablet_resize_finalization
        )
        free = ~self._pending() & self.global_request.is_none()
        rolled_back = self.transition_state == T.rollback_to_normal
        return (begins & planned & ~rolled_back).implies(self.is_at_rest() & free)

    @step_property
    def tablets_leave_a_node_by_moving(self, after: Self, n: Term[Node]) -> Bool:
        """Tablets are gone from a node when they have moved, or were rebuilt elsewhere: some node has them."""
        gone = self.tablet_hosts.has(n) & ~after.tablet_hosts.has(n)
        elsewhere = some((m != n) & after._may_settle(m) for m in after.tablet_hosts)
        return gone.implies(self.tablet_work.is_some() & elsewhere)

    # -- requests --------------------------------------------------------------------------------------

    @accepts(ask_to_leave)
    def requests_are_issued_at_any_time(self, n: Term[Node]) -> Bool:
        """001: "When a request is issued to a node the entry is added to the map", whatever goes on meanwhile."""
        free = self.topology_request[n].is_none() & ~self.down.has(n)
        return free & self.stays(n) & some((m != n) & self.stays(m) for m in Node)

    @accepts(ask_globally)
    def global_requests_are_issued_at_any_time(self) -> Bool:
        """001: "Separately from the per-node requests, there is also a 'global' request field": nodes need not be done."""
        return self.global_request.is_none()

    @invariant
    def a_request_is_pending_until_it_is_taken_up(self, n: Term[Node]) -> Bool:
        """001: a request is an entry in the map until its operation begins."""
        request = self.topology_request[n]
        joins = request.any_of(Request.join, Request.replace)
        goes = request.any_of(Request.leave, Request.remove, Request.rebuild)
        fits = every(r.column(lambda r: r.asked_in) == self.node_state[n] for r in request)
        right = (self._is(n, NodeState.none) == joins) & fits
        return right & goes.implies(self._is(n, NodeState.normal))

    @invariant
    def a_pending_request_is_in_the_table(self, n: Term[Node]) -> Bool:
        """001: "When a request is issued to a node the entry is added to the map": the request table says what
        it is, and not that it has ended.
        """
        request = self.topology_request[n]
        ended = self.done.has(n) | self.error.has(n)
        return request.is_some().implies((self.asked[n] == request) & ~ended)

    @step_property
    def requests_are_not_overwritten(self, after: Self, n: Term[Node]) -> Bool:
        """A request stays until it is taken up or refused."""
        before, now = self.topology_request[n], after.topology_request[n]
        return (before.is_some() & now.is_some()).implies(before == now)

    @step_property
    def nodes_begin_what_they_asked_for(self, after: Self, n: Term[Node]) -> Bool:
        """001: a node goes through the operation that was requested, once it can proceed."""
        begins = ~self._in_transition(n) & after._in_transition(n)
        wanted = some(
            request.column(lambda r: r.begins_as) == after.node_state[n]
            for request in self.topology_request[n]
        )
        return begins.implies(wanted & self._ready(n))

    @step_property
    def somebody_stays_where_a_node_goes(self, after: Self, n: Term[Node]) -> Bool:
        """001: the node that leaves streams its data "to nodes that took over its ranges"."""
        goes = after.topology_request[n].any_of(Request.leave, Request.remove)
        asks = self.topology_request[n].is_none() & goes
        return asks.implies(self._others_stay(n))

    @step_property
    def dead_nodes_are_removed(self, after: Self, n: Term[Node]) -> Bool:
        """001: a node that is decommissioned streams its data itself, for one that is removed others do."""
        only_when(self.release.rollback)
        begins = ~self._in_transition(n) & after._is(n, *LEAVING)
        return begins.implies(self.down.has(n) == after._is(n, NodeState.removing))

    @invariant
    def a_node_that_is_removed_is_dead(self, n: Term[Node]) -> Bool:
        """001: the data of a node that is removed is streamed "from still alive owners": it does not come back."""
        only_when(self.release.rollback)
        return self._is(n, NodeState.removing).implies(self.down.has(n))

    @step_property
    def only_what_goes_on_ends(self, after: Self, n: Term[Node]) -> Bool:
        """A request is done when its operation is, or when it is refused."""
        ends = ~self.done.has(n) & after.done.has(n)
        refused = self.topology_request[n].is_some() & after.error.has(n)
        return ends.implies(self._in_transition(n) | refused)

    @step_property
    def requests_are_refused_at_rest(self, after: Self, n: Term[Node]) -> Bool:
        """The coordinator refuses a request ("Join is rejected", "Canceled. Dead nodes") where it would take it
        up: when nothing else goes on. To leave or to be removed may be aborted while it waits.
        """
        return self._is_refused(n, after).implies(self.is_at_rest())

    @step_property
    def requests_are_cancelled_when_none_can_proceed(self, after: Self, n: Term[Node]) -> Bool:
        """What can proceed may be refused when its turn has come ("Join is rejected"); what cannot is cancelled
        when no other request can either, for dead nodes ("Canceled. Dead nodes").
        """
        none = ~some(self._ready(m) for m in Node)
        return self._is_refused(n, after).implies(self._ready(n) | none)

    def _is_refused(self, n: Term[Node], after: Self) -> Bool:
        refused = ~self._in_transition(n) & ~self.error.has(n) & after.error.has(n)
        return refused & ~self._wants_to_go(n)

    @invariant
    def what_goes_on_is_not_done(self, n: Term[Node]) -> Bool:
        """A request is reported as done at the end of its operation only."""
        ends = self.transition_state == T.left_token_ring
        return (self._in_transition(n) & ~ends).implies(~self.done.has(n))

    @invariant
    def a_dead_node_is_replaced(self, n: Term[Node]) -> Bool:
        """001: "'replacing' state has host id of a node been replaced as a parameter"."""
        known = some(self._is(m, NodeState.normal) for m in self.replaced_id[n])
        asks = self.topology_request[n] == Request.replace
        dead = some(self.down.has(m) for m in self.replaced_id[n])
        replacing = self._is(n, NodeState.replacing)
        return (asks | replacing).implies(known) & replacing.implies(dead)

    @step_property
    def what_is_given_up_is_undone(self, after: Self) -> Bool:
        """An operation that is given up goes back, not on."""
        moves = self.transition_state != after.transition_state
        back = after.transition_state.any_of(T.left_token_ring, T.rollback_to_normal)
        outside = ~some(self._in_transition(n) & self.members.has(n) for n in Node)
        return (self.giving_up & moves).implies(back | outside)

    @step_property
    def a_rebuild_is_done_when_it_has_streamed(self, after: Self, n: Term[Node]) -> Bool:
        """001: the node "is streaming data from other replicas"; where it could not, its request has failed."""
        ends = self._is(n, NodeState.rebuilding) & after._is(n, NodeState.normal)
        source = some(self._is(m, NORMAL) & ~self.down.has(m) for m in Node)
        return ends.implies(after.error.has(n) | (self.session & ~self.down.has(n) & source))

    @step_property
    def global_requests_are_done(self, after: Self) -> Bool:
        """A global request goes when its work is done: in its own state, or when all is clean."""
        gone = self.global_request.is_some() & after.global_request.is_none()
        cleanup = self.global_request == GlobalRequest.cleanup
        clean = self.is_at_rest() & every(
            ~self.cleanup_needed.has(n) | self.down.has(n) for n in Node
        )
        there = some(
            request.column(lambda r: r.done_in) == self.transition_state
            for request in self.global_request
        )
        if self.release.publish_state:
            there = self.transition_state == T.publish_cdc_generation
        return gone.implies((cleanup & clean) | (~cleanup & there & ~self.session))

    @step_property
    def global_requests_come_after_those_of_nodes(self, after: Self) -> Bool:
        """The coordinator looks for a node to work on first."""
        begins = (self.transition_state == NULL) & after.transition_state.any_of(
            T.commit_cdc_generation, T.truncate_table, T.snapshot_tables
        )
        alone = ~some(after._in_transition(n) for n in Node)
        return (begins & alone).implies(~some(self._ready(n) for n in Node))

    @step_property
    def requests_are_served_in_order(self, after: Self, n: Term[Node], m: Term[Node]) -> Bool:
        """The order in which requests are served is replace, join, remove, leave, rebuild."""
        begins = ~self._in_transition(n) & after._in_transition(n)
        earlier = some(
            (self.topology_request[n] == request) & self.topology_request[m].any_of(*ORDER[:place])
            for place, request in enumerate(ORDER)
            if place > 0
        )
        return begins.implies(~(earlier & self._ready(m)))

    @step_property
    def paused_requests_do_not_begin(self, after: Self, n: Term[Node]) -> Bool:
        """A node that still holds tablet replicas begins to leave only where tablets drain meanwhile."""
        only_when(self.release.draining_state or self.release.parallel_draining)
        begins = ~self._in_transition(n) & after._in_transition(n)
        leaves = after._is(n, *LEAVING) & self.tablet_hosts.has(n)
        return (begins & leaves).implies(after.transition_state.column(lambda s: s.tablets))

    @invariant
    def joined_means_normal(self, n: Term[Node]) -> Bool:
        """A request to join or replace that is done without error has made the node normal."""
        joins = self.asked[n].any_of(Request.join, Request.replace)
        outside = self._is(n, NodeState.none, NodeState.left) & ~self._was_replaced(n)
        good = self.done.has(n) & ~self.error.has(n)
        return (joins & good).implies(~outside & ~self._is(n, *JOINING))

    @invariant
    def refused_means_left(self, n: Term[Node]) -> Bool:
        """A request to join or replace that failed leaves the node out for good."""
        joins = self.asked[n].any_of(Request.join, Request.replace)
        out = self._is(n, NodeState.left) | (self.transition_state == T.left_token_ring)
        return (joins & self.done.has(n) & self.error.has(n)).implies(out)

    @invariant
    def gone_means_left(self, n: Term[Node]) -> Bool:
        """A request to leave or remove that is done has the node left, or as good as left; else it stays."""
        leaves = self.asked[n].any_of(Request.leave, Request.remove)
        out = self._is(n, NodeState.left) | (self.transition_state == T.left_token_ring)
        stays = self._is(n, NodeState.normal) | self._was_replaced(n)
        right = (self.error.has(n) & stays) | (~self.error.has(n) & out)
        return (leaves & self.done.has(n)).implies(right)

    @step_property
    def nobody_waits_for_a_node_that_was_told_to_shut_down(self, after: Self) -> Bool:
        """left_token_ring may be entered again: what was done in it is not done twice (scylladb #20865)."""
        waits = (self.barrier != after.barrier) & after.barrier.any_of(
            Barrier.running, Barrier.passed, Barrier.failed
        )
        reported = some(self._in_transition(n) & self.done.has(n) for n in Node)
        return waits.implies(~reported)

    # -- what recurs -----------------------------------------------------------------------------------

    def _was_replaced(self, n: Term[Node]) -> Bool:
        return some((self.replaced_id[m] == n) & self._is(m, NodeState.normal) for m in Node)

    exercised_at = scopes(
        {requests: 1},
        {faults: 0},
        {Node: 3, faults: 0},
        {},
        {Node: 3, requests: 1, faults: 2},
        {requests: 1, stages: 2},
        {Node: 3},
    )

    tables = TABLES

    # -- barriers --------------------------------------------------------------------------------------

    @step_property
    def barriers_are_told_truly(self, after: Self) -> Bool:
        """A barrier passes when all who take part have answered, and is waived where it has failed."""
        answered = (self.barrier == Barrier.running) & every(~self._blocks(n) for n in Node)
        passes = (self.barrier != after.barrier) & (after.barrier == Barrier.passed)
        waived = (self.barrier != after.barrier) & (after.barrier == Barrier.waived)
        return passes.implies(answered) & waived.implies(
            (self.barrier == Barrier.failed) & self._puts_up()
        )

    @step_property
    def what_was_learned_counts_in_its_state_alone(self, after: Self) -> Bool:
        """A barrier that passed, a stream that ended, a failure: they say nothing of the next state."""
        moves = (self.transition_state != after.transition_state) | (self.session != after.session)
        nothing = (after.barrier == Barrier.none) & ~after.streamed & ~after.giving_up
        return moves.implies(nothing)

    @invariant
    def barriers_are_of_states_that_have_one(self) -> Bool:
        """Barriers are run, and streams end, in the states that say so."""
        has = self.transition_state.column(lambda state: state.barrier)
        streams = self.transition_state == T.write_both_read_old
        runs = self.barrier != Barrier.none
        return runs.implies(has) & self.streamed.implies(streams)

    @invariant
    def only_operations_on_nodes_are_given_up(self) -> Bool:
        """Lemma: there is something to roll back, and a way back, where an operation is given up."""
        way_back = self.transition_state.column(lambda state: state.gives_up)
        return self.giving_up.implies(way_back & some(self._in_transition(n) for n in Node))

    @invariant
    def the_fence_is_never_ahead(self) -> Bool:
        """The fence refuses older versions, never the present one."""
        return self.fence_version <= self.version

    @step_property
    def the_fence_moves_with_a_barrier(self, after: Self) -> Bool:
        """Older requests are fenced when a barrier is done with them, at the end of a rollback, or by tablets: their
        barriers are those of `tablet-migration`, and that all nodes have drained then is assumed here.
        """
        moves = self.fence_version != after.fence_version
        passes = (self.barrier != Barrier.passed) & (after.barrier == Barrier.passed)
        undone = self.transition_state == T.rollback_to_normal
        tablets = self.tablet_work.is_some() & (self.transition_state == T.tablet_migration)
        return moves.implies(passes | undone | tablets | self.is_at_rest())

    @step_property
    def ranges_are_streamed_between_live_nodes(self, after: Self) -> Bool:
        """001: "After the entire cluster learns about it, streaming starts"."""
        ends = ~self.streamed & after.streamed
        live = every(~self._blocks(n) for n in Node)
        return ends.implies(live & (self.barrier == Barrier.passed) & self.session)

    # -- rings, versions, sessions ---------------------------------------------------------------------

    @step_property
    def routing_changes_with_the_version(self, after: Self, n: Term[Node]) -> Bool:
        """What requests use changes in a version of its own, so that barriers and fences can tell."""
        old, new = self.transition_state, after.transition_state
        same = (self._is_written(n) == after._is_written(n)) & (
            self._is_read(n) == after._is_read(n)
        )
        same = same & (old.column(lambda t: t.writes) == new.column(lambda t: t.writes))
        same = same & (old.column(lambda t: t.tablets) == new.column(lambda t: t.tablets))
        return same | (after.version == self.version + 1)

    def _is_written(self, n: Term[Node]) -> Bool:
        ring = self.transition_state.column(lambda state: state.writes)
        old = (ring != Ring.new) & self.in_old_ring(n)
        return old | ((ring != Ring.old) & self.in_new_ring(n))

    def _is_read(self, n: Term[Node]) -> Bool:
        ring = self.transition_state.column(lambda state: state.reads)
        return choose(ring == Ring.old, self.in_old_ring(n), self.in_new_ring(n))

    @invariant
    def requests_use_both_rings_while_data_moves(self, n: Term[Node]) -> Bool:
        """001: "Writes are going to both new and old replicas …, reads are using old replicas"; then
        "reads are using new replicas".
        """
        reads_new = self.transition_state == T.write_both_read_new
        both = reads_new | (self.transition_state == T.write_both_read_old)
        old, new = self.in_old_ring(n), self.in_new_ring(n)
        written = self._is_written(n) == (old | (both & new))
        return written & (self._is_read(n) == choose(reads_new, new, old))

    @step_property
    def versions_only_grow(self, after: Self) -> Bool:
        """A version is used once, and the fence never opens again."""
        return (self.version <= after.version) & (self.fence_version <= after.fence_version)

    @step_property
    def a_version_is_of_a_change(self, after: Self) -> Bool:
        """A barrier is not run for nothing: the version moves with the topology, or with the stages of tablets."""
        stays = self.transition_state == after.transition_state
        rests = self.tablet_work.is_none() & after.tablet_work.is_none()
        return (stays & rests).implies(self.version == after.version)

    @step_property
    def older_versions_are_fenced(self, after: Self) -> Bool:
        """A state with a barrier is left for the next one only when no older version can act any more; a rollback
        puts the fence up even where its barrier failed.
        """
        old = self.transition_state
        ends = old == T.left_token_ring  # with the report, after which the node may be gone
        left = (old != after.transition_state) & old.column(lambda state: state.barrier) & ~ends
        left = left | (ends & some(self._is_reported(n, after) for n in Node))
        cleared = self.session & ~after.session & (old.any_of(T.truncate_table, T.snapshot_tables))
        passed = (self.fence_version == self.version) & (self.barrier == Barrier.passed)
        over = passed | self.giving_up | (self.barrier == Barrier.waived)
        fenced = (old != T.rollback_to_normal) | (after.fence_version == after.version)
        return (left | cleared).implies(over & fenced)

    def _is_reported(self, n: Term[Node], after: Self) -> Bool:
        """The node in transition, that is: who waits meanwhile may be refused at any time."""
        return self._in_transition(n) & ~self.done.has(n) & after.done.has(n)

    @invariant
    def what_streams_has_an_open_session(self) -> Bool:
        """An operation that streams has an open session (scylladb #16741)."""
        rebuilds = some(self._is(n, NodeState.rebuilding) for n in Node)
        return ((self.transition_state == T.write_both_read_old) | rebuilds).implies(self.session)

    @step_property
    def requests_on_tables_open_a_session(self, after: Self) -> Bool:
        """TRUNCATE and snapshots run in a session, and a second barrier follows when it is closed."""
        return self._enters(after, T.truncate_table, T.snapshot_tables).implies(after.session)

    @invariant
    def sessions_are_closed_when_their_work_is_over(self) -> Bool:
        """Nothing may stream once its result counts, or is thrown away."""
        streams = self.transition_state.any_of(
            T.tablet_draining, T.write_both_read_old, T.truncate_table, T.snapshot_tables
        )
        rebuilds = some(self._is(n, NodeState.rebuilding) for n in Node)
        return self.session.implies(streams | rebuilds)

    @step_property
    def reads_move_when_all_is_streamed(self, after: Self) -> Bool:
        """001: "When streaming finishes, we move to write_both_read_new state"."""
        begins = self._enters(after, T.write_both_read_new)
        return begins.implies(self.streamed & (self.barrier == Barrier.passed))

    # -- members of the cluster ------------------------------------------------------------------------

    @invariant
    def left_nodes_are_out_of_group0(self, n: Term[Node]) -> Bool:
        """001: "left - the node left the cluster and group0" (scylladb #14885)."""
        return self._is(n, NodeState.left).implies(~self.members.has(n))

    @invariant
    def nodes_that_serve_are_in_group0(self, n: Term[Node]) -> Bool:
        """A node that owns a part of the ring learns of changes, until its end has begun."""
        reads_new = self.transition_state == T.write_both_read_new
        ending = reads_new & self._being_replaced(n)
        ending = ending | (self.transition_state == T.left_token_ring)
        if not self.release.removing_leaves_ring:
            ending = ending | (reads_new & self._is(n, NodeState.removing))
        if not self.release.rollback:
            ending = ending | reads_new
        return self.tokens.has(n).implies(self.members.has(n) | ending)

    @invariant
    def tokens_belong_to_nodes_of_the_ring(self, n: Term[Node]) -> Bool:
        """001: a normal node "serves the slice of the ring that belongs to it", none "has no tokens"."""
        serves = self._is(n, NodeState.normal, NodeState.rebuilding)
        outside = self._is(n, NodeState.absent, NodeState.none, NodeState.left)
        leaves = self._is(n, *LEAVING) & (self.transition_state != T.left_token_ring)
        has = self.tokens.has(n)
        return (serves | leaves).implies(has) & outside.implies(~has)

    @invariant
    def both_rings_differ_by_the_node_in_transition(self, n: Term[Node]) -> Bool:
        """001: "new replicas means calculated according to modified token ring"."""
        both = self.transition_state.any_of(T.write_both_read_old, T.write_both_read_new)
        changes = self.in_old_ring(n) != self.in_new_ring(n)
        return both.implies(changes == (self._in_transition(n) | self._being_replaced(n)))

    @invariant
    def replaced_nodes_are_left(self, n: Term[Node], dead: Term[Node]) -> Bool:
        """The replaced node is left in the commit in which the one that replaces it becomes normal."""
        replaced = self.replaced_id[n] == dead
        asked = self._is(n, NodeState.normal)
        return (replaced & asked).implies(self._is(dead, NodeState.left))

    @invariant
    def left_nodes_do_not_run(self, n: Term[Node]) -> Bool:
        """A node is left only when it is dead, refused, or was told to shut down."""
        return self._is(n, NodeState.left).implies(self.down.has(n))

    @step_property
    def who_was_told_to_shut_down_does_not_run(self, after: Self, n: Term[Node]) -> Bool:
        """The barrier command of left_token_ring ends the node for good."""
        return (self._has_ended(n) & self.down.has(n)).implies(after.down.has(n))

    @step_property
    def nodes_are_out_of_group0_when_nobody_needs_them(self, after: Self, n: Term[Node]) -> Bool:
        """001: "left - the node left the cluster and group0": when no request that began before can reach it,
        and in left_token_ring when that is reported, so that it can be told.
        """
        removed = self.members.has(n) & ~after.members.has(n)
        over = self.barrier.any_of(Barrier.passed, Barrier.waived)
        at_once = (self.transition_state == T.write_both_read_new) & over
        refused = self._is(n, NodeState.none)
        return removed.implies(at_once | self._has_ended(n) | refused)

    @invariant
    def left_nodes_hold_no_tablets(self, n: Term[Node]) -> Bool:
        """A node leaves only when its tablets have moved away; since 2026.1 the tablets of a node that was
        replaced are rebuilt afterwards.
        """
        holds = self._is(n, NodeState.left) & self.tablet_hosts.has(n)
        if self.release.parallel_draining:
            gone = NodeState.absent, NodeState.none
            return holds.implies(
                some((self.replaced_id[m] == n) & ~self._is(m, *gone) for m in Node)
            )
        return ~holds

    @liveness
    def tablets_of_replaced_nodes_are_rebuilt(self, n: Term[Node]) -> LeadsTo:
        """The balancer rebuilds them from their other replicas, unless nodes stay down."""
        only_when(self.release.parallel_draining)
        holds, nobody_down = self.tablet_hosts.has(n), every(~self._blocks(m) for m in Node)
        return leads_to(holds & self._is(n, NodeState.left), ~holds | ~nobody_down)

    @invariant
    def left_nodes_need_no_cleanup(self, n: Term[Node]) -> Bool:
        """Nobody waits for rows of a node that is gone."""
        return self._is(n, NodeState.left).implies(~self.cleanup_needed.has(n))

    # -- cleanup ---------------------------------------------------------------------------------------

    @step_property
    def rows_of_lost_ranges_are_remembered(self, after: Self, n: Term[Node], m: Term[Node]) -> Bool:
        """Where a node has taken over ranges, or was about to hand them out, the others may hold such rows."""
        only_when(self.release.cleanup)
        joined = self._is(n, NodeState.bootstrapping) & after._is(n, NodeState.normal)
        undone = self._enters(after, T.rollback_to_normal)
        other = (m != n) & self._is(m, NodeState.normal)
        return (other & (joined | undone)).implies(after.cleanup_needed.has(m))

    @step_property
    def no_range_comes_back_to_a_node_with_old_rows(self, after: Self, n: Term[Node]) -> Bool:
        """A node leaves only when those who take over have removed the rows of ranges that they had lost."""
        begins = ~self._in_transition(n) & after._is(n, *LEAVING)
        return begins.implies(every(~self.cleanup_needed.has(m) | self.down.has(m) for m in Node))

    @step_property
    def rows_are_removed_when_nothing_can_write_them(self, after: Self, n: Term[Node]) -> Bool:
        """A node cleans up while no ring changes, and no request of an older one is left (scylladb #26315)."""
        cleaned = self.cleanup_needed.has(n) & ~after.cleanup_needed.has(n)
        cleaned = cleaned & ~after._is(n, NodeState.left)
        quiet = self.is_at_rest() & ~self.down.has(n)
        if self.release.barrier_before_cleanup:
            quiet = quiet & (self.fence_version == self.version)
        return cleaned.implies(quiet)

    # -- CDC generations -------------------------------------------------------------------------------

    @invariant
    def a_generation_waits_for_its_commit(self) -> Bool:
        """001: new_cdc_generation_data_uuid is "used in commit_cdc_generation state"."""
        return self.new_cdc_generation == (self.transition_state == T.commit_cdc_generation)

    @step_property
    def a_node_bootstraps_with_a_committed_generation(self, after: Self) -> Bool:
        """001: "we need to commit the generation … and tell every node to start using it"."""
        bootstraps = some(self._is(n, NodeState.bootstrapping) for n in Node)
        begins = self._enters(after, T.write_both_read_old) & bootstraps
        if self.release.publish_state:
            published = self.transition_state == T.publish_cdc_generation
            return begins.implies(published & ~after.unpublished_cdc_generations)
        committed = (self.transition_state == T.commit_cdc_generation) & self.new_cdc_generation
        return begins.implies(committed & after.unpublished_cdc_generations)

    @step_property
    def what_is_committed_is_to_be_published(self, after: Self) -> Bool:
        """001: "After committing the generation we move to publish"; later a fiber does it."""
        leaves = (self.transition_state == T.commit_cdc_generation) & after.transition_state.any_of(
            NULL, T.write_both_read_old, T.publish_cdc_generation
        )
        given_up = some(self._in_transition(n) & after._is(n, NodeState.left) for n in Node)
        appears = ~self.unpublished_cdc_generations & after.unpublished_cdc_generations
        return (leaves & ~given_up).implies(after.unpublished_cdc_generations) & appears.implies(
            self.new_cdc_generation
        )

    @liveness
    def generations_are_published(self) -> LeadsTo:
        """001: "we need to publish it to user-facing description tables"."""
        unpublished = self.unpublished_cdc_generations
        return leads_to(unpublished, ~unpublished)

    # -- ends ------------------------------------------------------------------------------------------

    @final
    def at_rest(self) -> Bool:
        """Nothing is asked for and nothing goes on."""
        asked = some(self.topology_request[n].is_some() for n in Node)
        return self.is_at_rest() & ~asked & self.global_request.is_none()

    @always_reachable
    def can_come_to_rest(self) -> Bool:
        """Whatever happened, the topology can still come to rest."""
        return self.is_at_rest()

    @liveness
    def every_request_ends(self, n: Term[Node]) -> LeadsTo:
        """Every request ends, done or with an error: what fails is rolled back, not tried for ever
        (scylladb #16461). What needs no node is tried for ever where a node stays down, and holds up others.
        """
        alone = ~some(self._in_transition(n) for n in Node)
        held_up = alone & self.barrier.any_of(Barrier.running, Barrier.failed)
        held_up = held_up & some(self._blocks(n) for n in Node)
        return leads_to(self.asked[n].is_some(), self.done.has(n) | held_up)

    @liveness
    def global_requests_end(self) -> LeadsTo:
        """Global requests are done too, unless nodes stay down."""
        nobody_down = every(~self._blocks(n) for n in Node)
        waits = self.global_request.is_some()
        return leads_to(waits, ~waits | ~nobody_down)

    left_open = known_violations(
        violated(every_request_ends, under=SEED, because="what fails for good is tried for ever"),
        violated(
            *(left_nodes_hold_no_tablets, left_nodes_do_not_run, a_dead_node_is_replaced),
            under=SEED,
            because="nothing moves a leaving node's tablets, nobody tells it that it left, or looks if a dead one is back",
        ),
        violated(
            *(older_versions_are_fenced, nodes_are_out_of_group0_when_nobody_needs_them),
            under=SEED,
            because="no barrier or fence is said to come before the edges from bootstrapping and replacing to left",
        ),
    )

    harmless = equivalents(
        equivalent_drop(_ask, "no request of the node is pending", because="no row, no request"),
        equivalent_loss(_ask, done, error, because="who has no row has asked for nothing before"),
        equivalent_drop(_begin, "the topology is at rest", because="only a third node would tell"),
        equivalent_drop(
            _begin,
            "node is normal",
            "node is none",
            because="a node asks only in the state in which it may",
        ),
        equivalent_drop(
            _is_its_turn,
            "no request to replace comes before it",
            "no request to remove comes before it",
            because=A_DEAD_NODE_WAITS,
        ),
        equivalent_drop(_is_its_turn, "no request to leave comes before it", because=NOT_NEEDED),
        equivalent_loss(
            _enter,
            barrier,
            streamed,
            giving_up,
            because="there was nothing that it could have learned, or it stays true",
        ),
        equivalent_drop(_barrier_passed, "barrier passed", because="what fails may fail before"),
        equivalent_drop(
            ask_to_replace, "the replaced node is down, and asks for nothing", because=CANCELLED
        ),
        equivalent_drop(ask_to_leave, "node is normal and up", because=CANCELLED),
        equivalent_drop(ask_to_remove, "node is normal and down", because=CANCELLED),
        equivalent_weakening(ask_to_remove, "another node stays", because="it takes two down"),
        equivalent_drop(ask_to_rebuild, "node is normal and up", because=CANCELLED),
        equivalent_drop(ask_globally, "no global request is pending", because=ASKED_TWICE),
        equivalent_loss(ask_globally, global_request, because=ASKED_TWICE),
        equivalent_drop(cancel, "it is not paused", because="a paused one may be refused, too"),
        equivalent_drop(cancel, "no request can proceed", because=WAITING),
        equivalent_drop(reject, "its request can proceed, or is paused", because=WAITING),
        equivalent_drop(crash, "node is up", because=CRASHES),
        equivalent_loss(crash, down, because=CRASHES),
        equivalent_drop(
            restart,
            "node is down",
            because="what runs needs no restart; what is removed is told to shut down",
        ),
        equivalent_drop(start_rebuild, "no request to join comes before it", because=NOT_NEEDED),
        equivalent_drop(
            fail_to_rebuild, "a node is down, or there is no source", because=STREAMS_MAY_FAIL
        ),
        equivalent_drop(start_barrier, "nothing is given up", because="one more does no harm"),
        equivalent_drop(
            fail_barrier, "a node that takes part is down", because="an answer may be lost, too"
        ),
        equivalent_loss(lose_barrier, barrier, because="an answer that is not lost"),
        equivalent_drop(
            start_draining,
            "the request of the node is paused, or it was replaced",
            because=NO_TABLETS,
        ),
        equivalent_loss(_enter_tablet_track, tablet_work, because="a plan that moves nothing"),
        equivalent_drop(move_tablet, "no tablet is in transition", because=MOVES_WITH_OTHERS),
        equivalent_loss(move_tablet, tablet_work, because=MOVES_WITH_OTHERS),
        equivalent_drop(
            settle_tablets,
            "tablets are in transition",
            "in the tablet migration track",
            because="what is at rest comes to rest; this release moves tablets in no other state",
        ),
        equivalent_drop(finish_draining_node, "the node holds tablets", because="else it is done"),
        equivalent_drop(
            finish_draining_node,
            "the node is to leave",
            "another node stays, or has taken some",
            because="only a node that others can stand in for is let go",
        ),
        equivalent_loss(finish_draining_node, tablet_work, because="it may be found out later"),
        equivalent_drop(
            settle_tablets_on,
            "tablets are moving",
            "the node is normal",
            "the node holds no tablets",
            because=NEW_TABLES,
        ),
        equivalent_loss(settle_tablets_on, tablet_hosts, because=NEW_TABLES),
        equivalent_drop(move_last_tablet, "the node holds tablets", because=NEW_TABLES),
        equivalent_loss(move_last_tablet, tablet_hosts, because=NEW_TABLES),
        equivalent_loss(roll_back_join, tablet_work, because="older releases alone drain for it"),
        equivalent_loss(change_stages, version, because="stages that stay as they are"),
        equivalent_loss(fence_stages, fence_version, because="the next barrier fences as well"),
        equivalent_weakening(
            move_last_tablet,
            "tablets are moved, and the node is not drained",
            "the other node is normal",
            because="a drain, and a node that is replaced, are looked at again; to stay is no move",
        ),
        equivalent_weakening(
            settle_tablets, "no node is drained that others can stand in for", because=STILL_NORMAL
        ),
        equivalent_drop(
            create_table, "the node is up and has no tablets", because=TABLETS_ELSEWHERE
        ),
        equivalent_loss(create_table, tablet_hosts, because=TABLETS_ELSEWHERE),
        equivalent_loss(start_resize_finalization, transition_state, because="no resize ends"),
        equivalent_drop(
            publish_generation, "a generation is not published yet", because=PUBLISHED_AGAIN
        ),
        equivalent_drop(_take_up, "no request of a node can proceed", because=NOT_NEEDED),
        equivalent_drop(
            fence_before_cleanup,
            "cleanup is needed",
            "older requests are not fenced",
            because="a barrier more does no harm",
        ),
        equivalent_drop(
            clean_up, "node holds rows of ranges that it has lost", because=REMOVED_AGAIN
        ),
        equivalent_drop(_has_moving_tablets, "in the tablet migration track", because=IN_NO_OTHER),
        equivalent_drop(fence_stages, "older requests are not fenced", because="it stays up"),
        equivalent_loss(lock, transition_state, because="a lock that is not taken"),
        equivalent_drop(
            start_decommission, "no request to join comes before it", because=NOT_NEEDED
        ),
        equivalent_drop(
            start_remove, "no request to join comes before it", because=A_DEAD_NODE_WAITS
        ),
        equivalent_drop(
            join_group0,
            "the node is up",
            "the node is not in group0",
            because="a node that joins and dies at once, or that joins again",
        ),
        equivalent_drop(remove_replaced, "it is replaced", because="who was replaced is out"),
        equivalent_drop(remove_replaced, "it is still in group0", because=REMOVED_AGAIN),
        equivalent_loss(
            finish_replace,
            cleanup_needed,
            because="it takes a third node to owe a cleanup and be replaced",
        ),
        equivalent_drop(
            _joining,
            "a node joins group0",
            "the node is in transition",
            because="no other node is outside of group0, or as far as this one",
        ),
        equivalent_drop(
            _joining,
            "the operation goes on",
            because="what has not joined yet may be refused, or go on to join",
        ),
        equivalent_drop(
            stream_ranges,
            "writes go to both rings",
            "it has not ended yet",
            "session is open",
            because="what is streamed may be streamed again, and where nodes stream is a session",
        ),
        equivalent_drop(
            stream_ranges,
            "all nodes that take part are up",
            because="beside the one that streams and the one that is dead a third asks to replace",
        ),
        equivalent_drop(
            stream_with_dead_node, "a node that takes part is down", because=STREAMS_MAY_FAIL
        ),
        equivalent_drop(_streaming_fails, "it has not ended yet", because=STREAMS_MAY_FAIL),
        equivalent_loss(_streaming_fails, giving_up, because=STREAMS_MAY_FAIL),
        equivalent_drop(read_new, "writes go to both rings", because="nothing streams otherwise"),
        equivalent_drop(
            read_new,
            "the node is in transition",
            "streaming is done",
            because="the node only tells of its tablets, and holds some where it is given up now",
        ),
        equivalent_drop(
            read_new, "a node that leaves has no tablets", because="a dead node gets no tablets"
        ),
        equivalent_drop(
            _past_read_fence,
            "reads use the new ring",
            because="a replaced node is removed from group0 only here",
        ),
        equivalent_drop(
            report_completion,
            "the request is not reported as done",
            because="what is reported may be reported again",
        ),
        equivalent_drop(shut_down, "it is up", because="what is down may be told as well"),
        equivalent_drop(remove_from_group0, "it is still in group0", because=REMOVED_AGAIN),
        equivalent_drop(
            _leaving_ring,
            "a node has left the token ring",
            "the node is in transition",
            because="nothing of the kind is done, or left to be done, for any other node",
        ),
        equivalent_drop(give_up_join, "it is not given up yet", because=GIVEN_UP_AGAIN),
        equivalent_loss(give_up_join, giving_up, because=GIVEN_UP_AGAIN),
        equivalent_drop(
            give_up_with_tablets,
            "a node that leaves has tablets",
            "it is not given up yet",
            because=STREAMS_MAY_FAIL,
        ),
    )

    not_in_the_newest_version = unexercised(
        vacuous(
            tablets_are_drained_where_a_node_leaves,
            because="since 2026.1 tablets drain in no transition state of their own",
        ),
        vacuous(
            paused_requests_do_not_begin,
            because="since 2026.1 a node has no tablets any more when it begins to leave",
        ),
    )

"""The topology state machine: requests, tracks, operations, the way back.

What is kept is in `control/topology_record.py`, what is promised in `control/topology_properties.py`, the tables in
`topology_states.py`; `topology.py` puts nodes, client requests and data around it.
"""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import NETWORK, Node
from stagewright.machines.scylladb.topology.control import topology_reasons as why
from stagewright.machines.scylladb.topology.control.topology_properties import TopologyProperties
from stagewright.machines.scylladb.topology.control.topology_record import (
    BALANCER,
    COORDINATOR,
    NODE,
    NULL,
    OPERATOR,
    PUBLISHER,
    WEAK,
    T,
    TopologyRecord as Record,
)
from stagewright.machines.scylladb.topology.topology_states import (
    JOINING,
    LEAVING,
    Barrier,
    GlobalRequest,
    NodeState,
    Request,
    Work,
)
from stagewright.spec import (
    Bool,
    Term,
    accepts,
    action,
    choose,
    equivalent_drop,
    equivalent_loss,
    equivalent_replacement,
    equivalent_weakening,
    equivalents,
    every,
    independent,
    only_when,
    require,
    scopes,
    some,
    unexercised,
    vacuous,
)

requests, faults, stages = Record.requests, Record.faults, Record.stages


class TopologyControl(TopologyProperties):
    """The states of nodes and of the topology as a whole, driven by the topology coordinator.

    A barrier that passed is taken to mean that every node has learned the version, with the fence of those before, and
    drained what was older. `topology`, this machine among nodes that learn in their own time, promises so:
    `a_passed_barrier_means_a_learned_fence`, `a_barrier_waits_for_older_requests`.
    """

    exercised_at = scopes(
        {requests: 1},
        {faults: 0},
        {Node: 3, faults: 0},
        {},
        {Node: 3, requests: 1, faults: 2},
        {requests: 1, stages: 2},
        {Node: 3},
    )

    tables = why.TABLES

    # -- nodes ---------------------------------------------------------------------------------------

    def _move(self, n: Term[Node], source: NodeState, target: NodeState) -> None:
        require(self.node_state[n] == source, f"node is {source.name}")
        self.node_state[n] = target

    # -- requests ------------------------------------------------------------------------------------

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

    def _nothing_goes_on(self) -> None:
        require(self.is_at_rest(), "the topology is at rest")

    # -- the coordinator -----------------------------------------------------------------------------

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

    # -- requests ------------------------------------------------------------------------------------

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
        """The operator asks for a node's data to be streamed again from other replicas."""
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
        """Validation fails: a node is not let in, or not let go; to leave may be refused while it is paused, also
        as tablets are drained, which would not end without the node.
        """
        if self.release.parallel_draining:
            drained = (self.tablet_work == Work.draining) & self._wants_to_go(n)
            require(self.is_at_rest() | drained, "the topology is at rest, or drains nodes")
        else:
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

    # -- faults --------------------------------------------------------------------------------------

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

    @action(by=COORDINATOR, fair=WEAK)
    def start_rebuild(self, n: Term[Node]) -> None:
        """The node streams its data again; "the topology as a whole does not transition"."""
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

    # -- barriers ------------------------------------------------------------------------------------

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
        """Past the point of no return a failed barrier is waived: what was older times out meanwhile, and is
        fenced, as a node that does not answer may be slow, and not down.
        """
        require(self.barrier == Barrier.failed, "barrier failed")
        require(self._waives(), "there is no way back")
        self.barrier = Barrier.waived
        self.fence_version = self.version

    @action(by=COORDINATOR, fair=WEAK)
    def retry_barrier(self) -> None:
        """A barrier on which no node's operation depends is tried again."""
        self._try_again()

    def _try_again(self) -> None:
        require(self.barrier == Barrier.failed, "barrier failed")
        require(~self._gives_up() & ~self._waives(), "nothing is to be undone or put up with")
        self.barrier = Barrier.none

    # -- tablets -------------------------------------------------------------------------------------

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
        free = self.transition_state.any_of(NULL, T.tablet_migration)
        require(free, "topology is not busy")

    @action(by=COORDINATOR, fair=WEAK)
    def settle_tablets(self) -> None:
        """The tablets in transition have all come to rest where they were, or elsewhere, or are dropped."""
        require(self.tablet_work.is_some(), "tablets are in transition")
        tracks = self.transition_state.any_of(T.tablet_migration, T.tablet_draining)
        require(tracks, "in a track in which tablets move")
        leaving = some(self._keeps_tablets(n) & self._others_stay(n) for n in Node)
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
        """For balance, or by hand, a node's last tablet has moved; or it was on its way when its drain was aborted;
        or another node is still to be drained.
        """
        moving = self.tablet_work.any_of(Work.balancing, Work.moving)
        more = (self.tablet_work == Work.draining) & ~self._is_drained_last(n)
        require(moving | more, "tablets are moved, and it is not the last node to be drained")
        require(self.tablet_hosts.has(n), "the node holds tablets")
        require((heir != n) & self._may_settle(heir), "the other node is normal")
        self._hand_over(n, heir)

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
        goes = (self.transition_state == T.write_both_read_new) & self._in_transition(n)
        require(self.in_old_ring(n) & ~goes, "the node serves")
        require(~self.tablet_hosts.has(n) & ~self.down.has(n), "the node is up, without tablets")
        self.tablet_hosts.add(n)

    @action(by=OPERATOR, spends=requests)
    def drop_table(self, n: Term[Node]) -> None:
        """A table, or a view, is dropped, whatever its tablets are doing; the node had tablets of no other one."""
        require(self.tablet_hosts.has(n), "the node holds tablets")
        self.tablet_hosts.discard(n)
        self.dropped = ~self.dropped

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

    # -- CDC generations -----------------------------------------------------------------------------

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

    # -- global requests -----------------------------------------------------------------------------

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

    # -- cleanup -------------------------------------------------------------------------------------

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

    # -- a lock from outside -------------------------------------------------------------------------

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

    # -- bootstrap and replace -----------------------------------------------------------------------

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

    # -- decommission and remove ---------------------------------------------------------------------

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

    def _drains_tablets(self) -> None:
        only_when(self.release.draining_state)
        require(self.transition_state == T.tablet_draining, "tablets are drained")

    @action(by=COORDINATOR, fair=WEAK)
    def drain_again(self, n: Term[Node]) -> None:
        """Tablets are on the node, yet none is in transition: more of them are moved away."""
        self._drains_tablets()
        require(self.tablet_work.is_none() & ~self.giving_up, "no tablet is in transition")
        require(self._leaves_with_tablets(n), "a node that leaves or is replaced has tablets")
        self.tablet_work = Work.draining

    @action(by=COORDINATOR, fair=WEAK)
    def finish_draining(self, n: Term[Node]) -> None:
        """No tablet is in transition, and none is left on the node."""
        self._drains_tablets()
        require(self.tablet_work.is_none() & ~self.giving_up, "no tablet is in transition")
        require(self._in_transition(n), "the node is in transition")
        drained = every(~self._leaves_with_tablets(m) for m in Node)
        require(drained, "no tablet is on a node that leaves or is replaced")
        self._write_both()

    @action(by=COORDINATOR, fair=WEAK)
    def find_no_place(self, n: Term[Node]) -> None:
        """No other node can take the tablets: the operation is given up."""
        self._drains_tablets()
        require(self._leaves_with_tablets(n), "a node that leaves or is replaced has tablets")
        require(~self._others_stay(n), "no other node stays")
        require(~self.giving_up, "it is not given up yet")
        self.giving_up = True

    @action(by=COORDINATOR, spends=faults)
    def fail_to_drain(self) -> None:
        """Tablets cannot move away: the operation is given up, while some of them are in transition."""
        self._drains_tablets()
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

    # -- from both sets of owners to the new one -----------------------------------------------------

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

    # -- the end of a node ---------------------------------------------------------------------------

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

    # -- the way back --------------------------------------------------------------------------------

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
        self._end(n)
        self.transition_state = T.tablet_migration
        self._enter(new_version=False)

    # -- promises ------------------------------------------------------------------------------------

    @accepts(ask_to_leave)
    def requests_are_issued_at_any_time(self, n: Term[Node]) -> Bool:
        """001: "When a request is issued to a node the entry is added to the map", whatever goes on meanwhile."""
        free = self._nothing_is_asked(n) & ~self.down.has(n)
        return free & some((m != n) & self._nobody_wants_it_gone(m) for m in Node)

    @accepts(ask_to_join)
    def nodes_ask_to_join_at_any_time(self, n: Term[Node]) -> Bool:
        """The same for a node that is new, while others join or leave."""
        return self._is(n, NodeState.absent)

    @accepts(ask_to_replace)
    def dead_nodes_can_be_replaced_at_any_time(self, n: Term[Node], dead: Term[Node]) -> Bool:
        """The same for a new node that takes the place of a dead one, which has no other request."""
        free = self.down.has(dead) & self._nothing_is_asked(dead)
        return self._is(n, NodeState.absent) & free

    @accepts(ask_to_remove)
    def dead_nodes_can_be_removed_at_any_time(self, n: Term[Node]) -> Bool:
        """The same for a dead node, if another one stays."""
        free = self._nothing_is_asked(n) & self.down.has(n)
        return free & some((m != n) & self._nobody_wants_it_gone(m) for m in Node)

    @accepts(ask_to_rebuild)
    def nodes_can_be_rebuilt_at_any_time(self, n: Term[Node]) -> Bool:
        """The same for a node that is to stream its data again, even if nobody took its place when that was asked for."""
        return self._nothing_is_asked(n) & ~self.down.has(n)

    @accepts(start_balancing)
    def tablets_are_balanced_where_there_is_no_work(self) -> Bool:
        """001: "If there is no work for the state machine, tablet load balancer is invoked": nothing is asked for, to be
        drained or to be cleaned up, and no node is down, without which tablets do not move.
        """
        asked = some(self.topology_request[n].is_some() for n in Node)
        lost = some(self._is(n, NodeState.left) & self.tablet_hosts.has(n) for n in Node)
        dead = some(self._is_missed(n) for n in Node)
        work = asked | lost | ~self.cleanup_needed.is_empty() | self.global_request.is_some()
        return self.is_at_rest() & ~work & ~dead

    @accepts(move_last_tablet)
    def nodes_are_emptied_independently(self, n: Term[Node], heir: Term[Node]) -> Bool:
        """001: "Tablets are migrated in parallel and independently": for balance, by hand, or while another node is drained,
        the last tablet of a node may move, also of one that is to be drained as well.
        """
        others = some((m != n) & self._must_be_emptied(m) for m in Node)
        drains = (self.tablet_work == Work.draining) & others
        moving = self.tablet_work.any_of(Work.balancing, Work.moving)
        moves = self.tablet_hosts.has(n) & (heir != n) & self._may_settle(heir)
        return (drains | moving) & moves

    @accepts(start_draining)
    def nodes_are_emptied_before_they_leave(self, n: Term[Node]) -> Bool:
        """001: "If there is no work": a node that waits until it has no tablets is none, nor is one that was replaced."""
        only_when(self.release.parallel_draining)
        others = some((m != n) & self.topology_request[m].is_some() for m in Node)
        free = self.is_at_rest() & ~others & self.global_request.is_none()
        return free & self._must_be_emptied(n)

    @accepts(create_table)
    def tables_are_created_at_any_time(self, n: Term[Node]) -> Bool:
        """001: a normal node "serves the slice of the ring that belongs to it": also a new one, whatever others do."""
        return self._is(n, NodeState.normal) & ~self.down.has(n) & ~self.tablet_hosts.has(n)

    @accepts(drop_table)
    def tables_are_dropped_at_any_time(self, n: Term[Node]) -> Bool:
        """000: "a keyspace/view was dropped": no tablet that moves is in the way, nor a node that is left without any."""
        return self.tablet_hosts.has(n)

    @accepts(ask_globally)
    def global_requests_are_issued_at_any_time(self) -> Bool:
        """001: "Separately from the per-node requests, there is also a 'global' request field": nodes need not be done."""
        return self.global_request.is_none()

    @accepts(publish_generation)
    def generations_are_published_at_any_time(self) -> Bool:
        """001: "we need to publish it to user-facing description tables": later without a state of its own, so also while
        the node for which it was made streams, which may take hours.
        """
        only_when(not self.release.publish_state)
        return self.unpublished_cdc_generations

    @accepts(accept_join)
    def joins_begin(self, n: Term[Node]) -> Bool:
        """001: "allow pending topology operation to start": one that could, and no other, since all whom it needs are up."""
        only_when(self.release.join_group0)
        return self._alone_could_begin(n, Request.join)

    @accepts(accept_replace)
    def replacements_begin(self, n: Term[Node]) -> Bool:
        """The same in the place of "another dead node"."""
        only_when(self.release.join_group0)
        return self._alone_could_begin(n, Request.replace)

    @accepts(start_decommission)
    def decommissions_begin(self, n: Term[Node]) -> Bool:
        """The same for one that leaves, when no node holds rows of lost ranges."""
        return self._alone_could_begin(n, Request.leave) & self.cleanup_needed.is_empty()

    @accepts(start_remove)
    def removals_begin(self, n: Term[Node]) -> Bool:
        """The same for a dead node."""
        return self._alone_could_begin(n, Request.remove) & self.cleanup_needed.is_empty()

    @accepts(start_rebuild)
    def rebuilds_begin(self, n: Term[Node]) -> Bool:
        """The same for a node that is to stream its data again, also while nodes hold rows of lost ranges."""
        return self._alone_could_begin(n, Request.rebuild)

    @accepts(reject)
    def requests_are_refused_when_their_turn_comes(self, n: Term[Node]) -> Bool:
        """001: "allow pending topology operation to start", or the coordinator says no, as the diagram has it of none: a
        node that could join, and no other, is not let in, while all are up, nor is one that could replace another; later to
        leave is refused as well, also to one that is drained.
        """
        up = every(~self.down.has(m) for m in Node)
        joins = self._alone_could_begin(n, Request.join) & up
        joins = joins | self._alone_could_begin(n, Request.replace)
        if not self.release.parallel_draining:
            return joins
        goes = self.topology_request[n].any_of(Request.leave, Request.remove)
        return joins | (goes & (self.is_at_rest() | (self.tablet_work == Work.draining)))

    @accepts(move_tablet)
    def tablets_are_moved_by_hand_where_no_node_is_in_the_way(self) -> Bool:
        """001: the track "excludes with other topology changes", and with nothing else: no request that waits is one, nor a
        node that is down.
        """
        return self.transition_state.any_of(NULL, T.tablet_migration) & self.tablet_work.is_none()

    @accepts(settle_tablets_on)
    def tablets_come_to_rest_independently(self, n: Term[Node]) -> Bool:
        """001: "Tablets are migrated in parallel and independently": one has moved to its node while others still do."""
        return self.tablet_work.is_some() & self._may_settle(n) & ~self.tablet_hosts.has(n)

    @accepts(change_stages)
    def stages_change_while_tablets_move(self) -> Bool:
        """001: "The load balancer is invoked on transition of tablet stages": of those that move, whatever is asked for
        meanwhile, and whether or not what was before is fenced.
        """
        return (self.transition_state == T.tablet_migration) & self.tablet_work.is_some()

    @accepts(fence_stages)
    def stages_are_fenced_while_tablets_move(self) -> Bool:
        """001: vnodes and tablets "share the infrastructure for fencing": a stage has its barrier, and waits for no other."""
        moves = (self.transition_state == T.tablet_migration) & self.tablet_work.is_some()
        return moves & (self.fence_version < self.version)

    @accepts(start_resize_finalization)
    def tablets_are_resized_where_there_is_no_work(self) -> Bool:
        """001: "If there is no work for the state machine" the balancer is invoked, which finds tables to split or merge,
        too: also where a node is down, for no tablet moves then, or has yet to be emptied.
        """
        only_when(self.release.finalization)
        asked = some(self.topology_request[n].is_some() & ~self._is_emptied_first(n) for n in Node)
        return self.is_at_rest() & ~asked & self.global_request.is_none()

    @accepts(lock)
    def the_topology_can_be_locked_at_rest(self) -> Bool:
        """Whoever locks it from outside waits for what goes on, and for no request."""
        only_when(self.release.finalization)
        return self.is_at_rest()

    @accepts(abort)
    def requests_to_leave_are_aborted_at_any_time(self, n: Term[Node]) -> Bool:
        """The operator wants the node to stay after all, whatever goes on while its request waits."""
        only_when(self.release.parallel_draining)
        return self.topology_request[n].any_of(Request.leave, Request.remove)

    @accepts(restart)
    def dead_nodes_come_back(self, n: Term[Node]) -> Bool:
        """001: a member "serves the slice of the ring that belongs to it", or streams: also one that was dead meanwhile,
        unless it is removed or replaced, or was told that its request is done.
        """
        ended = self._in_transition(n) & self.done.has(n)
        return self.members.has(n) & self._is_missed(n) & ~ended

    @accepts(pass_barrier)
    def barriers_wait_for_no_node_that_is_given_up(self) -> Bool:
        """001: "the entire cluster learns about it", but for a dead node that is removed or replaced."""
        return (self.barrier == Barrier.running) & ~some(self._is_missed(n) for n in Node)

    @independent(
        join_group0,
        insert_tokens,
        take_tokens,
        commit_cdc_generation,
        start_barrier,
        pass_barrier,
        fail_barrier,
        wait_ring_delay,
        stream_ranges,
        read_new,
        finish_bootstrap,
        remove_replaced,
        finish_replace,
        leave_token_ring,
        report_completion,
        shut_down,
        remove_from_group0,
        finish_left,
        give_up,
        roll_back_join,
        roll_back_leave,
        complete_rollback,
        finish_rebuild,
        fail_to_rebuild,
        of=(
            Record.topology_request,
            Record.global_request,
            Record.cleanup_needed,
            Record.unpublished_cdc_generations,
        ),
    )
    def operations_wait_for_no_other(self) -> None:
        """001: "After the entire cluster learns about it, streaming starts. When streaming finishes, we move to
        write_both_read_new": what is asked for meanwhile stays in the map, and other work is left until later.
        """

    @independent(
        accept_join,
        accept_replace,
        start_decommission,
        start_remove,
        start_rebuild,
        start_balancing,
        start_draining,
        settle_tablets,
        leave_tablet_track,
        finish_resize,
        prepare_generation,
        start_truncating,
        start_snapshots,
        clear_request_session,
        finish_global_request,
        fence_before_cleanup,
        clean_up,
        finish_cleanup,
        of=(Record.unpublished_cdc_generations, Record.done, Record.error),
    )
    def what_is_over_holds_up_nothing(self) -> None:
        """001: "allow pending topology operation to start", when migrations have drained: how the last operation ended does
        not matter, nor whether clients can see its generation.
        """

    @independent(
        cancel,
        reject,
        of=(Record.global_request, Record.cleanup_needed, Record.unpublished_cdc_generations),
    )
    def refusals_wait_for_no_work(self) -> None:
        """001: "Separately from the per-node requests, there is also a 'global' request field": whoever asks in vain is told so,
        whatever is to be done for the cluster.
        """

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(_ask, "no request of the node is pending", because=why.NO_OTHER),
        equivalent_loss(_ask, Record.done, Record.error, because=why.NO_ROW_YET),
        equivalent_drop(_begin, "node is normal", "node is none", because=why.ASKED_IN_IT),
        equivalent_drop(
            _is_its_turn,
            "no request to replace comes before it",
            "no request to remove comes before it",
            because=why.A_DEAD_NODE_WAITS,
        ),
        equivalent_weakening(
            _is_its_turn, "no request to leave comes before it", because=why.UNNEEDED
        ),
        equivalent_loss(
            _enter, Record.barrier, Record.streamed, Record.giving_up, because=why.STILL_TRUE
        ),
        equivalent_drop(_barrier_passed, "barrier passed", because="what fails may fail before"),
        equivalent_weakening(
            ask_to_replace, "the replaced node is down, and asks for nothing", because=why.CANCELLED
        ),
        equivalent_weakening(ask_to_leave, "node is normal and up", because=why.CANCELLED),
        equivalent_weakening(ask_to_remove, "node is normal and down", because=why.CANCELLED),
        equivalent_weakening(ask_to_remove, "another node stays", because="it takes two down"),
        equivalent_weakening(ask_to_rebuild, "node is normal and up", because=why.CANCELLED),
        equivalent_loss(ask_globally, Record.global_request, because=why.NOT_ASKED),
        equivalent_drop(cancel, "it is not paused", because=why.PAUSED),
        equivalent_replacement(cancel, "it is not paused", because=why.PAUSED),
        equivalent_weakening(cancel, "no request can proceed", because=why.WAITING),
        equivalent_weakening(reject, "its request can proceed, or is paused", because=why.WAITING),
        equivalent_weakening(
            reject, "the topology is at rest, or drains nodes", because=why.ABORTED
        ),
        equivalent_drop(crash, "node is up", because=why.CRASHES),
        equivalent_loss(crash, Record.down, because=why.CRASHES),
        equivalent_weakening(restart, "node is down", because=why.NOT_DOWN),
        equivalent_replacement(restart, "none for absent", because=why.NOT_IN_YET),
        equivalent_weakening(
            start_rebuild, "no request to join comes before it", because=why.UNNEEDED
        ),
        equivalent_drop(
            fail_to_rebuild, "a node is down, or there is no source", because=why.MAY_FAIL
        ),
        equivalent_replacement(
            fail_to_rebuild, "a node is down, or there is no source", because=why.MAY_FAIL
        ),
        equivalent_drop(start_barrier, "nothing is given up", because="one more does no harm"),
        equivalent_weakening(fail_barrier, "a node that takes part is down", because=why.LOST),
        equivalent_replacement(fail_barrier, "a node that takes part is down", because=why.LOST),
        equivalent_replacement(_try_again, "running for none", because="it is tried at once"),
        equivalent_loss(lose_barrier, Record.barrier, because="an answer that is not lost"),
        equivalent_weakening(
            start_draining,
            "the request of the node is paused, or it was replaced",
            because=why.NO_TABLETS,
        ),
        equivalent_loss(_enter_tablet_track, Record.tablet_work, because=why.MOVES_NOTHING),
        equivalent_replacement(start_balancing, "draining for balancing", because=why.LIKE_OTHERS),
        equivalent_drop(move_tablet, "no tablet is in transition", because=why.WITH_OTHERS),
        equivalent_drop(settle_tablets, "tablets are in transition", because=why.RESTS),
        equivalent_drop(settle_tablets, "in a track in which tablets move", because=why.IN_TRACKS),
        equivalent_drop(finish_draining_node, "the node holds tablets", because="else it is done"),
        equivalent_weakening(finish_draining_node, "the node is to leave", because=why.STANDS_IN),
        equivalent_weakening(
            finish_draining_node, "another node stays, or has taken some", because=why.STANDS_IN
        ),
        equivalent_replacement(
            finish_draining_node, "for remove", "replaced_id", "for n2", because=why.STANDS_IN
        ),
        equivalent_loss(finish_draining_node, Record.tablet_work, because=why.FOUND_LATER),
        equivalent_drop(settle_tablets_on, "tablets are moving", because=why.NEW_TABLES),
        equivalent_drop(settle_tablets_on, "the node holds no tablets", because=why.NEW_TABLES),
        equivalent_weakening(settle_tablets_on, "the node is normal", because=why.REBUILT),
        equivalent_loss(settle_tablets_on, Record.tablet_hosts, because=why.NEW_TABLES),
        equivalent_replacement(settle_tablets_on, "no for yes", because=why.NEW_TABLES),
        equivalent_drop(move_last_tablet, "the node holds tablets", because=why.NEW_TABLES),
        equivalent_loss(move_last_tablet, Record.tablet_hosts, because=why.NEW_TABLES),
        equivalent_replacement(
            move_last_tablet,
            "tablet_hosts[n2] becomes: heir for n",
            "tablet_hosts[n2] becomes: n for heir",
            because="it may not have been the node's last one",
        ),
        equivalent_loss(roll_back_join, Record.tablet_work, because=why.OF_OLDER_RELEASES),
        equivalent_loss(change_stages, Record.version, because=why.OTHER_STAGES),
        equivalent_replacement(change_stages, "0 for 1", "2 for 1", because=why.OTHER_STAGES),
        equivalent_replacement(start_balancing, "leave for remove", because=why.MOVES_NOTHING),
        equivalent_loss(fence_stages, Record.fence_version, because=why.FENCED_NEXT),
        equivalent_weakening(
            move_last_tablet,
            "tablets are moved, and it is not the last node to be drained",
            because=why.LOOKED_AT_AGAIN,
        ),
        equivalent_weakening(move_last_tablet, "the other node is normal", because=why.NO_MOVE),
        equivalent_weakening(
            settle_tablets,
            "no node is drained that others can stand in for",
            because=why.STILL_NORMAL,
        ),
        equivalent_drop(create_table, "the node is up, without tablets", because=why.TAKEN),
        equivalent_loss(create_table, Record.tablet_hosts, because=why.ELSEWHERE),
        equivalent_replacement(create_table, "no for yes", because=why.ELSEWHERE),
        equivalent_drop(drop_table, "the node holds tablets", because=why.ELSEWHERE),
        equivalent_loss(drop_table, Record.tablet_hosts, because=why.OTHER_TABLES),
        equivalent_replacement(drop_table, "yes for no", because=why.OTHER_TABLES),
        equivalent_drop(
            publish_generation, "a generation is not published yet", because=why.PUBLISHED_AGAIN
        ),
        equivalent_weakening(_take_up, "no request of a node can proceed", because=why.UNNEEDED),
        equivalent_replacement(_take_up, "some n2", "rebuilding for normal", because=why.UNNEEDED),
        equivalent_drop(fence_before_cleanup, "cleanup is needed", because=why.MORE),
        equivalent_drop(fence_before_cleanup, "older requests are not fenced", because=why.MORE),
        equivalent_drop(
            clean_up, "node holds rows of ranges that it has lost", because=why.REMOVED_AGAIN
        ),
        equivalent_drop(
            _has_moving_tablets, "in the tablet migration track", because=why.IN_NO_OTHER
        ),
        equivalent_drop(fence_stages, "older requests are not fenced", because="it stays up"),
        equivalent_loss(lock, Record.transition_state, because="a lock that is not taken"),
        equivalent_replacement(lock, "null for lock", because="a lock that is not taken"),
        equivalent_weakening(
            start_decommission, "no request to join comes before it", because=why.UNNEEDED
        ),
        equivalent_drop(
            start_remove, "no request to join comes before it", because=why.A_DEAD_NODE_WAITS
        ),
        equivalent_drop(
            join_group0, "the node is up", "the node is not in group0", because=why.JOINS_AGAIN
        ),
        equivalent_drop(remove_replaced, "it is still in group0", because=why.REMOVED_AGAIN),
        equivalent_replacement(remove_replaced, "it is still in group0", because=why.REMOVED_AGAIN),
        equivalent_drop(_joining, "a node joins group0", because=why.AS_FAR),
        equivalent_drop(_joining, "the node is in transition", because=why.AS_FAR),
        equivalent_drop(_joining, "the operation goes on", because=why.JOINS_OR_NOT),
        equivalent_drop(
            stream_ranges, "it has not ended yet", "session is open", because=why.STREAMED_AGAIN
        ),
        equivalent_drop(
            stream_with_dead_node, "a node that takes part is down", because=why.MAY_FAIL
        ),
        equivalent_replacement(
            stream_with_dead_node, "a node that takes part is down", because=why.MAY_FAIL
        ),
        equivalent_drop(_streaming_fails, "it has not ended yet", because=why.MAY_FAIL),
        equivalent_loss(_streaming_fails, Record.giving_up, because=why.MAY_FAIL),
        equivalent_drop(read_new, "writes go to both rings", because="nothing streams otherwise"),
        equivalent_weakening(read_new, "streaming is done", because=why.NOT_STREAMED),
        equivalent_weakening(read_new, "a node that leaves has no tablets", because=why.IS_DEAD),
        equivalent_drop(_past_read_fence, "reads use the new ring", because=why.ONLY_THERE),
        equivalent_drop(
            report_completion, "the request is not reported as done", because=why.REPORTED_AGAIN
        ),
        equivalent_drop(shut_down, "it is up", because="what is down may be told as well"),
        equivalent_drop(remove_from_group0, "it is still in group0", because=why.REMOVED_AGAIN),
        equivalent_drop(_leaving_ring, "a node has left the token ring", because=why.OF_NO_OTHER),
        equivalent_drop(give_up_join, "it is not given up yet", because=why.GIVEN_UP_AGAIN),
        equivalent_loss(give_up_join, Record.giving_up, because=why.GIVEN_UP_AGAIN),
        equivalent_drop(give_up_with_tablets, "it is not given up yet", because=why.MAY_FAIL),
        equivalent_drop(give_up_with_tablets, "a node that leaves has tablets", because=why.DIES),
        equivalent_replacement(give_up_with_tablets, "left for removing", because=why.MAY_FAIL),
    )

    not_in_the_newest_version = unexercised(
        vacuous(TopologyProperties.tablets_are_drained_where_a_node_leaves, because=why.NO_STATE),
        vacuous(TopologyProperties.paused_requests_do_not_begin, because=why.DRAINED_BEFORE),
    )

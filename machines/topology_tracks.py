"""What the topology coordinator does beside operations on nodes: barriers, tablets, CDC generations, globals.

The tablet migration track and the tracks of global requests exclude all topology changes (001, "Load
balancing"); they share the barriers with them. `topology_control.py` has the operations on nodes.
"""

from __future__ import annotations

from stagewright.machines.tablet_nodes import Node
from stagewright.machines.topology_group0 import COORDINATOR, NOT_NEEDED, OPERATOR
from stagewright.machines.topology_rebuild import TopologyRebuild
from stagewright.machines.topology_requests import NETWORK, TopologyRequests
from stagewright.machines.topology_states import (
    Barrier,
    GlobalRequest,
    NodeState,
    TransitionState,
    Work,
)
from stagewright.spec import (
    Actor,
    Bool,
    Fairness,
    Term,
    action,
    equivalent_drop,
    equivalent_loss,
    equivalents,
    every,
    only_when,
    require,
    some,
)

WEAK = Fairness.WEAK
BALANCER = Actor("load balancer")
PUBLISHER = Actor("CDC generation publisher")
T = TransitionState
NULL = T.null


class TopologyTracks(TopologyRebuild):
    """Barriers, the tablet migration track, CDC generations, and global requests."""

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

    @action(by=NETWORK, spends=TopologyRequests.faults)
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

    @action(by=BALANCER, spends=TopologyRequests.requests)
    def start_balancing(self) -> None:
        """There is no other work: the load balancer's plan moves tablets into transition, and enters the track."""
        self._enter_tablet_track(Work.balancing)

    @action(by=BALANCER, fair=WEAK)
    def start_draining(self, n: Term[Node]) -> None:
        """A node whose request is paused still holds tablets: the load balancer moves them away."""
        only_when(self.release.parallel_draining)
        require(self._paused(n), "the request of the node is paused")
        self._enter_tablet_track(Work.draining)

    def _enter_tablet_track(self, work: Work) -> None:
        require(self.is_at_rest(), "the topology is at rest")
        require(~self._pending(), "no topology change is pending")
        require(self.global_request.is_none(), "no global request is pending")
        self.transition_state = T.tablet_migration
        self.tablet_work = work
        self._enter()

    @action(by=OPERATOR, spends=TopologyRequests.requests)
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
        leaving = some(self._paused(n) & self._others_stay(n) for n in Node)
        drains = (self.tablet_work == Work.draining) & leaving
        require(~drains, "no node is drained that others can stand in for")
        self.tablet_work = None

    @action(by=COORDINATOR, fair=WEAK)
    def finish_draining_node(self, n: Term[Node]) -> None:
        """The last tablet of a node that is to leave has moved away."""
        require(self.tablet_work == Work.draining, "a node is drained")
        require(self.tablet_hosts.has(n), "the node holds tablets")
        leaves = self._paused(n) | self._is(n, NodeState.decommissioning, NodeState.removing)
        require(leaves, "the node is to leave")
        require(self._others_stay(n), "another node stays")
        self.tablet_hosts.discard(n)
        self.tablet_work = None

    @action(by=COORDINATOR, spends=TopologyRequests.requests)
    def settle_tablets_on(self, n: Term[Node]) -> None:
        """Some of the tablets in transition have come to rest on a node that had none."""
        require(self.tablet_work.any_of(Work.balancing, Work.moving), "tablets are moving")
        require(self.stays(n), "the node is normal and stays")
        require(~self.tablet_hosts.has(n), "the node holds no tablets")
        self.tablet_hosts.add(n)

    @action(by=OPERATOR, spends=TopologyRequests.requests)
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

    @action(by=COORDINATOR, spends=TopologyRequests.requests)
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

    @action(by=OPERATOR, spends=TopologyRequests.requests)
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

    # -- what no promise can tell ----------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(
            start_barrier, "nothing is given up", because="one barrier more does no harm"
        ),
        equivalent_drop(
            fail_barrier, "a node that takes part is down", because="an answer may be lost, too"
        ),
        equivalent_loss(
            lose_barrier, TopologyRebuild.barrier, because="an answer that is not lost"
        ),
        equivalent_drop(
            start_draining,
            "the request of the node is paused",
            because="a node without tablets has nothing to drain",
        ),
        equivalent_loss(
            _enter_tablet_track, TopologyRebuild.tablet_work, because="a plan that moves nothing"
        ),
        equivalent_drop(
            move_tablet,
            "no tablet is in transition",
            because="a tablet that moves with others, or not at all",
        ),
        equivalent_loss(
            move_tablet,
            TopologyRebuild.tablet_work,
            because="a tablet that moves with others, or not at all",
        ),
        equivalent_drop(
            settle_tablets,
            "tablets are in transition",
            "in the tablet migration track",
            because="what is at rest comes to rest; this release moves tablets in no other state",
        ),
        equivalent_drop(
            finish_draining_node,
            "the node holds tablets",
            because="a node that holds no tablets is drained",
        ),
        equivalent_drop(
            finish_draining_node,
            "the node is to leave",
            "another node stays",
            because="only a node that others can stand in for is let go",
        ),
        equivalent_loss(
            finish_draining_node,
            TopologyRebuild.tablet_work,
            because="that they have come to rest may be found later",
        ),
        equivalent_drop(
            settle_tablets_on,
            "tablets are moving",
            "the node is normal and stays",
            "the node holds no tablets",
            because="a new table may have tablets there at any time, or none",
        ),
        equivalent_loss(
            settle_tablets_on,
            TopologyRebuild.tablet_hosts,
            because="a new table may have tablets there at any time, or none",
        ),
        equivalent_drop(
            create_table,
            "the node is up and has no tablets",
            because="a table that has its tablets elsewhere",
        ),
        equivalent_loss(
            create_table,
            TopologyRebuild.tablet_hosts,
            because="a table that has its tablets elsewhere",
        ),
        equivalent_loss(
            start_resize_finalization,
            TopologyRebuild.transition_state,
            because="tablets that are not resized",
        ),
        equivalent_drop(
            publish_generation,
            "a generation is not published yet",
            because="what is published may be published again",
        ),
        equivalent_drop(_take_up, "no request of a node can proceed", because=NOT_NEEDED),
        equivalent_drop(
            fence_before_cleanup,
            "cleanup is needed",
            "older requests are not fenced",
            because="a barrier more does no harm",
        ),
        equivalent_drop(
            clean_up,
            "node holds rows of ranges that it has lost",
            because="a node that holds no such rows removes none",
        ),
        equivalent_loss(lock, TopologyRebuild.transition_state, because="a lock that is not taken"),
    )

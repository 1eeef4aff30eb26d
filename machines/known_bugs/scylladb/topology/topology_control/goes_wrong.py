"""Mistakes put back into `TopologyControl`: what goes wrong."""

from __future__ import annotations

from stagewright.machines.scylladb import cluster
from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.topology.control.topology_record import (
    COORDINATOR,
    NODE,
    NORMAL,
    OPERATOR,
    T,
)
from stagewright.machines.scylladb.topology.topology_control import TopologyControl
from stagewright.machines.scylladb.topology.topology_states import (
    Barrier,
    GlobalRequest,
    NodeState,
    Owner,
    Request,
    TransitionState,
    Work,
)
from stagewright.spec import Bool, Fairness, Term, action, choose, every, only_when, require, some
from stagewright.spec.declarations.budgets import BudgetName
from stagewright.spec.known_bugs import known_bug, known_bugs_in

ONE_FAULT: dict[BudgetName, int | None] = {TopologyControl.requests: 1, TopologyControl.faults: 1}
TWO: dict[BudgetName, int | None] = {TopologyControl.requests: 2, TopologyControl.faults: 0}
WEAK = Fairness.WEAK
ONE: dict[BudgetName, int | None] = {TopologyControl.requests: 1, TopologyControl.faults: 0}
Budgets = dict[BudgetName, int | None]
LEARNS = 'design document 001: "After the entire cluster learns about it"'
IN_THE_MAP = (
    'design document 001: "When a request is issued to a node the entry is added to the map"'
)


@known_bug(
    "001-29",
    "design document 001: state transition diagram for nodes",
    breaks=TopologyControl.nodes_follow_the_diagram,
    budgets=ONE_FAULT,
)
class TheDecommissionedIsRemoved(TopologyControl):
    """A node dies while it is decommissioned. The operation goes on as a removal, and its state with it."""

    @action(by=COORDINATOR)
    def go_on_without(self, n: Term[Node]) -> None:
        """The others stream what the node had."""
        require(self.down.has(n), "the node is down")
        both = self.transition_state == TransitionState.write_both_read_old
        require(both, "writes go to both rings")
        self._move(n, NodeState.decommissioning, NodeState.removing)


@known_bug(
    "001-30",
    "design document 001: one of the nodes is in such a state",
    breaks=TopologyControl.one_node_in_transition,
    budgets=TWO,
)
class TwoNodesAreRebuiltAtOnce(TopologyControl):
    """A rebuild does not change the topology, so that nobody waited for one: another began beside it."""

    @action(by=COORDINATOR, fair=WEAK)
    def start_rebuild(self, n: Term[Node]) -> None:
        """The node streams its data anew, whether or not another one does."""
        require(self.transition_state == TransitionState.null, "there is no transition state")
        require(self.topology_request[n] == Request.rebuild, "the node asks for rebuild")
        self._lacks_no_node(n, Request.rebuild)
        self._is_its_turn(Request.rebuild)
        self.node_state[n] = NodeState.rebuilding
        self.topology_request[n] = None
        self._open_rebuild_session()
        self._enter(new_version=False)

    def _has_source(self, n: Term[Node]) -> Bool:
        normal = NodeState.normal
        return some((m != n) & self._is(m, normal) & ~self.down.has(m) for m in Node)

    def _rebuilt(self, n: Term[Node]) -> None:
        self._move(n, NodeState.rebuilding, NodeState.normal)
        others = some((m != n) & self._is(m, NodeState.rebuilding) for m in Node)
        self.session = others


@known_bug(
    "001-31",
    'design document 001: a node that leaves streams its data "to nodes that took over"',
    breaks=TopologyControl.somebody_stays_where_a_node_goes,
    budgets=ONE,
)
class TheLastNodeMayLeave(TopologyControl):
    """Only for a node with tablets it was asked whether another one can take them: the last one left the ring."""

    @action(by=OPERATOR, spends=TopologyControl.requests)
    def ask_to_leave(self, n: Term[Node]) -> None:
        """The operator decommissions a node."""
        require(~self.down.has(n) & self.stays(n), "node is normal and up")
        require(self._others_stay(n) | ~self.tablet_hosts.has(n), "its tablets have a place to go")
        self._ask(n, Request.leave)


@known_bug(
    "001-32",
    'design document 001: "When streaming finishes, we move to write_both_read_new"',
    breaks=TopologyControl.reads_move_when_all_is_streamed,
    budgets=ONE,
)
class ReadsMoveWithTheBarrier(TopologyControl):
    """Reads moved to the new ring as soon as all nodes wrote to both, before anything was streamed."""

    @action(by=COORDINATOR, fair=WEAK)
    def read_new(self, n: Term[Node]) -> None:
        """All nodes have learned of the new ring."""
        both = self.transition_state == TransitionState.write_both_read_old
        require(both, "writes go to both rings")
        require(self._in_transition(n) & ~self.giving_up, "the node's operation goes on")
        require(~self._leaves_with_tablets(n), "a node that leaves has no tablets")
        self._barrier_passed()
        self.transition_state = TransitionState.write_both_read_new
        self.session = False
        self._enter()


@known_bug(
    "001-33",
    'design document 001: a normal node "serves the slice of the ring that belongs to it"',
    breaks=TopologyControl.tokens_belong_to_nodes_of_the_ring,
    budgets=ONE_FAULT,
)
class TokensAreNotGivenBack(TopologyControl):
    """The decommission of a node was rolled back, and the node stayed, without the tokens that it was to hand over."""

    @action(by=COORDINATOR, fair=WEAK)
    def roll_back_leave(self, n: Term[Node]) -> None:
        """The node that was to leave stays."""
        super().roll_back_leave(n)
        self.tokens.discard(n)


@known_bug(
    "001-34",
    'design document 001: with a request pending, "the load balancer will not be invoked"',
    breaks=TopologyControl.the_load_balancer_waits,
    budgets=TWO,
)
class TheBalancerDoesNotLookAtRequests(TopologyControl):
    """Whenever the topology was at rest the balancer had a plan, whoever waited to join."""

    def _enter_tablet_track(self, work: Work) -> None:
        require(self.is_at_rest(), "the topology is at rest")
        require(self.global_request.is_none(), "no global request is pending")
        self.transition_state = TransitionState.tablet_migration
        self.tablet_work = work
        self._enter()


@known_bug(
    "001-78",
    'design document 001: "Once the generation is published, we enter write_both_read_old state"',
    breaks=TopologyControl.what_is_committed_stays_until_it_is_published,
    budgets=ONE_FAULT,
)
class RollbacksTakeGenerationsBack(TopologyControl):
    """The rollback of a bootstrap took the generation back that it had committed: nodes log to its streams, and no
    client is told of them.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def roll_back_join(self, n: Term[Node]) -> None:
        """The node that was to join leaves the token ring, and its generation is dropped."""
        super().roll_back_join(n)
        self.unpublished_cdc_generations = False


@known_bug(
    "001-79",
    'design document 001: "node operations will have to wait for tablet migration track to finish"',
    breaks=TopologyControl.operations_on_nodes_wait_for_the_track,
    budgets=TWO,
)
class RebuildsDoNotWaitForTablets(TopologyControl):
    """A rebuild leaves the ring as it is, so that it began beside the migrations that used the same streams."""

    @action(by=COORDINATOR, fair=WEAK)
    def start_rebuild(self, n: Term[Node]) -> None:
        """The node streams its data anew, also in the tablet migration track."""
        null, tablets = TransitionState.null, TransitionState.tablet_migration
        require(self.transition_state.any_of(null, tablets), "nothing goes on, or tablets move")
        require(~some(self._in_transition(m) for m in Node), "no node is in transition")
        require(self.topology_request[n] == Request.rebuild, "the node asks for rebuild")
        self._lacks_no_node(n, Request.rebuild)
        self._is_its_turn(Request.rebuild)
        self.node_state[n] = NodeState.rebuilding
        self.topology_request[n] = None
        self._open_rebuild_session()
        self._enter(new_version=False)


@known_bug(
    "001-81",
    'design document 001: normal, "serves the slice of the ring that belongs to it"',
    breaks=TopologyControl.who_stays_is_not_shut_down,
    budgets={TopologyControl.requests: 1, TopologyControl.faults: 1},
)
class WhoWasToLeaveShutsDown(TopologyControl):
    """The decommission of a node was rolled back, and the node shut down as it would have at its end."""

    @action(by=COORDINATOR, fair=WEAK)
    def complete_rollback(self, n: Term[Node]) -> None:
        """The node is normal again, and is told to shut down."""
        super().complete_rollback(n)
        self.down.add(n)


@known_bug(
    "001-110",
    'design document 001: "make sure that no reads that started before this point exist in the system"',
    breaks=TopologyControl.older_versions_are_fenced,
    budgets={TopologyControl.requests: 1},
)
class AFailedBarrierMovesNoFence(TopologyControl):
    """A barrier failed, and the coordinator went on after ring_delay without a fence: a node that was slow, and not down,
    read from replicas that got no writes any more.
    """

    @action(by=COORDINATOR, fair=Fairness.WEAK)
    def wait_ring_delay(self) -> None:
        """The failed barrier is put up with."""
        require(self.barrier == Barrier.failed, "barrier failed")
        require(self._waives(), "there is no way back")
        self.barrier = Barrier.waived


@known_bug(
    "001-112",
    "design document 001: a tablet migrates from one replica to another",
    breaks=TopologyControl.tablets_leave_a_node_by_moving,
    budgets={TopologyControl.requests: 2, TopologyControl.faults: 0},
)
class NobodyTakesOver(TopologyControl):
    """The last tablet of a node left it for balance, and the commit did not say where it is now."""

    def _hand_over(self, n: Term[Node], heir: Term[Node]) -> None:
        """It is gone, unless it has stayed."""
        self.tablet_hosts.put(n, n == heir)


@known_bug(
    "001-114",
    'design document 001: a normal node "serves the slice of the ring that belongs to it"',
    breaks=TopologyControl.tokens_belong_to_nodes_of_the_ring,
    budgets=ONE_FAULT,
)
class TokensComeBackWithTheRollback(TopologyControl):
    """While a decommission was rolled back its node had no tokens: requests went to those that had not got its rows."""

    @action(by=COORDINATOR, fair=WEAK)
    def roll_back_leave(self, n: Term[Node]) -> None:
        """The node that was to leave stays, and is not in the ring yet."""
        super().roll_back_leave(n)
        self.tokens.discard(n)

    @action(by=COORDINATOR, fair=WEAK)
    def complete_rollback(self, n: Term[Node]) -> None:
        """The node is normal again, and has its tokens again."""
        back = self.transition_state == TransitionState.rollback_to_normal
        require(back & self._in_transition(n), "the node goes back to normal")
        self._barrier_passed_or_waived()
        self.node_state[n] = NodeState.normal
        self.tokens.add(n)
        self.fence_version = self.version + 1
        self._end(n)
        self.transition_state = TransitionState.tablet_migration
        self._enter()


@known_bug(
    "001-115",
    "design document 001: the order of the transition states",
    breaks=TopologyControl.the_topology_follows_its_table,
    budgets=TWO,
)
class MovesTakeThePlaceOfAResize(TopologyControl):
    """A resize that all nodes had heard of counted as done: an operator's move came before its commit, which never was."""

    def _not_busy(self) -> None:
        free = self.transition_state.any_of(TransitionState.null, TransitionState.tablet_migration)
        resizes = self.transition_state == TransitionState.tablet_resize_finalization
        heard_of = resizes & (self.barrier == Barrier.passed)
        require(free | heard_of, "topology is not busy")


@known_bug(
    "001-161",
    "design document 001: bootstrapping is streaming its part of the ring",
    breaks=TopologyControl.nodes_begin_what_they_asked_for,
    budgets=ONE_FAULT,
)
class ADeadNodeJoins(TopologyControl):
    """Nobody looked whether the node that is to join is up: its row said that it bootstraps, and it was dead."""

    def _alive_enough(self, n: Term[Node], request: Request) -> Bool:
        if request is Request.join:
            return every(self._is(m, NORMAL).implies(~self.down.has(m)) for m in Node)
        return super()._alive_enough(n, request)


@known_bug(
    "001-167",
    'design document 001: a node that leaves streams its data "to nodes that took over"',
    breaks=TopologyControl.somebody_stays_where_a_node_goes,
    budgets=TWO,
)
class TwoLeaveForEachOther(TopologyControl):
    """Who was asked to leave counted as one that stays until it had left: of two nodes each was to go to the other."""

    def stays(self, n: Term[Node]) -> Bool:
        return self._is(n, NodeState.normal)


@known_bug(
    "001-171",
    LEARNS,
    breaks=TopologyControl.barriers_pass_once_all_have_answered,
    budgets=ONE_FAULT,
)
class BarriersAskWhoMoves(TopologyControl):
    """A barrier asked the node that joins or leaves, and none of those that go on to serve."""

    def takes_part(self, n: Term[Node]) -> Bool:
        return self._in_transition(n) & ~self.is_ignored(n)


@known_bug(
    "001-234",
    'design document 001: none, "has no tokens and data to serve"',
    breaks=TopologyControl.tokens_belong_to_nodes_of_the_ring,
    profile="seed",
    budgets=ONE,
)
class TokensAreChosenWithTheRequest(TopologyControl):
    """A node that asked to join had its tokens in the ring at once, before anybody had said that it may."""

    @action(by=NODE, spends=TopologyControl.requests)
    def ask_to_join(self, n: Term[Node]) -> None:
        """A row in state none, with the request to join and with tokens."""
        super().ask_to_join(n)
        self.tokens.add(n)

    def _refuse(self, n: Term[Node]) -> None:
        self.tokens.put(n, self.tokens.has(n) & (self.node_state[n] != NodeState.none))
        super()._refuse(n)


@known_bug(
    "001-347",
    "design document 001: each node removes the rows of the ranges that it has lost",
    breaks=TopologyControl.rows_are_removed_when_nothing_can_write_them,
    sizes={cluster.Node: 3},
    budgets={TopologyControl.requests: 1, TopologyControl.faults: 0},
)
class OneNodeCleansUpForAll(TopologyControl):
    """When the first node had removed its rows, none was taken to hold any: the others kept theirs."""

    @action(by=COORDINATOR, fair=WEAK)
    def clean_up(self, n: Term[cluster.Node]) -> None:
        """A node removes the rows of ranges which it has lost: the cleanup is done."""
        require(self.is_at_rest(), "the topology is at rest")
        require(self.cleanup_needed.has(n) & ~self.down.has(n), "node holds rows of lost ranges")
        require(self.fence_version == self.version, "older requests are fenced")
        for m in cluster.Node:
            self.cleanup_needed.discard(m)


@known_bug(
    "001-372",
    IN_THE_MAP,
    breaks=TopologyControl.results_stay_until_the_node_asks_again,
    budgets={TopologyControl.requests: 1},
)
class ResultsAreForgotten(TopologyControl):
    """What had become of requests was known to the coordinator that had served them: the next one knew of none."""

    @action(by=COORDINATOR, spends=TopologyControl.faults)
    def fail_over(self) -> None:
        """Another node becomes the topology coordinator."""
        super().fail_over()
        for n in Node:
            ended = self.done.has(n) & ~self._in_transition(n)
            self.asked[n] = choose(ended, None, self.asked[n])
            self.error.put(n, self.error.has(n) & ~ended)
            self.done.put(n, self.done.has(n) & ~ended)


@known_bug(
    "001-407",
    'design document 001: "again the whole cluster needs to learn about it"',
    breaks=TopologyControl.older_versions_are_fenced,
    budgets={TopologyControl.requests: 1, TopologyControl.faults: 0},
)
class WhoLeavesIsToldAtOnce(TopologyControl):
    """The operator was told that a node is decommissioned in the commit that took its tokens, and shut it down: nodes that
    had not learned of that still sent it requests, and no barrier waited for them.
    """

    @action(by=COORDINATOR, fair=Fairness.WEAK)
    def leave_token_ring(self, n: Term[Node]) -> None:
        """The node has no tokens any more, and its request is done."""
        super().leave_token_ring(n)
        self._end(n)


@known_bug(
    "001-409",
    'design document 001: "When streaming finishes, we move to write_both_read_new state"',
    breaks=TopologyControl.operations_are_given_up_by_who_saw_them_fail,
    budgets={TopologyControl.requests: 1},
)
class NewCoordinatorsUndoWhatTheyFind(TopologyControl):
    """A new coordinator, which did not know how far the streams of a join were, undid it: hours of streaming were lost, and
    the node had to be set up anew.
    """

    @action(by=COORDINATOR, spends=TopologyControl.faults)
    def fail_over(self) -> None:
        """Another node becomes the topology coordinator, and gives up what streams."""
        streams = self.transition_state == T.write_both_read_old
        self.barrier = Barrier.none
        self.streamed = False
        self.giving_up = streams & some(self._in_transition(n) for n in Node)


@known_bug(
    "001-410",
    'design document 001: rebuilding "requires streaming data", and ends with it',
    breaks=TopologyControl.rebuilds_fail_where_nodes_are_missing,
    budgets={TopologyControl.requests: 1},
)
class NewCoordinatorsFailRebuilds(TopologyControl):
    """A new coordinator, which had asked no node to stream, ended the rebuild that it found, with an error."""

    @action(by=COORDINATOR, spends=TopologyControl.faults)
    def fail_over(self) -> None:
        """Another node becomes the topology coordinator."""
        super().fail_over()
        found = some(self._is(n, NodeState.rebuilding) for n in Node)
        self.session = self.session & ~found
        for n in Node:
            ends = self._is(n, NodeState.rebuilding)
            self.node_state[n] = choose(ends, NodeState.normal, self.node_state[n])
            self.done.put(n, self.done.has(n) | ends)
            self.error.put(n, self.error.has(n) | ends)


@known_bug(
    "001-373",
    'design document 001: "a map of topology requests per node"',
    breaks=TopologyControl.requests_end_each_for_itself,
    sizes={Node: 3},
)
class AllThatWaitAreAborted(TopologyControl):
    """To abort the request of one node aborted those of all nodes that waited until they had no tablets."""

    @action(by=OPERATOR, spends=TopologyControl.faults)
    def abort(self, n: Term[Node]) -> None:
        """The operator aborts a request to leave, and with it all that are paused."""
        only_when(self.release.parallel_draining)
        require(self._wants_to_go(n), "a request to leave is pending or paused")
        for m in Node:
            goes = (m == n) | self._paused(m)
            self.topology_request[m] = choose(goes, None, self.topology_request[m])
            self.done.put(m, self.done.has(m) | goes)
            self.error.put(m, self.error.has(m) | goes)


@known_bug(
    "001-374",
    IN_THE_MAP,
    breaks=TopologyControl.results_stay_until_the_node_asks_again,
    budgets={TopologyControl.faults: 2, TopologyControl.requests: 1},
    sizes={Node: 3},
)
class ARestartMendsTheResult(TopologyControl):
    """A rebuild that had failed was shown as done well once its node had been restarted."""

    @action(by=OPERATOR)
    def restart(self, n: Term[Node]) -> None:
        """Node `n` comes back, with its data for all that it knows."""
        super().restart(n)
        rebuilt = (self.asked[n] == Request.rebuild) & self.done.has(n)
        self.error.put(n, self.error.has(n) & ~rebuilt)


@known_bug(
    "001-381",
    'design document 001: the field has "one of the supported global topology requests"',
    breaks=TopologyControl.global_requests_are_not_overwritten,
    budgets={TopologyControl.faults: 0},
)
class TheLastGlobalRequestCounts(TopologyControl):
    """A global request took the place of another one that was not taken up yet, and whose client was never answered."""

    @action(by=OPERATOR, spends=TopologyControl.requests)
    def ask_globally(self, request: Term[GlobalRequest]) -> None:
        """A request that affects the entire cluster, while none is worked on."""
        worked_on = self.transition_state.any_of(
            *(state for state in TransitionState if state.owner is Owner.request),
            TransitionState.commit_cdc_generation,
        )
        require(self.global_request.is_none() | ~worked_on, "none is worked on")
        self.global_request = request


@known_bug(
    "001-395",
    'design document 001: "operations that don\'t affect any specific node but the entire cluster"',
    breaks=TopologyControl.requests_on_tables_open_a_session,
    budgets={TopologyControl.requests: 1},
)
class NewCoordinatorsTruncateAgain(TopologyControl):
    """A coordinator that found a TRUNCATE opened its session, as if nobody had worked for it yet: what clients had written
    since the table was truncated was removed as well.
    """

    @action(by=COORDINATOR, spends=TopologyControl.faults)
    def fail_over(self) -> None:
        """Another node becomes the topology coordinator, and begins with the request."""
        super().fail_over()
        tables = self.transition_state.any_of(
            TransitionState.truncate_table, TransitionState.snapshot_tables
        )
        self.session = self.session | tables


@known_bug(
    "001-396",
    IN_THE_MAP,
    breaks=TopologyControl.requests_change_nothing_that_goes_on,
    budgets={TopologyControl.requests: 1},
)
class AbortsStopTheDrain(TopologyControl):
    """With a request to leave that was aborted the transitions of the tablets went that were moved for it: a replica that had
    been streamed to stayed where nobody knew of it.
    """

    @action(by=OPERATOR, spends=TopologyControl.faults)
    def abort(self, n: Term[Node]) -> None:
        """The operator aborts a request to leave; nothing need be drained any more."""
        super().abort(n)
        drains = self.tablet_work == Work.draining
        self.tablet_work = choose(drains, None, self.tablet_work)


@known_bug(
    "P02",
    "scylladb #20865",
    breaks=TopologyControl.nobody_waits_for_a_node_that_was_told_to_shut_down,
    budgets={TopologyControl.requests: 1, TopologyControl.faults: 1},
)
class LeftTokenRingStartsAgain(TopologyControl):
    """A commit raced, the coordinator entered left_token_ring again and began from its top: its barrier
    asked the node that had been told to shut down, and failed.
    """

    def _still_matters(self) -> None:
        """It was not looked at whether the request was reported as done already."""


@known_bug(
    "P06",
    "scylladb #16741",
    breaks=TopologyControl.what_streams_has_an_open_session,
    budgets=ONE,
)
class RebuildWithoutSession(TopologyControl):
    """A rebuild began without a session: every mutation that it streamed was rejected."""

    def _open_rebuild_session(self) -> None:
        """Forgotten."""


@known_bug(
    "P14",
    "scylladb #14885",
    breaks=TopologyControl.left_nodes_are_out_of_group0,
    budgets={TopologyControl.requests: 1, TopologyControl.faults: 1},
)
class ReplacedNodeStaysInGroup0(TopologyControl):
    """The replaced node was left before it was removed from the raft configuration, which was done now and
    then only: the coordinator could sleep with a dead member.
    """

    def _replaced_is_out(self, n: Term[Node]) -> None:
        """It was not waited for."""


@known_bug(
    "R01",
    "design document 001: tablets of a node that is replaced",
    breaks=TopologyControl.tablets_leave_a_node_by_moving,
    budgets=ONE_FAULT,
)
class TabletsVanishWithTheReplacedNode(TopologyControl):
    """The commit that made the replaced node left took its replicas out of the tablet map, with nothing in their
    place.
    """

    def _take_the_place(self, n: Term[Node]) -> None:
        super()._take_the_place(n)
        for m in Node:
            dead = self.replaced_id[n] == m
            self.tablet_hosts.put(m, self.tablet_hosts.has(m) & ~dead)


@known_bug(
    "R02",
    "design document 001: tablets of a node that is replaced",
    breaks=TopologyControl.left_nodes_hold_no_tablets,
    profile="scylla-2025.4",
    budgets=ONE_FAULT,
)
class NothingDrainsFromTheReplacedNode(TopologyControl):
    """Tablets drained from nodes that leave alone; the node that was replaced was left while it held some."""

    def _must_be_empty(self, n: Term[Node]) -> Bool:
        return super()._must_be_empty(n) & ~self._being_replaced(n)


@known_bug(
    "R04",
    "design document 001: rebuilding is streaming from other replicas",
    breaks=TopologyControl.a_rebuild_is_done_when_it_has_streamed,
    budgets=ONE,
)
class NodeIsRebuiltFromNobody(TopologyControl):
    """Nobody looked whether there is another replica: a node is rebuilt in a cluster of one."""

    def _has_source(self, n: Term[Node]) -> Bool:
        return super()._has_source(n) | self.in_old_ring(n)


@known_bug(
    "T17",
    "scylladb PR #23751",
    breaks=(TopologyControl.node_state_fits_transition_state, TopologyControl.every_request_ends),
    profile="scylla-2025.4",
    budgets={TopologyControl.requests: 2, TopologyControl.faults: 0},
)
class TabletIsMovedWhileANodeLeaves(TopologyControl):
    """move_tablet set the tablet migration track without looking whether the topology was busy: called
    while tablets drained from a node, it threw the state of the decommission away, which never went on.
    """

    def _not_busy(self) -> None:
        free = self.transition_state.any_of(T.null, T.tablet_migration, T.tablet_draining)
        require(free, "nothing but draining goes on")


BUGS = known_bugs_in(globals())

"""Mistakes put back into `TopologyControl`: who is refused, or waits."""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.topology.control.topology_record import (
    BALANCER,
    COORDINATOR,
    NODE,
    NORMAL,
    OPERATOR,
    PUBLISHER,
    TopologyRecord,
)
from stagewright.machines.scylladb.topology.topology_control import TopologyControl
from stagewright.machines.scylladb.topology.topology_states import (
    GlobalRequest,
    NodeState,
    Request,
    TransitionState,
    Work,
)
from stagewright.spec import Bool, Fairness, Term, action, every, require, some
from stagewright.spec.declarations.budgets import BudgetName
from stagewright.spec.known_bugs import known_bug, known_bugs_in

ISSUED = 'design document 001: "When a request is issued to a node the entry is added to the map"'
TWO: dict[BudgetName, int | None] = {TopologyControl.requests: 2, TopologyControl.faults: 0}
TWO_AND_A_FAULT: dict[BudgetName, int | None] = {
    TopologyControl.requests: 2,
    TopologyControl.faults: 1,
}
STARTS = 'design document 001: "allow pending topology operation to start"'
Budgets = dict[BudgetName, int | None]
ONE_FAULT: Budgets = {TopologyControl.requests: 1, TopologyControl.faults: 1}
BALANCED = 'design document 001: "If there is no work for the state machine, tablet load balancer is invoked"'
ONE: Budgets = {TopologyControl.requests: 1, TopologyControl.faults: 0}
ONE_REQUEST = {TopologyRecord.requests: 1, TopologyRecord.faults: 0}
TWO_REQUESTS = {TopologyRecord.requests: 2, TopologyRecord.faults: 0}
INDEPENDENTLY = 'design document 001: "Tablets are migrated in parallel and independently"'
NO_WORK = 'design document 001: "If there is no work for the state machine"'
WEAK = Fairness.WEAK


@known_bug(
    "001-15",
    "design document 001: the entry is added to the map",
    breaks=TopologyControl.requests_are_issued_at_any_time,
    budgets={TopologyControl.faults: 0},
)
class OneRequestAtATime(TopologyControl):
    """A node operation is refused while another node asks for one, as if there were no map of them."""

    def _ask(self, n: Term[Node], request: Request | Term[Request]) -> None:
        super()._ask(n, request)
        require(every(self.topology_request[m].is_none() for m in Node), "no node asks")


@known_bug(
    "001-16",
    "design document 001: separately from the per-node requests, a global one",
    breaks=TopologyControl.global_requests_are_issued_at_any_time,
    budgets={TopologyControl.faults: 0},
)
class GlobalRequestsWaitForNodes(TopologyControl):
    """A global request is refused while a node operation goes on."""

    @action(by=OPERATOR, spends=TopologyControl.requests)
    def ask_globally(self, request: Term[GlobalRequest]) -> None:
        """A request that affects the entire cluster, at rest."""
        super().ask_globally(request)
        require(self.is_at_rest(), "the topology is at rest")


@known_bug("001-48", ISSUED, breaks=TopologyControl.nodes_ask_to_join_at_any_time, budgets=TWO)
class JoiningWaitsForRest(TopologyControl):
    """JOIN_NODE_REQUEST is refused while another node joins or leaves."""

    @action(by=NODE, spends=TopologyControl.requests)
    def ask_to_join(self, n: Term[Node]) -> None:
        """A node asks to join a topology at rest."""
        require(self.is_at_rest(), "the topology is at rest")
        super().ask_to_join(n)


@known_bug(
    "001-49",
    ISSUED,
    breaks=TopologyControl.dead_nodes_can_be_replaced_at_any_time,
    budgets=TWO_AND_A_FAULT,
)
class ReplacingWaitsForRest(TopologyControl):
    """The same of a node that is to take a dead one's place."""

    @action(by=NODE, spends=TopologyControl.requests)
    def ask_to_replace(self, n: Term[Node], dead: Term[Node]) -> None:
        """A node asks to replace another in a topology at rest."""
        require(self.is_at_rest(), "the topology is at rest")
        super().ask_to_replace(n, dead)


@known_bug(
    "001-50",
    ISSUED,
    breaks=TopologyControl.dead_nodes_can_be_removed_at_any_time,
    budgets=TWO_AND_A_FAULT,
)
class RemovingWaitsForRest(TopologyControl):
    """The operator is refused a removal while something else goes on, which may wait for that dead node."""

    @action(by=OPERATOR, spends=TopologyControl.requests)
    def ask_to_remove(self, n: Term[Node]) -> None:
        """The operator removes a dead node from a topology at rest."""
        require(self.is_at_rest(), "the topology is at rest")
        super().ask_to_remove(n)


@known_bug("001-51", ISSUED, breaks=TopologyControl.nodes_can_be_rebuilt_at_any_time, budgets=TWO)
class RebuildingWaitsForRest(TopologyControl):
    """The operator is refused a rebuild while something else goes on."""

    @action(by=OPERATOR, spends=TopologyControl.requests)
    def ask_to_rebuild(self, n: Term[Node]) -> None:
        """The operator has a node rebuilt in a topology at rest."""
        require(self.is_at_rest(), "the topology is at rest")
        super().ask_to_rebuild(n)


@known_bug(
    "001-52",
    'design document 001: "If there is no work for the state machine, tablet load balancer is invoked"',
    breaks=TopologyControl.tablets_are_balanced_where_there_is_no_work,
    budgets=TWO,
)
class TabletsMoveOnlyToDrain(TopologyControl):
    """The balancer is invoked for nodes that are to leave, and for nothing else."""

    @action(by=BALANCER, spends=TopologyControl.requests)
    def start_balancing(self) -> None:
        """A node that is to leave has tablets."""
        require(some(self._paused(n) for n in Node), "a request is paused")
        super().start_balancing()


@known_bug("001-53", ISSUED, breaks=TopologyControl.requests_are_issued_at_any_time, budgets=TWO)
class LeavingWaitsForRest(TopologyControl):
    """The operator is refused a decommission while another node joins or leaves."""

    @action(by=OPERATOR, spends=TopologyControl.requests)
    def ask_to_leave(self, n: Term[Node]) -> None:
        """The operator decommissions a node of a topology at rest."""
        require(self.is_at_rest(), "the topology is at rest")
        super().ask_to_leave(n)


@known_bug(
    "001-80",
    'design document 001: "When a request is issued to a node the entry is added to the map"',
    breaks=TopologyControl.nodes_can_be_rebuilt_at_any_time,
    budgets={TopologyControl.requests: 2, TopologyControl.faults: 1},
)
class AFailedReplaceLeavesItsMark(TopologyControl):
    """A node that was to be replaced came back, and the one that was to take its place had been refused: it counted as
    one that is to go, for ever.
    """

    def stays(self, n: Term[Node]) -> Bool:
        """Normal, and neither asked to go nor named by a node that came to replace it."""
        named = some(self.replaced_id[m] == n for m in Node)
        return self._is(n, NodeState.normal) & ~self._wants_to_go(n) & ~named


@known_bug(
    "001-109",
    'design document 001: "Tablets are migrated in parallel and independently"',
    breaks=TopologyControl.nodes_are_emptied_independently,
    sizes={Node: 3},
    budgets={TopologyControl.requests: 3, TopologyControl.faults: 0},
)
class OneNodeIsEmptiedAtATime(TopologyControl):
    """Two nodes were drained, and their last tablets came to rest at once: of one of them the topology took no notice."""

    def _is_drained_last(self, n: Term[Node]) -> Bool:
        """It still goes, whoever else does."""
        return self._still_goes(n)


@known_bug(
    "001-111",
    'design document 000: tasks are "aborted due to keyspace/view drop", in whatever state',
    breaks=TopologyControl.tables_are_dropped_at_any_time,
    budgets={TopologyControl.requests: 1, TopologyControl.faults: 0},
)
class NoNodeIsLeftWithoutTablets(TopologyControl):
    """A view was not dropped while some node had tablets of it alone: where loads are equal, nothing moves, and the drop
    was refused until an operator moved a tablet there.
    """

    @action(by=OPERATOR, spends=TopologyRecord.requests)
    def drop_table(self, n: Term[Node]) -> None:
        """No table is the last of a node, while another one has any."""
        others = some((m != n) & self.tablet_hosts.has(m) for m in Node)
        require(~others, "no other node holds tablets")
        super().drop_table(n)


@known_bug(
    "001-113",
    'design document 001: normal, "serves the slice of the ring that belongs to it"',
    breaks=TopologyControl.tables_are_created_at_any_time,
    budgets={TopologyRecord.requests: 2, TopologyRecord.faults: 0},
)
class NoTableIsMadeWhileReadsMove(TopologyControl):
    """While reads moved to the new ring for one node, no table could be made whose tablets were to lie on another one."""

    @action(by=OPERATOR, spends=TopologyRecord.requests)
    def create_table(self, n: Term[Node]) -> None:
        """Nobody joins or leaves."""
        super().create_table(n)
        require(self.transition_state != TransitionState.write_both_read_new, "reads do not move")


@known_bug("001-162", STARTS, breaks=TopologyControl.joins_begin, sizes={Node: 3}, budgets=TWO)
class WhoLeftIsMissed(TopologyControl):
    """A node that has left is down for ever: once there was one, no node could join any more."""

    def _alive_enough(self, n: Term[Node], request: Request) -> Bool:
        enough = super()._alive_enough(n, request)
        up = every(~self.down.has(m) for m in Node)
        return enough & up if request is Request.join else enough


@known_bug(
    "001-163",
    STARTS,
    breaks=TopologyControl.replacements_begin,
    sizes={Node: 3},
    budgets=TWO_AND_A_FAULT,
)
class ReplacementsWaitForThePublisher(TopologyControl):
    """Who was to replace a dead node was let in when clients could see the generation of the join before."""

    @action(by=COORDINATOR, fair=Fairness.WEAK)
    def accept_replace(self, n: Term[Node]) -> None:
        """The node is let in, when the generation of the last join is published."""
        super().accept_replace(n)
        require(~self.unpublished_cdc_generations, "clients see the newest generation")


@known_bug("001-164", STARTS, breaks=TopologyControl.removals_begin, budgets=ONE_FAULT)
class TheRemovedNodeIsMissed(TopologyControl):
    """All normal nodes had to be up, also the dead one that was to be removed: each removal was cancelled."""

    def _alive_enough(self, n: Term[Node], request: Request) -> Bool:
        enough = super()._alive_enough(n, request)
        up = every(self._is(m, NORMAL).implies(~self.down.has(m)) for m in Node)
        return enough & up if request is Request.remove else enough


@known_bug(
    "001-165",
    STARTS,
    breaks=TopologyControl.decommissions_begin,
    sizes={Node: 3},
    budgets=TWO_AND_A_FAULT,
)
class AStrangerIsMissed(TopologyControl):
    """A node that had only asked to join, and died, was missed by those that were to take a leaving node's ranges over."""

    def _alive_enough(self, n: Term[Node], request: Request) -> Bool:
        enough = super()._alive_enough(n, request)
        asks = (self._is(m, NodeState.none) & self.down.has(m) for m in Node)
        return enough & ~some(asks) if request is Request.leave else enough


@known_bug("001-166", STARTS, breaks=TopologyControl.rebuilds_begin, budgets=TWO)
class RebuildsWaitForThePublisher(TopologyControl):
    """A rebuild waited until clients could see the newest CDC generation, with which it has nothing to do."""

    @action(by=COORDINATOR, fair=Fairness.WEAK)
    def start_rebuild(self, n: Term[Node]) -> None:
        """The node streams its data anew, when the generation of the last join is published."""
        super().start_rebuild(n)
        require(~self.unpublished_cdc_generations, "clients see the newest generation")


@known_bug(
    "001-168",
    'design document 001: "a map of topology requests per node", until they begin',
    breaks=TopologyControl.requests_to_leave_are_aborted_at_any_time,
    budgets=ONE_FAULT,
)
class RequestsAreAbortedAtRest(TopologyControl):
    """While the tablets of a node moved away, which takes hours, the operator could not tell it to stay."""

    @action(by=OPERATOR, spends=TopologyControl.faults)
    def abort(self, n: Term[Node]) -> None:
        """The operator aborts a request in a topology at rest."""
        super().abort(n)
        self._nothing_goes_on()


@known_bug(
    "001-169", BALANCED, breaks=TopologyControl.nodes_are_emptied_before_they_leave, budgets=ONE
)
class NobodyIsEmptied(TopologyControl):
    """The balancer took no node for one that waits for its tablets to move: each such request was cancelled."""

    def _paused(self, n: Term[Node]) -> Bool:
        return super()._paused(n) & ~self._is(n, NodeState.normal)


@known_bug(
    "001-170",
    'design document 001: "Tablets are migrated in parallel and independently"',
    breaks=TopologyControl.nodes_are_emptied_independently,
    sizes={Node: 3},
    budgets={TopologyControl.requests: 3, TopologyControl.faults: 1},
)
class WhoWasReplacedIsForgotten(TopologyControl):
    """A node was emptied while the tablets of one that had been replaced were rebuilt: for its last tablet nobody
    else was to be emptied, so that it did not leave by itself.
    """

    def _still_goes(self, n: Term[Node]) -> Bool:
        return self._paused(n) | self._must_be_empty(n)


@known_bug(
    "001-172",
    'design document 001: "from still alive owners"',
    breaks=TopologyControl.barriers_wait_for_no_node_that_is_given_up,
    budgets=ONE_FAULT,
)
class BarriersAskTheDead(TopologyControl):
    """A barrier asked also the dead node that was removed or replaced: each such operation was rolled back."""

    def takes_part(self, n: Term[Node]) -> Bool:
        return self._is(n, NodeState.normal) | self._in_transition(n)


@known_bug(
    "001-174",
    'design document 001: a normal node "serves the slice of the ring that belongs to it"',
    breaks=TopologyControl.dead_nodes_come_back,
    budgets=ONE_FAULT,
)
class WhoIsAboutToLeaveStaysDead(TopologyControl):
    """A node that died in left_token_ring was not let in again, although its request was not done yet."""

    def _has_ended(self, n: Term[Node]) -> Bool:
        return self._in_transition(n) & (self.transition_state == TransitionState.left_token_ring)


@known_bug("001-176", STARTS, breaks=TopologyControl.decommissions_begin, budgets=TWO)
class DecommissionsWaitForThePublisher(TopologyControl):
    """A decommission waited until clients could see the newest CDC generation, as if it had made one."""

    @action(by=COORDINATOR, fair=Fairness.WEAK)
    def start_decommission(self, n: Term[Node]) -> None:
        """The node is to stream its data to those that take over, when the last generation is published."""
        super().start_decommission(n)
        require(~self.unpublished_cdc_generations, "clients see the newest generation")


@known_bug(
    "001-219",
    'design document 001: "allow pending topology operation to start"',
    breaks=TopologyControl.requests_are_refused_when_their_turn_comes,
    budgets=ONE_REQUEST,
)
class WhoIsDrainedIsNotRefused(TopologyControl):
    """To leave was refused at rest alone: where the drain could not end without the node, there was no such time."""

    @action(by=COORDINATOR)
    def reject(self, n: Term[Node]) -> None:
        """A request is refused where it would be taken up."""
        super().reject(n)
        require(self.is_at_rest(), "the topology is at rest")


@known_bug(
    "001-220",
    'design document 001: the track "excludes with other topology changes"',
    breaks=TopologyControl.tablets_are_moved_by_hand_where_no_node_is_in_the_way,
    budgets=TWO_REQUESTS,
)
class NobodyMovesTabletsWhileARequestWaits(TopologyControl):
    """What the balancer must not do, an operator could not, either: move a tablet off a node that is asked to leave."""

    @action(by=OPERATOR, spends=TopologyRecord.requests)
    def move_tablet(self) -> None:
        """An operator moves a tablet by hand, if no topology change waits."""
        super().move_tablet()
        require(every(self.topology_request[n].is_none() for n in Node), "no request waits")


@known_bug(
    "001-221",
    INDEPENDENTLY,
    breaks=TopologyControl.tablets_come_to_rest_independently,
    budgets=TWO_REQUESTS,
)
class ADrainEndsAtOnce(TopologyControl):
    """While a node was drained, its tablets came to rest together, with the last of them."""

    @action(by=COORDINATOR, spends=TopologyRecord.requests)
    def settle_tablets_on(self, n: Term[Node]) -> None:
        """Tablets that move for balance, or by hand, come to rest on a node that had none."""
        super().settle_tablets_on(n)
        require(self.tablet_work != Work.draining, "no node is drained")


@known_bug(
    "001-222",
    'design document 001: "The load balancer is invoked on transition of tablet stages"',
    breaks=TopologyControl.stages_change_while_tablets_move,
    budgets={**ONE_REQUEST, TopologyRecord.stages: 2},
)
class OneStageAtATime(TopologyControl):
    """A tablet came to its next stage when nothing older than the last change of any tablet was left to be fenced."""

    @action(by=COORDINATOR, spends=TopologyRecord.stages)
    def change_stages(self) -> None:
        """Tablets enter other stages, after the barrier of all that were before."""
        require(self.fence_version == self.version, "older requests are fenced")
        super().change_stages()


@known_bug(
    "001-223",
    'design document 001: "share the infrastructure for fencing"',
    breaks=TopologyControl.stages_are_fenced_while_tablets_move,
    budgets={**ONE_REQUEST, TopologyRecord.stages: 2},
)
class DrainedTabletsAreNotFenced(TopologyControl):
    """The barriers of tablets that drain from a node were left to the operation on that node, which waits for them."""

    @action(by=COORDINATOR, spends=TopologyRecord.stages)
    def fence_stages(self) -> None:
        """What began before the stages of tablets is fenced, if no node is drained."""
        super().fence_stages()
        require(self.tablet_work != Work.draining, "no node is drained")


@known_bug(
    "001-224",
    NO_WORK,
    breaks=TopologyControl.tablets_are_resized_where_there_is_no_work,
    budgets={TopologyRecord.requests: 1, TopologyRecord.faults: 1},
)
class NothingIsResizedWhileANodeIsDown(TopologyControl):
    """Tables were not split while a node was down, though no tablet moves then, and tablets grew."""

    @action(by=COORDINATOR, spends=TopologyRecord.requests)
    def start_resize_finalization(self) -> None:
        """Tablets are split or merged for good in a cluster that is whole."""
        super().start_resize_finalization()
        dead = some(self.takes_part(n) & self.down.has(n) for n in Node)
        require(~dead, "no node is down")


@known_bug(
    "001-225",
    'design document 001: "the entry is added to the map", and the topology stays as it is',
    breaks=TopologyControl.the_topology_can_be_locked_at_rest,
    budgets=TWO_REQUESTS,
)
class LocksWaitForRequests(TopologyControl):
    """The lock was given when no request waited; and a request that was made under it was to wait for the lock."""

    @action(by=OPERATOR, spends=TopologyRecord.requests)
    def lock(self) -> None:
        """Somebody locks the topology, which nobody wants to change."""
        super().lock()
        require(every(self.topology_request[n].is_none() for n in Node), "no request waits")


@known_bug(
    "001-397",
    'design document 001: "we need to publish it to user-facing description tables"',
    breaks=TopologyControl.generations_are_published_at_any_time,
    budgets={TopologyControl.requests: 1, TopologyControl.faults: 0},
)
class GenerationsArePublishedAtRest(TopologyControl):
    """The publisher waited for the topology to be at rest: while a node streamed for hours, its generation was in use, and
    no reader of the log knew its streams.
    """

    @action(by=PUBLISHER, fair=WEAK)
    def publish_generation(self) -> None:
        """The generation is written to the tables that users read, when nothing else goes on."""
        self._nothing_goes_on()
        super().publish_generation()


@known_bug(
    "001-481",
    'design document 001: "Tablets are migrated in parallel and independently"',
    breaks=TopologyControl.nodes_are_emptied_before_they_leave,
    sizes={Node: 3},
    budgets=TWO_AND_A_FAULT,
)
class LostTabletsAreRebuiltFirst(TopologyControl):
    """No node was emptied while tablets of one that had been replaced were still to be rebuilt."""

    @action(by=BALANCER, fair=WEAK)
    def start_draining(self, n: Term[Node]) -> None:
        lost = some((m != n) & self._is(m, NodeState.left) & self.tablet_hosts.has(m) for m in Node)
        require(~lost, "no tablets of a replaced node are to be rebuilt")
        super().start_draining(n)


@known_bug(
    "001-570",
    'design document 001: "After the entire cluster learns about it, streaming starts"',
    breaks=TopologyControl.operations_wait_for_no_other,
    budgets=ONE_REQUEST,
)
class StreamingWaitsForThePublisher(TopologyControl):
    """Nothing was streamed to a new node before clients could see its generation: while the publisher was slow, no node
    joined.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def stream_ranges(self) -> None:
        """It ends well, when the newest generation is published."""
        super().stream_ranges()
        require(~self.unpublished_cdc_generations, "clients see the newest generation")


@known_bug(
    "001-571",
    STARTS,
    breaks=TopologyControl.what_is_over_holds_up_nothing,
    budgets=TWO_REQUESTS,
)
class TruncationsWaitForThePublisher(TopologyControl):
    """A table was truncated when clients could see the newest CDC generation, which is that of other tables."""

    @action(by=COORDINATOR, fair=WEAK)
    def start_truncating(self) -> None:
        """Nothing else goes on, and the generation of the last join is published."""
        super().start_truncating()
        require(~self.unpublished_cdc_generations, "clients see the newest generation")


@known_bug(
    "001-610",
    STARTS,
    breaks=TopologyControl.rebuilds_begin,
    budgets=TWO_REQUESTS,
)
class RebuildsWaitForCleanups(TopologyControl):
    """A rebuild was held up like a decommission until no node had rows of lost ranges, though it moves no range."""

    @action(by=COORDINATOR, fair=WEAK)
    def start_rebuild(self, n: Term[Node]) -> None:
        """The node streams its data again, when all others are clean."""
        super().start_rebuild(n)
        require(self._all_are_clean(), "no node that is up needs cleanup")

    def _all_are_clean(self) -> Bool:
        return every(~self.cleanup_needed.has(m) | self.down.has(m) for m in Node)


@known_bug(
    "001-611",
    STARTS,
    breaks=TopologyControl.replacements_begin,
    sizes={Node: 3},
    budgets=TWO_AND_A_FAULT,
)
class ReplacementsWaitForCleanups(TopologyControl):
    """Who was to replace a dead node was let in when the others had removed the rows of ranges that they had lost."""

    @action(by=COORDINATOR, fair=WEAK)
    def accept_replace(self, n: Term[Node]) -> None:
        """The node is accepted, when all others are clean."""
        super().accept_replace(n)
        clean = every(~self.cleanup_needed.has(m) | self.down.has(m) for m in Node)
        require(clean, "no node that is up needs cleanup")


@known_bug(
    "001-612",
    STARTS,
    breaks=TopologyControl.decommissions_begin,
    budgets=TWO_REQUESTS,
)
class DecommissionsWaitForTheOperatorsCleanup(TopologyControl):
    """A decommission waited for the cleanup that an operator had asked for, also where no node had anything to remove."""

    @action(by=COORDINATOR, fair=WEAK)
    def start_decommission(self, n: Term[Node]) -> None:
        """The node is to leave, when nobody wants a cleanup."""
        super().start_decommission(n)
        require(self.global_request != GlobalRequest.cleanup, "no cleanup is asked for")


@known_bug(
    "001-613",
    'design document 001: rebuilding "does not change the topology but requires streaming data"',
    breaks=TopologyControl.operations_wait_for_no_other,
    budgets=TWO_REQUESTS,
)
class RebuildsEndWhenGenerationsArePublished(TopologyControl):
    """A node that had been rebuilt stayed in that state until clients could see the newest CDC generation."""

    @action(by=COORDINATOR, fair=WEAK)
    def finish_rebuild(self, n: Term[Node]) -> None:
        """Its data is streamed, and the newest generation is published."""
        super().finish_rebuild(n)
        require(~self.unpublished_cdc_generations, "clients see the newest generation")


@known_bug(
    "001-614",
    "design document 001: a bootstrapping node may become left",
    breaks=TopologyControl.operations_wait_for_no_other,
    budgets=ONE_FAULT,
)
class RollbacksWaitForThePublisher(TopologyControl):
    """A join that had failed was rolled back when clients could see the generation that it had made."""

    @action(by=COORDINATOR, fair=WEAK)
    def roll_back_join(self, n: Term[Node]) -> None:
        """The node leaves the token ring, when its generation is published."""
        super().roll_back_join(n)
        require(~self.unpublished_cdc_generations, "clients see the newest generation")


@known_bug(
    "001-615",
    'design document 001: "we need to commit the generation … and tell every node to start using it"',
    breaks=TopologyControl.operations_wait_for_no_other,
    budgets=TWO_REQUESTS,
)
class GenerationsAreCommittedOneByOne(TopologyControl):
    """The generation of a join was committed when clients could see the one before it."""

    @action(by=COORDINATOR, fair=WEAK)
    def commit_cdc_generation(self, n: Term[Node]) -> None:
        """Every node has the data of the new generation, and the last one is published."""
        require(~self.unpublished_cdc_generations, "clients see the last generation")
        super().commit_cdc_generation(n)


@known_bug(
    "001-616",
    STARTS,
    breaks=TopologyControl.what_is_over_holds_up_nothing,
    budgets=TWO_REQUESTS,
)
class SnapshotsWaitForThePublisher(TopologyControl):
    """Tables were snapshot when clients could see the newest CDC generation."""

    @action(by=COORDINATOR, fair=WEAK)
    def start_snapshots(self) -> None:
        """Nothing else goes on, and the newest generation is published."""
        super().start_snapshots()
        require(~self.unpublished_cdc_generations, "clients see the newest generation")


@known_bug(
    "001-617",
    STARTS,
    breaks=TopologyControl.what_is_over_holds_up_nothing,
    budgets=TWO_REQUESTS,
)
class TruncationsEndWhenGenerationsArePublished(TopologyControl):
    """A table had been truncated everywhere, and no operation began until clients could see the newest CDC generation."""

    @action(by=COORDINATOR, fair=WEAK)
    def finish_global_request(self) -> None:
        """Nothing of the closed session runs, and the newest generation is published."""
        super().finish_global_request()
        require(~self.unpublished_cdc_generations, "clients see the newest generation")


@known_bug(
    "001-618",
    'design document 001: the global request is there "Separately from the per-node requests"',
    breaks=TopologyControl.refusals_wait_for_no_work,
    budgets=TWO_AND_A_FAULT,
)
class WhoAsksInVainWaitsForCleanups(TopologyControl):
    """A request that could not proceed was cancelled when all other nodes had removed the rows of ranges that they had
    lost.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def cancel(self, n: Term[Node]) -> None:
        """No request can proceed, and nothing else is left to do."""
        clean = every(~self.cleanup_needed.has(m) | self.down.has(m) for m in Node)
        require(clean, "no node that is up needs cleanup")
        super().cancel(n)


BUGS = known_bugs_in(globals())

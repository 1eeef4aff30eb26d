"""Mistakes in the operations on nodes that design document 001 rules out."""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.topology.control.topology_record import (
    BALANCER,
    COORDINATOR,
    NODE,
    OPERATOR,
)
from stagewright.machines.scylladb.topology.topology_control import TopologyControl
from stagewright.machines.scylladb.topology.topology_rebuild import TopologyRebuild
from stagewright.machines.scylladb.topology.topology_states import (
    NodeState,
    Request,
    TransitionState,
)
from stagewright.spec import Bool, Fairness, Term, action, require, some
from stagewright.spec.declarations.budgets import BudgetName
from stagewright.spec.known_bugs import known_bug, known_bugs_in

WEAK = Fairness.WEAK
ONE: dict[BudgetName, int | None] = {TopologyControl.requests: 1, TopologyControl.faults: 0}
ONE_FAULT: dict[BudgetName, int | None] = {TopologyControl.requests: 1, TopologyControl.faults: 1}
TWO: dict[BudgetName, int | None] = {TopologyControl.requests: 2, TopologyControl.faults: 0}
TWO_AND_A_FAULT: dict[BudgetName, int | None] = {
    TopologyControl.requests: 2,
    TopologyControl.faults: 1,
}


ISSUED = 'design document 001: "When a request is issued to a node the entry is added to the map"'


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


@known_bug("001-53", ISSUED, breaks=TopologyControl.requests_are_issued_at_any_time, budgets=TWO)
class LeavingWaitsForRest(TopologyControl):
    """The operator is refused a decommission while another node joins or leaves."""

    @action(by=OPERATOR, spends=TopologyControl.requests)
    def ask_to_leave(self, n: Term[Node]) -> None:
        """The operator decommissions a node of a topology at rest."""
        require(self.is_at_rest(), "the topology is at rest")
        super().ask_to_leave(n)


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
    "001-63",
    "design document 001: rebuild_option is used as a rebuild source",
    breaks=TopologyRebuild.the_named_datacenter_is_the_source,
    sizes={Node: 3},
    budgets={TopologyRebuild.crashes: 0, TopologyRebuild.failovers: 0},
)
class TheNamedDatacenterIsForgotten(TopologyRebuild):
    """A rebuild streamed from all datacenters, also where the operator had named a whole one: the rows are the same, but
    they came over the slow link.
    """

    def _is_source(self, m: Term[Node], n: Term[Node]) -> Bool:
        return m != n


BUGS = known_bugs_in(globals())

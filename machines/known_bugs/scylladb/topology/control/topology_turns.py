"""Mistakes about whose turn it is, who is missed, and who is waited for, in helpers that several steps share.

A promise that asks the same helper errs with it. Those that catch these say for themselves who must be up.
"""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.topology.control.topology_record import (
    COORDINATOR,
    NORMAL,
    OPERATOR,
)
from stagewright.machines.scylladb.topology.topology import TopologyCluster
from stagewright.machines.scylladb.topology.topology_control import TopologyControl
from stagewright.machines.scylladb.topology.topology_states import (
    NodeState,
    Request,
    TransitionState,
)
from stagewright.spec import Bool, Fairness, Term, action, every, require, some
from stagewright.spec.declarations.budgets import BudgetName
from stagewright.spec.known_bugs import known_bug, known_bugs_in

Budgets = dict[BudgetName, int | None]
ONE: Budgets = {TopologyControl.requests: 1, TopologyControl.faults: 0}
ONE_FAULT: Budgets = {TopologyControl.requests: 1, TopologyControl.faults: 1}
TWO: Budgets = {TopologyControl.requests: 2, TopologyControl.faults: 0}
TWO_AND_A_FAULT: Budgets = {TopologyControl.requests: 2, TopologyControl.faults: 1}
STARTS = 'design document 001: "allow pending topology operation to start"'
LEARNS = 'design document 001: "After the entire cluster learns about it"'
BALANCED = 'design document 001: "If there is no work for the state machine, tablet load balancer is invoked"'


# -- whose turn it is ------------------------------------------------------------------------------------


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


@known_bug("001-176", STARTS, breaks=TopologyControl.decommissions_begin, budgets=TWO)
class DecommissionsWaitForThePublisher(TopologyControl):
    """A decommission waited until clients could see the newest CDC generation, as if it had made one."""

    @action(by=COORDINATOR, fair=Fairness.WEAK)
    def start_decommission(self, n: Term[Node]) -> None:
        """The node is to stream its data to those that take over, when the last generation is published."""
        super().start_decommission(n)
        require(~self.unpublished_cdc_generations, "clients see the newest generation")


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


# -- tablets ---------------------------------------------------------------------------------------------


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


# -- who is waited for -----------------------------------------------------------------------------------


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
    "001-173",
    LEARNS,
    breaks=TopologyCluster.barriers_wait_for_nothing_else,
    budgets={TopologyCluster.writes: 0},
)
class BarriersWaitForWhatIsGivenUp(TopologyCluster):
    """A barrier waited also for requests whose clients had been told that they timed out."""

    def _has_drained(self, n: Term[Node]) -> Bool:
        older = self.request.version < self.topology.version
        return super()._has_drained(n) & ~((self.request.coordinator == n) & older)


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


@known_bug(
    "001-175",
    'design document 001: "When a request is issued to a node the entry is added to the map"',
    breaks=(
        TopologyCluster.dead_nodes_are_removed_while_clients_wait,
        TopologyCluster.dead_nodes_are_replaced_while_clients_wait,
    ),
    budgets={TopologyCluster.writes: 0, TopologyCluster.reads: 0, TopologyCluster.crashes: 1},
)
class NoOwnerIsGivenUp(TopologyCluster):
    """A dead node that owned the range could not be removed, or replaced, although another one had its rows as well."""

    def _is_stored_without(self, n: Term[Node]) -> Bool:
        return ~self.owners.has(n)


BUGS = known_bugs_in(globals())

"""Mistakes about what operators ask for while the load balancer works: nodes that are to leave, topology changes."""

from __future__ import annotations

from stagewright.machines.scylladb.tablets.load_balancer import (
    OPERATOR,
    LoadBalancer,
    Node,
    Shard,
    Tablet,
)
from stagewright.machines.scylladb.tablets.tablet_stages import Stage
from stagewright.spec import Term, action, every, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

BEFORE_IT_LEAVES = "design document 001: node operations wait until tablets have moved"


@known_bug(
    "001-150",
    BEFORE_IT_LEAVES,
    breaks=LoadBalancer.draining_nodes_become_empty,
    sizes={Node: 3, Tablet: 1},
    budgets={LoadBalancer.disturbances: 2},
)
class PlacesAreCountedTwice(LoadBalancer):
    """Whether a node may leave was decided for each replica alone: two of a tablet, on two nodes that leave, had one other
    node between them, and one of them stayed where it was for ever.
    """

    def _may_leave(self, n: Term[Node]) -> None:
        """Each replica has another node that has none of its tablet."""
        for t in Tablet:
            for s in Shard:
                leaves = self._will_have(t, s) & (self._drains(s) | (self.node[s] == n))
                place = some(
                    (self.node[p] != n)
                    & ~self._drains(p)
                    & every(~self._will_have(t, r) | (self.node[r] != self.node[p]) for r in Shard)
                    for p in Shard
                )
                require(leaves.implies(place), "there is another node for each replica")


@known_bug(
    "001-151",
    BEFORE_IT_LEAVES,
    breaks=LoadBalancer.draining_nodes_become_empty,
    sizes={Node: 3, Tablet: 1},
    budgets={LoadBalancer.disturbances: 2},
)
class OneNodeDrains(LoadBalancer):
    """There was one node that is to leave: with the next one the balancer forgot the first, and its tablets stayed."""

    @action(by=OPERATOR, spends=LoadBalancer.disturbances)
    def drain(self, n: Term[Node]) -> None:
        """A node is to leave, in the place of the last one."""
        self._may_leave(n)
        for other in Node:
            self.draining.put(other, n == other)
        self._commit()
        self.invoked = True


@known_bug(
    "001-152",
    "design document 001: node operations have to wait for the tablet migration track to finish",
    breaks=LoadBalancer.topology_changes_are_requested_while_tablets_move,
    sizes={Tablet: 2},
)
class RequestsAreRefusedInTheTrack(LoadBalancer):
    """A topology change that was asked for while tablets migrate was refused, and did not wait: as the balancer goes on as
    long as it finds something, an operator could ask in vain for hours.
    """

    @action(by=OPERATOR, spends=LoadBalancer.disturbances)
    def request_topology_change(self) -> None:
        """A topology change is requested: no tablet may migrate."""
        super().request_topology_change()
        require(every(self.stage[t] == Stage.none for t in Tablet), "no tablet is in transition")


@known_bug(
    "001-153",
    'design document 001: "Tablets are migrated in parallel and independently"',
    breaks=LoadBalancer.nodes_are_drained_while_tablets_move,
    sizes={Tablet: 2},
)
class DrainingWaitsForMigrations(LoadBalancer):
    """A node could be drained only when no tablet was in transition, on whichever node."""

    @action(by=OPERATOR, spends=LoadBalancer.disturbances)
    def drain(self, n: Term[Node]) -> None:
        """A node is to leave, when all migrations have ended."""
        super().drain(n)
        require(every(self.stage[t] == Stage.none for t in Tablet), "no tablet is in transition")


@known_bug(
    "001-155",
    'design document 001: plans which "will produce the desired result"',
    breaks=LoadBalancer.nodes_that_are_to_leave_get_no_tablets,
    sizes={Tablet: 2},
)
class APlanOutlivesADrain(LoadBalancer):
    """A plan that had been made when a node was asked to leave was still carried out: a tablet moved there, to move away
    again.
    """

    @action(by=OPERATOR, spends=LoadBalancer.disturbances)
    def drain(self, n: Term[Node]) -> None:
        """A node is to leave: the next plan will see to it."""
        self._may_leave(n)
        self.draining.add(n)
        self.invoked = True


BUGS = known_bugs_in(globals())

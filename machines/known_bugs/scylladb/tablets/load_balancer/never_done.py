"""Mistakes put back into `LoadBalancer`: what is never done."""

from __future__ import annotations

from stagewright.machines.scylladb.tablets.load_balancer import (
    BALANCER,
    COORDINATOR,
    OPERATOR,
    WEAK,
    LoadBalancer,
    Node,
    Shard,
    Tablet,
)
from stagewright.spec import Term, action, every, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

BEFORE_IT_LEAVES = "design document 001: node operations wait until tablets have moved"
QUIET = {LoadBalancer.disturbances: 0}


@known_bug(
    "001-64",
    "design document 001: a pending topology operation is allowed to start",
    breaks=LoadBalancer.topology_changes_happen,
    sizes={Tablet: 2},
)
class TheRequestGoesWithTheTrack(LoadBalancer):
    """A request was there to have the track left, and was taken back with it: the topology change never began."""

    @action(by=COORDINATOR, fair=WEAK)
    def leave_track(self) -> None:
        """Nothing migrates: the track is left, and the request has been seen to."""
        super().leave_track()
        self.request_pending = False


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
    "B11",
    "design document 001: plans which when executed will produce the desired result",
    breaks=LoadBalancer.balance_is_reached,
    sizes={Tablet: 2},
    budgets=QUIET,
)
class StatisticsEndThePlan(LoadBalancer):
    """The plan was begun anew whenever new statistics of the load came, though they might say the same: with many nodes
    that was before it could be committed.
    """

    @action(by=BALANCER)
    def refresh_statistics(self) -> None:
        """The load of the shards is read once more."""
        require(~self._plan_is_empty(), "something is planned")
        self._forget_plan()
        self.outdated = False


@known_bug(
    "B15",
    "design document 001: node operations wait for the tablet migration track to finish",
    breaks=LoadBalancer.topology_changes_happen,
    sizes={Tablet: 1},
)
class NoRequestWakesTheCoordinator(LoadBalancer):
    """When the load balancer had found nothing to do the coordinator slept, and no request woke it: nobody took it up."""

    @action(by=COORDINATOR)
    def begin_topology_change(self) -> None:
        """The request is taken up, if something else wakes the coordinator."""
        super().begin_topology_change()


BUGS = known_bugs_in(globals())

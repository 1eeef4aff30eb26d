"""A run ends when the balancer is done, which nobody knows while there is no coordinator (campaign seed 300228)."""

from __future__ import annotations

from tests.impl.simulator.operators import Operator

from stagewright.impl.node.messages import CreateTable
from stagewright.impl.simulator.database.checks.rest import QUIET_MS, is_at_rest, is_balanced


def test_a_cluster_without_a_coordinator_is_not_balanced_however_long_nothing_was_committed() -> (
    None
):
    operator = Operator()
    operator.change(CreateTable(1, "ks.t", 2, 4))
    world = operator.world
    operator.until(lambda: is_balanced(world, 0))
    assert is_at_rest(operator.node("n1").context.view)
    assert not is_balanced(world, world.events.now)
    leader = world.log.leader
    assert leader is not None
    world.log.resign(leader)
    assert not is_balanced(world, world.events.now - 10 * QUIET_MS)
    operator.until(lambda: is_balanced(world, 0))
    assert world.log.leader != leader


def test_a_cluster_is_not_balanced_before_the_coordinator_has_noticed_who_is_back() -> None:
    """Then tablets move to that node while the run already looks at disks (campaign seed 1200015)."""
    operator = Operator()
    operator.change(CreateTable(1, "ks.t", 2, 4))
    world = operator.world
    operator.until(lambda: is_balanced(world, 0))
    leader = world.log.leader
    assert leader is not None
    coordinator = operator.node(leader.node)
    other = next(name for name in world.hosts if name != leader.node)
    world.crash(other)
    operator.until(lambda: other in coordinator.context.down)
    assert is_balanced(world, 0)
    world.start(other)
    assert not is_balanced(world, 0)
    operator.until(lambda: is_balanced(world, 0))
    assert other not in coordinator.context.down

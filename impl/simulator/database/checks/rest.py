"""Whether a cluster has come to rest: nothing is in transition or asked for, and the balancer finds nothing to do."""

from __future__ import annotations

from stagewright.impl.catalog.view import View
from stagewright.impl.simulator.database.world import NOTICED, World
from stagewright.impl.tablets.replication import is_altered
from stagewright.machines.scylladb.topology.topology_states import TransitionState

QUIET_MS = 400  # so long nothing was committed when the balancer is done


def is_at_rest(view: View) -> bool:
    """Whether nodes and tablets are where they are asked to be."""
    moving = any(
        m.state.in_transition or (m.request is not None and not m.request["done"])
        for m in view.nodes.values()
    )
    at_rest = view.transition_state is TransitionState.null and not moving
    at_rest &= not view.resizes and not any(is_altered(view, t) for t in view.tablets)
    at_rest &= not any(row.repair for rows in view.tablets.values() for row in rows)
    return at_rest and not view.moving


def is_balanced(world: World, changed: int, united: int = 0) -> bool:
    """Whether a coordinator that knows who is up has found nothing to do since something was committed, at `changed`.

    `united`: when the last of those that were cut off, or suspended, were back; a balancer waits for them until then.
    """
    leader = world.log.leader
    node = None if leader is None else world.hosts[leader.node].node
    if node is None or node.coordinator is None:
        return False
    started = max(host.started_at for host in world.hosts.values() if host.node is not None)
    return max(changed, max(started, united) + NOTICED[1]) + QUIET_MS <= world.events.now

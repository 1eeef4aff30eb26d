"""Nodes that are not reached for a while, and then go on as they were: with their requests, streams and leadership."""

from __future__ import annotations

from stagewright.impl.simulator.database.world import LATE, NOTICED, World


def part(world: World, name: str) -> None:
    """Cut a node off from all others and from group0; clients reach it."""
    if name in world.parted:
        return
    world.story.add(world.events.now, f"{name} is cut off from all others")
    world.meet("node cut off")
    world.parted.add(name)
    host = world.hosts[name]
    host.unsubscribe()
    host.unsubscribe = lambda: None
    world.noticed_by_all(name)


def reunite(world: World, name: str) -> None:
    """Who was cut off is back, and so is what was sent."""
    if name not in world.parted:
        return
    world.story.add(world.events.now, f"{name} is back")
    world.parted.discard(name)
    held, world.held = world.held, []
    for sender, to, message in held:
        if {sender, to} & world.parted:
            world.held.append((sender, to, message))
        else:
            wait = world.dice.between(*LATE, "held", f"{sender}>{to}")
            world.events.after(wait, world.arrive, world.hosts[to], sender, message)
    host = world.hosts[name]
    if host.node is not None and host.learns:
        world.learn(host, host.node.context.member.head.position)
    world.noticed_by_all(name)


def suspend(world: World, name: str) -> None:
    """The process of a node stops, as one that is swapped out, or whose machine is frozen."""
    if name in world.suspended or world.hosts[name].node is None:
        return
    world.story.add(world.events.now, f"{name} is suspended")
    world.meet("node suspended")
    world.suspended[name] = []
    world.noticed_by_all(name)


def resume(world: World, name: str) -> None:
    """It goes on, with what came meanwhile."""
    waiting = world.suspended.pop(name, None)
    if waiting is None:
        return
    world.changed |= {(name, peer): world.events.now for peer in world.hosts}
    world.story.add(world.events.now, f"{name} goes on")
    for (
        action
    ) in waiting:  # before whatever else comes in this millisecond: what is learned has its order
        action()
    world.noticed_by_all(name)


def must_be_known(world: World, by: str, about: str) -> bool:
    """Whether a node has been there for another one for longer than its failure detector takes to notice it."""
    since = world.changed.get((by, about), 0)
    return world.reaches(by, about) and world.events.now - since > NOTICED[1]

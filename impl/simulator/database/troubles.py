"""What befalls a cluster while a run lasts: crashes, elections of group0, coordinators that are deposed."""

from __future__ import annotations

from collections.abc import Callable

from stagewright.impl.group0.simulated import CALM
from stagewright.impl.simulator.database.absences import part, resume, reunite, suspend
from stagewright.impl.simulator.database.weather import NONE, Faults
from stagewright.impl.simulator.database.world import World

TICK_MS = 50
DOWN_MS = (60, 400)
CUT_OFF_MS = (300, 900)  # until whoever watches over machines starts it again
APART_MS = (300, 6_000)  # until who is cut off from all others is back
SUSPENDED_MS = (200, 3_000)
LEADS = 0.5  # share of those that are not reached for a while that are to lead


class Troubles:
    """Brings the faults of a plan about; who is in `killed` stays down until the script starts him."""

    def __init__(self, world: World, planned: Faults) -> None:
        self.killed: set[str] = set()
        self.on = False
        self._cut_off = ""  # who is, for a while
        self._world = world
        self._planned = planned

    def switch(self, on: bool) -> None:
        """Let faults happen from now on, or no more."""
        faults = self._planned if on else NONE
        self.on = on and faults != NONE
        self._world.faults = faults
        self._world.aimed = frozenset()
        self._world.log.weather = faults.weather if on else CALM
        if self.on:
            self._world.events.after(TICK_MS, self._tick)

    def _tick(self) -> None:
        """Some of what happens now and then happens now."""
        if not self.on:
            return
        dice, faults, share = self._world.dice, self._planned, TICK_MS / 60_000
        if dice.chance(faults.election * share, "election"):
            self.elect()
        if dice.chance(faults.failover * share, "failover"):
            self.depose()
        if dice.chance(faults.crash * share, "crash"):
            self.crash_one()
        if faults.partition and dice.chance(faults.partition * share, "partition"):
            self._leave_for_a_while("partition", APART_MS, part, reunite)
        if faults.suspend and dice.chance(faults.suspend * share, "suspend"):
            self._leave_for_a_while("suspend", SUSPENDED_MS, suspend, resume)
        self._world.events.after(TICK_MS, self._tick)

    def _leave_for_a_while(
        self,
        kind: str,
        milliseconds: tuple[int, int],
        leave: Callable[[World, str], None],
        come_back: Callable[[World, str], None],
        among: list[str] | None = None,
    ) -> None:
        """A node is not reached, unless another one is down; mostly it is the one that leads."""
        up, dice, leader = among or self._world.up(), self._world.dice, self._world.log.leader
        if self._is_somebody_down() or not up:
            return
        name = up[dice.between(0, len(up) - 1, "victim", kind)]
        if leader is not None and leader.node in up and dice.chance(LEADS, "leads", kind):
            name = leader.node
        leave(self._world, name)
        wait = dice.between(*milliseconds, "apart", kind)
        self._world.events.after(wait, come_back, self._world, name)

    def suspend_one(self, among: list[str]) -> None:
        """The process of one of these nodes stops for a while, unless another one is down."""
        if among:
            self._leave_for_a_while("suspend", SUSPENDED_MS, suspend, resume, among)

    def _is_somebody_down(self) -> bool:
        down = {n for n, h in self._world.hosts.items() if h.node is None and not h.stopped}
        return bool((down - self.killed) | self._world.absent)

    def elect(self) -> None:
        """Group0 elects a leader."""
        self._world.counted["elections of group0"] += 1
        self._world.meet("group0 elects")
        self._world.log.elect()

    def depose(self) -> None:
        """The coordinator loses its lease."""
        leader = self._world.log.leader
        if leader is not None:
            self._world.counted["deposed coordinators"] += 1
            self._world.story.add(self._world.events.now, "the topology coordinator is deposed")
            self._world.meet("coordinator deposed")
            self._world.log.resign(leader)

    def crash_one(self, among: list[str] | None = None) -> None:
        """A node crashes, unless another one is down."""
        up, hosts = among or self._world.up(), self._world.hosts
        if self._is_somebody_down() or not up:
            return
        name = up[self._world.dice.between(0, len(up) - 1, "victim")]
        if self._world.dice.chance(0.6, "fuse"):
            hosts[name].fuse = self._world.dice.between(0, 12, "fuse length")
        else:
            self._world.crash(name)
        wait = self._world.dice.between(*DOWN_MS, "down")
        self._world.events.after(wait, self._restart, name)

    def cut_off(self, among: list[str]) -> None:
        """A node is cut off from group0 and the coordinator while clients reach it, unless another one is down."""
        if self._is_somebody_down() or self._cut_off or not among:
            return
        name = among[self._world.dice.between(0, len(among) - 1, "cut off")]
        self._cut_off = name
        self._world.meet("node cut off")
        self._world.isolate(name)
        wait = self._world.dice.between(*CUT_OFF_MS, "cut off for")
        self._world.events.after(wait, self._reconnect, name)

    def _reconnect(self, name: str) -> None:
        """It starts again, and hears of the others."""
        self._cut_off = ""
        if name in self._world.isolated and name not in self.killed:
            self._world.isolated.discard(name)
            self._world.crash(name)
            self._restart(name)

    def _restart(self, name: str) -> None:
        self._world.hosts[name].fuse = None
        if name not in self.killed:
            self._world.start(name)

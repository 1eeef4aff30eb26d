"""Faults that are aimed: they strike while the topology is in a state, or a tablet in a stage."""

from __future__ import annotations

from collections.abc import Callable

from stagewright.impl.catalog.view import View
from stagewright.impl.node.messages import Ask, OperatorRequest
from stagewright.impl.simulator.database.troubles import Troubles
from stagewright.impl.simulator.database.weather import DEATHS, ENTERED, at_stage
from stagewright.impl.simulator.database.world import World
from stagewright.machines.scylladb.tablets.tablet_stages import Replicas, Stage
from stagewright.machines.scylladb.topology.topology_states import NodeState, TransitionState

AIMED_MS = 40  # until what is aimed at a state strikes, at most
DEAD_MS = 5  # the same of a node that dies for good: many stages are over soon
CUT_MS = 30  # and of one that is cut off, maybe between its answers to the two rounds of a barrier
MUTE_MS = 1_000  # a node's answers to barriers are lost: longer than the coordinator asks for them
EXCLUDED_AFTER_MS = (200, 500)
AGAIN_MS = 600  # until an operator asks once more


class Aims:
    """Knows which states last, and lets what is aimed at them happen."""

    def __init__(self, world: World, troubles: Troubles, view: Callable[[], View]) -> None:
        self._world = world
        self._troubles = troubles
        self._view = view
        self._topology = ""
        self._stages: dict[str, Stage] = {}  # of the tablets that move
        self._dead: dict[str, str] = {}  # who is gone for good: one of a kind of aim

    def committed(self, view: View) -> None:
        """Something was committed: states and stages may have been entered."""
        state, before = view.transition_state.name, self._stages
        self._stages = {row.name: row.tablet.stage for row in view.moving}
        entered = [(at_stage(s), t) for t, s in self._stages.items() if before.get(t) is not s]
        if state != self._topology:
            self._topology = state
            entered.append((state, ""))
        if not entered and len(before) == len(self._stages):
            return
        world = self._world
        world.states = {state, *map(at_stage, self._stages.values())}
        world.aimed = frozenset(kind for kind, at in world.faults.aimed if at in world.states)
        for at, tablet in entered:
            world.met[at, ENTERED] += 1
            for kind, aimed_at in world.faults.aimed:
                if aimed_at == at:
                    wait = world.dice.between(0, self._at_most(kind), "aimed", f"{kind}@{at}")
                    world.events.after(wait, self._strike, kind, at, tablet)

    def _at_most(self, kind: str) -> int:
        """How long an aim waits at most; who dies second does so at once, as tablets have soon turned back."""
        if kind in DEATHS:
            return DEAD_MS if kind in self._dead or not self._dead else 0
        return CUT_MS if kind == "cut" else AIMED_MS

    def _strike(self, kind: str, at: str, tablet: str) -> None:
        if not self._troubles.on or at not in self._world.states:
            return
        row = next((r for r in self._view().moving if r.name == tablet), None)
        if tablet and (row is None or at_stage(row.tablet.stage) != at):
            return
        hosts = () if row is None else (*row.tablet.hosts(Stage.streaming.storage),)
        match kind:
            case "crash":
                self._troubles.crash_one([h for h in hosts if h in self._world.up()])
            case "cut":
                self._troubles.cut_off([h for h in hosts if h in self._world.up()])
            case "suspend":
                self._troubles.suspend_one([h for h in hosts if h in self._world.up()])
            case "failover":
                self._troubles.depose()
            case "election":
                self._troubles.elect()
            case "action" if row is not None and row.tablet.stage.barrier:
                host = hosts[self._world.dice.between(0, len(hosts) - 1, "muted")]
                self._world.muted[host] = self._world.events.now + MUTE_MS
            case "dead" if row is not None:
                self._die(kind, [h for hosts in row.hosts.values() for h in hosts])
            case "pending" if row is not None:
                self._die(kind, [h for h in hosts if h not in row.tablet.hosts(Replicas.previous)])
            case _:
                pass  # of messages and actions: while the state lasts

    # -- a node that is gone for good ------------------------------------------------------------------------

    def _die(self, kind: str, among: list[str]) -> None:
        """A replica dies, and is removed; of the ones that come, those that go and those that stay, by turns."""
        candidates = [h for h in among if kind not in self._dead and self._is_bearable(h)]
        if not candidates:
            return
        dead = candidates[self._world.dice.between(0, len(candidates) - 1, "dead")]
        self._dead[kind] = dead
        self._troubles.killed.add(dead)
        self._world.meet("node dies")
        self._world.crash(dead)
        wait = self._world.dice.between(*EXCLUDED_AFTER_MS, "excluded")
        self._world.events.after(wait, self._bury, dead)

    def _is_bearable(self, host: str) -> bool:
        """Whether every acknowledged write survives without a node, and the others have place for its tablets."""
        view, killed = self._view(), self._troubles.killed
        normal = {n for n, m in view.nodes.items() if m.state is NodeState.normal and not m.asked}
        here = normal - killed - {host}
        missing = {
            n for n in killed if n in view.nodes and view.nodes[n].state is not NodeState.left
        } - {*self._dead.values()}
        going = (view.ignored | view.given_up) - _left(view) - {*self._dead.values()}
        crowded = any(len(here) < factor for factor in view.tables.values())
        if host not in normal or missing or crowded or going:
            return False
        rows = [row for rows in view.tablets.values() for row in rows]
        sets = [r for row in rows for r in (row.tablet.replicas, row.tablet.next or ())]
        if not all(len({r.host for r in one} & here) >= len(one) // 2 + 1 for one in sets if one):
            return False
        return not self._dead or all(
            len({*view.replicas(table, end).writes} - here) <= (factor - 1) // 2
            for table, factor in view.tables.items()
            if table not in view.tablets
            for end in view.rings.ends
        )

    def _bury(self, host: str) -> None:
        """An operator asks for the removal of the node until it is asked for; a refusal brings the node back."""
        view, world = self._view(), self._world
        member = view.nodes.get(host)
        if not self._troubles.on or member is None:
            return
        if member.asked == "remove" or member.state in (NodeState.removing, NodeState.left):
            return
        nodes = [n for n in world.up() if view.nodes[n].state is NodeState.normal]
        if nodes:
            through = nodes[world.dice.between(0, len(nodes) - 1, "buries")]
            world.send("operator", through, OperatorRequest(-1, Ask.remove, host))
        world.events.after(AGAIN_MS, self._bury, host)

    @property
    def rests(self) -> bool:
        """Whether who died has left, so that others may go."""
        view = self._view()
        gone = all(view.nodes[dead].state is NodeState.left for dead in self._dead.values())
        return gone and (not self._dead or view.transition_state is TransitionState.null)


def _left(view: View) -> set[str]:
    return {n for n, m in view.nodes.items() if m.state is NodeState.left}

"""Makes things go wrong, where and as often as the faults say, until the run is healed."""

from __future__ import annotations

from random import Random
from typing import Protocol

from stagewright.impl.cluster.settings import Consistency, Settings
from stagewright.impl.cluster.view import TabletView, View
from stagewright.impl.simulator.clock import Clock
from stagewright.impl.simulator.counters import Counters
from stagewright.impl.simulator.faults import OF_MESSAGES, Fault, FaultKind
from stagewright.machines.scylladb.tablets.tablet_stages import Stage

SOON_MS = (0, 40)
DOWN_MS = (60, 400)
EXCLUDED_AFTER_MS = (260, 600)


class World(Protocol):
    """What the injector can do."""

    def view(self) -> View:
        """What is committed."""
        ...

    def crash(self, node: str, *, after_effects: int | None = None) -> None:
        """Crash a node now, or in the midst of what it does next."""
        ...

    def restart(self, node: str) -> None:
        """Bring a node back."""
        ...

    def isolate(self, node: str) -> None:
        """Cut a node off from group0 and from the coordinator, for good; clients still reach it."""
        ...

    def exclude(self, node: str) -> None:
        """The operator declares a node gone for good."""
        ...

    def fail_over(self) -> None:
        """Elect another topology coordinator."""
        ...

    def fail_operation(self, tablet: str) -> None:
        """Let the action fail that runs for a tablet."""
        ...

    def mute(self, node: str, milliseconds: int) -> None:
        """Let a node leave barriers unanswered for a while."""
        ...

    def make_unwanted(self, tablet: str) -> None:
        """Do not want the migration of a tablet any more."""
        ...


class Injector:
    """Decides, at each stage that a tablet enters, what goes wrong."""

    def __init__(
        self,
        faults: tuple[Fault, ...],
        settings: Settings,
        world: World,
        clock: Clock,
        rng: Random,
        counters: Counters,
    ) -> None:
        self._events = [f for f in faults if f.kind not in OF_MESSAGES]
        self._of_messages = [f for f in faults if f.kind in OF_MESSAGES]
        self._settings = settings
        self._world = world
        self._clock = clock
        self._rng = rng
        self._counters = counters
        self._stages: dict[str, Stage] = {}  # where the tablets are
        self.given_up: str | None = None  # the node that is gone for good: one a run
        self.healed = False

    def rate(self, kind: FaultKind) -> float:
        """The share of messages that a fault befalls now."""
        if self.healed:
            return 0.0
        at = set(self._stages.values())
        rates = [f.rate for f in self._of_messages if f.kind is kind and f.stage in (None, *at)]
        return max(rates, default=0.0)

    def entered(self, tablet: str, stage: Stage) -> None:
        """A tablet has entered a stage."""
        self._stages[tablet] = stage
        if self.healed or stage is Stage.none:
            return
        for fault in self._of_messages:
            if fault.stage in (None, stage):
                self._counters.faults[stage.name, fault.kind.name] += 1
        for fault in self._events:
            if fault.stage in (None, stage) and self._rng.random() < fault.rate:
                kind, soon = fault.kind, self._rng.randint(*SOON_MS)
                if kind is FaultKind.dead:
                    soon = min(soon, 5)
                self._clock.after(soon, lambda k=kind: self._inject(k, tablet, stage))  # type: ignore[misc]

    def _inject(self, kind: FaultKind, name: str, stage: Stage) -> None:
        tablet = self._world.view().tablets[name]
        if not self.healed and tablet.stage is stage and self._happens(kind, tablet):
            self._counters.faults[stage.name, kind.name] += 1

    def _happens(self, kind: FaultKind, tablet: TabletView) -> bool:
        """Let something go wrong; False if it cannot, as when the only node that may die is dead."""
        match kind:
            case FaultKind.crash:
                return self._crash(tablet)
            case FaultKind.failover:
                self._world.fail_over()
            case FaultKind.action:
                self._world.fail_operation(tablet.name)
                if tablet.stage.barrier:
                    self._world.mute(self._any_of(tablet), 2 * self._settings.barrier_ms)
            case FaultKind.dead:
                return self._give_up(tablet)
            case FaultKind.unwanted:
                self._world.make_unwanted(tablet.name)
                self._world.fail_operation(tablet.name)
            case FaultKind.loss | FaultKind.delay | FaultKind.duplicate:
                raise AssertionError("messages are the network's business")
        return True

    def _any_of(self, tablet: TabletView) -> str:
        return self._rng.choice([*tablet.replicas, *tablet.pending])

    def _crash(self, tablet: TabletView) -> bool:
        node = self._any_of(tablet)
        if node == self.given_up:
            return False
        in_the_midst = self._rng.random() < 0.7
        self._world.crash(node, after_effects=self._rng.randint(0, 9) if in_the_midst else None)
        self._clock.after(self._rng.randint(*DOWN_MS), lambda: self._restart(node))
        return True

    def _restart(self, node: str) -> None:
        if node != self.given_up:
            self._world.restart(node)

    def _give_up(self, tablet: TabletView) -> bool:
        """A replica is gone for good; now and then it is only cut off, and does not know."""
        if self.given_up is not None:
            return False
        candidates = [
            n for n in (*tablet.pending, *tablet.leaving, *tablet.staying) if self._bearable(n)
        ]
        if not candidates:
            return False
        if tablet.stage in (Stage.write_both_read_new, Stage.write_both_read_old_fallback_cleanup):
            candidates = candidates[:1]  # the pending one: only its loss leads back from here
        node = self._rng.choice(candidates)
        self.given_up = node
        quorum = self._settings.consistency is Consistency.quorum
        if quorum and self._rng.random() < 0.4:
            self._world.isolate(node)
        else:
            self._world.crash(node)
        self._clock.after(self._rng.randint(*EXCLUDED_AFTER_MS), lambda: self._world.exclude(node))
        return True

    def _bearable(self, node: str) -> bool:
        """Whether every acknowledged write survives without a node."""
        return all(
            self._survives(replicas, node)
            for t in self._world.view().tablets.values()
            for replicas in (t.replicas, t.next)
        )

    def _survives(self, replicas: tuple[str, ...], node: str) -> bool:
        left = [n for n in replicas if n != node]
        quorum = self._settings.consistency is Consistency.quorum
        return len(left) >= (len(replicas) // 2 + 1 if quorum else 1)

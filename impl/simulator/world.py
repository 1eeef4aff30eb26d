"""The cluster in its simulated world: who is where, who hears whom, who coordinates, and who is down."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import cast

from stagewright.impl.cluster.barriers import Closed
from stagewright.impl.cluster.coordinator import TopologyCoordinator
from stagewright.impl.cluster.group0 import Group0
from stagewright.impl.cluster.messages import (
    CLIENT,
    COORDINATOR,
    GROUP0,
    BarrierRequest,
    ClientReply,
    ClientRequest,
    Effect,
    Entries,
    Fetch,
    Message,
    Outcome,
    ReplicaReply,
    ReplicaRequest,
    Send,
    Wake,
)
from stagewright.impl.cluster.settings import Settings
from stagewright.impl.cluster.view import View
from stagewright.impl.simulator.clock import Clock
from stagewright.impl.simulator.counters import Counters
from stagewright.impl.simulator.faults import Fault, FaultKind
from stagewright.impl.simulator.hosts import Hosts
from stagewright.impl.simulator.injector import Injector
from stagewright.impl.simulator.network import Network
from stagewright.impl.simulator.oracle import Oracle
from stagewright.impl.simulator.recorder import Recorder
from stagewright.impl.store import Entry, StoreError
from stagewright.machines.scylladb.tablets.tablet_migration import TabletMigration
from stagewright.machines.scylladb.tablets.tablet_stages import Stage
from stagewright.spec import RefusedError
from stagewright.spec.trace import TraceWriter, observation
from stagewright.spec.values import State
from stagewright.spec.verdict import Step

LAG_MS = (100, 700)
ELECTION_MS = (20, 80)
REQUESTS = (ClientRequest, ClientReply, ReplicaRequest, ReplicaReply)


class ClusterWorld:
    """Everything that acts in a run, except the clients."""

    def __init__(
        self,
        group0: Group0,
        nodes: tuple[str, ...],
        settings: Settings,
        clock: Clock,
        faults: tuple[Fault, ...],
        seed: int,
        directory: Path,
        trace: TraceWriter | None,
        recorder: Recorder | None,
    ) -> None:
        self.group0 = group0
        self.nodes = nodes
        self.settings = settings
        self.clock = clock
        self.counters = Counters()
        self.oracle = Oracle(settings)
        self.rng = Random(f"{seed}/world")
        self.injector = Injector(
            faults, settings, self, self.clock, Random(f"{seed}/faults"), self.counters
        )
        network_rng = Random(f"{seed}/network")
        self.network = Network(
            self.clock, network_rng, self.counters, self._deliver, self.injector.rate
        )
        self.hosts = Hosts(
            nodes,
            directory,
            settings,
            self.clock,
            self.counters,
            self.send,
            self._crashed,
            self._served,
            recorder,
        )
        self.hear: Callable[[ClientReply], None] = lambda _: None  # the clients' ears
        self._trace = trace
        self._recorder = recorder
        self._coordinators: dict[str, tuple[TopologyCoordinator, str]] = {}  # with their nodes
        self._current: str | None = None
        self._isolated: set[str] = set()
        self._lagging: dict[str, int] = {}  # until when
        self._muted: dict[str, int] = {}  # until when
        group0.store.listeners.append(self._push)

    # -- messages ----------------------------------------------------------------------------------------

    def send(self, sender: str, to: str, message: Message) -> None:
        """Send a message from a node, from group0 or from a client to an address."""
        place = self._coordinators[to][1] if to in self._coordinators else to
        if to.startswith(COORDINATOR) and to not in self._coordinators:
            return  # it is no more
        if not isinstance(message, REQUESTS) and self._isolated & {sender, place}:
            self.counters.messages["cut off"] += 1
            return
        reliable = isinstance(message, ClientRequest | ClientReply)
        self.network.send(sender, place, to, message, reliable=reliable)

    def _deliver(self, to: str, message: Message) -> None:
        if to == CLIENT:
            assert isinstance(message, ClientReply)
            self.hear(message)
        elif to == GROUP0:
            assert isinstance(message, Fetch)
            answer = self.group0.answer(message)
            self.send(GROUP0, answer.to, answer.message)
        elif to in self._coordinators:
            coordinator, _ = self._coordinators[to]
            self._ask(to, lambda: coordinator.handle(message))
        elif to in self.hosts.all:
            self._deliver_to_node(to, message)

    def _deliver_to_node(self, node: str, message: Message) -> None:
        if isinstance(message, BarrierRequest) and self._muted.get(node, 0) > self.clock.now:
            return
        self.hosts.deliver(node, message)

    def _served(self, replica: str, request: ReplicaRequest, outcome: Outcome) -> None:
        """A replica has answered a request."""
        if outcome is Outcome.fenced:
            self.counters.fenced += 1
        if outcome is Outcome.no_storage and replica != self.injector.given_up:
            self.oracle.reached_without_storage(request.row.key, replica, request.coordinator)

    def _push(self, entry: Entry) -> None:
        """Group0 tells every node what was committed; who misses it learns it at the next barrier.

        A node that lags hears nothing for a while.
        """
        for node in self.nodes:
            if self.rng.random() < self.injector.rate(FaultKind.delay):
                self._lagging[node] = self.clock.now + self.rng.randint(*LAG_MS)
            lag = max(0, self._lagging.get(node, 0) - self.clock.now)
            self.clock.after(lag, lambda n=node: self.send(GROUP0, n, Entries((entry,))))  # type: ignore[misc]

    def tell_all(self) -> None:
        """Every node that runs learns everything, at once."""
        entries = Entries(tuple(self.group0.store.entries()))
        for node in self.hosts.up():
            if node not in self._isolated:
                self.hosts.deliver(node, entries)

    # -- the topology coordinator ------------------------------------------------------------------------

    def fail_over(self) -> None:
        """Elect a coordinator; the one before may go on for a while, but can commit nothing."""
        ignored = self.group0.view.ignored
        seats = [n for n in self.hosts.up() if n not in ignored and n not in self._isolated]
        if not seats:
            self.clock.after(ELECTION_MS[1], self.fail_over)
            return
        seat = self.rng.choice(seats)
        term = self.group0.store.new_term()
        coordinator = TopologyCoordinator(self.group0, self.nodes, self.settings, self)
        self._current = coordinator.address
        self._coordinators[coordinator.address] = coordinator, seat
        self.oracle.tell(self.clock.now, f"{seat} becomes the topology coordinator of term {term}")
        if term > 1:
            self.counters.failovers += 1
        self._ask(coordinator.address, coordinator.take_over)

    @property
    def coordinated(self) -> bool:
        """Whether there is a topology coordinator."""
        return self._current is not None

    def with_coordinator(self, order: Callable[[TopologyCoordinator], list[Effect]]) -> bool:
        """Let the present coordinator do something; False if there is none."""
        if self._current is None:
            return False
        address = self._current
        coordinator, _ = self._coordinators[address]
        self._ask(address, lambda: order(coordinator))
        return True

    def _ask(self, address: str, what: Callable[[], list[Effect]]) -> None:
        coordinator, seat = self._coordinators[address]
        try:
            effects = what()
        except StoreError:
            assert address != self._current, "the coordinator of this term was refused"
            self.counters.deposed += 1
            del self._coordinators[address]
            return
        for effect in effects:
            match effect:
                case Send(to, message):
                    if self._recorder is not None:
                        self._recorder.sent_by_coordinator(message)
                    self.send(seat, to, message)
                case Wake(after_ms, reason):
                    self.clock.after(after_ms, lambda r=reason: self._wake(address, r))  # type: ignore[misc]
                case _:
                    raise AssertionError(f"the coordinator {coordinator.address} causes {effect}")

    def _wake(self, address: str, reason: tuple[str | int, ...]) -> None:
        if address in self._coordinators:
            coordinator, _ = self._coordinators[address]
            self._ask(address, lambda: coordinator.wake(reason))

    # -- what the coordinator reports --------------------------------------------------------------------

    def stepped(self, tablet: str, step: Step, before: State, after: State, term: int) -> None:
        """A step counts: record it."""
        seat = self._seat(term)
        if self._trace is not None:
            self._trace.record(tablet, step, observation(after), node=seat, time=self.clock.now)
        if self._recorder is not None:
            self._recorder.stepped(tablet, step, before, after, seat)
        self.counters.steps[step.action] += 1
        old, new = cast("Stage", before["stage"]), cast("Stage", after["stage"])
        arrow = f" -> {new.name}" if new is not old else ""
        self.oracle.tell(self.clock.now, f"{step.label} by {seat}{arrow}", tablet)
        if new is old:
            return
        if old is Stage.none:
            self.counters.started[getattr(after["kind"], "name", "")] += 1
        if new is not Stage.none:
            self.counters.stages[new.name] += 1
        elif old is Stage.revert_migration:
            self.counters.reverted += 1
        else:
            self.counters.done += 1
        self.injector.entered(tablet, new)

    def refused(self, tablet: str, step: str, error: RefusedError) -> None:
        """The definition refused a step: that is its purpose."""
        for requirement in error.requirements:
            self.counters.refused[step, requirement] += 1
        self.oracle.tell(self.clock.now, f"refused: {error.problem}", tablet)

    def barrier_ended(self, ended: Closed, term: int) -> None:
        """A barrier is over."""
        self.counters.barriers["passed" if ended.passed else "failed"] += 1
        if self._recorder is not None:
            entered = {t: self.group0.view.tablets[t].entered for t in ended.tablets}
            self._recorder.barrier_ended(ended, entered, self._seat(term))

    def _seat(self, term: int) -> str:
        return self._coordinators[f"{COORDINATOR}/{term}"][1]

    # -- what the injector does --------------------------------------------------------------------------

    def view(self) -> View:
        """What is committed."""
        return self.group0.view

    def crash(self, node: str, *, after_effects: int | None = None) -> None:
        """Crash a node now, or in the midst of what it does next."""
        host = self.hosts.all[node]
        if after_effects is None or host.node is None:
            self.hosts.crash(node)
        else:
            host.fuse = after_effects

    def _crashed(self, node: str) -> None:
        self.oracle.tell(self.clock.now, f"{node} crashes")
        for address, (_, seat) in list(self._coordinators.items()):
            if seat == node:
                del self._coordinators[address]
                if address == self._current:
                    self._current = None
                    self.clock.after(self.rng.randint(*ELECTION_MS), self.fail_over)

    def restart(self, node: str) -> None:
        """Bring a node back; if it has not crashed yet, it does now."""
        host = self.hosts.all[node]
        if host.fuse is not None:
            self.hosts.crash(node)
        if not host.up:
            self.hosts.start(node)
            self.oracle.tell(self.clock.now, f"{node} is back")

    def isolate(self, node: str) -> None:
        """Cut a node off from group0 and the coordinator, while clients and replicas still reach it."""
        self._isolated.add(node)
        self.oracle.tell(self.clock.now, f"{node} is cut off from group0, but goes on")
        if self._current is not None and self._coordinators[self._current][1] == node:
            self._current = None
            self.clock.after(self.rng.randint(*ELECTION_MS), self.fail_over)

    def exclude(self, node: str) -> None:
        """The operator declares a node gone for good."""
        if self.with_coordinator(lambda c: c.exclude(node)):
            self.oracle.tell(self.clock.now, f"the operator excludes {node}")
        else:
            self.clock.after(ELECTION_MS[1], lambda: self.exclude(node))

    def fail_operation(self, tablet: str) -> None:
        """Let the action fail that runs for a tablet; or only seem so, while it goes on."""
        if self.rng.random() < 0.5:
            self.with_coordinator(lambda c: c.lose_operation(tablet))
            return
        for host in self.hosts.all.values():
            if host.node is not None:
                self.hosts.carry_out(host.name, host.node.fail_operation(tablet))

    def mute(self, node: str, milliseconds: int) -> None:
        """Let a node leave barriers unanswered for a while."""
        self._muted[node] = self.clock.now + milliseconds

    def make_unwanted(self, tablet: str) -> None:
        """Do not want the migration of a tablet any more; refused unless it streams."""
        action = TabletMigration.make_unwanted.__name__
        if action not in self.group0.program.written:
            self.counters.refused[action, "the profile has it"] += 1
            return

        def order(coordinator: TopologyCoordinator) -> list[Effect]:
            coordinator.make_unwanted(tablet)
            return []

        self.with_coordinator(order)

    def heal(self) -> None:
        """Nothing goes wrong any more, and every node that is not given up comes back."""
        self.injector.healed = True
        self._muted.clear()
        for host in self.hosts.all.values():
            if host.name != self.injector.given_up:
                host.fuse = None
                self.restart(host.name)

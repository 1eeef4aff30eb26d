"""A run of the cluster under faults: deterministic from its seed, judged by the oracle, recorded as a trace."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path
from random import Random

from stagewright.impl.cluster.coordinator import TopologyCoordinator
from stagewright.impl.cluster.group0 import Group0
from stagewright.impl.cluster.messages import CLIENT, ClientRequest, Effect, Row
from stagewright.impl.runtime import Instance, Program
from stagewright.impl.simulator.balancer import Balancer
from stagewright.impl.simulator.clients import Clients
from stagewright.impl.simulator.clock import Clock
from stagewright.impl.simulator.counters import Report
from stagewright.impl.simulator.options import Options
from stagewright.impl.simulator.oracle import Promise
from stagewright.impl.simulator.recorder import Recorder
from stagewright.impl.simulator.world import ClusterWorld
from stagewright.impl.store import ControlStore
from stagewright.machines.scylladb.tablets.tablet_migration import TabletMigration
from stagewright.machines.scylladb.tablets.tablet_stages import Kind, Stage
from stagewright.spec import define
from stagewright.spec.scope import without_budgets
from stagewright.spec.trace import TraceWriter

FIRST_START_MS = 150  # by then most keys have been written
BALANCE_MS = (5, 30)
AT_ONCE = 4  # transitions
WORK_MS = 60_000  # the faults last no longer, whatever has been done
HEAL_MS = 30_000  # by then every migration must have ended
SETTLE_MS = 2_000  # everything that is under way ends
TOLD_EVERY_MS = 500
RESUMED_FROM = 1_000_000  # numbers of requests after a restart of the whole cluster

Progress = Callable[[int, int, int], None]  # simulated ms, transitions begun, of how many


def _silent(_simulated_ms: int, _begun: int, _of: int) -> None:
    """Nobody wants to know."""


@lru_cache(maxsize=8)
def program(profile: str) -> Program:
    """The machine of tablets under a profile (by default the newest); failures are without bound."""
    return Program(define(TabletMigration, profile))


def run(
    options: Options,
    directory: Path,
    *,
    acknowledged: Callable[[Row], None] | None = None,
    progress: Progress = _silent,
) -> Report:
    """Run a new cluster, whose files are in `directory`; files of an earlier run there are replaced.

    `acknowledged` is called with each write when it is acknowledged.

    Raises:
        ScopeError: there is no such profile.
    """
    rules = program(options.profile)
    directory.mkdir(parents=True, exist_ok=True)
    for old in (*directory.glob("node*.sqlite*"), *directory.glob("group0.sqlite*")):
        old.unlink()
    with ExitStack() as stack:
        trace = stack.enter_context(
            TraceWriter(directory / "trace.jsonl", rules.definition, f"run-{options.seed}")
        )
        clock = Clock()
        recorder = Recorder(directory, trace.trace, options.settings(), clock)
        stack.callback(recorder.close)
        simulation = _Simulation(options, directory, rules, clock, stack, trace, recorder)
        if acknowledged is not None:
            simulation.world.oracle.listener = acknowledged
        for number, tablet in enumerate(simulation.world.settings.tablets):
            simulation.world.group0.place(tablet, simulation.balancer.first_replicas(number))
            trace.start(tablet, Instance(rules).state, time=clock.now)
        simulation.world.tell_all()
        simulation.progress = progress
        return simulation.report_of_run(trace.path, *recorder.paths)


def resume(options: Options, directory: Path, acknowledged: Mapping[str, Row]) -> Report:
    """Go on with a cluster whose process was killed, from what its files hold.

    `acknowledged` is the newest acknowledged write of each key. Nothing is recorded: the trace of the
    killed run ends in the midst.

    Raises:
        StoreError: the files belong to another definition.
    """
    with ExitStack() as stack:
        rules = program(options.profile)
        simulation = _Simulation(options, directory, rules, Clock(), stack, None, None)
        simulation.world.oracle.acknowledged.update(acknowledged)
        simulation.clients.go_on_from(RESUMED_FROM)
        return simulation.report_of_run()


class _Simulation:
    """The phases of one run."""

    def __init__(
        self,
        options: Options,
        directory: Path,
        rules: Program,
        clock: Clock,
        stack: ExitStack,
        trace: TraceWriter | None,
        recorder: Recorder | None,
    ) -> None:
        self.options = options
        self.rules = rules
        settings = options.settings()
        store = ControlStore(
            directory / "group0.sqlite",
            rules.definition,
            without_budgets(rules.definition),
            synchronous=False,  # a killed process loses nothing that it gave to the operating system
        )
        stack.callback(store.close)
        group0 = Group0(store, rules)
        self.world = ClusterWorld(
            group0,
            options.node_names,
            settings,
            clock,
            options.faults,
            options.seed,
            directory,
            trace,
            recorder,
        )
        stack.callback(self.world.hosts.close)
        kinds = _kinds(rules)
        self.balancer = Balancer(options, kinds, Random(f"{options.seed}/balancer"))
        self._rng = Random(f"{options.seed}/phases")
        self.clients = Clients(
            options,
            self.world.clock,
            Random(f"{options.seed}/clients"),
            self.world.oracle,
            self.world.counters,
            self.world.hosts.up,
            self._request,
        )
        self.world.hear = self.clients.hear
        self._begun = 0
        self._settling = False
        self.progress: Progress = _silent

    def _request(self, node: str, request: ClientRequest) -> None:
        self.world.send(CLIENT, node, request)

    def _at_rest(self) -> bool:
        return all(t.stage is Stage.none for t in self.world.group0.view.tablets.values())

    def _all_begun(self) -> bool:
        return self._begun >= self.options.migrations

    # -- phases ------------------------------------------------------------------------------------------

    def report_of_run(self, *traces: Path) -> Report:
        """Work under faults, heal, settle, and look at everything."""
        world, clock = self.world, self.world.clock
        world.fail_over()
        self.clients.start()
        clock.after(TOLD_EVERY_MS, self._tell)
        clock.after(FIRST_START_MS, self._balance)
        clock.run(lambda: self._all_begun() and self._at_rest() and self.clients.finished, WORK_MS)
        world.heal()
        self._begun = self.options.migrations
        clock.run(lambda: self._healed() and self.clients.finished, clock.now + HEAL_MS)
        self.clients.stop()
        self._settle()
        self._read_everything()
        world.oracle.check_the_end(
            world.group0.view, {n: h.store for n, h in world.hosts.all.items() if h.up}
        )
        return Report(
            options=self.options,
            profile=self.rules.definition.profile,
            counters=world.counters,
            breaches=tuple(world.oracle.breaches),
            reads_checked=world.oracle.checked_reads,
            keys=len(self.clients.keys),
            simulated_ms=clock.now,
            commits=world.group0.view.position,
            traces=traces,
        )

    def _tell(self) -> None:
        self.progress(self.world.clock.now, self._begun, self.options.migrations)
        if not self._settling:
            self.world.clock.after(TOLD_EVERY_MS, self._tell)

    def _balance(self) -> None:
        """Begin transitions, a few at once."""
        view = self.world.group0.view
        going_on = sum(t.stage is not Stage.none for t in view.tablets.values())
        if not self._all_begun() and going_on < AT_ONCE and self.world.coordinated:
            planned = self.balancer.plan(view)
            if planned is not None:
                tablet, kind, replicas = planned
                self._begun += 1

                def order(coordinator: TopologyCoordinator) -> list[Effect]:
                    return coordinator.begin(tablet, kind, replicas)

                self.world.with_coordinator(order)
        if not self._all_begun():
            self.world.clock.after(self._rng.randint(*BALANCE_MS), self._balance)

    def _healed(self) -> bool:
        given_up = self.world.injector.given_up
        excluded = given_up is None or given_up in self.world.group0.view.ignored
        return self._at_rest() and excluded

    def _settle(self) -> None:
        """Let everything end that is under way; nodes that are given up are gone now, all others know all."""
        clock, self._settling = self.world.clock, True
        given_up = self.world.injector.given_up
        if given_up is not None:
            self.world.hosts.crash(given_up)
        clock.run(lambda: False, clock.now + SETTLE_MS)
        self.world.tell_all()
        clock.run(lambda: False, clock.now + SETTLE_MS)

    def _read_everything(self) -> None:
        """Read every key through every node: now each read must succeed."""
        clock, requests = self.world.clock, self.world.counters.requests
        returned = requests["reads returned"]
        asked = 0
        for node in self.world.hosts.up():
            for key in self.clients.keys:
                self.clients.read(node, key)
                asked += 1
        clock.run(lambda: False, clock.now + SETTLE_MS)
        missing = asked - (requests["reads returned"] - returned)
        if missing:
            text = f"{missing} of {asked} reads failed after everything had been healed"
            self.world.oracle.broken(Promise.writes, text)


def _kinds(rules: Program) -> frozenset[Kind]:
    """The kinds of transition that a profile has."""
    fresh = Instance(rules)
    kinds = {k for k in Kind if fresh.can(TabletMigration.start, kind=k)}
    if TabletMigration.start_repair.__name__ in rules.written:
        kinds.add(Kind.repair)
    return frozenset(kinds)

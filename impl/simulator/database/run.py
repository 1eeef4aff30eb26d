"""A run: a cluster begins, a script is worked through under faults, all is healed, and everything is looked at."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from stagewright.impl.group0 import Entry
from stagewright.impl.node.messages import (
    ClientReply,
    CreateTable,
    Message,
    ScanReply,
)
from stagewright.impl.node.port import Identity
from stagewright.impl.server_log.files import LOGS, write_logs
from stagewright.impl.simulator.database.absences import must_be_known, resume, reunite
from stagewright.impl.simulator.database.aims import Aims
from stagewright.impl.simulator.database.checks.changes.checks import ChangeChecks
from stagewright.impl.simulator.database.checks.log_check import LogCheck
from stagewright.impl.simulator.database.checks.oracle import Oracle
from stagewright.impl.simulator.database.checks.places_oracle import (
    look_at_dropped,
    look_at_features,
    look_at_refused,
    look_at_rows,
    look_at_tablets,
    look_at_truncated,
)
from stagewright.impl.simulator.database.checks.rest import is_at_rest, is_balanced
from stagewright.impl.simulator.database.checks.rows.oracles import RowOracles
from stagewright.impl.simulator.database.checks.watcher import Watcher
from stagewright.impl.simulator.database.checks.work.refusal_watcher import RefusalWatcher
from stagewright.impl.simulator.database.checks.work.statement_oracle import StatementOracle
from stagewright.impl.simulator.database.clients import Clients
from stagewright.impl.simulator.database.hosts import EPOCH
from stagewright.impl.simulator.database.operations.asks import OPERATION_MS, Asks
from stagewright.impl.simulator.database.operations.nodes import NodeOperations
from stagewright.impl.simulator.database.operations.tables import TableOperations
from stagewright.impl.simulator.database.operations.views import ViewOperations
from stagewright.impl.simulator.database.plan import Plan
from stagewright.impl.simulator.database.report import Outcome, Report
from stagewright.impl.simulator.database.script import Operation
from stagewright.impl.simulator.database.tables import TABLE
from stagewright.impl.simulator.database.troubles import Troubles
from stagewright.impl.simulator.database.weather import NONE
from stagewright.impl.simulator.database.world import World
from stagewright.impl.topology.release import release
from stagewright.machines.scylladb.topology.topology_states import NodeState

BEGIN_MS = 5_000
HEAL_MS = 60_000
SETTLE_MS = 1_500

Progress = Callable[[int, str], None]


def run(
    plan: Plan,
    directory: Path | None = None,
    progress: Progress = lambda _ms, _doing: None,
    *,
    records: bool = True,
) -> Report:
    """Run; what is recorded is written to a directory, if one is named: a file for each kind, or the logs alone.

    `progress` is called with the simulated milliseconds and what goes on.

    Raises:
        InputError: the script names a node that is not there, or that is there already.
    """
    kept = directory is not None
    return _Run(plan, progress, logs=kept, records=kept and records).report(directory)


class _Run:
    def __init__(self, plan: Plan, progress: Progress, *, logs: bool, records: bool) -> None:
        self.plan = plan
        self._records = records
        self._progress = progress
        self._doing = "the cluster begins"
        running = release(plan.profile)
        refuses = plan.workload.refused
        self.world = World(plan.seed, NONE, plan.timing, plan.defects, running, refuses=refuses)
        self.world.logs = {} if logs else None
        self.events = self.world.events
        self.log_check = LogCheck(running, keeps=records)
        self.oracle = Oracle()
        self.asks = asks = Asks(self.world, self.log_check.catalog)
        self.rows = RowOracles(self.world.hosts, self.log_check.catalog, self.oracle)
        self.clients = Clients(
            plan.workload,
            self.events,
            self.world.dice,
            self.oracle,
            self.world.counted,
            asks.serving,
            self.world.send,
        )
        self.world.clients = self._hear
        self.watcher = Watcher(lambda: self.events.now, keeps=records)
        self.world.watcher = self.watcher
        if refuses:
            known = partial(must_be_known, self.world)
            self.watcher.refusals = RefusalWatcher(known, self.oracle.broken)
        self.world.log.listeners.append(self._committed)
        self.statements = StatementOracle(self.oracle)
        self.outcomes: list[Outcome] = []
        self._committed_at = 0
        self._united_at = 0  # when whoever was away at the end was back
        self.troubles = Troubles(self.world, plan.faults)
        self.aims = Aims(self.world, self.troubles, lambda: self.log_check.catalog.view)
        self.nodes = NodeOperations(self.world, self.log_check.catalog, asks, self.troubles.killed)
        asked = self.oracle, self.clients, asks, self.statements
        of_views = self.log_check.problems
        self.views = ViewOperations(self.world, self.log_check.catalog, *asked, of_views)
        self.watcher.follow_views(self.views.check, self.world.hosts)
        now, late = (lambda: (EPOCH + self.events.now) * 1000), round(plan.faults.skew)
        logging = plan.cdc, plan.images, plan.ttl
        self.tables = TableOperations(
            self.world, self.log_check.catalog, *asked, self.troubles, logging
        )
        self.changes: ChangeChecks | None = None
        if plan.cdc:
            self.changes = ChangeChecks(
                self.watcher,
                self.log_check.catalog,
                self.world.hosts,
                self.oracle,
                asks.read,
                now,
                late=late,
                timing=plan.timing,
                script=plan.script,
                reads=plan.workload.reads,
                consumer=plan.consumer,
            )

    def _committed(self, entry: Entry) -> None:
        before, self._committed_at = self.log_check.catalog.view, self.events.now
        self.log_check.hear(entry, self.events.now)
        self.rows.committed(before, self.log_check.catalog.view)
        self.tables.committed(before, self.log_check.catalog.view)
        self.statements.committed(before, self.log_check.catalog.view)
        self.views.committed(entry, before)
        if self.watcher.views is not None:
            self.watcher.views.committed(entry, self.log_check.catalog)
        self.watcher.committed(entry, before, self.log_check.catalog.view, self.world.hosts)
        self.world.story.add(self.events.now, entry.command.description)
        if self.oracle.breaches or self._refused():
            self.world.story.end()
        self._progress(self.events.now, self._doing)
        self.aims.committed(self.log_check.catalog.view)

    def _hear(self, to: str, message: Message) -> None:
        if isinstance(message, ClientReply | ScanReply) and to.startswith("client"):
            self.clients.hear(message)
        else:
            self.asks.hear(message)

    # -- phases ----------------------------------------------------------------------------------------

    def report(self, directory: Path | None) -> Report:
        self._begin()
        self.troubles.switch(True)
        for operation in self.plan.script:
            self.asks.until(lambda: self.aims.rests, OPERATION_MS)
            began, self._doing = self.events.now, str(operation)
            self.world.story.add(began, f"operator: {operation}")
            result = self._work(operation)
            self.outcomes.append(Outcome(str(operation), result, began, self.events.now))
            if self.changes is not None:
                self.changes.poll()
        self.events.run(lambda: self.clients.finished, self.events.now + OPERATION_MS)
        self._heal()
        if self.changes is not None:
            self.changes.look_before_reads()
        self.rows.quorums.look()
        self._look()
        self.views.look()
        if self.watcher.views is not None:
            self.views.count(self.watcher.views.staging)
        if self.changes is not None:
            found = self.changes.read_to_the_end(self.asks.until)
            self.world.counted["changes read from the log"] = found
        if directory is not None:
            write_logs(directory / LOGS, self.world.logs or {})
        if directory is not None and self._records:
            trace = f"run-{self.plan.seed}"
            self.log_check.write_records(directory, trace)
            self.watcher.recording.write(directory, trace)
            self.views.check.write(directory, trace)
        if self.oracle.breaches or self._refused():
            self.world.story.end()
        counted = self.world.counted
        counted["reads checked"] = self.oracle.checked
        if self.tables.repairs.checked:
            counted["rows looked at after repairs"] = self.tables.repairs.checked
        view = self.log_check.catalog.view
        return Report(
            self.outcomes,
            self.oracle.breaches,
            self._refused(),
            dict(sorted(counted.items())),
            self.log_check.edges | {("tablet", *edge) for edge in self.log_check.tablets.edges},
            self.events.now,
            self.world.log.head.position,
            {name: m.state.name for name, m in view.nodes.items()},
            self.log_check.catalog.tables,
            dict(self.world.met),
            self.log_check.tablets.moves,
            self.world.story.kept,
        )

    def _refused(self) -> list[str]:
        return [*self.log_check.problems, *self.watcher.recording.problems]

    def _begin(self) -> None:
        hosts = self.plan.hosts
        for host in hosts:
            self.world.add(Identity(host, founders=hosts))
        self.asks.until(self._all_are_ready, BEGIN_MS)
        self.statements.carry_out("create", TABLE, self._make_table)
        self.asks.until(self._all_have_learned, BEGIN_MS)

    def _make_table(self) -> str:
        while TABLE not in self.log_check.catalog.view.tables:
            plan, logging = self.plan, (self.plan.cdc, self.plan.images, self.plan.ttl)
            wanted = CreateTable(self.asks.number(), TABLE, plan.replicas, 0, *logging)
            self.world.send("operator", "n1", wanted)
            self.asks.until(lambda: TABLE in self.log_check.catalog.view.tables, BEGIN_MS)
        return "done"

    def _all_are_ready(self) -> bool:
        return all(h.node is not None and h.node.context.ready for h in self.world.hosts.values())

    def _all_have_learned(self) -> bool:
        head = self.world.log.head
        return all(
            h.node is None or h.node.context.member.head == head for h in self.world.hosts.values()
        )

    def _work(self, operation: Operation) -> str:
        match operation.verb:
            case "write":
                if not self.clients.tables:
                    return "refused: there is no table"
                self.clients.write(operation.number)
                return "begun"
            case "wait":
                self.asks.until(lambda: False, operation.number)
                return "done"
            case "balancing":
                return self.tables.balance(operation.node == "on")
            case _ if operation.of_view:
                return self.views.work(operation)
            case _ if operation.of_table:
                return self.tables.work(operation)
            case _:
                return self.nodes.work(operation)

    # -- the end ---------------------------------------------------------------------------------------

    def _heal(self) -> None:
        """Nothing goes wrong any more, and whoever has not left is there."""
        self.troubles.switch(False)
        if self.world.absent:
            self._united_at = self.world.events.now
        for name in sorted(self.world.absent):
            resume(self.world, name)
            reunite(self.world, name)
        for name in sorted(self.world.isolated):
            self.world.isolated.discard(name)
            self.world.crash(name)
        for name, host in self.world.hosts.items():
            row = self.log_check.catalog.view.nodes.get(name)
            host.fuse = None
            if row is not None and row.state is not NodeState.left:
                self.world.start(name)
        if not self.asks.until(lambda: self._rests() and self.clients.finished, HEAL_MS):
            state = self.log_check.catalog.view.transition_state.name
            self.oracle.broken(f"what was begun does not end: the topology is in {state}")
        self.asks.until(lambda: False, SETTLE_MS)

    def _rests(self) -> bool:
        view = self.log_check.catalog.view
        changed = max(self._committed_at, self.log_check.tablets.last_change)
        return is_at_rest(view) and (
            not view.tablets or is_balanced(self.world, changed, self._united_at)
        )

    def _look(self) -> None:
        """Every key through every node, every table of every node, every row of every replica."""
        view, keys = self.log_check.catalog.view, self.oracle.keys
        counted = self.world.counted
        before, asked = counted["reads returned"], 0
        enough = len(self.asks.serving()) > self.plan.replicas // 2  # for a quorum
        for node in self.asks.serving() if enough else ():
            for key in keys:
                self.clients.read(-1, key, node)
                asked += 1
        self.asks.until(lambda: self.clients.finished, SETTLE_MS)
        if counted["reads returned"] - before < asked:
            self.oracle.broken("reads failed after all was healed")
        self.tables.probe(self.asks.serving())
        self.asks.until(self._all_have_learned, SETTLE_MS)  # views may be built still
        content = self.log_check.catalog.content()
        gone = {n for n, m in view.nodes.items() if m.state is NodeState.left}  # from group0, too
        for name, host in self.world.hosts.items():
            life = host.node if name not in gone else None
            if life is not None and life.context.catalog.content() != content:
                self.oracle.broken(f"the tables of {name} are not what was committed")
        look_at_features(view, self.oracle)
        look_at_rows(view, self.world.hosts, self.oracle)
        look_at_refused(self.world.hosts, self.oracle)
        look_at_tablets(self.log_check.catalog, self.world.hosts, self.oracle)
        look_at_dropped(view, self.world.hosts, self.oracle)
        look_at_truncated(view, self.world.hosts, self.oracle)
        if self.changes is not None:
            self.changes.look()

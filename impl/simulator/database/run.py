"""A run: a cluster begins, a script is worked through under faults, all is healed, and everything is looked at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from stagewright.impl.catalog.columns import TOPOLOGY
from stagewright.impl.cdc.consumer import Consumer
from stagewright.impl.group0 import Entry
from stagewright.impl.node.defects import Defect
from stagewright.impl.node.messages import (
    Ask,
    ClientReply,
    CreateTable,
    GenerationsReply,
    HostInfo,
    Message,
    OperatorReply,
    OperatorRequest,
    ScanReply,
)
from stagewright.impl.node.port import Identity, Timing
from stagewright.impl.server_log.files import LOGS, write_logs
from stagewright.impl.simulator.database.aims import Aims
from stagewright.impl.simulator.database.checks.changes.checks import ChangeChecks
from stagewright.impl.simulator.database.checks.changes.follower import MakesConsumer
from stagewright.impl.simulator.database.checks.judge import Judge
from stagewright.impl.simulator.database.checks.oracle import Oracle
from stagewright.impl.simulator.database.checks.places_oracle import look_at_rows, look_at_tablets
from stagewright.impl.simulator.database.checks.rest import is_at_rest, is_balanced
from stagewright.impl.simulator.database.checks.rows.oracles import RowOracles
from stagewright.impl.simulator.database.checks.watcher import Watcher
from stagewright.impl.simulator.database.clients import Clients, Workload
from stagewright.impl.simulator.database.hosts import EPOCH
from stagewright.impl.simulator.database.report import Outcome, Report
from stagewright.impl.simulator.database.script import OF_TABLES, OF_VIEWS, Operation
from stagewright.impl.simulator.database.table_operations import TableOperations
from stagewright.impl.simulator.database.tables import TABLE
from stagewright.impl.simulator.database.troubles import Troubles
from stagewright.impl.simulator.database.views import Asks, ViewOperations
from stagewright.impl.simulator.database.weather import NONE, Faults
from stagewright.impl.simulator.database.world import World
from stagewright.impl.topology.release import release
from stagewright.machines.scylladb.topology.topology_states import NodeState
from stagewright.spec.errors import InputError

BEGIN_MS = 5_000
OPERATION_MS = 60_000
UNFINISHED = "not yet"  # faults may hold it up for as long as they last
ASK_MS = 400  # until a consumer gives a question up
AGAIN_MS = 150  # until an operator asks anew
HEAL_MS = 60_000
SETTLE_MS = 1_500
COMPACT_AFTER = 15  # entries of group0
ASKS = {
    "decommission": Ask.leave,
    "remove": Ask.remove,
    "rebuild": Ask.rebuild,
    "cleanup": Ask.cleanup,
    "generation": Ask.new_cdc_generation,
    "abort": Ask.abort,
}


Progress = Callable[[int, str], None]


@dataclass(frozen=True)
class Plan:
    """What a run is asked to be."""

    nodes: int = 3
    replicas: int = 3
    seed: int = 0
    script: tuple[Operation, ...] = ()
    faults: Faults = NONE
    workload: Workload = field(default_factory=Workload)
    timing: Timing = field(default_factory=lambda: Timing(compact_after=COMPACT_AFTER))
    defects: frozenset[Defect] = frozenset()
    cdc: bool = False  # each table has a log, which a consumer follows
    images: bool = False  # which has each row before its change, too
    ttl: int = 0  # milliseconds for which logs keep changes; 0: for ever
    profile: str = ""  # the release of which tablets are; the newest
    consumer: MakesConsumer = Consumer  # what follows logs

    @property
    def hosts(self) -> tuple[HostInfo, ...]:
        """The nodes that begin the cluster: n1, n2 and so on, each in a rack of its own."""
        return tuple(_host(f"n{i + 1}") for i in range(self.nodes))


def _host(name: str) -> HostInfo:
    return HostInfo(name, rack=f"rack-{name}")


def run(
    plan: Plan, directory: Path | None = None, progress: Progress = lambda _ms, _doing: None
) -> Report:
    """Run; what is recorded is written to a directory, if one is named: a file for each kind.

    `progress` is called with the simulated milliseconds and what goes on.

    Raises:
        InputError: the script names a node that is not there, or that is there already.
    """
    return _Run(plan, progress, dumps=directory is not None).report(directory)


class _Run:
    def __init__(self, plan: Plan, progress: Progress, *, dumps: bool) -> None:
        self.plan = plan
        self._progress = progress
        self._doing = "the cluster begins"
        running = release(plan.profile)
        self.world = World(plan.seed, NONE, plan.timing, plan.defects, running)
        self.world.logs = {} if dumps else None
        self.events = self.world.events
        self.judge = Judge(running, keeps=dumps)
        self.oracle = Oracle()
        self.rows = RowOracles(self.world.hosts, self.judge.catalog, self.oracle)
        self.clients = Clients(
            plan.workload,
            self.events,
            self.world.dice,
            self.oracle,
            self.world.counted,
            self._serving,
            self.world.send,
        )
        self.world.clients = self._hear
        self.watcher = Watcher(lambda: self.events.now, keeps=dumps)
        self.world.watcher = self.watcher
        self.world.log.ears.append(self._committed)
        self.outcomes: list[Outcome] = []
        self._replies: dict[int, OperatorReply] = {}
        self._read: dict[int, Message] = {}
        self._number = 0
        self._committed_at = 0
        self.troubles = Troubles(self.world, plan.faults)
        self.aims = Aims(self.world, self.troubles, lambda: self.judge.catalog.view)
        self._killed = self.troubles.killed  # by the script
        asks = Asks(self._until, self._say, self._ask_any, self._serving)
        self.views = ViewOperations(
            self.world, self.judge.catalog, self.oracle, self.clients, asks, self.judge.problems
        )
        self.watcher.follow_views(self.views.check, self.world.hosts)
        now, late = (lambda: (EPOCH + self.events.now) * 1000), round(plan.faults.skew)
        self.tables = TableOperations(
            self.world,
            self.judge.catalog,
            self.oracle,
            self.clients,
            asks,
            self.troubles,
            (plan.cdc, plan.images, plan.ttl),
        )
        self.changes: ChangeChecks | None = None
        if plan.cdc:
            self.changes = ChangeChecks(
                self.watcher,
                self.judge.catalog,
                self.world.hosts,
                self.oracle,
                self._ask_any,
                now,
                late=late,
                timing=plan.timing,
                script=plan.script,
                reads=plan.workload.reads,
                consumer=plan.consumer,
            )

    def _say(self, request: Callable[[int], Message]) -> OperatorReply | None:
        """Ask a node for something that is then committed, or refused; None: there is no answer in time."""
        nodes = self._serving()
        self._number += 1
        number = self._number
        if nodes:
            self.world.send("operator", nodes[0], request(number))
        self._until(lambda: number in self._replies, 4 * AGAIN_MS)
        return self._replies.get(number)

    def _ask_any(self, question: Callable[[int], Message]) -> Message | None:
        """Ask a node that clients know."""
        nodes = self._serving()
        if not nodes:
            return None
        self._number += 1
        number = self._number
        node = nodes[self.world.dice.between(0, len(nodes) - 1, "consumer")]
        self.world.send("consumer", node, question(number))
        self._until(lambda: number in self._read, ASK_MS)
        return self._read.pop(number, None)

    def _committed(self, entry: Entry) -> None:
        before, self._committed_at = self.judge.catalog.view, self.events.now
        self.judge.hear(entry, self.events.now)
        self.rows.committed(before, self.judge.catalog.view)
        self.tables.repairs.committed(before, self.judge.catalog.view)
        self.views.committed(entry, before)
        if self.watcher.views is not None:
            self.watcher.views.committed(entry, self.judge.catalog)
        self.watcher.committed(entry, before, self.judge.catalog.view, self.world.hosts)
        self.world.story.add(self.events.now, entry.command.description)
        if self.oracle.breaches or self._refused():
            self.world.story.end()
        self._progress(self.events.now, self._doing)
        self.aims.committed(self.judge.catalog.view)

    def _hear(self, _to: str, message: Message) -> None:
        if isinstance(message, ClientReply):
            self.clients.hear(message)
        elif isinstance(message, OperatorReply):
            self._replies[message.number] = message
        elif isinstance(message, GenerationsReply | ScanReply):
            self._read[message.number] = message

    def _serving(self) -> list[str]:
        """The nodes that clients know: those of the ring that run, and who is cut off from it."""
        nodes, hosts = self.judge.catalog.view.nodes, self.world.hosts
        known = [n for n, m in nodes.items() if m.state.owns or n in self.world.isolated]
        return [n for n in known if hosts[n].node is not None]

    # -- phases ----------------------------------------------------------------------------------------

    def report(self, directory: Path | None) -> Report:
        self._begin()
        self.troubles.switch(True)
        for operation in self.plan.script:
            self._until(lambda: self.aims.rests, OPERATION_MS)
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
            found = self.changes.read_to_the_end(self._until)
            self.world.counted["changes read from the log"] = found
        if directory is not None:
            trace = f"run-{self.plan.seed}"
            write_logs(directory / LOGS, self.world.logs or {})
            self.judge.write_records(directory, trace)
            self.watcher.recording.write(directory, trace)
            if self.views.check.used:
                self.views.check.write(directory, trace)
        if self.oracle.breaches or self._refused():
            self.world.story.end()
        counted = self.world.counted
        counted["reads checked"] = self.oracle.checked
        if self.tables.repairs.checked:
            counted["rows looked at after repairs"] = self.tables.repairs.checked
        view = self.judge.catalog.view
        return Report(
            self.outcomes,
            self.oracle.breaches,
            self._refused(),
            dict(sorted(counted.items())),
            self.judge.edges | {("tablet", *edge) for edge in self.judge.tablets.edges},
            self.events.now,
            self.world.log.head.position,
            {name: m.state.name for name, m in view.nodes.items()},
            self.judge.catalog.tables,
            dict(self.world.met),
            self.judge.tablets.moves,
            self.world.story.told,
        )

    def _refused(self) -> list[str]:
        return [*self.judge.problems, *self.watcher.recording.problems]

    def _begin(self) -> None:
        hosts = self.plan.hosts
        for host in hosts:
            self.world.add(Identity(host, founders=hosts))
        self._until(self._all_are_ready, BEGIN_MS)
        while TABLE not in self.judge.catalog.view.tables:
            self._number += 1
            plan, logging = self.plan, (self.plan.cdc, self.plan.images, self.plan.ttl)
            wanted = CreateTable(self._number, TABLE, plan.replicas, 0, *logging)
            self.world.send("operator", "n1", wanted)
            self._until(lambda: TABLE in self.judge.catalog.view.tables, BEGIN_MS)
        self._until(self._all_have_learned, BEGIN_MS)

    def _all_are_ready(self) -> bool:
        return all(h.node is not None and h.node.context.ready for h in self.world.hosts.values())

    def _all_have_learned(self) -> bool:
        head = self.world.log.head
        return all(
            h.node is None or h.node.context.member.head == head for h in self.world.hosts.values()
        )

    def _until(self, condition: Callable[[], bool], milliseconds: int) -> bool:
        return self.events.run(condition, self.events.now + milliseconds)

    # -- operations ------------------------------------------------------------------------------------

    def _work(self, operation: Operation) -> str:
        verb, node, by = operation.verb, operation.node, operation.by
        newcomer = by if verb == "replace" else node if verb == "join" else ""
        if newcomer in self.world.hosts:
            raise InputError(f"`{operation}`: {newcomer} was there already", help="use a new name")
        if verb in OF_VIEWS:
            return self.views.work(operation)
        if verb in OF_TABLES:
            return self.tables.work(operation)
        if node and verb not in ("join", "balancing") and node not in self.world.hosts:
            raise InputError(f"`{operation}`: there is no {node}", help="let it join first")
        match verb:
            case "write":
                self.clients.write(operation.number)
                return "begun"
            case "wait":
                self._until(lambda: False, operation.number)
                return "done"
            case "kill":
                self._kill(node)
                return "done"
            case "isolate":
                self.world.isolate(node)
                self._until(
                    lambda: all(self._sees_down(n, node) for n in self._others(node)), BEGIN_MS
                )
                return "done"
            case "restart":
                self._killed.discard(node)
                self.world.start(node)
                return "done"
            case "balancing":
                return self.tables.balance(node == "on")
            case "ask":
                return self._ask(by, node, wait=False)
            case "join" | "replace":
                return self._join(newcomer, node if verb == "replace" else "")
            case _:
                return self._ask(verb, node)

    def _others(self, name: str) -> list[str]:
        return [n for n in self.world.up() if n != name]

    def _kill(self, name: str) -> None:
        if name in self.world.isolated:
            return  # it is down for all but clients
        self._killed.add(name)
        self.world.crash(name)
        self._until(lambda: all(self._sees_down(n, name) for n in self.world.up()), BEGIN_MS)

    def _sees_down(self, node: str, other: str) -> bool:
        found = self.world.hosts[node].node
        return found is None or other in found.context.down

    def _join(self, name: str, replaces: str) -> str:
        shunned = {replaces, *self.world.isolated}
        known = self.judge.catalog.view.nodes.items()
        contacts = tuple(n for n, m in known if m.state.owns and n not in shunned)  # up or not
        if replaces:
            self._kill(replaces)
        self.world.add(Identity(_host(name), contacts=contacts, replaces=replaces))
        host, nodes = self.world.hosts[name], self.judge.catalog.view.nodes

        def over() -> bool:
            state = self.judge.catalog.view.nodes.get(name)
            ended = state is not None and state.state in (NodeState.normal, NodeState.left)
            return ended or bool(host.stopped)

        if not self._until(over, OPERATION_MS):
            return UNFINISHED
        nodes = self.judge.catalog.view.nodes
        if name in nodes and nodes[name].state is NodeState.normal:
            if not self._until(lambda: not self._holds_tablets(replaces), OPERATION_MS):
                return UNFINISHED
            return "done"
        self._killed.add(name)
        self.world.crash(name)
        request = nodes[name].request if name in nodes else None
        return f"failed: {request['error'] if request else host.stopped}"

    def _holds_tablets(self, name: str) -> bool:
        """Whether tablets count a node among their replicas: if it is dead, they have one less."""
        tablets = self.judge.catalog.view.tablets.values()
        return any(r.host == name for rows in tablets for row in rows for r in row.tablet.replicas)

    def _ask(self, verb: str, node: str, *, wait: bool = True) -> str:
        if verb == "remove":
            self._kill(node)
        refusal, known = "", self._request_id(node)
        deadline = self.events.now + OPERATION_MS
        while self.events.now < deadline:
            reply = self._request(OperatorRequest(0, ASKS[verb], node), node)
            # Refused because it is pending already: the answer to an earlier try was lost.
            taken = reply is not None and self._request_id(node) != known
            if reply is not None and (reply.accepted or taken):
                if not wait or verb == "abort":
                    return "asked" if verb != "abort" else "done"
                if not self._until(lambda: self._has_ended(verb, node), OPERATION_MS):
                    return UNFINISHED
                return self._result(verb, node)
            if reply is not None:
                refusal = reply.reason
                break
            self._until(lambda: False, AGAIN_MS)
        return f"refused: {refusal}" if refusal else "no answer"

    def _request_id(self, node: str) -> str:
        """The newest request of a node."""
        row = self.judge.catalog.tables[TOPOLOGY].get((node,))
        return (row["request_id"] or "") if row is not None else ""

    def _request(self, request: OperatorRequest, not_through: str) -> OperatorReply | None:
        shunned = {not_through, *self.world.isolated}
        nodes = [n for n in self._serving() if n not in shunned]
        if not nodes:
            return None
        self._number += 1
        number = self._number
        through = nodes[self.world.dice.between(0, len(nodes) - 1, "operator")]
        self.world.send("operator", through, OperatorRequest(number, request.ask, request.node))
        self._until(lambda: number in self._replies, 4 * AGAIN_MS)
        return self._replies.get(number)

    def _has_ended(self, verb: str, node: str) -> bool:
        if verb in ("cleanup", "generation"):
            return self.judge.catalog.state()["global_request"] is None
        row = self.judge.catalog.view.nodes[node]
        if verb in ("decommission", "remove") and row.state is NodeState.left:
            return True
        ended = row.request is not None and row.request["done"]
        return bool(ended) and row.state in (NodeState.normal, NodeState.left)

    def _result(self, verb: str, node: str) -> str:
        if verb in ("cleanup", "generation"):
            return "done"
        request = self.judge.catalog.view.nodes[node].request
        error = request["error"] if request is not None else None
        return f"failed: {error}" if error else "done"

    # -- the end ---------------------------------------------------------------------------------------

    def _heal(self) -> None:
        """Nothing goes wrong any more, and whoever has not left is there."""
        self.troubles.switch(False)
        for name in sorted(self.world.isolated):
            self.world.isolated.discard(name)
            self.world.crash(name)
        for name, host in self.world.hosts.items():
            row = self.judge.catalog.view.nodes.get(name)
            host.fuse = None
            if row is not None and row.state is not NodeState.left:
                self.world.start(name)
        if not self._until(lambda: self._rests() and self.clients.finished, HEAL_MS):
            state = self.judge.catalog.view.transition_state.name
            self.oracle.broken(f"what was begun does not end: the topology is in {state}")
        self._until(lambda: False, SETTLE_MS)

    def _rests(self) -> bool:
        view = self.judge.catalog.view
        changed = max(self._committed_at, self.judge.tablets.last_change)
        return is_at_rest(view) and (not view.tablets or is_balanced(self.world, changed))

    def _look(self) -> None:
        """Every key through every node, every table of every node, every row of every replica."""
        view, keys = self.judge.catalog.view, sorted({k for k, _ in self.oracle.written})
        counted = self.world.counted
        before, asked = counted["reads returned"], 0
        enough = len(self._serving()) > self.plan.replicas // 2  # for a quorum
        for node in self._serving() if enough else ():
            for key in keys:
                self.clients.read(-1, key, node)
                asked += 1
        self._until(lambda: self.clients.finished, SETTLE_MS)
        if counted["reads returned"] - before < asked:
            self.oracle.broken("reads failed after all was healed")
        self._until(self._all_have_learned, SETTLE_MS)  # views may be built still
        content = self.judge.catalog.content()
        gone = {n for n, m in view.nodes.items() if m.state is NodeState.left}  # from group0, too
        for name, host in self.world.hosts.items():
            life = host.node if name not in gone else None
            if life is not None and life.context.catalog.content() != content:
                self.oracle.broken(f"the tables of {name} are not what was committed")
        look_at_rows(view, self.world.hosts, self.oracle)
        look_at_tablets(self.judge.catalog, self.world.hosts, self.oracle)
        if self.changes is not None:
            self.changes.look()

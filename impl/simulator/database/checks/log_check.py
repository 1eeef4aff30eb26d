"""Checks group0's log while it grows: each entry's steps are taken on an instance of the definition.

Its state is then compared with what the entry's rows say. What the log holds is also a trace that
`stagewright validate` reads: `write` puts it down.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stagewright.impl.catalog.catalog import Catalog
from stagewright.impl.catalog.columns import KEPT, REQUESTS, TOPOLOGY
from stagewright.impl.catalog.dumps import dump, history
from stagewright.impl.group0 import Entry
from stagewright.impl.runtime import Instance
from stagewright.impl.simulator.database.checks.tablet_check import TabletCheck
from stagewright.impl.simulator.database.checks.work.balance_check import BalanceCheck
from stagewright.impl.simulator.database.hosts import EPOCH
from stagewright.impl.topology.planning import INSTANCE
from stagewright.impl.topology.release import Release
from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.topology.topology_states import GlobalRequest, NodeState
from stagewright.spec.errors import StagewrightError
from stagewright.spec.trace import TraceWriter, observation
from stagewright.spec.values import FrozenMap, State
from stagewright.spec.verdict import Step


class LogCheck:
    """What the log comes to, twice: by its rows, and by its steps."""

    def __init__(self, running: Release, *, keeps: bool) -> None:
        self._keeps = (
            keeps  # what is to be written: steps with their states, dumps after each commit
        )
        self.catalog = Catalog()
        self.problems: list[str] = []
        self.tablets = TabletCheck(running.tablets, self.problems, keeps=keeps)
        self.balance = BalanceCheck(self.problems)
        self.edges: set[tuple[str, str, str]] = set()  # taken: of nodes and of the topology
        self._rules = running.topology
        self._instance: Instance | None = None
        self._events: list[tuple[Step | None, State, str, int]] = []
        self._entries: list[Entry] = []
        self._dumps: dict[str, list[str]] = {TOPOLOGY: [], REQUESTS: []}

    def hear(self, entry: Entry, now: int) -> None:
        """An entry is committed."""
        view = self.catalog.view
        self.catalog.apply(entry)
        if self._keeps:
            self._entries.append(entry)
            for table, texts in self._dumps.items():
                texts.append(dump(self.catalog, table, EPOCH + now))
        if self._instance is None:
            self._instance = Instance(self._rules, self.catalog.state(), name=INSTANCE)
            self._record(None, "", now)
            return
        instance = self._instance
        for name in self.catalog.view.nodes:
            if Node(name) not in instance.live(Node):
                instance.add(Node(name))
        before = instance.state
        self.balance.committed(entry, view)
        self.tablets.hear(entry, self.catalog.view, now)
        for step in (s for s in entry.command.steps if s.machine == self._rules.definition.name):
            taken = Step(
                step.action, FrozenMap({k: _value(k, v) for k, v in step.arguments.items()})
            )
            try:
                instance.fire(taken)
            except StagewrightError as error:
                self.problems.append(f"{entry.id.position}: {error.problem}")
                return
            self._record(taken, entry.command.description, now)
        self._cover(before, instance.state)
        self._compare(entry, instance.state)

    def _record(self, taken: Step | None, description: str, now: int) -> None:
        if self._keeps and self._instance is not None:
            self._events.append((taken, self._instance.state, description, now))

    def _compare(self, entry: Entry, state: State) -> None:
        rows = self.catalog.state()
        for name in sorted(KEPT | {"tablet_hosts"}):
            if rows[name] != state[name]:
                self.problems.append(
                    f"{entry.id.position} ({entry.command.description}): the rows say that {name} is "
                    f"{rows[name]}, the steps {state[name]}"
                )

    def _cover(self, before: State, after: State) -> None:
        old: Any = before["node_state"]
        new: Any = after["node_state"]
        for node in new:
            if old.get(node, NodeState.absent) is not new[node]:
                self.edges.add(("node", old[node].name, new[node].name))
        was: Any = before["transition_state"]
        now: Any = after["transition_state"]
        if was is not now:
            self.edges.add(("topology", was.name, now.name))

    def write_records(self, directory: Path, trace: str) -> None:
        """The traces of the topology and of tablets, if there are any, and the dumps."""
        directory.mkdir(parents=True, exist_ok=True)
        self.write(directory / "topology.jsonl", trace)
        tablets = directory / "tablets.jsonl"
        tablets.unlink(missing_ok=True)  # of an earlier run
        if self.catalog.view.tablets:
            self.tablets.write(tablets, trace)
        self.write_dumps(directory / "dumps")

    def write_dumps(self, directory: Path) -> None:
        """The dumps of the tables after each commit, and the history of group0."""
        directory.mkdir(parents=True, exist_ok=True)
        for table, texts in self._dumps.items():
            (directory / f"{table}.json").write_text("\n".join(texts), "utf-8")
        (directory / "group0_history.json").write_text(history(self._entries), "utf-8")

    def write(self, path: Path, trace: str) -> None:
        """The trace of the topology state machine; nodes are numbered as they came."""
        nodes = {Node(n): Node(i) for i, n in enumerate(self.catalog.view.nodes)}
        with TraceWriter(path, self._rules.definition, trace) as writer:
            for step, state, _, now in self._events:
                seen = {k: _renamed(v, nodes) for k, v in state.items()}
                if step is None:
                    writer.start(INSTANCE, FrozenMap(seen), time=now)
                    continue
                arguments = {k: _renamed(v, nodes) for k, v in step.arguments.items()}
                renamed = Step(step.action, FrozenMap(arguments))
                writer.record(INSTANCE, renamed, observation(FrozenMap(seen)), time=now)


def _value(name: str, value: object) -> Any:
    """An argument as a step has it, from its JSON."""
    return GlobalRequest[str(value)] if name == "request" else Node(str(value))


def _renamed(value: Any, nodes: dict[Node, Node]) -> Any:
    match value:
        case Node():
            return nodes[value]
        case frozenset():
            return frozenset(_renamed(v, nodes) for v in value)
        case FrozenMap():
            return FrozenMap({_renamed(k, nodes): _renamed(v, nodes) for k, v in value.items()})
        case _:
            return value

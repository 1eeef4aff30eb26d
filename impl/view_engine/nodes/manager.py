"""The cluster manager: starts nodes, says who has which partition, moves them one by one, fails nodes over.

What it has decided is in `map.json` before a node hears of it: a manager that is started again goes on from there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import stagewright
from stagewright.impl.view_engine.cluster.coordinator import (
    ClusterAnswer,
    Coordinator,
    OnError,
    Streaming,
)
from stagewright.impl.view_engine.cluster.messages import NodeUnavailableError, OutdatedError
from stagewright.impl.view_engine.documents.changes import Position
from stagewright.impl.view_engine.documents.store import partition_of
from stagewright.impl.view_engine.group.partitions import PartitionStateError
from stagewright.impl.view_engine.nodes.layout import ClusterFolder, write_whole
from stagewright.impl.view_engine.nodes.messages import (
    Arrange,
    AskState,
    State,
    Write,
    Written,
)
from stagewright.impl.view_engine.nodes.remote import RemoteNode, numbered
from stagewright.impl.view_engine.query.params import Query
from stagewright.impl.view_engine.trace.files import TraceFiles, end_traces
from stagewright.impl.view_engine.trace.trace import Trace

LOOK = 0.02  # seconds between two looks
PATIENCE = 60.0  # seconds that something may take


class MoveStoppedError(Exception):
    """A partition could not be moved; it stays where it was."""


class ClusterTimeoutError(Exception):
    """Something did not happen in time; the text says what."""


@dataclass
class Map:
    """Who has what: members, the active node of each partition, its replicas, and what moves."""

    members: list[str]
    active: dict[int, str]
    replicas: dict[int, list[str]]
    moving: dict[int, str] = field(default_factory=dict[int, str])  # to which node
    paused: list[int] = field(default_factory=list[int])
    # whose history begins anew, after a failover
    anew: list[int] = field(default_factory=list[int])
    command: int = 0


class ViewCluster:
    """Nodes in processes of their own, in one folder; this process is their manager."""

    def __init__(
        self,
        folder: ClusterFolder,
        *,
        replicas: int = 1,
        trace: Path | None = None,
        program: Sequence[str] = ("-m", "stagewright.impl.view_engine.nodes.program"),
    ) -> None:
        """`replicas`: how many copies of each partition there are besides the active one, if nodes are.

        `trace` is a folder in which each process records what it does, this one its answers. `program` is what
        Python runs as a node.
        """
        self.folder = folder
        self._replicas = replicas
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._remotes: dict[str, RemoteNode] = {}
        self._numbers = count(1)
        self._program = program
        self._traces = None if trace is None else trace.absolute()
        self._trace = None if trace is None else TraceFiles.of_process(trace, "client")
        self._map_path = folder.path / "map.json"
        self.map = _read_map(self._map_path) if self._map_path.exists() else Map([], {}, {})

    # -- processes -----------------------------------------------------------------------------------------

    def start(self, *names: str) -> None:
        """Start nodes, and wait until they listen; ones that run already are left alone."""
        for name in names:
            if self.is_running(name):
                continue
            path = self.folder.node(name)
            path.mkdir(exist_ok=True)
            (path / "address").unlink(missing_ok=True)
            words = ["-P", *self._program, str(self.folder.path), name]
            words += [] if self._traces is None else [str(self._traces)]
            with (path / "output").open("ab") as output:
                self._processes[name] = subprocess.Popen(
                    [sys.executable, *words],
                    stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                    start_new_session=True, env=_environment(),
                )  # fmt: skip
        for name in names:
            self._wait(f"{name} to listen", (self.folder.node(name) / "address").exists, name)

    def is_running(self, name: str) -> bool:
        """Whether the process of a node lives."""
        process = self._processes.get(name)
        return process is not None and process.poll() is None

    def kill(self, name: str) -> None:
        """End a node's process without warning (SIGKILL)."""
        process = self._processes.pop(name)
        process.kill()
        process.wait()

    def close(self) -> None:
        """Stop all nodes."""
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            process.wait()
        for remote in self._remotes.values():
            remote.close()
        if self._trace is not None and self._traces is not None:
            self._trace.close()
            for life in self._traces.iterdir():
                end_traces(life)

    def node(self, name: str) -> RemoteNode:
        """A node, to ask."""
        if name not in self._remotes:
            self._remotes[name] = RemoteNode(name, self.folder.address, self.folder.secret)
        return self._remotes[name]

    # -- what has to hold ------------------------------------------------------------------------------------

    def begin(self, *members: str) -> None:
        """A new cluster, of these nodes: partitions in turn."""
        self.start(*members)
        spread = {p: members[p % len(members)] for p in range(self.folder.partitions)}
        self.map = Map([*members], spread, {p: [] for p in spread})
        self.settle()

    def settle(self) -> None:
        """Make all nodes have what the map says; raises ClusterTimeoutError."""
        self.map.moving, self.map.paused = {}, []
        for partition in self.map.active:
            self._choose_replicas(partition)
        for name in self.map.members:
            self._instruct(name)
        self.map.anew = []
        self._save()

    def _choose_replicas(self, partition: int) -> None:
        active, members = self.map.active[partition], self.map.members
        kept = [n for n in self.map.replicas[partition] if n in members and n != active]
        place = members.index(active)
        others = [n for n in (*members[place + 1 :], *members[:place]) if n not in kept]
        self.map.replicas[partition] = [*kept, *others][: self._replicas]

    def _instruct(self, name: str) -> State:
        """Tell a node what it is to have, until it has obeyed."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                return self.node(name).ask(self._arrangement(name), State, seconds=20)
            except (NodeUnavailableError, PartitionStateError) as error:
                if time.monotonic() > until or not self.is_running(name):
                    raise ClusterTimeoutError(f"{name} does not obey: {error}") from error
                time.sleep(LOOK)

    def _arrangement(self, name: str) -> Arrange:
        now = self.map
        now.command += 1
        self._save()
        active = [p for p, node in now.active.items() if node == name]
        passive = [p for p, node in now.moving.items() if node == name]
        replicas = [p for p, at in now.replicas.items() if name in at and p not in passive]
        return Arrange(
            numbered(), now.command, tuple(active), tuple(passive), tuple(replicas),
            tuple(p for p in now.paused if p in active), tuple(p for p in now.anew if p in active),
            dict(now.active),
        )  # fmt: skip

    # -- rebalance -------------------------------------------------------------------------------------------

    def rebalance(self, *members: str) -> int:
        """Spread partitions evenly over these nodes, one move after the other; gives how many moved.

        Raises MoveStoppedError where a node does not answer: what was moved until then stays moved.
        """
        self.map.members = [*dict.fromkeys([*self.map.members, *members])]
        self.settle()
        moved = 0
        for partition in range(self.folder.partitions):
            load = {n: sum(at == n for at in self.map.active.values()) for n in members}
            old, new = self.map.active[partition], min(members, key=load.__getitem__)
            if old not in load or load[old] > load[new] + 1:
                self._move(partition, old, new)
                moved += 1
        left, self.map.members = [n for n in self.map.members if n not in members], [*members]
        self.settle()
        for name in left:
            self._instruct(name)
        return moved

    def _move(self, partition: int, old: str, new: str) -> None:
        """As ns_server does it: index on the new node, pause the old one, take over, clean up."""
        p, now = partition, self.map
        now.replicas[p] = [name for name in now.replicas[p] if name != new]
        now.moving[p] = new
        try:
            self._instruct(new)
            self._until(new, lambda s: _at(s, p) >= self._position(p, old))
            now.paused.append(p)
            self._instruct(old)
            self._until(new, lambda s: s.indexed.get(p, -1) >= self._position(p, old).seq)
            self._take_over(p, old, new)
        except (NodeUnavailableError, ClusterTimeoutError, PartitionStateError) as error:
            with suppress(ClusterTimeoutError):
                self.settle()
            raise MoveStoppedError(f"partition {p} stays at {now.active[p]}: {error}") from error
        for name in (new, old):
            self._instruct(name)

    def _take_over(self, partition: int, old: str, new: str) -> None:
        """The old node takes no more writes; when the new one has all that it took, the map is changed."""
        p, now = partition, self.map
        now.paused.remove(p)
        stopped = self._arrangement(old)
        active = tuple(q for q in stopped.active if q != p)
        stopping = Arrange(
            stopped.number, stopped.command, active, (*stopped.passive, p), stopped.replicas,
            stopped.paused, (), {q: at for q, at in stopped.sources.items() if q != p},
        )  # fmt: skip
        last = _at(self.node(old).ask(stopping, State, seconds=20), p)
        self._until(new, lambda s: _at(s, p) == last)
        now.active[p] = new
        del now.moving[p]

    def _position(self, partition: int, name: str) -> Position:
        return _at(self.node(name).ask(AskState(numbered()), State), partition)

    def _until(self, name: str, there: Callable[[State], bool]) -> None:
        self._wait(
            f"{name} to have what it gets",
            lambda: there(self.node(name).ask(AskState(numbered()), State)),
            name,
        )

    # -- failover --------------------------------------------------------------------------------------------

    def fail_over(self, dead: str) -> None:
        """The partitions of a node that is gone become active where there are replicas, else empty elsewhere.

        What was not copied is lost.
        """
        now = self.map
        now.members = [name for name in now.members if name != dead]
        for partition, name in now.active.items():
            if name == dead:
                there = [n for n in now.replicas[partition] if n in now.members]
                now.active[partition] = (there or now.members)[0]
                now.replicas[partition] = there[1:]
                now.anew.append(partition)
        self.settle()

    # -- clients ---------------------------------------------------------------------------------------------

    def put(self, doc_id: str, document: object) -> Position:
        """Write a document, or delete it with None; where it is, once it is durable at its active node.

        Raises NodeUnavailableError, after which it may have happened.
        """
        encoded = doc_id.encode()
        partition = partition_of(encoded, self.folder.partitions)
        body = None if document is None else json.dumps(document).encode()
        question = Write(numbered(), partition, encoded, body)
        try:
            written = self.node(self.map.active[partition]).ask(question, Written, seconds=5)
        except OutdatedError as error:
            raise NodeUnavailableError(f"partition {partition} is moving") from error
        return Position(written.seq, written.history)

    def query(
        self, view: str, query: Query | None = None, on_error: OnError = "stop", **parameters: Any
    ) -> ClusterAnswer:
        """Rows of all nodes; `parameters` are those of `Query`. Raises ClusterQueryError, QueryError."""
        with self.streaming(view, query or Query(**parameters), on_error) as found:
            rows = [*found.rows]
        return ClusterAnswer(rows, found.total_rows, found.indexed, found.errors)

    def streaming(
        self, view: str, query: Query, on_error: OnError = "stop"
    ) -> AbstractContextManager[Streaming]:
        """As `query`, row by row from one snapshot of each node. Any thread may call it."""
        coordinator = Coordinator(
            f"{os.getpid()}.{next(self._numbers)}",
            self.node,
            lambda: self.map.active,
            pause=lambda: time.sleep(10 * LOOK),
            trace=Trace(None if self._trace is None else self._trace.take, "client"),
        )
        return coordinator.streaming(self.folder.design, view, query, on_error)

    def _wait(self, what: str, there: Callable[[], bool], name: str) -> None:
        until = time.monotonic() + PATIENCE
        while not there():
            if time.monotonic() > until:
                raise ClusterTimeoutError(f"waited {PATIENCE:g} s for {what}")
            if not self.is_running(name):
                raise ClusterTimeoutError(f"waited for {what}, but its process has ended")
            time.sleep(LOOK)

    def _save(self) -> None:
        write_whole(self._map_path, asdict(self.map))


def _at(state: State, partition: int) -> Position:
    seq, log = state.documents.get(partition, (0, ()))
    return Position(seq, log[0][0] if log else b"")


def _read_map(path: Path) -> Map:
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    for name in ("active", "replicas", "moving"):
        found[name] = {int(p): at for p, at in found[name].items()}
    return Map(**found)


def _environment() -> Mapping[str, str]:
    """In which a node runs the code that its manager does."""
    here = str(Path(stagewright.__file__).parent.parent)
    paths: Iterable[str] = (here, *filter(None, [os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}

"""The machines of the cluster: nodes with their disks, and what it takes to carry out their effects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from stagewright.impl.cluster.messages import (
    DropRows,
    Effect,
    Learn,
    Message,
    Outcome,
    PutRows,
    ReplicaReply,
    ReplicaRequest,
    Send,
    Wake,
)
from stagewright.impl.cluster.node import Node
from stagewright.impl.cluster.node_store import NodeStore
from stagewright.impl.cluster.settings import Settings
from stagewright.impl.simulator.clock import Clock
from stagewright.impl.simulator.counters import Counters
from stagewright.impl.simulator.recorder import Recorder

SendFrom = Callable[[str, str, Message], None]  # sender, address, message

Served = Callable[[str, ReplicaRequest, Outcome], None]  # replica, request, what became of it


@dataclass
class Host:
    """One machine: its disk survives a crash, its memory does not."""

    name: str
    path: Path
    store: NodeStore
    node: Node | None
    starts: int = 1
    fuse: int | None = None  # effects until it crashes in the midst of what it does

    @property
    def up(self) -> bool:
        """Whether it runs."""
        return self.node is not None


class Hosts:
    """All machines of the cluster."""

    def __init__(
        self,
        names: tuple[str, ...],
        directory: Path,
        settings: Settings,
        clock: Clock,
        counters: Counters,
        send: SendFrom,
        crashed: Callable[[str], None],
        served: Served,
        recorder: Recorder | None,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._counters = counters
        self._send = send
        self._crashed = crashed
        self._served = served
        self._recorder = recorder
        self.all: dict[str, Host] = {}
        for name in names:
            path = directory / f"{name}.sqlite"
            store = NodeStore(path)
            self.all[name] = Host(name, path, store, Node(name, store.view(), store, settings))

    def up(self) -> list[str]:
        """The names of the machines that run."""
        return [h.name for h in self.all.values() if h.up]

    def crash(self, name: str) -> None:
        """The machine stops: what it had in memory is lost."""
        host = self.all[name]
        if host.node is None:
            return
        host.node, host.fuse = None, None
        host.store.close()
        self._counters.crashes += 1
        self._crashed(name)

    def start(self, name: str) -> None:
        """The machine comes back with what its disk holds."""
        host = self.all[name]
        if host.node is not None:
            return
        host.starts += 1
        host.store = NodeStore(host.path)
        host.node = Node(name, host.store.view(), host.store, self._settings)

    def deliver(self, name: str, message: Message) -> None:
        """Hand a message to a node; if it is down, nobody notices."""
        node = self.all[name].node
        if node is None:
            return
        if self._recorder is not None:
            self._recorder.heard(node, message)
        effects = node.handle(message)
        if isinstance(message, ReplicaRequest):
            for effect in effects:
                if isinstance(effect, Send) and isinstance(effect.message, ReplicaReply):
                    self._served(name, message, effect.message.outcome)
        self.carry_out(name, effects, message)

    def carry_out(self, name: str, effects: list[Effect], handled: Message | None = None) -> None:
        """Carry out effects in their order, until the machine crashes."""
        host = self.all[name]
        for effect in effects:
            if host.fuse is not None:
                host.fuse -= 1
                if host.fuse < 0:
                    self.crash(name)
                    return
            if self._recorder is not None and host.node is not None:
                self._recorder.carried_out(host.node, effect, handled)
            match effect:
                case Send(to, message):
                    self._send(name, to, message)
                case Wake():
                    self._wake_later(host, effect)
                case PutRows() | DropRows() | Learn():
                    if isinstance(effect, PutRows):
                        self._counters.rows_written += len(effect.rows)
                    host.store.carry_out(effect)

    def _wake_later(self, host: Host, wake: Wake) -> None:
        start = host.starts

        def ring() -> None:
            if host.node is not None and host.starts == start:
                self.carry_out(host.name, host.node.wake(wake.reason))

        self._clock.after(wake.after_ms, ring)

    def close(self) -> None:
        """Close all disks."""
        for host in self.all.values():
            host.store.close()

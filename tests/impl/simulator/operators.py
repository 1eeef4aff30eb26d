"""An operator of a simulated cluster without faults, who asks single nodes."""

from __future__ import annotations

from collections.abc import Callable

from stagewright.impl.node.messages import HostInfo, Message, OperatorReply
from stagewright.impl.node.node import DatabaseNode
from stagewright.impl.node.port import Identity
from stagewright.impl.simulator.database.world import World

PATIENCE = 60_000  # simulated milliseconds


class Operator:
    """Begins a cluster of nodes n1, n2 and so on, each in a rack of its own, whose logs are kept."""

    def __init__(self, nodes: int = 3) -> None:
        self.world = World(1)
        self.world.logs = {}
        self.replies: list[Message] = []
        self.world.clients = lambda _to, message: self.replies.append(message)
        founders = tuple(HostInfo(f"n{i + 1}", rack=f"rack-n{i + 1}") for i in range(nodes))
        for host in founders:
            self.world.add(Identity(host, founders=founders))
        self.until(lambda: all(self.node(h.name).context.ready for h in founders))

    def node(self, name: str) -> DatabaseNode:
        """A node that runs."""
        found = self.world.hosts[name].node
        assert found is not None
        return found

    def until(self, condition: Callable[[], bool]) -> None:
        """Let time pass until something is so."""
        assert self.world.events.run(condition, self.world.events.now + PATIENCE)

    def ask(self, node: str, message: Message) -> Message:
        """What a node answers."""
        self.replies.clear()
        self.world.send("operator", node, message)
        self.until(lambda: bool(self.replies))
        return self.replies[0]

    def change(self, message: Message, node: str = "n1") -> None:
        """Have something committed."""
        reply = self.ask(node, message)
        assert isinstance(reply, OperatorReply)
        assert reply.accepted, reply.reason

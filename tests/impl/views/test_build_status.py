"""Who asks how far views are built sees all that was committed before, also through a node that lags behind."""

from __future__ import annotations

from collections.abc import Callable

from stagewright.impl.group0.simulated import Weather
from stagewright.impl.node.messages import CreateTable, HostInfo, Message, OperatorReply
from stagewright.impl.node.node import DatabaseNode
from stagewright.impl.node.port import Identity
from stagewright.impl.node.table_messages import CreateView, DropView, ViewsReply, ViewsRequest
from stagewright.impl.simulator.database.world import World

PATIENCE = 60_000  # simulated milliseconds
FOUNDERS = tuple(HostInfo(name, rack=name) for name in ("n1", "n2", "n3"))


class Client:
    """An operator of a simulated cluster of three nodes, without faults."""

    def __init__(self) -> None:
        self.world = World(1)
        self.replies: list[Message] = []
        self.world.clients = lambda _to, message: self.replies.append(message)
        for host in FOUNDERS:
            self.world.add(Identity(host, founders=FOUNDERS))
        self.until(lambda: all(self.node(h.name).context.ready for h in FOUNDERS))

    def node(self, name: str) -> DatabaseNode:
        found = self.world.hosts[name].node
        assert found is not None
        return found

    def until(self, condition: Callable[[], bool]) -> None:
        assert self.world.events.run(condition, self.world.events.now + PATIENCE)

    def ask(self, node: str, message: Message) -> Message:
        self.replies.clear()
        self.world.send("operator", node, message)
        self.until(lambda: bool(self.replies))
        return self.replies[0]

    def change(self, message: Message) -> None:
        reply = self.ask("n1", message)
        assert isinstance(reply, OperatorReply)
        assert reply.accepted, reply.reason

    def views(self, node: str) -> list[str]:
        reply = self.ask(node, ViewsRequest(9))
        assert isinstance(reply, ViewsReply)
        return [status.view for status in reply.views]


def test_a_view_that_is_dropped_is_listed_by_no_node_that_is_asked_afterwards() -> None:
    client = Client()
    client.change(CreateTable(1, "ks.t", 3, 2))
    client.change(CreateView(2, "ks.v", "ks.t", 7))
    assert {node: client.views(node) for node in client.world.hosts} == {
        "n1": ["ks.v"],
        "n2": ["ks.v"],
        "n3": ["ks.v"],
    }
    client.world.log.weather = Weather(lag=5_000)
    client.change(DropView(3, "ks.v"))
    lags = [n for n in ("n2", "n3") if client.node(n).context.view.views]
    assert lags  # it has not learned of the drop yet
    assert {node: client.views(node) for node in lags} == {node: [] for node in lags}

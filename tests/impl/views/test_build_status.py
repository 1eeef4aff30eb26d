"""Who asks how far views are built sees all that was committed before, also through a node that lags behind."""

from __future__ import annotations

from tests.impl.simulator.operators import Operator

from stagewright.impl.group0.simulated import Weather
from stagewright.impl.node.messages import CreateTable
from stagewright.impl.node.messages.tables import CreateView, DropView, ViewsReply, ViewsRequest


def listed(operator: Operator, node: str) -> list[str]:
    """The views that a node reports."""
    reply = operator.ask(node, ViewsRequest(9))
    assert isinstance(reply, ViewsReply)
    return [status.view for status in reply.views]


def test_a_view_that_is_dropped_is_listed_by_no_node_that_is_asked_afterwards() -> None:
    operator = Operator()
    operator.change(CreateTable(1, "ks.t", 3, 2))
    operator.change(CreateView(2, "ks.v", "ks.t", 7))
    assert [listed(operator, node) for node in ("n1", "n2", "n3")] == [["ks.v"]] * 3
    operator.world.log.weather = Weather(lag=5_000)
    operator.change(DropView(3, "ks.v"))
    lags = [n for n in ("n2", "n3") if operator.node(n).context.view.views]
    assert lags  # it has not learned of the drop yet
    assert [listed(operator, node) for node in lags] == [[] for _ in lags]

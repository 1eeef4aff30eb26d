"""What holds a node up that is asked to leave is said in the status, as long as it does."""

from __future__ import annotations

from tests.impl.simulator.operators import Operator

from stagewright.impl.node.messages import (
    Ask,
    CreateTable,
    NodeStatus,
    OperatorRequest,
    StatusReply,
    StatusRequest,
)
from stagewright.machines.scylladb.topology.topology_states import NodeState


def status_of_n1(operator: Operator) -> NodeStatus:
    """What n3 says of n1."""
    reply = operator.ask("n3", StatusRequest(9))
    assert isinstance(reply, StatusReply)
    return next(n for n in reply.nodes if n.name == "n1")


def test_a_leave_says_for_whom_its_tablets_wait_and_ends_when_he_is_back() -> None:
    operator = Operator(4)
    operator.change(CreateTable(1, "ks.t", 3, 4))
    assert status_of_n1(operator).held_up == ""
    operator.world.crash("n2")
    operator.until(lambda: "n2" in operator.node("n3").context.down)
    operator.change(OperatorRequest(2, Ask.leave, "n1"), node="n3")
    found = status_of_n1(operator)
    assert (found.request, found.outcome) == ("leave", "pending")
    assert found.held_up == "3 tablets are still on it, which can move when n2 is up again"
    operator.world.start("n2")
    operator.until(lambda: "n2" not in operator.node("n3").context.down)
    assert "n2" not in status_of_n1(operator).held_up
    view = operator.node("n3").context
    operator.until(lambda: view.view.nodes["n1"].state is NodeState.left)
    assert status_of_n1(operator).held_up == ""

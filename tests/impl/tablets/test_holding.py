"""Which nodes hold tablets is said by steps of the topology, or the command is not made: none is left out without a word."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from stagewright.impl.catalog.catalog import Catalog
from stagewright.impl.runtime import Instance
from stagewright.impl.tablets.holding import account
from stagewright.impl.topology.planning import Board
from stagewright.impl.topology.release import release
from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.topology.topology_states import (
    NodeState,
    Request,
    TransitionState,
    Work,
)
from stagewright.spec.errors import RefusedError
from stagewright.spec.values import FrozenMap

NODES = n1, n2, n3 = tuple(map(Node, ("n1", "n2", "n3")))


def board(hold: set[Node], work: Work, **beside: Any) -> Board:
    """Three normal nodes, of which some hold tablets, while tablets move."""
    rules = release().topology
    state = Instance(rules, {}, entities=[*NODES]).state
    changed = {
        "node_state": FrozenMap(dict.fromkeys(NODES, NodeState.normal)),
        "members": frozenset(NODES),
        "tokens": frozenset(NODES),
        "transition_state": TransitionState.tablet_migration,
        "tablet_work": work,
        "tablet_hosts": frozenset(hold),
        **beside,
    }
    catalog = SimpleNamespace(state=lambda: {**state, **changed})
    return Board(rules, cast("Catalog", catalog))


def taken(on: Board) -> list[str]:
    return [one.step.action for one in on.taken]


def test_a_node_that_comes_to_hold_tablets_is_said_to() -> None:
    on = board({n1, n2}, Work.balancing)
    account(on, {"n1", "n2"}, {"n1", "n2", "n3"})
    assert taken(on) == ["settle_tablets_on"]
    assert on.instance.read("tablet_hosts") == {n1, n2, n3}


def test_a_node_whose_last_tablet_has_moved_is_said_to_hold_none() -> None:
    on = board({n1, n2}, Work.balancing)
    account(on, {"n1", "n2"}, {"n2", "n3"})
    assert taken(on) == ["settle_tablets_on", "move_last_tablet"]
    assert on.instance.read("tablet_hosts") == {n2, n3}


def test_who_is_drained_last_ends_the_work() -> None:
    asked = FrozenMap({n1: Request.leave, n2: None, n3: None})
    on = board({n1, n2}, Work.draining, topology_request=asked)
    account(on, {"n1", "n2"}, {"n2"})
    assert taken(on) == ["finish_draining_node"]
    assert on.instance.read("tablet_work") is None


def test_no_command_is_made_by_which_a_node_that_may_not_comes_to_hold_tablets() -> None:
    states = FrozenMap({n1: NodeState.normal, n2: NodeState.normal, n3: NodeState.left})
    on = board({n1, n2}, Work.balancing, node_state=states)
    with pytest.raises(RefusedError, match="the node is normal"):
        account(on, {"n1", "n2"}, {"n1", "n2", "n3"})


def test_nor_one_by_which_a_node_holds_none_and_nobody_takes_over() -> None:
    on = board(
        {n1, n2}, Work.draining, topology_request=FrozenMap(dict.fromkeys(NODES, Request.leave))
    )
    with pytest.raises(RefusedError, match="n1 would hold no tablets, and no step may say so"):
        account(on, {"n1"}, set())

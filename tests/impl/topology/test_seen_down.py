"""Whom a failure detector sees as down, the machine does too, or there is a reason why it need not know: else nothing goes on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from stagewright.impl.catalog.catalog import Catalog
from stagewright.impl.runtime import Instance
from stagewright.impl.topology.planning import Board, step_of
from stagewright.impl.topology.release import release
from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.topology.topology_states import NodeState
from stagewright.spec.errors import RefusedError
from stagewright.spec.values import FrozenMap

NODES = n1, n2, n3 = tuple(map(Node, ("n1", "n2", "n3")))


def board(**beside: Any) -> Board:
    """Three nodes, normal if nothing else is said."""
    rules = release().topology
    state = Instance(rules, {}, entities=[*NODES]).state
    changed = {
        "node_state": FrozenMap(dict.fromkeys(NODES, NodeState.normal)),
        "members": frozenset(NODES),
        "tokens": frozenset(NODES),
        **beside,
    }
    catalog = SimpleNamespace(state=lambda: {**state, **changed})
    return Board(rules, cast("Catalog", catalog))


def test_who_is_down_crashes_and_who_is_back_restarts() -> None:
    on = board(down=frozenset({n2}))
    steps = on.see(frozenset({"n1"}))
    assert steps == [step_of("crash", n=n1), step_of("restart", n=n2)]
    assert [one.step for one in on.taken] == steps
    assert on.instance.read("down") == {n1}
    assert on.see(frozenset({"n1"})) == []


def test_of_who_has_left_it_is_not_kept_whether_it_is_down() -> None:
    states = FrozenMap({n1: NodeState.normal, n2: NodeState.normal, n3: NodeState.left})
    assert board(node_state=states).see(frozenset({"n3"})) == []
    assert board(node_state=states, down=frozenset({n3})).see(frozenset()) == []


def test_who_is_being_removed_stays_down_for_good() -> None:
    states = FrozenMap({n1: NodeState.removing, n2: NodeState.normal, n3: NodeState.normal})
    on = board(node_state=states, down=frozenset({n1, n2}))
    assert on.see(frozenset()) == [step_of("restart", n=n2)]
    assert on.instance.read("down") == {n1}


def test_a_refusal_for_another_reason_is_one_of_the_whole_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    on, refusals = board(), Instance.refusals

    def refused(instance: Instance, action: str, **arguments: Any) -> tuple[str, ...]:
        more = ("the log has room",) if arguments["n"] is n2 else ()
        return (*refusals(instance, action, **arguments), *more)

    monkeypatch.setattr(Instance, "refusals", refused)
    assert on.see(frozenset({"n1"})) == [step_of("crash", n=n1)]
    with pytest.raises(RefusedError, match=r"crash.*n2.* cannot happen: the log has room"):
        on.see(frozenset({"n2", "n1"}))

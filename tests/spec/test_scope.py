"""Scopes, budgets and profiles: what may be chosen, and what is said when it may not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from stagewright.spec import (
    Bool,
    Entity,
    Machine,
    Profile,
    ScopeError,
    Term,
    action,
    budget,
    define,
    every,
    flag,
    invariant,
    only_when,
    part,
    per,
    profiles,
    require,
    scope_of,
)
from stagewright.spec.definition import Definition
from stagewright.spec.grounding.lowering import ground
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.values import FrozenMap


class Node(Entity, scope=3):
    """A node."""


class Zone(Entity):
    """Some nodes."""


@dataclass(frozen=True)
class Release(Profile):
    """A release of the cluster; `fenced` ones refuse a second crash."""

    fenced: bool


class Cluster(Machine):
    """Nodes crash and restart."""

    release = profiles(Release("1.0", fenced=False), Release("1.2", fenced=True))
    crashes = budget(2, doc="nodes that crash")
    restarts = budget()
    up = per(Node, flag(init=True))
    lit = per(Zone, flag())

    @action(spends=crashes)
    def crash(self, node: Term[Node]) -> None:
        require(self.up[node], "it is up")
        if self.release.fenced:
            require(every(self.up[n] for n in Node), "it is the first")
        self.up[node] = False

    @action(spends=restarts)
    def restart(self, node: Term[Node]) -> None:
        require(~self.up[node], "it is down")
        self.up[node] = True

    @action
    def light(self, zone: Term[Zone]) -> None:
        only_when(self.release.fenced)
        self.lit[zone] = True

    @invariant
    def fine(self, zone: Term[Zone]) -> Bool:
        return self.lit[zone] | ~self.lit[zone]


@pytest.fixture
def cluster() -> Definition:
    return define(Cluster)


def test_the_default_scope_is_what_the_definition_says(cluster: Definition) -> None:
    assert str(scope_of(cluster)) == "Node=3, Zone=2, crashes=2, restarts=any"


def test_sizes_are_named_in_any_case_or_by_their_class(cluster: Definition) -> None:
    assert scope_of(cluster, {"node": 1}).sizes[Node] == 1
    assert scope_of(cluster, {"NODE": 5}).sizes == FrozenMap({Node: 5, Zone: 2})
    assert scope_of(cluster, {Zone: 4}).sizes[Zone] == 4


@pytest.mark.parametrize(
    ("sizes", "budgets", "problem", "help"),
    [
        (
            {"nodes": 2},
            {},
            "Cluster has no entity named `nodes`",
            "did you mean `Node`? known: Node, Zone",
        ),
        ({"disk": 2}, {}, "Cluster has no entity named `disk`", "known: Node, Zone"),
        ({"node": 0}, {}, "node=0: a scope needs at least one node", "write node=1 or more"),
        (
            {},
            {"crash": 1},
            "Cluster has no budget named `crash`",
            "did you mean `crashes`? known: crashes, restarts",
        ),
        ({}, {"crashes": -1}, "crashes=-1: a budget cannot be negative", "write crashes=0"),
    ],
)
def test_scope_that_does_not_fit(
    cluster: Definition,
    sizes: Mapping[str, int],
    budgets: Mapping[str, int | None],
    problem: str,
    help: str,
) -> None:
    with pytest.raises(ScopeError) as caught:
        scope_of(cluster, sizes, budgets)
    assert caught.value.problem == problem
    assert help in caught.value.help


def happened(definition: Definition, crashes: int | None) -> tuple[set[str], int]:
    """The actions that happen in some run with one node and zone, and the number of reachable states."""
    scope = scope_of(definition, {"node": 1, "zone": 1}, {"crashes": crashes})
    interpreter = Interpreter(definition, scope)
    seen = set(interpreter.initial_states())
    todo, actions = list(seen), set()
    while todo:
        for step, after in interpreter.successors(todo.pop()):
            actions.add(step.action)
            if after not in seen:
                seen.add(after)
                todo.append(after)
    assert len({ground(definition, scope).encode(s) for s in seen}) == len(seen)
    return actions, len(seen)


def test_a_budget_of_none_is_without_bound_and_needs_no_counter(cluster: Definition) -> None:
    assert happened(cluster, None) == ({"crash", "restart", "light"}, 2 * 2)


def test_a_budget_is_a_counter_that_occurrences_spend(cluster: Definition) -> None:
    # crashes left and up: (2, up) (1, down) (1, up) (0, down) (0, up); and lit or not.
    assert happened(cluster, 2) == ({"crash", "restart", "light"}, 5 * 2)


def test_a_budget_of_zero_removes_its_actions(cluster: Definition) -> None:
    actions, states = happened(cluster, 0)
    assert (actions, states) == ({"light"}, 2)
    names = [
        a.name
        for a in Interpreter(cluster, scope_of(cluster, budgets={"crashes": 0})).definition.actions
    ]
    assert names == ["restart", "light"]


def test_the_newest_profile_is_the_default() -> None:
    assert define(Cluster).profile == "1.2"
    assert define(Cluster, "1.2") == define(Cluster)


def test_a_profile_adds_requirements_and_removes_actions() -> None:
    old, new = define(Cluster, "1.0"), define(Cluster, "1.2")
    assert [a.name for a in old.actions] == ["crash", "restart"]
    assert [a.name for a in new.actions] == ["crash", "restart", "light"]
    assert [r.name for r in old.action("crash").requirements] == ["it is up"]
    assert [r.name for r in new.action("crash").requirements] == ["it is up", "it is the first"]


def test_a_variable_that_only_another_profile_assigns_is_no_constant() -> None:
    assert [v.name for v in define(Cluster, "1.0").variables] == ["up", "lit"]


@pytest.mark.parametrize(
    ("profile", "help"),
    [("1.3", "did you mean `1.2`? known: 1.0, 1.2"), ("seed", "known: 1.0, 1.2")],
)
def test_unknown_profile(profile: str, help: str) -> None:
    with pytest.raises(ScopeError) as caught:
        define(Cluster, profile)
    assert caught.value.problem == f"there is no profile `{profile}`"
    assert help in caught.value.help


def test_a_system_has_the_profiles_of_its_parts() -> None:
    class System(Machine):
        cluster = part(Cluster)

    assert define(System).profile == "1.2"
    assert "cluster.light" not in [a.name for a in define(System, "1.0").actions]
    with pytest.raises(ScopeError, match="there is no profile `2`"):
        define(System, "2")


def test_a_machine_without_profiles_knows_none() -> None:
    class Plain(Machine):
        on = flag()

        @action
        def switch(self) -> None:
            self.on = ~self.on

    assert define(Plain).profile == ""
    with pytest.raises(ScopeError, match="Plain has no profiles"):
        define(Plain, "1.0")


def test_of_a_machine_without_entities_none_is_known() -> None:
    class Lamp(Machine):
        lit = flag()

        @action
        def switch(self) -> None:
            """It is switched on or off."""
            self.lit = ~self.lit

    with pytest.raises(ScopeError, match="has no entity named `node`") as refused:
        scope_of(define(Lamp), {"node": 2})
    assert refused.value.help == "it has no entity: leave this out"

"""What is assumed of actions: alone, shared by several, of each member, of all; in parts of systems too."""

from __future__ import annotations

from enum import Enum, auto

import pytest
from tests.spec.conftest import Refusal

from stagewright.spec import (
    Entity,
    Fairness,
    Machine,
    OneVar,
    Term,
    action,
    budget,
    fairness,
    flag,
    many,
    one_of,
    part,
    per,
    require,
)
from stagewright.spec.declarations.fairness import assumptions
from stagewright.spec.define import define
from stagewright.spec.definition import Definition

WEAK, STRONG = Fairness.WEAK, Fairness.STRONG


class Phase(Enum):
    """Where a thing is."""

    old = auto()
    new = auto()


class Node(Entity):
    """A node."""


class Shard(Entity):
    """A shard of all nodes."""


class Busy(Machine):
    """Some actions alone, some together."""

    faults = budget(1)
    turn = fairness(WEAK)
    own = fairness(STRONG, each=Node)
    on = per(Node, per(Shard, flag()))
    phase: OneVar[Phase] = one_of(Phase, init=Phase.old)

    @action(fair=turn)
    def start(self, n: Term[Node], s: Term[Shard]) -> None:
        require(~self.on[n][s], "it is off")
        self.on[n][s] = True

    @action(fair=(turn, WEAK))
    def stop(self, n: Term[Node], s: Term[Shard]) -> None:
        require(self.on[n][s], "it is on")
        self.on[n][s] = False

    @phase.step(Phase.old, Phase.new, fair=turn)
    def renew(self) -> None: ...

    @action(fair=own)
    def swap(self, s: Term[Shard], n: Term[Node], other: Term[Node]) -> None:
        require(n != other, "they differ")
        self.on[n][s] = ~self.on[other][s]

    @action(spends=faults)
    def fail(self) -> None:
        self.phase = Phase.old


def facts(definition: Definition) -> dict[str, tuple[Fairness, dict[str, list[str]]]]:
    """By assumption: how much, and the keys of each action."""
    return {
        a.name: (a.strength, {m.name: [key.name for key in keys] for m, keys in a.members})
        for a in assumptions(definition.actions)
    }


def test_fairness_is_shared_by_the_actions_that_name_it() -> None:
    assert facts(define(Busy)) == {
        "turn": (WEAK, {"start": [], "stop": [], "renew": []}),
        "stop": (WEAK, {"stop": ["n", "s"]}),
        "own": (STRONG, {"swap": ["n"]}),
    }


class Eager(Machine):
    """All of it is fair, what it spends is not."""

    faults = budget(1)
    progress = fairness(WEAK, all_actions=True)
    old = flag()

    @action
    def age(self) -> None:
        self.old = True

    @action(fair=STRONG)
    def renew(self) -> None:
        self.old = False

    @action(spends=faults)
    def fail(self) -> None:
        self.old = True


class Cluster(Machine):
    """A machine for each node, and one by itself."""

    nodes = many(Eager, over=Node, without=(Eager.fail,))
    one = part(Eager)
    asked = flag()

    @action(fair=WEAK)
    def ask(self, n: Term[Node]) -> None:
        self.asked = True
        self.nodes[n].age()


def test_all_actions_but_what_spends_a_budget_share_one() -> None:
    assert facts(define(Eager)) == {
        "progress": (WEAK, {"age": [], "renew": []}),
        "renew": (STRONG, {"renew": []}),
    }


def test_each_machine_of_a_family_is_fair_by_itself_and_a_step_that_joins_one_is_as_its_own_action() -> (
    None
):
    found = facts(define(Cluster))
    assert found["nodes.progress"] == (WEAK, {"nodes.renew": ["n"]})
    assert found["nodes.renew"] == (STRONG, {"nodes.renew": ["n"]})
    assert found["one.progress"] == (WEAK, {"one.age": [], "one.renew": []})
    assert found["ask"] == (WEAK, {"ask": ["n"]})


def test_what_is_assumed_is_part_of_the_fingerprint() -> None:
    class Alone(Machine):
        on = flag()

        @action(fair=WEAK)
        def press(self, n: Term[Node]) -> None:
            require(n == n, "a node presses")
            self.on = ~self.on

    class Together(Machine):
        turn = fairness(WEAK)
        on = flag()

        @action(fair=turn)
        def press(self, n: Term[Node]) -> None:
            require(n == n, "a node presses")
            self.on = ~self.on

    Together.__name__ = "Alone"
    assert define(Alone).fingerprint() != define(Together).fingerprint()


@pytest.mark.parametrize(
    ("declared", "option", "problem", "help"),
    [
        (
            "turn = fairness(Fairness.WEAK)",
            "fair=fairness(Fairness.WEAK)",
            "action `go` names a fairness that its class does not declare",
            "declare it there",
        ),
        (
            "own = fairness(Fairness.WEAK, each=Node)",
            "fair=own",
            "action `go` shares fairness `own`, which is that of each Node, but takes none",
            "give it a parameter: `x: Term[Node]`",
        ),
        (
            "rest = fairness(Fairness.WEAK, all_actions=True)",
            "fair=rest",
            "action `go` names fairness `rest`, which is that of all actions",
            "leave it out here",
        ),
    ],
)
def test_an_action_cannot_share_it_so(
    refused: Refusal, declared: str, option: str, problem: str, help: str
) -> None:
    refused(
        f"""
        {declared}

        @action({option})
        def go(self) -> None:
            ^^
            self.ready = True
        """,
        problem,
        help,
    )


@pytest.mark.parametrize(
    ("declared", "option", "problem", "help"),
    [
        (
            "misses = budget(1)",
            "fair=Fairness.WEAK, spends=misses",
            "an action that spends a budget cannot be fair",
            "leave `fair` out",
        ),
        (
            "turn = fairness(Fairness.WEAK)",
            "fair=(turn, turn)",
            "`fair` names one fairness twice",
            "keep one",
        ),
        (
            "turn = None",
            "fair=(Fairness.WEAK, 3)",
            "`fair` is 3 (int)",
            "write `Fairness.WEAK` or `Fairness.STRONG`, or a fairness that the class declares",
        ),
    ],
)
def test_an_action_is_not_fair_so(
    refused: Refusal, declared: str, option: str, problem: str, help: str
) -> None:
    refused(
        f"""
        {declared}

        @action({option})
         {"^" * len(f"action({option})")}
        def go(self) -> None:
            self.ready = True
        """,
        problem,
        help,
    )


@pytest.mark.parametrize(
    ("declared", "problem", "help"),
    [
        (
            "turn = fairness(Fairness.NONE)",
            "fairness(Fairness.NONE) assumes nothing",
            "write `Fairness.WEAK`",
        ),
        (
            "turn = fairness(Fairness.WEAK, each=Row)",
            "fairness(..., each=...) names no entity and no enum",
            "write the class whose members",
        ),
        (
            "turn = fairness(Fairness.WEAK, each=Node, all_actions=True)",
            "fairness(...) of all actions cannot be that of each member",
            "leave `each` out",
        ),
        (
            "turn = fairness(Fairness.WEAK)",
            "fairness `turn` is never used",
            "name it at the actions",
        ),
    ],
)
def test_such_a_fairness_is_refused(
    refused: Refusal, declared: str, problem: str, help: str
) -> None:
    name, _, made = declared.partition("= ")
    refused(f"{declared}\n{' ' * (len(name) + 2)}{'^' * len(made)}", problem, help)

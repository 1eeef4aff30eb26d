"""On random machines: no violation is missed or made up, none comes too late, nothing false is proved."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import cast

import pytest
from tests.thorough import some_of

from stagewright.checker.symbolic.bounded import BoundedSearch
from stagewright.checker.symbolic.claims import Claim
from stagewright.checker.symbolic.induction import InductionStep
from stagewright.checker.symbolic.relation import State
from stagewright.checker.symbolic.unrolling import Unrolling
from stagewright.checker.symbolic.z3_terms import Answer, Clock
from stagewright.spec.grounding.ground import Builder, Cell, GroundModel, GroundNode, GroundStep
from stagewright.spec.grounding.ground_eval import evaluate, take
from stagewright.spec.sorts import BoolSort, IntSort

MACHINES = 100
MOST_STEPS = 10


def random_model(random: Random) -> GroundModel:
    """A few cells, some of them signed, and a few steps with random guards and updates."""
    cells = tuple(_cell(random, index) for index in range(random.randint(2, 4)))
    build = Builder([(c.low, c.high, isinstance(c.sort, BoolSort)) for c in cells])
    steps = tuple(_step(random, build, cells, index) for index in range(random.randint(2, 7)))
    start = tuple(random.randint(c.low, c.high) for c in cells)
    parts: dict[str, object] = {"cells": cells, "steps": steps, "initial": (start,)}
    parts |= {"initial_condition": None, "wellformed": None}
    return cast("GroundModel", SimpleNamespace(builder=build, **parts))


def _cell(random: Random, index: int) -> Cell:
    if random.random() < 0.4:
        return Cell(index, f"v{index}", f"v{index}", (), BoolSort(), 0, 2)
    low, size = random.randint(-2, 1), random.randint(2, 4)
    return Cell(index, f"v{index}", f"v{index}", (), IntSort(low, low + size - 1), low, size)


def _step(random: Random, build: Builder, cells: tuple[Cell, ...], index: int) -> GroundStep:
    nodes = [build.cell(c.index) for c in cells] + [build.const(random.randint(-2, 3)), build.true]
    for _ in range(10):
        nodes.append(_grow(random, build, nodes))
    updates: dict[int, GroundNode] = {}
    overflows: list[GroundNode] = []
    for cell in random.sample(cells, random.randint(1, len(cells))):
        boolean = isinstance(cell.sort, BoolSort)
        value = random.choice(
            [n for n in nodes if n.boolean == boolean] or [build.cell(cell.index)]
        )
        updates[cell.index] = value
        overflows.append(build.lt(value, build.const(cell.low)))
        overflows.append(build.lt(build.const(cell.high), value))
    guard = random.choice([n for n in nodes if n.boolean])
    overflow = build.or_(overflows)
    parts = {"index": index, "guard": guard, "updates": updates, "overflows": overflow}
    return cast("GroundStep", SimpleNamespace(**parts))


def _grow(random: Random, build: Builder, nodes: list[GroundNode]) -> GroundNode:
    a, b = random.choice(nodes), random.choice(nodes)
    booleans = [n for n in nodes if n.boolean]
    p, q = random.choice(booleans), random.choice(booleans)
    return random.choice(
        [
            build.not_(p),
            build.and_((p, q)),
            build.or_((p, q)),
            build.eq(a, b),
            build.lt(a, b),
            build.add(a, b),
            build.sub(a, b),
            build.mod(build.mul(a, b), build.const(3)),
            build.min_(a, build.div(b, a)),
            build.if_(p, a, b),
        ]
    )


def random_claim(random: Random, model: GroundModel, name: str) -> Claim:
    build, of_step = model.builder, random.random() < 0.4
    chosen = random.sample(model.cells, random.randint(1, min(3, len(model.cells))))
    values = [
        build.eq(
            build.cell(c.index, new=of_step and random.random() < 0.6),
            build.const(random.randint(c.low, c.high)),
        )
        for c in chosen
    ]
    condition = build.not_(build.and_(values)) if random.random() < 0.8 else build.or_(values)
    return Claim(name, of_step, (condition,))


def explore(model: GroundModel) -> tuple[dict[State, int], list[tuple[State, State]]]:
    """The reachable states with their depths, and the steps between them."""
    depths, edges = {model.initial[0]: 0}, list[tuple[State, State]]()
    queue = list(depths)
    for state in queue:
        for step in model.steps:
            if evaluate(step.guard, state) and not evaluate(step.overflows, state):
                after = take(step, state)
                edges.append((state, after))
                if after not in depths:
                    depths[after] = depths[state] + 1
                    queue.append(after)
    return depths, edges


def shortest(model: GroundModel, claim: Claim) -> int | None:
    (condition,) = claim.conditions
    depths, edges = explore(model)
    if claim.of_step:
        broken = [depths[old] + 1 for old, new in edges if not evaluate(condition, old, new)]
    else:
        broken = [depth for state, depth in depths.items() if not evaluate(condition, state)]
    return min(broken, default=None)


def decide(model: GroundModel, claims: list[Claim]) -> tuple[dict[str, int], set[str], bool]:
    """Where claims are broken, which are proved, and whether the search came to the end of all runs."""
    unrolling = Unrolling(model, claims)
    base = BoundedSearch(unrolling, Clock())
    step = InductionStep(unrolling, claims, Clock())
    broken, proved = dict[str, int](), set[str]()
    for depth in range(MOST_STEPS):
        base.deepen()
        if base.exhausted:
            return broken, proved, True
        for claim, _ in base.violations([c for c in claims if c.name not in broken])[1]:
            broken[claim.name] = depth
        step.deepen()
        for simple in (False, True):
            left = [c for c in claims if c.name not in broken and c.name not in proved]
            for claim in left:
                if step.can_break([claim], [claim], simple=simple) is Answer.UNSAT:
                    proved.add(claim.name)
                    step.accept(claim)
            left = [c for c in left if c.name not in proved]
            for claim in step.inductive_subset(left, simple=simple)[1]:
                proved.add(claim.name)
                step.accept(claim)
    return broken, proved, False


@pytest.mark.parametrize("seed", some_of(range(4)))
def test_every_answer_is_true(seed: int) -> None:
    random, answers = Random(seed), {"broken": 0, "proved": 0, "ended": 0}
    for _ in range(MACHINES // 4):
        model = random_model(random)
        claims = [random_claim(random, model, f"claim {i}") for i in range(3)]
        broken, proved, ended = decide(model, claims)
        for claim in claims:
            depth = shortest(model, claim)
            if depth is None:
                assert claim.name not in broken
            elif depth < MOST_STEPS:
                assert broken[claim.name] == depth
            if claim.name in proved:
                assert depth is None
        if ended:
            assert max(explore(model)[0].values()) < MOST_STEPS
        answers["broken"] += len(broken)
        answers["proved"] += len(proved)
        answers["ended"] += ended
    assert all(answers.values()), f"some kind of answer never came: {answers}"

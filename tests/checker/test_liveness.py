"""Fair lassos: found exactly when there is one, compared with a search through all sets of states.

A step that changes nothing is none; a run may stop where no fair step is enabled.
"""

import random
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from tests.thorough import examples

from stagewright.checker.explicit.graph import Graph
from stagewright.checker.liveness import FairSteps, Lasso, fair_lasso, may_stop

STEPS = 4
SHAPES = (  # ground step 3 is never fair
    FairSteps(weak=((0,), (1,)), strong=((2,),)),
    FairSteps(weak=((0, 1),), strong=((2,),)),
    FairSteps(weak=((2,),), strong=((0, 1),)),
    FairSteps(weak=((0, 1), (1, 2)), strong=()),
    FairSteps(weak=((0,),), strong=((0, 1), (1, 2))),
    FairSteps(weak=(), strong=()),
)

Edge = tuple[int, int, int]


def some_graph(chance: random.Random) -> tuple[int, list[Edge]]:
    """Each ground step is enabled in some states and leads from each of them to one other."""
    states = chance.randint(1, 5)
    density = chance.choice((0.2, 0.4, 0.6))
    pairs = [(s, step) for s in range(states) for step in range(STEPS)]
    chosen = [pair for pair in pairs if chance.random() < density]
    return states, [(s, chance.randrange(states), step) for s, step in chosen]


def graph_of(states: int, edges: list[Edge]) -> Graph:
    sources, targets, steps = (np.array([e[i] for e in edges], dtype=np.int32) for i in range(3))
    return Graph(states, sources, targets, steps, np.empty(0, dtype=np.int64))


def is_fair(fair: FairSteps, edges: list[Edge], visited: set[int], taken: set[int]) -> bool:
    """Whether going for ever round these states, with these steps, is fair."""
    enabled = {s: {step for source, _, step in edges if source == s} for s in visited}
    put_off = [set(group) for group in fair.weak if taken.isdisjoint(group)]
    weakly = all(any(not group & enabled[s] for s in visited) for group in put_off)
    put_off = [set(group) for group in fair.strong if taken.isdisjoint(group)]
    strongly = all(all(not group & enabled[s] for s in visited) for group in put_off)
    return weakly and strongly


def stops(fair: FairSteps, edges: list[Edge], state: int) -> bool:
    """Whether a run may stop in a state."""
    fairly = {step for group in fair.groups for step in group}
    return all(source != state or step not in fairly for source, _, step in edges)


def reach(edges: list[Edge], starts: set[int], within: set[int]) -> set[int]:
    reached = set(starts)
    while new := {t for s, t, _ in edges if s in reached and t in within} - reached:
        reached |= new
    return reached


def fair_run_exists(
    fair: FairSteps, states: int, edges: list[Edge], premise: set[int], conclusion: set[int]
) -> bool:
    """By brute force: some reachable set of waiting states can be gone round fairly, or is an end."""
    waiting = set(range(states)) - conclusion
    reached = reach(edges, premise & waiting, waiting)
    if any(stops(fair, edges, s) for s in reached):
        return True
    for size in range(1, len(reached) + 1):
        for chosen in map(set, combinations(sorted(reached), size)):
            inner = [e for e in edges if e[0] in chosen and e[1] in chosen]
            strong = all(
                reach(inner, {t for s, t, _ in inner if s == a}, chosen) == chosen for a in chosen
            )
            if strong and is_fair(fair, edges, chosen, {step for _, _, step in inner}):
                return True
    return False


def check_lasso(
    lasso: Lasso,
    fair: FairSteps,
    graph: Graph,
    edges: list[Edge],
    premise: set[int],
    conclusion: set[int],
) -> None:
    """It is a run, it waits from the premise on, and it is fair or at an end."""
    assert lasso.start in premise
    at, visited = lasso.start, [lasso.start]
    for edge in (*lasso.path, *lasso.cycle):
        assert graph.sources[edge] == at
        at = int(graph.targets[edge])
        visited.append(at)
    assert not conclusion & set(visited)
    if not lasso.cycle:
        assert stops(fair, edges, at)
        return
    home = visited[len(lasso.path)]
    assert at == home
    taken = {int(graph.steps[e]) for e in lasso.cycle}
    assert is_fair(fair, edges, set(visited[len(lasso.path) :]), taken)


@settings(max_examples=examples(400))
@given(st.integers(0, 2**32), st.sampled_from(SHAPES))
def test_a_fair_lasso_is_found_exactly_when_there_is_one(seed: int, fair: FairSteps) -> None:
    chance = random.Random(seed)
    states, edges = some_graph(chance)
    premise = {s for s in range(states) if chance.random() < 0.5}
    conclusion = {s for s in range(states) if chance.random() < 0.2}
    graph = graph_of(states, edges).changing
    edges = [e for e in edges if e[0] != e[1]]
    masks = [np.array([s in chosen for s in range(states)]) for chosen in (premise, conclusion)]
    lasso = fair_lasso(graph, fair, masks[0], masks[1], may_stop(graph, fair, states))
    assert (lasso is not None) == fair_run_exists(fair, states, edges, premise, conclusion)
    if lasso is not None:
        check_lasso(lasso, fair, graph, edges, premise, conclusion)


# Two states, 0 and 1, between which the unfair step 3 goes to and fro; in both, or in 0 alone, a fair
# step leads out to state 2, where the promise is kept.
TO_AND_FRO = [(0, 1, 3), (1, 0, 3)]


@pytest.mark.parametrize(
    ("fair_step", "enabled_in", "escapes"),
    [
        pytest.param(0, (0, 1), True, id="weak, always enabled: must be taken"),
        pytest.param(0, (0,), False, id="weak, enabled now and then: may be put off for ever"),
        pytest.param(2, (0,), True, id="strong, enabled now and then: must be taken"),
        pytest.param(3, (0, 1), False, id="not fair at all: may be put off for ever"),
        pytest.param(1, (0,), True, id="weak, of a group enabled on both sides: must be taken"),
    ],
)
def test_weak_and_strong_fairness_differ_where_a_step_is_enabled_now_and_then(
    fair_step: int, enabled_in: tuple[int, ...], *, escapes: bool
) -> None:
    fair = FairSteps(weak=((0,), (1, 4)), strong=((2,),))
    way_out = [(s, 2, fair_step) for s in enabled_in]
    if fair_step == 1:
        way_out.append((1, 2, 4))
    graph = graph_of(3, sorted([*TO_AND_FRO, *way_out]))
    premise, conclusion = np.array([True, False, False]), np.array([False, False, True])
    stays = FairSteps(fair.weak, (*fair.strong, (3,)))  # the run may not stop in 0 or 1
    lasso = fair_lasso(graph, stays, premise, conclusion, may_stop(graph, stays, expanded=3))
    assert (lasso is None) is escapes


def test_a_run_may_stop_where_only_unfair_steps_are_enabled() -> None:
    graph = graph_of(2, [(0, 1, 3)])
    premise, conclusion = np.array([True, False]), np.array([False, True])
    fair = FairSteps(weak=((0,),), strong=())
    stops = may_stop(graph, fair, expanded=2)
    assert fair_lasso(graph, fair, premise, conclusion, stops) == Lasso(0, (), ())
    stops = may_stop(graph, fair, expanded=0)  # not known yet
    assert fair_lasso(graph, fair, premise, conclusion, stops) is None

"""Deterministic suites: a tour that takes every transition, and every event that must be refused.

A suite is data: it can be played against an implementation (`play`) or written as a file (`script`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stagewright.checker.conformance.divergence import Move, Walk
from stagewright.checker.conformance.route import Goals, Leg, Numbers, Router
from stagewright.checker.conformance.space import Cover, Space, explored
from stagewright.spec.definition import Definition
from stagewright.spec.scope import Scope

MOST_STATES = 100_000
MOST_MOVES = 200_000
LONGEST_WALK = 200  # moves


@dataclass(frozen=True)
class Suite:
    """Walks that cover `covered` of `total` things, which `of` names; `note` says what was left out.

    `unbudgeted`: they may spend more than the scope's budgets, and their first states have none.
    """

    name: str
    walks: tuple[Walk, ...]
    covered: int
    total: int
    of: str
    note: str = ""
    unbudgeted: bool = False

    @property
    def moves(self) -> int:
        """How many moves all walks have together."""
        return sum(len(walk.moves) for walk in self.walks)


def transition_tour(
    definition: Definition,
    scope: Scope,
    *,
    cover: Cover = Cover.STATES,
    space: Space | None = None,
    moves: int = MOST_MOVES,
) -> Suite:
    """Walks that take every edge of the explored graph at least once.

    With `Cover.CONTROL` one edge a class: the same step between states of the same control state.
    `space`: what was explored of this definition at this scope already. `moves`: the most to plan.
    """
    space = space or explored(definition, scope, states=MOST_STATES)
    classes = space.classes(cover)
    graph = space.graph
    rows = np.stack([classes[graph.sources], graph.steps.astype(np.int64), classes[graph.targets]])
    _, edges = np.unique(rows, axis=1, return_inverse=True)
    goal = np.asarray(edges, dtype=np.int64).reshape(-1)
    goals = Goals(_count(goal), goal, None)
    of = "control edges" if cover is Cover.CONTROL else "edges"
    return planned("tour", of, space, goals, lambda _: Move(space.steps[0]), moves)[0]


def refusal_suite(
    definition: Definition,
    scope: Scope,
    *,
    cover: Cover = Cover.STATES,
    space: Space | None = None,
    moves: int = MOST_MOVES,
) -> Suite:
    """Walks that try, in every reachable state, every event that must be refused there.

    With `Cover.CONTROL`: in every control state, every event and every set of requirements that refuse
    it there. So each requirement that can ever be the only one to refuse is tried where it is.
    """
    space = space or explored(definition, scope, states=MOST_STATES)
    expanded = space.found.expanded
    patterns = space.patterns(expanded)
    instance, state = np.nonzero(patterns)
    rows = np.stack([space.classes(cover)[state], instance, patterns[instance, state]])
    if cover is Cover.STATES:
        rows = rows[:2]
    _, goal = np.unique(rows, axis=1, return_inverse=True)
    goal = np.asarray(goal, dtype=np.int64).reshape(-1)
    event = np.zeros(_count(goal), dtype=np.int64)
    event[goal] = instance
    refused = [Move(i.step, refused=True) for i in space.instances]
    goals = Goals(_count(goal), None, by_state(goal, state, space.states))
    of = f"refused events of {'control ' if cover is Cover.CONTROL else ''}states"
    return planned("refusals", of, space, goals, lambda g: refused[event[g]], moves)[0]


def _count(goal: Numbers) -> int:
    return int(goal.max()) + 1 if goal.size else 0


def by_state(goal: Numbers, state: Numbers, states: int) -> list[Numbers]:
    """The goals of each state, where goal i is met in `state[i]`."""
    order = np.argsort(state, kind="stable")
    ends = np.searchsorted(state[order], np.arange(1, states))
    return np.split(goal[order], ends)


def planned(
    name: str, of: str, space: Space, goals: Goals, at: Callable[[int], Move], most: int
) -> tuple[Suite, NDArray[np.bool_]]:
    """Walks that meet the goals, and which ones they meet; `at`: what is done where a state's goal is met."""
    router = Router(space.graph, space.initial, goals)
    walks: list[Walk] = []
    moves = 0
    while moves < most and (leg := router.walk(min(LONGEST_WALK, most - moves))) is not None:
        walks.append(Walk(space.state(leg.start), tuple(_moves(leg, space, at))))
        moves += len(walks[-1].moves)
    notes = [space.note]
    if router.met < goals.count:
        notes.append(f"stopped after {moves:,} moves")
    note = "; ".join(filter(None, notes))
    return Suite(name, tuple(walks), router.met, goals.count, of, note), router.met_goals


def _moves(leg: Leg, space: Space, at: Callable[[int], Move]) -> Iterator[Move]:
    for met, edge in leg.stops:
        yield from map(at, met)
        if edge is not None:
            yield Move(space.steps[space.graph.steps[edge]])

"""Shortest runs, found by searching the explored levels backwards: no state remembers its parent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from stagewright.checker.explicit.exploration import Exploration
from stagewright.spec.grounding.ground import GroundModel, GroundStep
from stagewright.spec.values import FrozenMap, State
from stagewright.spec.verdict import Run, Step

Path = tuple[int, tuple[tuple[int, int], ...]]
"""An initial state's id, then (ground step, id of the state it leads to), step by step."""


@dataclass(frozen=True)
class _Parent:
    """The first state, and its first ground step, that lead to a state."""

    state: int
    step: int


def paths_to(found: Exploration, targets: Iterable[int]) -> dict[int, Path]:
    """For each target, a shortest path from an initial state; always the same one."""
    ends = sorted(set(targets))
    wanted: dict[int, set[int]] = {}
    for state in ends:
        wanted.setdefault(found.depth_of(state), set()).add(state)
    parents: dict[int, _Parent] = {}
    for depth in range(max(wanted, default=0), 0, -1):
        above = wanted.setdefault(depth - 1, set())
        for state, parent in _parents(found, depth - 1, sorted(wanted[depth])).items():
            parents[state] = parent
            above.add(parent.state)
    return {target: _path(parents, target) for target in ends}


def _path(parents: dict[int, _Parent], target: int) -> Path:
    steps: list[tuple[int, int]] = []
    state = target
    while state in parents:
        steps.append((parents[state].step, state))
        state = parents[state].state
    return state, tuple(reversed(steps))


def _parents(found: Exploration, depth: int, states: Sequence[int]) -> dict[int, _Parent]:
    """The first parent, among the states of one depth, of each of the given states."""
    parents: dict[int, _Parent] = {}
    missing = list(states)
    first, end = found.level(depth)
    end = min(end, found.expanded)
    while missing:
        assert first < end, "every state but the initial ones has a parent one level up"
        after = min(first + found.engine.batch, end)
        expansion = found.engine.expand(found.words[:, first:after])
        for state in missing:
            wanted = found.words[:, state : state + 1]
            edges = np.flatnonzero((expansion.successors == wanted).all(axis=0))
            if edges.size:
                sources, steps = expansion.sources[edges], expansion.steps[edges]
                source = int(sources.min())
                parents[state] = _Parent(first + source, int(steps[sources == source].min()))
        missing = [state for state in missing if state not in parents]
        first = after
    return parents


def step_of(step: GroundStep) -> Step:
    """The step as people and files name it."""
    return Step(step.action.name, FrozenMap(dict(step.arguments)))


def decoded(found: Exploration, state: int) -> State:
    """An explored state in the definition's own values."""
    model: GroundModel = found.engine.model
    return model.decode(found.engine.layout.unpack(found.words, state))


def run_along(found: Exploration, path: Path, loop: tuple[int, int] | None = None) -> Run:
    """The run along a path; `loop`: (index of the state returned to, ground step that returns)."""
    start, steps = path
    ground = found.engine.model.steps
    states = (start, *(state for _, state in steps))
    return Run(
        tuple(decoded(found, state) for state in states),
        tuple(step_of(ground[step]) for step, _ in steps),
        None if loop is None else loop[0],
        None if loop is None else step_of(ground[loop[1]]),
    )

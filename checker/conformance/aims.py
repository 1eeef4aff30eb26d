"""Suites that aim at chosen things of a definition: at what production never did, for instance.

For each thing the first edge of the explored graph that does it is taken, so that the walks are short; a
requirement is aimed at by an event that it must refuse, if possible it alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import assert_never

import numpy as np

from stagewright.checker.conformance.divergence import Move, Walk
from stagewright.checker.conformance.route import Goals, Numbers
from stagewright.checker.conformance.space import Instance, Space
from stagewright.checker.conformance.suites import MOST_MOVES, Suite, by_state, planned
from stagewright.checker.explicit.arrays import Bools
from stagewright.spec.grounding.coverable import (
    ActionOf,
    Edge,
    Move as MoveOf,
    RequirementOf,
    Thing,
    ValueOf,
    value_names,
)
from stagewright.spec.grounding.ground import Cell
from stagewright.spec.sorts import EnumSort


@dataclass(frozen=True)
class Aimed:
    """A suite with the things that its walks do, and those that no explored state offers."""

    suite: Suite
    reached: tuple[Thing, ...]
    unreachable: tuple[Thing, ...]


def aimed_tour(space: Space, things: Sequence[Thing], *, moves: int = MOST_MOVES) -> Aimed:
    """Walks that do each of the things; whole requirements are left to `aimed_refusals`."""
    wanted = [thing for thing in things if not _refusing(thing)]
    places = _Places(space)
    found = {thing: place for thing in wanted if (place := places.of(thing)) is not None}
    edges = sorted({place.edge for place in found.values() if place.edge >= 0})
    goal = np.full(space.graph.sources.size, -1, dtype=np.int64)
    goal[edges] = np.arange(len(edges))
    goals = Goals(len(edges), goal, None)
    of = "edges with what was aimed at"
    suite, met = planned("tour", of, space, goals, lambda _: Move(space.steps[0]), moves)
    taken = {edge for edge, is_met in zip(edges, met.tolist(), strict=True) if is_met}
    # What an initial state shows needs no step, but a run that begins there.
    begun = {walk.start for walk in suite.walks}
    starts = dict.fromkeys(space.state(p.state) for p in found.values() if p.edge < 0)
    walks = (*suite.walks, *(Walk(start, ()) for start in starts if start not in begun))
    reached = tuple(t for t, place in found.items() if place.edge < 0 or place.edge in taken)
    suite = Suite(suite.name, walks, suite.covered, suite.total, suite.of, suite.note)
    return Aimed(suite, reached, tuple(thing for thing in wanted if thing not in found))


def aimed_refusals(space: Space, things: Sequence[Thing], *, moves: int = MOST_MOVES) -> Aimed:
    """Walks that try, for each whole requirement among the things, an event that it must refuse."""
    wanted = [thing for thing in things if _refusing(thing)]
    patterns = space.patterns(space.found.expanded) if wanted else np.zeros((0, 0), np.int64)
    tries: dict[tuple[int, int], int] = {}  # instance and state: the goal
    found: dict[Thing, int] = {}
    for thing in wanted:
        assert isinstance(thing, RequirementOf)
        if (place := _refused(space, patterns, thing)) is not None:
            found[thing] = tries.setdefault(place, len(tries))
    states = np.array([state for _, state in tries], dtype=np.int64)
    here = by_state(np.arange(len(tries), dtype=np.int64), states, space.states)
    events = [Move(space.instances[row].step, refused=True) for row, _ in tries]
    suite, met = planned(
        "refusals",
        "events that what was aimed at refuses",
        space,
        Goals(len(tries), None, here),
        lambda goal: events[goal],
        moves,
    )
    reached = tuple(thing for thing, goal in found.items() if met[goal])
    return Aimed(suite, reached, tuple(thing for thing in wanted if thing not in found))


def _refusing(thing: Thing) -> bool:
    return isinstance(thing, RequirementOf) and not thing.part


def _refused(space: Space, patterns: Numbers, thing: RequirementOf) -> tuple[int, int] | None:
    """The instance and the first state in which a requirement refuses it, alone if it ever does so."""
    action = space.definition.action(thing.action)
    bit = 1 << [r.name for r in action.guards].index(thing.requirement)
    rows = [row for row, one in enumerate(space.instances) if one.step.action == thing.action]
    for alone in (True, False):
        best: tuple[int, int] | None = None
        for row in rows:
            pattern = patterns[row]
            states = np.flatnonzero(pattern == bit if alone else pattern & bit)
            if states.size and (best is None or states[0] < best[1]):
                best = row, int(states[0])
        if best is not None:
            return best
    return None


@dataclass(frozen=True)
class _Place:
    """The edge that does a thing; or, without one (-1), the initial state that shows it."""

    edge: int
    state: int = -1


class _Places:
    """Where in the explored graph things are done first."""

    def __init__(self, space: Space) -> None:
        self._space = space
        model = space.found.engine.model
        self._steps = model.steps
        self._cells: tuple[Cell, ...] = model.cells
        self._values = value_names(model.cells, model.scope)
        self._instances: dict[object, Instance] = {i.step: i for i in space.instances}

    @cached_property
    def _holds(self) -> Bools:
        """Which conditions hold in which states; needed only where a requirement has parts."""
        return self._space.holds(self._space.found.expanded)

    def of(self, thing: Thing) -> _Place | None:
        """The first place; None if there is none."""
        edges: Iterable[Numbers]
        match thing:
            case ValueOf():
                return self._showing(thing)
            case ActionOf(action):
                edges = (self._edges(step) for step in self._steps_of(action))
            case MoveOf(variable, source, target):
                edges = self._moving(range(len(self._steps)), variable, source, target)
            case Edge(variable, source, target, action):
                edges = self._moving(self._steps_of(action), variable, source, target)
            case RequirementOf():
                edges = self._with_part(thing)
            case _:
                assert_never(thing)
        first = [int(some[0]) for some in edges if some.size]
        return _Place(min(first)) if first else None

    def _steps_of(self, action: str) -> list[int]:
        return [i for i, step in enumerate(self._steps) if step.action.name == action]

    def _edges(self, step: int) -> Numbers:
        found: Numbers = self._space.graph.edges_of_step(step).astype(np.int64)
        return found

    def _moving(
        self, steps: Sequence[int], variable: str, source: str, target: str
    ) -> Iterator[Numbers]:
        graph = self._space.graph
        for step in steps:
            edges = self._edges(step)
            for index in self._steps[step].updates if edges.size else ():
                cell = self._cells[index]
                if cell.variable != variable or not isinstance(cell.sort, EnumSort):
                    continue
                names = [member.name for member in cell.sort.members]
                old, new = names.index(source) - cell.low, names.index(target) - cell.low
                values = self._space.values(index)
                moves = (values[graph.sources[edges]] == old) & (
                    values[graph.targets[edges]] == new
                )
                yield edges[moves]

    def _with_part(self, thing: RequirementOf) -> Iterator[Numbers]:
        for step in self._steps_of(thing.action):
            instance = self._instances[self._space.steps[step]]
            condition = instance.parts.get((thing.requirement, thing.part))
            if condition is not None:
                edges = self._edges(step)
                yield edges[self._holds[condition][self._space.graph.sources[edges]]]

    def _showing(self, thing: ValueOf) -> _Place | None:
        states = [
            np.flatnonzero(self._space.values(cell) == code)
            for cell, _, names in self._values
            for code, name in enumerate(names)
            if name == thing
        ]
        first = min((int(some[0]) for some in states if some.size), default=None)
        if first is None:
            return None
        if first < self._space.initial:
            return _Place(-1, first)
        return _Place(int(np.flatnonzero(self._space.graph.targets == first)[0]))

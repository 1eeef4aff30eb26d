"""Walks through explored states that meet every goal: greedily the nearest one, few walks."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from stagewright.checker.explicit.graph import Graph

_FARTHEST = 20_000  # states that a walk looks through for a way on, before a new walk is begun

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Goals:
    """What is to be met: `edges[e]` is met by taking edge e (-1: nothing), `states[s]` by being in state s."""

    count: int
    edges: Numbers | None
    states: Sequence[Numbers] | None


@dataclass(frozen=True)
class Leg:
    """One walk: for each state it comes to, the goals newly met there, then the edge it takes on."""

    start: int
    stops: tuple[tuple[tuple[int, ...], int | None], ...]


@dataclass
class _Open:
    """Goals not met yet, and how many of them each state offers."""

    goals: Goals
    graph: Graph
    met: NDArray[np.bool_] = field(init=False)
    offers: Numbers = field(init=False)
    some: bytearray = field(init=False)  # by state: whether it offers any; quick to ask in a loop
    left: int = field(init=False)

    def __post_init__(self) -> None:
        if self.goals.edges is not None:
            some = self.goals.edges >= 0
            goal, state = self.goals.edges[some], self.graph.sources[some].astype(np.int64)
        else:
            assert self.goals.states is not None
            counts = [len(there) for there in self.goals.states]
            state = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
            parts = [np.empty(0, dtype=np.int64), *self.goals.states]
            goal = np.concatenate(parts)
        order = np.argsort(goal, kind="stable")
        self._state = state[order]
        self._first = np.searchsorted(goal[order], np.arange(self.goals.count + 1))
        self.met = np.zeros(self.goals.count, dtype=np.bool_)
        self.offers = np.bincount(state, minlength=self.graph.states)
        self.some = bytearray(self.offers > 0)
        self._some = np.frombuffer(self.some, dtype=np.uint8)
        self.left = self.goals.count

    def wants(self, edge: int) -> bool:
        """Whether an edge meets a goal that is open."""
        if self.goals.edges is None:
            return False
        goal = int(self.goals.edges[edge])
        return goal >= 0 and not self.met[goal]

    def meet(self, goal: int) -> None:
        """The goal is met, wherever else it could have been."""
        self.met[goal] = True
        self.left -= 1
        states = self._state[self._first[goal] : self._first[goal + 1]]
        np.subtract.at(self.offers, states, 1)
        self._some[states] = self.offers[states] > 0


class Router:
    """Plans the walks; states with ids below `initial` are initial, all ids are in breadth-first order.

    What it does is a function of the graph and the goals alone.
    """

    def __init__(self, graph: Graph, initial: int, goals: Goals) -> None:
        self._graph = graph
        self._goals = goals
        self._open = _Open(goals, graph)
        self._spent = bytearray(graph.states)  # by state: whether no goal is left wherever it leads
        self._offsets = graph.out.offsets.tolist()
        self._targets = graph.targets.tolist()
        self._entered = _first_edges(graph, initial)

    @property
    def met(self) -> int:
        """How many goals the walks so far meet."""
        return self._goals.count - self._open.left

    @property
    def met_goals(self) -> NDArray[np.bool_]:
        """Which goals the walks so far meet."""
        return self._open.met

    def walk(self, longest: int) -> Leg | None:
        """The next walk, of about `longest` moves at most unless the way to a goal is longer; None at the end."""
        found = self._restart()
        if found is None:
            return None
        start, path = found
        stops: list[tuple[tuple[int, ...], int | None]] = []
        state, moves = start, 0
        while True:
            here = self._meet_at(state)
            if not path:
                path = self._onward(state) if moves + len(here) < longest else []
            if not path:
                stops.append((here, None))
                return Leg(start, tuple(stops))
            edge = path.pop(0)
            self._meet_edge(edge)
            stops.append((here, edge))
            moves += len(here) + 1
            state = self._targets[edge]

    def _onward(self, state: int) -> list[int]:
        """The edges to the next goal: one at hand, or the way to the nearest state that offers one."""
        if self._goals.edges is not None and self._open.offers[state]:
            edges = range(self._offsets[state], self._offsets[state + 1])
            return [next(e for e in edges if self._open.wants(e))]
        return self._nearest(state)

    def _restart(self) -> tuple[int, list[int]] | None:
        """The initial state nearest to a state that offers an open goal, and the edges that lead there."""
        if not self._open.left:
            return None
        # Ids are in breadth-first order, so that the first one is the nearest.
        state = int(np.argmax(self._open.offers > 0))
        path = self._path(self._entered, state)
        return (int(self._graph.sources[path[0]]) if path else state), path

    def _nearest(self, start: int) -> list[int]:
        """The edges to the nearest state that offers an open goal; none if no way leads to one."""
        some, spent = self._open.some, self._spent
        if spent[start]:
            return []
        entered = {start: -1}
        queue = deque([start])
        while queue and len(entered) < _FARTHEST:
            state = queue.popleft()
            for edge in range(self._offsets[state], self._offsets[state + 1]):
                target = self._targets[edge]
                if not spent[target] and target not in entered:
                    entered[target] = edge
                    if some[target]:
                        return self._path(entered, target)
                    queue.append(target)
        if not queue:
            # Goals are only ever met, never opened: nothing here will offer any again.
            for state in entered:
                spent[state] = True
        return []

    def _path(self, entered: Mapping[int, int], state: int) -> list[int]:
        """The edges back from a state to one that was not entered, in the order in which they are taken."""
        path: list[int] = []
        while (edge := entered[state]) >= 0:
            path.append(edge)
            state = int(self._graph.sources[edge])
        return path[::-1]

    def _meet_at(self, state: int) -> tuple[int, ...]:
        if self._goals.states is None or not self._open.offers[state]:
            return ()
        fresh = tuple(g for g in self._goals.states[state].tolist() if not self._open.met[g])
        for goal in fresh:
            self._open.meet(goal)
        return fresh

    def _meet_edge(self, edge: int) -> None:
        if self._goals.edges is not None and self._open.wants(edge):
            self._open.meet(int(self._goals.edges[edge]))


def _first_edges(graph: Graph, initial: int) -> dict[int, int]:
    """By which edge a breadth-first search first enters each state; -1 for the initial ones."""
    states, edges = np.unique(graph.targets, return_index=True)
    entered = np.full(graph.states, -1, dtype=np.int64)
    entered[states] = edges
    entered[:initial] = -1
    return dict(enumerate(entered.tolist()))

"""The explored states as a graph: edges in arrays, and searches over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from stagewright.checker.explicit.arrays import Bools, Ints, SmallInts
from stagewright.checker.explicit.graph_work import closure, edges_at, grouped, offsets_of


@dataclass(frozen=True)
class Adjacency:
    """For each state, `ends[offsets[s] : offsets[s + 1]]` are the states at the other ends."""

    offsets: Ints
    ends: SmallInts

    def of(self, states: Ints) -> Ints:
        """The positions of all edges at the given states, state by state."""
        return edges_at(self.offsets, states)


@dataclass(frozen=True)
class Graph:
    """Edge e leads from `sources[e]` to `targets[e]` by ground step `steps[e]`.

    Edges are ordered by source, those of one source by step. `overflowing`: the states of which some
    step would leave a variable's bounds, and is no edge.
    """

    states: int
    sources: SmallInts
    targets: SmallInts
    steps: SmallInts
    overflowing: Ints

    @classmethod
    def of(
        cls, states: int, parts: list[tuple[SmallInts, SmallInts, SmallInts]], overflowing: Ints
    ) -> Self:
        """From the edges found batch by batch, each batch ordered by source and step."""
        nothing = np.empty(0, dtype=np.int32)
        sources, targets, steps = (
            np.concatenate([nothing, *(part[column] for part in parts)]) for column in range(3)
        )
        return cls(states, sources, targets, steps, overflowing)

    @cached_property
    def changing(self) -> Graph:
        """The same without the edges that lead from a state to itself."""
        moves = self.sources != self.targets
        if moves.all():
            return self
        return Graph(
            self.states,
            self.sources[moves],
            self.targets[moves],
            self.steps[moves],
            self.overflowing,
        )

    def without(self, steps: Sequence[int]) -> Graph:
        """The same without the edges of some ground steps."""
        if not steps:
            return self
        kept = ~np.isin(self.steps, steps)
        return Graph(
            self.states, self.sources[kept], self.targets[kept], self.steps[kept], self.overflowing
        )

    @cached_property
    def out(self) -> Adjacency:
        """Edges by the state that they leave."""
        return Adjacency(offsets_of(self.sources, self.states), self.targets)

    @cached_property
    def into(self) -> Adjacency:
        """Edges by the state that they enter."""
        offsets, edges = grouped(self.targets, self.states)
        return Adjacency(offsets, self.sources[edges])

    @cached_property
    def _by_step(self) -> tuple[Ints, Ints]:
        return grouped(self.steps, int(self.steps.max(initial=-1)) + 1)

    def edges_of_step(self, step: int) -> Ints:
        """The numbers of all edges that a ground step makes: one for each state that enables it."""
        offsets, edges = self._by_step
        return edges[offsets[step] : offsets[step + 1]] if step + 1 < offsets.size else edges[:0]

    def steps_at(self, state: int) -> set[int]:
        """The ground steps enabled in a state."""
        first, after = self.out.offsets[state : state + 2]
        return set(self.steps[first:after].tolist())

    def closure(self, adjacency: Adjacency, starts: Bools, within: Bools | None = None) -> Bools:
        """The states that `starts` lead to by the edges of `adjacency`, never leaving `within`."""
        return closure(adjacency.offsets, adjacency.ends, starts, within)

    def distances(self, adjacency: Adjacency, starts: Bools, within: Bools) -> Ints:
        """The number of edges from the nearest start; -1 where none leads."""
        distance = np.where(starts, 0, -1).astype(np.int64)
        frontier = np.flatnonzero(starts)
        step = 0
        while frontier.size:
            step += 1
            ends = adjacency.ends[adjacency.of(frontier)]
            fresh = ends[(distance[ends] < 0) & within[ends]]
            frontier = np.unique(fresh).astype(np.int64)
            distance[frontier] = step
        return distance

    def path(self, start: int, goals: Bools, within: Bools, *, moving: bool = False) -> list[int]:
        """The edges of a shortest path from `start` to a goal; with `moving`, of at least one edge.

        The path exists, or this is a mistake of the caller.
        """
        if goals[start] and not moving:
            return []
        entered: dict[int, int] = {}  # by which edge a state was first entered
        frontier = np.array([start], dtype=np.int64)
        seen = np.zeros(self.states, dtype=np.bool_)
        while frontier.size:
            edges = self.out.of(frontier)
            ends = self.targets[edges]
            fresh = within[ends] & ~seen[ends]
            found, first = np.unique(ends[fresh], return_index=True)
            edges = edges[fresh][first]
            seen[found] = True
            entered.update(zip(found.tolist(), edges.tolist(), strict=True))
            hits = np.flatnonzero(goals[found])
            if hits.size:
                return self._back(start, int(edges[hits].min()), entered)
            frontier = found.astype(np.int64)
        raise AssertionError("no path where there must be one")

    def _back(self, start: int, last: int, entered: dict[int, int]) -> list[int]:
        path = [last]
        while (state := int(self.sources[path[-1]])) != start:
            path.append(entered[state])
        return path[::-1]

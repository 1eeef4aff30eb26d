"""Decides leads-to under fairness, by looking for a fair run that waits for ever for the conclusion.

An infinite run takes a step whenever one is enabled; only in a state without any does it stand still
for ever. Fairness says which steps it cannot put off: a weakly fair ground step that stays enabled
for ever, and a strongly fair one that is enabled again and again, are taken again and again.

So a violation is a run to a state with the premise, then on through states without the conclusion
to one that has no successor or that lies on a fair cycle. Fair cycles lie in strongly connected parts
of the graph: a part is discarded if it has a weakly fair step enabled everywhere and taken nowhere
inside; states that enable a strongly fair step which the part never takes are cut out of it, and
what remains is taken apart again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from stagewright.checker.explicit.arrays import Bools, Ints
from stagewright.checker.explicit.graph import Graph
from stagewright.checker.explicit.graph_work import components, grouped
from stagewright.spec.definition import Fairness
from stagewright.spec.ground import GroundStep


@dataclass(frozen=True)
class Lasso:
    """A path of edges from `start`, where the premise holds, then a cycle of edges.

    Without a cycle the path ends in a state without successors, where the run stays for ever.
    """

    start: int
    path: tuple[int, ...]
    cycle: tuple[int, ...]


@dataclass(frozen=True)
class FairSteps:
    """The ground steps that fairness speaks of, by index."""

    weak: tuple[int, ...]
    strong: tuple[int, ...]


def fair_steps(steps: Sequence[GroundStep]) -> FairSteps:
    """Each action's fairness, for each of its ground steps."""
    weak = tuple(s.index for s in steps if s.action.fairness is Fairness.WEAK)
    strong = tuple(s.index for s in steps if s.action.fairness is Fairness.STRONG)
    return FairSteps(weak, strong)


def fair_lasso(
    graph: Graph, fair: FairSteps, premise: Bools, conclusion: Bools, stuck: Bools
) -> Lasso | None:
    """A fair run that breaks `premise leads to conclusion`, short but not always shortest.

    `stuck`: the states known to have no successor.
    """
    starts = premise & ~conclusion
    if not starts.any():
        return None
    waiting = graph.closure(graph.out, starts, ~conclusion)
    parts = fair_parts(graph, fair, waiting)
    ends = waiting & stuck | (parts >= 0)
    if not ends.any():
        return None
    start = _nearest(graph, starts, ends, waiting)
    path = graph.path(start, ends, waiting)
    end = int(graph.targets[path[-1]]) if path else start
    cycle = [] if parts[end] < 0 else _fair_cycle(graph, fair, end, parts == parts[end])
    return Lasso(start, tuple(path), tuple(cycle))


def _nearest(graph: Graph, starts: Bools, ends: Bools, waiting: Bools) -> int:
    """The start from which an end is fewest steps away; of equals the one found first."""
    distance = graph.distances(graph.into, ends, waiting)
    candidates = np.flatnonzero(starts & (distance >= 0))  # -1: no end is to be reached from there
    return int(candidates[np.argmin(distance[candidates])])


def fair_parts(graph: Graph, fair: FairSteps, region: Bools) -> Ints:
    """For each state the number of the fair strongly connected part of `region` it is in, or -1."""
    alive = region.copy()
    while True:
        labels, count = components(graph.out.offsets, graph.out.ends, alive)
        remove = _unfair(graph, fair, labels, count)
        if not remove.any():
            return labels
        alive &= ~remove


def _unfair(graph: Graph, fair: FairSteps, labels: Ints, count: int) -> Bools:
    """The states that no fair cycle can visit, as far as the parts show."""
    parts, count = _with_edges_inside(graph, labels, count)
    remove = (labels >= 0) & (parts < 0)
    if count == 0:
        return remove
    sizes = np.bincount(parts[parts >= 0], minlength=count)
    edges = np.flatnonzero(parts[graph.sources] >= 0)
    steps = 1 + max(int(graph.steps.max(initial=-1)), *fair.weak, *fair.strong, -1)
    offsets, by_step = grouped(graph.steps[edges], steps)
    sources = graph.sources[edges[by_step]]
    part = parts[sources]
    stays = part == parts[graph.targets[edges[by_step]]]
    dead = np.zeros(count, dtype=np.bool_)
    for step in (*fair.weak, *fair.strong):
        some = slice(int(offsets[step]), int(offsets[step + 1]))
        enabled = np.bincount(part[some], minlength=count)
        taken = np.bincount(part[some][stays[some]], minlength=count)
        if step in fair.weak:
            dead |= (enabled == sizes) & (taken == 0)
        else:
            starved = (enabled > 0) & (taken == 0)
            remove[sources[some][starved[part[some]]]] = True
    remove[parts >= 0] |= dead[parts[parts >= 0]]
    return remove


def _with_edges_inside(graph: Graph, labels: Ints, count: int) -> tuple[Ints, int]:
    """The parts that an edge stays within, numbered anew, and how many: most are a state alone."""
    part = labels[graph.sources]
    inside = (part >= 0) & (part == labels[graph.targets])
    has_edges = np.zeros(count + 1, dtype=np.bool_)  # the last one stands for -1
    has_edges[part[inside]] = True
    numbers = np.where(has_edges, np.cumsum(has_edges) - 1, -1)
    return numbers[labels], int(has_edges.sum())


def _fair_cycle(graph: Graph, fair: FairSteps, start: int, part: Bools) -> list[int]:
    """A closed walk from `start` within a fair part that owes nothing to any fair step.

    Always to the nearest place that pays a debt, then home; on the way strongly fair steps may be
    enabled that were not before, and these are paid too. No debt arises twice, so it ends.
    """
    walk: list[int] = []
    at = start
    while True:
        owed = list(_owed(graph, fair, start, walk))
        if not owed and walk and at == start:
            return walk
        if owed:
            leg = _to_payment(graph, fair, at, part, owed)
        else:
            home = np.zeros(graph.states, dtype=np.bool_)
            home[start] = True
            leg = graph.path(at, home, part, moving=not walk)
        walk += leg
        at = int(graph.targets[walk[-1]]) if walk else start


def _owed(graph: Graph, fair: FairSteps, start: int, walk: list[int]) -> Iterator[int]:
    """The fair steps that the closed walk would put off for ever."""
    taken = set(graph.steps[walk].tolist())
    enabled = [graph.steps_at(s) for s in {start, *graph.targets[walk].tolist()}]
    for step in fair.weak:
        if step not in taken and all(step in at for at in enabled):
            yield step
    for step in fair.strong:
        if step not in taken and any(step in at for at in enabled):
            yield step


def _to_payment(
    graph: Graph, fair: FairSteps, at: int, part: Bools, owed: Sequence[int]
) -> list[int]:
    """The shortest way within the part to take an owed step, or to disable an owed weak one."""
    disabled = np.zeros(graph.states, dtype=np.bool_)
    payable = np.zeros(graph.states, dtype=np.bool_)
    weak = set(fair.weak)
    for step in owed:
        edges = graph.edges_of_step(step)
        if step in weak:
            without = part.copy()
            without[graph.sources[edges]] = False
            disabled |= without
        paying = part[graph.sources[edges]] & part[graph.targets[edges]]
        payable[graph.sources[edges[paying]]] = True
    leg = graph.path(at, disabled | payable, part)
    end = int(graph.targets[leg[-1]]) if leg else at
    if disabled[end]:
        return leg
    first, after = graph.out.offsets[end : end + 2].tolist()
    payment = next(
        edge
        for edge in range(first, after)
        if int(graph.steps[edge]) in owed and part[graph.targets[edge]]
    )
    return [*leg, payment]

"""Decides promises about fair runs, by looking for a fair run that waits for ever for the conclusion.

A step that changes nothing is no step, as in TLA+: whether it is taken cannot be observed. A run may stop
in any state in which no fair step is enabled, also where unfair ones are: nobody has to take those. A run
that goes on for ever takes fair steps as fairness says. Fairness is of groups of ground steps: a weakly
fair group of which some step is enabled in every state from some point on, and a strongly fair group of
which some step is enabled again and again, have some step taken again and again.

So a violation is a run to a state with the premise, then on through states without the conclusion to one
where it may stop, or that lies on a fair cycle. Fair cycles lie in strongly connected parts of the graph:
a part is discarded if a weakly fair group is enabled everywhere and taken nowhere inside; states that
enable a strongly fair group which the part never takes are cut out of it, and what remains is taken
apart again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stagewright.checker.explicit.arrays import Bools, Ints, SmallInts
from stagewright.checker.explicit.graph import Graph
from stagewright.checker.explicit.graph_work import components, grouped
from stagewright.spec.definition import Fairness
from stagewright.spec.grounding.ground import GroundStep

Group = tuple[int, ...]  # ground steps, by index: taking any of them is fair to the group


@dataclass(frozen=True)
class Lasso:
    """A path of edges from `start`, where the premise holds, then a cycle of edges.

    Without a cycle the path ends in a state where the run may stop.
    """

    start: int
    path: tuple[int, ...]
    cycle: tuple[int, ...]


@dataclass(frozen=True)
class FairSteps:
    """The groups of ground steps that fairness speaks of."""

    weak: tuple[Group, ...]
    strong: tuple[Group, ...]

    @property
    def groups(self) -> tuple[Group, ...]:
        """The weakly fair groups, then the strongly fair ones."""
        return (*self.weak, *self.strong)

    @cached_property
    def steps(self) -> Ints:
        """All ground steps of some group."""
        return np.unique(np.array([s for group in self.groups for s in group], dtype=np.int64))


def fair_steps(steps: Sequence[GroundStep]) -> FairSteps:
    """The ground steps that share a fairness, for each choice of its keys."""
    groups: dict[Fairness, dict[object, list[int]]] = {f: {} for f in Fairness}
    for step in steps:
        values = dict(step.arguments)
        for fair in step.action.fair:
            keys = tuple(values[key.name] for key in fair.keys)
            of = (fair.name, "" if fair.name else step.action.name, keys)
            groups[fair.strength].setdefault(of, []).append(step.index)
    weak, strong = ([*groups[f].values()] for f in (Fairness.WEAK, Fairness.STRONG))
    return FairSteps(tuple(map(tuple, weak)), tuple(map(tuple, strong)))


def may_stop(graph: Graph, fair: FairSteps, expanded: int) -> Bools:
    """The states in which no fair step is enabled; of those that were not expanded it is not known.

    `graph` has no edges that change nothing; a state with a step that leaves the bounds is none of them.
    """
    is_fair = np.zeros(1 + max(graph.steps.max(initial=-1), fair.steps.max(initial=-1)), np.bool_)
    is_fair[fair.steps] = True
    stops = np.ones(graph.states, dtype=np.bool_)
    stops[graph.sources[is_fair[graph.steps]]] = False
    stops[expanded:] = False
    stops[graph.overflowing] = False
    return stops


def fair_lasso(
    graph: Graph, fair: FairSteps, premise: Bools, conclusion: Bools, stops: Bools
) -> Lasso | None:
    """A fair run that breaks `premise leads to conclusion`, short but not always shortest.

    `graph` has no edges that change nothing (`Graph.changing`); `stops`: where a run `may_stop`.
    """
    starts = premise & ~conclusion
    if not starts.any():
        return None
    waiting = graph.closure(graph.out, starts, ~conclusion)
    stops = waiting & stops
    parts = fair_parts(graph, fair, waiting)
    ends = stops | (parts >= 0)
    if not ends.any():
        return None
    start = _nearest(graph, starts, ends, waiting)
    path = graph.path(start, ends, waiting)
    end = int(graph.targets[path[-1]]) if path else start
    cycle = [] if stops[end] else _fair_cycle(graph, fair, end, parts == parts[end])
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
    parts, count = _with_cycles(labels, count)
    remove = (labels >= 0) & (parts < 0)
    if count == 0:
        return remove
    sizes = np.bincount(parts[parts >= 0], minlength=count)
    edges = np.flatnonzero(parts[graph.sources] >= 0)
    steps = 1 + max(int(graph.steps.max(initial=-1)), int(fair.steps.max(initial=-1)))
    offsets, by_step = grouped(graph.steps[edges], steps)
    sources = graph.sources[edges[by_step]]
    part = parts[sources]
    stays = part == parts[graph.targets[edges[by_step]]]

    def of(group: Group) -> Ints:
        return np.concatenate([np.arange(offsets[s], offsets[s + 1]) for s in group])

    dead = np.zeros(count, dtype=np.bool_)
    for group in fair.weak:
        some = of(group)
        enabled = np.bincount(parts[_distinct(sources[some], group)], minlength=count)
        taken = np.bincount(part[some][stays[some]], minlength=count)
        dead |= (enabled == sizes) & (taken == 0)
    for group in fair.strong:
        some = of(group)
        taken = np.bincount(part[some][stays[some]], minlength=count)
        remove[sources[some][taken[part[some]] == 0]] = True
    remove[parts >= 0] |= dead[parts[parts >= 0]]
    return remove


def _distinct(states: SmallInts, group: Group) -> SmallInts:
    """The states that enable some step of the group; each enables a single step but once."""
    return states if len(group) == 1 else np.unique(states)


def _with_cycles(labels: Ints, count: int) -> tuple[Ints, int]:
    """The parts of several states, numbered anew, and how many: most are a state alone, which no edge leads back to."""
    several = np.bincount(labels[labels >= 0], minlength=count) > 1
    numbers = np.where(several, np.cumsum(several) - 1, -1)
    return np.append(numbers, -1)[labels], int(several.sum())


def _fair_cycle(graph: Graph, fair: FairSteps, start: int, part: Bools) -> list[int]:
    """A closed walk from `start` within a fair part that owes nothing to any fair group.

    Always to the nearest place that pays a debt, then home; on the way strongly fair groups may be
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


def _owed(graph: Graph, fair: FairSteps, start: int, walk: list[int]) -> Iterator[Group]:
    """The fair groups that the closed walk would put off for ever."""
    taken = set(graph.steps[walk].tolist())
    enabled = [graph.steps_at(s) for s in {start, *graph.targets[walk].tolist()}]
    for group in fair.weak:
        if taken.isdisjoint(group) and not any(at.isdisjoint(group) for at in enabled):
            yield group
    for group in fair.strong:
        if taken.isdisjoint(group) and not all(at.isdisjoint(group) for at in enabled):
            yield group


def _to_payment(
    graph: Graph, fair: FairSteps, at: int, part: Bools, owed: Sequence[Group]
) -> list[int]:
    """The shortest way within the part to take a step of an owed group, or to where none of a weak one is enabled."""
    disabled = np.zeros(graph.states, dtype=np.bool_)
    payable = np.zeros(graph.states, dtype=np.bool_)
    weak = set(fair.weak)
    for group in owed:
        edges = np.concatenate([graph.edges_of_step(step) for step in group])
        if group in weak:
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
    steps = {step for group in owed for step in group}
    payment = next(
        edge
        for edge in range(first, after)
        if int(graph.steps[edge]) in steps and part[graph.targets[edge]]
    )
    return [*leg, payment]

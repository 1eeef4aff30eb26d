"""Breadth-first search, level by level: every reachable state once, and what is wrong on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from stagewright.checker.explicit.engine import Engine, Expansion, requirement_keys
from stagewright.checker.explicit.graph import Graph, SmallInts
from stagewright.checker.explicit.states import Ids, StateTable
from stagewright.checker.limits import OnProgress, Progress, Stop
from stagewright.spec.ground import GroundNode

_SMALLEST_BATCH = 64


@dataclass(frozen=True)
class Watch:
    """What to look for while searching: conditions that all states, and all steps, are to satisfy.

    Only the first so many of each are promises, whose violation may end a search.
    """

    states: Sequence[GroundNode] = ()
    steps: Sequence[GroundNode] = ()
    state_promises: int = 0
    step_promises: int = 0
    deadlock: bool = True
    edges: bool = False  # keep all edges, for questions asked afterwards


@dataclass(frozen=True)
class Edge:
    """One step of one state: ids and the index of the ground step."""

    source: int
    step: int
    target: int


@dataclass
class Exploration:
    """What a search has found so far. Ids are in breadth-first order, so that a first one is nearest."""

    engine: Engine
    watch: Watch
    table: StateTable
    levels: list[int]  # the first id of each depth
    expanded: int = 0  # states with smaller ids have been expanded
    transitions: int = 0
    stopped: str = ""  # why the search ended early
    first_false: list[int | None] = field(default_factory=list)  # by state condition
    bad_edges: list[Edge | None] = field(default_factory=list)  # by step condition
    deadlock: int | None = None
    overflow: tuple[int, int] | None = None  # state, ground step
    overflowing: list[Ids] = field(default_factory=list)
    fired: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    false_counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    _edges: list[tuple[SmallInts, SmallInts, SmallInts]] = field(default_factory=list)

    @property
    def states(self) -> int:
        """How many distinct states are known."""
        return self.table.count

    @property
    def exhausted(self) -> bool:
        """Whether every known state has been expanded."""
        return self.expanded == self.states

    @property
    def depth(self) -> int:
        """The greatest depth of which all states are known and were looked at."""
        return len(self.levels) - 1 if self.exhausted else self.depth_of(self.expanded)

    def depth_of(self, state: int) -> int:
        """How many steps the nearest initial state is away."""
        return int(np.searchsorted(self.levels, state, side="right")) - 1

    def graph(self) -> Graph:
        """The explored edges; they must have been kept. States not expanded have none."""
        assert self.watch.edges
        return Graph.of(self.states, self._edges)

    @property
    def bytes(self) -> int:
        """Memory held, about: the table, and the edges three times for what is built from them."""
        edges = sum(part.nbytes for parts in self._edges for part in parts)
        return self.table.bytes + 3 * edges

    def progress(self, seconds: float, deciding: str = "") -> Progress:
        """Where the check is."""
        waiting, depth = self.states - self.expanded, len(self.levels) - 1
        return Progress(self.states, self.transitions, waiting, depth, seconds, deciding)

    def found(self) -> bool:
        """Whether anything is violated already."""
        states = self.first_false[: self.watch.state_promises]
        steps = self.bad_edges[: self.watch.step_promises]
        return any(f is not None for f in (*states, *steps, self.deadlock, self.overflow))


def explore(
    engine: Engine, watch: Watch, stop: Stop, progress: OnProgress | None = None
) -> Exploration:
    """Search from the initial states until nothing is new, or `stop` says so."""
    search = _Search(engine, watch, stop, progress)
    search.run()
    return search.found


class _Search:
    """The search under way."""

    def __init__(
        self, engine: Engine, watch: Watch, stop: Stop, progress: OnProgress | None
    ) -> None:
        self._engine, self._watch, self._stop, self._progress = engine, watch, stop, progress
        model = engine.model
        self._state_conditions = engine.state_conditions(watch.states)
        self._step_conditions = engine.step_conditions(watch.steps)
        self._final = engine.state_conditions([model.final])
        self.found = Exploration(
            engine,
            watch,
            StateTable(engine.layout.words),
            levels=[0],
            first_false=[None] * len(watch.states),
            bad_edges=[None] * len(watch.steps),
            fired=np.zeros(len(model.steps), dtype=np.int64),
            false_counts=np.zeros(len(requirement_keys(model)), dtype=np.int64),
        )

    def run(self) -> None:
        found = self.found
        found.table.add(self._engine.layout.pack(self._engine.model.initial))
        self._look_at_new(0)
        while not found.exhausted and not self._over():
            level_end = found.states
            if found.expanded < level_end and not self._level(level_end):
                return
            if found.states > level_end:
                found.levels.append(level_end)

    def _over(self) -> bool:
        """Whether the depth is spent: the last level is known but is not to be expanded."""
        limit = self._stop.limits.depth
        if limit is None or len(self.found.levels) <= limit:
            return False
        self.found.stopped = f"the depth limit of {limit} was reached"
        return True

    def _level(self, end: int) -> bool:
        """Expand the states up to id `end`; False if the search is to stop."""
        found = self.found
        while found.expanded < end:
            reason = self._stop.reason(found.states, found.bytes)
            if not reason and self._stop.limits.stop_at_first and found.found():
                reason = "a violation was found"
            if reason:
                found.stopped = reason
                return False
            self._batch(min(end, found.expanded + self._batch_size()))
            self._tell()
        return True

    def _batch_size(self) -> int:
        limit = self._stop.limits.states
        if limit is None:
            return self._engine.batch
        room = max(_SMALLEST_BATCH, limit - self.found.states)
        return min(self._engine.batch, room)

    def _batch(self, end: int) -> None:
        found, first = self.found, self.found.expanded
        states = found.table.states[:, first:end]
        expansion = self._engine.expand(states)
        known = found.states
        targets = found.table.add(expansion.successors)
        found.expanded = end
        found.transitions += expansion.steps.size
        found.fired += np.bincount(expansion.steps, minlength=found.fired.size)
        found.false_counts += expansion.false_counts
        self._look_at_steps(states, first, expansion, targets)
        self._look_for_stuck(states, first, expansion)
        self._look_at_new(known)
        if self._watch.edges:
            self._keep(first, expansion, targets)

    def _look_at_new(self, known: int) -> None:
        """Evaluate the state conditions on the states from id `known` on."""
        found = self.found
        if found.states == known or not self._watch.states:
            return
        for start in range(known, found.states, self._engine.batch):
            new = found.table.states[:, start : start + self._engine.batch]
            for i, holds in enumerate(self._state_conditions(new)):
                if found.first_false[i] is None and not holds.all():
                    found.first_false[i] = start + int(np.argmin(holds))

    def _look_at_steps(
        self, states: NDArray[np.uint64], first: int, expansion: Expansion, targets: Ids
    ) -> None:
        if not self._watch.steps or not targets.size:
            return
        old = states[:, expansion.sources]
        for i, holds in enumerate(self._step_conditions(old, expansion.successors)):
            if self.found.bad_edges[i] is None and not holds.all():
                bad = np.flatnonzero(~holds)
                # The nearest source; of its steps the first.
                edge = bad[np.argmin(expansion.sources[bad])]
                source = first + int(expansion.sources[edge])
                step, target = int(expansion.steps[edge]), int(targets[edge])
                self.found.bad_edges[i] = Edge(source, step, target)

    def _look_for_stuck(self, states: NDArray[np.uint64], first: int, expansion: Expansion) -> None:
        found = self.found
        moving = np.zeros(states.shape[1], dtype=np.bool_)
        moving[expansion.sources] = True
        if expansion.overflow_sources.size:
            moving[expansion.overflow_sources] = True
            found.overflowing.append(np.unique(expansion.overflow_sources) + first)
            if found.overflow is None:
                nearest = int(np.argmin(expansion.overflow_sources))
                source = first + int(expansion.overflow_sources[nearest])
                found.overflow = (source, int(expansion.overflow_steps[nearest]))
        stuck = np.flatnonzero(~moving)
        if self._watch.deadlock and found.deadlock is None and stuck.size:
            (final,) = self._final(states[:, stuck])
            if not final.all():
                found.deadlock = first + int(stuck[np.argmin(final)])

    def _keep(self, first: int, expansion: Expansion, targets: Ids) -> None:
        order = np.argsort(expansion.sources, kind="stable")
        sources = (expansion.sources[order] + first).astype(np.int32)
        self.found._edges.append((sources, targets[order].astype(np.int32), expansion.steps[order]))

    def _tell(self) -> None:
        if self._progress is not None:
            self._progress(self.found.progress(self._stop.seconds))

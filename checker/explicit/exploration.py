"""What a search is to watch, what it has found, and the order in which its states are numbered.

States are numbered by depth and, within one depth, by their packed words: so that every number, run and
verdict is the same whatever engine searched, with however many workers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from stagewright.checker.explicit.arrays import Bools
from stagewright.checker.explicit.engine import Engine, requirement_keys
from stagewright.checker.explicit.graph import Graph
from stagewright.checker.explicit.packing import Words
from stagewright.checker.limits import Limits, Progress
from stagewright.spec.grounding.ground import GroundNode


@dataclass(frozen=True)
class Watched:
    """Conditions on states, or on steps, that are watched for being false.

    `promises`: the first place where one is false is noted, and may end a search. `witnesses`: so it is, as
    what was looked for. `premises`: only whether one was ever false.
    """

    promises: Sequence[GroundNode] = ()
    witnesses: Sequence[GroundNode] = ()
    premises: Sequence[GroundNode] = ()

    @property
    def noted(self) -> list[GroundNode]:
        """Those of which a place is noted."""
        return [*self.promises, *self.witnesses]

    @property
    def all(self) -> list[GroundNode]:
        """Those that are noted, then the others."""
        return [*self.noted, *self.premises]


@dataclass(frozen=True)
class Watch:
    """What to look for while searching."""

    states: Watched = Watched()
    steps: Watched = Watched()
    deadlock: bool = True
    only_witnesses: bool = False  # the search may end once all are found
    graph: bool = False  # questions are asked afterwards that need all states and edges
    coverage: bool = True


@dataclass(frozen=True, order=True)
class Noted:
    """A violating state and, where a step is to blame, that step's index; ordered as reported first."""

    words: tuple[int, ...]
    step: int = 0


@dataclass
class Tally:
    """What a search has counted and noted so far; every note is the least of the first level with one."""

    watch: Watch
    fired: NDArray[np.int64]  # by ground step
    false_counts: NDArray[np.int64]  # by requirement key
    levels: list[int] = field(default_factory=lambda: [0])  # states before each depth
    states: int = 0
    expanded: int = 0
    transitions: int = 0
    stopped: str = ""  # why the search ended early
    state_notes: list[Noted | None] = field(default_factory=list)
    step_notes: list[Noted | None] = field(default_factory=list)
    deadlock: Noted | None = None
    overflow: Noted | None = None
    noted_depth: int = 0  # the depth of the last note
    met_states: list[bool] = field(default_factory=list)  # of the conditions that are no promises
    met_steps: list[bool] = field(default_factory=list)
    beyond: int = 0  # expanded states beyond the constraint: no step was taken from them
    within_depth: int = 0  # the greatest depth of an expanded state within it
    _settled: int = 0  # states that were expanded when `beyond` was counted

    @classmethod
    def empty(cls, engine: Engine, watch: Watch) -> Tally:
        """Before a search."""
        return cls(
            watch,
            fired=np.zeros(len(engine.model.steps), dtype=np.int64),
            false_counts=np.zeros(len(requirement_keys(engine.model)), dtype=np.int64),
            state_notes=[None] * len(watch.states.noted),
            step_notes=[None] * len(watch.steps.noted),
            met_states=[False] * len(watch.states.premises),
            met_steps=[False] * len(watch.steps.premises),
        )

    @property
    def exhausted(self) -> bool:
        """Whether every known state has been expanded."""
        return self.expanded == self.states

    @property
    def violated(self) -> bool:
        """Whether anything is violated already."""
        states = self.state_notes[: len(self.watch.states.promises)]
        steps = self.step_notes[: len(self.watch.steps.promises)]
        return any(note is not None for note in (*states, *steps, self.deadlock, self.overflow))

    def enough(self, limits: Limits) -> str:
        """Why a search may end between two levels; empty if it may not."""
        if limits.stop_at_first and self.violated:
            return "a violation was found"
        if self.watch.only_witnesses and all([*self.state_notes, *self.step_notes]):
            return "all that was looked for was found"
        return ""

    def count_beyond(self, beyond: int, depth: int) -> None:
        """So many of all states expanded until now are beyond the constraint; the last ones are of a depth."""
        if self.expanded - self._settled > beyond - self.beyond:
            self.within_depth = depth
        self.beyond, self._settled = beyond, self.expanded

    def segments(self) -> list[tuple[int, int]]:
        """Where states are in one order: the levels, the last one's expanded part by itself."""
        ends = sorted({*self.levels, self.expanded, self.states})
        return list(pairwise(ends))

    def depth_of(self, state: int) -> int:
        """How many steps the nearest initial state is away."""
        return bisect_right(self.levels, state) - 1

    def copy(self) -> Tally:
        """As it is now; later counting does not change it."""
        return replace(
            self,
            fired=self.fired.copy(),
            false_counts=self.false_counts.copy(),
            levels=[*self.levels],
            state_notes=[*self.state_notes],
            step_notes=[*self.step_notes],
            met_states=[*self.met_states],
            met_steps=[*self.met_steps],
        )

    def progress(self, seconds: float, deciding: str = "", memory: int = 0) -> Progress:
        """Where the check is."""
        waiting, depth = self.states - self.expanded, len(self.levels) - 1
        shrink = None
        if depth >= 2:
            before, last, after = self.levels[-3:]
            shrink = (after - last) / (last - before)
        return Progress(
            self.states, self.transitions, waiting, depth, seconds, deciding, memory, shrink
        )


@dataclass(frozen=True)
class Edge:
    """One step of one state: ids and the index of the ground step."""

    source: int
    step: int
    target: int


@dataclass
class Exploration:
    """A finished search. Ids number the states in the order that this file's first lines describe."""

    engine: Engine
    tally: Tally
    fetch: Callable[[Exploration], Words]  # all states by id; only called if they are needed
    kept: bool = True  # whether that takes no second search

    @property
    def watch(self) -> Watch:
        return self.tally.watch

    @cached_property
    def words(self) -> Words:
        """All states, packed, by id (if the search forgot them: as far as they are needed)."""
        return self.fetch(self)

    @property
    def states(self) -> int:
        """How many distinct states are known."""
        return self.tally.states

    @property
    def within(self) -> int:
        """How many distinct states are known that are not beyond the constraint, so far as was looked at."""
        return self.tally.states - self.tally.beyond

    @property
    def expanded(self) -> int:
        """States with smaller ids have been expanded."""
        return self.tally.expanded

    @property
    def transitions(self) -> int:
        return self.tally.transitions

    @property
    def stopped(self) -> str:
        return self.tally.stopped

    @property
    def fired(self) -> NDArray[np.int64]:
        return self.tally.fired

    @property
    def false_counts(self) -> NDArray[np.int64]:
        return self.tally.false_counts

    @property
    def levels(self) -> list[int]:
        """The first id of each depth."""
        return self.tally.levels

    @property
    def exhausted(self) -> bool:
        """Whether every known state has been expanded."""
        return self.tally.exhausted

    @property
    def depth(self) -> int:
        """The greatest depth of which all states are known and were looked at."""
        if not self.exhausted:
            return self.depth_of(self.expanded)
        return self.tally.within_depth if self.tally.beyond else len(self.levels) - 1

    def depth_of(self, state: int) -> int:
        """How many steps the nearest initial state is away."""
        return self.tally.depth_of(state)

    def level(self, depth: int) -> tuple[int, int]:
        """The first id of a depth, and the one after its last."""
        after = self.levels[depth + 1] if depth + 1 < len(self.levels) else self.states
        return self.levels[depth], after

    @cached_property
    def first_false(self) -> list[int | None]:
        """By state promise: the first state in which it is broken."""
        notes = self.tally.state_notes[: len(self.watch.states.promises)]
        return [None if note is None else self.id_of(note.words) for note in notes]

    @cached_property
    def bad_edges(self) -> list[Edge | None]:
        """By step promise: the first step that breaks it."""
        notes = self.tally.step_notes[: len(self.watch.steps.promises)]
        return [None if note is None else self._edge(note) for note in notes]

    def witness(self, index: int, *, step: bool) -> int | Edge | None:
        """The first state, or step, that is the witness of that number."""
        watched = self.watch.steps if step else self.watch.states
        notes = self.tally.step_notes if step else self.tally.state_notes
        note = notes[len(watched.promises) + index]
        if note is None:
            return None
        return self._edge(note) if step else self.id_of(note.words)

    @cached_property
    def deadlock(self) -> int | None:
        """The first state without a step that is not final."""
        note = self.tally.deadlock
        return None if note is None else self.id_of(note.words)

    @cached_property
    def overflow(self) -> tuple[int, int] | None:
        """The first state, and its first step, that would leave a variable's bounds."""
        note = self.tally.overflow
        return None if note is None else (self.id_of(note.words), note.step)

    def _edge(self, note: Noted) -> Edge:
        source = self.id_of(note.words)
        expansion = self.engine.expand(self.words[:, source : source + 1])
        (edge,) = np.flatnonzero(expansion.steps == note.step).tolist()
        target = self.id_of(tuple(expansion.successors[:, edge].tolist()))
        return Edge(source, note.step, target)

    def id_of(self, words: tuple[int, ...]) -> int:
        """The id of a known state."""
        wanted = np.array(words, dtype=np.uint64)[:, np.newaxis]
        for first, after in self.segments():
            found = np.flatnonzero((self.words[:, first:after] == wanted).all(axis=0))
            if found.size:
                return first + int(found[0])
        raise AssertionError("not a state that was found")

    @property
    def initial(self) -> int:
        """How many of the first states are initial; if not all of these were expanded, as many as were."""
        return self.levels[1] if len(self.levels) > 1 else self.expanded

    def segments(self) -> list[tuple[int, int]]:
        """Where states are in one order."""
        return self.tally.segments()

    def everywhere(self, nodes: Sequence[GroundNode]) -> list[Bools]:
        """The value of each condition in every state."""
        conditions = self.engine.state_conditions(nodes)
        parts = [
            conditions(self.words[:, first : first + self.engine.batch])
            for first in range(0, self.states, self.engine.batch)
        ]
        return [np.concatenate(column) for column in zip(*parts, strict=True)]

    @cached_property
    def graph(self) -> Graph:
        """The edges of all expanded states."""
        return self.engine.graph(self.words, self.expanded)


def in_order(words: Words, segments: Sequence[tuple[int, int]]) -> Words:
    """The same states, sorted by their words within each segment."""
    ordered = np.empty((words.shape[0], words.shape[1]), dtype=np.uint64)
    for first, after in segments:
        part = words[:, first:after]
        if words.shape[0] == 1:
            ordered[0, first:after] = np.sort(part[0])
        else:
            ordered[:, first:after] = part[:, np.lexsort(part[::-1])]
    return ordered


def least(states: Words, rows: NDArray[np.int64]) -> int:
    """Which of the rows holds the least state."""
    order = np.lexsort(states[::-1, rows])
    return int(rows[order[0]])

"""Along the concrete machine's edges goes the set of seen states that fit; where it gets empty, a refinement fails.

A set is closed under hidden steps: steps of the seen machine that change nothing that is seen. A concrete step
that changes nothing seen leaves the set as it is; any other one is one seen step (before and after it, hidden
ones), or what the refinement says that it is. Where every variable is mapped the sets have one member.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from stagewright.checker.explicit.exploration import Exploration
from stagewright.checker.explicit.runs import Path
from stagewright.checker.refinement.looks import Arguments, Looks, Numbers
from stagewright.spec.grounding.ground import GroundStep
from stagewright.spec.refinement import Mapped, SeenStep

T = TypeVar("T")

Edges = dict[tuple[int, int], set[str]]
"""Between looks that differ: by which actions."""
_LOST = -1
_LOW = 0xFFFFFFFF  # of a pair of a state and a set, packed into one number


@dataclass(frozen=True)
class Divergence:
    """A run whose last step is none of the seen machine's: `held` are the seen states before it.

    Without steps: no initial state of the seen machine looks as the first one does.
    """

    path: Path
    looks: tuple[int, ...]  # by state of the run
    held: frozenset[int]


@dataclass
class View:
    """What was decided for one choice of the parameters."""

    arguments: Arguments
    looks: Looks
    taken: Edges  # by the concrete machine
    possible: Edges  # by the seen one
    divergence: Divergence | None = None


@dataclass(frozen=True)
class _Kind:
    """How the refinement takes a concrete step: what it says that it is, and whether the view may start again."""

    row: tuple[SeenStep, ...] | None
    anew: bool

    @property
    def is_plain(self) -> bool:
        return self.row is None and not self.anew


@dataclass
class _Search:
    """The pairs of a concrete state and a set that were reached, level by level, and how."""

    known: Numbers
    history: list[tuple[Numbers, Numbers, Numbers]] = field(
        default_factory=list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]
    )


class Decision:
    """Decides one view of a refinement."""

    def __init__(
        self,
        mapped: Mapped,
        arguments: Arguments,
        concrete: Exploration,
        seen: Exploration,
        looks: Looks,
    ) -> None:
        self.mapped, self.arguments = mapped, arguments
        self.concrete, self.seen, self.looks = concrete, seen, looks
        self._starts = frozenset(range(_initial(seen)))
        self._moves: dict[int, list[tuple[int, str]]] = {}
        names = [s.action.name for s in seen.engine.model.steps]
        edges = seen.graph
        for source, target, step in zip(
            edges.sources.tolist(), edges.targets.tolist(), edges.steps.tolist(), strict=True
        ):
            self._moves.setdefault(source, []).append((target, names[step]))
        self._sets: list[frozenset[int]] = []
        self._numbers: dict[frozenset[int], int] = {}
        steps = concrete.engine.model.steps
        kinds = [self._kind(step) for step in steps]
        self._kinds = list(dict.fromkeys(kinds))
        self._kind_of = np.array([self._kinds.index(k) for k in kinds], dtype=np.int64)

    def view(self) -> View:
        """What each machine does of what is seen, and the shortest run in which they part, if there is one."""
        view = View(
            self.arguments,
            self.looks,
            _visible(self.concrete, self.looks.of_concrete),
            _visible(self.seen, self.looks.of_seen),
        )
        begun: list[int] = []
        for state in range(_initial(self.concrete)):
            fits = self._fitting(int(self.looks.of_concrete[state]))
            if not fits:
                looks = (int(self.looks.of_concrete[state]),)
                view.divergence = Divergence((state, ()), looks, frozenset())
                return view
            begun.append(state << 32 | self._number(fits))
        view.divergence = self._searched(np.unique(np.array(begun, dtype=np.int64)))
        return view

    def _fitting(self, look: int) -> set[int]:
        """The seen states that a run may begin with."""
        fits = set(np.flatnonzero(self.looks.of_seen == look).tolist())
        return fits & self._starts if self.mapped.refinement.from_start else fits

    def _searched(self, begun: Numbers) -> Divergence | None:
        graph, below = self.concrete.graph, self.looks.of_concrete
        todo, found, memo = begun, _Search(begun), dict[int, int]()
        while todo.size:
            states = todo >> 32
            counts, edges = np.diff(graph.out.offsets)[states], graph.out.of(states)
            came = np.repeat(todo, counts)
            code = (came & _LOW) * self.looks.count + below[graph.sources[edges]]
            code = code * self.looks.count + below[graph.targets[edges]]
            code = code * len(self._kinds) + self._kind_of[graph.steps[edges]]
            distinct, which = np.unique(code, return_inverse=True)
            for one in distinct.tolist():
                if one not in memo:
                    memo[one] = self._after(one)
            sets = np.array([memo[one] for one in distinct.tolist()], dtype=np.int64)
            sets = sets[which.ravel()]
            lost = np.flatnonzero(sets == _LOST)
            if lost.size:
                return self._divergence(int(came[lost[0]]), int(edges[lost[0]]), found)
            pairs, at = np.unique(
                graph.targets[edges].astype(np.int64) << 32 | sets, return_index=True
            )
            fresh = ~np.isin(pairs, found.known, assume_unique=True)
            todo = pairs[fresh]
            found.history.append((todo, came[at[fresh]], edges[at[fresh]]))
            found.known = np.concatenate([found.known, todo])
        return None

    def _after(self, code: int) -> int:
        """The set after a step, given by set, look before, look after and kind; or that there is none."""
        code, kind = divmod(code, len(self._kinds))
        code, after = divmod(code, self.looks.count)
        number, before = divmod(code, self.looks.count)
        how = self._kinds[kind]
        if before == after and how.is_plain:
            return number
        at = set(self._sets[number])
        wanted = set[int]()
        if how.anew:
            at |= self._closed(self._starts)
            wanted |= {s for s in at if self.looks.of_seen[s] == after}
        wanted |= self._along(at, how.row, after)
        return self._number(wanted) if wanted else _LOST

    def _along(self, at: set[int], row: tuple[SeenStep, ...] | None, after: int) -> set[int]:
        """The seen states that look like `after` and that a row of steps leads to."""
        for step in row or (None,):
            moved = {
                target
                for state in at
                for target, name in self._moves.get(state, ())
                if step is None or name in step.actions
            }
            if step is not None and step.may_stutter:
                moved |= at
            at = self._closed(moved)
        return {s for s in at if self.looks.of_seen[s] == after}

    def _kind(self, step: GroundStep) -> _Kind:
        """Of a step of another entity than the view's, that it is what it shows."""
        name, given = step.action.name, [value for _, value in step.arguments]
        ours = all(
            value in given for value in self.arguments.values() if type(value) in map(type, given)
        )
        if not ours:
            return _Kind(None, anew=False)
        return _Kind(self.mapped.steps.get(name), name in self.mapped.anew)

    def _number(self, states: Iterable[int]) -> int:
        closed = frozenset(self._closed(states))
        if closed not in self._numbers:
            self._numbers[closed] = len(self._sets)
            self._sets.append(closed)
        return self._numbers[closed]

    def _closed(self, states: Iterable[int]) -> set[int]:
        """With what hidden steps lead to."""
        found = set(states)
        todo = list(found)
        while todo:
            state = todo.pop()
            look = self.looks.of_seen[state]
            new = {t for t, _ in self._moves.get(state, ()) if self.looks.of_seen[t] == look}
            todo += new - found
            found |= new
        return found

    def _divergence(self, pair: int, edge: int, found: _Search) -> Divergence:
        """The way back by pairs: the nearest path to the state alone may carry another set."""
        graph, held, edges = self.concrete.graph, self._sets[pair & _LOW], [edge]
        for pairs, before, by in reversed(found.history):
            place = int(np.searchsorted(pairs, pair))
            if place < pairs.size and pairs[place] == pair:
                edges.append(int(by[place]))
                pair = int(before[place])
        edges.reverse()
        start = pair >> 32
        steps = tuple((int(graph.steps[e]), int(graph.targets[e])) for e in edges)
        looks = [int(self.looks.of_concrete[s]) for s in (start, *(t for _, t in steps))]
        return Divergence((start, steps), tuple(looks), held)

    def instead(self, held: frozenset[int]) -> list[tuple[str, int]]:
        """The visible steps of the seen machine from these of its states: by which action, to which look."""
        of_seen = self.looks.of_seen
        return sorted(
            {
                (name, int(of_seen[target]))
                for state in held
                for target, name in self._moves.get(state, ())
                if of_seen[target] != of_seen[state]
            }
        )


def _initial(found: Exploration) -> int:
    """How many initial states there are: they are numbered first."""
    return found.levels[1] if len(found.levels) > 1 else found.states


def _visible(found: Exploration, looks: Numbers) -> Edges:
    graph, names = found.graph, [s.action.name for s in found.engine.model.steps]
    before, after = looks[graph.sources], looks[graph.targets]
    moving = before != after
    rows = np.unique(np.stack([before, after, graph.steps])[:, moving], axis=1)
    edges: Edges = {}
    for source, target, step in rows.T.tolist():
        edges.setdefault((source, target), set()).add(names[step])
    return edges

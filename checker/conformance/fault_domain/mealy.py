"""A definition as a Mealy machine: events in, refusals and observations out; and its smallest equal."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stagewright.checker.conformance.space import Cover, Space
from stagewright.spec.trace import observation
from stagewright.spec.values import State
from stagewright.spec.verdict import Step

Numbers = NDArray[np.int64]
Bools = NDArray[np.bool_]

UNSAID = -1


@dataclass(frozen=True)
class Mealy:
    """`after[s, i]`: the state after input i in state s; where it is refused, s; `UNSAID` where either may be.

    `seen[s]`: equal numbers for states that look alike. `starts`: the state after each reset.
    """

    after: Numbers
    refused: Bools
    seen: Numbers
    starts: tuple[int, ...]

    @property
    def states(self) -> int:
        """How many there are."""
        return len(self.seen)

    @property
    def inputs(self) -> int:
        """How many there are."""
        return int(self.after.shape[1])

    def minimized(self) -> Mealy:
        """The machine whose states are the classes of equal ones."""
        classes = _classes(self.seen)
        while True:
            following = np.where(self.after < 0, UNSAID, classes[np.maximum(self.after, 0)])
            following = np.where(self.refused, -2, following)
            finer = _classes(np.column_stack([classes, following]))
            if finer.max(initial=0) == classes.max(initial=0):
                break
            classes = finer
        _, first = np.unique(classes, return_index=True)
        after = self.after[first]
        return Mealy(
            np.where(after < 0, UNSAID, classes[np.maximum(after, 0)]),
            self.refused[first],
            self.seen[first],
            tuple(int(classes[s]) for s in self.starts),
        )


@dataclass(frozen=True)
class Projection:
    """The Mealy machine of an explored definition: what stands for its inputs and its resets."""

    mealy: Mealy
    steps: tuple[Step, ...]
    starts: tuple[State, ...]


def projection(space: Space, observed: Collection[str] | None = None) -> Projection:
    """What can be seen of a definition from outside; `observed`: the leaves that are (None: all).

    States that differ only in what is left of budgets are one. Where only a budget or a bound forbids a
    step, or a state was not expanded, nothing is said of it.
    """
    graph, expanded = space.graph, space.found.expanded
    merged = space.classes(Cover.STATES)
    steps = dict.fromkeys([*(i.step for i in space.instances), *space.steps])
    number = {step: i for i, step in enumerate(steps)}
    states = int(merged.max(initial=-1)) + 1
    after = np.full((states, len(number)), UNSAID, dtype=np.int64)
    refused = np.zeros(after.shape, dtype=np.bool_)
    instance, state = np.nonzero(space.patterns(expanded))
    of_instance = np.array([number[i.step] for i in space.instances], dtype=np.int64)
    if instance.size:
        refused[merged[state], of_instance[instance]] = True
        after[merged[state], of_instance[instance]] = merged[state]
    of_edge = np.array([number[step] for step in space.steps], dtype=np.int64)
    if graph.steps.size:
        after[merged[graph.sources], of_edge[graph.steps]] = merged[graph.targets]
    _, first = np.unique(merged, return_index=True)
    looks = _numbered(_look(space.state(int(n)), observed) for n in first)
    starts: dict[int, State] = {}
    for n in range(space.initial):
        starts.setdefault(int(merged[n]), space.state(n))
    machine = Mealy(after, refused, np.array(looks, dtype=np.int64), tuple(starts))
    return Projection(machine, tuple(number), tuple(starts.values()))


def _look(state: State, observed: Collection[str] | None) -> Hashable:
    leaves = observation(state)
    return tuple(
        (leaf, tuple(value) if isinstance(value, list) else value)
        for leaf, value in sorted(leaves.items())
        if (observed is None or leaf in observed) and not leaf.startswith("budget.")
    )


def _numbered(looks: Iterable[Hashable]) -> list[int]:
    known: dict[Hashable, int] = {}
    return [known.setdefault(look, len(known)) for look in looks]


def _classes(rows: Numbers) -> Numbers:
    _, classes = np.unique(rows, axis=0, return_inverse=True)
    return np.asarray(classes, dtype=np.int64).reshape(-1)

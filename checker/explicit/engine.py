"""The seam between the search and what computes successors: any engine that does this can serve.

The NumPy engine (`numpy_engine.py`) and the native one (`native/`) do; runs and verdicts know only this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from stagewright.checker.explicit.arrays import Bools
from stagewright.checker.explicit.graph import Graph
from stagewright.checker.explicit.packing import Layout, Words
from stagewright.spec.grounding.ground import GroundModel, GroundNode

Rows = NDArray[np.int64]
StepIndices = NDArray[np.int32]

StateConditions = Callable[[Words], tuple[Bools, ...]]
"""Evaluates a fixed list of conditions on a batch of states: one array a condition."""

StepConditions = Callable[[Words, Words], tuple[Bools, ...]]
"""The same over old and new states, edge by edge."""


@dataclass(frozen=True, slots=True)
class Expansion:
    """Every enabled step of a batch of states.

    Edge i leads by ground step `steps[i]` from the batch's state `sources[i]` to `successors[:, i]`.
    The order is a function of the model and the batch alone. Steps that would leave a cell's bounds
    are no edges; they stand in the two `overflow` arrays.
    """

    successors: Words
    sources: Rows
    steps: StepIndices
    overflow_sources: Rows
    overflow_steps: StepIndices
    false_counts: NDArray[np.int64]  # by index into `requirement_keys`: (state, step) pairs


class Engine(Protocol):
    """Computes with packed states of one model."""

    @property
    def model(self) -> GroundModel:
        """What it computes with."""
        ...

    @property
    def layout(self) -> Layout:
        """How its states are packed."""
        ...

    @property
    def batch(self) -> int:
        """How many states to expand at once, at most."""
        ...

    def expand(self, states: Words) -> Expansion:
        """All steps enabled in each of the states."""
        ...

    def graph(self, states: Words, expanded: int) -> Graph:
        """The edges of the first so many of all `states`; their numbers are their columns."""
        ...

    def state_conditions(self, nodes: Sequence[GroundNode]) -> StateConditions:
        """Prepare boolean nodes without NEXT for evaluation."""
        ...

    def step_conditions(self, nodes: Sequence[GroundNode]) -> StepConditions:
        """Prepare boolean nodes over old and new state for evaluation."""
        ...


def requirement_keys(model: GroundModel) -> list[tuple[str, str]]:
    """The (action, requirement) names of a model, in definition order and without repetition."""
    return list(
        dict.fromkeys(
            (step.action.name, requirement.name)
            for step in model.steps
            for requirement in step.requirements
        )
    )

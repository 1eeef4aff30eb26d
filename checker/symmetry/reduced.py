"""An engine that gives every orbit by one state: any search over it visits each orbit once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from stagewright.checker.explicit.arrays import Bools
from stagewright.checker.explicit.edges import graph_of
from stagewright.checker.explicit.engine import (
    Engine,
    Expansion,
    StateConditions,
    StepConditions,
)
from stagewright.checker.explicit.graph import Graph
from stagewright.checker.explicit.packing import Layout, Packed, Words
from stagewright.checker.symmetry.canonical import Canonical
from stagewright.checker.symmetry.groups import Symmetry
from stagewright.spec.grounding.ground import GroundModel, GroundNode


class Reduced:
    """An `Engine` over canonical states.

    Sound for invariants, step properties, bounds and deadlock of a model that is closed under the
    symmetry, and depths stay the same. Not for reachable goals or leads-to promises: an edge of the
    reduced graph forgets which member is which. A path of canonical states is not a run of the
    machine: `lifting.py` makes one of it.
    """

    def __init__(self, engine: Engine, symmetry: Symmetry) -> None:
        self._engine = engine
        self.symmetry = symmetry
        self.canonical = Canonical(engine.layout, symmetry)
        self._model = self._with_canonical_starts()
        self._given: Words | None = None  # the successors last given, and what they really were
        self._real: Words | None = None

    @property
    def model(self) -> GroundModel:
        """The model, with the canonical ones of its initial states."""
        return self._model

    def _with_canonical_starts(self) -> GroundModel:
        model, layout = self._engine.model, self._engine.layout
        packed = np.unique(self.canonical(layout.pack(model.initial)), axis=1)
        return replace(model, initial=Packed(layout, packed))

    @property
    def unreduced(self) -> Engine:
        """The engine that gives successors as they are."""
        return self._engine

    @property
    def layout(self) -> Layout:
        """How states are packed."""
        return self._engine.layout

    @property
    def batch(self) -> int:
        """How many states to expand at once, at most."""
        return self._engine.batch

    def expand(self, states: Words) -> Expansion:
        """All steps enabled in each of the states, with the canonical forms of the states they lead to."""
        expansion = self._engine.expand(states)
        self._real = expansion.successors
        self._given = self.canonical(expansion.successors)
        return replace(expansion, successors=self._given)

    def graph(self, states: Words, expanded: int) -> Graph:
        """The edges between orbits: of the first so many of all canonical states."""
        return graph_of(self, states, expanded)

    def state_conditions(self, nodes: Sequence[GroundNode]) -> StateConditions:
        """Prepare conditions on states; together they must not change under the symmetry."""
        return self._engine.state_conditions(nodes)

    def step_conditions(self, nodes: Sequence[GroundNode]) -> StepConditions:
        """Prepare conditions on steps.

        They compare the old state with the new one as it was before it was renamed: so they are
        evaluated on the successors of the last expansion only.
        """
        conditions = self._engine.step_conditions(nodes)

        def evaluate(old: Words, new: Words) -> tuple[Bools, ...]:
            assert new is self._given, (
                "step conditions are asked of the last expansion's successors"
            )
            assert self._real is not None
            return conditions(old, self._real)

        return evaluate

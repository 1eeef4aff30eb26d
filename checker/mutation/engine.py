"""Searches a mutant with what was compiled for the original: only the steps that differ are compiled anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stagewright.checker.explicit.edges import graph_of
from stagewright.checker.explicit.engine import (
    Expansion,
    StateConditions,
    StepConditions,
    requirement_keys,
)
from stagewright.checker.explicit.graph import Graph
from stagewright.checker.explicit.numpy_engine import NumpyEngine, numpy_engine
from stagewright.checker.explicit.packing import Layout, Words
from stagewright.spec.grounding.ground import GroundModel, GroundNode, GroundStep

_NONE = -1
_Form = tuple[object, ...]
_Indices = NDArray[np.int32]


@dataclass(eq=False)
class Compiled:
    """What was compiled for the original at one scope: all its steps, and conditions when asked for."""

    model: GroundModel
    nodes: int = field(init=False)  # younger ones are those of one mutant
    _state: dict[tuple[int, ...], StateConditions] = field(default_factory=dict)
    _step: dict[tuple[int, ...], StepConditions] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.nodes = len(self.model.builder.nodes)
        self.forms = forms(self.model)

    @cached_property
    def engine(self) -> NumpyEngine:
        """Computes with all steps of the original; compiled once it is asked for."""
        return numpy_engine(self.model)

    def state_conditions(self, nodes: Sequence[GroundNode]) -> StateConditions:
        """Compiled once, if the original has all of them."""
        key = tuple(node.id for node in nodes)
        if max(key, default=0) >= self.nodes:
            return self.engine.state_conditions(nodes)
        if key not in self._state:
            self._state[key] = self.engine.state_conditions(nodes)
        return self._state[key]

    def step_conditions(self, nodes: Sequence[GroundNode]) -> StepConditions:
        """The same for conditions over old and new states."""
        key = tuple(node.id for node in nodes)
        if max(key, default=0) >= self.nodes:
            return self.engine.step_conditions(nodes)
        if key not in self._step:
            self._step[key] = self.engine.step_conditions(nodes)
        return self._step[key]


def forms(model: GroundModel) -> dict[str, list[_Form]]:
    """The ground steps of each action as what they compute; equal nodes are one, by their ids."""
    found: dict[str, list[_Form]] = {}
    for step in model.steps:
        updates = tuple(sorted((cell, node.id) for cell, node in step.updates.items()))
        form = (step.arguments, step.guard.id, updates, step.overflows.id)
        found.setdefault(step.action.name, []).append(form)
    return found


@dataclass(eq=False)
class MutantEngine:
    """An `Engine` for a model that was lowered beside the original's."""

    compiled: Compiled
    model: GroundModel

    @cached_property
    def changed(self) -> frozenset[str]:
        """The actions whose steps compute something else."""
        before, after = self.compiled.forms, forms(self.model)
        return frozenset(n for n in {**before, **after} if before.get(n) != after.get(n))

    @cached_property
    def old(self) -> list[GroundStep]:
        """What the original has for them."""
        return [s for s in self.compiled.model.steps if s.action.name in self.changed]

    @cached_property
    def new(self) -> list[GroundStep]:
        """What the mutant has."""
        return [s for s in self.model.steps if s.action.name in self.changed]

    @cached_property
    def differing(self) -> NumpyEngine:
        """Computes with the old steps, then the new ones, numbered in this order."""
        steps = tuple(replace(step, index=i) for i, step in enumerate([*self.old, *self.new]))
        return numpy_engine(replace(self.model, steps=steps))

    @property
    def layout(self) -> Layout:
        return self.compiled.engine.layout

    @property
    def batch(self) -> int:
        return self.compiled.engine.batch

    def expand(self, states: Words) -> Expansion:
        """All steps enabled in each of the states: those of the original that stayed, then the new ones."""
        base = self.compiled.engine.expand(states)
        if not self.changed:
            return base
        other = self.differing.expand(states)
        kept, renumbered = self._kept, self._renumbered
        stays, counts = kept[base.steps] != _NONE, renumbered[other.steps] != _NONE
        stays_over = kept[base.overflow_steps] != _NONE
        counts_over = renumbered[other.overflow_steps] != _NONE
        return Expansion(
            np.concatenate([base.successors[:, stays], other.successors[:, counts]], axis=1),
            np.concatenate([base.sources[stays], other.sources[counts]]),
            np.concatenate([kept[base.steps[stays]], renumbered[other.steps[counts]]]),
            np.concatenate(
                [base.overflow_sources[stays_over], other.overflow_sources[counts_over]]
            ),
            np.concatenate(
                [
                    kept[base.overflow_steps[stays_over]],
                    renumbered[other.overflow_steps[counts_over]],
                ]
            ),
            np.zeros(len(requirement_keys(self.model)), dtype=np.int64),
        )

    def graph(self, states: Words, expanded: int) -> Graph:
        """The edges of the first so many of all states."""
        return graph_of(self, states, expanded)

    def state_conditions(self, nodes: Sequence[GroundNode]) -> StateConditions:
        """Prepare conditions on states for evaluation."""
        return self.compiled.state_conditions(nodes)

    def step_conditions(self, nodes: Sequence[GroundNode]) -> StepConditions:
        """Prepare conditions on steps for evaluation."""
        return self.compiled.step_conditions(nodes)

    @cached_property
    def _kept(self) -> _Indices:
        """By step of the original: its number in the mutant."""
        stayed = [s for s in self.model.steps if s.action.name not in self.changed]
        numbers = np.full(len(self.compiled.model.steps) + 1, _NONE, dtype=np.int32)
        of_original = [
            s.index for s in self.compiled.model.steps if s.action.name not in self.changed
        ]
        numbers[of_original] = [s.index for s in stayed]
        return numbers

    @cached_property
    def _renumbered(self) -> _Indices:
        """By differing step: its number in the mutant, if it is a new one."""
        return np.array([_NONE] * len(self.old) + [step.index for step in self.new], dtype=np.int32)

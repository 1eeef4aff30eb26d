"""The native engine of one model: compiles what it is asked for when it is asked for it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stagewright.checker.explicit.arrays import Bools
from stagewright.checker.explicit.edges import graph_of
from stagewright.checker.explicit.engine import (
    Expansion,
    StateConditions,
    StepConditions,
    requirement_keys,
)
from stagewright.checker.explicit.graph import Graph
from stagewright.checker.explicit.native.code.expansion import (
    Plan,
    conditions_source,
    expansion_source,
    requirement_conditions,
)
from stagewright.checker.explicit.native.code.observed import Observed
from stagewright.checker.explicit.native.code.tiers import Tiered
from stagewright.checker.explicit.packing import Layout, Words, layout_for
from stagewright.spec.grounding.ground import GroundModel, GroundNode, GroundOp

if TYPE_CHECKING:
    from stagewright.checker.explicit.exploration import Watch

_BATCH = 1 << 14  # states
_BATCH_BYTES = 1 << 26


@dataclass
class NativeEngine:
    """An `Engine` of compiled functions."""

    model: GroundModel
    layout: Layout = field(init=False)

    def __post_init__(self) -> None:
        self.layout = layout_for(self.model)

    @property
    def batch(self) -> int:
        """How many states to expand at once, at most."""
        room = _BATCH_BYTES // (8 * (self.layout.words + 1) * (len(self.model.steps) + 1))
        return max(1 << 8, min(_BATCH, room))

    def plan(self, watch: Watch | None = None) -> Plan:
        """What the search's code is to do; without a watch, what `expand` does."""
        counted = len(requirement_conditions(self.model))
        if watch is None:
            observed = Observed(self.layout.words, 0, 0, 0, 0, len(self.model.steps), counted)
            return Plan(self.model, self.layout, observed, coverage=True, edges=True)
        observed = Observed(
            self.layout.words,
            len(watch.states.noted),
            len(watch.states.all),
            len(watch.steps.noted),
            len(watch.steps.all),
            len(self.model.steps),
            counted,
        )
        return Plan(
            self.model,
            self.layout,
            observed,
            watch.states.all,
            watch.steps.all,
            deadlock=watch.deadlock,
            coverage=watch.coverage,
        )

    @cached_property
    def _edges(self) -> tuple[Tiered, Plan]:
        plan = self.plan()
        return Tiered(expansion_source(plan)), plan

    def expand(self, states: Words) -> Expansion:
        """All steps enabled in each of the states, ordered by state and step."""
        code, plan = self._edges
        count, words, steps = states.shape[1], self.layout.words, len(self.model.steps)
        given = one_after_another(states)
        out = np.empty((count * steps + 1, words), dtype=np.uint64)
        numbers = np.empty(count * steps + 1, dtype=np.int32)
        ends = np.zeros(count, dtype=np.int64)
        overflows = np.zeros(1 + 2 * count * self._overflowing_steps, dtype=np.int64)
        block = plan.observed.block()
        arrays = (given, out, block, numbers, ends, overflows)
        at = [array.ctypes.data for array in arrays]
        started = time.monotonic()
        found = code.function("expand", 7)(at[0], count, *at[1:])
        code.ran(time.monotonic() - started)
        bad = overflows[1 : 1 + 2 * int(overflows[0])]
        return Expansion(
            out[:found].T,
            np.repeat(np.arange(count, dtype=np.int64), np.diff(ends, prepend=0)),
            numbers[:found],
            bad[::2],
            bad[1::2].astype(np.int32),
            self.false_counts(block[plan.observed.false :], count),
        )

    @cached_property
    def _overflowing_steps(self) -> int:
        false = self.model.builder.false
        return sum(step.overflows is not false for step in self.model.steps)

    def false_counts(self, counts: NDArray[np.int64], states: int) -> NDArray[np.int64]:
        """By requirement key, from the counts of the distinct conditions in so many states."""
        numbers = requirement_conditions(self.model)
        positions = {key: i for i, key in enumerate(requirement_keys(self.model))}
        totals = np.zeros(len(positions), dtype=np.int64)
        for step in self.model.steps:
            for requirement in step.requirements:
                node = requirement.condition
                if node.op is GroundOp.CONST:
                    false = 0 if node.value else states
                else:
                    false = int(counts[numbers[node.id]])
                totals[positions[step.action.name, requirement.name]] += false
        return totals

    def state_conditions(self, nodes: Sequence[GroundNode]) -> StateConditions:
        """Compile the conditions into one function of the packed states."""
        evaluate = self._conditions(nodes, steps=False)
        return lambda states: evaluate(states, states)

    def step_conditions(self, nodes: Sequence[GroundNode]) -> StepConditions:
        """Compile the conditions into one function of old and new packed states."""
        return self._conditions(nodes, steps=True)

    def _conditions(self, nodes: Sequence[GroundNode], *, steps: bool) -> StepConditions:
        if not nodes:
            return lambda *_: ()
        code = Tiered(conditions_source(self.layout, nodes, steps=steps))

        def evaluate(old: Words, new: Words) -> tuple[Bools, ...]:
            count = old.shape[1]
            before = one_after_another(old)
            after = before if new is old else one_after_another(new)
            out = np.empty((len(nodes), count), dtype=np.bool_)
            started = time.monotonic()
            function = code.function("conditions", 4)
            function(before.ctypes.data, after.ctypes.data, count, out.ctypes.data)
            code.ran(time.monotonic() - started)
            return tuple(out)

        return evaluate

    def graph(self, states: Words, expanded: int) -> Graph:
        """The edges of the first so many of all states."""
        return graph_of(self, states, expanded)


def one_after_another(states: Words) -> NDArray[np.uint64]:
    """The same states in the order of memory in which generated code reads them."""
    return np.ascontiguousarray(states.T)

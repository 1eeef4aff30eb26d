"""Whether a mutant takes any step differently in a reachable state: of most that survive, none does."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum, auto

import numpy as np
from numpy.typing import NDArray

from stagewright.checker.explicit.numpy_engine import numpy_engine
from stagewright.checker.mutation.mutants import changed_actions
from stagewright.checker.mutation.original import Original
from stagewright.spec.definition import Action, Definition
from stagewright.spec.ground import GroundModel, GroundStep
from stagewright.spec.lowering import ground

_BEFORE, _AFTER = "before", "after"


class Difference(Enum):
    """What a mutant is beside the original."""

    NONE = auto()  # the same ground form
    UNREACHABLE = auto()  # it differs only where no reachable state is
    REAL = auto()


def difference(original: Original, mutant: Definition) -> Difference:
    """How much a mutant differs from the original at the original's scope."""
    definition = original.definition
    changed = list(changed_actions(definition, mutant))
    elsewhere = _apart_from_actions(definition) != _apart_from_actions(mutant)
    if not changed:
        return Difference.REAL if elsewhere else Difference.NONE
    actions: list[Action] = []
    for number, (old, new) in enumerate(changed):
        actions += [] if old is None else [replace(old, name=f"{_BEFORE} {number}")]
        actions += [] if new is None else [replace(new, name=f"{_AFTER} {number}")]
    both = replace(definition, actions=tuple(actions), properties=(), initially=())
    model = ground(both, original.scope)
    if not elsewhere and _form(model, _BEFORE) == _form(model, _AFTER):
        return Difference.NONE
    if elsewhere or original.stopped:
        return Difference.REAL
    return Difference.UNREACHABLE if _same_steps(model, original) else Difference.REAL


def _apart_from_actions(definition: Definition) -> tuple[object, ...]:
    return (
        definition.variables,
        definition.budgets,
        definition.initially,
        definition.properties,
        definition.final,
    )


def _form(model: GroundModel, side: str) -> set[tuple[object, ...]]:
    """The ground steps of one side as what they compute; equal nodes are one, by their ids."""
    return {
        (
            _instance(step),
            step.guard.id,
            tuple(sorted((cell, node.id) for cell, node in step.updates.items())),
            step.overflows.id,
        )
        for step in model.steps
        if step.action.name.startswith(side)
    }


def _instance(step: GroundStep) -> tuple[object, ...]:
    """Which action with which arguments a step is, on whichever side."""
    return (step.action.name.partition(" ")[2], step.arguments)


def _same_steps(model: GroundModel, original: Original) -> bool:
    """Whether both sides take the same steps in every state of the original."""
    if not model.steps:
        return True
    engine = numpy_engine(model)
    numbers: dict[tuple[object, ...], int] = {}
    instance = np.array(
        [numbers.setdefault(_instance(s), len(numbers)) for s in model.steps], dtype=np.int64
    )
    after = np.array([s.action.name.startswith(_AFTER) for s in model.steps], dtype=np.bool_)
    for first in range(0, original.count, engine.batch):
        found = engine.expand(original.states[:, first : first + engine.batch])
        edges = (found.sources, instance[found.steps], *found.successors)
        overflows = (found.overflow_sources, instance[found.overflow_steps])
        if not _alike(edges, after[found.steps]) or not _alike(
            overflows, after[found.overflow_steps]
        ):
            return False
    return True


def _alike(columns: tuple[NDArray[np.generic], ...], after: NDArray[np.bool_]) -> bool:
    """Whether the rows on both sides are the same; on one side no two rows are equal."""
    if 2 * int(after.sum()) != after.size:
        return False
    sides: list[list[NDArray[np.generic]]] = []
    for side in (~after, after):
        mine = [column[side] for column in columns]
        order = np.lexsort((mine[1], mine[0]))
        sides.append([column[order] for column in mine])
    return all(np.array_equal(a, b) for a, b in zip(*sides, strict=True))

"""Whether a mutant takes any step differently in a reachable state: of most that survive, none does."""

from __future__ import annotations

from enum import Enum, auto

import numpy as np
from numpy.typing import NDArray

from stagewright.checker.mutation.engine import MutantEngine
from stagewright.checker.mutation.original import Original, kept_by
from stagewright.spec.definition import Definition
from stagewright.spec.grounding.ground import GroundNode


class Difference(Enum):
    """What a mutant is beside the original."""

    NONE = auto()  # the same ground form
    UNREACHABLE = auto()  # it differs only where no reachable state is
    PROMISES = auto()  # every reachable state has the same steps, but other promises are made
    REAL = auto()


def difference(original: Original, mutant: Definition, engine: MutantEngine) -> Difference:
    """How much a mutant differs from the original, beside which it was lowered."""
    before = kept_by(original, original.definition)
    if _frame(before) != _frame(mutant):
        return Difference.REAL
    same_promises = before.properties == mutant.properties
    final = (engine.compiled.model.final, engine.model.final)
    if same_promises and not engine.changed and final[0].id == final[1].id:
        return Difference.NONE
    if original.stopped or not (_same_in_states(original, final) and _same_steps(original, engine)):
        return Difference.REAL
    return Difference.UNREACHABLE if same_promises else Difference.PROMISES


def _frame(definition: Definition) -> tuple[object, ...]:
    """What is neither an action nor a promise, nor says where a run may end."""
    return (
        definition.variables,
        definition.budgets,
        definition.initially,
        definition.constraints,
    )


def _same_in_states(original: Original, nodes: tuple[GroundNode, GroundNode]) -> bool:
    """Whether two conditions are the same in every state of the original."""
    if nodes[0].id == nodes[1].id:
        return True
    conditions, batch = original.compiled.state_conditions(nodes), original.compiled.engine.batch
    for first in range(0, original.count, batch):
        before, after = conditions(original.states[:, first : first + batch])
        if not np.array_equal(before, after):
            return False
    return True


def _same_steps(original: Original, engine: MutantEngine) -> bool:
    """Whether the old and the new steps are the same in every state of the original."""
    steps = [*engine.old, *engine.new]
    if not steps:
        return True
    differing = engine.differing
    numbers: dict[tuple[object, ...], int] = {}
    instances = [numbers.setdefault((s.action.name, s.arguments), len(numbers)) for s in steps]
    instance = np.array(instances, dtype=np.int64)
    after = np.arange(len(steps)) >= len(engine.old)
    for first in range(0, original.count, differing.batch):
        found = differing.expand(original.states[:, first : first + differing.batch])
        edges = (found.sources, instance[found.steps], *found.successors)
        overflows = (found.overflow_sources, instance[found.overflow_steps])
        sides = after[found.steps], after[found.overflow_steps]
        if not _alike(edges, sides[0]) or not _alike(overflows, sides[1]):
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

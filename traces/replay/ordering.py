"""Puts rows in the order in which they are glued: by entity, and of each entity by what they say."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stagewright.compiled import compiled
from stagewright.traces.replay.rows import ENTITY, KIND, PLACE, SEQUENCE, SYMBOL

Ints = NDArray[Any]


def by_entity(table: Ints, entities: int) -> tuple[Ints, Ints]:
    """The rows by entity, sequence number, kind, symbol and place; and where those of each entity begin.

    Rows come mostly in order: only entities whose rows do not are sorted.
    """
    bounds = np.zeros(entities + 1, np.int64)
    np.cumsum(np.bincount(table[:, ENTITY], minlength=entities), out=bounds[1:])
    ordered = np.empty_like(table)
    in_order = np.ones(entities, bool)
    _scatter(table, bounds[:-1].copy(), ordered, in_order)
    if not in_order.all():
        rows = np.flatnonzero(~in_order[ordered[:, ENTITY]])
        some = ordered[rows]
        keys = (PLACE, SYMBOL, KIND, SEQUENCE, ENTITY)
        ordered[rows] = some[np.lexsort([some[:, key] for key in keys])]
    return ordered, bounds


@compiled
def _scatter(table: Ints, next_: Ints, ordered: Ints, in_order: Ints) -> None:
    for i in range(len(table)):
        entity: int = table[i, ENTITY]
        place: int = next_[entity]
        ordered[place] = table[i]
        next_[entity] = place + 1
        if place > 0 and ordered[place - 1, ENTITY] == entity and _after(ordered, place - 1, place):
            in_order[entity] = False


@compiled
def _after(rows: Ints, one: int, other: int) -> bool:
    """Whether the row `one` belongs behind the row `other`."""
    a, b = rows[one], rows[other]
    if a[SEQUENCE] != b[SEQUENCE]:
        return bool(a[SEQUENCE] > b[SEQUENCE])
    if a[KIND] != b[KIND]:
        return bool(a[KIND] > b[KIND])
    if a[SYMBOL] != b[SYMBOL]:
        return bool(a[SYMBOL] > b[SYMBOL])
    return bool(a[PLACE] > b[PLACE])

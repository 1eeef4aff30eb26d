"""Removes versions of rows from a store, as an effect of a node says; wherever the node runs."""

from __future__ import annotations

from stagewright.impl.node.port import Drop, Supersede, Truncate
from stagewright.impl.storage.port import RowStore


def remove(rows: RowStore, effect: Drop | Supersede | Truncate) -> None:
    """Carry a removal out."""
    match effect:
        case Drop(family, low, high):
            rows.drop(family, low, high)
        case Supersede(family, before):
            rows.supersede(family, dict(before))
        case Truncate(family, until):
            rows.truncate(family, until)

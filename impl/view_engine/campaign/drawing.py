"""Queries that a seed draws."""

from __future__ import annotations

import random
from typing import Any

from stagewright.impl.view_engine.campaign.oracle import VIEWS
from stagewright.impl.view_engine.query.params import Query


def draw_query(chosen: random.Random, partitions: int) -> tuple[str, Query]:
    """A view, and what is asked of it."""
    view = chosen.choice([*VIEWS])
    key: Any = [chosen.randrange(3), chosen.randrange(5)]
    if view == "names":
        key = f"d{chosen.randrange(40)}"
    which: dict[str, Any] = chosen.choice(
        [{}, {}, {"startkey": key}, {"endkey": key}, {"key": key}, {"keys": [key, key]}]
    )
    query: dict[str, Any] = {"stale": chosen.choice(("ok", "false", "false", "update_after"))}
    if chosen.random() < 0.3:
        query["limit"] = chosen.randrange(12)
        query["skip"] = chosen.randrange(6)
    query["descending"] = chosen.random() < 0.3
    how = chosen.randrange(4)
    if how <= 1:
        query["reduce"] = False
    elif how == 2 or "keys" in which:
        query["group"] = True
    elif chosen.random() < 0.5:
        query["group_level"] = 1
    if chosen.random() < 0.2:
        query["partitions"] = sorted(chosen.sample(range(partitions), 2))
    return view, Query(**which, **query)

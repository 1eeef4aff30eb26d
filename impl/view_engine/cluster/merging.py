"""Merges the rows of several nodes into one answer, in the order of the query."""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, groupby, islice

from stagewright.impl.view_engine.cluster.messages import Placed
from stagewright.impl.view_engine.defects import Defect, has
from stagewright.impl.view_engine.design.json_text import json_text
from stagewright.impl.view_engine.file.collation import sort_bytes
from stagewright.impl.view_engine.query.local import Row
from stagewright.impl.view_engine.query.params import Query
from stagewright.impl.view_engine.tree.reducers import Reducer

Place = tuple[int, bytes, bytes]


def merged(
    nodes: Sequence[Iterable[Placed]], query: Query, reducer: Reducer | None
) -> Iterator[Row]:
    """The rows of a query: each input has its own in order; at most one of each is held.

    With a reducer rows are reductions, and those of one group become one. Raises ReduceError.
    """
    rows = in_order(nodes, query)
    found = (placed.row for placed in rows) if reducer is None else _reduced(rows, reducer)
    stop = None if query.limit is None else query.skip + query.limit
    return islice(found, query.skip, stop)


def in_order(nodes: Sequence[Iterable[Placed]], query: Query) -> Iterator[Placed]:
    """The rows of all inputs in the order of the query, without skip and limit."""
    if has(Defect.merge_ignores_order):
        return chain.from_iterable(nodes)
    place = _placing(query)
    return heapq.merge(*nodes, key=place, reverse=query.descending)


def _placing(query: Query) -> Callable[[Placed], Place]:
    """Keys are asked for in their own order, whichever way the rows of each are read."""
    sign = -1 if query.descending else 1

    def place(placed: Placed) -> Place:
        row = placed.row
        return placed.range * sign, sort_bytes(json_text(row.key)), (row.id or "").encode()

    return place


def _reduced(rows: Iterable[Placed], reducer: Reducer) -> Iterator[Row]:
    def group(placed: Placed) -> tuple[int, bytes]:
        return placed.range, sort_bytes(json_text(placed.row.key))

    for _, members in groupby(rows, group):
        first, *others = [placed.row for placed in members]
        if not others:
            yield first
        elif has(Defect.merge_keeps_equal_groups_apart):
            yield from (first, *others)
        else:
            values = [json_text(row.value) for row in (first, *others)]
            yield Row(first.key, json.loads(reducer.rereduce(values)))

"""Map/reduce over documents without any index: what every answer must be equal to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from typing import Any

from stagewright.impl.view_engine.design.json_text import json_text
from stagewright.impl.view_engine.file.collation import sort_bytes
from stagewright.impl.view_engine.query.params import UNSET, Query

MapFunction = Callable[[Any, Mapping[str, str]], Iterable[tuple[object, object]]]
Found = tuple[Any, Any, str]  # key, value, document


def order(key: object) -> bytes:
    return sort_bytes(json_text(key))


def rows_of(documents: Mapping[str, Any], function: MapFunction) -> list[Found]:
    rows = [
        (key, value, doc_id)
        for doc_id, document in documents.items()
        for key, value in function(document, {"id": doc_id})
    ]
    return sorted(rows, key=lambda row: (order(row[0]), row[2].encode()))  # stable: as emitted


def selected(rows: list[Found], query: Query) -> list[Found]:
    """The rows of the query's ranges in its order, without skip and limit."""
    if query.keys is not None:
        return [row for key in query.keys for row in _directed(_equal(rows, key), query)]
    if query.key is not UNSET:
        return _directed(_equal(rows, query.key), query)
    low, low_doc, high, high_doc = (
        query.startkey, query.startkey_docid, query.endkey, query.endkey_docid,
    )  # fmt: skip
    found = _directed(rows, query)

    def inside(row: Found) -> bool:
        at = (order(row[0]), row[2])
        if query.descending:
            return _not_above(at, low, low_doc) and not _before_end(at, high, high_doc, down=True)
        return _not_below(at, low, low_doc) and not _before_end(at, high, high_doc, down=False)

    def _not_below(at: tuple[bytes, str], key: Any, doc: str | None) -> bool:
        return key is UNSET or at >= (order(key), doc or "")

    def _not_above(at: tuple[bytes, str], key: Any, doc: str | None) -> bool:
        if key is UNSET:
            return True
        return at[0] <= order(key) if doc is None else at <= (order(key), doc)

    def _before_end(at: tuple[bytes, str], key: Any, doc: str | None, *, down: bool) -> bool:
        """Whether a row is beyond the end."""
        if key is UNSET:
            return False
        end = (order(key), doc) if doc is not None else (order(key),)
        here: tuple[Any, ...] = at if doc is not None else at[:1]
        if query.inclusive_end:
            return here < end if down else here > end
        return here <= end if down else here >= end

    return [row for row in found if inside(row)]


def groups(rows: list[Found], query: Query) -> list[tuple[Any, list[Any]]]:
    """Group keys with the values of each group, in the order of the rows."""

    def group(row: Found) -> Any:
        key = row[0]
        if query.group or not isinstance(key, list | tuple):
            return key
        return list(key)[: query.group_level]

    found: list[tuple[Any, list[Any]]] = []
    for _, members in groupby(rows, key=lambda row: order(group(row))):
        listed = list(members)
        found.append((group(listed[0]), [row[1] for row in listed]))
    return found


def _equal(rows: list[Found], key: Any) -> list[Found]:
    return [row for row in rows if order(row[0]) == order(key)]


def _directed(rows: list[Found], query: Query) -> list[Found]:
    return [*_stably_reversed(rows)] if query.descending else rows


def _stably_reversed(rows: list[Found]) -> Iterable[Found]:
    """Rows backwards, but the values that one document emitted with one key as they were emitted."""
    runs = [list(run) for _, run in groupby(rows, key=lambda row: (order(row[0]), row[2]))]
    for run in reversed(runs):
        yield from run

"""Answers queries from one snapshot of one index."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from stagewright.impl.view_engine.defects import Defect, has
from stagewright.impl.view_engine.design.design import ViewPlace
from stagewright.impl.view_engine.file.collation import ARRAY, sort_bytes
from stagewright.impl.view_engine.file.masks import mask_of, partitions_of
from stagewright.impl.view_engine.group.current import GroupSnapshot
from stagewright.impl.view_engine.index.writing import pointer
from stagewright.impl.view_engine.query.params import Query
from stagewright.impl.view_engine.tree.entries import read_view_key, read_view_value
from stagewright.impl.view_engine.tree.nodes import (
    Pointer,
    Reduction,
    Shape,
    reductions_of,
)
from stagewright.impl.view_engine.tree.packed import Packed
from stagewright.impl.view_engine.tree.read import (
    Range,
    above,
    leaves,
    reduce_range,
    wanted_rows,
)


class Row(NamedTuple):
    """One row of an answer; reductions have no document and no partition."""

    key: Any
    value: Any
    id: str | None = None
    partition: int | None = None


@dataclass(frozen=True)
class Answer:
    """The rows, and what they are an answer about.

    `total_rows` counts the values of the whole view, also of partitions that are not asked for (None for
    reductions); `seqs` are the sequence numbers up to which each partition that was asked for is in it.
    """

    rows: list[Row] = field(default_factory=list)
    total_rows: int | None = None
    seqs: Mapping[int, int] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)


class Streamed(NamedTuple):
    """As `Answer`, but the rows come one after the other."""

    rows: Iterator[Row]
    total_rows: int | None
    seqs: Mapping[int, int]


class QueryError(ValueError):
    """A query that cannot be answered; the text says what to change."""


def answer(snapshot: GroupSnapshot, view: str, query: Query) -> Answer:
    """All rows at once."""
    found = streamed(snapshot, view, query)
    return Answer([*found.rows], found.total_rows, found.seqs)


def streamed(snapshot: GroupSnapshot, view: str, query: Query) -> Streamed:
    """The answer, with rows that are read while the snapshot is held."""
    place = _place(snapshot, view)
    root = snapshot.header.view_roots[place.tree]
    total = 0 if root is None else Pointer(b"", *root).values
    wanted = _wanted(snapshot, query)
    seqs = {**snapshot.header.seqs, **snapshot.header.unindexable_seqs}
    return Streamed(
        rows=rows(snapshot, view, query),
        total_rows=None if reduces(place, query) else total,
        seqs={partition: seqs[partition] for partition in partitions_of(wanted)},
    )


def rows(snapshot: GroupSnapshot, view: str, query: Query) -> Iterator[Row]:
    """The rows one after the other, while the snapshot is held. Raises QueryError, ReduceError."""
    place = _place(snapshot, view)
    wanted = _wanted(snapshot, query)
    if has(Defect.rows_in_cleanup_are_returned):
        wanted |= snapshot.header.cleanup
    work = _Work(snapshot, place, query, wanted)
    if not reduces(place, query):
        found = work.rows()
    else:
        found = work.groups() if query.grouped else work.one_reduction()
    stop = None if query.limit is None else query.skip + query.limit
    return islice(found, query.skip, stop)


def numbered_rows(snapshot: GroupSnapshot, view: str, query: Query) -> Iterator[tuple[int, Row]]:
    """As `rows`, each with the number of its range: which of `keys` it is of."""
    found = rows(snapshot, view, query)  # refuses what makes no sense
    if query.keys is None:
        return ((0, row) for row in found)
    single = (replace(query, keys=None, key=key, skip=0, limit=None) for key in query.keys)
    numbered = (
        (number, row) for number, one in enumerate(single) for row in rows(snapshot, view, one)
    )
    stop = None if query.limit is None else query.skip + query.limit
    return islice(numbered, query.skip, stop)


def _place(snapshot: GroupSnapshot, view: str) -> ViewPlace:
    try:
        return snapshot.design.places[view]
    except KeyError:
        known = ", ".join(snapshot.design.places)
        raise QueryError(f"{snapshot.design.name} has no view {view}; it has {known}") from None


def reduces(place: ViewPlace, query: Query) -> bool:
    """Whether the answer has reductions. Raises QueryError where the query makes no sense for the view."""
    if query.reduce and place.reducer is None:
        raise QueryError("the view has no reduce function")
    reduced = place.reducer is not None and query.reduce is not False
    if reduced and query.keys is not None and not query.group:
        raise QueryError("keys of a reduced view need group=True")
    if query.grouped and not reduced:
        raise QueryError("group needs a reduce function (and not reduce=False)")
    return reduced


def _wanted(snapshot: GroupSnapshot, query: Query) -> int:
    header = snapshot.header
    if query.partitions is None:
        return header.active
    mask = mask_of(query.partitions)
    if missing := mask & ~(header.active | header.passive):
        raise QueryError(f"partitions {partitions_of(missing)} are not in the index")
    return mask


@dataclass(frozen=True)
class _Work:
    """One query over one snapshot."""

    snapshot: GroupSnapshot
    place: ViewPlace
    query: Query
    wanted: int

    @property
    def _shape(self) -> Shape:
        return self.snapshot.design.shapes[self.place.tree]

    @property
    def _root(self) -> Pointer | None:
        return pointer(self.snapshot.header.view_roots[self.place.tree])

    def _leaves(self, range_: Range) -> Iterator[Packed]:
        """The wanted rows of a range, a leaf at a time, in the order asked for."""
        found = leaves(
            self.snapshot.file,
            self._shape,
            self._root,
            range_,
            descending=self.query.descending,
            wanted=self.wanted,
        )
        for leaf in found:
            kept = wanted_rows(leaf, self._shape, self.wanted)
            if len(kept):
                yield kept

    def rows(self) -> Iterator[Row]:
        for range_ in self.query.ranges():
            for leaf in self._leaves(range_):
                found = leaf.rows()
                for key, value in reversed(found) if self.query.descending else found:
                    yield from _rows_of(key, value)

    def one_reduction(self) -> Iterator[Row]:
        found = self._reduced(self.query.ranges()[0])
        if found is not None:
            yield Row(None, self._value(found))

    def groups(self) -> Iterator[Row]:
        for range_ in self.query.ranges():
            yield from (
                self._groups_down(range_) if self.query.descending else self._groups_up(range_)
            )

    def _groups_up(self, range_: Range) -> Iterator[Row]:
        """Groups that lie in one leaf are reduced there; one that goes on is one descent."""
        low = range_.low
        while True:
            leaf = next(self._leaves(Range(low, range_.high)), None)
            if leaf is None:
                return
            groups = self._groups_in(leaf)
            ends = np.array([end for _, end in groups], np.int64)
            for (key, _), part in zip(groups[:-1], self._parts(leaf, ends[:-1]), strict=True):
                yield Row(json.loads(key), self._value(part))
            yield from self._group(groups[-1][0], Range(low, range_.high))
            low = above(self._prefix(groups[-1][0]))

    def _groups_down(self, range_: Range) -> Iterator[Row]:
        high = range_.high
        while True:
            leaf = next(self._leaves(Range(range_.low, high)), None)
            if leaf is None:
                return
            groups = self._groups_in(leaf)
            parts = self._parts(leaf, np.array([end for _, end in groups], np.int64))
            for (key, _), part in [*zip(groups, parts, strict=True)][:0:-1]:
                yield Row(json.loads(key), self._value(part))
            yield from self._group(groups[0][0], Range(range_.low, high))
            high = self._prefix(groups[0][0])

    def _group(self, key: bytes, within: Range) -> Iterator[Row]:
        """The whole group of a key, wherever its rows are."""
        prefix = self._prefix(key)
        low = prefix if within.low is None else max(prefix, within.low)
        high = above(prefix) if within.high is None else min(above(prefix), within.high)
        found = self._reduced(Range(low, high))
        if found is not None:
            yield Row(json.loads(key), self._value(found))

    def _groups_in(self, leaf: Packed) -> list[tuple[bytes, int]]:
        """The group keys of a leaf, and after which row each ends."""
        groups: list[tuple[bytes, int]] = []
        for number, (key, _) in enumerate(leaf.rows(), 1):
            group = self._group_key(read_view_key(key)[0])
            if groups and groups[-1][0] == group:
                groups[-1] = (group, number)
            else:
                groups.append((group, number))
        return groups

    def _group_key(self, key: bytes) -> bytes:
        level = self.query.group_level
        if self.query.group or not key.startswith(b"["):
            return key
        elements = json.loads(key)
        return key if len(elements) <= level else _text(elements[:level])

    def _prefix(self, group: bytes) -> bytes:
        """What the sort keys of a group start with."""
        sort = sort_bytes(group)
        level = self.query.group_level
        cut = not self.query.group and sort[0] == ARRAY and len(json.loads(group)) == level
        return sort[:-1] if cut else sort

    def _parts(self, leaf: Packed, ends: np.ndarray[Any, Any]) -> list[Reduction]:
        return reductions_of(self._shape, leaf, ends) if len(ends) else []

    def _reduced(self, range_: Range) -> Reduction | None:
        return reduce_range(self.snapshot.file, self._shape, self._root, range_, wanted=self.wanted)

    def _value(self, reduction: Reduction) -> Any:
        assert self.place.reducer is not None
        return json.loads(reduction.values[self.place.reducer])


def _text(elements: list[Any]) -> bytes:
    return json.dumps(elements, separators=(",", ":"), ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )


def _rows_of(key: bytes, value: bytes) -> Iterator[Row]:
    emitted, doc_id = read_view_key(key)
    partition, values = read_view_value(value)
    shown = json.loads(emitted)
    name = doc_id.decode("utf-8", "replace")
    for one in values:
        yield Row(shown, json.loads(one), name, partition)

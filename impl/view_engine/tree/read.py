"""Reads a tree: rows of a range in either direction, single keys, and the reduction of a range."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stagewright.impl.view_engine.file.index_file import IndexFile
from stagewright.impl.view_engine.file.masks import mask_bytes
from stagewright.impl.view_engine.tree.loops import matches, not_in, upper_bounds
from stagewright.impl.view_engine.tree.nodes import (
    InnerNode,
    Pointer,
    Reduction,
    Shape,
    joined,
    leaf_at,
    read_node,
    read_subtrees,
    read_top,
    reduction_between,
    reduction_of,
)
from stagewright.impl.view_engine.tree.packed import Packed

Array = NDArray[Any]

MOST_AHEAD = 64  # nodes
EVERY_PARTITION = (1 << 1024) - 1


class Range(NamedTuple):
    """The sort keys from `low` (included) to before `high`; None is open."""

    low: bytes | None = None
    high: bytes | None = None


EVERYTHING = Range()


def above(key: bytes) -> bytes:
    """The least bytes above all that starts with `key`, which is the sort key of a JSON value."""
    kept = key.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1])


def leaves(
    file: IndexFile,
    shape: Shape,
    root: Pointer | None,
    range_: Range = EVERYTHING,
    *,
    descending: bool = False,
    wanted: int = EVERY_PARTITION,
) -> Iterator[Packed]:
    """The rows of a range, a leaf at a time; leaves in the order asked for, rows always ascending.

    Subtrees without a wanted partition are not read, but rows of other partitions are in what is given.
    """
    if root is not None and root.mask & wanted:
        scan = _Scan(file, shape, descending, wanted)
        yield from scan.below(read_node(file, shape, root.position), range_)


@dataclass
class _Scan:
    file: IndexFile
    shape: Shape
    descending: bool
    wanted: int
    ahead: int = 1  # nodes that are read together: more, the longer the scan goes on

    def below(self, node: InnerNode | Packed, range_: Range) -> Iterator[Packed]:
        """The leaves of a range under a node."""
        if isinstance(node, Packed):
            yield from _rows_in(node, range_, self.shape)
            return
        first, last = _children(node, range_)
        every = self.wanted == EVERY_PARTITION
        chosen = [i for i in range(first, last) if every or node.pointers[i].mask & self.wanted]
        if self.descending:
            chosen.reverse()
        start = 0
        while start < len(chosen):
            together = chosen[start : start + self.ahead]
            start += self.ahead
            self.ahead = min(2 * self.ahead, MOST_AHEAD)
            children = read_subtrees(self.file, [node.pointers[i] for i in together], self.shape)
            for i, child in zip(together, children, strict=True):
                yield from self.below(child, _part(range_, i == first, i + 1 == last))


def _rows_in(leaf: Packed, range_: Range, shape: Shape) -> Iterator[Packed]:
    """What of a leaf lies in a range, unless that is nothing."""
    if range_ == EVERYTHING:  # then nobody needs the sort keys
        yield leaf
        return
    first, last = _rows(leaf, range_)
    if first < last:
        whole = first == 0 and last == len(leaf)
        yield leaf if whole else shape.packed(leaf.part(first, last))


def _rows(leaf: Packed, range_: Range) -> tuple[int, int]:
    """Which rows of a leaf lie in the range."""
    first = 0 if range_.low is None else leaf.first_from(range_.low)
    last = len(leaf) if range_.high is None else leaf.first_from(range_.high)
    return first, max(first, last)


def _children(node: InnerNode, range_: Range) -> tuple[int, int]:
    """Which children can have rows of the range: keys are the last of each child."""
    keys = node.keys if range_ != EVERYTHING else ()
    first = 0 if range_.low is None else bisect_left(keys, range_.low)
    last = len(node.pointers)
    if range_.high is not None:
        last = min(max(first, bisect_left(keys, range_.high)) + 1, last)
    return first, last


def find(
    file: IndexFile, shape: Shape, root: Pointer | None, wanted: Packed
) -> Iterator[tuple[bytes, bytes]]:
    """The rows that have the keys of `wanted` (sorted): one descent for all of them."""
    if root is not None and len(wanted):
        yield from _find(file, shape, root, wanted, 0, len(wanted))


def _find(
    file: IndexFile, shape: Shape, pointer: Pointer, wanted: Packed, low: int, high: int
) -> Iterator[tuple[bytes, bytes]]:
    node = read_node(file, shape, pointer.position)
    keys, at = wanted.sort_keys
    if isinstance(node, Packed):
        for row in matches(*node.sort_keys, keys, at, low, high).tolist():
            if row >= 0:
                key, value, end = node.items[row].tolist()
                yield node.data[key:value].tobytes(), node.data[value:end].tobytes()
        return
    bounds = upper_bounds(*node.sort_keys, keys, at, low, high).tolist()
    first = low
    for child, last in zip(node.pointers, bounds, strict=True):
        if first < last:
            yield from _find(file, shape, child, wanted, first, last)
        first = last


def _not_counted(_position: int) -> None:
    """For callers that do not ask which nodes were read."""


def reduce_range(
    file: IndexFile,
    shape: Shape,
    root: Pointer | None,
    range_: Range = EVERYTHING,
    *,
    wanted: int = EVERY_PARTITION,
    visited: Callable[[int], None] = _not_counted,
) -> Reduction | None:
    """The reduction of the rows of the wanted partitions in a range; None where there are none.

    A subtree's own reduction is taken where it lies in the range and has wanted partitions only.
    """
    if root is None:
        return None
    work = _Reduce(file, shape, wanted, visited)
    work.reduce(root, range_)
    parts = work.parts
    return joined(shape, parts) if len(parts) > 1 else (parts[0] if parts else None)


@dataclass
class _Reduce:
    file: IndexFile
    shape: Shape
    wanted: int
    visited: Callable[[int], None]
    parts: list[Reduction] = field(default_factory=list)

    def reduce(self, pointer: Pointer, range_: Range) -> None:
        """Collect the reductions of what lies in a range of a subtree."""
        every = self.wanted == EVERY_PARTITION
        whole = range_.low is None and range_.high is None
        if whole and (every or pointer.mask & ~self.wanted == 0):
            self.parts.append(Reduction.decode(pointer.reduction))
            return
        if not every and not pointer.mask & self.wanted:
            return
        self.visited(pointer.position)
        node = read_top(self.file, self.shape, pointer.position)
        if isinstance(node, bytes):
            self._leaf(node, pointer.position, range_)
            return
        first, last = _children(node, range_)
        low, high = range_
        inner, end = first + (low is not None), last - (high is not None)
        if not every or inner > end:
            for i in range(first, last):
                self.reduce(node.pointers[i], _part(range_, i == first, i + 1 == last))
            return
        if first < inner:
            self.reduce(node.pointers[first], Range(low, None))
        self.parts += node.reductions[inner:end]  # wholly in the range, and wanted
        if end < last:
            self.reduce(node.pointers[end], Range(None, high))

    def _leaf(self, data: bytes, position: int, range_: Range) -> None:
        if self.wanted == EVERY_PARTITION:
            found = reduction_between(self.shape, data, 1, *range_)
            if found is not None:
                self.parts += [found] if found.count else []
                return
        node = leaf_at(self.shape, data, 1, position)
        first, last = _rows(node, range_)
        if first == last:
            return
        if self.wanted != EVERY_PARTITION:
            part = self.shape.packed(node.part(first, last))
            node = wanted_rows(part, self.shape, self.wanted)
            first, last = 0, len(node)
        if first < last:
            self.parts.append(reduction_of(self.shape, node, first, last))


def _part(range_: Range, first: bool, last: bool) -> Range:
    """What of a range is left to ask of one child of a node.

    The keys of the children before the last are below `high`, and so are all their rows.
    """
    return Range(range_.low if first else None, range_.high if last else None)


def wanted_rows(rows: Packed, shape: Shape, wanted: int) -> Packed:
    """Only the rows of wanted partitions."""
    if wanted == EVERY_PARTITION or not len(rows):
        return rows
    unwanted = np.frombuffer(mask_bytes(~wanted & EVERY_PARTITION), np.uint8)
    return shape.packed(not_in(rows.data, rows.items, unwanted)[0])

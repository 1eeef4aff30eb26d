"""Reads a tree: rows of a range in either direction, single keys, and the reduction of a range."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stagewright.impl.view_engine.file.index_file import IndexFile
from stagewright.impl.view_engine.file.masks import mask_bytes
from stagewright.impl.view_engine.tree.loops import lower_bound, matches, not_in, upper_bounds
from stagewright.impl.view_engine.tree.nodes import (
    InnerNode,
    Pointer,
    Reduction,
    Shape,
    joined,
    read_node,
    reduction_of,
)
from stagewright.impl.view_engine.tree.packed import Packed

Array = NDArray[Any]

EVERY_PARTITION = (1 << 1024) - 1


@dataclass(frozen=True)
class Range:
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
    range_: Range = Range(),
    *,
    descending: bool = False,
    wanted: int = EVERY_PARTITION,
) -> Iterator[Packed]:
    """The rows of a range, a leaf at a time; leaves in the order asked for, rows always ascending.

    Subtrees without a wanted partition are not read, but rows of other partitions are in what is given.
    """
    if root is not None:
        yield from _leaves(_Scan(file, shape, descending, wanted), root, range_)


@dataclass(frozen=True)
class _Scan:
    file: IndexFile
    shape: Shape
    descending: bool
    wanted: int


def _leaves(scan: _Scan, pointer: Pointer, range_: Range) -> Iterator[Packed]:
    if not pointer.mask & scan.wanted:
        return
    node = read_node(scan.file, scan.shape, pointer.position)
    if isinstance(node, Packed):
        if range_ == EVERYTHING:  # then nobody needs the sort keys
            yield node
            return
        first, last = _bounds(node.sort_keys, range_)
        if first < last:
            whole = first == 0 and last == len(node)
            yield node if whole else scan.shape.packed(node.part(first, last))
        return
    first, last = _children(node, range_)
    chosen = range(first, last)
    for i in reversed(chosen) if scan.descending else chosen:
        part = _part(range_, i == first, i + 1 == last)
        yield from _leaves(scan, node.pointers[i], part)


def _bounds(keys: tuple[Array, Array], range_: Range) -> tuple[int, int]:
    """Which rows lie in the range."""
    first = 0 if range_.low is None else lower_bound(*keys, _array(range_.low), False)
    last = len(keys[1]) - 1
    if range_.high is not None:
        last = lower_bound(*keys, _array(range_.high), False)
    return first, max(first, last)


def _children(node: InnerNode, range_: Range) -> tuple[int, int]:
    """Which children can have rows of the range: keys are the last of each child."""
    if range_ == EVERYTHING:
        return 0, len(node.pointers)
    first, last = _bounds(node.sort_keys, range_)
    return first, min(last + 1, len(node.pointers))


def _array(key: bytes) -> Array:
    return np.frombuffer(key, np.uint8)


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
    range_: Range = Range(),
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
        node = read_node(self.file, self.shape, pointer.position)
        if isinstance(node, Packed):
            self._leaf(node, range_)
            return
        first, last = _children(node, range_)
        for i in range(first, last):
            if first < i < last - 1 and every:  # wholly in the range, and wanted
                if i == first + 1:
                    self.parts += node.reductions[i : last - 1]
                continue
            self.reduce(node.pointers[i], _part(range_, i == first, i + 1 == last))

    def _leaf(self, node: Packed, range_: Range) -> None:
        first, last = _bounds(node.sort_keys, range_)
        if first < last:
            part = self.shape.packed(node.part(first, last))
            rows = wanted_rows(part, self.shape, self.wanted)
            if len(rows):
                self.parts.append(reduction_of(self.shape, rows))


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

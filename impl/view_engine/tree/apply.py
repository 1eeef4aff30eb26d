"""Applies a sorted batch to a tree, and purges partitions from it: copy on write, append only.

A subtree without operations and without purged partitions stays where it is; one that has only purged
partitions is dropped without being read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stagewright.impl.view_engine.file.index_file import IndexFile
from stagewright.impl.view_engine.file.masks import mask_bytes
from stagewright.impl.view_engine.tree.loops import cut, merge_leaf, upper_bounds
from stagewright.impl.view_engine.tree.nodes import (
    INNER_SIZE,
    LEAF_SIZE,
    InnerNode,
    Pointer,
    Shape,
    pack_pointer,
    read_node,
    reduction_of,
    write_inner,
    write_leaves,
)
from stagewright.impl.view_engine.tree.packed import Operations, Packed

Array = NDArray[Any]


@dataclass
class Work:
    """What an application did."""

    nodes_read: int = 0
    nodes_written: int = 0
    values_purged: int = 0
    stopped: bool = False  # a purge that `enough` ended: rows of its partitions may be left


def _never(_work: Work) -> bool:
    return False


def apply(
    file: IndexFile,
    shape: Shape,
    root: Pointer | None,
    operations: Operations,
    *,
    purge: int = 0,
    work: Work | None = None,
) -> Pointer | None:
    """The tree after the operations, without the rows of the partitions in `purge` that it meets.

    Everything of those partitions goes that can be dropped unread or is in a node that changes anyway
    or contains them; None is the empty tree.
    """
    worker = _Applier(file, shape, operations, purge, work or Work())
    return worker.run(root)


def purge(
    file: IndexFile,
    shape: Shape,
    root: Pointer | None,
    mask: int,
    *,
    enough: Callable[[Work], bool] = _never,
    work: Work | None = None,
) -> Pointer | None:
    """The tree without the rows of the partitions in `mask`; stops early once `enough` says so."""
    nothing = Operations.of((), collated=shape.is_view)
    worker = _Applier(file, shape, nothing, mask, work or Work(), enough)
    return worker.run(root)


@dataclass
class _Applier:
    file: IndexFile
    shape: Shape
    operations: Operations
    purge: int
    work: Work
    enough: Callable[[Work], bool] = _never
    _purge_bytes: Array = field(init=False)

    def __post_init__(self) -> None:
        self._purge_bytes = np.frombuffer(mask_bytes(self.purge), np.uint8)

    def run(self, root: Pointer | None) -> Pointer | None:
        whole = 0, len(self.operations)
        if root is None:
            made = self._write_rows(self._merged(self.shape.packed(b""), *whole)[0])
        else:
            made = self._subtree(root, *whole)
        while len(made) > 1:
            made = self._write_pointers(made)
        return self._without_single_parents(made[0]) if made else None

    def _without_single_parents(self, root: Pointer) -> Pointer:
        """A root with one child is not needed, unless it stood so before."""
        while True:
            node = read_node(self.file, self.shape, root.position)
            if isinstance(node, Packed) or len(node.pointers) > 1:
                return root
            root = node.pointers[0]

    def _subtree(self, pointer: Pointer, low: int, high: int) -> list[Pointer]:
        """What stands for a subtree after the operations low … high: itself, new ones, or nothing."""
        if low == high:
            unwanted = pointer.mask & self.purge
            if not unwanted or self.work.stopped:
                return [pointer]
            if unwanted == pointer.mask:
                self.work.values_purged += pointer.values
                return []
            if self.enough(self.work):
                self.work.stopped = True
                return [pointer]
        self.work.nodes_read += 1
        node = read_node(self.file, self.shape, pointer.position)
        if isinstance(node, InnerNode):
            return self._inner(pointer, node, low, high)
        rows, changed = self._merged(node, low, high)
        return self._write_rows(rows) if changed else [pointer]

    def _inner(self, pointer: Pointer, node: InnerNode, low: int, high: int) -> list[Pointer]:
        keys, at = self.operations.keys, self.operations.at
        bounds = upper_bounds(*node.sort_keys, keys, at, low, high).tolist() if low < high else []
        made: list[Pointer] = []
        first = low
        for i, child in enumerate(node.pointers):
            last = bounds[i] if bounds and i + 1 < len(node.pointers) else high
            made += self._subtree(child, first, last)
            first = last
        if made == list(node.pointers):
            return [pointer]
        return self._write_pointers(made)

    def _merged(self, leaf: Packed, low: int, high: int) -> tuple[Packed, bool]:
        operations = self.operations
        data, changed, purged = merge_leaf(
            leaf.data,
            leaf.items,
            *leaf.sort_keys,
            operations.rows.data,
            operations.rows.items,
            operations.keys,
            operations.at,
            operations.inserts,
            low,
            high,
            self._purge_bytes,
        )
        rows = self.shape.packed(data)
        if purged:
            self.work.values_purged += self._values(leaf, rows, low, high, int(purged))
        return rows, bool(changed)

    def _values(self, leaf: Packed, rows: Packed, low: int, high: int, purged: int) -> int:
        """How many values the purged rows had: rows of views may have several."""
        if not self.shape.is_view or low != high:
            return purged
        return _count(leaf) - _count(rows)

    def _write_rows(self, rows: Packed) -> list[Pointer]:
        """Leaves of about equal size, none above the threshold if its rows allow that."""
        if not len(rows):
            return []
        size = len(rows.data)
        target = size if size <= LEAF_SIZE else size // -(-size // LEAF_SIZE)
        ends = (
            cut(rows.items, max(target - _mean(size, len(rows)), 1)).tolist()
            if size > LEAF_SIZE
            else []
        )
        if not ends or ends[-1] != len(rows):
            ends.append(len(rows))
        made = write_leaves(self.file, self.shape, rows, np.array(ends, np.int64))
        self.work.nodes_written += len(made)
        return made

    def _write_pointers(self, pointers: list[Pointer]) -> list[Pointer]:
        """Inner nodes of about equal size above these subtrees; each has at least two if there are two."""
        sizes = [len(pack_pointer(pointer)) for pointer in pointers]
        nodes = min(-(-sum(sizes) // INNER_SIZE), max(len(pointers) // 2, 1))
        made: list[Pointer] = []
        for i in range(nodes):
            part = pointers[len(pointers) * i // nodes : len(pointers) * (i + 1) // nodes]
            made.append(write_inner(self.file, self.shape, part))
        self.work.nodes_written += len(made)
        return made


def _mean(size: int, rows: int) -> int:
    return size // (2 * rows)


def _count(rows: Packed) -> int:
    return reduction_of(Shape(is_view=True), rows).count if len(rows) else 0

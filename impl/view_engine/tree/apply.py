"""Applies a sorted batch to a tree, and purges partitions from it: copy on write, append only.

A subtree without operations and without purged partitions stays where it is; one that has only purged
partitions is dropped without being read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stagewright.impl.view_engine.file.index_file import IndexFile
from stagewright.impl.view_engine.file.masks import mask_bytes
from stagewright.impl.view_engine.tree.loops import upper_bounds
from stagewright.impl.view_engine.tree.merge_loops import cut_leaves, find_places, merge_leaves
from stagewright.impl.view_engine.tree.nodes import (
    INNER_SIZE,
    LEAF_SIZE,
    InnerNode,
    Pointer,
    Shape,
    packed_size,
    read_node,
    read_nodes,
    write_inner,
    write_leaves,
)
from stagewright.impl.view_engine.tree.packed import Operations, Packed, PackedItemsError

Array = NDArray[Any]

Made = list[Pointer] | None  # what a subtree becomes; None if it stays
MOST_TOGETHER = 256  # nodes of one level that are read at once
STOPS_AFTER = 8  # of them, where somebody may say that it is enough


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


class _Opened(NamedTuple):
    """A subtree that is read: the operations `low` … `high` are for it."""

    pointer: Pointer
    low: int
    high: int


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
        everything = [(0, len(self.operations))]
        if root is None:
            [found] = self._leaves([b""], everything)
            made = found or []
        else:
            [found] = self._subtrees([root], everything)
            made = [root] if found is None else found
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

    def _subtrees(
        self, pointers: Sequence[Pointer], parts: Sequence[tuple[int, int]]
    ) -> list[Made]:
        """What stands for each subtree of a level: new ones, or nothing; None for itself.

        `parts[i]` are the operations for subtree i. Those that are to be read are read together, and
        leaves among them are merged and written together.
        """
        slots: list[Made] = [None] * len(pointers)
        opened: dict[int, _Opened] = {}
        most = MOST_TOGETHER if self.enough is _never else STOPS_AFTER
        for i, pointer in enumerate(pointers):
            if len(opened) == most:
                self._open(opened, slots)
            low, high = parts[i]
            if low < high:
                opened[i] = _Opened(pointer, low, high)
            elif self.purge and (unwanted := pointer.mask & self.purge) and not self.work.stopped:
                if unwanted == pointer.mask:
                    self.work.values_purged += pointer.values
                    slots[i] = []
                elif self.enough(self.work):
                    self.work.stopped = True
                else:
                    opened[i] = _Opened(pointer, low, high)
        self._open(opened, slots)
        return slots

    def _open(self, opened: dict[int, _Opened], slots: list[Made]) -> None:
        """Read them, put what becomes of them into their slots, and forget them."""
        for i, made in zip(opened, self._made_of([*opened.values()]), strict=True):
            slots[i] = made
        opened.clear()

    def _made_of(self, opened: list[_Opened]) -> list[Made]:
        self.work.nodes_read += len(opened)
        nodes = read_nodes(self.file, [one.pointer for one in opened], self.shape)
        leaves = [i for i, node in enumerate(nodes) if isinstance(node, bytes)]
        merged = self._leaves(
            [node for node in nodes if isinstance(node, bytes)],
            [(opened[i].low, opened[i].high) for i in leaves],
            [opened[i].pointer for i in leaves],
        )
        made: list[Made] = [None] * len(opened)
        for i, found in zip(leaves, merged, strict=True):
            made[i] = found
        inner = {i: node for i, node in enumerate(nodes) if isinstance(node, InnerNode)}
        for i, found in zip(
            inner, self._inner([opened[i] for i in inner], [*inner.values()]), strict=True
        ):
            made[i] = found
        return made

    def _inner(self, opened: list[_Opened], nodes: list[InnerNode]) -> Iterator[Made]:
        """What stands for each of several inner nodes, whose children are looked at together."""
        children = [pointer for node in nodes for pointer in node.pointers]
        parts = [
            part for one, node in zip(opened, nodes, strict=True) for part in self._parts(one, node)
        ]
        slots = iter(self._subtrees(children, parts) if children else ())
        for node in nodes:
            same = True
            below: list[Pointer] = []
            for pointer, made in zip(node.pointers, islice(slots, len(node.pointers)), strict=True):
                if made is None:
                    below.append(pointer)
                else:
                    below += made
                    same = False
            yield None if same else self._write_pointers(below)

    def _parts(self, one: _Opened, node: InnerNode) -> Iterator[tuple[int, int]]:
        """The operations for each child."""
        bounds = [one.low] * (len(node.pointers) + 1)
        if one.low < one.high:
            operations = self.operations
            bounds[1:] = upper_bounds(
                *node.sort_keys, operations.keys, operations.at, one.low, one.high
            ).tolist()
        bounds[-1] = one.high  # what is above all keys goes to the last
        return pairwise(bounds)

    def _leaves(
        self,
        items: Sequence[bytes],
        parts: Sequence[tuple[int, int]],
        pointers: Sequence[Pointer] = (),
    ) -> list[Made]:
        """What each leaf becomes; None if it stays. `items`: those of each, `parts`: its operations."""
        if not items:
            return []
        old, ends = self._joined(items, pointers)
        operations = self.operations
        bounds = np.array(parts, np.int64)
        data, places, row_ends, changed, purged = merge_leaves(
            old.data,
            old.items,
            ends,
            *self._places(old, ends, bounds),
            operations.rows.data,
            operations.rows.items,
            operations.inserts,
            bounds,
            self._purge_bytes,
            self.shape.is_view,
        )
        self.work.values_purged += int(purged)
        rows = self.shape.packed(data, items=places)
        cuts, became = cut_leaves(rows.items, row_ends, LEAF_SIZE)
        written = iter(write_leaves(self.file, self.shape, rows, cuts))
        self.work.nodes_written += len(cuts)
        return [
            [*islice(written, count)] if changed_here else None
            for count, changed_here in zip(became.tolist(), changed.tolist(), strict=True)
        ]

    def _places(self, old: Packed, ends: Array, parts: Array) -> tuple[Array, Array]:
        """Where each operation belongs among the rows, and whether a row has its key."""
        wanted = (self.operations.keys, self.operations.at, parts)
        places, equal, settled = find_places(old.data, old.items, old.collated, ends, *wanted)
        if not settled:
            keys, at = old.sort_keys
            rows = np.column_stack((at[:-1], at[1:], at[1:]))
            places, equal, _ = find_places(keys, rows, False, ends, *wanted)
        return places, equal

    def _joined(
        self, items: Sequence[bytes], pointers: Sequence[Pointer]
    ) -> tuple[Packed, NDArray[np.int64]]:
        """The rows of several leaves, and before which row each ends. Raises CorruptFileError."""
        byte_ends = np.cumsum([len(of_leaf) for of_leaf in items])
        rows = self.shape.packed(b"".join(items))
        try:
            found = rows.items[:, 2]
        except PackedItemsError:
            found = np.zeros(0, np.int64)
        ends = np.searchsorted(found, byte_ends, "right")
        if not np.array_equal(np.concatenate(([0], found))[ends], byte_ends):
            for pointer in pointers:  # one of them does not end with an item: it says so
                read_node(self.file, self.shape, pointer.position)
        return rows, ends

    def _write_pointers(self, pointers: list[Pointer]) -> list[Pointer]:
        """Inner nodes of about equal size above these subtrees; each has at least two if there are two."""
        size = sum(packed_size(pointer) for pointer in pointers)
        nodes = min(-(-size // INNER_SIZE), max(len(pointers) // 2, 1))
        made: list[Pointer] = []
        for i in range(nodes):
            part = pointers[len(pointers) * i // nodes : len(pointers) * (i + 1) // nodes]
            made.append(write_inner(self.file, self.shape, part))
        self.work.nodes_written += len(made)
        return made

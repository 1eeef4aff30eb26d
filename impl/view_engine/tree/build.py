"""Builds a tree from sorted rows, bottom up, in memory that does not depend on how many there are.

Nodes are cut as the original cuts them when it builds or compacts, so that equal rows make equal bytes.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from stagewright.impl.view_engine.file.index_file import IndexFile
from stagewright.impl.view_engine.tree.loops import cut
from stagewright.impl.view_engine.tree.nodes import (
    INNER_SIZE,
    LEAF_SIZE,
    Pointer,
    Shape,
    pack_pointer,
    write_inner,
    write_leaves,
)
from stagewright.impl.view_engine.tree.packed import Packed


def _filled(size: int) -> int:
    """What a node has at least when it is written full: two thirds of four thirds."""
    return (size + size // 3) * 2 // 3


BUILT_LEAF = _filled(LEAF_SIZE)
BUILT_INNER = _filled(INNER_SIZE)


def build(file: IndexFile, shape: Shape, batches: Iterable[Packed]) -> Pointer | None:
    """A tree of the rows of all batches, which come in order; None of none."""
    level: list[Pointer] = []
    rest = np.zeros(0, np.uint8)
    for batch in batches:
        rows = (
            batch
            if not len(rest)
            else shape.packed(np.concatenate((rest, batch.part(0, len(batch)))))
        )
        ends = cut(rows.items, BUILT_LEAF)
        level += write_leaves(file, shape, rows, ends)
        rest = rows.part(int(ends[-1]) if len(ends) else 0, len(rows))
    if len(rest):
        rows = shape.packed(rest)
        level += write_leaves(file, shape, rows, np.array([len(rows)], np.int64))
    return build_levels(file, shape, level)


def build_levels(file: IndexFile, shape: Shape, level: list[Pointer]) -> Pointer | None:
    """The inner nodes above these subtrees, up to one root; None of none."""
    while len(level) > 1:
        above: list[Pointer] = []
        children: list[Pointer] = []
        size = 0
        for pointer in level:
            children.append(pointer)
            size += len(pack_pointer(pointer))
            if size > BUILT_INNER:
                above.append(write_inner(file, shape, children))
                children, size = [], 0
        if children:
            above.append(write_inner(file, shape, children))
        if len(above) >= len(level):  # two large reductions do not fit: widen, or it never ends
            above = [write_inner(file, shape, level)]
        level = above
    return level[0] if level else None

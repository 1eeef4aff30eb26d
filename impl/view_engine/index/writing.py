"""The writer of the updater: from mapped documents to operations on the trees, and from these to headers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from stagewright.impl.view_engine.defects import Defect, has
from stagewright.impl.view_engine.design.emitted import Emitted
from stagewright.impl.view_engine.design.mapping import Mapped
from stagewright.impl.view_engine.file.header import IndexHeader, Root
from stagewright.impl.view_engine.file.index_file import IndexFile
from stagewright.impl.view_engine.tree.apply import apply
from stagewright.impl.view_engine.tree.entries import (
    back_key,
    back_value,
    read_back_value,
    view_key,
    view_value,
)
from stagewright.impl.view_engine.tree.nodes import BACK_INDEX, Pointer, Shape
from stagewright.impl.view_engine.tree.packed import Operations, Packed
from stagewright.impl.view_engine.tree.read import find

Row = tuple[bytes, bytes]
Record = Callable[[Sequence[Operations]], None]


def rows_of_document(mapped: Mapped) -> tuple[list[list[Row]], bytes]:
    """The rows of a document by tree, and its value in the back index (empty if it has no rows).

    Several values that were emitted with one key are one row. Raises ValueError for a key that is too
    long for the format, naming the document.
    """
    partition, doc_id = mapped.change.partition, mapped.change.doc_id
    trees: list[list[Row]] = []
    keys: dict[int, list[bytes]] = {}
    for number, rows in enumerate(mapped.rows):
        by_key = _by_key(rows)
        trees.append([(view_key(k, doc_id), view_value(partition, v)) for k, v in by_key.items()])
        if by_key:
            keys[number] = list(by_key)
    return trees, back_value(partition, keys) if keys else b""


def _by_key(rows: Sequence[Emitted]) -> Mapping[bytes, list[bytes]]:
    if len(rows) == 1:
        return {rows[0][0]: [rows[0][1]]}
    by_key: dict[bytes, list[bytes]] = {}
    for key, value in rows:
        by_key.setdefault(key, []).append(value)
    return by_key


def apply_batch(
    file: IndexFile,
    shapes: Sequence[Shape],
    header: IndexHeader,
    batch: Iterable[Mapped],
    record: Record | None = None,
    replaced: Callable[[bool], object] | None = None,
) -> IndexHeader:
    """Put a batch of documents, each once, into the trees; gives the header with the new roots.

    One descent of the back index finds what the documents had before. The header is not written.
    `record` gets the operations, of the back index and of each view; `replaced` whether all that the documents
    had before goes or is replaced.
    """
    by_key = {back_key(m.change.partition, m.change.doc_id): m for m in batch}
    looked_up = [(key, b"") for key, m in by_key.items() if header.seqs.get(m.change.partition)]
    had: dict[bytes, dict[int, list[bytes]]] = {}
    wanted = Packed.of(looked_up, collated=False).sorted()
    for key, value in find(file, BACK_INDEX, pointer(header.id_root), wanted):
        had[key] = read_back_value(value)[1]
    inserted: list[list[Row]] = [[] for _ in shapes]
    removed: list[list[bytes]] = [[] for _ in shapes]
    entries: list[Row] = []
    gone: list[bytes] = []
    for key, mapped in by_key.items():
        trees, entry = rows_of_document(mapped)
        for number, old in _had(had, key):
            removed[number] += (view_key(k, mapped.change.doc_id) for k in old)
        for number, rows in enumerate(trees):
            inserted[number] += rows
        if entry:
            entries.append((key, entry))
        elif key in had and not has(Defect.back_index_keeps_deleted):
            gone.append(key)
    operations = [
        Operations.of(entries, gone, collated=False),
        *(
            Operations.of(new, old, collated=True)
            for new, old in zip(inserted, removed, strict=True)
        ),
    ]
    roots = [
        root_of(apply(file, shape, pointer(root), of_tree, purge=header.cleanup))
        for shape, root, of_tree in zip(
            (BACK_INDEX, *shapes), (header.id_root, *header.view_roots), operations, strict=True
        )
    ]
    if record is not None:
        record(operations)
    if replaced is not None:
        there = sum(len(keys) for of_trees in had.values() for keys in of_trees.values())
        entered = {key for key, _ in entries}
        replaced(there == sum(map(len, removed)) and had.keys() <= entered.union(gone))
    return replace(header, id_root=roots[0], view_roots=tuple(roots[1:]))


def _had(
    had: Mapping[bytes, dict[int, list[bytes]]], key: bytes
) -> Iterable[tuple[int, list[bytes]]]:
    return () if has(Defect.old_rows_stay) else had.get(key, {}).items()


def pointer(root: Root | None) -> Pointer | None:
    """The root of a header as a subtree."""
    return None if root is None else Pointer(b"", *root)


def root_of(tree: Pointer | None) -> Root | None:
    """A subtree as the root of a header."""
    return None if tree is None else tree.root

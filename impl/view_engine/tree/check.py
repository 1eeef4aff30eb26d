"""Walks an index file and verifies all of it, without repairing anything.

Blocks, headers, nodes, order, masks, counts, sizes, reductions, and that the back index and the views
say the same.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

import numpy as np

from stagewright.impl.view_engine.file.chunks import BLOCK, read_header
from stagewright.impl.view_engine.file.disk import Disk
from stagewright.impl.view_engine.file.errors import CorruptFileError
from stagewright.impl.view_engine.file.header import Root, contradictions, decode_header
from stagewright.impl.view_engine.file.index_file import IndexFile, Snapshot
from stagewright.impl.view_engine.file.masks import partitions_of
from stagewright.impl.view_engine.tree.entries import (
    read_back_key,
    read_back_value,
    read_view_key,
    read_view_value,
)
from stagewright.impl.view_engine.tree.nodes import (
    BACK_INDEX,
    Pointer,
    Reduction,
    Shape,
    read_node,
    reductions_of,
)
from stagewright.impl.view_engine.tree.packed import Packed
from stagewright.impl.view_engine.tree.reducers import BUILTIN, ReduceError, Reducer
from stagewright.impl.view_engine.tree.sort_loops import first_disorder

MOST_PROBLEMS = 1000  # then the walk ends: a file that is damaged everywhere needs no longer list
MOST_NOTES = 5  # of blocks that are no headers
VIEW = Shape(is_view=True)
_DIGITS = {"_count": 0.0, "_sum": 1e-9, "_stats": 1e-4}  # what the original's number formats lose


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: where in the file (bytes), in which tree, and what."""

    position: int
    tree: str
    what: str


@dataclass
class TreeFacts:
    """What one tree has."""

    name: str
    rows: int = 0
    values: int = 0
    leaves: int = 0
    inner_nodes: int = 0
    depth: int = 0
    bytes: int = 0
    reduces: list[str] = field(default_factory=list)


@dataclass
class FileReport:
    """All that a walk found. `notes` are facts that a reader should know but that are not wrong."""

    size: int
    headers: int = 0
    header_at: int = -1
    partitions: dict[str, int] = field(default_factory=dict)
    trees: list[TreeFacts] = field(default_factory=list)
    fragmentation: float = 0.0
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, position: int, tree: str, what: str) -> None:
        """Another problem."""
        self.problems.append(Problem(position, tree, what))
        if len(self.problems) >= MOST_PROBLEMS:
            raise _EnoughError


class _EnoughError(Exception):
    """So many problems that the rest is not looked for."""


def check_file(disk: Disk, *, all_snapshots: bool = False) -> FileReport:
    """Verify the last snapshot of a file, or all of them."""
    report = FileReport(disk.size())
    file = IndexFile(disk)
    try:
        snapshots = _check_blocks(disk, report)
        if not snapshots:
            report.add(0, "file", "no valid header: it holds no snapshot, or is no index file")
        for snapshot in snapshots[: None if all_snapshots else 1]:
            report.trees = []
            _check_snapshot(file, snapshot, report)
        if snapshots:
            _facts(snapshots[0], report)
    except _EnoughError:
        report.notes.append(f"more than {MOST_PROBLEMS - 1} problems: the walk ended")
    return report


def _check_blocks(disk: Disk, report: FileReport) -> list[Snapshot]:
    """Every block's first byte and every header; gives the snapshots, the newest first."""
    found: list[Snapshot] = []
    broken: list[tuple[int, str]] = []
    for position in range(0, report.size, BLOCK):
        kind = disk.read(position, 1)
        if kind == b"\0":
            continue
        if kind != b"\1":
            broken.append((position, f"a block starts with 0 or 1, not with {kind[0]}"))
            continue
        try:
            header = decode_header(read_header(disk.read, position), position)
            found.insert(0, Snapshot(position, header))
        except CorruptFileError as error:
            broken.append((position, error.reason))
    report.headers = len(found)
    last = found[0].position if found else -1
    # A crash leaves such blocks behind, also before later headers.
    for position, what in broken[:MOST_NOTES]:
        report.notes.append(f"not a header, at byte {position}: {what}")
    if len(broken) > MOST_NOTES:
        report.notes.append(f"nor in {len(broken) - MOST_NOTES:,} blocks after these")
    if found:
        written = len(read_header(disk.read, last)) + 9
        end = last + written + (written - 1) // (BLOCK - 1)
        if report.size > end + BLOCK:
            report.notes.append(
                f"{report.size - end} bytes after the last header: a write did not end"
            )
    return found


def _facts(snapshot: Snapshot, report: FileReport) -> None:
    header = snapshot.header
    report.header_at = snapshot.position
    report.partitions = {
        "active": len(partitions_of(header.active)),
        "passive": len(partitions_of(header.passive)),
        "cleanup": len(partitions_of(header.cleanup)),
        "unindexable": len(header.unindexable_seqs),
    }
    if report.size:
        report.fragmentation = max(report.size - header.tree_bytes, 0) / report.size


def _check_snapshot(file: IndexFile, snapshot: Snapshot, report: FileReport) -> None:
    header = snapshot.header
    for what in contradictions(header):
        report.add(snapshot.position, "header", what)
    present = header.active | header.passive | header.cleanup
    keys = _Agreement()
    before = len(report.problems)
    back = _Walk(file, BACK_INDEX, "back index", report, present, snapshot.position)
    back.on_row = partial(_add_back_row, keys, len(header.view_roots))
    back.run(header.id_root)
    for number, root in enumerate(header.view_roots):
        view = _Walk(file, VIEW, f"view {number}", report, present, snapshot.position)
        view.on_row = partial(_add_view_row, keys, number)
        view.run(root)
    if len(report.problems) == before:
        for number, difference in keys.differences(len(header.view_roots)):
            what = f"the back index and view {number} do not have the same rows ({difference})"
            report.add(snapshot.position, f"view {number}", what)


class _Agreement:
    """Whether two multisets of rows are equal, in constant memory: by sums of their hashes."""

    def __init__(self) -> None:
        self._sums: Counter[tuple[int, bool]] = Counter()
        self._rows: Counter[tuple[int, bool]] = Counter()

    def add(self, view: int, partition: int, doc_id: bytes, key: bytes, *, of_view: bool) -> None:
        text = b"%d %d %d %b%b" % (view, partition, len(doc_id), doc_id, key)
        number = int.from_bytes(hashlib.blake2b(text, digest_size=16).digest(), "big")
        self._sums[view, of_view] = (self._sums[view, of_view] + number) % (1 << 128)
        self._rows[view, of_view] += 1

    def differences(self, views: int) -> list[tuple[int, str]]:
        return [
            (view, f"{self._rows[view, False]} keys there, {self._rows[view, True]} rows here")
            for view in range(views)
            if self._sums[view, False] != self._sums[view, True]
        ]


def _add_back_row(keys: _Agreement, views: int, key: bytes, value: bytes) -> None:
    partition, doc_id = read_back_key(key)
    stored, found = read_back_value(value)
    if stored != partition:
        raise ValueError(
            f"document {doc_id!r} has partition {partition} in its key, {stored} in its value"
        )
    for view, emitted in found.items():
        if view >= views:
            raise ValueError(f"document {doc_id!r} has keys of view {view}, which there is not")
        for emitted_key in dict.fromkeys(emitted):
            keys.add(view, partition, doc_id, emitted_key, of_view=False)


def _add_view_row(keys: _Agreement, view: int, key: bytes, value: bytes) -> None:
    emitted, doc_id = read_view_key(key)
    partition, values = read_view_value(value)
    if not values:
        raise ValueError(f"the row of document {doc_id!r} has no value")
    keys.add(view, partition, doc_id, emitted, of_view=True)


@dataclass
class _Subtree:
    """What is really below a pointer."""

    reduction: Reduction
    size: int
    first: bytes
    last: bytes
    last_key: bytes
    depth: int


class _Walk:
    """One tree: reads every node, and compares each pointer with what it points to."""

    def __init__(
        self,
        file: IndexFile,
        shape: Shape,
        name: str,
        report: FileReport,
        present: int,
        header_at: int,
    ) -> None:
        self._file = file
        self._shape = shape
        self._report = report
        self._name = name
        self._present = present
        self._header_at = header_at
        self.facts = TreeFacts(name)
        self.on_row: Callable[[bytes, bytes], None] = _nothing
        self._reduces = _Reduces()

    def run(self, root: Root | None) -> None:
        self._report.trees.append(self.facts)
        if root is None:
            return
        self.facts.bytes = root.size
        found = self._subtree(
            Pointer(b"", root.position, root.size, root.reduction), self._header_at
        )
        if found is None:
            return
        self.facts.depth = found.depth
        self.facts.values = found.reduction.count
        for what in self._reduces.mismatches(self.facts):
            self._report.add(what[0], self._name, what[1])
        extra = found.reduction.mask & ~self._present
        if extra:
            what_ = f"rows of partitions {partitions_of(extra)}, which the header does not have"
            self._report.add(root.position, self._name, what_)

    def _problem(self, position: int, what: str) -> None:
        self._report.add(position, self._name, what)

    def _subtree(self, pointer: Pointer, above: int) -> _Subtree | None:
        """Verify what a pointer says; None where that cannot be read."""
        position = pointer.position
        if position >= above:
            self._problem(
                above, f"a pointer to byte {position}, which is after the node that has it"
            )
            return None
        try:
            size = _stored_size(self._file, position)
            node = read_node(self._file, self._shape, position)
            if isinstance(node, Packed):
                found = self._leaf(node, position, size)
            else:
                self.facts.inner_nodes += 1
                found = self._inner(node.pointers, position, size)
        except CorruptFileError as error:
            self._problem(error.position, error.reason)
            return None
        except ValueError as error:
            self._problem(position, str(error))
            return None
        if found is not None:
            self._compare(pointer, found)
        return found

    def _leaf(self, rows: Packed, position: int, size: int) -> _Subtree | None:
        self.facts.leaves += 1
        self.facts.rows += len(rows)
        if not len(rows):
            self._problem(position, "a leaf without rows")
            return None
        keys, at = rows.sort_keys
        wrong = first_disorder(keys, at)
        for number, (key, value) in enumerate(rows.rows()):
            if number == wrong:
                self._problem(
                    position, f"row {number}, {_shown(key)}, is not above the row before it"
                )
            self.on_row(key, value)
        ends = np.array([len(rows)], np.int64)
        reduction = reductions_of(self._shape, rows, ends)[0]
        if self._shape.is_view:
            self._reduces.leaf(position, rows)
        return _Subtree(
            reduction,
            size,
            keys[at[0] : at[1]].tobytes(),
            keys[at[-2] : at[-1]].tobytes(),
            self._shape.packed(rows.part(len(rows) - 1, len(rows))).rows()[0][0],
            1,
        )

    def _inner(self, pointers: Sequence[Pointer], position: int, size: int) -> _Subtree | None:
        parts = [self._subtree(child, position) for child in pointers]
        found = [part for part in parts if part is not None]
        if not found:
            if not pointers:
                self._problem(position, "an inner node without children")
            return None
        for before, after in pairwise(found):
            if before.last >= after.first:
                what = f"the subtree up to {_shown(before.last_key)} overlaps with the next one"
                self._problem(position, what)
        if len({part.depth for part in found}) > 1:
            self._problem(position, "the leaves below are not all equally deep")
        if len(found) == len(pointers) and self._shape.is_view:
            self._reduces.inner(position, pointers)
        mask = 0
        for part in found:
            mask |= part.reduction.mask
        if len(found) < len(pointers):
            return None  # the counts above would all be wrong for one lost leaf: said once
        return _Subtree(
            Reduction(sum(part.reduction.count for part in found), mask),
            size + sum(part.size for part in found),
            found[0].first,
            found[-1].last,
            found[-1].last_key,
            1 + max(part.depth for part in found),
        )

    def _compare(self, pointer: Pointer, found: _Subtree) -> None:
        at = pointer.position
        if pointer.key and pointer.key != found.last_key:
            self._problem(
                at, f"the pointer's key {_shown(pointer.key)} is not the last of its rows"
            )
        if pointer.values != found.reduction.count:
            what = f"the pointer counts {pointer.values} values, there are {found.reduction.count}"
            self._problem(at, what)
        if pointer.mask != found.reduction.mask:
            differ = partitions_of(pointer.mask ^ found.reduction.mask)
            self._problem(at, f"the mask is not the union of what is below: partitions {differ}")
        if pointer.size != found.size:
            self._problem(
                at, f"the pointer says {pointer.size} bytes, the subtree has {found.size}"
            )
        try:
            self._reduces.says(at, Reduction.decode(pointer.reduction).values)
        except ValueError as error:
            self._problem(at, str(error))


def _nothing(_key: bytes, _value: bytes) -> None:
    """For rows that nobody asks for."""


class _Reduces:
    """Which builtin reduce functions made the values in the nodes: the file does not say."""

    def __init__(self) -> None:
        self._fits: Counter[tuple[int, str]] = Counter()
        self._nodes: Counter[int] = Counter()
        self._wrong: dict[tuple[int, str], list[int]] = {}
        self._should: dict[int, dict[str, Callable[[int], bytes]]] = {}

    def leaf(self, position: int, rows: Packed) -> None:
        ends = np.array([len(rows)], np.int64)

        def of(reducer: Reducer) -> Callable[[int], bytes]:
            return lambda _: reductions_of(Shape(True, (reducer,)), rows, ends)[0].values[0]

        self._should[position] = {name: of(reducer) for name, reducer in BUILTIN.items()}

    def inner(self, position: int, pointers: Sequence[Pointer]) -> None:
        parts = [Reduction.decode(pointer.reduction).values for pointer in pointers]

        def of(reducer: Reducer) -> Callable[[int], bytes]:
            return lambda index: reducer.rereduce([values[index] for values in parts])

        self._should[position] = {name: of(reducer) for name, reducer in BUILTIN.items()}

    def says(self, position: int, values: Sequence[bytes]) -> None:
        """The pointer to a node has these values."""
        should = self._should.pop(position, {})
        for index, value in enumerate(values):
            self._nodes[index] += 1
            for name, compute in should.items():
                try:
                    fits = _equal(json.loads(compute(index)), json.loads(value), _DIGITS[name])
                except (ReduceError, ValueError, IndexError, RecursionError):
                    fits = False
                if fits:
                    self._fits[index, name] += 1
                elif len(wrong := self._wrong.setdefault((index, name), [])) < MOST_PROBLEMS:
                    wrong.append(position)

    def mismatches(self, facts: TreeFacts) -> list[tuple[int, str]]:
        """Nodes that differ from the function that made most of the others."""
        found: list[tuple[int, str]] = []
        for index, nodes in sorted(self._nodes.items()):
            name = max(BUILTIN, key=lambda name: self._fits[index, name])
            fits = self._fits[index, name]
            if fits * 2 <= nodes:
                facts.reduces.append("not a builtin function: not verified")
                continue
            facts.reduces.append(name)
            what = f"the value of {name} is not that of the rows below"
            found += ((position, what) for position in self._wrong.get((index, name), ()))
        return found


def _equal(one: object, other: object, digits: float) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal(one[k], other[k], digits) for k in one)
    if isinstance(one, int | float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=digits, abs_tol=digits)
    return one == other


def _stored_size(file: IndexFile, position: int) -> int:
    """The bytes of a chunk in the file, with the first bytes of the blocks that it crosses."""
    start = position + (position % BLOCK == 0)
    room = BLOCK - start % BLOCK
    prefix = file.disk.read(start, 9)
    raw = prefix[:room] + prefix[room + 1 :]
    size = 8 + (int.from_bytes(raw[:4], "big") & 0x7FFFFFFF)
    crossed = 0 if size <= room else 1 + (size - room - 1) // (BLOCK - 1)
    return start - position + size + crossed


def _shown(key: bytes) -> str:
    text = repr(key[:60])[1:]
    return text + "…" if len(key) > 60 else text

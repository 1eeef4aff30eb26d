"""Nodes: leaves of rows, inner nodes of pointers; and the reduction that each pointer carries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import pairwise
from operator import or_
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stagewright.impl.view_engine.file.errors import CorruptFileError
from stagewright.impl.view_engine.file.header import Root
from stagewright.impl.view_engine.file.index_file import IndexFile
from stagewright.impl.view_engine.file.masks import MASK_BYTES
from stagewright.impl.view_engine.tree.entries import read_view_key, read_view_value
from stagewright.impl.view_engine.tree.loops import find_pointers, summarise
from stagewright.impl.view_engine.tree.packed import Packed, PackedItemsError
from stagewright.impl.view_engine.tree.reduce_loop import reduce_between
from stagewright.impl.view_engine.tree.reducers import (
    BUILTIN,
    ReduceError,
    Reducer,
    ReduceRow,
    Totals,
)

Array = NDArray[Any]

INNER, LEAF = 0, 1  # the first byte of a node
LEAF_SIZE = 7168  # bytes of items, before compression, that a leaf should not exceed
INNER_SIZE = 6144
LARGEST_REDUCTION = 65535
_COUNT_BYTES = 5
_FIXED = _COUNT_BYTES + MASK_BYTES
_POINTER = 14  # bytes of position, size and length of the reduction
_new = tuple.__new__  # `Pointer(…)` takes twice as long


class Pointer(NamedTuple):
    """A subtree: its last key, where its top node lies, its bytes in the file, its reduction."""

    key: bytes
    position: int
    size: int
    reduction: bytes

    @property
    def values(self) -> int:
        """How many values the subtree has."""
        return int.from_bytes(self.reduction[:_COUNT_BYTES], "big")

    @property
    def mask(self) -> int:
        """The partitions that have rows in the subtree."""
        return int.from_bytes(self.reduction[_COUNT_BYTES:_FIXED], "big")

    @property
    def root(self) -> Root:
        return Root(self.position, self.size, self.reduction)


@dataclass(slots=True)  # one a node: not frozen, which would take longer to make
class Reduction:
    """A reduction in parts: values, partitions, and what each reduce function made of the values."""

    count: int
    mask: int
    values: tuple[bytes, ...] = ()

    def encode(self) -> bytes:
        """As it stands in a pointer; raises ReduceError where the values are too long."""
        return _encoded(self.count, self.mask.to_bytes(MASK_BYTES, "big"), self.values)

    @classmethod
    def decode(cls, data: bytes) -> Reduction:
        """The inverse; raises ValueError."""
        count = int.from_bytes(data[:_COUNT_BYTES], "big")
        mask = int.from_bytes(data[_COUNT_BYTES:_FIXED], "big")
        return cls(count, mask, _values_of(data))


def _encoded(count: int, mask: bytes, values: Sequence[bytes]) -> bytes:
    made = count.to_bytes(_COUNT_BYTES, "big") + mask
    for value in values:
        made += min(len(value), LARGEST_REDUCTION).to_bytes(2, "big") + value
    if len(made) > LARGEST_REDUCTION:
        raise ReduceError(
            "reduce", f"the reduction has {len(made)} bytes, more than 65535: it must shrink"
        )
    return made


def _values_of(data: bytes) -> tuple[bytes, ...]:
    """What each reduce function made of the values; raises ValueError."""
    if len(data) == _FIXED + 2 + int.from_bytes(data[_FIXED : _FIXED + 2], "big"):
        return (data[_FIXED + 2 :],)  # one function, as most views have
    values: list[bytes] = []
    at = _FIXED
    while at + 2 <= len(data):
        size = int.from_bytes(data[at : at + 2], "big")
        values.append(data[at + 2 : at + 2 + size])
        at += 2 + size
    if at != len(data):
        raise ValueError("a reduction is shorter than it says")
    return tuple(values)


@dataclass(frozen=True)
class Shape:
    """Which tree: the back index (raw keys) or a view (collated keys, values in lists, reduced)."""

    is_view: bool
    reducers: tuple[Reducer, ...] = ()

    @cached_property
    def totals_suffice(self) -> bool:
        """Whether the reduce functions need no rows: only how many values there are, and totals of numbers."""
        return self.is_view and all(reducer.name in BUILTIN for reducer in self.reducers)

    @cached_property
    def needs_numbers(self) -> bool:
        """Whether a reduce function asks for totals of numbers."""
        return any(reducer.name in ("_sum", "_stats") for reducer in self.reducers)

    def packed(self, data: bytes | Array, start: int = 0, *, items: Array | None = None) -> Packed:
        return Packed(data, collated=self.is_view, start=start, items=items)


BACK_INDEX = Shape(is_view=False)


class InnerNode:
    """The pointers of an inner node, their keys as they compare, and their reductions in parts."""

    def __init__(self, pointers: Sequence[Pointer], packed: Packed) -> None:
        self.pointers = pointers
        self._packed = packed

    @cached_property
    def sort_keys(self) -> tuple[Array, Array]:
        return self._packed.sort_keys

    @cached_property
    def keys(self) -> list[bytes]:
        """As they compare, one by one."""
        data, at = self.sort_keys
        raw = data.tobytes()
        return [raw[start:end] for start, end in pairwise(at.tolist())]

    @cached_property
    def reductions(self) -> list[Reduction]:
        """Of each child; raises ValueError for damage."""
        return [Reduction.decode(pointer.reduction) for pointer in self.pointers]


def read_node(file: IndexFile, shape: Shape, position: int) -> InnerNode | Packed:
    """The node at a position; raises CorruptFileError."""
    node = read_top(file, shape, position)
    return node if isinstance(node, InnerNode) else leaf_at(shape, node, 1, position)


def read_top(file: IndexFile, shape: Shape, position: int) -> InnerNode | bytes:
    """The same; of a leaf its bytes, whose items begin after the first and are not looked at yet."""
    kept = file.inner_nodes.get(position)
    if isinstance(kept, InnerNode):
        return kept
    data = file.read(position)
    return data if data[:1] == b"\1" else _inner(file, shape, position, data)


def read_nodes(
    file: IndexFile, pointers: Sequence[Pointer], shape: Shape
) -> list[InnerNode | bytes]:
    """The top nodes of several subtrees; of a leaf the bytes of its items, not looked at yet.

    Raises CorruptFileError.
    """
    kept = file.inner_nodes.get_all([pointer.position for pointer in pointers])
    missing = [(p.position, p.size) for p, node in zip(pointers, kept, strict=True) if node is None]
    payloads = iter(file.read_many(missing))
    found: list[InnerNode | bytes] = []
    for pointer, node in zip(pointers, kept, strict=True):
        if isinstance(node, InnerNode):
            found.append(node)
            continue
        data = next(payloads)
        leaf = data[:1] == b"\1"
        found.append(data[1:] if leaf else _inner(file, shape, pointer.position, data))
    return found


def read_subtrees(
    file: IndexFile, pointers: Sequence[Pointer], shape: Shape
) -> Iterator[InnerNode | Packed]:
    """The top nodes of several subtrees; raises CorruptFileError."""
    for pointer, node in zip(pointers, read_nodes(file, pointers, shape), strict=True):
        yield node if isinstance(node, InnerNode) else leaf_at(shape, node, 0, pointer.position)


def leaf_at(shape: Shape, data: bytes, start: int, position: int) -> Packed:
    """The rows of the leaf at a position, whose items begin at `start`; raises CorruptFileError."""
    packed = shape.packed(data, start)
    try:
        packed.items  # noqa: B018 - reads them, and raises
    except PackedItemsError as error:
        raise CorruptFileError(position, str(error)) from None
    return packed


def _inner(file: IndexFile, shape: Shape, position: int, data: bytes) -> InnerNode:
    if data[:1] != b"\0":
        kind = data[0] if data else -1
        raise CorruptFileError(position, f"a node starts with 0 or 1, not with {kind}")
    packed = leaf_at(shape, data, 1, position)
    try:
        node = InnerNode(_pointers(packed), packed)
    except ValueError as error:
        raise CorruptFileError(position, str(error)) from None
    file.inner_nodes.keep(position, node)
    return node


def _pointers(packed: Packed) -> list[Pointer]:
    """Those of an inner node; raises ValueError for damage."""
    columns = find_pointers(packed.data, packed.items, _FIXED)
    if len(columns) < len(packed):
        raise ValueError("a pointer is shorter than it says")
    data = packed.data.tobytes()
    return [
        _new(Pointer, (data[key:value], position, size, data[reduction:end]))
        for (key, value, end), (position, size, reduction) in zip(
            packed.items.tolist(), columns.tolist(), strict=True
        )
    ]


def pack_pointer(pointer: Pointer) -> bytes:
    """A pointer as an item of an inner node."""
    key, position, size, reduction = pointer
    length = len(reduction)
    value = (position << 64 | size << 16 | length).to_bytes(_POINTER, "big")
    return b"%b%b%b%b" % (
        (len(key) << 28 | _POINTER + length).to_bytes(5, "big"), key, value, reduction,
    )  # fmt: skip


def packed_size(pointer: Pointer) -> int:
    """How many bytes `pack_pointer` gives."""
    return 5 + len(pointer.key) + _POINTER + len(pointer.reduction)


def write_leaves(file: IndexFile, shape: Shape, rows: Packed, ends: Array) -> list[Pointer]:
    """Append the leaves that end before the items `ends`; gives their pointers."""
    if not len(ends):
        return []
    reductions = leaf_reductions(shape, rows, ends)
    data = rows.data.data
    last = rows.items[ends - 1].tolist()
    starts = [int(rows.items[0, 0]) - 5, *[end for _, _, end in last]]
    payloads = [b"\1" + data[start:end] for start, (_, _, end) in zip(starts, last, strict=False)]
    places = file.append_many(payloads)
    return [
        _new(Pointer, (bytes(data[key:value]), position, size, reduction))
        for (key, value, _), (position, size), reduction in zip(
            last, places, reductions, strict=True
        )
    ]


def write_inner(file: IndexFile, shape: Shape, pointers: Sequence[Pointer]) -> Pointer:
    """Append one inner node with these children."""
    body = b"".join(pack_pointer(pointer) for pointer in pointers)
    reduction = rereduced(shape, pointers)
    position, size = file.append(b"\0" + body)
    total = size + sum(pointer.size for pointer in pointers)
    return Pointer(pointers[-1].key, position, total, reduction)


def rereduced(shape: Shape, pointers: Sequence[Pointer]) -> bytes:
    """The reduction of several subtrees together."""
    parts = [pointer.reduction for pointer in pointers]
    counts = (int.from_bytes(part[:_COUNT_BYTES], "big") for part in parts)
    masks = np.frombuffer(b"".join([part[_COUNT_BYTES:_FIXED] for part in parts]), np.uint8)
    mask: bytes = np.bitwise_or.reduce(masks.reshape(len(parts), MASK_BYTES), axis=0).tobytes()
    values: tuple[bytes, ...] = ()
    if shape.reducers:
        of_children = [_values_of(part) for part in parts]
        values = tuple(
            reducer.rereduce([of_child[i] for of_child in of_children])
            for i, reducer in enumerate(shape.reducers)
        )
    return _encoded(sum(counts), mask, values)


def joined(shape: Shape, parts: Sequence[Reduction]) -> Reduction:
    """Several reductions as one; of none it is that of no rows, without values."""
    if not parts:
        return Reduction(0, 0)
    columns = zip(*[part.values for part in parts], strict=True)
    reducers = zip(shape.reducers, columns, strict=True)
    values = tuple([reducer.rereduce(of_parts) for reducer, of_parts in reducers])
    mask = reduce(or_, [part.mask for part in parts])
    return Reduction(sum([part.count for part in parts]), mask, values)


def leaf_reductions(shape: Shape, rows: Packed, ends: Array) -> list[bytes]:
    """The reduction of each leaf of packed rows that ends before an item of `ends`."""
    return [_encoded(*part) for part in _reduced(shape, rows, ends)]


def reductions_of(shape: Shape, rows: Packed, ends: Array) -> list[Reduction]:
    """As `leaf_reductions`, in parts."""
    return [_in_parts(*part) for part in _reduced(shape, rows, ends)]


def _in_parts(count: int, mask: bytes, values: tuple[bytes, ...]) -> Reduction:
    return Reduction(count, int.from_bytes(mask, "big"), values)


def _reduced(
    shape: Shape, rows: Packed, ends: Array, first: int = 0
) -> Iterator[tuple[int, bytes, tuple[bytes, ...]]]:
    """Count, mask and values of each leaf; the first starts with the row `first`."""
    numbers = shape.needs_numbers
    found = summarise(rows.data, rows.items, first, ends, shape.is_view, numbers)
    masks = found[1].tobytes()
    columns = (found[0].tolist(), found[2].tolist(), found[3].tolist(), ends.tolist())
    for i, (count, totals, odd, end) in enumerate(zip(*columns, strict=True)):
        mask = masks[i * MASK_BYTES : (i + 1) * MASK_BYTES]
        values: tuple[bytes, ...] = ()
        if shape.reducers:
            leaf = _LeafOf(count, rows, first, end, totals if numbers and odd < 0 else None)
            values = tuple([reducer.reduce(leaf) for reducer in shape.reducers])
        yield count, mask, values
        first = end


def reduction_of(shape: Shape, rows: Packed, first: int, last: int) -> Reduction:
    """Of the rows from `first` to before `last` together; they must not be none."""
    [part] = _reduced(shape, rows, np.array([last], np.int64), first)
    return _in_parts(*part)


def reduction_between(
    shape: Shape, leaf: bytes, start: int, low: bytes | None, high: bytes | None
) -> Reduction | None:
    """Of the rows of a leaf from one sort key to before the other; None where Python has to look at them.

    Only of reduce functions that need no rows; the items of the leaf begin at `start`.
    """
    if not shape.totals_suffice:
        return None
    data = np.frombuffer(leaf, np.uint8)
    first, last = np.frombuffer(low or b"", np.uint8), np.frombuffer(high or b"", np.uint8)
    settled, count, totals, mask = reduce_between(data, start, first, last, shape.needs_numbers)
    if not settled:
        return None
    leaf_rows = _LeafOf(count, shape.packed(data, start), 0, 0, totals.tolist())
    values = tuple([reducer.reduce(leaf_rows) for reducer in shape.reducers]) if count else ()
    return Reduction(count, int.from_bytes(mask.tobytes(), "big"), values)


class _LeafOf:
    """The rows `first` … `last` of packed ones, for reduce functions; `count` values."""

    __slots__ = ("_first", "_last", "_packed", "_totals", "count")

    def __init__(
        self, count: int, packed: Packed, first: int, last: int, totals: Sequence[float] | None
    ) -> None:
        self.count = count
        self._packed = packed
        self._first, self._last = first, last
        self._totals = totals  # None where they have to be computed, or there are none

    def totals(self) -> Totals:
        if self._totals is not None:
            return Totals(*self._totals)
        numbers: list[float] = []
        for row in self.rows():
            try:
                number = float(row.value) if row.value[:1] in b"-0123456789" else None
            except ValueError:
                number = None
            if number is None or not row.value:
                raise ReduceError(
                    "_sum", "a value is not a number", row.key.decode("utf-8", "replace")
                )
            numbers.append(number)
        return Totals(sum(numbers), min(numbers), max(numbers), sum(x * x for x in numbers))

    def rows(self) -> list[ReduceRow]:
        found: list[ReduceRow] = []
        data = self._packed.data.tobytes()
        for key_at, value_at, end in self._packed.items[self._first : self._last].tolist():
            key, doc_id = read_view_key(data[key_at:value_at])
            _, values = read_view_value(data[value_at:end])
            found += (ReduceRow(key, doc_id, value) for value in values)
        return found

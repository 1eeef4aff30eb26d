"""Trees say what a dictionary would: rows, ranges, reductions and masks, after any batches and purges."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings, strategies as st
from tests.impl.view_engine.recording_disk import MemoryDisk
from tests.impl.view_engine.rows import SUMMED, document_rows, empty_header

from stagewright.impl.view_engine.file.collation import sort_bytes
from stagewright.impl.view_engine.file.index_file import IndexFile
from stagewright.impl.view_engine.file.masks import mask_of
from stagewright.impl.view_engine.tree.apply import Work, apply, purge
from stagewright.impl.view_engine.tree.build import build
from stagewright.impl.view_engine.tree.check import check_file
from stagewright.impl.view_engine.tree.entries import (
    back_key,
    back_value,
    read_view_row,
    view_key,
    view_value,
)
from stagewright.impl.view_engine.tree.nodes import BACK_INDEX, Pointer, Reduction, Shape
from stagewright.impl.view_engine.tree.packed import Operations, Packed
from stagewright.impl.view_engine.tree.read import (
    EVERY_PARTITION,
    Range,
    find,
    leaves,
    reduce_range,
    wanted_rows,
)
from stagewright.impl.view_engine.tree.reducers import BUILTIN, ReduceError

ALL = Shape(is_view=True, reducers=tuple(BUILTIN.values()))
PARTITIONS = 6
WHOLE = Range()
Model = dict[int, tuple[int, list[int], int]]  # document: key, values, padding of the key


@dataclass(frozen=True)
class Batch:
    """Documents that are written (with their key, values, padding), and some that are removed."""

    written: Model
    removed: frozenset[int]


MODELS = st.dictionaries(
    st.integers(0, 300),
    st.tuples(
        st.integers(-50, 50),
        st.lists(st.integers(-999, 999), min_size=1, max_size=3),
        st.sampled_from([0, 60, 900]),
    ),
    max_size=60,
)
BATCHES = st.lists(
    st.builds(Batch, MODELS, st.frozensets(st.integers(0, 300), max_size=40)), max_size=4
)


def partition_of(document: int) -> int:
    return document % PARTITIONS


def row_key(document: int, model: Model) -> bytes:
    key, _, padding = model[document]
    return view_key(
        json.dumps([key, "x" * padding], separators=(",", ":")).encode(), b"doc%d" % document
    )


def row_of(document: int, model: Model) -> tuple[bytes, bytes]:
    values = [b"%d" % value for value in model[document][1]]
    return row_key(document, model), view_value(partition_of(document), values)


def sort_key(key: bytes) -> bytes:
    end = 2 + int.from_bytes(key[:2], "big")
    return sort_bytes(key[2:end]) + key[end:]


def in_order(model: Model) -> list[tuple[bytes, bytes]]:
    return sorted((row_of(d, model) for d in model), key=lambda row: sort_key(row[0]))


def rows_of(
    file: IndexFile, root: Pointer | None, range_: Range = WHOLE
) -> list[tuple[bytes, bytes]]:
    return [row for leaf in leaves(file, ALL, root, range_) for row in leaf.rows()]


def reduced(model: Model, rows: list[tuple[bytes, bytes]]) -> Reduction | None:
    """What map/reduce over the rows says, without any tree."""
    found = [read_view_row(key, value) for key, value in rows]
    numbers = [int(value) for row in found for value in row.values]
    if not numbers:
        return None
    stats = {
        "sum": sum(numbers),
        "count": len(numbers),
        "min": min(numbers),
        "max": max(numbers),
        "sumsqr": sum(n * n for n in numbers),
    }
    values = (
        b"%d" % len(numbers),
        b"%d" % sum(numbers),
        json.dumps(stats, separators=(",", ":")).encode(),
    )
    return Reduction(len(numbers), mask_of(row.partition for row in found), values)


def commit(file: IndexFile, root: Pointer | None, model: Model) -> None:
    """With a back index, so that everything can be verified."""
    ids = [
        (
            back_key(partition_of(d), b"doc%d" % d),
            back_value(partition_of(d), {0: [read_view_row(*row_of(d, model)).key]}),
        )
        for d in model
    ]
    back = build(file, BACK_INDEX, [Packed.of(ids, collated=False).sorted()])
    header = empty_header(PARTITIONS)
    file.commit(
        replace(
            header, id_root=back.root if back else None, view_roots=(root.root if root else None,)
        )
    )


@settings(max_examples=25)
@given(MODELS, BATCHES, st.sets(st.integers(0, PARTITIONS - 1)), st.randoms(use_true_random=False))
def test_tree_is_a_sorted_dictionary_after_any_batches(
    first: Model, batches: list[Batch], gone: set[int], chosen: random.Random
) -> None:
    disk = MemoryDisk()
    file = IndexFile(disk)
    model = dict(first)
    root = build(file, ALL, [Packed.of([row_of(d, model) for d in model], collated=True).sorted()])
    for batch in batches:
        old = [row_key(d, model) for d in (batch.removed | batch.written.keys()) & model.keys()]
        for d in batch.removed:
            model.pop(d, None)
        model |= batch.written
        new = [row_of(d, model) for d in batch.written]
        root = apply(file, ALL, root, Operations.of(new, old, collated=True))
    root = purge(file, ALL, root, mask_of(gone))
    model = {d: v for d, v in model.items() if partition_of(d) not in gone}
    expected = in_order(model)
    assert rows_of(file, root) == expected
    commit(file, root, model)
    assert check_file(disk).problems == []
    bounds = sorted(chosen.sample([b"\x07", b"\x08", *(sort_key(key) for key, _ in expected)], 2))
    wanted = mask_of(chosen.sample(range(PARTITIONS), chosen.randrange(PARTITIONS)))
    inside = [row for row in expected if bounds[0] <= sort_key(row[0]) < bounds[1]]
    range_ = Range(*bounds)
    assert rows_of(file, root, range_) == inside
    assert reduce_range(file, ALL, root) == reduced(model, expected)
    chosen_rows = [row for row in inside if wanted >> read_view_row(*row).partition & 1]
    assert reduce_range(file, ALL, root, range_, wanted=wanted) == reduced(model, chosen_rows)
    back = [
        r for leaf in leaves(file, ALL, root, descending=True) for r in reversed([*leaf.rows()])
    ]
    assert back == expected[::-1]


@pytest.fixture(scope="module")
def large() -> tuple[IndexFile, Pointer, list[tuple[bytes, bytes]]]:
    """8,000 rows in 64 partitions, in a tree of three levels."""
    _, rows = document_rows(8000)
    file = IndexFile(MemoryDisk())
    root = build(file, SUMMED, [Packed.of(rows, collated=True).sorted()])
    assert root is not None
    return file, root, sorted(rows, key=lambda row: row[0][2:])


def test_rows_are_built_from_batches_as_from_one(
    large: tuple[IndexFile, Pointer, list[tuple[bytes, bytes]]],
) -> None:
    _, root, rows = large
    file = IndexFile(MemoryDisk())
    parts = (Packed.of(rows[i : i + 333], collated=True) for i in range(0, len(rows), 333))
    assert build(file, SUMMED, parts) == root


def test_single_keys_are_found_in_one_descent(
    large: tuple[IndexFile, Pointer, list[tuple[bytes, bytes]]],
) -> None:
    file, root, rows = large
    wanted = [*rows[5::400], (view_key(b'"none"', b"d"), b"")]
    keys = Packed.of([(key, b"") for key, _ in wanted], collated=True).sorted()
    assert list(find(file, SUMMED, root, keys)) == wanted[:-1]


def test_a_batch_leaves_untouched_subtrees_where_they_are(
    large: tuple[IndexFile, Pointer, list[tuple[bytes, bytes]]],
) -> None:
    file, root, rows = large
    work = Work()
    operations = Operations.of([(rows[7][0], view_value(1, [b"5"]))], collated=True)
    changed = apply(file, SUMMED, root, operations, work=work)
    assert changed is not None
    assert changed.values == root.values
    assert (work.nodes_read, work.nodes_written) == (3, 3)
    same = apply(file, SUMMED, root, Operations.of([rows[7]], [b"\0\x01\x31gone"], collated=True))
    assert same == root


def test_purge_reads_only_nodes_with_rows_to_remove_and_some_to_keep() -> None:
    ids, _ = document_rows(6000)
    file = IndexFile(MemoryDisk())
    root = build(file, BACK_INDEX, [Packed.of(ids, collated=False).sorted()])
    assert root is not None
    work = Work()
    left = purge(file, BACK_INDEX, root, mask_of(range(16, 32)), work=work)
    assert left is not None
    assert left.values == sum(1 for key, _ in ids if not 16 <= key[1] < 32)
    assert left.values + work.values_purged == 6000
    assert left.mask == mask_of([*range(16), *range(32, 64)])
    assert work.nodes_read <= 7  # two leaves at the edges of the range, and what is above them
    assert purge(file, BACK_INDEX, left, mask_of([20])) == left
    assert purge(file, BACK_INDEX, left, EVERY_PARTITION) is None


def test_purge_that_is_stopped_is_taken_up_again(
    large: tuple[IndexFile, Pointer, list[tuple[bytes, bytes]]],
) -> None:
    file, root, rows = large
    gone = mask_of([3, 9])
    left: Pointer | None = root
    rounds = 0
    while left is not None and left.mask & gone:
        left = purge(file, SUMMED, left, gone, enough=lambda work: work.nodes_written >= 5)
        rounds += 1
    assert rounds > 3
    assert left is not None
    kept = [row for row in rows if read_view_row(*row).partition not in (3, 9)]
    assert rows_of(file, left) == kept
    assert reduce_range(file, SUMMED, left) == reduce_range(
        file, SUMMED, root, wanted=EVERY_PARTITION & ~gone
    )


def test_reductions_of_whole_subtrees_are_used(
    large: tuple[IndexFile, Pointer, list[tuple[bytes, bytes]]],
) -> None:
    file, root, rows = large
    read: list[int] = []
    range_ = Range(sort_key(rows[100][0]), sort_key(rows[3900][0]))
    found = reduce_range(file, SUMMED, root, range_, visited=read.append)
    assert found is not None
    assert found.values == (b"%d" % sum(int(value[5:]) for _, value in rows[100:3900]),)
    assert len(read) <= 5  # the root and the two edges


def test_rows_of_other_partitions_are_left_out(
    large: tuple[IndexFile, Pointer, list[tuple[bytes, bytes]]],
) -> None:
    file, root, rows = large
    wanted = mask_of([1, 2, 3])
    found = [
        row
        for leaf in leaves(file, SUMMED, root, wanted=wanted)
        for row in wanted_rows(leaf, SUMMED, wanted).rows()
    ]
    assert found == [row for row in rows if read_view_row(*row).partition in (1, 2, 3)]


def test_value_that_is_no_number_is_named_by_its_key() -> None:
    row = (view_key(b'"blue"', b"doc"), view_value(0, [b'"red"']))
    with pytest.raises(ReduceError, match=r'_sum: a value is not a number \(key "blue"\)'):
        build(IndexFile(MemoryDisk()), SUMMED, [Packed.of([row], collated=True)])


def test_numbers_that_need_all_digits_are_summed_as_python_sums_them() -> None:
    numbers = [b"0.1", b"1e300", b"-1e300", b"12345678901234567890", b"4.9e-324", b"-0"]
    rows = [(view_key(b"%d" % i, b"d"), view_value(0, [n])) for i, n in enumerate(numbers)]
    root = build(IndexFile(MemoryDisk()), SUMMED, [Packed.of(rows, collated=True)])
    assert root is not None
    assert Reduction.decode(root.reduction).values == (b"1.2345678901234567e+19",)
    assert sum(map(float, numbers)) == 1.2345678901234567e19

"""A builder finds in files what a tablet finds in its store, and sifts and writes what a tablet would."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

pytest.importorskip("msgspec")
pytest.importorskip("rocksdict")

from stagewright.impl.indexes.bulk.columns import EntryColumns, keys_of_entries
from stagewright.impl.indexes.bulk.compiled_sieve import CompiledSieve
from stagewright.impl.indexes.bulk.doing import Builder
from stagewright.impl.indexes.bulk.numbers import Entries, Numbers, entries_of, keys_of
from stagewright.impl.indexes.bulk.pace import FULL, Pace
from stagewright.impl.indexes.bulk.sieve import Sieve
from stagewright.impl.indexes.bulk.sorting import in_order
from stagewright.impl.indexes.bulk.work import (
    DoneWork,
    DropSieve,
    GetReady,
    RefusedWork,
    RemoveFiles,
    ScannedRows,
    ScanRows,
    SiftedValues,
    SiftValues,
    WriteEntries,
)
from stagewright.impl.indexes.processes.admission import LARGEST
from stagewright.impl.indexes.schema import IndexInfo, index_tablet, row_key
from stagewright.impl.storage.port import Put, Version
from stagewright.impl.storage.rocks import RocksRows
from stagewright.machines.yugabytedb.indexes.index_states import Permission

small = st.integers(-3, 9)
values = small | st.integers(-LARGEST // 16, LARGEST // 16)
AT = Permission.do_backfill
INDEXES = (
    IndexInfo(3, "i", "v", False, AT),
    IndexInfo(4, "u", "class", True, AT),
    IndexInfo(5, "j", "v", True, AT),
)


@pytest.fixture(scope="module")
def directories(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("stores")
    return (root / str(n) for n in range(1_000_000))


@given(
    rows=st.dictionaries(
        st.tuples(small, st.integers(1, 4)),
        st.none() | st.dictionaries(st.sampled_from(["v", "class"]), values),
    ),
    tablets=st.integers(1, 4),
    at=st.integers(0, 5),
    most=st.integers(1, 20),
    share=st.sampled_from([FULL, 50]),
    is_beside=st.booleans(),
)
def test_entries_of_files_are_those_of_pages(
    directories: Iterator[Path],
    rows: dict[tuple[int, int], dict[str, int] | None],
    tablets: int,
    at: int,
    most: int,
    share: int,
    is_beside: bool,
) -> None:
    path = next(directories)
    store, builder, pace = RocksRows(path), Builder(), Pace(share)
    store.write(
        Put("rows", Version(row_key(key), time, None if v is None else json.dumps(v).encode()))
        for (key, time), v in rows.items()
    )
    store.spill()
    low: bytes | None = b""
    while low is not None:
        page, expected = store.page("rows", low, at, most), EntryColumns(tablets)
        expected.add(keys_of(page.keys), page.values, INDEXES)
        wanted = tuple((i.number, i.unique, i.column) for i in INDEXES)
        beside = store.beside() if is_beside else ""
        work = ScanRows(store.files(), "rows", low, at, most, tablets, wanted, beside)
        found = builder.do(work, pace)
        assert isinstance(found, ScannedRows)
        assert (found.rows, found.following) == (len(page.values), page.following)
        here = {(index_tablet(e.index, t), e.index): e for t, e in found.entries}
        there = {(place, e.index): e for place, e in expected.entries()}
        assert here.keys() == there.keys()
        for place, entries in here.items():
            assert entries.unique is there[place].unique
            sorted_values, sorted_rows = _sorted(*there[place].columns())
            assert bool(entries.file) is is_beside
            assert entries.held() == entries_of(
                entries.index, entries.unique, sorted_values, sorted_rows
            )
        builder.do(RemoveFiles(tuple(e.file for e in here.values() if e.file)))
        assert not [*path.glob("*.load*")]
        low = page.following
    store.close()


def _sorted(values: Numbers, rows: Numbers) -> tuple[Numbers, Numbers]:
    order = np.argsort(values, kind="stable")
    return values[order], rows[order]


@given(pairs=st.lists(st.tuples(values | st.integers(-(2**63), 2**63 - 1), values), min_size=1))
def test_numbers_are_sorted_as_numpy_sorts_them(pairs: list[tuple[int, int]]) -> None:
    columns = np.array(pairs, np.int64).T.copy()
    for found, expected in zip(in_order(*columns), _sorted(*columns), strict=True):
        assert found.tolist() == expected.tolist()


@given(batches=st.lists(st.lists(values), max_size=4), others=st.lists(values, max_size=20))
def test_a_compiled_sieve_holds_what_the_other_one_holds(
    batches: list[list[int]], others: list[int]
) -> None:
    compiled, plain = CompiledSieve(), Sieve()
    for batch in batches:
        asked = np.array([*batch, *others], np.int64)
        assert compiled.holds(asked).tolist() == plain.holds(asked).tolist()
        compiled.add(np.array(batch, np.int64))
        plain.add(np.array(batch, np.int64))
        assert compiled.holds(asked).tolist() == plain.holds(asked).tolist()


def test_a_builder_gets_ready() -> None:
    assert Builder().do(GetReady()) == DoneWork()


def test_values_are_sifted_until_a_sieve_is_dropped() -> None:
    def bytes_of(*numbers: int) -> bytes:
        return np.array(numbers, np.int64).tobytes()

    def valued(*numbers: int) -> Entries:
        return Entries(0, True, bytes_of(*numbers), bytes_of(*numbers))

    builder = Builder()
    assert isinstance(builder.do(SiftValues("a", False, b"", valued(1))), RefusedWork)
    assert builder.do(SiftValues("a", True, bytes_of(7), valued(1, 7, 2))) == SiftedValues((1,))
    assert builder.do(SiftValues("a", False, bytes_of(3), valued(3, 4, 2))) == SiftedValues((0, 2))
    assert builder.do(SiftValues("b", True, b"", valued(3))) == SiftedValues(())
    assert builder.do(DropSieve("a")) == DoneWork()
    assert isinstance(builder.do(SiftValues("a", False, b"", valued(1))), RefusedWork)


def test_a_file_is_written_anew_and_taken_in(tmp_path: Path) -> None:
    """What a builder left that died does no harm."""
    store, builder = RocksRows(tmp_path / "rows"), Builder()
    load = store.load("rows", 9)
    Path(load.path).write_bytes(b"the beginning of something")
    values, rows = np.arange(3), np.array([7, -8, 9])
    work = WriteEntries(load.path, "rows", 9, entries_of(0, False, values, rows))
    assert builder.do(work) == DoneWork()
    load.finish()
    snapshot = store.snapshot()
    found = [(v.key, v.time, v.value) for v in snapshot.versions("rows", b"", None)]
    snapshot.close()
    keys = keys_of_entries(False, values, rows)
    assert found == [(k, 9, b"%d" % r) for k, r in zip(keys, rows.tolist(), strict=True)]
    store.close()


def test_what_cannot_be_done_is_refused(tmp_path: Path) -> None:
    builder = Builder()
    gone = builder.do(ScanRows((str(tmp_path / "x.sst"),), "rows", b"", 1, 1, 1, ()))
    assert isinstance(gone, RefusedWork)
    assert gone.again
    (tmp_path / "x.sst").write_bytes(bytes(100))
    for low in (b"", b"123456789"):
        refused = builder.do(ScanRows((str(tmp_path / "x.sst"),), "rows", low, 1, 1, 1, ()))
        assert isinstance(refused, RefusedWork)
        assert not refused.again
    two = np.array([2, 1], np.int64)
    path = tmp_path / "y.load"
    wrong = WriteEntries(str(path), "rows", 1, entries_of(0, True, two, two))
    assert isinstance(builder.do(wrong), RefusedWork)
    assert not path.exists()

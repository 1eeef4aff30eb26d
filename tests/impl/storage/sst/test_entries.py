"""A file of entries that loops write is one that RocksDB takes in and reads back, also after it has rewritten it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, settings, strategies as st

from stagewright.compiled import interpreted
from stagewright.impl.indexes.schema import entry_key
from stagewright.impl.storage.port import Put, Version
from stagewright.impl.storage.rocks import RocksRows
from stagewright.impl.storage.sst.entries import entries_file

numbers = st.integers(-(2**63), 2**63 - 1) | st.integers(-300, 300)
pairs = st.lists(st.tuples(numbers, numbers), min_size=1, max_size=60, unique=True)


def _file(
    pairs: list[tuple[int, int]],
    time: int,
    unique: bool,
    part: int = 0,
    rest: Callable[[], None] = lambda: None,
) -> bytes | None:
    values = np.array([value for value, _ in pairs], np.int64)
    rows = np.array([row for _, row in pairs], np.int64)
    found = entries_file("rows", time, unique, values, rows, part, rest)
    return None if found is None else bytes(found)


def _all(store: RocksRows) -> list[tuple[bytes, int, bytes | None]]:
    snapshot = store.snapshot()
    found = [(v.key, v.time, v.value) for v in snapshot.versions("rows", b"", None)]
    snapshot.close()
    return found


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pairs=pairs, unique=st.booleans(), copies=st.integers(1, 40), compiles=st.booleans())
def test_entries_are_read_back(
    tmp_path: Path,
    pairs: list[tuple[int, int]],
    unique: bool,
    copies: int,
    compiles: bool,
) -> None:
    step = 2**57 if copies > 1 else 0
    many = {(v // 128 + n * step, r) for v, r in pairs for n in range(copies)} if step else {*pairs}
    entries = sorted(dict(many).items() if unique else many)
    with interpreted(not compiles and len(entries) < 200):
        file = _file(entries, 77, unique)
    assert file is not None
    directory = tmp_path / str(len([*tmp_path.iterdir()]))
    store = RocksRows(directory)
    key = entry_key(unique, *entries[0])
    store.write(
        [Put("rows", Version(key, 78, b"later")), Put("rows", Version(key, 76, b"earlier"))]
    )
    load = store.load("rows", 77)
    Path(load.path).write_bytes(file)
    load.finish()
    expected = [(entry_key(unique, v, r), 77, b"%d" % r) for v, r in entries]
    expected = [(key, 78, b"later"), expected[0], (key, 76, b"earlier"), *expected[1:]]
    assert _all(store) == expected
    store._db.compact_range(None, None)
    assert _all(store) == expected
    store.close()
    again = RocksRows(directory)
    assert _all(again) == expected
    again.close()


@given(pairs=pairs.filter(lambda p: len(p) > 1), unique=st.booleans())
def test_entries_that_are_not_in_order_are_refused(
    pairs: list[tuple[int, int]], unique: bool
) -> None:
    ordered = sorted(pairs)
    is_in_order = pairs == ordered and (not unique or len({v for v, _ in pairs}) == len(pairs))
    assert (_file(pairs, 7, unique) is not None) is is_in_order
    assert _file([*ordered, ordered[0]], 7, unique) is None


def test_a_file_that_is_written_in_parts_is_the_same() -> None:
    """Each part ends with a block; whoever writes rests after it."""
    entries, rests = [(value, -value) for value in range(-1_000, 2_000)], list[int]()
    whole = _file(entries, 7, False)
    assert whole is not None
    for part, fewest in ((700, 3), (1, 20)):
        assert _file(entries, 7, False, part, partial(rests.append, part)) == whole
        assert rests.count(part) > fewest
    entries[2_000:] = entries[1_999:-1]  # one comes again, in a later part
    assert _file(entries, 7, False, 1) is None

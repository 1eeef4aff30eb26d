"""Rows that loops read from files are those that RocksDB shows, whatever is in the files, whole or cut into windows."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from stagewright.compiled import interpreted
from stagewright.impl.indexes.bulk.numbers import keys_of
from stagewright.impl.indexes.schema import row_key
from stagewright.impl.storage.port import Put, Version
from stagewright.impl.storage.rocks import RocksRows
from stagewright.impl.storage.sst.files import SstFile, UnreadableError
from stagewright.impl.storage.sst.rows import rows_of
from stagewright.impl.storage.sst.windows import FIRST, LATEST, Sources

FILLER = {f"filler{n}": 10**17 + n for n in range(30)}  # a block has some rows
NAMES = ("v", 'a "name", with \\ and é')
keys = st.integers(-3, 12) | st.sampled_from([-(2**63), 2**63 - 1, 255 << 16])
times = st.integers(1, 6)
numbers = st.integers(-(10**17), 10**17) | st.integers(-9, 9)
contents = st.none() | st.dictionaries(st.sampled_from(NAMES), numbers)


@dataclass(frozen=True)
class Wrote:
    """Versions in one batch."""

    versions: dict[tuple[int, int], dict[str, int] | None]


@dataclass(frozen=True)
class Forgot:
    """What no read at or after a time sees."""

    before: int


@dataclass(frozen=True)
class Dropped:
    """All versions of some keys."""

    low: int
    high: int


steps = st.lists(
    st.builds(Wrote, st.dictionaries(st.tuples(keys, times), contents, max_size=12))
    | st.builds(Forgot, times)
    | st.builds(Dropped, st.integers(-3, 12), st.integers(-3, 12))
    | st.sampled_from(["spill", "compact"]),
    max_size=9,
)


@pytest.fixture(scope="module")
def directories() -> Iterator[Iterator[Path]]:
    with tempfile.TemporaryDirectory() as root:
        yield (Path(root) / str(n) for n in range(1_000_000))


def _filled(store: RocksRows, done: list[Wrote | Forgot | Dropped | str]) -> None:
    for step in done:
        match step:
            case Wrote(versions):
                store.write(
                    Put("rows", Version(row_key(key), time, _stored(values)))
                    for (key, time), values in versions.items()
                )
                others = ("intents", "meta", "row", "rowss", "zones")
                store.write(Put(name, Version(b"key of another kind", 3, b"1")) for name in others)
            case Forgot(before):
                store.forget("rows", before)
            case Dropped(low, high):
                store.drop("rows", row_key(low), row_key(high))
            case "compact":
                store._db.compact_range(None, None)
            case _:
                store.spill()
    store.spill()


def _stored(values: dict[str, int] | None) -> bytes | None:
    return None if values is None else json.dumps({**FILLER, **values}).encode()


@given(
    done=steps,
    at=st.integers(0, 7),
    low=st.none() | keys,
    most=st.integers(1, 9),
    room=st.sampled_from([1, 5_000, 1 << 20]),
    compiles=st.sampled_from([True, True, False]),
)
def test_rows_of_files_are_those_of_the_store(
    directories: Iterator[Path],
    done: list[Wrote | Forgot | Dropped | str],
    at: int,
    low: int | None,
    most: int,
    room: int,
    compiles: bool,
) -> None:
    store = RocksRows(next(directories))
    _filled(store, done)
    sources = Sources([SstFile.opened(path) for path in store.files()], "rows", room)
    place = FIRST if low is None else (low, LATEST)
    start = b"" if low is None else row_key(low)
    names = tuple(json.dumps(name).encode() for name in NAMES)
    while True:
        page = store.page("rows", start, at, most)
        with interpreted(not compiles):
            found = rows_of(sources, place, at, most, names)
        assert found.keys.tolist() == keys_of(page.keys).tolist()
        columns = [
            [v if there else None for v, there in zip(values, is_there, strict=True)]
            for values, is_there in zip(found.values.tolist(), found.there.tolist(), strict=True)
        ]
        rows = [json.loads(stored) for stored in page.values]
        assert columns == [[row.get(name) for row in rows] for name in NAMES]
        if page.following is None:
            assert found.following is None
            break
        assert found.following is not None
        assert row_key(found.following) == page.following
        start, place = page.following, (found.following, LATEST)
    store.close()


def _store(path: Path, rows: int) -> RocksRows:
    store = RocksRows(path)
    stored = json.dumps(FILLER).encode()
    store.write(Put("rows", Version(row_key(k), 1, stored)) for k in range(rows))
    store.spill()
    return store


def _read(path: str) -> list[int]:
    found: list[int] = rows_of(
        Sources([SstFile.opened(path)], "rows"), FIRST, 5, 100, ()
    ).keys.tolist()
    return found


def test_a_file_that_is_damaged_anywhere_is_not_read(tmp_path: Path) -> None:
    """A bit of it is wrong: it is refused, or was none that rows are in."""
    store = _store(tmp_path / "rows", 40)
    (path,) = store.files()
    whole = Path(path).read_bytes()
    assert _read(path) == list(range(40))
    refused = 0
    for at in range(0, len(whole), 7):
        copy = tmp_path / f"{at}.sst"
        copy.write_bytes(whole[:at] + bytes([whole[at] ^ 16]) + whole[at + 1 :])
        try:
            assert _read(str(copy)) == list(range(40))
        except UnreadableError:
            refused += 1
    assert refused > len(whole) // 7 // 2
    store.close()


def test_a_file_that_is_cut_off_is_not_read(tmp_path: Path) -> None:
    store = _store(tmp_path / "rows", 40)
    (path,) = store.files()
    whole = Path(path).read_bytes()
    for size in (0, 10, 60, len(whole) // 2, len(whole) - 1):
        (tmp_path / "cut").write_bytes(whole[:size])
        with pytest.raises(UnreadableError):
            _read(str(tmp_path / "cut"))
    store.close()


@pytest.mark.parametrize(
    "stored",
    [
        b'{"v": 1.5}',
        b'{"v": "x"}',
        b'{"v": [1]}',
        b"[1]",
        b"",
        b'{"v": 1',
        b'{"v": 12345678901234567890}',
    ],
)
def test_what_is_no_object_of_numbers_is_left_to_others(tmp_path: Path, stored: bytes) -> None:
    store = RocksRows(tmp_path / "rows")
    store.write([Put("rows", Version(row_key(1), 1, stored))])
    store.spill()
    sources = Sources([SstFile.opened(path) for path in store.files()], "rows")
    with pytest.raises(UnreadableError):
        rows_of(sources, FIRST, 5, 100, (b'"v"',))
    store.close()


def test_keys_of_another_width_are_left_to_others(tmp_path: Path) -> None:
    store = RocksRows(tmp_path / "rows")
    store.write([Put("rows", Version(b"seven b", 1, b"{}"))])
    store.spill()
    sources = Sources([SstFile.opened(path) for path in store.files()], "rows")
    with pytest.raises(UnreadableError):
        rows_of(sources, FIRST, 5, 100, ())
    store.close()

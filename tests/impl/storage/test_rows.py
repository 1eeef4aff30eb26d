"""Every row store answers as a dictionary of versions would, also after crashes."""

from __future__ import annotations

import importlib.util
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from stagewright.impl.storage.memory import MemoryRows, ModelledDisk
from stagewright.impl.storage.port import LAST_TIME, Put, RowStore, Snapshot, Version, live
from stagewright.impl.storage.rocks import RocksRows

NO_ROCKS = "no rocksdict: pip install 'stagewright[cluster]'"
has_rocks = importlib.util.find_spec("rocksdict") is not None
keys = st.sampled_from(
    [b"", b"\0", b"\0\0", b"\0\xff", b"a", b"a\0", b"a\0b", b"ab", b"b", b"\xff", b"\xff\xff"]
)
families = st.sampled_from(["t", "t1", "u"])
times = st.integers(0, 6) | st.just(LAST_TIME)
puts = st.builds(Put, families, st.builds(Version, keys, times, st.none() | st.binary(max_size=3)))
Rows = dict[tuple[str, bytes, int], bytes | None]


class AnyRows(RuleBasedStateMachine):
    """The model: one dictionary of versions for each batch; a crash leaves an earlier one."""

    def __init__(self) -> None:
        super().__init__()
        self.now: Rows = {}
        self.unsynced: list[Rows] = []  # the states before each batch that is not synced
        self.views: list[tuple[Snapshot, Rows]] = []
        self.store = self.opened()

    def opened(self) -> RowStore:
        self.disk = getattr(self, "disk", ModelledDisk())
        return MemoryRows(self.disk)

    @rule(batch=st.lists(puts, max_size=6))
    def write(self, batch: list[Put]) -> None:
        self.unsynced.append(dict(self.now))
        self.store.write(batch)
        for put in batch:
            self.now[put.family, put.version.key, put.version.time] = put.version.value

    @rule()
    def sync(self) -> None:
        self.store.sync()
        self.unsynced.clear()

    @precondition(lambda self: len(self.views) < 4)
    @rule()
    def look(self) -> None:
        self.views.append((self.store.snapshot(), dict(self.now)))

    @precondition(lambda self: self.views)
    @rule(data=st.data(), family=families, low=keys, high=st.none() | keys, at=times)
    def read(
        self, data: st.DataObject, family: str, low: bytes, high: bytes | None, at: int
    ) -> None:
        view, rows = data.draw(st.sampled_from(self.views))
        wanted = sorted(
            (
                Version(key, time, value)
                for (of, key, time), value in rows.items()
                if of == family and low <= key and (high is None or key < high)
            ),
            key=lambda v: (v.key, -v.time),
        )
        assert list(view.versions(family, low, high)) == wanted
        of_each = {v.key: v for v in reversed(wanted)}
        assert list(view.newest(family, low, high)) == [*reversed(of_each.values())]
        newest: dict[bytes, Version] = {}
        for version in wanted:
            if version.time <= at:
                newest.setdefault(version.key, version)
        assert list(live(view, family, low, high, at)) == [
            v for v in newest.values() if v.value is not None
        ]
        if high is None:
            assert view.get(family, low, at) == newest.get(low)

    @rule(family=families, key=keys, time=times)
    def read_exactly(self, family: str, key: bytes, time: int) -> None:
        assert self.store.value_at(family, key, time) == self.now.get((family, key, time))

    @rule(family=families, time=times, rows=st.dictionaries(keys, st.binary(max_size=2)), cut=keys)
    def load(self, family: str, time: int, rows: dict[bytes, bytes], cut: bytes) -> None:
        loading = self.store.load(family, time)
        first, second = [k for k in sorted(rows) if k < cut], [k for k in sorted(rows) if k >= cut]
        for some in (first, second):
            loading.add(some, [rows[key] for key in some])
        before = self.store.snapshot()
        assert list(before.versions(family, b"", None)) == self._versions(family)
        loading.finish()  # it is on the disk, and with it what was written before
        assert list(before.versions(family, b"", None)) == self._versions(family)
        before.close()
        self.now |= {(family, key, time): value for key, value in rows.items()}
        self.unsynced.clear()

    @rule(family=families, time=times, rows=st.dictionaries(keys, st.binary(max_size=2)))
    def abandon(self, family: str, time: int, rows: dict[bytes, bytes]) -> None:
        loading = self.store.load(family, time)
        loading.add(sorted(rows), [rows[key] for key in sorted(rows)])
        loading.abandon()

    @rule(family=families, low=keys, at=times, most=st.integers(1, 4))
    def page(self, family: str, low: bytes, at: int, most: int) -> None:
        newest: dict[bytes, Version] = {}
        for version in self._versions(family):
            if version.time <= at and version.key >= low:
                newest.setdefault(version.key, version)
        rows = [(v.key, v.value) for v in newest.values() if v.value is not None]
        found = self.store.page(family, low, at, most)
        assert found.keys == b"".join(key for key, _ in rows[:most])
        assert found.values == [value for _, value in rows[:most]]
        assert found.following == (rows[most][0] if len(rows) > most else None)

    def _versions(self, family: str) -> list[Version]:
        """All of them, in the order of a view."""
        found = [Version(k, t, v) for (f, k, t), v in self.now.items() if f == family]
        return sorted(found, key=lambda v: (v.key, -v.time))

    @rule(family=families, before=times, low=st.just(b"") | keys, high=st.none() | keys)
    def forget(self, family: str, before: int, low: bytes, high: bytes | None) -> None:
        self.unsynced.append(dict(self.now))
        dropped = self.store.forget(family, before, low, high)
        kept: Rows = {}
        for (of, key, time), value in self.now.items():
            at_once = [t for (f, k, t) in self.now if (f, k) == (of, key) and t <= before]
            is_newest = bool(at_once) and time == max(at_once)
            is_outside = of != family or key < low or (high is not None and key >= high)
            if is_outside or time > before or (is_newest and value is not None):
                kept[of, key, time] = value
        assert dropped == len(self.now) - len(kept)
        self.now = kept

    @rule(family=families, before=st.dictionaries(keys, times))
    def supersede(self, family: str, before: dict[bytes, int]) -> None:
        state = dict(self.now)
        kept: Rows = {}
        for (of, key, time), value in self.now.items():
            newer = any((f, k) == (of, key) and t > time for (f, k, t) in self.now)
            if of != family or key not in before or time >= before[key] or not newer:
                kept[of, key, time] = value
        if len(kept) < len(state):  # else nothing is written
            self.unsynced.append(state)
        assert self.store.supersede(family, before) == len(state) - len(kept)
        self.now = kept

    @rule(family=families, until=times)
    def truncate(self, family: str, until: int) -> None:
        state = dict(self.now)
        kept = {w: v for w, v in self.now.items() if w[0] != family or w[2] > until}
        if len(kept) < len(state):  # else nothing is written
            self.unsynced.append(state)
        assert self.store.truncate(family, until) == len(state) - len(kept)
        self.now = kept

    @rule(family=families, low=keys, high=st.none() | keys)
    def drop(self, family: str, low: bytes, high: bytes | None) -> None:
        self.unsynced.append(dict(self.now))
        dropped = self.store.drop(family, low, high)
        kept = {
            (of, key, time): value
            for (of, key, time), value in self.now.items()
            if of != family or key < low or (high is not None and key >= high)
        }
        assert dropped == len(self.now) - len(kept)
        self.now = kept

    @rule(family=families, key=keys)
    def get(self, family: str, key: bytes) -> None:
        found = [(t, v) for (f, k, t), v in self.now.items() if (f, k) == (family, key)]
        newest = max(found, key=lambda one: one[0], default=None)
        assert self.store.get(family, key) == (None if newest is None else Version(key, *newest))

    @rule()
    def open_again(self) -> None:
        self.close()
        self.store = self.opened()

    @precondition(lambda self: hasattr(self, "disk"))
    @rule(data=st.data())
    def crash(self, data: st.DataObject) -> None:
        kept = data.draw(st.integers(0, len(self.unsynced)))
        self.close()
        self.disk.crash(kept)
        self.now = [*self.unsynced, self.now][kept]
        self.unsynced.clear()
        self.store = self.opened()

    def close(self) -> None:
        for view, _ in self.views:
            view.close()
        self.views.clear()
        self.store.close()

    def teardown(self) -> None:
        self.close()


class InRocks(AnyRows):
    def opened(self) -> RowStore:
        self.directory = getattr(self, "directory", None) or tempfile.TemporaryDirectory()
        return RocksRows(Path(self.directory.name))

    def teardown(self) -> None:
        self.close()
        self.directory.cleanup()


@pytest.mark.parametrize(("machine", "examples"), [(AnyRows, 60), (InRocks, 12)])
def test_rows_are_as_a_dictionary_of_versions(machine: type[AnyRows], examples: int) -> None:
    if machine is InRocks and not has_rocks:
        pytest.skip(NO_ROCKS)
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )


def test_a_forgotten_sync_shows_in_a_crash() -> None:
    disk = ModelledDisk()
    rows = MemoryRows(disk)
    rows.write([Put("t", Version(b"a", 1, b"x"))])
    rows.sync()
    rows.write([Put("t", Version(b"b", 2, b"y"))])
    disk.crash()
    after = MemoryRows(disk).snapshot()
    assert [v.key for v in after.versions("t", b"", None)] == [b"a"]


@pytest.mark.skipif(not has_rocks, reason="without rocksdict")
def test_a_page_that_is_read_in_two_goes_has_no_row_twice(tmp_path: Path) -> None:
    """Versions that a page does not show make it look further: an old one of the last row may come next."""
    store = RocksRows(tmp_path / "rows")
    times = {b"a": (2, 3, 4, 5), b"b": (1,), b"c": (1,)}
    store.write(
        Put("t", Version(key, time, b"%d" % time)) for key, some in times.items() for time in some
    )
    page = store.page("t", b"", 9, 2)
    assert (page.keys, page.values, page.following) == (b"ab", [b"5", b"1"], b"c")
    store.close()


@pytest.mark.skipif(not has_rocks, reason="without rocksdict")
def test_the_newest_of_many_versions_is_read_without_the_others(tmp_path: Path) -> None:
    """A client may write one row again and again: whoever streams or scans it does not step over what was before."""
    store = RocksRows(tmp_path / "rows")
    often, seldom = b"\0often", [b"%03d" % n for n in range(400)]  # more rows than are read at once
    store.write(Put("t", Version(often, time, b"x")) for time in range(20_000))
    store.write(Put("t", Version(key, 1, None)) for key in seldom)
    snapshot = store.snapshot()
    steps = Counter[str]()
    snapshot._at = _Counting(snapshot._at, steps)
    found = list(snapshot.newest("t", b"", None))
    assert found == [Version(often, 19_999, b"x"), *(Version(key, 1, None) for key in seldom)]
    assert steps["next"] < 500
    assert steps["seek"] < 10
    snapshot.close()
    store.close()


@pytest.mark.skipif(not has_rocks, reason="without rocksdict")
def test_what_is_superseded_again_and_again_is_stepped_over_no_more(tmp_path: Path) -> None:
    """What was removed stays in files until they are merged: to look once more must not cost more each time."""
    store = RocksRows(tmp_path / "rows")
    for time in range(1, 5_001):
        store.write([Put("t", Version(b"often", time, b"x"))])
        if time % 50 == 0:
            store.supersede("t", {b"often": time})
    store.write([Put("t", Version(b"often", 0, b"late"))])
    assert store.supersede("t", {b"often": LAST_TIME}) == 0  # it lies behind all that was removed
    snapshot = store.snapshot()
    assert [v.time for v in snapshot.versions("t", b"", None)] == [5_000, 0]
    snapshot.close()
    store.close()


class _Counting:
    """An iterator of the binding that counts what it is asked to do."""

    def __init__(self, iterator: Any, steps: Counter[str]) -> None:
        self._iterator, self._steps = iterator, steps

    def __getattr__(self, name: str) -> Any:
        self._steps[name] += 1
        return getattr(self._iterator, name)

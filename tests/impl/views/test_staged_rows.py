"""Rows in staging: kept with their rows through crashes, in each row store, and views come right whatever came first."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test
from tests.thorough import examples

from stagewright.impl.node.keys import stored_key
from stagewright.impl.storage.memory import MemoryRows, ModelledDisk
from stagewright.impl.storage.port import Put, RowStore, Version
from stagewright.impl.storage.rocks import RocksRows
from stagewright.impl.views.maintenance.definition import ViewDefinition
from stagewright.impl.views.maintenance.staged import (
    Staged,
    drop_of,
    entry_key,
    has_staged,
    is_staged,
    put_staged,
    staged_rows,
    staging_of,
    updates_from,
)
from stagewright.impl.views.maintenance.updates import ViewUpdate, updates_of

SOURCES = Path(__file__).resolve().parents[3] / "src"
NO_ROCKS = "no rocksdict: pip install 'stagewright[cluster]'"
has_rocks = importlib.util.find_spec("rocksdict") is not None
VIEW = ViewDefinition("v", "t", 0)
keys = st.sampled_from([b"%08d%s" % (n, tail) for n in range(3) for tail in (b"", b"\0", b"\xff")])
tokens = st.sampled_from([b"%08d" % n for n in range(4)])  # tablets begin and end at these
values = st.none() | st.binary(max_size=2)
olders = st.none() | st.builds(Version, keys, st.integers(0, 3), values)
Rows = dict[tuple[bytes, int], Staged]


class AnyStaging(RuleBasedStateMachine):
    """The model: what waits, by keys and times; a crash leaves an earlier state, with all that was synced."""

    def __init__(self) -> None:
        super().__init__()
        self.now: Rows = {}
        self.unsynced: list[Rows] = []
        self.store = self.opened()

    def opened(self) -> RowStore:
        self.disk = getattr(self, "disk", ModelledDisk())
        return MemoryRows(self.disk)

    @rule(key=keys, time=st.integers(4, 6), value=values, before=olders)
    def come(self, key: bytes, time: int, value: bytes | None, before: Version | None) -> None:
        older = None if before is None else Version(key, before.time, before.value)
        staged = Staged((key, time, value), older)
        self.unsynced.append(dict(self.now))
        self.store.write([Put("t", Version(key, time, value)), put_staged("t", staged)])
        self.now[key, time] = staged

    @precondition(lambda self: self.now)
    @rule(data=st.data())
    def be_processed(self, data: st.DataObject) -> None:
        which = data.draw(st.sampled_from(sorted(self.now)))
        drop = drop_of("t", self.now[which])
        self.unsynced.append(dict(self.now))
        assert self.store.drop(drop.family, drop.low, drop.high) == 1
        del self.now[which]

    @rule(low=tokens, high=st.none() | tokens, most=st.integers(0, 2))
    def look(self, low: bytes, high: bytes | None, most: int) -> None:
        between = [k for k in sorted(self.now) if low <= k[0] and (high is None or k[0] < high)]
        found = staged_rows(self.store, "t", low, high)
        assert {s.cell[:2]: s for s in found} == {k: self.now[k] for k in between}
        assert staged_rows(self.store, "t", low, high, most) == found[: most or None]
        snapshot = self.store.snapshot()
        assert has_staged(snapshot, "t", low, high) == bool(between)
        assert all(is_staged(snapshot, "t", *which) for which in self.now)
        assert not is_staged(snapshot, "t", low, 3)
        snapshot.close()

    @rule()
    def sync(self) -> None:
        self.store.sync()
        self.unsynced.clear()

    @rule()
    def open_again(self) -> None:
        self.store.close()
        self.store = self.opened()

    @precondition(lambda self: hasattr(self, "disk"))
    @rule(data=st.data())
    def crash(self, data: st.DataObject) -> None:
        kept = data.draw(st.integers(0, len(self.unsynced)))
        self.disk.crash(kept)
        self.now = [*self.unsynced, self.now][kept]
        self.unsynced.clear()
        self.store = self.opened()
        for key, time in self.now:
            snapshot = self.store.snapshot()
            there = snapshot.get("t", key, time)
            snapshot.close()
            assert there is not None, "an entry without its row"
            assert there.time == time

    def teardown(self) -> None:
        self.store.close()


class InRocks(AnyStaging):
    def opened(self) -> RowStore:
        self.directory = getattr(self, "directory", None) or tempfile.TemporaryDirectory()
        return RocksRows(Path(self.directory.name))

    def teardown(self) -> None:
        self.store.close()
        self.directory.cleanup()


@pytest.mark.parametrize(("machine", "most"), [(AnyStaging, 60), (InRocks, 15)])
def test_what_waits_is_what_came_and_was_not_processed(
    machine: type[AnyStaging], most: int
) -> None:
    if machine is InRocks and not has_rocks:
        pytest.skip(NO_ROCKS)
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples(most),
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )


STAGER = """
import itertools, sys
from pathlib import Path
from stagewright.impl.storage.port import Put, Version
from stagewright.impl.storage.rocks import RocksRows
from stagewright.impl.views.maintenance.staged import Staged, put_staged
rows = RocksRows(Path(sys.argv[1]))
for n in itertools.count(1):
    cell = n.to_bytes(8, "big"), n, b"x"
    rows.write([Put("t", Version(*cell)), put_staged("t", Staged(cell))])
    rows.sync()
    print(n, flush=True)
"""


@pytest.mark.skipif(not has_rocks, reason=NO_ROCKS)
def test_rows_that_were_acknowledged_wait_in_staging_after_a_kill(tmp_path: Path) -> None:
    words = [sys.executable, "-P", "-c", STAGER, str(tmp_path / "rows")]
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=environment, text=True) as stager:
        assert stager.stdout is not None
        answered = [int(stager.stdout.readline()) for _ in range(20)]
        stager.kill()
        answered += [int(line) for line in stager.stdout if line.endswith("\n")]
    rows = RocksRows(tmp_path / "rows")
    snapshot = rows.snapshot()
    there = [v.time for v in snapshot.versions("t", b"", None)]
    snapshot.close()
    waits = [s.cell[1] for s in staged_rows(rows, "t")]
    rows.close()
    assert waits == there == [*range(1, len(there) + 1)]
    assert len(waits) >= len(answered)


# -- laws --------------------------------------------------------------------------------------------------

arrivals = st.lists(st.tuples(st.booleans(), values), min_size=1, max_size=6).flatmap(
    lambda found: st.permutations([*enumerate(found)])
)


@example([(1, (True, b"a")), (0, (False, b"b"))], Random(6))  # built last, before any is processed
@given(arrivals, st.randoms(use_true_random=False))
def test_whatever_came_by_streams_and_whenever_it_is_processed_views_have_the_newest_row(
    found: list[tuple[int, tuple[bool, bytes | None]]], chance: Random
) -> None:
    """Some versions are written by requests, and update the views at once; the others wait, for however long.

    The view is created at some time: what was written before, and does not wait, is then read, as there is no newer one.
    """
    key, rows = stored_key(b"key"), MemoryRows(ModelledDisk())
    view = dict[bytes, tuple[int, bool, bytes | None]]()
    waiting: list[Staged] = []
    created = chance.randrange(len(found) + 1)

    def update(changes: list[ViewUpdate]) -> None:
        for one in changes:  # of two updates at one time a deletion wins
            new = (one.time, one.value is None, one.value)
            view[one.key] = max(view.get(one.key, new), new, key=lambda r: r[:2])

    def process() -> None:
        staged = waiting.pop(chance.randrange(len(waiting)))
        update([*updates_from(VIEW, staged, versions())])

    def versions() -> list[Version]:
        return [*rows.snapshot().versions("t", key, key + b"\0")]

    def build() -> None:
        staged = {one.cell[1] for one in waiting}
        read = next((v for v in versions() if v.time not in staged), None)
        if read is not None:
            update([*updates_of(VIEW, None, (key, read.time, read.value))])

    for number, (time, (streamed, value)) in enumerate(found):
        if number == created:
            view.clear()
            build()
        before, cell = rows.get("t", key), (key, time, value)
        if streamed:
            older = before if before is not None and before.time < time else None
            waiting.append(Staged(cell, older))
        else:
            update([*updates_of(VIEW, before, cell)])
        if not streamed or before is None or before.time < time:
            rows.write([Put("t", Version(*cell))])
        if waiting and chance.random() < 0.3:
            process()
    if created == len(found):
        view.clear()
        build()
    while waiting:
        process()
    newest = rows.get("t", key)
    assert newest is not None
    there = {k: (row[0], row[2]) for k, row in view.items() if not row[1]}
    wanted = VIEW.row_of(key, newest.value)
    assert there == ({} if wanted is None else {wanted: (newest.time, newest.value)})


def test_each_version_of_a_row_waits_by_itself() -> None:
    rows = MemoryRows(ModelledDisk())
    old, new = Staged((b"12345678k", 4, b"a")), Staged((b"12345678k", 5, b"b"))
    rows.write([put_staged("t", old), put_staged("t", new)])
    drop = drop_of("t", old)
    assert rows.drop(staging_of("t"), drop.low, drop.high) == 1
    assert staged_rows(rows, "t") == [new]
    assert rows.get(staging_of("t"), entry_key(*new.cell[:2])) is not None

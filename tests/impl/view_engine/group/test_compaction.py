"""Compaction keeps every row, loses none of what changes meanwhile, and leaves one file."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.impl.view_engine import couchstore
from tests.impl.view_engine.couchstore import last_snapshot, needs_couchstore
from tests.impl.view_engine.file.test_interoperation import built_by_us, leaves_of, pointer_of
from tests.impl.view_engine.group.test_updates import PARTITIONS, assert_right, group_of, put_some
from tests.impl.view_engine.memory_source import MemorySource
from tests.impl.view_engine.rows import SUMMED, document_rows
from tests.patience import PATIENCE

from stagewright.impl.storage.folders import sync_folder
from stagewright.impl.view_engine import View, ViewEngine, doc, emit
from stagewright.impl.view_engine.file.disk import RealDisk
from stagewright.impl.view_engine.file.index_file import IndexFile
from stagewright.impl.view_engine.group.partitions import settle
from stagewright.impl.view_engine.group.triggers import Triggers, look_after
from stagewright.impl.view_engine.index import compactor as compactor_module
from stagewright.impl.view_engine.index.compactor import CompactionStoppedError, Compactor
from stagewright.impl.view_engine.index.files import open_current, remove_leftovers
from stagewright.impl.view_engine.query.local import answer, rows
from stagewright.impl.view_engine.query.params import Query


def test_compaction_keeps_the_rows_and_drops_the_rest(tmp_path: Path) -> None:
    source, chosen = MemorySource(PARTITIONS), random.Random(1)
    group = group_of(tmp_path, source)
    for _ in range(5):
        put_some(source, chosen, 300, of=2000)
        group.wait_until_current()
    group.set_partition_states(cleanup=[2])
    assert group.fragmentation() > 0.3
    with group.reading() as snapshot:
        before = rows(snapshot, "numbers", Query(reduce=False))
        first = next(before)
        done = group.compact()
        assert (done.before, group.number) == (done.before, 2)
        assert done.after < done.before
        assert (group.header.cleanup, group.header.active) == (0, 0b1011)
        assert [path.name for path in tmp_path.iterdir()] == [
            f"main_{group.design.signature.hex()}.view.2"
        ]
        old = [first, *before]  # the old file is still there for who reads it
    with group.reading() as snapshot:
        kept = [row for row in old if row.partition != 2]
        assert answer(snapshot, "numbers", Query(reduce=False)).rows == kept
    assert_right(group, source)
    put_some(source, chosen, 200)
    group.wait_until_current()
    assert_right(group, source)
    group.close()


def test_what_the_updater_writes_meanwhile_is_in_the_new_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, chosen = MemorySource(PARTITIONS), random.Random(2)
    put_some(source, chosen, 600, of=1000)
    group = group_of(tmp_path, source)
    group.wait_until_current()
    copy = Compactor.copy

    def slow_copy(self: Compactor, header: Any) -> None:
        copy(self, header)
        for _ in range(3):
            put_some(source, chosen, 100, of=1000)
            group.wait_until_current()

    monkeypatch.setattr(Compactor, "copy", slow_copy)
    done = group.compact()
    assert done.batches >= 3
    assert group.pending_changes() == 0
    assert_right(group, source)
    assert len(list(tmp_path.iterdir())) == 1
    group.close()


def test_compaction_ends_though_the_updater_never_rests(tmp_path: Path) -> None:
    source, chosen = MemorySource(PARTITIONS), random.Random(3)
    put_some(source, chosen, 400)
    group = group_of(tmp_path, source)
    group.wait_until_current()
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            put_some(source, chosen, 20)
            group.trigger()
            time.sleep(0.001)

    thread = threading.Thread(target=write)
    thread.start()
    for number in range(2, 6):
        group.compact()
        assert group.number == number
    stop.set()
    thread.join()
    group.wait_until_current()
    assert_right(group, source)
    group.close()


def test_rollback_and_state_changes_stop_a_compaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, chosen = MemorySource(PARTITIONS), random.Random(4)
    put_some(source, chosen, 300)
    group = group_of(tmp_path, source)
    group.wait_until_current()
    copy = Compactor.copy

    def during(change: Callable[[], None]) -> None:
        def changed(self: Compactor, header: Any) -> None:
            copy(self, header)
            change()

        monkeypatch.setattr(Compactor, "copy", changed)
        with pytest.raises(CompactionStoppedError):
            group.compact()
        assert group.number == 1
        assert len(list(tmp_path.iterdir())) == 1

    def roll_back() -> None:
        source.fail_over(0, 5)
        put_some(source, chosen, 50)
        group.wait_until_current()

    during(roll_back)
    assert_right(group, source)
    changing: list[threading.Thread] = []

    def change_states() -> None:
        thread = threading.Thread(target=group.set_partition_states, kwargs={"cleanup": [1]})
        changing.append(thread)
        thread.start()
        while not group.workers.requests:
            time.sleep(0.001)

    during(change_states)
    changing[0].join()
    assert group.header.cleanup == 0b10
    assert_right(group, source)
    group.close()


@pytest.mark.parametrize("step", range(8))
def test_crash_at_any_step_leaves_one_file_that_opens(
    tmp_path: Path, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = MemorySource(PARTITIONS)
    put_some(source, random.Random(5), 300)
    group = group_of(tmp_path, source)
    group.wait_until_current()
    header = group.header
    count = iter(range(1000))

    class CrashError(BaseException):
        pass

    def crashing(work: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            if next(count) >= step:
                raise CrashError
            return work(*arguments)

        return run

    for name in ("unlink", "rename"):
        original = getattr(Path, name)
        monkeypatch.setattr(
            Path,
            name,
            lambda self, *a, original=original, **k: crashing(lambda: original(self, *a, **k))(),
        )
    monkeypatch.setattr(compactor_module, "sync_folder", crashing(sync_folder))
    for name in ("write", "sync"):
        monkeypatch.setattr(RealDisk, name, crashing(getattr(RealDisk, name)))
    with suppress(CrashError):
        group.compact()
    monkeypatch.undo()
    remove_leftovers(tmp_path, [group.design.signature])
    found = open_current(tmp_path, "main", group.design.signature)
    assert found is not None
    file, number, snapshot = found
    assert number in (1, 2)
    assert snapshot.header.seqs == header.seqs
    assert [root and root.reduction for root in snapshot.header.view_roots] == [
        root and root.reduction for root in header.view_roots
    ]
    file.close()
    assert len(list(tmp_path.iterdir())) == 1


def test_triggers_fire_at_their_thresholds(tmp_path: Path) -> None:
    source, chosen = MemorySource(PARTITIONS), random.Random(6)
    group = group_of(tmp_path, source)
    put_some(source, chosen, 100)
    exactly = group.pending_changes()
    assert look_after(group, Triggers(changes=exactly + 1)) == []
    assert look_after(group, Triggers(changes=exactly)) == ["update"]
    group.wait_until_current()
    size, share = group.file_size(), group.fragmentation()
    never = Triggers(file_size=size + 1, fragmentation=share)
    assert look_after(group, never) == []
    assert look_after(group, replace(never, file_size=size, fragmentation=share * 1.01)) == []
    assert look_after(group, replace(never, file_size=size)) == ["compaction"]
    group.set_partition_states(cleanup=[0])
    assert look_after(group, Triggers()) == ["cleanup"]
    group.close()


def test_engine_looks_after_its_indexes_by_itself(tmp_path: Path) -> None:
    often = Triggers(interval=0.01, changes=1, file_size=1)
    deadline = time.monotonic() + PATIENCE
    with ViewEngine(tmp_path, triggers=often, partitions=4) as engine:
        engine.define("d", {"v": View(emit(doc.n))})
        for round_ in range(4):
            engine.put_many((f"d{n}", {"n": n + round_}) for n in range(500))
            while engine.group("d").pending_changes() and time.monotonic() < deadline:
                time.sleep(0.01)
        while engine.group("d").number == 1 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert engine.group("d").number > 1
        assert len(engine.query("d", "v", stale="ok")) == 500


@needs_couchstore
def test_our_compaction_has_the_leaves_of_the_c_compactor(tmp_path: Path) -> None:
    ids, built = document_rows(9000)
    ours = built_by_us(tmp_path / "ours.view.1", ids, built)
    header = last_snapshot(ours).header
    file = IndexFile(RealDisk(ours))
    file.commit(replace(header, cleanup=0b1100, active=header.active & ~0b1100))
    theirs = couchstore.compact(tmp_path, ours, "_sum")
    compactor = Compactor(file, [SUMMED], tmp_path / "ours.view.2")
    compactor.copy(file.last_snapshot().header)
    compactor.finish(file.last_snapshot().header, settle)
    assert leaves_of(tmp_path / "ours.view.2") == leaves_of(theirs)
    assert pointer_of(tmp_path / "ours.view.2").reduction == pointer_of(theirs).reduction
    file.close()
    compactor.file.close()

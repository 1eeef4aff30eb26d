"""The updater: from any checkpoint, through failures, stops and rollbacks, to what the documents say."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.impl.view_engine.memory_source import MemorySource
from tests.impl.view_engine.rows import SUMMED, document_rows

from stagewright.impl.view_engine import View
from stagewright.impl.view_engine.campaign.map_reduce import rows_of
from stagewright.impl.view_engine.design.design import DesignDocument
from stagewright.impl.view_engine.documents.changes import Change, Position
from stagewright.impl.view_engine.documents.store import DocumentStore, partition_of
from stagewright.impl.view_engine.file.disk import RealDisk
from stagewright.impl.view_engine.group.current import IndexNotReadyError
from stagewright.impl.view_engine.group.group import Group
from stagewright.impl.view_engine.index import updater as updater_module
from stagewright.impl.view_engine.index.files import index_path
from stagewright.impl.view_engine.index.queues import BoundedQueue, QueueClosedError
from stagewright.impl.view_engine.index.sort_files import ExternalSort
from stagewright.impl.view_engine.index.updater import UpdaterLimits
from stagewright.impl.view_engine.query.local import answer
from stagewright.impl.view_engine.query.params import Query
from stagewright.impl.view_engine.tree.check import check_file
from stagewright.impl.view_engine.tree.packed import pack

PARTITIONS = 4
SMALL = UpdaterLimits(map_queue=2000, write_queue=2000, batch=3000, documents_a_call=10)


def numbers(document: Any, meta: Any) -> Iterator[tuple[object, object]]:
    for number in document["numbers"]:
        yield number % 10, number


def names(document: Any, meta: Any) -> Iterator[tuple[object, object]]:
    if document["numbers"]:
        yield meta["id"], len(document["numbers"])


VIEWS = {"numbers": View(numbers, "_sum"), "names": View(names, "_count")}


def group_of(folder: Path, source: MemorySource, limits: UpdaterLimits = SMALL) -> Group:
    return Group(folder, DesignDocument("d", VIEWS), source, PARTITIONS, limits=limits)


def put_some(source: MemorySource, chosen: random.Random, count: int, of: int = 200) -> None:
    for _ in range(count):
        body = {"numbers": [chosen.randrange(1000) for _ in range(chosen.randrange(4))]}
        source.put(f"d{chosen.randrange(of)}", body if chosen.random() < 0.8 else None)


def assert_right(group: Group, source: MemorySource) -> None:
    """The rows are those of the documents at the header's seqs, and the file is intact."""
    with group.reading() as snapshot:
        for name, function in (("numbers", numbers), ("names", names)):
            found = answer(snapshot, name, Query(reduce=False))
            documents = source.documents(found.seqs)
            assert [(r.key, r.value, r.id) for r in found] == rows_of(documents, function)
    path = index_path(group.folder, "main", group.design.signature, group.number)
    disk = RealDisk(path, read_only=True)
    assert check_file(disk).problems == []
    disk.close()


def test_each_round_of_changes_is_indexed(tmp_path: Path) -> None:
    source, chosen = MemorySource(PARTITIONS), random.Random(1)
    group = group_of(tmp_path, source)
    for _ in range(8):
        put_some(source, chosen, 150)
        group.wait_until_current()
        assert_right(group, source)
    before = source.streams
    group.wait_until_current()
    assert source.streams == before  # nothing to do
    group.close()
    again = group_of(tmp_path, source)
    assert again.pending_changes() == 0
    assert_right(again, source)
    again.close()


def test_update_that_is_stopped_anywhere_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    source, chosen = MemorySource(PARTITIONS), random.Random(2)
    group = group_of(tmp_path, source)
    for round_ in range(12):
        put_some(source, chosen, 200)
        group.trigger()
        time.sleep(0.002 * round_)
        group.stop_updater()
        assert_right(group, source)
    group.wait_until_current()
    assert_right(group, source)
    group.close()


def test_initial_build_looks_nothing_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = MemorySource(PARTITIONS)
    put_some(source, random.Random(3), 100)

    def refused(*arguments: object) -> None:
        raise AssertionError("an initial build takes no batches")

    monkeypatch.setattr(updater_module, "apply_batch", refused)
    group = group_of(tmp_path, source)
    group.wait_until_current()
    assert_right(group, source)
    group.close()


def test_incremental_update_writes_a_checkpoint_a_batch(tmp_path: Path) -> None:
    source, chosen = MemorySource(PARTITIONS), random.Random(4)
    group = group_of(tmp_path, source)
    put_some(source, chosen, 10)
    group.wait_until_current()
    first = len(list(group.index.file.snapshots()))
    put_some(source, chosen, 300, of=10_000)
    group.wait_until_current()
    assert len(list(group.index.file.snapshots())) - first > 3
    group.close()


@pytest.mark.parametrize("seed", range(4))
def test_rollback_takes_up_an_older_snapshot(tmp_path: Path, seed: int) -> None:
    source, chosen = MemorySource(PARTITIONS), random.Random(seed)
    group = group_of(tmp_path, source)
    for _ in range(6):
        put_some(source, chosen, 60)
        group.wait_until_current()
        partition = chosen.randrange(PARTITIONS)
        high = source.positions()[partition].seq
        source.fail_over(partition, chosen.randrange(max(high - 40, 0), high + 1))
        put_some(source, chosen, 30)
        group.wait_until_current()
        assert_right(group, source)
    group.close()


def failing(document: Any, meta: Any) -> Iterator[tuple[object, object]]:
    yield 1, 100 // document["n"]


def test_document_on_which_a_map_fails_has_no_rows_and_is_named(tmp_path: Path) -> None:
    source = MemorySource(PARTITIONS)
    for n in range(5):
        source.put(f"d{n}", {"n": n})
    group = Group(tmp_path, DesignDocument("d", {"v": View(failing, "_count")}), source, PARTITIONS)
    group.wait_until_current()
    with group.reading() as snapshot:
        assert answer(snapshot, "v", Query()).rows[0].value == 4
    assert [(e.doc_id, e.message.partition(":")[0]) for e in group.map_errors] == [
        ("d0", "ZeroDivisionError")
    ]
    group.close()


def test_failing_reduce_is_named_by_key_and_the_last_snapshot_stays(tmp_path: Path) -> None:
    source = MemorySource(PARTITIONS)
    source.put("a", {"numbers": [3]})
    group = group_of(tmp_path, source)
    group.wait_until_current()
    source.history[0].append(Change(0, 100, b"b", b'{"numbers": ["x"]}'))
    bad = View(lambda d, m: [(n, n) for n in d["numbers"]], "_sum")
    other = Group(tmp_path, DesignDocument("e", {"v": bad}), source, PARTITIONS)
    with pytest.raises(IndexNotReadyError, match=r'a value is not a number \(key "x"\)'):
        other.wait_until_current()
    assert other.header.view_roots == (None,)
    source.history[0][-1] = Change(0, 101, b"b", b'{"numbers": [4]}')
    other.wait_until_current()
    with other.reading() as snapshot:
        assert answer(snapshot, "v", Query()).rows[0].value == 7
    group.close()
    other.close()


def test_sort_files_hold_what_memory_does_not(tmp_path: Path) -> None:
    _, rows = document_rows(3000)
    rows += [(key, value + b"\0\0\x011") for key, value in rows[::7]]  # later ones win
    sort = ExternalSort(tmp_path, "t", SUMMED, memory=4000)
    for row in rows:
        sort.add(pack(*row), 1)
    assert len(list(tmp_path.iterdir())) > 20  # more than are merged at once
    found = [row for batch in sort.sorted() for row in batch.rows()]
    assert found == sorted(dict(rows).items(), key=lambda row: row[0][2:])
    sort.remove()
    assert list(tmp_path.iterdir()) == []


def test_queue_is_bounded_by_bytes_and_closed_by_failures() -> None:
    queue: BoundedQueue[int] = BoundedQueue(10)
    taken: list[int] = []

    def reader() -> None:
        for item in queue:
            time.sleep(0.001)
            taken.append(item)

    thread = threading.Thread(target=reader)
    thread.start()
    for number in range(30):
        queue.put(number, 4)
    queue.put(30, 500)  # alone it may be larger
    queue.end()
    thread.join()
    assert taken == list(range(31))
    assert queue.largest == 500
    failed: BoundedQueue[int] = BoundedQueue(10)
    failed.close(ValueError("broken"))
    with pytest.raises(ValueError, match="broken"):
        next(iter(failed))
    with pytest.raises(QueueClosedError):
        failed.put(1, 1)


def test_document_store_forgets_deletions_only_with_a_rollback(tmp_path: Path) -> None:
    store = DocumentStore(tmp_path / "documents", PARTITIONS)
    store.put((f"d{n}".encode(), b'{"numbers": [%d]}' % n) for n in range(40))
    group = Group(tmp_path, DesignDocument("d", VIEWS), store, PARTITIONS, limits=SMALL)
    group.wait_until_current()
    store.put((f"d{n}".encode(), None) for n in range(30))
    assert store.forget_deletions() == 30
    assert store.get(b"d3") is None
    group.wait_until_current()
    with group.reading() as snapshot:
        assert len(answer(snapshot, "names", Query(reduce=False))) == 10
    group.close()
    store.close()
    with pytest.raises(ValueError, match="has 4 partitions, not 5"):
        DocumentStore(tmp_path / "documents", 5)


class LeavesItsHistory(MemorySource):
    """A failover happens right after somebody saw where the partitions are."""

    left = True

    def positions(self) -> Mapping[int, Position]:
        found = super().positions()
        if not self.left:
            self.left = True
            self.fail_over(0, found[0].seq - 2)
        return found


def test_who_waits_for_a_history_that_is_left_gets_what_there_is_now(tmp_path: Path) -> None:
    source, name = (
        LeavesItsHistory(PARTITIONS),
        next(n for n in "abcdefgh" if partition_of(n.encode(), PARTITIONS) == 0),
    )
    for number in range(10):
        source.put(name, {"numbers": [number]})
    group = group_of(tmp_path, source)
    group.wait_until_current()
    source.put(name, {"numbers": []})
    source.left = False
    waits = threading.Thread(target=group.wait_until_current, daemon=True)
    waits.start()
    waits.join(20)
    assert not waits.is_alive()
    assert group.header.seqs[0] == 9
    group.close()

"""A crash at any write leaves the last acknowledged snapshot, or the one that was being written."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from tests.impl.view_engine.recording_disk import Crash, MemoryDisk, RecordingDisk
from tests.impl.view_engine.rows import empty_header

from stagewright.impl.view_engine.file.chunks import header_blocks
from stagewright.impl.view_engine.file.errors import NoHeaderError
from stagewright.impl.view_engine.file.header import IndexHeader, encode_header
from stagewright.impl.view_engine.file.index_file import IndexFile, Snapshot
from stagewright.impl.view_engine.tree.apply import apply
from stagewright.impl.view_engine.tree.check import check_file
from stagewright.impl.view_engine.tree.entries import view_key, view_value
from stagewright.impl.view_engine.tree.nodes import Pointer, Shape
from stagewright.impl.view_engine.tree.packed import Operations
from stagewright.impl.view_engine.tree.read import leaves
from stagewright.impl.view_engine.tree.reducers import BUILTIN

COUNTED = Shape(is_view=True, reducers=(BUILTIN["_count"],))
Rows = dict[bytes, bytes]


@dataclass
class History:
    """What a file went through: its rows and header after each commit; 0 is before the first."""

    disk: RecordingDisk
    rows: list[Rows]
    headers: list[IndexHeader | None]


def forged_header() -> bytes:
    """Bytes that would be a header, did they stand at the start of a block."""
    return header_blocks(encode_header(replace(empty_header(), signature=b"forged forged !!")))


def written(
    make: Callable[[RecordingDisk], IndexFile],
    commits: int,
    seed: int,
    disk: RecordingDisk | None = None,
) -> History:
    """Batches of random rows, some of which hold forged headers, each committed."""
    chosen = random.Random(seed)
    disk = disk or RecordingDisk()
    file = make(disk)
    history = History(disk, [{}], [None])
    root: Pointer | None = None
    header = empty_header(8)
    for commit in range(commits):
        new = {
            view_key(b"%d" % chosen.randrange(60), b"doc%d" % chosen.randrange(30)): view_value(
                chosen.randrange(8), [chosen.randbytes(chosen.choice((20, 900))), forged_header()]
            )
            for _ in range(chosen.randrange(1, 12))
        }
        held = history.rows[-1]
        gone = [key for key in held if chosen.random() < 0.2]
        root = apply(file, COUNTED, root, Operations.of(new.items(), gone, collated=True))
        header = replace(
            header,
            seqs=dict.fromkeys(range(8), commit + 1),
            view_roots=(root.root if root else None,),
        )
        history.rows.append({key: value for key, value in held.items() if key not in gone} | new)
        history.headers.append(header)
        file.commit(header)
        disk.acknowledge()
    return history


def rows_in(file: IndexFile, snapshot: Snapshot) -> Rows:
    root = snapshot.header.view_roots[0]
    pointer = Pointer(b"", *root) if root else None
    return {key: value for leaf in leaves(file, COUNTED, pointer) for key, value in leaf.rows()}


def wrong_after(history: History, crash: Crash) -> str:
    """What is wrong with what a crash left; empty if nothing is."""
    file = IndexFile(MemoryDisk(bytearray(crash.data)))
    try:
        snapshot = file.last_snapshot()
    except NoHeaderError:
        return "" if crash.acknowledged == 0 else "an acknowledged header is gone"
    if snapshot.header not in history.headers:
        return "a header that was never written"
    number = history.headers.index(snapshot.header)
    if number not in (crash.acknowledged, crash.acknowledged + 1):
        return f"commit {number}, though {crash.acknowledged} were acknowledged"
    try:
        found = rows_in(file, snapshot)
    except Exception as error:  # noqa: BLE001 - whatever it raises is wrong
        return f"commit {number}: {error}"
    return "" if found == history.rows[number] else f"commit {number} has other rows"


def goes_on_after(history: History, crash: Crash) -> None:
    disk = MemoryDisk(bytearray(crash.data))
    file = IndexFile(disk)
    try:
        snapshot = file.last_snapshot()
        header, rows = snapshot.header, rows_in(file, snapshot)
    except NoHeaderError:
        header, rows = empty_header(8), {}
    root = header.view_roots[0]
    new = {view_key(b'"after"', b"doc"): view_value(1, [b"1", forged_header()])}
    operations = Operations.of(new.items(), collated=True)
    made = apply(file, COUNTED, Pointer(b"", *root) if root else None, operations)
    assert made is not None
    file.commit(replace(header, view_roots=(made.root,)))
    again = IndexFile(MemoryDisk(disk.data))
    assert rows_in(again, again.last_snapshot()) == rows | new
    problems = [problem.what for problem in check_file(disk).problems]
    assert all("back index" in problem for problem in problems)  # which this test does not write


@pytest.mark.parametrize(
    ("commits", "samples"), [(6, 25), pytest.param(40, 1000, marks=pytest.mark.thorough)]
)
def test_every_crash_leaves_the_last_snapshot_or_the_next(commits: int, samples: int) -> None:
    history = written(IndexFile, commits, seed=5)
    seen: set[Crash] = set()
    for crash in history.disk.crashes(seed=commits, samples=samples):
        if crash not in seen:
            seen.add(crash)
            assert wrong_after(history, crash) == ""
            if len(seen) % 40 == 0:
                goes_on_after(history, crash)
    assert len(seen) > 100 * commits


class UnsyncedNodes(RecordingDisk):
    """Leaves every first sync of a commit out: a header may reach the disk before its nodes."""

    def sync(self) -> None:
        self.acknowledged_syncs = getattr(self, "acknowledged_syncs", 0) + 1
        if self.acknowledged_syncs % 2 == 0:
            super().sync()


def test_a_header_that_is_written_before_its_nodes_are_durable_is_noticed() -> None:
    history = written(IndexFile, 4, seed=5, disk=UnsyncedNodes())
    crashes = history.disk.crashes(seed=1, samples=100)
    assert any(wrong_after(history, crash) for crash in crashes)


def test_readers_keep_every_snapshot_while_the_file_grows() -> None:
    history = written(IndexFile, 50, seed=9)
    file = IndexFile(history.disk)
    snapshots = list(file.snapshots())[::-1]
    assert [snapshot.header for snapshot in snapshots] == history.headers[1:]
    for snapshot, rows in zip(snapshots, history.rows[1:], strict=True):
        assert rows_in(file, snapshot) == rows

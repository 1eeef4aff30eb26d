"""What is on the disk after kills, cuts and failing syncs."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stagewright.impl.storage.group_sync import GroupSync
from stagewright.impl.storage.memory import MemoryRows, ModelledDisk
from stagewright.impl.storage.port import Put, StorageError, Version
from stagewright.impl.storage.rocks import RocksRows

SOURCES = Path(__file__).resolve().parents[3] / "src"
needs_rocks = pytest.mark.skipif(
    importlib.util.find_spec("rocksdict") is None,
    reason="no rocksdict: pip install 'stagewright[cluster]'",
)

WRITER = """
import itertools, sys
from pathlib import Path
from stagewright.impl.storage.port import Put, Version
from stagewright.impl.storage.rocks import RocksRows
rows = RocksRows(Path(sys.argv[1]))
for n in itertools.count(1):
    key = n.to_bytes(4, "big")
    rows.write([Put("t", Version(key + bytes([i]), n, b"x")) for i in range(3)])
    rows.sync()
    print(n, flush=True)
"""


def batches_in(directory: Path) -> list[int]:
    """The numbers of the batches that are there; each must be there whole."""
    rows = RocksRows(directory)
    snapshot = rows.snapshot()
    found = [v.time for v in snapshot.versions("t", b"", None)]
    snapshot.close()
    rows.close()
    assert all(found.count(n) == 3 for n in set(found)), "a batch is torn"
    return sorted(set(found))


@needs_rocks
def test_acknowledged_batches_survive_a_kill(tmp_path: Path) -> None:
    words = [sys.executable, "-P", "-c", WRITER, str(tmp_path / "rows")]
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=environment, text=True) as writer:
        assert writer.stdout is not None
        answered = [int(writer.stdout.readline()) for _ in range(20)]
        writer.kill()
        answered += [int(line) for line in writer.stdout if line.endswith("\n")]
    found = batches_in(tmp_path / "rows")
    assert found == list(range(1, len(found) + 1))
    assert len(found) >= len(answered)


@needs_rocks
def test_a_log_that_is_cut_is_a_prefix_of_the_batches(tmp_path: Path) -> None:
    rows = RocksRows(tmp_path / "rows")
    for n in range(1, 31):
        key = n.to_bytes(4, "big")
        rows.write([Put("t", Version(key + bytes([i]), n, b"x" * 20)) for i in range(3)])
    rows.sync()
    rng = random.Random(1)
    lengths: set[int] = set()
    for number in range(6):
        copy = tmp_path / f"copy{number}"
        shutil.copytree(tmp_path / "rows", copy)
        (copy / "LOCK").unlink(missing_ok=True)
        (log,) = [f for f in copy.glob("*.log") if f.stat().st_size]
        os.truncate(log, rng.randrange(log.stat().st_size))
        found = batches_in(copy)
        assert found == list(range(1, len(found) + 1))
        lengths.add(len(found))
    assert len(lengths) > 2
    rows.close()


@needs_rocks
def test_a_store_with_an_open_snapshot_is_not_closed(tmp_path: Path) -> None:
    rows = RocksRows(tmp_path / "rows")
    snapshot = rows.snapshot()
    with pytest.raises(StorageError, match="1 snapshot still open"):
        rows.close()
    with pytest.raises(StorageError, match="cannot be opened"):
        RocksRows(tmp_path / "rows")
    snapshot.close()
    rows.close()
    RocksRows(tmp_path / "rows").close()


class SlowDisk(MemoryRows):
    syncs = 0
    fails = False

    def sync(self) -> None:
        self.syncs += 1
        if self.fails:
            raise StorageError("the disk is gone", help="another one")
        time.sleep(0.005)
        super().sync()


def test_one_sync_serves_all_that_wait() -> None:
    rows = SlowDisk(ModelledDisk())
    sync = GroupSync(rows)

    async def write(n: int) -> None:
        rows.write([Put("t", Version(bytes([n]), n, b"x"))])
        place = len(rows.disk.log)
        await sync()
        assert rows.disk.synced >= place

    async def run() -> None:
        await asyncio.gather(*(write(n) for n in range(100)))

    asyncio.run(run())
    assert rows.syncs <= 3


def test_a_sync_that_fails_acknowledges_nobody_and_is_not_repeated() -> None:
    rows = SlowDisk(ModelledDisk())
    rows.fails = True
    sync = GroupSync(rows)

    async def run() -> None:
        failed = await asyncio.gather(*(sync() for _ in range(5)), return_exceptions=True)
        assert all(isinstance(error, StorageError) for error in failed)
        rows.fails = False
        with pytest.raises(StorageError):
            await sync()

    asyncio.run(run())
    assert rows.syncs == 1

"""How the initial build grows: `python -m tests.benchmarks.view_engine.scale 1000000 10000000 50000000`.

Documents are made as they are read, so that all memory is the engine's: each size is built in a process of its own.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from stagewright.impl.view_engine import View, doc, emit
from stagewright.impl.view_engine.design.design import DesignDocument
from stagewright.impl.view_engine.documents.changes import Change, Position, Stream
from stagewright.impl.view_engine.file.header import FailoverLog
from stagewright.impl.view_engine.group.group import Group
from stagewright.impl.view_engine.tree.nodes import Pointer

PARTITIONS = 1024
PART = 1000  # changes that a store gives together
REPORTED = 10_000_000  # documents between two lines of progress
LOG: FailoverLog = ((b"12345678", 0),)


class MadeUp:
    """A store of so many documents that keeps none of them."""

    def __init__(self, count: int) -> None:
        self._each = -(-count // PARTITIONS)
        self.count = self._each * PARTITIONS
        self._given = 0

    def positions(self) -> Mapping[int, Position]:
        return dict.fromkeys(range(PARTITIONS), Position(self._each, LOG[0][0]))

    def failover_log(self, partition: int) -> FailoverLog:
        del partition
        return LOG

    def snapshot(self, partition: int, since: int, log: FailoverLog) -> Stream:
        del log
        return Stream(self._each, LOG, self._parts(partition, since))

    def _parts(self, partition: int, since: int) -> Iterator[Sequence[Change]]:
        for start in range(since + 1, self._each + 1, PART):
            part = [
                Change(partition, seq, b"d%d-%d" % (partition, seq), _body(partition, seq))
                for seq in range(start, min(start + PART, self._each + 1))
            ]
            yield part
            before, self._given = self._given, self._given + len(part)
            if before // REPORTED != self._given // REPORTED:
                print(f"{self._given:>12,} documents read: {in_use()}", flush=True)


def in_use() -> str:
    """Memory of this process, now and at its peak."""
    status = Path("/proc/self/status").read_text("utf-8").splitlines()
    size = dict(line.split(":", 1) for line in status)
    now, peak = (int(size[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))
    return f"{now:,.0f} MiB, at most {peak:,.0f}"


def _body(partition: int, seq: int) -> bytes:
    spread = (seq * 1024 + partition) * 2654435761 % (1 << 32)  # keys in no order
    return b'{"city":"c%d","n":%d}' % (spread % 9973, spread)


def build(count: int) -> None:
    """One build in this process; prints what it took."""
    source = MadeUp(count)
    design = DesignDocument("d", {"v": View(emit([doc.city, doc.n], doc.n), "_sum")})
    with tempfile.TemporaryDirectory() as name:
        group = Group(Path(name), design, source, PARTITIONS)
        began, wall = time.process_time(), time.perf_counter()
        group.wait_until_current()
        spent, passed = time.process_time() - began, time.perf_counter() - wall
        root = group.header.view_roots[0]
        assert root is not None
        assert Pointer(b"", *root).values == source.count
        size = group.file_size()
        group.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"{source.count:>12,} documents: {spent / source.count * 1e6:.2f} µs of CPU each, "
        f"{spent:,.0f} s of CPU, {passed:,.0f} s; peak {peak / 1024:,.0f} MiB; file {size / 2**20:,.0f} MiB",
        flush=True,
    )


def main(counts: Sequence[str]) -> None:
    """Each size in a process of its own."""
    for count in counts:
        subprocess.run([sys.executable, "-m", __spec__.name, "one", count], check=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["one"]:
        build(int(sys.argv[2]))
    else:
        main(sys.argv[1:] or ["1000000", "10000000"])

"""Measures the view engine beside peers in one run: `python -m tests.benchmarks.view_engine [ROWS]`.

CPU seconds, medians of three. Peers: couchstore's own C tools where `STAGEWRIGHT_COUCHSTORE` names them,
and SQLite.
"""

from __future__ import annotations

import random
import resource
import shutil
import sqlite3
import statistics
import sys
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tests.impl.view_engine import couchstore
from tests.impl.view_engine.rows import SUMMED, Row, empty_header

from stagewright.impl.view_engine import View, ViewEngine, doc, emit
from stagewright.impl.view_engine.design.javascript import JavaScriptMissingError
from stagewright.impl.view_engine.file.disk import RealDisk
from stagewright.impl.view_engine.file.index_file import IndexFile
from stagewright.impl.view_engine.file.masks import mask_of
from stagewright.impl.view_engine.group.partitions import settle
from stagewright.impl.view_engine.index.compactor import Compactor
from stagewright.impl.view_engine.index.writing import pointer, root_of
from stagewright.impl.view_engine.tree.apply import apply, purge
from stagewright.impl.view_engine.tree.build import build
from stagewright.impl.view_engine.tree.entries import (
    back_key,
    back_value,
    read_back_key,
    view_key,
    view_value,
)
from stagewright.impl.view_engine.tree.nodes import BACK_INDEX
from stagewright.impl.view_engine.tree.packed import Operations, Packed, pack
from stagewright.impl.view_engine.tree.read import Range, leaves, reduce_range

PARTITIONS = 1024
REPEATS = 3
CHANGED = 10_000


MAPS = {
    "declared": View(emit([doc.city, doc.n], doc.n), "_sum"),
    "JavaScript": View("function (doc) { emit([doc.city, doc.n], doc.n); }", "_sum"),
    "Python": View(
        lambda document, _meta: [([document["city"], document["n"]], document["n"])], "_sum"
    ),
}


def cpu() -> float:
    """Of this process."""
    use = resource.getrusage(resource.RUSAGE_SELF)
    return use.ru_utime + use.ru_stime


def measured(work: Callable[[], object], used: Callable[[], float] = cpu) -> float:
    times: list[float] = []
    for _ in range(REPEATS):
        start = used()
        work()
        times.append(used() - start)
    return statistics.median(times)


def cpu_of_tools() -> float:
    """Of the C tools alone, not of writing what they are given."""
    use = resource.getrusage(resource.RUSAGE_CHILDREN)
    return use.ru_utime + use.ru_stime


class Bench:
    """One workload of `count` documents, each with one row."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder = folder
        chosen = random.Random(7)
        self.ids: list[Row] = []
        self.rows: list[Row] = []
        for number in range(count):
            name = b"doc%08d" % number
            partition = zlib.crc32(name) % PARTITIONS
            key = b'"%012x"' % chosen.getrandbits(48)
            value = b"%d" % chosen.randrange(1000)
            self.rows.append((view_key(key, name), view_value(partition, [value])))
            self.ids.append((back_key(partition, name), back_value(partition, {0: [key]})))
        changed = chosen.sample(range(count), min(CHANGED, count))
        self.removed = [self.rows[i][0] for i in changed]
        self.new_ids: list[Row] = []
        self.new_rows: list[Row] = []
        for i in changed:
            partition, name = read_back_key(self.ids[i][0])
            key = b'"%012x"' % chosen.getrandbits(48)
            self.new_rows.append((view_key(key, name), self.rows[i][1]))
            entry = back_value(partition, {0: [key]})
            self.new_ids.append((self.ids[i][0], entry))
        self.packed = [b"".join(pack(*row) for row in rows) for rows in (self.ids, self.rows)]
        self.header = empty_header(PARTITIONS)
        self.file = folder / "ours.view.1"

    def build(self) -> None:
        self.file.unlink(missing_ok=True)
        file = IndexFile(RealDisk(self.file, create=True))
        back = build(file, BACK_INDEX, [Packed(self.packed[0], collated=False).sorted()])
        view = build(file, SUMMED, [Packed(self.packed[1], collated=True).sorted()])
        roots = replace(self.header, id_root=root_of(back), view_roots=(root_of(view),))
        file.commit(roots)
        file.close()

    def update(self) -> None:
        file = IndexFile(RealDisk(self.file))
        header = file.last_snapshot().header
        ids = Operations.of(self.new_ids, collated=False)
        rows = Operations.of(self.new_rows, self.removed, collated=True)
        back = apply(file, BACK_INDEX, pointer(header.id_root), ids)
        view = apply(file, SUMMED, pointer(header.view_roots[0]), rows)
        file.flush()
        file.close()
        assert back is not None
        assert view is not None

    def clean_up(self) -> None:
        file = IndexFile(RealDisk(self.file))
        header = file.last_snapshot().header
        gone = mask_of(range(0, PARTITIONS, 8))
        purge(file, BACK_INDEX, pointer(header.id_root), gone)
        purge(file, SUMMED, pointer(header.view_roots[0]), gone)
        file.flush()
        file.close()

    def compact(self) -> None:
        file = IndexFile(RealDisk(self.file))
        header = file.last_snapshot().header
        compactor = Compactor(file, [SUMMED], self.folder / "ours.view.2")
        compactor.copy(header)
        compactor.finish(header, settle)
        compactor.file.close()
        file.close()

    def scan(self) -> None:
        file = IndexFile(RealDisk(self.file, read_only=True))
        root = pointer(file.last_snapshot().header.view_roots[0])
        assert sum(len(list(leaf.rows())) for leaf in leaves(file, SUMMED, root)) == len(self.rows)
        file.close()

    def sums(self) -> None:
        """A thousand ranges."""
        file = IndexFile(RealDisk(self.file, read_only=True))
        root = pointer(file.last_snapshot().header.view_roots[0])
        chosen = random.Random(1)
        for _ in range(1000):
            low, high = sorted(b"\6%012x" % chosen.getrandbits(48) for _ in range(2))
            reduce_range(file, SUMMED, root, Range(low, high))
        file.close()

    def couchstore_build(self) -> None:
        couchstore.build(self.folder, self.header, self.ids, [self.rows], "_sum")

    def couchstore_compact(self) -> None:
        couchstore.compact(self.folder, self.file, "_sum")

    def couchstore_update(self) -> None:
        operations = [*((key, None) for key in self.removed), *self.new_rows]
        operations.sort(key=lambda row: row[0][2:])
        copy = self.folder / "theirs.view.1"
        shutil.copy(self.file, copy)
        couchstore.update(self.folder, copy, sorted(self.new_ids), [operations], "_sum")

    def sqlite_index(self) -> Callable[[], object]:
        base = sqlite3.connect(self.folder / "sqlite")
        base.execute("CREATE TABLE t (key BLOB, value BLOB)")
        base.executemany("INSERT INTO t VALUES (?, ?)", self.rows)
        base.commit()

        def create() -> None:
            base.execute("DROP INDEX IF EXISTS i")
            base.execute("CREATE INDEX i ON t (key, value)")
            base.commit()

        return create

    def whole_engine(self, count: int, view: View) -> float:
        """Documents a CPU second, from the store to the index."""
        folder = self.folder / "engine"
        shutil.rmtree(folder, ignore_errors=True)
        with ViewEngine(folder) as engine:
            engine.put_many(
                (f"d{n}", {"city": f"c{n % 997}", "n": n, "tags": ["a"]}) for n in range(count)
            )
            engine.define("d", {"v": view})
            engine.define("other", {"v": View(emit(doc.none))})
            engine.query("other", "v")  # opens what there is to open
            start = cpu()
            engine.query("d", "v")
            return count / (cpu() - start)


def main(count: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(Path(name), count)
        bench.build()  # compiles
        bench.update()
        print(f"{count:,} documents, {PARTITIONS:,} partitions; CPU seconds, medians of {REPEATS}")
        ours = {work.__name__: measured(work) for work in (bench.build, bench.scan, bench.sums)}
        ours["compact"] = measured(bench.compact)
        theirs: dict[str, float] = {}
        if couchstore.available():
            theirs["build"] = measured(bench.couchstore_build, cpu_of_tools)
            theirs["compact"] = measured(bench.couchstore_compact, cpu_of_tools)
            theirs["update"] = measured(bench.couchstore_update, cpu_of_tools)
        ours["update"] = measured(bench.update)
        ours["clean_up"] = measured(bench.clean_up)
        index = measured(bench.sqlite_index())
        for work, time in ours.items():
            peer = (
                f"  couchstore C {theirs[work]:6.2f}  ({time / theirs[work]:.2f} of it)"
                if work in theirs
                else ""
            )
            print(f"{work:10} {time:6.2f}{peer}")
        print(
            f"one range's _sum: {ours['sums']:.3f} ms; rows read a second: {count / ours['scan']:,.0f}"
        )
        print(f"SQLite CREATE INDEX of the same rows: {index:.2f}")
        for kind, view in MAPS.items():
            try:
                bench.whole_engine(1000, view)  # compiles
                speed = bench.whole_engine(min(count, 200_000), view)
                print(f"end to end, {kind} map: {speed:,.0f} documents a second")
            except JavaScriptMissingError as error:
                print(error)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)

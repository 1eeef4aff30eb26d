"""Measures the view engine beside peers in one run: `python -m tests.benchmarks.view_engine [ROWS]`.

CPU seconds, medians of five. Peers: couchstore's own C tools where `STAGEWRIGHT_COUCHSTORE` names them, SQLite,
and LMDB and DuckDB where they are installed.
"""

from __future__ import annotations

import gc
import random
import resource
import shutil
import statistics
import sys
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tests.benchmarks.view_engine.peers import Lmdb, duckdb_index, is_there, sqlite_index
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
REPEATS = 5
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
        self.alone = folder / "alone.view.1"
        self.in_order = Packed(self.packed[1], collated=True).sorted()

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
        assert sum(len(leaf.rows()) for leaf in leaves(file, SUMMED, root)) == len(self.rows)
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

    def presorted(self) -> None:
        """One tree of rows that are in order."""
        self.alone.unlink(missing_ok=True)
        file = IndexFile(RealDisk(self.alone, create=True))
        build(file, SUMMED, [self.in_order])
        file.flush()
        file.close()

    def unsorted(self) -> None:
        """The same, of rows in no order."""
        self.alone.unlink(missing_ok=True)
        file = IndexFile(RealDisk(self.alone, create=True))
        build(file, SUMMED, [Packed(self.packed[1], collated=True).sorted()])
        file.flush()
        file.close()

    def couchstore_clean_up(self) -> float:
        """Seconds of the C tool, of a copy whose header has an eighth of the partitions in cleanup."""
        copy = self.folder / "cleaned.view.1"
        shutil.copy(self.file, copy)
        file = IndexFile(RealDisk(copy))
        header = file.last_snapshot().header
        gone = mask_of(range(0, PARTITIONS, 8))
        seqs = {p: seq for p, seq in header.seqs.items() if not gone >> p & 1}
        file.commit(replace(header, active=header.active & ~gone, cleanup=gone, seqs=seqs))
        file.close()
        began = cpu_of_tools()
        couchstore.clean_up(copy, 1, "_sum")
        return cpu_of_tools() - began

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


def line(name: str, ours: float, peer: str, theirs: float | None, target: float) -> None:
    """One comparison; a target is how many times the peer's time ours may be."""
    beside = (
        ""
        if theirs is None
        else f"{peer} {theirs:7.2f}   {ours / theirs:5.2f} of it (target {target:g})"
    )
    print(f"{name:34} {ours:7.2f}   {beside}", flush=True)


def main(count: int) -> None:
    """Everything, each peer beside what it is compared with."""
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(Path(name), count)
        bench.build()  # compiles
        bench.update()
        bench.build()
        gc.collect()
        gc.freeze()  # what is measured does not look through the workload's rows, nor the compiler's objects
        print(f"{count:,} documents, {PARTITIONS:,} partitions; CPU seconds, medians of {REPEATS}")
        with_couchstore(bench)
        beside_others(bench)
        for kind, view in MAPS.items():
            try:
                bench.whole_engine(1000, view)  # compiles
                speeds = [bench.whole_engine(min(count, 200_000), view) for _ in range(REPEATS)]
                print(
                    f"end to end, {kind} map: {statistics.median(speeds):,.0f} documents a second"
                )
            except JavaScriptMissingError as error:
                print(error)


def with_couchstore(bench: Bench) -> None:
    """What the original's tools do, too. The file grows with each update and cleanup: they come last."""
    there = couchstore.available()
    theirs = {
        "build": measured(bench.couchstore_build, cpu_of_tools) if there else None,
        "compact": measured(bench.couchstore_compact, cpu_of_tools) if there else None,
        "update": measured(bench.couchstore_update, cpu_of_tools) if there else None,
        "clean": statistics.median([bench.couchstore_clean_up() for _ in range(REPEATS)])
        if there
        else None,
    }
    if there:
        grown = (bench.folder / "theirs.view.1").stat().st_size - bench.file.stat().st_size
        print(f"bytes that couchstore appends for {CHANGED:,} changed documents: {grown:,}")
    line("initial build", measured(bench.build), "couchstore C", theirs["build"], 0.35)
    line("compaction", measured(bench.compact), "couchstore C", theirs["compact"], 1)
    size = bench.file.stat().st_size
    bench.update()
    print(f"bytes that we append: {bench.file.stat().st_size - size:,}")
    line("10,000 changed documents", measured(bench.update), "couchstore C", theirs["update"], 0.6)
    line("cleanup of 1/8", measured(bench.clean_up), "couchstore C", theirs["clean"], 0.7)


def beside_others(bench: Bench) -> None:
    """What general stores do, too: one tree built, scanned, summed."""
    unsorted = measured(bench.unsorted)
    sqlite = measured(sqlite_index(bench.folder, bench.rows))
    line("view tree from unsorted rows", unsorted, "SQLite", sqlite, 1)
    if is_there("duckdb"):
        duckdb = measured(duckdb_index(bench.folder, bench.rows))
        line("view tree from unsorted rows", unsorted, "DuckDB", duckdb, 1)
    bench.build()
    presorted, scan = measured(bench.presorted), measured(bench.scan)
    if is_there("lmdb"):
        peer = Lmdb(bench.folder, bench.rows)
        line("one tree, presorted", presorted, "LMDB", measured(peer.append), 2)
        line("range scan", scan, "LMDB", measured(peer.scan), 1 / 0.6)
    print(f"one range's _sum: {measured(bench.sums):.3f} ms (target 0.3)")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)

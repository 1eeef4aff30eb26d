"""The compactor: copies the trees of a snapshot into a new file, and applies what changed meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from stagewright.impl.storage.folders import sync_folder
from stagewright.impl.view_engine.defects import Defect, has
from stagewright.impl.view_engine.file.disk import RealDisk
from stagewright.impl.view_engine.file.header import IndexHeader, Root
from stagewright.impl.view_engine.file.index_file import IndexFile, Snapshot
from stagewright.impl.view_engine.index.deltas import DeltaLog, read_delta
from stagewright.impl.view_engine.index.writing import pointer, root_of
from stagewright.impl.view_engine.scheduling import THREADS, Scheduler
from stagewright.impl.view_engine.tree.apply import apply
from stagewright.impl.view_engine.tree.build import build
from stagewright.impl.view_engine.tree.nodes import BACK_INDEX, Shape
from stagewright.impl.view_engine.tree.packed import Packed
from stagewright.impl.view_engine.tree.read import EVERY_PARTITION, leaves, wanted_rows

COPY_SIZE = 1 << 20  # bytes of rows that are copied at once


class CompactionStoppedError(Exception):
    """The compaction was stopped, by a change of partition states or by the end of the index."""


@dataclass(frozen=True)
class Compaction:
    """What a compaction did: sizes in bytes, and how many batches of the updater it had to repeat."""

    before: int
    after: int
    batches: int


class Compactor:
    """One compaction, into the file that `path` names with `.compact` added until it is complete."""

    def __init__(
        self,
        source: IndexFile,
        shapes: Sequence[Shape],
        path: Path,
        scheduler: Scheduler = THREADS,
    ) -> None:
        self._scheduler = scheduler
        self._source = source
        self._shapes = (BACK_INDEX, *shapes)
        self.path = path
        self._unfinished = path.with_name(path.name + ".compact")
        self._stop = threading.Event()
        self.deltas = DeltaLog(path.parent, path.name)
        self._unfinished.unlink(missing_ok=True)
        self.file = IndexFile(RealDisk(self._unfinished, create=True))
        self._roots: list[Root | None] = []
        self.batches = 0
        self.filtered = 0  # entries that are left out, of partitions in cleanup

    def stop(self) -> None:
        """Ask it to give up."""
        self._stop.set()

    def copy(self, header: IndexHeader) -> None:
        """The rows of a snapshot, without those of partitions in cleanup.

        The new file starts with an empty snapshot, so that there is one for every rollback.
        """
        nothing: tuple[None, ...] = (None,) * len(header.view_roots)
        seqs = dict.fromkeys(header.seqs, 0)
        frozen = dict.fromkeys(header.unindexable_seqs, 0)
        empty = replace(header, id_root=None, view_roots=nothing, cleanup=0, partition_versions={})
        self.file.commit(replace(empty, seqs=seqs, unindexable_seqs=frozen))
        wanted = EVERY_PARTITION & ~header.cleanup
        for shape, root in zip(self._shapes, (header.id_root, *header.view_roots), strict=True):
            self._scheduler.step()
            copied = build(self.file, shape, self._rows(shape, root, wanted))
            self._roots.append(root_of(copied))

    def catch_up(self) -> bool:
        """Apply what the updater has published; False if there was nothing."""
        taken = self.deltas.take()
        try:
            for path in taken:
                self._check_stop()
                if not has(Defect.compaction_forgets_batches):
                    self._repeat(path)
        finally:
            for path in taken:
                path.unlink()
        return bool(taken)

    def _repeat(self, path: Path) -> None:
        operations = read_delta(path, self._shapes)
        self._roots = [
            root_of(apply(self.file, shape, pointer(root), of_tree))
            for shape, root, of_tree in zip(self._shapes, self._roots, operations, strict=True)
        ]
        self.batches += 1

    def finish(
        self, header: IndexHeader, settled: Callable[[IndexHeader], IndexHeader]
    ) -> Snapshot:
        """Commit the new file as this header's, and give it its name.

        `settled` gives the header after what follows from the new trees: no partition is left to clean.
        """
        self._check_stop()
        made = replace(header, id_root=self._roots[0], view_roots=tuple(self._roots[1:]))
        snapshot = self.file.commit(settled(made))
        self._unfinished.rename(self.path)
        sync_folder(self.path.parent)
        return snapshot

    def give_up(self) -> None:
        """Delete what there is of the new file."""
        self.file.close()
        self._unfinished.unlink(missing_ok=True)
        self.deltas.remove()

    def _rows(self, shape: Shape, root: Root | None, wanted: int) -> Iterator[Packed]:
        parts: list[np.ndarray[tuple[int], np.dtype[np.uint8]]] = []
        size = 0
        for leaf in leaves(self._source, shape, pointer(root), wanted=wanted):
            self._check_stop()
            kept = wanted_rows(leaf, shape, wanted)
            self.filtered += len(leaf) - len(kept)
            parts.append(kept.part(0, len(kept)))
            size += len(parts[-1])
            if size >= COPY_SIZE:
                yield shape.packed(np.concatenate(parts))
                parts, size = [], 0
        if parts:
            yield shape.packed(np.concatenate(parts))

    def _check_stop(self) -> None:
        if self._stop.is_set():
            raise CompactionStoppedError("the compaction was stopped")

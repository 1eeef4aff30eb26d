"""The cleaner: removes the rows of partitions in cleanup, in steps that can be stopped between any two."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from stagewright.impl.view_engine.file.header import IndexHeader
from stagewright.impl.view_engine.file.index_file import IndexFile
from stagewright.impl.view_engine.index.writing import pointer, root_of
from stagewright.impl.view_engine.tree.apply import Work, purge
from stagewright.impl.view_engine.tree.nodes import BACK_INDEX, Shape

STEP = 1 << 20  # bytes that are appended before a header follows


class Cleaner:
    """One run over all trees of an index."""

    def __init__(
        self,
        file: IndexFile,
        shapes: Sequence[Shape],
        checkpoint: Callable[[IndexHeader], IndexHeader],
        step: int = STEP,
    ) -> None:
        """`checkpoint` commits each new header, in which clean partitions are not in cleanup any more."""
        self._file = file
        self._shapes = (BACK_INDEX, *shapes)
        self._checkpoint = checkpoint
        self._step = step
        self._stop = threading.Event()
        self.work = Work()

    def stop(self) -> None:
        """Ask it to end at the next node; what is removed stays removed."""
        self._stop.set()

    def run(self, header: IndexHeader) -> IndexHeader:
        """Purge; gives the last header."""
        while header.cleanup and not self._stop.is_set():
            header = self._checkpoint(self._one_step(header))
        return header

    def _one_step(self, header: IndexHeader) -> IndexHeader:
        start = self._file.end
        self.work.stopped = False

        def enough(_work: Work) -> bool:
            return self._stop.is_set() or self._file.end - start >= self._step

        roots = []
        for shape, root in zip(self._shapes, (header.id_root, *header.view_roots), strict=True):
            left = purge(
                self._file, shape, pointer(root), header.cleanup, enough=enough, work=self.work
            )
            roots.append(root_of(left))
        return replace(header, id_root=roots[0], view_roots=tuple(roots[1:]))

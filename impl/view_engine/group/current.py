"""The index that a group serves now: its file, the file's number, and the last header committed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from stagewright.impl.view_engine.design.design import DesignDocument
from stagewright.impl.view_engine.file.header import IndexHeader
from stagewright.impl.view_engine.file.index_file import IndexFile, Snapshot
from stagewright.impl.view_engine.file.masks import mask_of
from stagewright.impl.view_engine.index.files import create, index_path, open_current


class IndexNotReadyError(Exception):
    """A query that wanted a current index did not get one; the text says why."""


class GroupClosedError(IndexNotReadyError):
    """The group is no longer served: its design document was changed or deleted."""

    def __init__(self) -> None:
        super().__init__("the index was closed")


@dataclass(frozen=True)
class GroupSnapshot:
    """What a query reads: a file, kept open, and one of its snapshots."""

    file: IndexFile
    header: IndexHeader
    design: DesignDocument


class CurrentIndex:
    """The file and its snapshot; changed with the group's lock held."""

    def __init__(
        self,
        folder: Path,
        kind: str,
        design: DesignDocument,
        partitions: int,
        active: Iterable[int] | None,
    ) -> None:
        """Open the newest file, or create one with all partitions active or only those of `active`."""
        self._folder = folder
        self._kind = kind
        self._signature = design.signature
        found = open_current(folder, kind, design.signature)
        self.is_new = found is None
        self.file: IndexFile
        self.number: int
        self.snapshot: Snapshot
        if found is None:
            self.number = 1
            self.file = create(folder, kind, design.signature, 1)
            self.snapshot = self.file.commit(_new_header(design, partitions, active))
        else:
            self.file, self.number, self.snapshot = found

    @property
    def header(self) -> IndexHeader:
        """The last header that was committed."""
        return self.snapshot.header

    @property
    def next_path(self) -> Path:
        """Where a compaction puts its file."""
        return index_path(self._folder, self._kind, self._signature, self.number + 1)

    def replace(self, file: IndexFile, snapshot: Snapshot) -> None:
        """Go over to the file at `next_path`; the old one is deleted, and closed with its last reader."""
        old = self.file
        index_path(self._folder, self._kind, self._signature, self.number).unlink()
        self.file, self.snapshot = file, snapshot
        self.number += 1
        old.close()

    def size(self) -> int:
        """The bytes of the file."""
        return self.file.disk.size()

    def fragmentation(self) -> float:
        """The share of the file that belongs to none of the current trees."""
        size = self.size()
        return max(size - self.header.tree_bytes, 0) / size if size else 0.0


def _new_header(
    design: DesignDocument, partitions: int, active: Iterable[int] | None
) -> IndexHeader:
    present = sorted(range(partitions) if active is None else active)
    return IndexHeader(
        signature=design.signature,
        num_partitions=partitions,
        view_roots=(None,) * len(design.shapes),
        active=mask_of(present),
        seqs=dict.fromkeys(present, 0),
    )

"""How the indexes of a folder are, read from its files: while another process has it open, too."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from stagewright.impl.view_engine.design.catalog import Catalog
from stagewright.impl.view_engine.documents.changes import Position
from stagewright.impl.view_engine.file.disk import RealDisk
from stagewright.impl.view_engine.file.errors import NoHeaderError
from stagewright.impl.view_engine.file.header import IndexHeader
from stagewright.impl.view_engine.file.index_file import IndexFile
from stagewright.impl.view_engine.file.masks import partitions_of
from stagewright.impl.view_engine.index.progress import changes_left


@dataclass(frozen=True)
class IndexState:
    """One index, as its last header has it."""

    designs: tuple[str, ...]  # design documents: equal ones share an index
    views: tuple[str, ...]
    changes: int  # of the documents of its partitions
    indexed: int  # of them
    partitions: Mapping[str, int]  # how many are in which state
    number: int  # of its file; 0: there is none yet
    size: int = 0  # bytes
    unused: float = 0.0  # the share of these that no tree needs
    compacting: bool = False

    @property
    def text(self) -> str:
        """In one line."""
        name = f"{', '.join(self.designs)} ({', '.join(self.views)})"
        if not self.number:
            return f"{name}: no index yet, {self.changes:,} changes"
        shown = ", ".join(f"{count} {state}" for state, count in self.partitions.items() if count)
        return (
            f"{name}: {self.indexed:,} of {self.changes:,} changes indexed; {shown}; file {self.number}: "
            f"{self.size:,} bytes, {self.unused:.0%} unused" + ", compacting" * self.compacting
        )


def index_states(folder: Path) -> list[IndexState]:
    """All indexes of a folder, by their design documents. Raises OSError where there is no such folder."""
    positions = _positions(folder / "documents.sqlite")
    by_signature: dict[bytes, list[str]] = {}
    catalog = Catalog(folder / "designs.json")
    for name, entry in sorted(catalog.entries.items()):
        by_signature.setdefault(entry.signature, []).append(name)
    return [
        _state(folder / "@indexes" / "default", signature, names, catalog, positions)
        for signature, names in by_signature.items()
    ]


def _state(
    folder: Path,
    signature: bytes,
    names: list[str],
    catalog: Catalog,
    positions: Mapping[int, Position],
) -> IndexState:
    views = tuple(sorted(catalog.entries[names[0]].definition))
    total = sum(at.seq for at in positions.values())
    for path in _newest_first(folder, f"main_{signature.hex()}.view."):
        try:
            disk = RealDisk(path, read_only=True)
        except FileNotFoundError:  # a compaction has replaced it: the next look finds the new one
            continue
        with closing(disk):
            try:
                header = IndexFile(disk).last_snapshot().header
            except NoHeaderError:
                continue
            size = disk.size()
        of = {p: at for p, at in positions.items() if p in header.seqs}
        changes = sum(at.seq for at in of.values())
        return IndexState(
            tuple(names), views, changes, changes - changes_left(header, of), _by_state(header),
            int(path.suffix[1:]), size, max(size - header.tree_bytes, 0) / size,
            any(folder.glob(f"main_{signature.hex()}.view.*.compact")),
        )  # fmt: skip
    return IndexState(tuple(names), views, total, 0, {}, 0)


def _newest_first(folder: Path, prefix: str) -> Iterator[Path]:
    found = [p for p in folder.glob(f"{prefix}*") if p.name.removeprefix(prefix).isdigit()]
    yield from sorted(found, key=lambda path: int(path.suffix[1:]), reverse=True)


def _by_state(header: IndexHeader) -> dict[str, int]:
    masks = {"active": header.active, "passive": header.passive, "in cleanup": header.cleanup}
    found = {state: len(partitions_of(mask)) for state, mask in masks.items()}
    return found | {"unindexable": len(header.unindexable_seqs)}


def _positions(path: Path) -> Mapping[int, Position]:
    if not path.exists():
        raise FileNotFoundError(2, "holds no documents: `stagewright view load` some first", path)
    query = "SELECT partition, high_seq FROM partitions"
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        return {p: Position(seq, b"") for p, seq in connection.execute(query)}

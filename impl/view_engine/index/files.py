"""The names of index files, and which of them is current after a crash."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from stagewright.impl.storage.folders import sync_folder
from stagewright.impl.view_engine.file.disk import RealDisk
from stagewright.impl.view_engine.file.errors import NoHeaderError
from stagewright.impl.view_engine.file.index_file import IndexFile, Snapshot

_NAME = re.compile(r"(main|replica)_([0-9a-f]{32})\.view\.(\d+)(\.compact)?")
_LEFTOVER = ".sort"


def index_path(folder: Path, kind: str, signature: bytes, number: int) -> Path:
    """`main_<signature>.view.<number>`; `kind` is main or replica."""
    return folder / f"{kind}_{signature.hex()}.view.{number}"


def remove_leftovers(folder: Path, signatures: Iterable[bytes]) -> list[str]:
    """Delete what no design document uses: files of other signatures, half compacted ones, sort files."""
    used = {signature.hex() for signature in signatures}
    removed: list[str] = []
    for path in sorted(folder.iterdir()):
        match = _NAME.fullmatch(path.name)
        unused = match is not None and (match[2] not in used or match[4] is not None)
        if unused or path.suffix == _LEFTOVER:
            path.unlink()
            removed.append(path.name)
    if removed:
        sync_folder(folder)
    return removed


def open_current(
    folder: Path, kind: str, signature: bytes
) -> tuple[IndexFile, int, Snapshot] | None:
    """The newest file that has a header, with its number; older ones, and newer without, are deleted.

    None if there is no file. A compaction leaves its file under the next number before it removes the old
    one: if both are there, the newer is complete.
    """
    prefix = f"{kind}_{signature.hex()}.view."
    numbers = sorted(
        (
            int(path.name.removeprefix(prefix))
            for path in folder.glob(prefix + "*")
            if _NAME.fullmatch(path.name) and not path.name.endswith(".compact")
        ),
        reverse=True,
    )
    found: tuple[IndexFile, int, Snapshot] | None = None
    for number in numbers:
        path = index_path(folder, kind, signature, number)
        if found is None:
            disk = RealDisk(path)
            disk.sync()  # a header that the last process did not see acknowledged must stay from now on
            file = IndexFile(disk)
            try:
                found = file, number, file.last_snapshot()
                continue
            except NoHeaderError:
                file.close()
        with suppress(FileNotFoundError):
            path.unlink()
    return found


def create(folder: Path, kind: str, signature: bytes, number: int) -> IndexFile:
    """A new, empty file, whose name survives a crash."""
    file = IndexFile(RealDisk(index_path(folder, kind, signature, number), create=True))
    sync_folder(folder)
    return file

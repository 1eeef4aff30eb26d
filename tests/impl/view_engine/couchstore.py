"""Drives the original engine's own C tools, as an outside oracle of the file format.

They are not part of this repository. `STAGEWRIGHT_COUCHSTORE` names a folder with the programs
`couch_view_index_builder`, `couch_view_index_updater`, `couch_view_group_compactor` and
`couch_view_group_cleanup`, built from couchstore 537e799 (May 2014); without it, tests that need them
are skipped. Small files that they wrote lie in `samples/`.
"""

from __future__ import annotations

import os
import struct
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from stagewright.impl.view_engine.file.chunks import header_blocks
from stagewright.impl.view_engine.file.disk import RealDisk
from stagewright.impl.view_engine.file.header import IndexHeader, decode_header, encode_header
from stagewright.impl.view_engine.file.index_file import IndexFile, Snapshot

SAMPLES = Path(__file__).parent / "samples"
INSERT, REMOVE = 2, 1  # as the original numbers operations
Row = tuple[bytes, bytes]
Operation = tuple[bytes, bytes] | tuple[bytes, bytes | None]  # no value: remove

_TOOLS = os.environ.get("STAGEWRIGHT_COUCHSTORE", "")
needs_couchstore = pytest.mark.skipif(not _TOOLS, reason="STAGEWRIGHT_COUCHSTORE names no C tools")


def available() -> bool:
    """Whether the C tools are there."""
    return bool(_TOOLS)


def build(
    folder: Path,
    header: IndexHeader,
    ids: Iterable[Row],
    views: Sequence[Iterable[Row]],
    reduce: str,
) -> Path:
    """A file with these rows, sorted and built by the C tool."""
    empty = folder / "empty.view"
    empty.write_bytes(header_blocks(encode_header(header)))
    made = folder / "built.view.1"
    files = [_records(folder / f"rows{i}", rows, None) for i, rows in enumerate((ids, *views))]
    _run(
        "couch_view_index_builder",
        _group(empty, 0, len(files) - 1, reduce)
        + b"".join(b"%s\n" % bytes(path) for path in (folder, made, *files)),
    )
    return made


def compact(folder: Path, file: Path, reduce: str) -> Path:
    """What the C compactor makes of the last snapshot of a file."""
    snapshot = last_snapshot(file)
    target = folder / f"{file.name}.compact"
    target.write_bytes(b"")
    header = encode_header(snapshot.header)
    given = b"%s\n1\n" % bytes(target)
    given += _group(file, snapshot.position, len(snapshot.header.view_roots), reduce)
    _append_header(
        target, _run("couch_view_group_compactor", given + b"%d\n" % len(header) + header)
    )
    return target


def update(
    folder: Path,
    file: Path,
    ids: Iterable[Operation],
    views: Sequence[Iterable[Operation]],
    reduce: str,
) -> None:
    """Apply operations (a value of None removes) with the C updater; appends to the file."""
    snapshot = last_snapshot(file)
    files = [_records(folder / f"ops{i}", rows, INSERT) for i, rows in enumerate((ids, *views))]
    header = encode_header(snapshot.header)
    given = (
        b"%s\n" % bytes(folder) + _group(file, snapshot.position, len(files) - 1, reduce) + b"u\n"
    )
    given += b"".join(b"%s\n" % bytes(path) for path in files)
    given += b"%d\n%d\n" % (1 << 20, len(header)) + header
    _append_header(file, _run("couch_view_index_updater", given))


def clean_up(file: Path, views: int, reduce: str) -> None:
    """Remove the rows of the partitions in cleanup with the C tool; appends to the file."""
    snapshot = last_snapshot(file)
    _run("couch_view_group_cleanup", _group(file, snapshot.position, views, reduce))


def last_snapshot(file: Path) -> Snapshot:
    disk = RealDisk(file, read_only=True)
    try:
        return IndexFile(disk).last_snapshot()
    finally:
        disk.close()


def _records(path: Path, rows: Iterable[Operation], op: int | None) -> Path:
    with path.open("wb") as file:
        for key, value in rows:
            code = b"" if op is None else bytes([REMOVE if value is None else op])
            body = code + struct.pack(">H", len(key)) + key + (value or b"")
            file.write(struct.pack("=I", len(body)) + body)
    return path


def _group(file: Path, header_at: int, views: int, reduce: str) -> bytes:
    text = b"%s\n%d\n%d\n" % (bytes(file), header_at, views)
    return text + views * (b"1\nv\n%d\n%b" % (len(reduce), reduce.encode()))


def _run(tool: str, given: bytes) -> bytes:
    """Standard input stays open: the tools end when it closes."""
    with subprocess.Popen(
        [str(Path(_TOOLS) / tool)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(given)
        process.stdin.flush()
        said = process.stdout.read()
        wrong = process.stderr.read()
        assert process.wait() == 0, (tool, process.returncode, wrong.decode())
        return said


def _append_header(file: Path, said: bytes) -> None:
    """The C tools say the header, the Erlang side writes it."""
    start = said.index(b"Header Len : ") + len(b"Header Len : ")
    end = said.index(b"\n", start)
    body = said[end + 1 : end + 1 + int(said[start:end])]
    decode_header(body)
    with file.open("ab") as appended:
        appended.write(bytes(-appended.tell() % 4096) + header_blocks(body))

"""A file that is written back piece by piece has all of them, and what is wrong is said."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stagewright.impl.storage import writeback


def test_pieces_of_a_file_are_written_back_one_by_one(tmp_path: Path) -> None:
    path, pieces = tmp_path / "file", [bytes([n]) * 10_000 for n in range(5)]
    with path.open("wb", 0) as out:
        begin = 0
        for piece in pieces:
            out.write(piece)
            writeback.write_back(out.fileno(), begin, len(piece))
            begin += len(piece)
    assert path.read_bytes() == b"".join(pieces)


def test_whoever_cannot_write_back_hears_of_it(tmp_path: Path) -> None:
    reading, writing = os.pipe()  # no file: nothing of it can be on a disk
    try:
        with pytest.raises(OSError, match="Invalid argument"):
            writeback.write_back(writing, 0, 1)
    finally:
        os.close(reading)
        os.close(writing)


def test_a_system_without_the_call_syncs_the_whole_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(writeback, "_sync_file_range", lambda: None)
    monkeypatch.setattr(os, "fsync", synced.append)
    with (tmp_path / "file").open("wb", 0) as out:
        writeback.write_back(out.fileno(), 0, 1)
        assert synced == [out.fileno()]

"""Files that are no traces, or damaged ones, and disks that are full: one clear error that names them all."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from stagewright.spec.errors import InputError
from stagewright.traces import engines
from stagewright.traces.engines import Embedded
from stagewright.traces.validate import validate


def text(lease: Any) -> bytes:
    return "".join(e.to_json() + "\n" for e in lease.walk("lease0", 1, 8)).encode()


def test_all_damaged_files_are_named_at_once(lease: Any, tmp_path: Path) -> None:
    whole = gzip.compress(text(lease))
    for number in range(3):
        (tmp_path / f"{number}.jsonl.gz").write_bytes(whole[: None if number == 1 else 60])
    with pytest.raises(InputError) as caught:
        validate([tmp_path], lease.definition, engine=Embedded(1))
    assert "0.jsonl.gz cannot be read to its end" in caught.value.problem
    assert "2.jsonl.gz cannot be read to its end" in caught.value.problem
    assert "1.jsonl.gz" not in caught.value.problem
    assert caught.value.help.count("take another copy") == 1


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.jsonl", b"", "is empty"),
        ("a.jsonl.gz", b"", "is empty"),
        ("a.parquet", b"", "is empty"),
        ("a.parquet", b"PAR1", "cannot be read as Parquet"),
        ("a.parquet", b"no table", "cannot be read as Parquet"),
        ("a.bin", bytes(1000), "cannot tell what"),
        ("a.log", b"x\n" * 9, "cannot tell what"),
        ("a.jsonl", b"\n\n\n", "there is no event"),
    ],
)
def test_file_that_is_no_trace_is_named(
    name: str, content: bytes, problem: str, lease: Any, tmp_path: Path
) -> None:
    (tmp_path / "b.jsonl").write_bytes(text(lease) if problem != "there is no event" else b"\n")
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=problem) as caught:
        validate([tmp_path / name, tmp_path / "b.jsonl"], lease.definition, engine=Embedded(1))
    assert name in str(caught.value)
    assert caught.value.help


def test_full_disk_is_told(lease: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.jsonl").write_bytes(text(lease))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(engines, "KEPT_MAX", -1)
    monkeypatch.setattr("pickle.dump", full)
    with pytest.raises(InputError, match="No space left on device") as caught:
        validate([tmp_path / "a.jsonl"], lease.definition, engine=Embedded(1))
    assert "TMPDIR" in caught.value.help

"""Counterexamples as files: four forms, each whole or not there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stagewright.checker.counterexample import files, from_itf, write_all
from stagewright.spec.definition import Definition
from stagewright.spec.errors import InputError
from stagewright.spec.verdict import Outcome, PropertyVerdict


def test_four_files_are_named_after_the_property(
    tmp_path: Path, migration: Definition, incomplete: PropertyVerdict
) -> None:
    written = write_all(migration, incomplete, tmp_path / "new" / "folder")
    assert [p.name for p in written] == [
        "reads_are_complete.txt",
        "reads_are_complete.md",
        "reads_are_complete.itf.json",
        "reads_are_complete.html",
    ]
    assert sorted(p.name for p in written[0].parent.iterdir()) == sorted(p.name for p in written)
    assert from_itf(migration, json.loads(written[2].read_text())) == incomplete.run
    assert "```mermaid\nsequenceDiagram\n" in written[1].read_text()
    assert written[0].read_text().startswith("Migration breaks reads_are_complete after 4 steps\n")


def test_equal_counterexamples_make_equal_files(
    tmp_path: Path, migration: Definition, incomplete: PropertyVerdict
) -> None:
    first = [p.read_bytes() for p in write_all(migration, incomplete, tmp_path / "a")]
    assert first == [p.read_bytes() for p in write_all(migration, incomplete, tmp_path / "b")]


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("no deadlock", "no_deadlock"),
        ("tablets.no_lag", "tablets.no_lag"),
        ("../../etc/passwd", "etc_passwd"),
        ("…", "counterexample"),
        ("x" * 300, "x" * 100),
    ],
)
def test_a_property_s_name_becomes_a_safe_file_name(name: str, stem: str) -> None:
    assert files.file_stem(name) == stem


def test_a_directory_that_cannot_be_made_is_named(
    tmp_path: Path, migration: Definition, incomplete: PropertyVerdict
) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match=r"cannot write to .*file"):
        write_all(migration, incomplete, tmp_path / "file")
    assert (tmp_path / "file").read_text() == "in the way"


def test_without_a_run_nothing_is_written(tmp_path: Path, migration: Definition) -> None:
    holds = PropertyVerdict("no_lag", Outcome.HOLDS, "search")
    with pytest.raises(InputError, match="has no run to show"):
        write_all(migration, holds, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "a.txt"
    files.write_whole(target, "old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="No space left"):
        files.write_whole(target, "new")
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]

"""What is waited for is told when it takes long, and why, whenever the reason changes."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("msgspec")

from stagewright.impl.processes import children
from stagewright.impl.processes.children import Children
from stagewright.impl.processes.errors import OperationFailedError
from stagewright.impl.processes.layout import Layout


def waiting(
    tmp_path: Path,
    reasons: list[str],
    monkeypatch: pytest.MonkeyPatch,
    quiet: float,
    patience: float,
) -> list[str]:
    """What is reported while one reason after the other holds something up; with none left, it is done."""
    monkeypatch.setattr(children, "_QUIET", quiet)
    monkeypatch.setattr(children, "LOOK", 0)
    said = list[str]()
    left = list(reasons)
    Children(Layout(tmp_path), said.append, patience, ()).wait(
        "n2 to leave", lambda: not left, why=lambda: left.pop(0)
    )
    return said


def test_each_reason_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reasons = ["2 tablets are on it", "2 tablets are on it", "1 tablet is on it", ""]
    assert waiting(tmp_path, reasons, monkeypatch, 0, 60) == [
        "waits for n2 to leave: 2 tablets are on it",
        "waits for n2 to leave: 1 tablet is on it",
        "waits for n2 to leave",
    ]


def test_what_is_done_soon_is_not_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert waiting(tmp_path, ["n1 is down"], monkeypatch, 60, 60) == []


def test_who_waits_in_vain_is_told_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OperationFailedError, match="in vain for n2 to leave: n1 is down"):
        waiting(tmp_path, ["n1 is down"] * 3, monkeypatch, 60, -1)

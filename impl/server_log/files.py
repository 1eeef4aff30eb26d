"""The logs of a run in a directory: one file a node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

LOGS = "logs"  # the folder beside the traces, with `n1.log` and so on


def write_logs(directory: Path, logs: Mapping[str, Sequence[str]]) -> None:
    """Write them; what an earlier run left there goes."""
    directory.mkdir(parents=True, exist_ok=True)
    for old in directory.glob("*.log"):
        old.unlink()
    for node, lines in logs.items():
        (directory / f"{node}.log").write_text("\n".join([*lines, ""]), "utf-8")

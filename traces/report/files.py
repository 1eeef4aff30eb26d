"""Writes a trace report to a directory: for people, for programs, and to replay."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from stagewright.spec.errors import InputError
from stagewright.traces.coverage import report as coverage_report
from stagewright.traces.coverage.exercised import MachineCoverage
from stagewright.traces.report.page import render_page
from stagewright.traces.report.page_coverage import Drawing
from stagewright.traces.report.results import TraceReport
from stagewright.traces.report.text import as_json, print_report
from stagewright.traces.report.violation_files import (
    FOLDER,
    file_names,
    stale_files,
    violation_files,
)
from stagewright.traces.report.violations_table import write_table

Draw = Callable[[MachineCoverage], Sequence[Drawing]]


def write_report(
    report: TraceReport,
    directory: Path,
    *,
    command: str = "stagewright validate",
    draw: Draw = lambda _: (),
) -> list[Path]:
    """Write every form; each file is there whole or not at all. The files, and the folder of the violations'.

    `command` evaluates the same again; `draw` makes the state diagrams of a machine.

    Raises:
        InputError: the directory cannot be written to.
    """
    folder = directory / FOLDER
    texts = {
        directory / "report.html": _page(report, folder, draw),
        directory / "report.txt": _text(report),
        directory / "report.json": json.dumps(as_json(report), indent=2) + "\n",
    }
    if report.coverage:
        document = coverage_report.as_json(report.coverage)
        texts[directory / "coverage.json"] = json.dumps(document, indent=2) + "\n"
    table = directory / "violations.parquet"
    replayed = violation_files(report, folder, command)
    written = [*texts, table, *([folder] if replayed else [])]
    texts |= {folder / name: text for name, text in replayed.items()}
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for path in stale_files(folder):
            path.unlink()
        if replayed:
            folder.mkdir(exist_ok=True)
        for path, text in texts.items():
            _write(path, text)
        write_table(report, table)
    except OSError as error:
        raise InputError(
            f"cannot write to {directory}: {error.strerror or error}",
            help="make room there, or name another directory",
        ) from error
    return written


def _page(report: TraceReport, folder: Path, draw: Draw) -> str:
    links = {
        number: [f"{folder.name}/{name}" for name in reversed(file_names(number, entity))]
        for number, entity in enumerate(report.entities, 1)
        if entity.explanation is not None and entity.explanation.window is not None
    }
    return render_page(report, [draw(one) for one in report.coverage], links)


def _text(report: TraceReport) -> str:
    from rich.console import Console

    sink = io.StringIO()
    print_report(report, Console(file=sink, width=100))
    return sink.getvalue()


def _write(path: Path, content: str) -> None:
    partial = path.with_name(f".{path.name}.partial")
    try:
        # A trace may hold halves of characters, which UTF-8 has no bytes for.
        partial.write_text(content, encoding="utf-8", errors="backslashreplace", newline="\n")
    except OSError:
        partial.unlink(missing_ok=True)
        raise
    partial.replace(path)

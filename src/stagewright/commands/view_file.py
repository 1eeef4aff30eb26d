"""`stagewright view-file`: what is in the file of an index of the view engine, and whether it is intact."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from stagewright.commands.console.exit_codes import ExitCode
from stagewright.spec.text.counting import counted

if TYPE_CHECKING:
    from stagewright.impl.view_engine.tree.check import FileReport


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of `view-file`."""
    parser.description = (
        "Verify an index file of the view engine or of Couchbase, offline; nothing is repaired.\n\n"
        "It checks blocks, headers, nodes, their order, masks, counts, sizes and reductions, and that the\n"
        "back index and the views agree."
    )
    parser.epilog = (
        "example:\n  stagewright view-file check main_da1eaf6fac28abafd16daa38c3bbbfd7.view.1\n\n"
        "exit codes: 0 intact, 1 damaged, 2 unreadable"
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("action", choices=["check"], help="what to do")
    parser.add_argument("file", type=Path, help="the index file (main_….view.N)")
    parser.add_argument(
        "--all-snapshots",
        action="store_true",
        help="verify the trees of every header, not only of the last one",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def execute(args: argparse.Namespace) -> int:
    """Walk the file and say what is wrong, where."""
    from stagewright.commands.console.output import console
    from stagewright.impl.view_engine.file.disk import RealDisk
    from stagewright.impl.view_engine.tree.check import check_file
    from stagewright.spec.errors import InputError

    try:
        disk = RealDisk(args.file, read_only=True)
        if not args.file.is_file():
            raise IsADirectoryError(21, "Is not a file")
    except OSError as error:
        raise InputError(f"{args.file} cannot be read: {error.strerror}") from error
    try:
        report = check_file(disk, all_snapshots=args.all_snapshots)
    finally:
        disk.close()
    if args.json:
        print(json.dumps({"file": str(args.file), **asdict(report)}, indent=2))
    else:
        for line in _lines(report):
            console().print(line, highlight=False, markup=False, soft_wrap=True)
    return ExitCode.VIOLATED if report.problems else ExitCode.HOLDS


def _lines(report: FileReport) -> list[str]:
    shown = ", ".join(f"{count} {name}" for name, count in report.partitions.items() if count)
    last = f", the last at byte {report.header_at:,}" if report.headers else ""
    lines = [
        f"{report.size:,} bytes, {report.headers} headers{last}",
        f"partitions: {shown or 'none'}",
    ]
    for tree in report.trees:
        reduces = f", reduces: {', '.join(tree.reduces)}" if tree.reduces else ""
        lines.append(
            f"{tree.name}: {counted(tree.rows, 'row')}, {counted(tree.values, 'value')}, {counted(tree.leaves, 'leaf', 'leaves')}, "
            f"{tree.inner_nodes:,} inner nodes, depth {tree.depth}, {tree.bytes:,} bytes{reduces}"
        )
    lines.append(f"fragmentation: {report.fragmentation:.0%}")
    lines += (f"note: {note}" for note in report.notes)
    lines += (f"✗ at byte {p.position:,}, {p.tree}: {p.what}" for p in report.problems)
    lines.append("✗ damaged" if report.problems else "✓ intact")
    return lines

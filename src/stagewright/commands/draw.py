"""Draws a machine: the diagram of its states, and the table of what they mean."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from stagewright.commands.exit_codes import ExitCode
from stagewright.commands.machine_flags import add_machine, machine_from
from stagewright.spec.errors import InputError

if TYPE_CHECKING:
    from stagewright.commands.machine_facts import EnumFacts
    from stagewright.spec.state_diagram import Diagram

_EXAMPLE = """\
examples:
  stagewright draw tablet-migration
  stagewright draw tablet-migration --profile seed --to svg > stages.svg
  stagewright draw tablet-migration --table --to svg > stage-table.svg
  stagewright draw tablet-migration --variable barrier --to dot
  stagewright draw my/machine.py:Lease --out drawings

The edges are read off the actions: for each state, what an action requires and assigns. Actions whose target
depends on more than that one variable are named in a comment. Mermaid is what GitHub and many editors
show; SVG is laid out by Graphviz, or by graphviz-pure, which the extra `diagrams` brings."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``stagewright draw``."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = f"{_EXAMPLE}\n\n{parser.epilog or ''}"
    add_machine(parser)
    parser.add_argument("--profile", default="", help="the version to draw (default: the newest)")
    parser.add_argument(
        "--variable", default="", help="whose states (default: the one with the most edges)"
    )
    parser.add_argument(
        "--table", action="store_true", help="the table of the states and their columns instead"
    )
    parser.add_argument(
        "--to", choices=("mermaid", "svg", "dot"), help="the form (default: mermaid)"
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="write diagram and table there, each as Mermaid and as SVG",
    )


def execute(args: argparse.Namespace) -> int:
    """Draw to the terminal, or all forms into a directory."""
    from stagewright.commands.output import check_directory
    from stagewright.spec.state_diagram import diagram_of

    if args.out is not None and (args.to or args.table):
        flag = "--table" if args.table else f"--to {args.to}"
        raise InputError(f"--out writes every form, also without {flag}", help=f"drop {flag}")
    check_directory("--out", args.out)
    definition = machine_from(args.machine, args.profile)
    diagram = diagram_of(definition, args.variable)
    table = _table(diagram)
    if args.out is None:
        sys.stdout.write(_text(diagram, table if args.table else None, args.to or "mermaid"))
        return ExitCode.HOLDS
    name = (
        f"{args.machine.rpartition('/')[2].replace('.py', '').replace(':', '.')}.{diagram.variable}"
    )
    for suffix, form in ((".mmd", "mermaid"), (".svg", "svg")):
        _write(args.out / f"{name}{suffix}", _text(diagram, None, form))
        _write(args.out / f"{name}-table{suffix}", _text(diagram, table, form))
    return ExitCode.HOLDS


def _table(diagram: Diagram) -> EnumFacts:
    from stagewright.commands.machine_facts import enum_facts

    return enum_facts(type(diagram.members[0]))


def _text(diagram: Diagram, table: EnumFacts | None, form: str) -> str:
    from stagewright.commands.diagram_dot import diagram_dot, table_dot
    from stagewright.commands.state_diagram import render_diagram, render_table

    if form == "mermaid":
        if table is None:
            return render_diagram(diagram)
        return render_table((table.name, *table.columns), table.rows)
    dot = diagram_dot(diagram) if table is None else table_dot(table)
    if form == "dot":
        return dot
    from stagewright.commands.graphviz import svg_of

    return svg_of(dot)


def _write(file: Path, text: str) -> None:
    from stagewright.checker.counterexample.files import write_whole

    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, text)
    print(f"written: {file}", file=sys.stderr)

"""Draws a machine: the diagram of its states, and the table of what they mean."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from stagewright.commands.console.exit_codes import ExitCode
from stagewright.commands.console.machine_flags import (
    add_machine,
    add_scope,
    machine_from,
    positive,
)
from stagewright.spec.errors import InputError

if TYPE_CHECKING:
    from stagewright.commands.facts.facts import EnumFacts
    from stagewright.spec.definition import Definition
    from stagewright.spec.text.state_diagram import Diagram

_EXAMPLE = """\
examples:
  stagewright draw tablet-migration
  stagewright draw tablet-migration --profile seed --to svg > stages.svg
  stagewright draw tablet-migration --table --to svg > stage-table.svg
  stagewright draw tablet-migration --variable barrier --to dot
  stagewright draw index-permissions --size index=2 --budget crashes=1
  stagewright draw my/machine.py:Lease --out drawings

The diagram has the edges that some run takes: the machine is searched at its default scope, or at the one that
--size and --budget describe. Edges that are found only at the definition's other scopes (`exercised_at`)
are dashed, or marked by a star in Mermaid. A comment lists the edges that the guards alone would allow but
no run takes. If there are more than --max-states states, the picture says how many were searched. GitHub and
many editors show Mermaid; SVG is laid out by Graphviz, or by graphviz-pure, which
the extra `diagrams` installs."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``stagewright draw``."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = f"{_EXAMPLE}\n\n{parser.epilog or ''}"
    add_machine(parser)
    parser.add_argument("--profile", default="", help="the version to draw (default: the newest)")
    parser.add_argument(
        "--variable",
        default="",
        help="the variable whose states to draw (default: the one with the most edges)",
    )
    add_scope(parser)
    parser.add_argument(
        "--max-states",
        type=positive,
        metavar="N",
        help="search at most N states at each scope (default: a million)",
    )
    parser.add_argument(
        "--table", action="store_true", help="draw the table of states and their columns instead"
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
    from stagewright.commands.console.output import check_directory

    if args.out is not None and (args.to or args.table):
        flag = "--table" if args.table else f"--to {args.to}"
        raise InputError(f"--out writes every form, also without {flag}", help=f"drop {flag}")
    check_directory("--out", args.out)
    definition = machine_from(args.machine, args.profile)
    diagram = _diagram(definition, args)
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


def _diagram(definition: Definition, args: argparse.Namespace) -> Diagram:
    """The diagram asked for; of a table only the members matter, and nothing is searched for it.

    Raises:
        InputError: a table is to be drawn, and flags say how to search.
    """
    from stagewright.checker.reached_edges import MOST_STATES
    from stagewright.commands.console.machine_flags import scope_from
    from stagewright.commands.pages.reached_diagram import reached_diagram
    from stagewright.spec.text.state_diagram import diagram_of

    if args.table:
        for flag in ("size", "budget", "max_states"):
            if getattr(args, flag):
                name = f"--{flag.replace('_', '-')}"
                raise InputError(f"{name} has no use for a table", help=f"drop {name}, or --table")
        return diagram_of(definition, args.variable)
    asked = args.size or args.budget
    return reached_diagram(
        definition,
        args.variable,
        scope_from(definition, args.size, args.budget) if asked else None,
        states=args.max_states or MOST_STATES,
        progress=sys.stderr,
    )


def _table(diagram: Diagram) -> EnumFacts:
    from stagewright.commands.facts.of_definition import enum_facts

    return enum_facts(type(diagram.members[0]))


def _text(diagram: Diagram, table: EnumFacts | None, form: str) -> str:
    from stagewright.commands.pages.dot import diagram_dot, table_dot
    from stagewright.commands.pages.state_diagram import render_diagram, render_table

    if form == "mermaid":
        if table is None:
            return render_diagram(diagram)
        return render_table((table.name, *table.columns), table.rows)
    dot = diagram_dot(diagram) if table is None else table_dot(table)
    if form == "dot":
        return dot
    from stagewright.commands.pages.graphviz import svg_of

    return svg_of(dot)


def _write(file: Path, text: str) -> None:
    from stagewright.checker.counterexample.files import write_whole

    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, text)
    print(f"written: {file}", file=sys.stderr)

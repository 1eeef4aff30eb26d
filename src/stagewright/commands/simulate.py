"""`stagewright simulate`: instances of any machine take enabled steps at random and record a trace."""

from __future__ import annotations

import argparse
import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from stagewright.commands.console.exit_codes import ExitCode
from stagewright.spec.text.counting import counted

if TYPE_CHECKING:
    from stagewright.impl.runtime.walk import Walk
    from stagewright.spec.definition import Definition
    from stagewright.spec.scope import Scope

_EXAMPLE = """\
examples:
  stagewright simulate my/machine.py --instances 100 --seed 7 --out walks
  stagewright simulate tablet-migration --profile scylla-2025.4 --steps 500 --json

Each instance is a state machine of the `transitions` library, made from the definition: it takes no step
that the definition does not enable. The same arguments give the same trace.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``stagewright simulate``."""
    from stagewright.commands.console.machine_flags import add_machine, add_scope, positive

    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = "Let instances of a machine take random steps, and record their trace."
    parser.epilog = f"{_EXAMPLE}\n{parser.epilog or ''}"
    add_machine(parser)
    parser.add_argument("--profile", default="", help="the version to run (default: the newest)")
    add_scope(parser)
    add = parser.add_argument
    add("--instances", type=positive, default=10, metavar="N", help="instances (default: 10)")
    add(
        "--steps",
        type=positive,
        default=100,
        metavar="N",
        help="steps of each, at most (default: 100)",
    )
    add("--seed", type=int, default=0, metavar="N", help="random seed (default: 0)")
    add(
        "--out",
        type=Path,
        metavar="DIR",
        help="where to write trace.jsonl (default: artifacts/walk-SEED)",
    )
    add("--json", action="store_true", help="print one JSON object")


def execute(args: argparse.Namespace) -> int:
    """Let the instances walk, and say what happened."""
    from stagewright.commands.console.machine_flags import machine_from, scope_from
    from stagewright.commands.console.output import check_directory
    from stagewright.impl.runtime.walk import walk
    from stagewright.spec.errors import InputError

    definition = machine_from(args.machine, args.profile)
    scope = scope_from(definition, args.size, args.budget)
    out: Path = args.out or Path("artifacts") / f"walk-{args.seed}"
    trace = out / "trace.jsonl"
    check_directory("--out", out)
    try:
        out.mkdir(parents=True, exist_ok=True)
        trace.touch()
    except OSError as error:
        raise InputError(f"--out {out}: {error.strerror}", help="name another directory") from None
    done = walk(
        definition,
        scope,
        instances=args.instances,
        steps=args.steps,
        seed=args.seed,
        trace=trace,
    )
    if args.json:
        print(json.dumps(_as_json(definition, scope, args.seed, done), indent=2))
    else:
        _print(definition, scope, args.seed, done)
        _print_validation(args, definition, done)
    return ExitCode.HOLDS


def _as_json(definition: Definition, scope: Scope, seed: int, done: Walk) -> dict[str, object]:
    return {
        "machine": definition.name,
        "profile": definition.profile,
        "scope": str(scope),
        "seed": seed,
        "instances": done.instances,
        "steps": done.steps,
        "stuck": done.stuck,
        "at_bounds": done.at_bounds,
        "fired": dict(done.fired),
        "trace": str(done.trace),
    }


def _print(definition: Definition, scope: Scope, seed: int, done: Walk) -> None:
    from rich.table import Table

    from stagewright.commands.console.output import console

    out = console()
    profile = f" ({definition.profile})" if definition.profile else ""
    out.print(f"{definition.name}{profile}, {scope}: {done.instances} instances, seed {seed}")
    table = Table(box=None, show_header=False, pad_edge=False)
    for action, times in done.fired.items():
        table.add_row(f"  {action}", f"{times:,}" if times else "never")
    out.print(table)
    stuck = f"; {done.stuck} came to where no step is enabled" if done.stuck else ""
    if done.at_bounds:
        stuck += f"; {done.at_bounds} came to the bounds of their numbers"
    out.print(f"{counted(done.steps, 'step')}{stuck}")
    out.print(f"trace: {done.trace}", soft_wrap=True)


def _print_validation(args: argparse.Namespace, definition: Definition, done: Walk) -> None:
    """The command that validates the trace: it names a user's machine, and sizes that were chosen."""
    from stagewright.commands.console.output import console
    from stagewright.machines import SHIPPED

    words = ["stagewright", "validate", str(done.trace)]
    if args.machine not in SHIPPED:
        named = args.machine if ":" in args.machine else f"{args.machine}:{definition.name}"
        words += ["--machine", named]
    for size in args.size:
        words += ["--size", size]
    console().print(f"validate it: {shlex.join(words)}", soft_wrap=True, highlight=False)

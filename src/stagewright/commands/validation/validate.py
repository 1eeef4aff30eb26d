"""Validates recorded traces, on Spark or without: whether each entity did only what its definition allows."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from stagewright.commands.console.machine_flags import (
    add_sizes,
    positive,
    scope_from,
)
from stagewright.commands.reports.writing import add_ci_reports, ci_reports
from stagewright.commands.validation.engine import (
    add_engine,
    megabytes,
)
from stagewright.spec.errors import InputError
from stagewright.traces.readers.formats import choices

if TYPE_CHECKING:
    from stagewright.spec.definition import Definition
    from stagewright.spec.machine import Machine
    from stagewright.spec.scope import Scope
    from stagewright.traces.events.observability import HiddenSteps


_EXAMPLE = """\
examples:
  stagewright validate runs/trace.jsonl
  stagewright validate node1.log node2.log --format scylla-log --profile scylla-2025.4
  stagewright validate cluster/ --profile scylla-2025.4 --profile scylla-2026.2     one of the two releases wrote it
  stagewright validate support-bundle.tar.gz     zip and tar files are unpacked during the run
  stagewright validate app.log --mapping app.toml
  stagewright validate traces/ --machine my/machine.py:Counter --json --out report
  stagewright validate traces/ --engine embedded --explain
  stagewright validate traces/ --together my/cluster.py:Cluster --group '^(.*):'
  stagewright validate traces/ --entity 'tablet7'     what is wrong with one entity
  stagewright validate traces/ --state validated     run again tomorrow, it reads only what is new
  stagewright validate --follow traces/ --state validated --idle 60

Each entity gets its own verdict: ok, violation (no run of the definition explains it), gap (events
are missing), unparsed (a line is not an event) or undecided (too many possible states). The exit code is
1 if there is a violation, and 3 if there are only gaps, unparsed lines, undecided entities or, with
--skip-damaged, files that cannot be read.

With --together, the invariants of a system are checked over the traces of its parts. An invariant about single
entities needs no order of events; one that relates entities is checked on all entities of a trace
(or of a --group) in the order of their events' times, and is undecided where events have no time.

--out DIR receives report.html, report.txt, report.json, violations.parquet (every entity that is not ok),
coverage.json (the parts of each definition that the traces exercised), and, in violations/, the last events of
each violation as ITF and as a test that replays them against the definition.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``stagewright validate``."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = f"{_EXAMPLE}\n{parser.epilog or ''}"
    parser.add_argument(
        "paths",
        nargs="*",
        type=Path,
        metavar="PATH",
        help="a file, a directory, or an archive (zip, tar)",
    )
    parser.add_argument(
        "--follow",
        metavar="SOURCE",
        help="with --state: validate new files in a directory, or lines from tcp://HOST:PORT, as they come",
    )
    parser.add_argument(
        "--idle",
        type=positive,
        metavar="SECONDS",
        help="stop --follow after SECONDS without new input",
    )
    _add_evaluating(parser)
    _add_reading(parser)
    parser.add_argument(
        "--together",
        action="append",
        default=[],
        metavar="SYSTEM",
        help="check this system's invariants over the traces of its parts: a shipped name or path.py:Class",
    )
    parser.add_argument(
        "--group",
        default="",
        metavar="REGEX",
        help="with --together: relate only entities in whose names this matches the same text "
        "(default: all entities of a trace)",
    )
    add_engine(parser)
    parser.add_argument(
        "--explain", action="store_true", help="describe how the input was processed, and why"
    )
    parser.add_argument(
        "--state",
        type=Path,
        metavar="DIR",
        help="continue from the last run with this directory: read only new input",
    )
    parser.add_argument(
        "--workers", type=positive, metavar="N", help="use N threads (default: one per core)"
    )
    parser.add_argument(
        "--driver-memory",
        type=megabytes,
        metavar="SIZE",
        help="driver memory of the Spark session that validate starts, such as 1g or 900m (default: 2g)",
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument(
        "--entity",
        action="append",
        default=[],
        metavar="NAME",
        help="show only what is wrong with this entity, or with those that match a pattern (`tablet*`); repeatable",
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="write the report files described below to DIR"
    )
    add_ci_reports(parser)


def _add_evaluating(parser: argparse.ArgumentParser) -> None:
    """Declare what says which definition to check against, and how."""
    parser.add_argument(
        "--machine",
        metavar="NAME",
        help="a shipped name or path/to/file.py:Class (default: as named in the events)",
    )
    parser.add_argument(
        "--profile",
        action="append",
        default=[],
        metavar="NAME",
        help="the version to check against (default: as named in the events); repeat it, or "
        "write `any`, to try several",
    )
    add_sizes(parser)
    parser.add_argument(
        "--max-states",
        type=positive,
        metavar="N",
        help="give up on an entity when an event has more than N candidate states",
    )


def _add_reading(parser: argparse.ArgumentParser) -> None:
    """Declare what says how the files are to be read."""
    parser.add_argument(
        "--format",
        choices=("auto", *choices()),
        default="auto",
        metavar="FORMAT",
        help=f"the format of the files, one of {', '.join(choices())} (default: auto, by name and content)",
    )
    parser.add_argument(
        "--mapping",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="a TOML file that says how lines or columns become events (docs/readers.md); "
        "repeat it if the same rows are events of several machines",
    )
    parser.add_argument(
        "--hidden-steps",
        default="",
        metavar="ACTIONS",
        help="actions that are not recorded, separated by commas, or `all`",
    )
    parser.add_argument(
        "--ignore-fingerprint",
        action="store_true",
        help="accept traces recorded with another version of the definition",
    )
    parser.add_argument(
        "--skip-damaged",
        action="store_true",
        help="skip what cannot be read, and check the rest; the exit code is then never 0",
    )


def execute(args: argparse.Namespace) -> int:
    """Validate, print the report, and return what it comes to."""
    from stagewright.commands.console.output import check_directory
    from stagewright.commands.validation.once import validate_once
    from stagewright.commands.validation.traced_machines import (
        machine_meant,
        profiles_known,
        resolver,
    )
    from stagewright.traces.mapping.load import mapping_of
    from stagewright.traces.options import Options

    # What can be refused without Spark is refused before it starts.
    check_directory("--out", args.out)
    check_directory("--state", args.state)
    reports = ci_reports(args)
    _check_source(args)
    resolve = resolver(args.machine)
    profile, candidates = _profiles(args.profile)
    options = Options(
        scope=_scope(args.size),
        profile=profile,
        candidates=candidates,
        profiles_of=profiles_known(args.machine),
        machine=machine_meant(args.machine),
        form=args.format,
        hidden=_hidden(args.hidden_steps),
        ignore_fingerprint=args.ignore_fingerprint,
        skip_damaged=args.skip_damaged,
        mapping=args.mapping[0] if args.mapping else None,
        mappings_beside=tuple(args.mapping[1:]),
        together=_systems(args),
        group=args.group,
        **({"max_states": args.max_states} if args.max_states else {}),
    )
    mapping = mapping_of(options, resolve)
    if args.follow:
        from stagewright.commands.validation.follow import follow_source

        return follow_source(resolve, options, mapping, args)
    return validate_once(resolve, options, mapping, reports, args)


def _profiles(given: list[str]) -> tuple[str, tuple[str, ...]]:
    """The one profile to check against, or else all candidates."""
    names = tuple(dict.fromkeys(given))
    return (names[0], ()) if len(names) == 1 and names[0] != "any" else ("", names)


def _check_source(args: argparse.Namespace) -> None:
    if bool(args.paths) == bool(args.follow):
        raise InputError(
            "give files and directories, or --follow SOURCE",
            help="name the recorded files, or the place where they are being recorded",
        )
    if args.idle and not args.follow:
        raise InputError("--idle needs --follow SOURCE", help="without it the run ends by itself")
    if args.follow and args.state is None:
        raise InputError("--follow needs --state DIR", help="progress is kept there between inputs")
    if args.master and args.engine == "embedded":
        raise InputError("--master is for Spark", help="leave out --engine embedded, or --master")
    if args.follow and args.engine == "embedded":
        raise InputError("--follow is done by Spark", help="leave out --engine embedded")
    if args.follow and (args.junit or args.sarif or args.report):
        raise InputError(
            "--junit, --sarif and --report are of a run that has an end, and --follow has many runs",
            help="take --out DIR, or --state without --follow again and again",
        )


def _scope(sizes: list[str]) -> Callable[[Definition], Scope]:
    def scope(definition: Definition) -> Scope:
        return scope_from(definition, sizes, [f"{b.name}=any" for b in definition.budgets])

    return scope


def _systems(args: argparse.Namespace) -> tuple[type[Machine], ...]:
    from stagewright.machines import SHIPPED
    from stagewright.spec.loading import find

    if args.group and not args.together:
        raise InputError("--group needs --together SYSTEM", help="name the system to check")
    return tuple(find(name, SHIPPED) for name in args.together)


def _hidden(text: str) -> HiddenSteps:
    from stagewright.traces.events.observability import ALL_HIDDEN, HiddenSteps

    if text == "all":
        return ALL_HIDDEN
    return HiddenSteps(frozenset(name.strip() for name in text.split(",") if name.strip()))

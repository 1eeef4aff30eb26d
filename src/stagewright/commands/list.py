"""`stagewright list`: the shipped machines, their profiles and how large their checks are by default."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass

from stagewright.commands.exit_codes import ExitCode


def configure(parser: argparse.ArgumentParser) -> None:
    """The flags of `list`."""
    parser.description = "Name the shipped machines, with their profiles and default scopes."
    parser.epilog = "example:\n  stagewright list --json"
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def execute(args: argparse.Namespace) -> int:
    """Define each shipped machine and print a row for it."""
    rows = [_row(name) for name in _shipped()]
    if args.json:
        print(json.dumps({"machines": [asdict(row) for row in rows]}, indent=2))
        return ExitCode.HOLDS
    from rich.table import Table

    from stagewright.commands.output import console

    table = Table("machine", "what it is", "profiles (the last is the default)", box=None)
    for row in rows:
        table.add_row(row.name, row.summary, ", ".join(row.profiles))
    console().print(table)
    return ExitCode.HOLDS


def _shipped() -> list[str]:
    from stagewright.machines import SHIPPED

    return list(SHIPPED)


@dataclass(frozen=True)
class _Row:
    name: str
    machine: str  # module:Class
    summary: str
    profiles: list[str]
    scope: str
    variables: int
    actions: int
    properties: int


def _row(name: str) -> _Row:
    from stagewright.machines import SHIPPED
    from stagewright.spec.define import define
    from stagewright.spec.loading import find
    from stagewright.spec.machine import profile_names
    from stagewright.spec.scope import scope_of

    machine = find(name, SHIPPED)
    definition = define(machine)
    return _Row(
        name=name,
        machine=f"{machine.__module__}:{machine.__qualname__}",
        summary=definition.doc.partition("\n")[0],
        profiles=profile_names(machine),
        scope=str(scope_of(definition)),
        variables=len(definition.variables),
        actions=len(definition.actions),
        properties=len(definition.properties),
    )

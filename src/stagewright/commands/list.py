"""`stagewright list`: the shipped machines, their profiles and how large their checks are by default.

To define all machines takes seconds, so the rows are read from `machines/catalog.json`, which is made by
`stagewright list --fresh --json > machines/catalog.json`; a test holds it against the definitions.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from importlib import resources
from itertools import groupby

from stagewright.commands.console.exit_codes import ExitCode


def configure(parser: argparse.ArgumentParser) -> None:
    """The flags of `list`."""
    parser.description = (
        "List the shipped machines by database, with their profiles and default scopes."
    )
    parser.epilog = f"example:\n  stagewright list --json\n\n{parser.epilog or ''}"
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--fresh", action="store_true", help="define every machine instead of reading the catalog"
    )


def execute(args: argparse.Namespace) -> int:
    """Print a row for each shipped machine."""
    rows = _defined() if args.fresh else _catalog()
    if args.json:
        print(json.dumps({"machines": [asdict(row) for row in rows]}, indent=2))
        return ExitCode.HOLDS
    from rich.table import Table

    from stagewright.commands.console.output import console

    table = Table("machine", "what it is", "profiles (the last is the default)", box=None)
    for room, of_room in groupby(rows, lambda row: row.room):
        table.add_row(f"[bold]{room}[/bold]")
        for row in of_room:
            table.add_row(f"  {row.name}", row.summary, ", ".join(row.profiles))
    console().print(table)
    return ExitCode.HOLDS


def _defined() -> list[_Row]:
    from stagewright.machines import SHIPPED

    return [_row(name) for name in SHIPPED]


def _catalog() -> list[_Row]:
    text = resources.files("stagewright.machines").joinpath("catalog.json").read_text("utf-8")
    return [_Row(**row) for row in json.loads(text)["machines"]]


@dataclass(frozen=True)
class _Row:
    name: str
    room: str  # the folder it lies in: of a database and a subject
    machine: str  # module:Class
    summary: str
    profiles: list[str]
    scope: str
    variables: int
    actions: int
    properties: int


def _row(name: str) -> _Row:
    from stagewright.machines import SHIPPED, room_of
    from stagewright.spec.define import define
    from stagewright.spec.loading import find
    from stagewright.spec.machine import profile_names
    from stagewright.spec.scope import scope_of

    machine = find(name, SHIPPED)
    definition = define(machine)
    return _Row(
        name=name,
        room=room_of(name),
        machine=f"{machine.__module__}:{machine.__qualname__}",
        summary=definition.doc.partition("\n")[0],
        profiles=profile_names(machine),
        scope=str(scope_of(definition)),
        variables=len(definition.variables),
        actions=len(definition.actions),
        properties=len(definition.properties),
    )

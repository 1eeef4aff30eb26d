"""`stagewright mutate --known`: finds the known bugs again, each in the machine that it was made in.

As JSON: {"bugs": [{"id", "reference", "machine", "profile", "found", "by", "depth", "states", "scope", "story",
"problem", "seconds"}], "not_found": [{"id", "reference", "absence", "reason"}], "found", "of"}.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from stagewright.commands.console.exit_codes import ExitCode

if TYPE_CHECKING:
    from rich.console import RenderableType

    from stagewright.checker.mutation.known import Rediscovery
    from stagewright.spec.known_bugs import KnownBug, NotFound

    Rows = Sequence[tuple[KnownBug, Rediscovery]]


def known(args: argparse.Namespace) -> int:
    """Check every known bug (of one machine, if one is named), print, and return the exit code."""
    from stagewright.checker.engines import cores
    from stagewright.checker.limits import Limits
    from stagewright.checker.mutation.known import rediscover_all
    from stagewright.commands.console.output import console
    from stagewright.machines import SHIPPED
    from stagewright.machines.known_bugs import KNOWN_BUGS, NOT_FOUND

    machine: str = args.machine or ""
    own = machine and machine not in SHIPPED
    bugs = _of_user(machine) if own else _of_machine(KNOWN_BUGS, args.machine)
    absent = () if machine else NOT_FOUND

    def on_found(bug: KnownBug, found: Rediscovery) -> None:
        mark = "found" if found.found else "NOT FOUND"
        print(f"  {bug.id} {mark}, {found.seconds:.1f} s", file=sys.stderr, flush=True)

    limits = Limits(states=args.max_states, seconds=args.per_mutant)
    workers = cores() if args.workers is None else args.workers
    found = rediscover_all(bugs, limits, workers=workers, on_found=on_found)
    rows = list(zip(bugs, found, strict=True))
    if args.out:
        from stagewright.checker.counterexample.files import write_whole

        args.out.mkdir(parents=True, exist_ok=True)
        write_whole(args.out / "known-bugs.json", _json(rows, absent) + "\n")
    if args.json:
        print(_json(rows, absent))
    else:
        console().print(_table(rows, absent), soft_wrap=True)
    return ExitCode.HOLDS if all(r.found for r in found) else ExitCode.VIOLATED


def _of_user(name: str) -> list[KnownBug]:
    """Those that a user's file or module declares; with a class, those of that machine alone."""
    from stagewright.spec.errors import InputError
    from stagewright.spec.known_bugs import known_bugs_in
    from stagewright.spec.loading import module_of

    module = module_of(name)
    _, _, class_name = name.partition(":")
    found = [
        bug
        for bug in known_bugs_in(vars(module))
        if not class_name or any(base.__name__ == class_name for base in bug.machine.__mro__)
    ]
    if not found:
        raise InputError(
            f"{name} declares no known bug",
            help="mark a subclass that has the mistake with `@known_bug(...)`, and describe it in its docstring",
        )
    return found


def _of_machine(bugs: Sequence[KnownBug], name: str | None) -> list[KnownBug]:
    """Those whose right machine is the named one, or inherits from it."""
    from stagewright.machines import SHIPPED
    from stagewright.spec.errors import InputError
    from stagewright.spec.loading import find

    if name is None:
        return list(bugs)
    machine = find(name, SHIPPED)
    mine = [bug for bug in bugs if issubclass(bug.right, machine)]
    if not mine:
        raise InputError(
            f"no known bug is one of {machine.__name__}", help="leave the machine out to see all"
        )
    return mine


def _json(rows: Rows, absent: Sequence[NotFound]) -> str:
    document = {
        "bugs": [
            {
                "id": bug.id,
                "reference": bug.reference,
                "machine": bug.right.__name__,
                "profile": bug.profile,
                "found": found.found,
                "by": list(found.by),
                "depth": found.depth,
                "states": found.states,
                "scope": found.scope,
                "story": bug.story,
                "problem": found.problem,
                "seconds": round(found.seconds, 3),
            }
            for bug, found in rows
        ],
        "not_found": [
            {
                "id": bug.id,
                "reference": bug.reference,
                "absence": bug.absence.value,
                "reason": bug.reason,
            }
            for bug in absent
        ],
        "found": sum(found.found for _, found in rows),
        "of": len(rows) + len(absent),
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def _table(rows: Rows, absent: Sequence[NotFound]) -> RenderableType:
    """A line a bug, never broken, with the promises last."""
    from rich.console import Group
    from rich.text import Text

    lines = [("row", "reference", "machine", "depth", "states", "s", "found by")]
    for bug, found in rows:
        machine = f"{bug.right.__name__} ({bug.profile})" if bug.profile else bug.right.__name__
        by = ", ".join(found.by) if found.found else f"NOT FOUND: {found.problem}"
        numbers = (str(found.depth or ""), f"{found.states:,}", f"{found.seconds:.1f}")
        lines.append((bug.id, bug.reference, machine, *numbers, by))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    parts: list[RenderableType] = []
    for number, line in enumerate(lines):
        cells = [
            cell.rjust(width) if name in {"depth", "states", "s"} else cell.ljust(width)
            for name, cell, width in zip(lines[0], line, widths, strict=True)
        ]
        missing = number > 0 and not rows[number - 1][1].found
        parts.append(Text("  ".join(cells).rstrip(), style="bold red" if missing else ""))
    parts += [Text(f"{b.id}  {b.reference}  {b.absence.value}: {b.reason}") for b in absent]
    number, total = sum(found.found for _, found in rows), len(rows) + len(absent)
    parts += [Text(""), Text(f"found {number} of {total}", style="bold")]
    return Group(*parts)

"""What all scripts of `stagewright run` print alike, and which arguments are not for which of them."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.console import RenderableType


_WIDE = 130  # characters: the table of faults is not to be cut off


class Outcome(Protocol):
    """One operation of a script."""

    operation: str
    result: str
    began: int  # milliseconds
    ended: int


class Report(Protocol):
    """What a run of a script came to."""

    @property
    def outcomes(self) -> Sequence[Outcome]: ...
    @property
    def breaches(self) -> Sequence[str]: ...
    @property
    def refused(self) -> Sequence[str]: ...
    @property
    def counted(self) -> Mapping[str, int]: ...
    @property
    def kept(self) -> bool: ...
    @property
    def simulated_ms(self) -> int: ...


def refuse_others(args: argparse.Namespace, names: Iterable[str], what: str, help_: str) -> None:
    """Refuse arguments that were given and say nothing here.

    Raises:
        InputError: one of them was.
    """
    from stagewright.spec.errors import InputError

    for name in names:
        if getattr(args, name) not in (None, "", False):
            raise InputError(f"--{name} is not for {what}", help=help_)


def nodes_of(args: argparse.Namespace) -> int:
    """How many nodes a script begins with.

    Raises:
        InputError: too many, or none.
    """
    from stagewright.spec.errors import InputError

    nodes: int = args.nodes
    if not 1 <= nodes <= 30:
        raise InputError(f"--nodes {nodes}: out of bounds", help="write a number from 1 to 30")
    return nodes


def as_json(report: Report, seed: int) -> dict[str, object]:
    """What every report says."""
    return {
        "seed": seed,
        "kept": report.kept,
        "operations": [vars(o) for o in report.outcomes],
        "breaches": list(report.breaches),
        "refused": list(report.refused),
        "counted": dict(report.counted),
        "simulated_ms": report.simulated_ms,
    }


def print_report(
    report: Report,
    head: str,
    middle: Iterable[str],
    faults: RenderableType | None,
    story: Iterable[str],
    commits: str,
    definitions: str,
    end: Iterable[str],
) -> None:
    """Print the operations, what was counted, what was broken, and where to look on."""
    from rich.table import Table

    from stagewright.commands.console.output import console

    out = console()
    out.print(head)
    table = Table.grid(padding=(0, 3, 0, 0))
    for one in report.outcomes:
        span = f"{one.began / 1000:.2f}-{one.ended / 1000:.2f} s"
        table.add_row(span, one.operation, one.result)
    out.print(table)
    for line in middle:
        out.print(line, markup=False)
    counted = ", ".join(f"{number} {what}" for what, number in report.counted.items())
    out.print(f"{report.simulated_ms / 1000:.1f} s simulated{commits}; {counted}")
    if faults is not None:
        out.print(faults, width=max(out.width, _WIDE), crop=False)
    for text in (*report.breaches, *report.refused):
        out.print(f"BROKEN {text}", style="red", markup=False)
    for line in story:
        out.print(line, style="dim", markup=False)
    if report.kept:
        out.print(f"every property holds, and every step is one of {definitions}", style="green")
    for line in end:
        out.print(line, style="dim", soft_wrap=True, markup=False)

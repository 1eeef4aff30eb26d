"""What an exporter is: it writes machines, or runs of them, in a form that another tool reads.

A package of one's own names an `Exporter` as an entry point of the group `stagewright.exporters`; then
`stagewright export MACHINE --to NAME` has it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stagewright.spec.definition import Definition
    from stagewright.spec.scope import Scope
    from stagewright.spec.verdict import PropertyVerdict

GROUP = "stagewright.exporters"


@dataclass(frozen=True)
class MachineToWrite:
    """A machine and what was asked of it."""

    definition: Definition
    scope: Scope
    scope_was_given: bool = False  # with --size or --budget; else `scope` is the machine's own
    variable: str = ""  # the one that a diagram is to show; the exporter chooses if it is empty


@dataclass(frozen=True)
class RunToWrite:
    """A verdict with its run, each step of which was taken again at the scope."""

    definition: Definition
    scope: Scope
    verdict: PropertyVerdict


@dataclass(frozen=True)
class Exporter:
    """A form that `export` writes: of machines, of runs, or of both.

    `machine` gives one text, or the texts of the files of a directory by their names.
    """

    name: str
    says: str  # what it is, for --help
    machine: Callable[[MachineToWrite], str | Mapping[str, str]] | None = None
    run: Callable[[RunToWrite], str] | None = None
    takes_scope: bool = False  # whether --size and --budget say something about a machine
    takes_variable: bool = False

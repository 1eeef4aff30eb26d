"""What a reader is given and what it gives back, whatever the form of the input.

A reader is a module with three functions:

- `parts(path)` splits a file into pieces that can be read by themselves;
- `check(path)` raises an `InputError` if the file is not of this form at all;
- `read(part, tally)` yields the events of a piece as blocks, and counts every line in `tally`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from stagewright.traces.blocks import Block

UNPARSED_DETAILS_MAX = 1000  # lines of one part that are told one by one; the counts know all


@dataclass(frozen=True)
class Part:
    """A piece of a file: bytes `start .. stop` of text, or rows from row group `start` up to `stop`."""

    number: int
    path: str
    form: str
    start: int
    stop: int


@dataclass
class Tally:
    """What became of every line of a part; its counts add up to `lines`."""

    lines: int = 0
    blank: int = 0
    other: int = 0  # lines of a log that say nothing of a machine
    events: int = 0
    unparsed: int = 0
    reasons: list[tuple[int, str]] = field(default_factory=list)  # (line, why), the first ones

    def refuse(self, line: int, reason: str) -> None:
        """Count a line that is no event."""
        self.unparsed += 1
        if len(self.reasons) < UNPARSED_DETAILS_MAX:
            self.reasons.append((line, reason))


class Reader(Protocol):
    """The shape of a reader's module."""

    def check(self, path: Path) -> None:
        """Raise an `InputError` if the file cannot be of this form."""
        ...

    def parts(self, path: Path) -> list[tuple[int, int]]:
        """Where a file can be cut, as (start, stop) of each piece."""
        ...

    def read(self, part: Part, tally: Tally) -> Iterator[Block]:
        """The events of a piece."""
        ...

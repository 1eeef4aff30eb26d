"""How far the search among mutants is: a line on a terminal, elsewhere one every few seconds."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TextIO

from stagewright.checker.mutation.evaluation import Evaluation, Fate
from stagewright.checker.mutation.original import Original
from stagewright.spec.definition import Definition
from stagewright.spec.text.counting import counted

_LIVE_SECONDS = 0.2
_PLAIN_SECONDS = 5.0


@contextmanager
def progress_on(stream: TextIO, definition: Definition, mutants: int) -> Iterator[Lines]:
    """Say what is to be done, then how it goes while the block runs."""
    lines = Lines(stream, mutants, live=stream.isatty())
    profile = f" ({definition.profile})" if definition.profile else ""
    lines.line(f"checking {counted(mutants, 'mutant')} of {definition.name}{profile}")
    try:
        yield lines
    finally:
        lines.end()


@dataclass
class Lines:
    """What was said so far."""

    stream: TextIO
    mutants: int
    live: bool
    fates: dict[int, Fate] = field(default_factory=dict[int, Fate])  # by mutant: the latest
    last: float = field(default_factory=time.monotonic)
    shown: bool = False

    def line(self, text: str) -> None:
        """Say something for good."""
        self.end()
        with suppress(OSError):
            print(text, file=self.stream, flush=True)

    def original(self, original: Original) -> None:
        """The definition itself was searched at a scope."""
        self.line(
            f"  at {original.scope}: {counted(original.count, 'state')}, {original.seconds:.1f} s"
        )

    def resumed(self, known: int) -> None:
        """So many mutants were checked before, by a run that left its results."""
        if known:
            self.line(f"  {known:,} of {self.mutants:,} were checked before")
            self.mutants -= known

    def evaluated(self, index: int, evaluation: Evaluation) -> None:
        """A mutant is checked, maybe once more at another scope."""
        self.fates[index] = evaluation.fate
        pause = _LIVE_SECONDS if self.live else _PLAIN_SECONDS
        if time.monotonic() - self.last < pause:
            return
        self.last = time.monotonic()
        fates = Counter(self.fates.values())
        survive = fates[Fate.SURVIVED] + fates[Fate.REDUNDANT]
        text = (
            f"{len(self.fates):,} of {self.mutants:,} checked: "
            f"{fates[Fate.CAUGHT]:,} caught, {survive:,} survive"
        )
        if fates[Fate.UNDECIDED]:
            text += f", {fates[Fate.UNDECIDED]:,} undecided"
        with suppress(OSError):
            if self.live:
                print(f"\r\x1b[K{text}", end="", file=self.stream, flush=True)
                self.shown = True
            else:
                print(text, file=self.stream, flush=True)

    def end(self) -> None:
        """Leave the live line clear for what follows."""
        if self.shown:
            self.shown = False
            with suppress(OSError):
                print("\r\x1b[K", end="", file=self.stream, flush=True)

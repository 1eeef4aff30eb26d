"""Runs a campaign, makes small what fails, and reports: each sort of failure once, with a command that shows it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from enum import Enum
from typing import Generic, TypeVar

from rich.console import Group, RenderableType
from rich.text import Text

from stagewright.commands.campaigning.runs import run_seeds
from stagewright.commands.campaigning.subject import Small, Subject
from stagewright.impl.recording.failure import Found
from stagewright.impl.recording.trial import Trial
from stagewright.spec.text.counting import counted

T = TypeVar("T", bound=Trial)
D = TypeVar("D", bound=Enum)
_SHRUNK = 3


class Campaign(Generic[T, D]):
    """The seeds that are asked for, of whichever kind."""

    def __init__(self, subject: Subject[T, D]) -> None:
        self.tally = subject.tally()
        self._subject = subject
        self._found: list[Found] = []
        self._small: dict[tuple[str, str], Small] = {}

    def run(self) -> None:
        """Run the seeds, and make small what fails."""
        run_seeds(self._subject, self._subject.asked.seeds, self.tally)
        self._found = sorted(self.tally.found.values(), key=lambda f: f.seed)
        asked = self._subject.asked.shrink
        for one in self._found[: _SHRUNK if asked is None else max(0, asked)]:
            if not self._subject.shrinks:
                break
            print(f"seed {one.seed}: looking for a smaller scenario", file=sys.stderr, flush=True)
            self._small[one.failure.sort] = self._subject.shrink(one)

    def as_text(self) -> RenderableType:
        """What was run and met, and what never was."""
        tally = self.tally
        drawn = ", ".join(f"{n} {s}" for s, n in tally.strategies.most_common() if s)
        runs = f"{counted(tally.runs, 'run')} of {len(self._subject.asked.seeds):,}"
        text = f"{runs}{f' ({drawn})' if drawn else ''}; {tally.failed} failed"
        return Group(Text(text), *self._subject.as_text(tally))

    def failures(self) -> Iterator[str]:
        """Each sort of failure: who noticed, the command that shows it, and one that is smaller."""
        for one in self._found:
            who = self._subject.by[one.failure.by]
            seeds = counted(one.seeds, "seed")
            yield f"BROKEN {who}: {one.failure.text} ({seeds}, first {one.seed})"
            yield f"  reproduce: {self._subject.command(one.seed)}"
            small = self._small.get(one.failure.sort)
            if small is not None:
                yield f"  smaller, in {counted(small.runs, 'run')}: {small.scenario.command}"

    def as_json(self) -> dict[str, object]:
        """All of it."""
        tally, subject = self.tally, self._subject
        return {
            "of": subject.asked.of,
            "runs": tally.runs,
            "asked": len(subject.asked.seeds),
            "failed": tally.failed,
            "cpu_seconds": round(tally.cpu, 1),
            "strategies": dict(tally.strategies),
            **subject.as_json(tally),
            "failures": [self._failure(one) for one in self._found],
        }

    def _failure(self, one: Found) -> dict[str, object]:
        small = self._small.get(one.failure.sort)
        return {
            **asdict(one.failure),
            "seed": one.seed,
            "seeds": one.seeds,
            "reproduce": self._subject.command(one.seed),
            "shrunk": None if small is None else small.scenario.command,
        }

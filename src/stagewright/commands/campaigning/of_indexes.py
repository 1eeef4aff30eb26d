"""A campaign of indexes: tables that are written to while their indexes are built, dropped and read."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from stagewright.commands.campaigning.asked import Asked, defects_named
from stagewright.commands.campaigning.failures import json_of_failures, lines_of_failures
from stagewright.commands.campaigning.logs import YUGABYTE, check_logs
from stagewright.commands.campaigning.runs import run_seeds
from stagewright.commands.campaigning.wrong_builds import Builds
from stagewright.impl.indexes.campaign.drawing import draw
from stagewright.impl.indexes.campaign.shrinking import Shrunk, shrink
from stagewright.impl.indexes.campaign.tally import Tally
from stagewright.impl.indexes.campaign.trial import BY_LOG, BY_ROWS, BY_TRACE, Trial, attempt
from stagewright.impl.indexes.control import programs
from stagewright.impl.indexes.defects import Defect
from stagewright.impl.indexes.records.recorder import tables
from stagewright.impl.recording.failure import RAISED, Failure, Found

_BY = {
    BY_ROWS: "rows, entries and answers disagree",
    BY_TRACE: "the definitions refuse",
    BY_LOG: "the definitions refuse the log",
    RAISED: "a process raises",
}
SHRUNK = 3
_check = partial(check_logs, form=YUGABYTE)


def wrong_builds(asked: Asked) -> Builds:
    """Those of masters and tablets; their logs are always checked."""
    del asked
    return Builds(Defect, lambda d: IndexRuns("", frozenset({Defect(d)}), None), _BY)


class IndexRuns:
    """One run a seed; of one that fails, `out` gets the traces."""

    def __init__(self, name: str, defects: frozenset[Defect], out: Path | None) -> None:
        self.name = name
        self._defects = defects
        self._out = out

    def prepare(self) -> None:
        """Read the definitions."""
        programs()
        tables()

    def attempt(self, seed: int) -> Trial:
        """Run a seed."""
        keep = None if self._out is None else self._out / f"seed-{seed}"
        return attempt(draw(seed), self._defects, keep, _check)

    def failed(self, seed: int, failure: Failure) -> Trial:
        """A run without an end."""
        return Trial(seed, "", (failure,))

    def result(self, line: dict[str, Any]) -> Trial:
        """From the file of results."""
        return Trial.from_json(line)


class IndexCampaign:
    """Its report says what happened in all runs."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._defects = defects_named(asked.wrong_builds, Defect)
        self._tally = Tally()
        self._found: list[Found] = []
        self._shrunk: list[Shrunk] = []

    def run(self) -> Tally:
        """Run the seeds, and make small what fails."""
        asked, tally = self._asked, self._tally
        runs = IndexRuns(asked.name, self._defects, asked.out)
        run_seeds(runs, tally, asked.seeds, asked.workers, asked.out, asked.seconds)
        self._found = sorted(tally.found.values(), key=lambda f: f.seed)
        most = SHRUNK if asked.shrink is None else max(0, asked.shrink)
        for one in self._found[:most]:
            print(f"seed {one.seed}: looking for a smaller scenario", file=sys.stderr, flush=True)
            self._shrunk.append(shrink(draw(one.seed), one.failure, self._defects, _check))
        return tally

    def as_text(self) -> RenderableType:
        """What happened how often, and what never did."""
        tally = self._tally
        a_run = tally.cpu / tally.runs if tally.runs else 0.0
        drawn = ", ".join(f"{n} {s}" for s, n in tally.strategies.most_common() if s)
        table = Table(box=None, padding=(0, 1, 0, 0), show_header=False)
        table.add_column(justify="right")
        table.add_column()
        for name, number in sorted(tally.counts.items()):
            table.add_row(f"{number:,}", name)
        runs = f"{tally.runs:,} runs of {len(self._asked.seeds):,} ({drawn}); {tally.failed} failed"
        parts: list[RenderableType] = [Text(runs), Text(f"{a_run:.2f} s of CPU a run"), table]
        if tally.runs and tally.never:
            parts.append(Text(f"never happened: {', '.join(tally.never)}"))
        return Group(*parts)

    def failures(self) -> list[str]:
        """With the command that shows each, and a smaller one."""
        return [*lines_of_failures(self._found, self._shrunk, self._again, _BY)]

    def _again(self, seed: int) -> str:
        """`stagewright run` has no wrong builds."""
        if self._defects:
            return self._asked.again(seed, "--out", f"seed-{seed}")
        return draw(seed).command

    def as_json(self) -> dict[str, object]:
        """All of it."""
        tally = self._tally
        return {
            "of": self._asked.of,
            "runs": tally.runs,
            "asked": len(self._asked.seeds),
            "failed": tally.failed,
            "cpu_seconds": round(tally.cpu, 1),
            "strategies": dict(tally.strategies),
            "happened": dict(sorted(tally.counts.items())),
            "never_happened": tally.never,
            "failures": json_of_failures(self._found, self._shrunk, self._again),
        }

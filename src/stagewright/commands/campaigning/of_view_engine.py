"""A campaign of the view engine: clusters whose every answer is compared with map/reduce over the documents."""

from __future__ import annotations

import gc
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from stagewright.commands.campaigning.asked import Asked, defects_named
from stagewright.commands.campaigning.logs import check_logs
from stagewright.commands.campaigning.runs import run_seeds
from stagewright.commands.campaigning.wrong_builds import Builds
from stagewright.impl.recording.failure import RAISED, Failure
from stagewright.impl.view_engine.campaign.tally import Tally
from stagewright.impl.view_engine.campaign.traces import tables
from stagewright.impl.view_engine.campaign.trial import (
    BY_ANSWERS,
    BY_LOG,
    BY_TRACE,
    Trial,
    attempt,
)
from stagewright.impl.view_engine.defects import Defect
from stagewright.spec.errors import InputError

_BY = {
    BY_ANSWERS: "an answer is wrong",
    BY_TRACE: "the definitions refuse the trace",
    BY_LOG: "the definitions refuse the log",
    RAISED: "a node raises",
}


def wrong_builds(asked: Asked) -> Builds:
    """Those of the engine; its logs are always checked."""
    del asked
    return Builds(Defect, lambda d: ViewEngineRuns("", frozenset({Defect(d)}), None), _BY)


class ViewEngineRuns:
    """One run a seed; of one that fails, `out` gets traces and logs."""

    def __init__(self, name: str, defects: frozenset[Defect], out: Path | None) -> None:
        self.name = name
        self._defects = defects
        self._out = out

    def prepare(self) -> None:
        """Read the definitions; what is there by now stays, so that no process looks through it again."""
        tables()
        gc.collect()
        gc.freeze()
        gc.set_threshold(200_000)

    def attempt(self, seed: int) -> Trial:
        """Run a seed."""
        keep = None if self._out is None else self._out / f"seed-{seed}"
        return attempt(seed, check_logs, self._defects, keep)

    def failed(self, seed: int, failure: Failure) -> Trial:
        """A run without an end."""
        return Trial(seed, (failure,))

    def result(self, line: dict[str, Any]) -> Trial:
        """From the file of results."""
        return Trial.from_json(line)


class ViewEngineCampaign:
    """Its report says what happened in how many runs."""

    def __init__(self, asked: Asked) -> None:
        """Raises InputError where it is asked for what only the database's campaign has."""
        if asked.shrink is not None:
            raise InputError(
                "--shrink: a run of the view engine is not made smaller",
                help="leave it out, or run the campaign of the database",
            )
        self._asked = asked
        self._defects = defects_named(asked.wrong_builds, Defect)
        self._tally = Tally()

    def run(self) -> Tally:
        """Run the seeds."""
        asked = self._asked
        runs = ViewEngineRuns(asked.name, self._defects, asked.out)
        thresholds = gc.get_threshold()
        try:
            run_seeds(runs, self._tally, asked.seeds, asked.workers, asked.out, asked.seconds)
        finally:
            gc.unfreeze()
            gc.set_threshold(*thresholds)
        return self._tally

    def as_text(self) -> RenderableType:
        """What happened how often, and what never did."""
        tally = self._tally
        a_run = tally.cpu / tally.runs if tally.runs else 0.0
        table = Table(box=None, padding=(0, 1, 0, 0), show_header=False)
        table.add_column(justify="right")
        table.add_column()
        for name, number in asdict(tally.counts).items():
            table.add_row(f"{number:,}", name.replace("_", " "))
        parts: list[RenderableType] = [
            Text(f"{tally.runs:,} runs of {len(self._asked.seeds):,}; {tally.failed} failed"),
            Text(f"{a_run:.2f} s of CPU a run"),
            table,
        ]
        if tally.runs and tally.never:
            parts.append(Text(f"never happened: {', '.join(tally.never)}"))
        return Group(*parts)

    def failures(self) -> list[str]:
        """With the command that shows each."""
        lines: list[str] = []
        for one in sorted(self._tally.found.values(), key=lambda f: f.seed):
            seeds = f"{one.seeds} seed{'s' if one.seeds > 1 else ''}"
            what = f"{_BY[one.failure.by]}: {one.failure.text}"
            lines += [
                f"BROKEN {what} ({seeds}, first {one.seed})",
                f"  reproduce: {self._again(one.seed)}",
            ]
        return lines

    def _again(self, seed: int) -> str:
        return self._asked.again(seed, "--out", f"seed-{seed}")

    def as_json(self) -> dict[str, object]:
        """All of it."""
        tally = self._tally
        return {
            "of": self._asked.of,
            "runs": tally.runs,
            "asked": len(self._asked.seeds),
            "failed": tally.failed,
            "cpu_seconds": round(tally.cpu, 1),
            "happened": asdict(tally.counts),
            "failures": [
                {
                    **asdict(one.failure),
                    "seed": one.seed,
                    "seeds": one.seeds,
                    "reproduce": self._again(one.seed),
                }
                for one in sorted(tally.found.values(), key=lambda f: f.seed)
            ],
        }

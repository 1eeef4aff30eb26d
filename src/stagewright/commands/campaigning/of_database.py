"""A campaign of the database: scripts, faults and workloads, and small scenarios of what fails."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

from rich.console import RenderableType

from stagewright.commands.campaigning.asked import Asked, defects_named
from stagewright.commands.campaigning.failures import json_of_failures, lines_of_failures
from stagewright.commands.campaigning.logs import SCYLLA, check_logs
from stagewright.commands.campaigning.runs import run_seeds
from stagewright.commands.campaigning.text import render
from stagewright.commands.campaigning.wrong_builds import Builds
from stagewright.impl.node.defects import Defect
from stagewright.impl.recording.failure import RAISED, Failure, Found
from stagewright.impl.simulator.campaign.drawing import draw
from stagewright.impl.simulator.campaign.shrinking import Shrunk, shrink
from stagewright.impl.simulator.campaign.tally import Tally
from stagewright.impl.simulator.campaign.trial import BY_CLIENTS, BY_LOG, BY_TRACE, Result, attempt
from stagewright.impl.simulator.database.checks.watcher import tables
from stagewright.impl.topology.release import release

_BY = {
    BY_CLIENTS: "clients or rows show it",
    BY_TRACE: "the definitions refuse",
    RAISED: "a node raises",
}
_BY_LOG = {BY_LOG: "the definitions refuse the log"}
_check = partial(check_logs, form=SCYLLA)


def wrong_builds(asked: Asked) -> Builds:
    """Those of the nodes."""
    logs = asked.logs
    by = {**_BY, **_BY_LOG} if logs else _BY
    return Builds(Defect, lambda d: DatabaseRuns("", frozenset({Defect(d)}), logs=logs), by)


class DatabaseRuns:
    """One run a seed."""

    def __init__(self, name: str, defects: frozenset[Defect], *, logs: bool = False) -> None:
        self.name = name
        self._defects = defects
        self._check = _check if logs else None

    def prepare(self) -> None:
        """Read the definitions."""
        release()
        tables()

    def attempt(self, seed: int) -> Result:
        """Run a seed."""
        return attempt(draw(seed), self._defects, self._check)

    def failed(self, seed: int, failure: Failure) -> Result:
        """A run without an end."""
        return Result(seed, "", (failure,))

    def result(self, line: dict[str, Any]) -> Result:
        """From the file of results."""
        return Result.from_json(line)


class DatabaseCampaign:
    """Its report says how often each fault was met in each state of the topology."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._defects = defects_named(asked.wrong_builds, Defect)
        self._tally = Tally()
        self._found: list[Found] = []
        self._shrunk: list[Shrunk] = []

    def run(self) -> Tally:
        """Run the seeds, and make small what fails."""
        asked, tally = self._asked, self._tally
        runs = DatabaseRuns(asked.name, self._defects, logs=asked.logs)
        run_seeds(runs, tally, asked.seeds, asked.workers, asked.out, asked.seconds)
        self._found = sorted(tally.found.values(), key=lambda f: f.seed)
        most = 3 if asked.shrink is None else max(0, asked.shrink)
        for one in self._found[:most]:
            print(f"seed {one.seed}: looking for a smaller scenario", file=sys.stderr, flush=True)
            by_log = one.failure.by == BY_LOG
            check = _check if by_log else None
            self._shrunk.append(shrink(draw(one.seed), one.failure, self._defects, check))
        return tally

    def as_text(self) -> RenderableType:
        """What was met in which state."""
        return render(self._tally, len(self._asked.seeds))

    def failures(self) -> list[str]:
        """With the command that shows each, and a smaller one."""
        return [*lines_of_failures(self._found, self._shrunk, self._again, {**_BY, **_BY_LOG})]

    def _again(self, seed: int) -> str:
        """`stagewright run` has no wrong builds."""
        return self._asked.again(seed) if self._defects else draw(seed).command

    def as_json(self) -> dict[str, object]:
        """All of it."""
        tally = self._tally
        return {
            "of": self._asked.of,
            "runs": tally.runs,
            "asked": len(self._asked.seeds),
            "failed": tally.failed,
            "cpu_seconds": round(tally.cpu, 1),
            "writes_acknowledged": tally.writes,
            "reads_checked": tally.reads,
            "strategies": dict(tally.strategies),
            "outcomes": dict(sorted(tally.outcomes.items())),
            "met": {state: {"entered": n, **kinds} for state, n, kinds in tally.rows()},
            "never_entered": tally.never_entered,
            "never_met": [list(pair) for pair in tally.never_met],
            "edges": dict(sorted(tally.edges.items())),
            "never_taken": tally.never_taken,
            "failures": json_of_failures(self._found, self._shrunk, self._again),
        }

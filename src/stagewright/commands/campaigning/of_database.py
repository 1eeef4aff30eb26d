"""A campaign of the database: scripts, faults and workloads, and small scenarios of what fails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import ClassVar

from rich.console import RenderableType

from stagewright.commands.campaigning.logs import SCYLLA, check_logs
from stagewright.commands.campaigning.subject import Subject
from stagewright.commands.campaigning.text import parts
from stagewright.impl.node.defects import Defect
from stagewright.impl.recording.failure import RAISED, Found
from stagewright.impl.recording.shrinking import Shrunk
from stagewright.impl.recording.trial import Tally
from stagewright.impl.simulator.campaign.drawing import draw
from stagewright.impl.simulator.campaign.scenario import Scenario
from stagewright.impl.simulator.campaign.shrinking import shrink
from stagewright.impl.simulator.campaign.tally import DatabaseTally
from stagewright.impl.simulator.campaign.trial import (
    BY_CLIENTS,
    BY_LOG,
    BY_TRACE,
    READS,
    WRITES,
    Result,
    attempt,
)
from stagewright.impl.simulator.database.checks.watcher import tables
from stagewright.impl.topology.release import release

_check = partial(check_logs, form=SCYLLA)


class Database(Subject[Result, Defect]):
    """Its report says how often each fault was met in each state of the topology."""

    trial = Result
    known = Defect
    by: ClassVar[Mapping[str, str]] = {
        BY_CLIENTS: "clients or rows show it",
        BY_TRACE: "the definitions refuse",
        BY_LOG: "the definitions refuse the log",
        RAISED: "a node raises",
    }

    @property
    def checks(self) -> list[str]:
        """Logs are checked if that is asked for."""
        return [check for check in super().checks if self.asked.logs or check != BY_LOG]

    def tally(self) -> DatabaseTally:
        return DatabaseTally()

    def prepare(self) -> None:
        release()
        tables()

    def attempt(self, seed: int) -> Result:
        return attempt(draw(seed), self.defects, _check if self.asked.logs else None)

    def shrink(self, found: Found) -> Shrunk[Scenario]:
        check = _check if found.failure.by == BY_LOG else None
        return shrink(draw(found.seed), found.failure, self.defects, check)

    def command(self, seed: int) -> str:
        """`stagewright run` has no wrong builds."""
        return self.asked.again(seed) if self.defects else draw(seed).command

    def as_text(self, tally: Tally[Result]) -> Iterator[RenderableType]:
        assert isinstance(tally, DatabaseTally)
        return parts(tally)

    def as_json(self, tally: Tally[Result]) -> dict[str, object]:
        assert isinstance(tally, DatabaseTally)
        return {
            "writes_acknowledged": tally.counts[WRITES],
            "reads_checked": tally.counts[READS],
            "outcomes": dict(sorted(tally.outcomes.items())),
            "met": {state: {"entered": n, **kinds} for state, n, kinds in tally.rows()},
            "never_entered": tally.never_entered,
            "never_met": [list(pair) for pair in tally.never_met],
            "edges": dict(sorted(tally.edges.items())),
            "never_taken": tally.never_taken,
        }

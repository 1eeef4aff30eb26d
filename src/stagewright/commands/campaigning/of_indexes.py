"""A campaign of indexes: tables that are written to while their indexes are built, dropped and read."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import ClassVar

from stagewright.commands.campaigning.logs import YUGABYTE, check_logs
from stagewright.commands.campaigning.subject import Subject
from stagewright.impl.indexes.campaign.drawing import draw
from stagewright.impl.indexes.campaign.scenario import Scenario
from stagewright.impl.indexes.campaign.shrinking import shrink
from stagewright.impl.indexes.campaign.trial import BY_LOG, BY_ROWS, BY_TRACE, WANTED, attempt
from stagewright.impl.indexes.control import programs
from stagewright.impl.indexes.defects import Defect
from stagewright.impl.indexes.records.recorder import tables
from stagewright.impl.recording.failure import RAISED, Found
from stagewright.impl.recording.shrinking import Shrunk
from stagewright.impl.recording.trial import Tally, Trial

_check = partial(check_logs, form=YUGABYTE)


class Indexes(Subject[Trial, Defect]):
    """Of a run that fails, `--out` gets the traces and logs."""

    trial = Trial
    known = Defect
    by: ClassVar[Mapping[str, str]] = {
        BY_ROWS: "rows, entries and answers disagree",
        BY_TRACE: "the definitions refuse",
        BY_LOG: "the definitions refuse the log",
        RAISED: "a process raises",
    }

    def tally(self) -> Tally[Trial]:
        return Tally(WANTED)

    def prepare(self) -> None:
        programs()
        tables()

    def attempt(self, seed: int) -> Trial:
        return attempt(draw(seed), self.defects, self.keep(seed), _check)

    def shrink(self, found: Found) -> Shrunk[Scenario]:
        return shrink(draw(found.seed), found.failure, self.defects, _check)

    def command(self, seed: int) -> str:
        """`stagewright run` has no wrong builds."""
        return super().command(seed) if self.defects else draw(seed).command

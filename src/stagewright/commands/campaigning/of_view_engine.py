"""A campaign of the view engine: clusters whose every answer is compared with map/reduce over the documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from stagewright.commands.campaigning.logs import check_logs
from stagewright.commands.campaigning.subject import Subject
from stagewright.impl.recording.failure import RAISED
from stagewright.impl.recording.trial import Tally, Trial
from stagewright.impl.view_engine.campaign.traces import tables
from stagewright.impl.view_engine.campaign.trial import (
    BY_ANSWERS,
    BY_LOG,
    BY_TRACE,
    WANTED,
    attempt,
)
from stagewright.impl.view_engine.defects import Defect


class ViewEngine(Subject[Trial, Defect]):
    """Of a run that fails, `--out` gets the traces and logs."""

    trial = Trial
    known = Defect
    shrinks = False
    by: ClassVar[Mapping[str, str]] = {
        BY_ANSWERS: "an answer is wrong",
        BY_TRACE: "the definitions refuse the trace",
        BY_LOG: "the definitions refuse the log",
        RAISED: "a node raises",
    }

    def tally(self) -> Tally[Trial]:
        return Tally(WANTED)

    def prepare(self) -> None:
        tables()

    def attempt(self, seed: int) -> Trial:
        return attempt(seed, check_logs, self.defects, self.keep(seed))

"""One run of a campaign over the view engine, and what is kept of it: what happened, and what is wrong."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Collection, Sequence
from pathlib import Path

from stagewright.impl.recording.failure import CheckLogs, Failure, raised
from stagewright.impl.recording.trial import Trial
from stagewright.impl.view_engine.campaign.counts import Counts
from stagewright.impl.view_engine.campaign.oracle import WrongAnswerError
from stagewright.impl.view_engine.campaign.runs import Run
from stagewright.impl.view_engine.defects import Defect, built_with

BY_ANSWERS, BY_TRACE, BY_LOG = "answers", "trace", "log"
WANTED = tuple(name.replace("_", " ") for name in vars(Counts()))
"""What a campaign that shows something has to have met."""


def attempt(
    seed: int,
    check_logs: CheckLogs,
    defects: Collection[Defect] = (),
    keep: Path | None = None,
) -> Trial:
    """Run a seed, maybe of a wrong build. Of a run that fails, `keep` gets the traces and the logs.

    The run is in a folder of its own, in memory where the system offers that.
    """
    began = time.process_time()
    shared = "/dev/shm"
    base = shared if os.access(shared, os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="views-", dir=base))
    try:
        run = Run(seed, folder)
        with built_with(*defects):
            error = run.end_somehow()
        failures = [] if error is None else [_failure(error)]
        failures += [Failure(BY_TRACE, text) for text in run.recording.problems[:1]]
        logs = run.write_logs(folder)
        run.counts.steps = len(run.recording)
        run.counts.log_events, problem = check_logs(logs)
        failures += [Failure(BY_LOG, problem)] if problem else []
        if failures and keep is not None:
            _keep(run, logs, keep)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    counts = dict(zip(WANTED, vars(run.counts).values(), strict=True))
    cpu = round(time.process_time() - began, 3)
    return Trial(seed, "", tuple(failures), counts, cpu)


def _failure(error: Exception) -> Failure:
    if isinstance(error, WrongAnswerError):
        return Failure(BY_ANSWERS, str(error))
    return raised(error)


def _keep(run: Run, logs: Sequence[Path], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    run.recording.write(folder, f"seed {run.seed}")
    for log in logs:
        shutil.copy(log, folder)

"""One run of a campaign over indexed tables, and what is kept of it: what happened, and what is wrong."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from stagewright.impl.indexes.campaign.scenario import Scenario
from stagewright.impl.indexes.defects import Defect
from stagewright.impl.indexes.simulated.run import Report, Run
from stagewright.impl.recording.failure import CheckLogs, Failure, raised
from stagewright.impl.recording.trial import Trial
from stagewright.spec.errors import InputError

BY_ROWS, BY_TRACE, BY_LOG = "rows", "trace", "log"
WANTED = (
    "committed",
    "reads through indexes",
    "rows scanned",
    "indexes: SUCCESS",
    "indexes: FAILED",
    "indexes dropped",
    "tablets split",
    "tablets of indexes split",
    "servers killed",
    "masters failed over",
    "messages lost",
    "messages late",
    "messages repeated",
)
"""What a campaign that shows something has to have met."""


def attempt(
    scenario: Scenario,
    defects: frozenset[Defect] = frozenset(),
    keep: Path | None = None,
    check_logs: CheckLogs | None = None,
) -> Trial:
    """Run a scenario, maybe of a wrong build. Of a run that fails, `keep` gets the traces and logs.

    Raises:
        InputError: the script cannot be worked through.
    """
    began = time.process_time()
    seed, strategy = scenario.seed, scenario.strategy
    try:
        made = Run(scenario.plan(defects))
        report = made.report()
    except InputError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a process raises is what the campaign looks for
        cpu = round(time.process_time() - began, 3)
        return Trial(seed, strategy, (raised(error),), cpu=cpu)
    failures = [Failure(BY_ROWS, text) for text in report.breaches]
    failures += [Failure(BY_TRACE, text) for text in report.refused]
    if check_logs is not None:
        failures += _by_logs(made, check_logs)
    if failures and keep is not None:
        made.write(keep)
    cpu = round(time.process_time() - began, 3)
    return Trial(seed, strategy, tuple(failures), _counts(report), cpu)


def _by_logs(made: Run, check_logs: CheckLogs) -> list[Failure]:
    with TemporaryDirectory(prefix="indexes-") as folder:
        _, problem = check_logs(made.logs.write(Path(folder)))
    return [Failure(BY_LOG, problem)] if problem else []


def _counts(report: Report) -> dict[str, int]:
    """What happened, and what became of indexes."""
    found = Counter(report.counted)
    for status in report.indexes.values():
        found[f"indexes: {status.partition(',')[0]}"] += 1
        found["indexes dropped"] += status.endswith("dropped")
    return dict(found)

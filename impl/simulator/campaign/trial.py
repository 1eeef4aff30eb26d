"""One run of a campaign, and what is kept of it: what it met, what failed, what of that is the same failure."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from stagewright.impl.node.defects import Defect
from stagewright.impl.recording.failure import CheckLogs, Failure, raised
from stagewright.impl.recording.trial import Trial
from stagewright.impl.server_log.files import LOGS
from stagewright.impl.simulator.campaign.scenario import Scenario
from stagewright.impl.simulator.database.plan import Plan
from stagewright.impl.simulator.database.report import Report
from stagewright.impl.simulator.database.run import run
from stagewright.spec.errors import InputError

BY_CLIENTS, BY_TRACE, BY_LOG = "clients", "trace", "log"
WRITES, READS = "writes acknowledged", "reads checked"


@dataclass(frozen=True)
class Result(Trial):
    """Also what was met in which state, the edges that were taken, and what became of operations."""

    met: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    edges: Sequence[str] = ()
    outcomes: dict[str, int] = field(default_factory=dict[str, int])


def attempt(
    scenario: Scenario,
    defects: frozenset[Defect] = frozenset(),
    check_logs: CheckLogs | None = None,
) -> Result:
    """Run a scenario, and maybe check its logs; an error of the implementation is a failure of the run.

    Raises:
        InputError: the script cannot be worked through.
    """
    began = time.process_time()
    try:
        report, problem = _run(scenario.plan(defects), check_logs)
    except InputError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a node raises is what the campaign looks for
        cpu = round(time.process_time() - began, 3)
        return Result(scenario.seed, scenario.strategy, (raised(error),), cpu=cpu)
    failures = [Failure(BY_CLIENTS, text) for text in report.breaches]
    failures += [Failure(BY_TRACE, text) for text in report.refused]
    failures += [Failure(BY_LOG, problem)] if problem else []
    met: dict[str, dict[str, int]] = {}
    for (state, kind), number in sorted(report.met.items()):
        met.setdefault(state, {})[kind] = number
    outcomes: dict[str, int] = {}
    for one in report.outcomes:
        name = f"{one.operation.partition(' ')[0]}: {one.result.partition(':')[0]}"
        outcomes[name] = outcomes.get(name, 0) + 1
    return Result(
        scenario.seed,
        scenario.strategy,
        tuple(failures),
        {name: report.counted.get(name, 0) for name in (WRITES, READS)},
        round(time.process_time() - began, 3),
        met,
        tuple(sorted(" ".join(edge) for edge in report.edges)),
        outcomes,
    )


def _run(plan: Plan, check_logs: CheckLogs | None) -> tuple[Report, str]:
    """What came of a run, and what its logs show to be wrong."""
    if check_logs is None:
        return run(plan), ""
    with TemporaryDirectory(prefix="database-") as folder:
        report = run(plan, Path(folder), records=False)
        _, problem = check_logs(sorted((Path(folder) / LOGS).glob("*.log")))
    return report, problem.replace(f"{folder}/", "")

"""What the executable system records under faults is explained, and every wrong build of it is not.

The verdicts come from the recorded files alone: nothing is known here of what happened in the run.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.impl.simulator.database import test_defects
from tests.impl.simulator.database.wrong_builds import Shown
from tests.impl.simulator.tablets import test_tablet_faults
from tests.thorough import THOROUGH, by_turns, some_of

from stagewright.checker.check import check
from stagewright.commands.validation.traced_machines import resolver
from stagewright.impl.node.defects import Defect
from stagewright.impl.simulator.campaign.drawing import draw
from stagewright.impl.simulator.database.plan import Plan
from stagewright.impl.simulator.database.run import run
from stagewright.machines.recorded import OF_NODES
from stagewright.spec import scope_of
from stagewright.spec.define import define
from stagewright.spec.loading import find
from stagewright.spec.trace import TraceVerdict
from stagewright.spec.verdict import Outcome
from stagewright.traces.engines.engine import Embedded
from stagewright.traces.report.results import TraceReport
from stagewright.traces.validate import validate

SEEDS = range(240 if THOROUGH else 12)
BATCH = 6  # runs that are validated together
KINDS = ("tablets", *OF_NODES)


def record(directory: Path, plan: Plan) -> list[Path]:
    """The files that a run records of its nodes and tablets."""
    run(plan, directory)
    return [path for kind in KINDS if (path := directory / f"{kind}.jsonl").exists()]


def checked(paths: list[Path]) -> TraceReport:
    return validate(paths, resolver(None), engine=Embedded(1))


@pytest.mark.parametrize("first", SEEDS[::BATCH])
@pytest.mark.long
def test_what_a_sound_system_records_under_faults_is_ok(first: int, tmp_path: Path) -> None:
    paths: list[Path] = []
    for seed in SEEDS[first : first + BATCH]:
        paths += record(tmp_path / str(seed), draw(seed).plan())
    report = checked(paths)
    assert not report.entities, report.entities[0]
    assert report.exit_code == 0
    assert report.verdicts[TraceVerdict.OK] > 50 * BATCH
    machines = {place.partition(":")[2] for place in OF_NODES.values()} | {"TabletMigration"}
    assert {text.partition(" ")[0].rstrip(",") for text in report.machines} == machines
    assert report.totals.evaluated == report.totals.lines, "nothing is left out"


OF_PLANS = (Defect.limits_are_ignored, Defect.stale_plans_are_committed)  # no file has these
WRONG = tuple(
    s
    for s in (*test_defects.SHOWN, *test_tablet_faults.SHOWN)
    if not s.says.startswith(("cannot happen", "the rows say"))  # of the topology's trace
    and s.defect not in OF_PLANS
)


@pytest.mark.parametrize("shown", by_turns(some_of(WRONG, each=3)), ids=lambda s: s.defect.name)
def test_a_wrong_build_is_seen_in_its_traces(shown: Shown, tmp_path: Path) -> None:
    said: list[str] = []
    for seed in range(shown.seed, shown.seed + 5):
        plan = replace(shown.plan, seed=seed, defects=frozenset({shown.defect}))
        report = checked(record(tmp_path / str(seed), plan))
        for entity in report.entities:
            assert entity.verdict is TraceVerdict.VIOLATION
            assert entity.explanation is not None
            said += [name for name, _ in entity.explanation.failed or ()]
        if any(shown.says in name for name in said):
            assert report.exit_code == 1
            return
    raise AssertionError(said)


@pytest.mark.parametrize("kind", OF_NODES)
def test_definitions_of_what_is_recorded_keep_their_promises(kind: str) -> None:
    definition = define(find(OF_NODES[kind], {}))
    report = check(definition, scope_of(definition), workers=1)
    assert report.outcome is Outcome.HOLDS
    assert report.coverage is not None
    assert not report.coverage.never_fired

"""Rows that come by streams wait in staging until views have them, wherever their tablet goes; wrong builds are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.impl.simulator.database.wrong_builds import Shown
from tests.thorough import by_turns, some_of

from stagewright.commands import run_command_line
from stagewright.impl.node.defects import Defect
from stagewright.impl.node.port import Timing
from stagewright.impl.simulator.database.clients import Workload
from stagewright.impl.simulator.database.plan import Plan
from stagewright.impl.simulator.database.run import run
from stagewright.impl.simulator.database.script import parse_script
from stagewright.impl.simulator.database.weather import parse_faults

REPAIRED = Plan(
    nodes=4,
    script=parse_script(
        "table t tablets 4 rf 3; create view v on t by value mod 7; await v; kill n3; write 120; wait 400; "
        "restart n3; repair t; write 40"
    ),
    workload=Workload(keys=60, gap=(0, 2), deletes=0.05),
    timing=Timing(chunk=3),
)
MOVED = Plan(  # while another table is processed, so that what was repaired waits
    nodes=4,
    script=parse_script(
        "table t tablets 1 rf 3; table u tablets 1 rf 3; create view v on t by value mod 7; await v; "
        "kill n3; write 300; wait 900; restart n3; create view w on u by value; repair t; "
        "decommission n3; await w"
    ),
    faults=parse_faults("loss=0.2"),
    workload=Workload(keys=150, gap=(0, 2), deletes=0.05),
    timing=Timing(chunk=2),
)
BUILT = Plan(  # while its own table moves and is repaired
    nodes=4,
    script=parse_script(
        "table t tablets 2 rf 3; create view w on t by value; await w; kill n2; write 200; wait 300; "
        "restart n2; create view v on t by value mod 7; repair t; decommission n1; await v"
    ),
    faults=parse_faults("delay=0.3,loss=0.2,crash=60"),
    workload=Workload(keys=100, gap=(0, 2), deletes=0.05),
    timing=Timing(chunk=2),
)
FEWER = Plan(  # what was repaired waits at a replica that goes
    nodes=4,
    script=parse_script(
        "table t tablets 2 rf 3; table u tablets 1 rf 3; create view v on t by value mod 7; await v; write 100; "
        "wait 100; kill n3; write 150; wait 700; restart n3; wait 200; write 100; create view w on u by value; "
        "repair t; alter t rf 2; await w"
    ),
    faults=parse_faults("loss=0.3"),
    workload=Workload(keys=100, gap=(0, 2), deletes=0.05, reads=0),
    timing=Timing(chunk=2),
)
"""Of seed 12, a view shows a row which only that replica has seen replaced."""

FOLLOWED = Plan(  # by another view, which is created while what came with new replicas is processed
    nodes=4,
    script=parse_script(
        "table t tablets 2 rf 2; write 60; wait 150; create view w on t by value mod 2; alter t rf 4; "
        "create view v on t by value; await v"
    ),
    faults=parse_faults("loss=0.3"),
    workload=Workload(keys=40, gap=(0, 2)),
    timing=Timing(chunk=2),
)


# -- sound builds ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "plan",
    [REPAIRED, MOVED, BUILT, FEWER, FOLLOWED],
    ids=["repaired", "moved", "while it is built", "with fewer replicas", "before another view"],
)
@pytest.mark.parametrize("seed", some_of(range(4), each=2))
def test_views_get_what_waited_in_staging(plan: Plan, seed: int) -> None:
    report = run(replace(plan, seed=seed))
    assert (report.breaches, report.refused) == ([], [])
    assert report.counted["staged rows processed"] > 0
    assert not report.tables["view_building_tasks"]


def test_rows_that_wait_move_with_their_tablet() -> None:
    """Some come into staging twice: by the repair, and with their tablet, which is processed where it is then."""
    report = run(MOVED)
    assert report.counted["rows staged"] > report.counted["staged rows processed"]
    assert report.moves


def test_tables_without_views_have_no_staging() -> None:
    script = (
        "table t tablets 4 rf 3; kill n3; write 60; wait 300; restart n3; repair t; decommission n3"
    )
    report = run(Plan(nodes=4, script=parse_script(script)))
    assert (report.breaches, report.refused) == ([], [])
    assert "rows staged" not in report.counted


@pytest.mark.parametrize("seed", some_of(range(3)))
def test_all_survives_crashes_and_new_leaders(seed: int) -> None:
    plan = replace(MOVED, faults=parse_faults("crash=80,failover,loss=0.1,duplicate"))
    report = run(replace(plan, seed=seed))
    assert (report.breaches, report.refused) == ([], [])


# -- wrong builds ------------------------------------------------------------------------------------------

D = Defect
SHOWN = (
    Shown(D.staging_is_forgotten, REPAIRED, "rows that a view may lack go to staging", oracle=True),
    Shown(D.staging_stays_behind, MOVED, "is staged at the one that comes", oracle=True),
    Shown(D.staging_is_not_looked_for, BUILT, "group0 stores a task for what is staged", 1),
    Shown(D.staging_is_registered_late, REPAIRED, "a task for what is staged"),
    Shown(D.staging_is_processed_early, MOVED, "is paired with view replicas", oracle=True),
    Shown(D.staged_rows_do_not_wait, REPAIRED, "the views have the row"),
    Shown(D.staging_goes_unsettled, FEWER, "", 12, oracle=True),
    Shown(D.staging_tasks_stay_behind, MOVED, "each task is of a replica of its tablet"),
)
SEEDS = 4


@pytest.mark.parametrize("shown", by_turns(some_of(SHOWN, each=2)), ids=lambda s: s.defect.name)
def test_a_wrong_build_is_refused_by_its_records_and_noticed_in_the_rows(shown: Shown) -> None:
    shown.check(SEEDS)


@pytest.mark.parametrize(
    ("defect", "says"),
    [(None, ""), (D.staging_stays_behind, "is staged at the one that comes")],
    ids=str,
)
def test_validate_checks_what_is_recorded_of_staging(
    defect: Defect | None, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(replace(MOVED, defects=frozenset({defect} if defect else ())), tmp_path)
    kinds = ("staging", "view-tasks", "view-batches", "view-places")
    records = [str(tmp_path / f"{kind}.jsonl") for kind in kinds]
    assert run_command_line(["validate", *records, "--engine", "embedded"]) == bool(defect)
    assert says in " ".join(capsys.readouterr().out.split())

"""Tablets are repaired: what clients knew to be written is on every replica afterwards, and nothing moves meanwhile."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.impl.simulator.database.wrong_builds import Shown
from tests.thorough import some_of

from stagewright.commands import run_command_line
from stagewright.impl.node.defects import Defect
from stagewright.impl.simulator.database.plan import Plan
from stagewright.impl.simulator.database.report import Report
from stagewright.impl.simulator.database.run import run
from stagewright.impl.simulator.database.script import parse_script
from stagewright.impl.simulator.database.weather import OF_TABLETS, at_stage, parse_faults
from stagewright.machines.scylladb.tablets.tablet_stages import Stage
from stagewright.spec.errors import InputError

LAGS = Plan(
    nodes=4,
    script=parse_script(
        "table t tablets 4 rf 3; write 60; kill n3; wait 300; restart n3; repair t"
    ),
)
LOST = Plan(
    nodes=5, script=parse_script("table t tablets 4 rf 3; write 60; replace n2 by n6; remove n1")
)


def done(plan: Plan, faults: str = "none", seed: int = 0) -> Report:
    report = run(replace(plan, seed=seed, faults=parse_faults(faults)))
    assert (report.breaches, report.refused) == ([], []), f"seed {seed}"
    return report


def test_a_node_that_was_down_gets_what_it_missed() -> None:
    report = done(LAGS)
    assert report.outcomes[-1].result == "done"
    assert report.counted["rows looked at after repairs"] > 30
    repaired = {("none", "repair"), ("repair", "end_repair"), ("end_repair", "none")}
    assert {("tablet", *edge) for edge in repaired} <= report.edges


def test_a_replica_that_is_lost_is_rebuilt_from_one_that_was_repaired() -> None:
    report = done(LOST)
    assert ("tablet", "rebuild_repair", "streaming") in report.edges
    assert {r for row in report.tables["tablets"].values() for r, _ in row["replicas"]} == {
        *("n3", "n4", "n5", "n6")
    }


def test_one_that_is_left_is_streamed_from_as_it_is() -> None:
    script = parse_script("table t tablets 4 rf 2; write 60; replace n2 by n5")
    report = done(Plan(nodes=4, script=script))
    assert ("tablet", "write_both_read_old", "streaming") in report.edges
    assert not any("rebuild_repair" in edge for edge in report.edges)


PAIRS = [
    (stage, kind, plan)
    for stage, plan in (
        (Stage.repair, LAGS),
        (Stage.end_repair, LAGS),
        (Stage.rebuild_repair, LOST),
    )
    for kind in OF_TABLETS
]


@pytest.mark.parametrize(
    ("stage", "kind", "plan"),
    some_of(PAIRS),
    ids=[f"{s.name}-{k}" for s, k, _ in some_of(PAIRS)],
)
def test_promises_survive_a_fault_in_a_stage_that_repairs(
    stage: Stage, kind: str, plan: Plan
) -> None:
    for seed in range(2):
        report = done(plan, f"{kind}@{at_stage(stage)}", seed)
        assert report.met[at_stage(stage), "entered"]


def test_a_repair_that_fails_is_drained_and_begins_anew() -> None:
    for seed in range(8):
        report = done(LAGS, f"action@{at_stage(Stage.repair)}", seed)
        assert report.outcomes[-1].result == "done"
        if report.met.get((at_stage(Stage.repair), "action fails")):
            begun = report.met[at_stage(Stage.repair), "entered"]
            assert begun > 4  # each of four tablets once, and again
            return
    pytest.fail("no repair failed")


@pytest.mark.parametrize("plan", [LAGS, LOST], ids=["repair", "rebuild"])
def test_the_trace_of_tablets_is_accepted(plan: Plan, tmp_path: Path) -> None:
    run(replace(plan, faults=parse_faults("all"), seed=3), tmp_path)
    trace = str(tmp_path / "tablets.jsonl")
    assert run_command_line(["validate", trace, "--engine", "embedded"]) == 0


def test_a_table_that_is_not_there_cannot_be_repaired() -> None:
    with pytest.raises(InputError, match="there is no such table"):
        run(Plan(script=parse_script("repair t")))


D = Defect
LACKS = "each range came from enough replicas"
SHOWN = (
    Shown(D.repairs_are_skipped, LAGS, LACKS, oracle=True),
    Shown(D.repairs_are_skipped, LOST, LACKS),
    Shown(D.repairs_fetch_from_one_replica, LAGS, LACKS),
    Shown(D.repairs_ask_one_replica, LAGS, "every replica has repaired", oracle=True),
)


@pytest.mark.parametrize(
    "shown", SHOWN, ids=["skipped", "skipped before a rebuild", "from one", "one asked"]
)
def test_a_wrong_build_is_refused(shown: Shown) -> None:
    shown.check(3)

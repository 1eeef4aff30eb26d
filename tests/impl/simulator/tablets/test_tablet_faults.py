"""Whatever goes wrong, in whichever stage of a tablet: no promise is broken, and each edge of the table is taken."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.impl.simulator.database.wrong_builds import Shown
from tests.thorough import by_turns, some_of

from stagewright.impl.node.defects import Defect
from stagewright.impl.simulator.campaign.drawing import (
    FORWARD,
    PENDING_DIES,
    TABLET_AIMS,
    WAY_BACK,
    WAY_BACK_AIMS,
)
from stagewright.impl.simulator.database.plan import Plan
from stagewright.impl.simulator.database.report import Report
from stagewright.impl.simulator.database.run import run
from stagewright.impl.simulator.database.script import parse_script
from stagewright.impl.simulator.database.weather import ENTERED, at_stage, parse_faults
from stagewright.machines.scylladb.tablets.tablet_stages import Stage

CHANGES = Plan(
    nodes=4,
    script=parse_script("table t tablets 4 rf 3; write 80; join n5; decommission n1; join n6"),
)
MET = {
    "crash": {"node crashes", "coordinator crashes"},
    "failover": {"coordinator deposed"},
    "election": {"group0 elects"},
    "loss": {"message lost", "barrier lost", "stream lost"},
    "delay": {"message late"},
    "duplicate": {"message repeated"},
    "action": {"action fails", "barrier lost"},
    "dead": {"node dies"},
    "cut": {"node cut off"},
    "suspend": {"node suspended"},
}
SEEDS = 12


def done(faults: str, seed: int, plan: Plan = CHANGES) -> Report:
    report = run(replace(plan, seed=seed, faults=parse_faults(faults)))
    assert (report.breaches, report.refused) == ([], []), f"seed {seed}"
    return report


@pytest.mark.parametrize(
    ("kind", "stage"), some_of(TABLET_AIMS), ids=lambda one: getattr(one, "name", one)
)
def test_promises_survive_a_fault_in_a_stage(kind: str, stage: Stage) -> None:
    faults = ",".join(filter(None, (WAY_BACK.get(stage, ""), f"{kind}@{at_stage(stage)}")))
    for seed in range(SEEDS):
        report = done(faults, seed)
        if any(report.met.get((at_stage(stage), what)) for what in MET[kind]):
            return
    pytest.fail(f"no {kind} in {stage.name} in {SEEDS} seeds")


BEARS_TWO = replace(CHANGES, nodes=7, replicas=5, script=parse_script(
    "table t tablets 1 rf 3; write 80; move t 0; move t 0; join n8; move t 0"
))  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "stage"),
    some_of([one for one in WAY_BACK_AIMS if one[0] in ("dead", "suspend")]),
    ids=lambda one: getattr(one, "name", one),
)
def test_promises_survive_that_a_second_node_is_away_as_tablets_turn_back(
    kind: str, stage: Stage
) -> None:
    for seed in range(4 * SEEDS):
        report = done(f"delay=0.05,{PENDING_DIES[stage]},{kind}@{at_stage(stage)}", seed, BEARS_TWO)
        if any(report.met.get((at_stage(stage), what)) for what in MET[kind]):
            return
    pytest.fail(f"no {kind} in {stage.name} in {4 * SEEDS} seeds")


@pytest.mark.long
def test_every_way_back_is_taken() -> None:
    taken: set[tuple[str, str, str]] = set()
    barriers = (
        Stage.allow_write_both_read_old,
        Stage.write_both_read_old,
        Stage.write_both_read_new,
    )
    for stage in (*barriers, Stage.streaming):
        for seed in range(3):
            at = at_stage(stage)
            taken |= done(f"dead@{at},action@{at}", seed).edges
    for old, new in (
        ("allow_write_both_read_old", "cleanup_target"),
        ("write_both_read_old", "cleanup_target"),
        ("streaming", "cleanup_target"),
        ("write_both_read_new", "write_both_read_old_fallback_cleanup"),
        ("write_both_read_old_fallback_cleanup", "cleanup_target"),
        ("cleanup_target", "revert_migration"),
        ("revert_migration", "none"),
    ):
        assert ("tablet", old, new) in taken


def test_a_node_that_was_given_up_and_comes_back_has_no_rows_of_tablets_that_were_rebuilt() -> None:
    """Its removal fails for a call that breaks, when its tablets are elsewhere already."""
    script = "table t tablets 4 rf 3; write 80; join n4; decommission n1; replace n2 by n5; join n6; remove n3"
    report = done("all", 1, Plan(script=parse_script(script)))
    assert report.outcomes[-1].result.startswith("failed")
    assert report.nodes["n3"] == "normal"


BARRIER = "the node has acknowledged"
D = Defect
SLOW = replace(CHANGES, faults=parse_faults("delay=0.2"))
SHOWN = (
    Shown(D.streaming_does_not_wait, SLOW, BARRIER),
    Shown(D.old_reads_are_not_awaited, SLOW, BARRIER),
    Shown(D.cleanup_does_not_wait, SLOW, BARRIER),
    Shown(D.end_is_not_awaited, SLOW, BARRIER),
    Shown(D.tablet_cleanup_leaves_rows, CHANGES, "there are no rows", oracle=True),
)


@pytest.mark.parametrize("shown", by_turns(SHOWN), ids=lambda s: s.defect.name)
def test_a_wrong_build_is_refused(shown: Shown) -> None:
    shown.check(3)


def test_stages_are_counted_with_what_was_met_in_them() -> None:
    report = done("loss@tablet.streaming", 0)
    entered = {state for state, what in report.met if what == ENTERED}
    assert {at_stage(s) for s in FORWARD} <= entered
    lost = {state for state, what in report.met if what in MET["loss"]}
    assert at_stage(Stage.streaming) in lost

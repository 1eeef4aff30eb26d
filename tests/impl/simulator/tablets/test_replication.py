"""Replication factors change while clients write: no quorum misses what was acknowledged, and nothing is left behind."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from tests.impl.simulator.database.wrong_builds import Shown
from tests.thorough import by_turns, some_of

from stagewright.commands import run_command_line
from stagewright.impl.node.defects import Defect
from stagewright.impl.simulator.database.clients import Workload
from stagewright.impl.simulator.database.plan import Plan
from stagewright.impl.simulator.database.report import Report
from stagewright.impl.simulator.database.run import run
from stagewright.impl.simulator.database.script import parse_script
from stagewright.impl.simulator.database.weather import OF_TABLETS, at_stage, parse_faults
from stagewright.machines.scylladb.tablets.tablet_stages import Stage

DOWN = Plan(nodes=4, script=parse_script("table t tablets 4 rf 3; write 80; alter t rf 2"))
UP = Plan(nodes=4, script=parse_script("table t tablets 4 rf 2; write 80; alter t rf 3"))
TO_ONE = Plan(
    script=parse_script("table t tablets 4 rf 3; write 80; wait 100; alter t rf 1"),
    faults=parse_faults("loss=0.05"),
    workload=Workload(keys=30, gap=(0, 2)),
)
LOSSY = replace(
    TO_ONE,
    faults=parse_faults("loss=0.2"),
    workload=Workload(keys=30, gap=(0, 2), reads=0.1),
)


def done(plan: Plan, faults: str = "none", seed: int = 0) -> Report:
    report = run(replace(plan, seed=seed, faults=parse_faults(faults)))
    assert (report.breaches, report.refused) == ([], []), f"seed {seed}"
    return report


def replicas(report: Report) -> Counter[int]:
    return Counter(len(row["replicas"]) for row in report.tables["tablets"].values())


def test_tablets_gain_and_lose_replicas_one_at_a_time() -> None:
    script = "table t tablets 4 rf 3; write 60; alter t rf 1; write 30; alter t rf 5; write 20; alter t rf 2"
    report = done(Plan(nodes=5, script=parse_script(script)))
    assert {o.result for o in report.outcomes} == {"begun", "done"}
    assert replicas(report) == {2: 4}
    assert sum("goes from" in move for move in report.moves) == 4 * (2 + 3)
    assert sum("comes to" in move for move in report.moves) == 4 * 4


@pytest.mark.parametrize("seed", [0, 3, 4])
def test_what_is_acknowledged_while_replicas_go_is_on_those_that_stay(seed: int) -> None:
    report = run(replace(LOSSY, seed=seed))
    assert (report.breaches, report.refused) == ([], [])
    assert replicas(report) == {1: 4}


def test_a_number_that_the_nodes_cannot_hold_is_refused() -> None:
    report = done(replace(UP, script=parse_script("table t tablets 2 rf 2; alter t rf 5")))
    assert report.outcomes[-1].result.startswith("refused: tablets can be on 4 nodes")


STAGES = (
    Stage.write_both_read_old,
    Stage.rebuild_repair,
    Stage.streaming,
    Stage.write_both_read_new,
    Stage.use_new,
    Stage.cleanup,
    Stage.end_migration,
)
PAIRS = [
    (stage, kind, plan)
    for stage in STAGES
    for kind in OF_TABLETS
    for plan in (DOWN, UP)
    if not (kind == "dead" and plan is DOWN and stage is Stage.cleanup)  # too few would be left
]


@pytest.mark.parametrize(
    ("stage", "kind", "plan"),
    some_of(PAIRS, each=4),
    ids=[f"{s.name}-{k}-{'down' if p is DOWN else 'up'}" for s, k, p in some_of(PAIRS, each=4)],
)
def test_promises_survive_a_fault_in_a_stage(stage: Stage, kind: str, plan: Plan) -> None:
    for seed in range(2):
        report = done(plan, f"{kind}@{at_stage(stage)}", seed)
        assert report.met[at_stage(stage), "entered"]


@pytest.mark.parametrize("plan", [DOWN, UP], ids=["down", "up"])
def test_the_trace_of_tablets_is_accepted(plan: Plan, tmp_path: Path) -> None:
    run(replace(plan, faults=parse_faults("all"), seed=3), tmp_path)
    trace = str(tmp_path / "tablets.jsonl")
    assert run_command_line(["validate", trace, "--engine", "embedded"]) == 0


D = Defect
SHOWN = (
    Shown(
        D.leaving_replicas_suffice,
        LOSSY,
        "a quorum of the replicas that stay has stored it",
        oracle=True,
    ),
    Shown(D.quorums_are_of_the_table, TO_ONE, "enough replicas have stored it"),
    Shown(
        D.removed_replicas_are_not_repaired,
        TO_ONE,
        "those that stay have what it alone had",
        oracle=True,
    ),
    Shown(D.removed_replicas_keep_rows, DOWN, "", oracle=True),
)


@pytest.mark.parametrize("shown", by_turns(SHOWN), ids=lambda s: s.defect.name)
def test_a_wrong_build_is_noticed(shown: Shown) -> None:
    shown.check(5)

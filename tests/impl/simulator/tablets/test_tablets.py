"""Tables of tablets: they move when nodes come and go, by the tablet's machine, with their rows."""

from __future__ import annotations

import pytest

from stagewright.impl.node.defects import Defect
from stagewright.impl.node.port import Timing
from stagewright.impl.simulator.database.plan import COMPACT_AFTER, Plan
from stagewright.impl.simulator.database.report import Report
from stagewright.impl.simulator.database.run import run
from stagewright.impl.simulator.database.script import parse_script
from stagewright.impl.simulator.database.weather import parse_faults
from stagewright.impl.simulator.database.workload import parse_workload

CHANGES = "table t tablets 4 rf 3; write 60; join n4; decommission n1; replace n2 by n5; join n6; remove n3"


def done(
    script: str, seed: int = 0, faults: str = "none", defects: frozenset[Defect] = frozenset()
) -> Report:
    plan = Plan(
        seed=seed, script=parse_script(script), faults=parse_faults(faults), defects=defects
    )
    return run(plan)


def test_tablets_move_as_nodes_come_and_go_and_the_plan_says_why() -> None:
    report = done(CHANGES)
    assert (report.breaches, report.refused) == ([], [])
    assert {o.result for o in report.outcomes} == {"done", "begun"}
    hosts = {host for row in report.tables["tablets"].values() for host, _ in row["replicas"]}
    assert hosts == {"n4", "n5", "n6"}
    assert any("n1 is leaving" in move for move in report.moves)
    assert any("rebuild" in move and "n3 is excluded" in move for move in report.moves)
    assert report.counted["writes acknowledged"] == 60


def test_under_faults_every_promise_is_kept() -> None:
    script = "table t tablets 4 rf 3; write 60; join n4; decommission n1"
    report = done(script, 2, "delay,duplicate,loss,crash,failover")
    assert (report.breaches, report.refused) == ([], [])
    assert report.moves


def test_the_balancer_looks_again_when_a_node_is_back() -> None:
    """Seed 16: a node was down when the tablets of a replaced one were to be rebuilt, and nothing was committed."""
    report = done(
        CHANGES.replace("write 60", "write 80").replace("table t ", "table t2 "), 16, "all"
    )
    assert (report.breaches, report.refused) == ([], [])


@pytest.mark.parametrize("seed", [42, 57])
def test_a_replaced_node_is_waited_for_by_no_tablet_and_counts_in_none(seed: int) -> None:
    """In seed 57 a barrier of tablets waited for it; in 42 another node was killed before they were rebuilt."""
    report = done(
        CHANGES.replace("write 60", "write 80").replace("table t ", "table t2 "), seed, "all"
    )
    assert (report.breaches, report.refused) == ([], [])


def test_a_node_stays_if_its_tablets_have_no_place() -> None:
    report = done("table t tablets 2 rf 3; decommission n1")
    assert report.kept
    assert report.outcomes[-1].result.startswith("failed: the tablets of ks.t have 3 replicas")


@pytest.mark.parametrize(
    "defect", [Defect.tablet_streaming_is_skipped, Defect.streaming_misses_rows]
)
def test_a_tablet_that_moves_without_its_rows_is_noticed(defect: Defect) -> None:
    script = "table t tablets 4 rf 3; write 120; wait 200; join n4; decommission n1; join n5; decommission n2"
    broken = any(done(script, seed, defects=frozenset({defect})).breaches for seed in range(3))
    assert broken


BUSY, CHUNK = parse_workload("clients=4,keys=40,gap=1-6,reads=0.5,deletes=0.05,chunk=3")


@pytest.mark.parametrize(
    "plan",
    [
        Plan(
            nodes=3,
            seed=24,
            script=parse_script(
                "table t tablets 4 rf 2; write 71; wait 527; join n4; cleanup; replace n4 by n5; write 62"
            ),
            faults=parse_faults("loss=0.06,delay=0.2,failover=10,storm"),
            workload=BUSY,
            timing=Timing(compact_after=COMPACT_AFTER, chunk=CHUNK),
            cdc=True,
        ),
        Plan(
            nodes=3,
            seed=102,
            script=parse_script(
                "table t tablets 4 rf 3; write 20; join n4; decommission n4; write 20"
            ),
            faults=parse_faults("delay=0.05"),
        ),
    ],
    ids=["replaced while they arrive", "drained as soon as it has joined"],
)
def test_tablets_settle_on_nodes_that_are_asked_to_leave(plan: Plan) -> None:
    report = run(plan)
    assert (report.breaches, report.refused) == ([], [])

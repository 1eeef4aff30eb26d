"""A consumer of the CDC log reads each acknowledged change once and in order, whatever happens to the cluster."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.thorough import some_of

from stagewright.impl.simulator.campaign.drawing import draw
from stagewright.impl.simulator.database.clients import Workload
from stagewright.impl.simulator.database.plan import Plan
from stagewright.impl.simulator.database.run import run
from stagewright.impl.simulator.database.script import parse_script
from stagewright.impl.simulator.database.weather import parse_faults

CHANGES = Plan(
    script=parse_script(
        "write 300; join n4; decommission n1; write 100; generation; replace n2 by n5"
    ),
    faults=parse_faults("all"),
    workload=Workload(keys=12, gap=(0, 3), odd=0.05),
    cdc=True,
)
WIDE = Plan(  # with more nodes than replicas, rows and their changes are often on different ones
    nodes=4,
    script=parse_script("write 500; join n5; decommission n1; join n6; replace n2 by n7"),
    faults=parse_faults("loss=0.2,crash=30,skew=40"),
    workload=Workload(clients=6, keys=12, gap=(0, 3), odd=0.05),
    cdc=True,
)


@pytest.mark.parametrize("seed", some_of([23, 0, 26]))
def test_every_acknowledged_change_is_read_once(seed: int) -> None:
    report = run(replace(CHANGES, seed=seed))
    assert (report.breaches, report.refused) == ([], [])
    counted = report.counted
    assert counted["changes read from the log"] >= counted["writes acknowledged"] > 250


@pytest.mark.parametrize("seed", some_of([1, 0, 2]))
def test_images_are_what_a_read_would_have_returned_before_the_write(seed: int) -> None:
    report = run(replace(CHANGES, seed=seed, images=True))
    assert (report.breaches, report.refused) == ([], [])
    assert (
        report.counted["changes read from the log"] >= report.counted["writes acknowledged"] > 250
    )


def test_log_rows_of_a_node_that_is_cut_off_are_fenced_off() -> None:
    """It goes on with the generation that it knows, while it is replaced and another one begins."""
    report = run(draw(500_087).plan())
    assert (report.breaches, report.refused) == ([], [])


def test_without_faults_all_operations_are_done_and_odd_timestamps_refused() -> None:
    report = run(replace(CHANGES, faults=parse_faults("none"), seed=3))
    assert [o.result for o in report.outcomes] == ["begun", "done", "done", "begun", "done", "done"]
    assert report.kept
    assert report.counted["writes failed"] > 5

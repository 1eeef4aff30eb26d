"""A consumer follows the log of a table of tablets over moves, splits and merges: each change once, in order."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.thorough import some_of

from stagewright.impl.simulator.database.clients import Workload
from stagewright.impl.simulator.database.plan import Plan
from stagewright.impl.simulator.database.run import run
from stagewright.impl.simulator.database.script import parse_script
from stagewright.impl.simulator.database.weather import parse_faults

RESIZED = Plan(
    nodes=4,
    script=parse_script(
        "table t tablets 2 rf 3; write 150; split t; write 100; join n5; merge t; write 150; "
        "decommission n1; merge t; write 80; split t; write 40"
    ),
    faults=parse_faults("all"),
    workload=Workload(keys=12, gap=(0, 3), odd=0.05),
    cdc=True,
)
CUT_OFF = Plan(
    script=parse_script(
        "table t tablets 1 rf 3; write 60; split t; isolate n3; write 200; wait 2000; replace n3 by n4"
    ),
    faults=parse_faults("delay=0.1"),
    workload=Workload(keys=12),
    cdc=True,
)
"""A node that clients reach, and group0 does not, while a table's tablets get new streams."""


@pytest.mark.parametrize("seed", some_of([5, 0, 1, 2, 3, 4]))
def test_every_acknowledged_change_is_read_once(seed: int) -> None:
    report = run(replace(RESIZED, seed=seed))
    assert (report.breaches, report.refused) == ([], [])
    counted = report.counted
    assert counted["changes read from the log"] >= counted["writes acknowledged"] > 400


@pytest.mark.parametrize("seed", some_of([3, 1, 2]))
def test_a_node_that_is_cut_off_writes_to_no_log(seed: int) -> None:
    """It cannot know whether the streams that it knows operate still."""
    report = run(replace(CUT_OFF, seed=seed))
    assert (report.breaches, report.refused) == ([], [])
    assert report.counted["writes failed"] > 40


def test_without_faults_each_resize_begins_a_set_of_one_stream_a_tablet() -> None:
    report = run(replace(RESIZED, faults=parse_faults("none"), seed=3))
    assert {o.result for o in report.outcomes} == {"begun", "done"}
    assert report.kept
    sets = sorted(report.tables["cdc_streams_history"].items())
    assert [len(row["streams"]) for _, row in sets] == [2, 4, 2, 1, 2]
    assert len({stream for _, row in sets for stream in row["streams"]}) == 11

"""Nodes that are not reached for a while, and then go on as they were: with their requests, streams and leadership."""

from __future__ import annotations

import pytest

from stagewright.impl.simulator.campaign.drawing import draw
from stagewright.impl.simulator.database.clients import Workload
from stagewright.impl.simulator.database.plan import Plan
from stagewright.impl.simulator.database.report import Report
from stagewright.impl.simulator.database.run import run
from stagewright.impl.simulator.database.script import parse_script
from stagewright.impl.simulator.database.weather import faults_text, parse_faults

AWAY = (("partition", "reconnect"), ("suspend", "resume"))


def ran(script: str, nodes: int = 3, faults: str = "none") -> Report:
    report = run(
        Plan(
            nodes=nodes,
            script=parse_script(script),
            faults=parse_faults(faults),
            workload=Workload(keys=12, gap=(0, 3)),
        )
    )
    assert (report.breaches, report.refused) == ([], [])
    return report


@pytest.mark.parametrize(("away", "back"), AWAY)
def test_who_led_is_back_as_it_was_and_leads_no_more(away: str, back: str) -> None:
    script = "write 20; {} {}; wait 900; write 20; {} {}; write 20; wait 300"
    reports = {n: ran(script.format(away, n, back, n)) for n in ("n1", "n2", "n3")}
    assert sorted(report.counted["terms"] for report in reports.values()) == [1, 1, 2]
    assert all("crashes" not in report.counted for report in reports.values())


@pytest.mark.parametrize(("away", "back"), AWAY)
def test_who_was_taken_for_dead_and_replaced_hears_of_it(away: str, back: str) -> None:
    script = f"table t tablets 4 rf 2; write 60; {away} n3; write 40; replace n3 by n5; {back} n3; write 40"
    report = ran(script, nodes=4)
    assert [o.result for o in report.outcomes if "replace" in o.operation] == ["done"]
    assert (report.nodes["n3"], report.nodes["n5"]) == ("left", "normal")
    assert "crashes" not in report.counted


@pytest.mark.parametrize(
    ("faults", "met"), [("partition=60", "node cut off"), ("suspend=120", "node suspended")]
)
def test_nodes_are_not_reached_now_and_then(faults: str, met: str) -> None:
    report = ran("table t tablets 4 rf 3; write 200; join n4; decommission n2", faults=faults)
    assert sum(n for (_, kind), n in report.met.items() if kind == met)


def test_some_scenarios_have_such_nodes() -> None:
    drawn = [draw(seed) for seed in range(400)]
    words = ("partition n", "reconnect n", "suspend n", "resume n")
    assert all(any(word in d.script_text for d in drawn) for word in words)
    faults = [faults_text(d.faults) for d in drawn]
    assert 0 < sum("partition=" in text for text in faults) < 100
    assert 0 < sum("suspend=" in text for text in faults) < 100
    assert any("ask remove" in d.script_text for d in drawn)

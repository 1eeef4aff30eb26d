"""DROP TABLE in runs: at any time, of tables of tablets and of the token ring; no row of it is left, nor comes back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.impl.simulator.database.wrong_builds import Shown
from tests.thorough import by_turns, some_of

from stagewright.commands import run_command_line
from stagewright.impl.node.defects import Defect
from stagewright.impl.simulator.campaign.drawing import draw
from stagewright.impl.simulator.campaign.drawing_drops import DROPS_FROM
from stagewright.impl.simulator.database.clients import Workload
from stagewright.impl.simulator.database.plan import Plan
from stagewright.impl.simulator.database.report import Report
from stagewright.impl.simulator.database.run import run
from stagewright.impl.simulator.database.script import parse_script
from stagewright.impl.simulator.database.weather import parse_faults
from stagewright.spec.errors import InputError

WORK = Workload(keys=30, gap=(0, 3), scans=0.2)
AGAIN = "table t tablets 4 rf 3; write 100; wait 200; drop table t; table t tablets 4 rf 3; wait 100; write 20"


def plan_of(script: str, faults: str = "none", **beside: object) -> Plan:
    plan = Plan(nodes=4, script=parse_script(script), faults=parse_faults(faults), workload=WORK)
    return replace(plan, **beside)  # type: ignore[arg-type]


def sound(report: Report) -> list[str]:
    """The results, of a run in which nothing is wrong."""
    assert (report.breaches, report.refused) == ([], [])
    return [outcome.result for outcome in report.outcomes]


def tables_of(report: Report) -> set[str]:
    return {name for (name,) in report.tables["tables"]}


# -- whatever goes on ----------------------------------------------------------------------------------------

AT = {
    "tablets leave a node": "table t tablets 4 rf 3; write 60; ask decommission n4; wait {}; drop table t; join n5",
    "its tablets are split": "table t tablets 4 rf 3; write 60; ask split t; wait {}; drop table t; join n5",
    "its tablets are brought together": "table t tablets 8 rf 2; write 60; ask merge t; wait {}; drop table t; join n5",
    "it is repaired": "table t tablets 4 rf 3; write 60; ask repair t; wait {}; drop table t; decommission n4",
    "another one stays": "table t tablets 4 rf 2; table u tablets 4 rf 2; write 60; ask decommission n4; wait {}; "
    "drop table t; join n5; split u; write 30",
}
"""Scripts with a moment in them, in milliseconds after the request."""
MOMENTS = (35, 5, 65, 95, 140, 200, 260)


@pytest.mark.parametrize("moment", some_of(MOMENTS, each=3))
@pytest.mark.parametrize("script", AT.values(), ids=[*AT])
def test_a_table_is_dropped_whatever_its_tablets_do(script: str, moment: int) -> None:
    report = run(plan_of(script.format(moment), seed=moment))
    assert set(sound(report)) <= {"done", "begun", "asked"}
    assert "ks.t" not in tables_of(report)
    assert all(key[0] != "ks.t" for key in report.tables["tablets"])


UNDER_FAULTS = (
    plan_of(AT["another one stays"].format(60), "all", cdc=True),
    plan_of(
        f"{AGAIN}; drop table t; drop table rows; {AGAIN}",
        "all,skew=40",
        nodes=3,
        ttl=4000,
        cdc=True,
    ),
    plan_of(
        "table t tablets 4 rf 2; write 80; kill n2; write 20; drop table t; table t tablets 4 rf 2; write 40; restart n2; "
        "join n5; drop table t; write 20; decommission n1",
        "delay,loss,failover",
        seed=2,
    ),
    plan_of(
        "table t tablets 4 rf 3; write 80; create view v on t by value mod 5; write 40; join n5; drop view v; "
        "drop table t; table t tablets 2 rf 3; write 20; create view v on t by value; await v; split t",
        "crash=60,delay",
        seed=1,
    ),
    plan_of(
        "table t tablets 4 rf 3; write 60; partition n2; write 20; drop table t; table t tablets 4 rf 3; write 20; "
        "reconnect n2; suspend n3; write 20; drop table t; write 20; resume n3; isolate n1; drop table rows",
        "delay,duplicate",
        cdc=True,
        images=True,
    ),
)


@pytest.mark.parametrize("plan", UNDER_FAULTS, ids=lambda p: str(p.script[-1]))
def test_nothing_is_wrong_under_faults(plan: Plan) -> None:
    sound(run(plan))


def test_the_last_table_may_be_dropped_while_its_tablets_are_drained() -> None:
    """The track ends though no table of tablets is left, and nodes go and come afterwards."""
    script = "table t tablets 4 rf 3; write 60; ask decommission n4; wait 40; drop table t; join n5; decommission n3"
    report = run(plan_of(script))
    assert sound(report)[-2:] == ["done", "done"]
    assert report.nodes["n4"] == "left"


@pytest.mark.parametrize("of", ["t", "v"])
def test_what_is_to_be_split_may_be_dropped_while_that_is_finalised(of: str) -> None:
    """The finalization once waited for what was prepared, and that was gone."""
    view = "" if of == "t" else "create view v on t by value mod 5; await v; "
    kind = "table" if of == "t" else "view"
    script = f"table t tablets 4 rf 3; write 60; {view}ask split {of}; wait 40; drop {kind} {of}; join n5"
    report = run(plan_of(script))
    assert sound(report)[-1] == "done"
    assert ("topology", "tablet_resize_finalization", "null") in report.edges


# -- the token ring --------------------------------------------------------------------------------------------


def test_dropping_a_table_with_one_replica_on_a_dead_node_lets_the_node_be_removed() -> None:
    blocked = "write 40; wait 100; kill n2; remove n2"
    results = sound(run(plan_of(blocked, replicas=1)))
    assert results[-1] != "done"
    results = sound(
        run(plan_of("write 40; wait 100; kill n2; drop table rows; remove n2", replicas=1))
    )
    assert results[-2:] == ["done", "done"]


def test_streaming_goes_on_without_a_table_that_is_dropped_meanwhile() -> None:
    for moment in (20, 60, 100):
        script = f"write 200; wait 200; kill n2; ask remove n2; wait {moment}; drop table rows; wait 2000"
        report = run(plan_of(script, seed=moment))
        sound(report)
        assert report.nodes["n2"] == "left"


# -- what is refused, and what is not there any more -------------------------------------------------------------


def test_a_table_with_views_is_not_dropped_and_one_without_any_more_is() -> None:
    script = (
        "table t tablets 2 rf 2; write 40; create view v on t by value; await v; drop table t; drop table v; "
        "drop view v; drop table t; split t; write 10; drop table rows; write 10"
    )
    *_, views, of_view, _, dropped, split, _, rows, none = sound(run(plan_of(script)))
    assert views == "refused: ks.t has views: ks.v"
    assert of_view == "refused: ks.v is a view"
    assert (dropped, rows) == ("done", "done")
    assert split == "refused: there is no table ks.t"
    assert none == "refused: there is no table"


def test_a_table_that_never_was_cannot_be_dropped() -> None:
    with pytest.raises(InputError, match="there is no such table"):
        run(plan_of("drop table t"))


def test_a_table_that_is_made_again_is_another_one_with_a_log_of_its_own() -> None:
    report = run(plan_of(AGAIN, cdc=True))
    sound(report)
    assert tables_of(report) >= {"ks.t#2", "ks.t#2_scylla_cdc_log"}
    assert not tables_of(report) & {"ks.t", "ks.t_scylla_cdc_log"}
    assert {table for table, _ in report.tables["cdc_streams_history"]} == {"ks.t#2"}


def test_a_name_goes_from_a_table_to_a_view_and_back_without_its_rows() -> None:
    script = (
        "table t tablets 2 rf 3; table b tablets 2 rf 3; write 80; wait 100; drop table t; "
        "create view t on b by value; await t; drop view t; table t tablets 4 rf 2; write 20"
    )
    report = run(plan_of(script, "crash=60"))
    sound(report)
    assert "ks.t#3" in tables_of(report)


@pytest.mark.parametrize("seed", some_of((0, 5, 43, 75, 98, 247), each=3))
def test_drawn_runs_drop_tables_and_are_sound(seed: int) -> None:
    results = sound(run(draw(DROPS_FROM + seed).plan()))
    assert results.count("done") > 1


# -- wrong builds ----------------------------------------------------------------------------------------------

D = Defect
DOWN = plan_of(
    "table t tablets 4 rf 3; write 60; wait 200; kill n2; drop table t; restart n2", nodes=3
)
LATE = plan_of("table t tablets 4 rf 3; write 200; wait 60; drop table t", "delay=0.5")
SHOWN = (
    Shown(D.dropped_rows_are_not_looked_for, DOWN, "", oracle=True),
    Shown(D.rows_come_to_dropped_tables, LATE, "there is storage", oracle=True),
    Shown(
        D.recreated_tables_are_the_same, plan_of(AGAIN, "crash=900", nodes=3), "", 11, oracle=True
    ),
)


@pytest.mark.parametrize("shown", by_turns(SHOWN), ids=lambda s: s.defect.name)
def test_rows_of_a_dropped_table_are_noticed(shown: Shown) -> None:
    shown.check(seeds=8)


@pytest.mark.parametrize("plan", [DOWN, LATE, replace(SHOWN[2].plan, seed=11)])
def test_a_sound_build_has_none(plan: Plan) -> None:
    sound(run(plan))


# -- the command -----------------------------------------------------------------------------------------------


def test_the_records_of_a_run_with_a_drop_are_valid(tmp_path: Path) -> None:
    script = AT["another one stays"].format(60)
    made = [
        "run",
        "--nodes",
        "4",
        "--script",
        f"{script}; {AGAIN}",
        "--cdc",
        "--out",
        str(tmp_path),
    ]
    assert run_command_line(made) == 0
    topology = str(tmp_path / "topology.jsonl")
    rest = [str(path) for path in tmp_path.glob("*.jsonl") if str(path) != topology]
    for validate in ([topology, "--size", "Node=5"], rest, [str(tmp_path / "logs")]):
        assert run_command_line(["validate", *validate, "--engine", "embedded"]) == 0

"""TRUNCATE in runs: a table is empty on every node once it is done, nothing of before comes back, and what follows stays."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.impl.simulator.database.wrong_builds import Shown
from tests.impl.simulator.operators import Operator
from tests.traces.databases.scylladb.scylla_evaluated import interpret, violations

from stagewright.impl.node.defects import Defect
from stagewright.impl.node.messages import CreateTable, OperatorReply, TruncateTable
from stagewright.impl.node.port import Timing
from stagewright.impl.server_log.files import LOGS
from stagewright.impl.simulator.campaign.drawing import NEWER, draw
from stagewright.impl.simulator.database.clients import Workload
from stagewright.impl.simulator.database.plan import COMPACT_AFTER, Plan
from stagewright.impl.simulator.database.report import Report
from stagewright.impl.simulator.database.run import run
from stagewright.impl.simulator.database.script import parse_script
from stagewright.impl.simulator.database.weather import parse_faults

WORK = Workload(keys=30, gap=(0, 3), scans=0.2, deletes=0.1)
TWICE = (
    "table t tablets 4 rf 3; write 120; truncate t; join n4; write 40; truncate t; truncate rows; "
    "split t; write 40; decommission n1"
)
EDGES = {("topology", "null", "truncate_table"), ("topology", "truncate_table", "null")}


def plan_of(script: str, faults: str = "none", **beside: object) -> Plan:
    plan = Plan(script=parse_script(script), faults=parse_faults(faults), workload=WORK)
    return replace(plan, **beside)  # type: ignore[arg-type]


def results(report: Report, verb: str) -> list[str]:
    """The results of the operations of a kind, of a run in which nothing is wrong."""
    assert (report.breaches, report.refused) == ([], [])
    return [o.result for o in report.outcomes if o.operation.startswith(verb)]


@pytest.mark.parametrize("faults", ["none", "all", "delay=0.3,crash=40", "failover=60,election=30"])
def test_a_table_is_empty_on_every_node_and_what_is_written_then_stays(faults: str) -> None:
    for seed in range(3):
        report = run(plan_of(TWICE, faults, seed=seed))
        assert results(report, "truncate") == ["done"] * 3
        assert report.edges >= EDGES
        assert report.counted["writes acknowledged"] > 100
        assert report.tables["tables"]["ks.t",]["truncate_at"] is None


def test_the_logs_say_so_in_the_words_of_scylladb_and_are_accepted(tmp_path: Path) -> None:
    run(plan_of(TWICE, "delay=0.1", seed=2), tmp_path)
    logs = [p.read_text("utf-8").splitlines() for p in sorted((tmp_path / LOGS).glob("*.log"))]
    assert violations(interpret(*logs)) == []
    lines = [line for log in logs for line in log]
    for said in ("TRUNCATE TABLE requested", "Clear truncate session", "Truncate has completed"):
        assert sum(f"updating topology state: {said}" in line for line in lines) == 3


def test_a_tablet_that_was_emptied_moves_away_and_leaves_nothing_to_clean_up() -> None:
    script = (
        "table t tablets 1 rf 3; table u tablets 8 rf 3; write 123; create view x on t by value mod 7; "
        "move t 0; write 41; write 23; join n6; write 54; truncate u"
    )
    work = Workload(keys=40, gap=(0, 3), deletes=0.05)
    timing = Timing(compact_after=COMPACT_AFTER, chunk=3)
    plan = plan_of(script, nodes=5, seed=500013113, workload=work, timing=timing)
    assert results(run(plan), "truncate") == ["done"]


QUIET = "table t tablets 2 rf 3; write 20; wait 3000; truncate t; truncate rows"


def test_nothing_is_read_any_more_by_whomever() -> None:
    report = run(plan_of(QUIET, seed=4))
    assert results(report, "truncate") == ["done", "done"]
    found = report.tables["tables"]
    assert found["ks.t",]["truncated_at"] < found["ks.rows",]["truncated_at"]


REFUSED = {
    "it has views": "table t tablets 2 rf 3; write 20; create view v on t by value; await v; truncate t",
    "it is a view": "table t tablets 2 rf 3; write 20; create view v on t by value; await v; truncate v",
}


@pytest.mark.parametrize("script", REFUSED.values(), ids=[*REFUSED])
def test_what_would_keep_its_rows_elsewhere_is_refused(script: str) -> None:
    (result,) = results(run(plan_of(script)), "truncate")
    assert result.startswith("refused: ks.")


def test_a_table_with_a_log_is_refused_as_its_consumers_would_not_learn_of_it() -> None:
    report = run(plan_of("write 20; truncate rows; write 20", cdc=True))
    assert results(report, "truncate") == [
        "refused: ks.rows keeps a log of its changes, whose consumers would not learn of it"
    ]


def test_a_truncation_is_refused_while_a_node_is_down_whose_rows_would_stay() -> None:
    script = (
        "table t tablets 2 rf 3; write 60; kill n3; truncate t; restart n3; wait 3000; truncate t"
    )
    report = run(plan_of(script))
    first, last = results(report, "truncate")
    assert (first, last) == ("refused: n3 is down, whose rows would stay", "done")


def test_a_clock_that_is_far_ahead_empties_no_table_of_the_future() -> None:
    operator = Operator()
    operator.change(CreateTable(1, "ks.rows", 3))
    now = operator.node("n1").context.around.now()
    refused = operator.ask("n1", TruncateTable(2, "ks.rows", now + 3_600_500_000))
    assert isinstance(refused, OperatorReply)
    assert refused.reason.startswith("the statement's time is 3600 s ahead, and rows would be")
    operator.change(TruncateTable(3, "ks.rows", now + 2_000_000))


def test_a_locked_topology_is_changed_by_nobody_until_it_is_unlocked() -> None:
    script = "write 60; lock; ask decommission n3; wait 2000"
    locked, unlocked = (
        run(plan_of(script, nodes=4)),
        run(plan_of(f"{script}; unlock; join n5", nodes=4)),
    )
    assert locked.breaches == ["what was begun does not end: the topology is in lock"]
    assert (locked.refused, locked.nodes["n3"]) == ([], "normal")
    assert results(unlocked, "lock") == results(unlocked, "unlock") == ["done"]
    assert (unlocked.nodes["n3"], unlocked.nodes["n5"]) == ("left", "normal")
    assert {("topology", "null", "lock"), ("topology", "lock", "null")} <= unlocked.edges


SHOWN = (
    Shown(Defect.rows_come_to_truncated_tables, plan_of(TWICE, "delay=0.3"), "", oracle=True),
    Shown(Defect.truncations_are_not_awaited, plan_of(TWICE), "", oracle=True),
)


@pytest.mark.parametrize("shown", SHOWN, ids=lambda one: one.defect.name)
def test_a_build_that_keeps_or_takes_rows_of_before_is_noticed(shown: Shown) -> None:
    shown.check(6)


def test_newer_seeds_truncate_tables_and_lock_the_topology() -> None:
    scripts = [draw(NEWER + seed) for seed in range(400)]
    truncate = [s for s in scripts if "truncate" in s.script_text]
    assert 50 < len(truncate) < 110
    assert sum(s.script_text.count("truncate t") for s in truncate) > 10
    assert sum("; lock; wait" in s.script_text for s in scripts) > 8
    assert not any("truncate" in draw(seed).script_text for seed in range(200))

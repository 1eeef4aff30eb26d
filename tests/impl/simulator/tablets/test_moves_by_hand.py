"""An operator moves tablets and stops the balancer: what is asked for happens or is refused, and nothing is lost."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest
from tests.thorough import some_of

from stagewright.commands import run_command_line
from stagewright.impl.catalog.memo import Memo
from stagewright.impl.catalog.view import view_of
from stagewright.impl.simulator.database.plan import Plan
from stagewright.impl.simulator.database.report import Report
from stagewright.impl.simulator.database.run import run
from stagewright.impl.simulator.database.script import parse_script
from stagewright.impl.simulator.database.weather import OF_TABLETS, at_stage, parse_faults
from stagewright.impl.tablets.moves_by_hand import by_hand, withdrawn
from stagewright.machines.scylladb.tablets.tablet_stages import Stage
from stagewright.spec.errors import InputError

MOVED = Plan(
    script=parse_script("table t tablets 2 rf 2; balancing off; write 60; move t 0; move t 1")
)


def done(script: str, faults: str = "none", seed: int = 0, out: Path | None = None) -> Report:
    report = run(Plan(seed=seed, script=parse_script(script), faults=parse_faults(faults)), out)
    assert (report.breaches, report.refused) == ([], []), f"seed {seed}"
    return report


def places(report: Report) -> list[list[list[object]]]:
    rows = report.tables["tablets"]
    return [rows[key]["replicas"] for key in sorted(rows, key=lambda k: int(k[1]))]


def test_a_replica_moves_to_the_node_and_the_shard_that_are_named() -> None:
    table = "table t tablets 1 rf 2; balancing off"
    assert places(done(table)) == [[["n1", 0], ["n2", 0]]]
    report = done(f"{table}; write 40; move t 0 from n1 to n3:1; move t 0 from n2:0 to n2:1")
    assert [o.result for o in report.outcomes[-2:]] == ["done", "done"]
    assert places(report) == [[["n3", 1], ["n2", 1]]]
    assert report.moves == [
        "migration of ks.t:0 from n1:0 to n3:1: an operator asked for it",
        "intranode migration of ks.t:0 from n2:0 to n2:1: an operator asked for it",
    ]
    assert ("topology", "null", "tablet_migration") in report.edges


def test_the_balancer_moves_back_what_it_may_and_rests_where_it_is_off() -> None:
    table = "table t tablets 4 rf 1"
    moves = "; ".join(f"move t {i} from n{i % 3 + 1} to n3:0" for i in (0, 1))
    off = done(f"{table}; balancing off; {moves}; wait 500")
    assert [host for ((host, _),) in places(off)].count("n3") == 3
    on = done(f"{table}; balancing off; {moves}; balancing on; wait 500")
    assert [host for ((host, _),) in places(on)].count("n3") <= 2
    assert any("the shard has" in move for move in on.moves)


def test_a_node_is_drained_though_the_balancer_is_off() -> None:
    report = done("table t tablets 4 rf 2; balancing off; write 40; join n4; decommission n1")
    assert report.outcomes[-1].result == "done"
    assert not any(host == "n1" for replicas in places(report) for host, _ in replicas)


@pytest.mark.parametrize(
    ("move", "reason"),
    [
        ("move t 4 from n1 to n3", "ks.t has no tablet 4"),
        ("move t 0 from n3 to n1", "ks.t:0 has no replica on n3"),
        ("move t 0 from n1:1 to n3", "ks.t:0 has no replica on n1:1"),
        ("move t 0 from n1 to n2", "ks.t:0 has a replica on n2"),
        ("move t 0 from n1 to n9", "n9 is no node that stays"),
        ("move t 0 from n1 to n3:7", "n3 has 2 shards"),
        ("move t 0 from n1:0 to n1:0", "ks.t:0 lies on n1:0"),
    ],
)
def test_what_cannot_be_moved_so_is_refused(move: str, reason: str) -> None:
    report = done(f"table t tablets 2 rf 2; balancing off; {move}")
    assert report.outcomes[-1].result == f"refused: {reason}"
    assert report.moves == []


@pytest.mark.parametrize(
    "script", ["move t", "move t 0 from n1", "move t 0 from n1: to n2", "balancing"]
)
def test_what_says_no_move_is_refused(script: str) -> None:
    with pytest.raises(InputError, match="write `"):
        parse_script(script)


def test_a_wish_is_withdrawn_when_its_node_is_to_go() -> None:
    report = done("table t tablets 1 rf 2; balancing off; join n4")
    tables = deepcopy(report.tables)
    ((key, row),) = tables["tablets"].items()
    row["migration_task_info"] = [["n2", 0], ["n4", 1]]
    assert [str(m) for m in by_hand(view_of(tables, Memo()))] == [
        "migration of ks.t:0 from n2:0 to n4:1: an operator asked for it"
    ]
    assert withdrawn(view_of(tables, Memo())) == ()
    tables["topology"]["n4",]["topology_request"] = "leave"
    assert list(by_hand(view_of(tables, Memo()))) == []
    (forgotten,) = withdrawn(view_of(tables, Memo()))
    assert (forgotten.key, forgotten.columns) == (key, {"migration_task_info": None})


PAIRS = [
    (stage, kind)
    for stage in (Stage.streaming, Stage.use_new, Stage.cleanup)
    for kind in OF_TABLETS
]


@pytest.mark.parametrize(("stage", "kind"), some_of(PAIRS, each=6))
def test_promises_survive_a_fault_while_an_operator_moves(stage: Stage, kind: str) -> None:
    for seed in range(2):
        plan = replace(MOVED, seed=seed, faults=parse_faults(f"{kind}@{at_stage(stage)}"))
        report = run(plan)
        assert (report.breaches, report.refused) == ([], []), f"seed {seed}"
        assert report.met[at_stage(stage), "entered"]


def test_a_request_to_leave_is_aborted_while_tablets_are_on_their_way() -> None:
    """The last tablet may arrive elsewhere all the same, which is a move and no end of a drain."""
    script = (
        "table t tablets 4 rf 2; balancing off; write 100; join n4; move t 0; move t 1; merge t; "
        "balancing on; ask decommission n1; wait 50; abort n1; decommission n2; move t 1"
    )
    for seed in (15, 16):
        report = done(script, "all", seed)
        assert "done" in {o.result for o in report.outcomes if str(o.operation) == "abort n1"}, seed


def test_the_traces_of_moves_by_hand_are_accepted(tmp_path: Path) -> None:
    done("table t tablets 2 rf 2; write 60; join n4; move t 0; move t 1", "all", 5, tmp_path)
    for trace in (["tablets.jsonl"], ["topology.jsonl", "--size", "Node=4"]):
        words = ["validate", str(tmp_path / trace[0]), *trace[1:], "--engine", "embedded"]
        assert run_command_line(words) == 0

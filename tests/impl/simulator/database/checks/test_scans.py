"""Clients that scan while nodes come and go: what they knew is there, and what replicas serve is not older than the fence."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.impl.simulator.database.wrong_builds import Shown
from tests.thorough import by_turns

from stagewright.impl.node.defects import Defect
from stagewright.impl.node.keys import stored_key
from stagewright.impl.simulator.database.checks.oracle import Oracle
from stagewright.impl.simulator.database.plan import Plan
from stagewright.impl.simulator.database.run import run
from stagewright.impl.simulator.database.script import parse_script
from stagewright.impl.simulator.database.weather import parse_faults
from stagewright.impl.simulator.database.workload import parse_workload

SCANNED = Plan(
    script=parse_script(
        "table t tablets 4 rf 3; write 300; join n4; decommission n1; replace n2 by n5"
    ),
    faults=parse_faults("all"),
    workload=parse_workload("keys=20,gap=0-3,scans=0.6,deletes=0.2")[0],
)
ENOUGH = "as many replicas have answered as the level asks for"
D = Defect
SHOWN = (
    Shown(D.scans_are_not_fenced, SCANNED, "the request is not older than the fence"),
    Shown(D.scans_ask_one_replica, SCANNED, ENOUGH, oracle=True),
)


@pytest.mark.parametrize("shown", by_turns(SHOWN), ids=lambda s: s.defect.name)
def test_a_wrong_build_of_scans_is_shown(shown: Shown) -> None:
    shown.check(5)


def test_scans_find_what_clients_know_while_nodes_come_and_go() -> None:
    report = run(replace(SCANNED, seed=2))
    assert (report.breaches, report.refused) == ([], [])
    assert report.counted["scans returned"] > 50


def written(oracle: Oracle, key: bytes, timestamp: int, value: bytes | None) -> None:
    oracle.begin_write(key, timestamp, value)
    oracle.acknowledge(key, timestamp)


def test_a_scan_may_leave_out_what_is_deleted_and_nothing_else_that_was_known() -> None:
    oracle = Oracle()
    first, second = sorted((b"a", b"b"), key=stored_key)
    written(oracle, first, 1, b"1")
    written(oracle, second, 2, b"2")
    cells = ((stored_key(first), 1, b"1"), (stored_key(second), 2, b"2"))

    def scanned(
        found: tuple[tuple[bytes, int, bytes | None], ...], following: bytes | None
    ) -> list[str]:
        oracle.breaches.clear()
        oracle.begin_scan(1, "ks.rows", b"")
        oracle.end_scan(1, found, following, "n1")
        return list(oracle.breaches)

    assert scanned(cells, None) == []
    assert scanned(cells[:1], stored_key(second)) == []
    assert len(scanned(cells[:1], None)) == 1
    assert len(scanned(((stored_key(first), 1, b"x"), cells[1]), None)) == 1
    assert len(scanned((*cells, cells[1]), None)) == 1
    assert len(scanned(cells[::-1], None)) == 1
    oracle.begin_write(second, 3, None)  # it may be there already
    assert scanned(cells[:1], None) == []
    assert scanned(cells, None) == []
    oracle.acknowledge(second, 3)
    assert len(scanned(cells, None)) == 1

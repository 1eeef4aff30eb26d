"""Which versions of a row nodes keep: a row that is written again and again has few, unless a replica has missed some."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stagewright.impl.node.port import Timing
from stagewright.impl.simulator.database.clients import Workload
from stagewright.impl.simulator.database.plan import Plan
from stagewright.impl.simulator.database.run import run
from stagewright.impl.simulator.database.script import parse_script
from stagewright.impl.simulator.database.world import World
from stagewright.impl.storage.memory import MemoryRows

FEW = 8
ONE_ROW = Plan(
    workload=Workload(keys=1, clients=2, gap=(1, 3), reads=0.0), timing=Timing(superseding=50)
)


@pytest.fixture
def worlds(monkeypatch: pytest.MonkeyPatch) -> list[World]:
    """Those of runs that follow."""
    made: list[World] = []
    begin = World.__init__

    def watched(self: World, *arguments: object, **named: object) -> None:
        begin(self, *arguments, **named)  # type: ignore[arg-type]
        made.append(self)

    monkeypatch.setattr(World, "__init__", watched)
    return made


def versions(world: World, table: str) -> list[int]:
    """How many versions of a table's rows lie on the disk of each node."""
    found: list[int] = []
    for host in world.hosts.values():
        snapshot = MemoryRows(host.disk).snapshot()
        found.append(sum(1 for _ in snapshot.versions(table, b"", None)))
        snapshot.close()
    return found


@pytest.mark.parametrize("views", ["", "create view v on t by value mod 7; await v; "])
def test_a_row_that_is_written_again_and_again_has_few_versions(
    views: str, worlds: list[World]
) -> None:
    text = f"table t tablets 1 rf 3; {views}write 120; wait 600; write 4; wait 600"
    report = run(replace(ONE_ROW, script=parse_script(text)))
    assert (report.breaches, report.refused) == ([], [])
    for table in ("ks.t", "ks.rows", *(t for t in report.tables["tables"] if "v" in t)):
        assert max(versions(worlds[0], str(table))) <= FEW, table


def test_versions_stay_until_each_replica_has_a_newer_one(worlds: list[World]) -> None:
    """Who is down may put any of them into a view, when it comes back and has not heard of the others."""
    text = "table t tablets 1 rf 3; write 20; wait 400; kill n3; write 60; wait 400; restart n3; wait 400"
    for more in ("", "; write 6; wait 600"):
        report = run(replace(ONE_ROW, script=parse_script(text + more)))
        assert (report.breaches, report.refused) == ([], [])
    missed, made_up = (versions(world, "ks.t") for world in worlds)
    assert min(missed[:2]) > 2 * FEW
    assert max(made_up) <= FEW
    assert max(versions(worlds[0], "ks.rows")) <= FEW  # a table of the token ring has no views

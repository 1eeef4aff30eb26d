"""Views whose tablets, or whose table's, move between shards of a node, are repaired, or come back, while they are built."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.thorough import some_of

from stagewright.impl.node.messages import Message
from stagewright.impl.node.messages.tables import WorkOnTasks
from stagewright.impl.node.port import Timing
from stagewright.impl.server_log.files import LOGS
from stagewright.impl.simulator.database.clients import Workload
from stagewright.impl.simulator.database.plan import COMPACT_AFTER, Plan
from stagewright.impl.simulator.database.report import Report
from stagewright.impl.simulator.database.run import run
from stagewright.impl.simulator.database.script import parse_script
from stagewright.impl.simulator.database.weather import parse_faults
from stagewright.impl.simulator.database.world import World

WITHIN = Plan(
    nodes=4,
    script=parse_script(
        "table t tablets 1 rf 3; balancing off; write 250; wait 700; create view v on t by value mod 7; "
        "move t 0 from n1:0 to n1:1; repair t; write 60; await v; move v 0 from n4:0 to n4:1; repair v; write 40"
    ),
    faults=parse_faults("delay,loss=0.2,crash=60"),
    workload=Workload(keys=120, gap=(0, 2)),
    timing=Timing(compact_after=COMPACT_AFTER, chunk=2),
)
BACK = replace(
    WITHIN,
    script=parse_script(
        "table t tablets 1 rf 3; balancing off; write 250; wait 700; create view v on t by value mod 7; "
        "move t 0 from n1 to n4; write 60; await v; write 40"
    ),
)
FAILED = "failed: it has come to rest without n4"


def done(plan: Plan, directory: Path) -> Report:
    """Each replica of the view has what its base table says, in the end."""
    report = run(plan, directory)
    assert (report.breaches, report.refused) == ([], [])
    assert not {o.result for o in report.outcomes} - {"done", "begun", "built", FAILED}
    assert report.counted["view rows compared"] > 40
    return report


def lines_with(directory: Path, words: str) -> int:
    """How many lines of the nodes' logs have these words."""
    return sum(path.read_text("utf-8").count(words) for path in (directory / LOGS).iterdir())


@pytest.mark.parametrize("seed", [0, 6])
def test_replicas_move_between_shards_and_are_repaired(seed: int, tmp_path: Path) -> None:
    report = done(replace(WITHIN, seed=seed), tmp_path)
    assert len([m for m in report.moves if m.startswith("intranode migration of")]) == 2
    assert report.counted["staged rows processed"] > 0  # which the repair has brought
    assert lines_with(tmp_path, "was migrated from ") > 0


@pytest.mark.parametrize(("stage", "seed"), [("streaming", 0), ("write_both_read_old", 2)])
def test_a_migration_that_is_broken_off_gives_its_tasks_back(
    stage: str, seed: int, tmp_path: Path
) -> None:
    faults = parse_faults(f"dead@tablet.{stage},action@tablet.{stage}")
    report = done(replace(BACK, seed=seed, faults=faults), tmp_path)
    assert FAILED in {o.result for o in report.outcomes}
    assert ("tablet", "cleanup_target", "revert_migration") in report.edges
    assert lines_with(tmp_path, "was recreated with new id") > 0


def test_a_view_that_loses_a_replica_before_it_is_built_is_built_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Base replica n1 has put its rows on n3, which is lost; n2 begins when another one has taken the place of n3."""
    send, late = World.send, 9_000

    def held_up(world: World, sender: str, to: str, message: Message) -> None:
        if not isinstance(message, WorkOnTasks) or to != "n2" or world.events.now > late:
            send(world, sender, to, message)

    monkeypatch.setattr(World, "send", held_up)
    script = (
        "table t tablets 1 rf 2; balancing off; write 60; wait 1000; create view v on t by value mod 7; "
        "wait 1500; replace n3 by n5; await v"
    )
    report = run(Plan(nodes=4, script=parse_script(script)))
    assert [m for m in report.moves if m.startswith("rebuild of ks.v:0 from n3:")]
    assert report.outcomes[-1].result == "built"
    assert (report.breaches, report.refused) == ([], [])


def test_a_view_without_tasks_that_loses_a_replica_before_it_is_said_to_be_built(
    tmp_path: Path,
) -> None:
    """All ranges are built while its tablet moves from n4, so what its table's replicas do begins once more."""
    script = (
        "table t tablets 1 rf 2; write 2; balancing off; kill n5; wait 32; restart n5; move t 0; "
        "create view w on t by value mod 1; replace n4 by n6 lacking TABLETS; replace n4 by n7"
    )
    report = run(
        Plan(
            nodes=5,
            seed=10_000_101,
            script=parse_script(script),
            faults=parse_faults("delay=0.05,loss@tablet.write_both_read_new"),
            workload=Workload(clients=4, keys=3, gap=(1, 6), reads=0.5, deletes=0.05),
            timing=Timing(chunk=3),
        ),
        tmp_path,
    )
    assert (report.breaches, report.refused) == ([], [])
    again = tmp_path / "view-choices.jsonl"
    assert again.read_text().count('"action":"remove_finished"') == 2
    assert lines_with(tmp_path, "Removing finished task") == 4


@pytest.mark.parametrize("seed", some_of([0, 1]))
def test_several_tablets_of_a_view_are_lost_at_once_while_tasks_are_worked_on(seed: int) -> None:
    script = (
        "table t tablets 8 rf 2; balancing off; write 250; wait 700; create view v on t by value mod 7; "
        "wait 30; replace n3 by n6; await v"
    )
    faults = parse_faults("delay")
    report = run(replace(WITHIN, nodes=5, seed=seed, script=parse_script(script), faults=faults))
    assert (report.breaches, report.refused) == ([], [])
    assert report.outcomes[-1].result == "built"

"""Nodes that refuse what cannot be had: no refused write is ever seen, and nothing is refused that enough replicas could do."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.impl.simulator.database.wrong_builds import Shown
from tests.thorough import by_turns, some_of

from stagewright.impl.node.defects import Defect
from stagewright.impl.node.messages import Level, Unavailable
from stagewright.impl.simulator.campaign.drawing import REFUSED_FROM, draw
from stagewright.impl.simulator.database.checks.oracle import Oracle
from stagewright.impl.simulator.database.clients import Workload
from stagewright.impl.simulator.database.plan import Plan
from stagewright.impl.simulator.database.run import run
from stagewright.impl.simulator.database.script import parse_script
from stagewright.impl.simulator.database.weather import parse_faults
from stagewright.impl.simulator.database.workload import parse_workload, workload_text

LEVELS = Workload(keys=12, gap=(0, 3), scans=0.2, all=0.3, refused=True)
COME_AND_GO = Plan(
    nodes=4,
    script=parse_script(
        "table t tablets 4 rf 3; write 100; kill n4; write 60; kill n3; write 60; restart n4; write 40; "
        "restart n3; write 100; join n5; decommission n1; write 40"
    ),
    faults=parse_faults("delay=0.1,crash=60,partition=20,suspend=20"),
    workload=LEVELS,
)
LOGGED = replace(COME_AND_GO, cdc=True, images=True)
VIEWED = replace(
    COME_AND_GO,
    script=parse_script(
        "table t tablets 2 rf 3; create view v on t by value mod 7; write 80; kill n4; write 60; kill n3; "
        "write 40; restart n3; restart n4; await v; alter t rf 2; write 40"
    ),
)
"""Fewer replicas stay than there are: a quorum of these must be alive, too."""
GROWN = Plan(
    nodes=3,
    script=parse_script("write 150; join n4; join n5; write 50; decommission n1"),
    faults=parse_faults("crash=120,delay=0.1"),
    workload=replace(LEVELS, reads=0.2),
)
"""Nodes that are to come die while the others are there."""
D = Defect
SHOWN = (
    Shown(D.any_dead_replica_refuses, COME_AND_GO, "", oracle=True),
    Shown(D.refused_writes_are_sent, COME_AND_GO, "", oracle=True),
    Shown(D.who_was_down_stays_down, COME_AND_GO, "", oracle=True),
    Shown(D.pending_replicas_are_alive, GROWN, "", oracle=True),
)
SAYS = {
    D.any_dead_replica_refuses: "though enough replicas are alive",
    D.refused_writes_are_sent: "that write was refused, and never sent",
    D.who_was_down_stays_down: "is down, which is there",
    D.pending_replicas_are_alive: "of which it knows that too few are alive",
}


@pytest.mark.parametrize("shown", by_turns(SHOWN), ids=lambda s: s.defect.name)
def test_a_wrong_build_that_refuses_too_much_or_too_little_is_shown(shown: Shown) -> None:
    for seed in range(8):
        plan = replace(shown.plan, seed=seed, defects=frozenset({shown.defect}))
        if any(SAYS[shown.defect] in text for text in run(plan).breaches):
            return
    raise AssertionError("nobody noticed")


@pytest.mark.parametrize("seed", some_of(range(6), each=3))
@pytest.mark.parametrize(
    "plan", [COME_AND_GO, LOGGED, VIEWED, GROWN], ids=["rows", "logs", "views", "who is to come"]
)
def test_what_a_sound_build_refuses_is_right(plan: Plan, seed: int) -> None:
    report = run(replace(plan, seed=seed))
    assert (report.breaches, report.refused) == ([], [])
    assert report.counted["refused as unavailable"] > 5


def test_nodes_of_runs_refuse_nothing_unless_they_are_asked_to() -> None:
    work = replace(LEVELS, refused=False)
    report = run(replace(COME_AND_GO, workload=work))
    assert (report.breaches, report.refused) == ([], [])
    assert "refused as unavailable" not in report.counted


def test_some_campaigns_have_nodes_that_refuse() -> None:
    drawn = [draw(REFUSED_FROM + seed).workload for seed in range(40)]
    assert {w.refused for w in drawn} == {False, True}
    assert all((w.all > 0) == w.refused for w in drawn)
    assert not any(draw(seed).workload.refused for seed in range(40))
    work = next(w for w in drawn if w.refused)
    assert parse_workload(workload_text(work, 3)) == (work, 3)


def test_a_refused_write_that_is_seen_breaks_a_promise() -> None:
    oracle = Oracle()
    oracle.begin_write(b"k", 1, b"1")
    oracle.begin_read(1, b"k")
    oracle.refuse(b"k", 1)
    oracle.end_read(1, b"k", (0, None), "n1")
    assert not oracle.breaches
    oracle.begin_read(2, b"k")
    oracle.end_read(2, b"k", (1, b"1"), "n2")
    assert oracle.breaches == [
        "a read by n2 returned (1, b'1') of b'k': that write was refused, and never sent"
    ]


@pytest.mark.parametrize(
    ("short", "text"),
    [
        (
            Unavailable(Level.all, 3, 2, ("n3",)),
            "level all needs 3 replicas, and 2 are alive: n3 is down",
        ),
        (
            Unavailable(Level.quorum, 2, 1, ("n2", "n3"), of_log=True),
            "level quorum needs 2 replicas of its log row, and 1 is alive: n2, n3 are down",
        ),
        (Unavailable(Level.quorum, 2, 1), "level quorum needs 2 replicas, and 1 is alive"),
    ],
)
def test_what_is_lacking_is_said(short: Unavailable, text: str) -> None:
    assert str(short) == text

"""Tables are split and merged while clients write: every row lies where requests look for it, before and after."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.impl.simulator.database.wrong_builds import Shown
from tests.thorough import by_turns, some_of

from stagewright.commands import run_command_line
from stagewright.impl.node.defects import Defect
from stagewright.impl.simulator.database.plan import Plan
from stagewright.impl.simulator.database.report import Report
from stagewright.impl.simulator.database.run import run
from stagewright.impl.simulator.database.script import parse_script
from stagewright.impl.simulator.database.weather import OF_MESSAGES, OF_NODES, parse_faults
from stagewright.machines.scylladb.topology.topology_states import TransitionState

RESIZED = Plan(
    nodes=4, script=parse_script("table t tablets 4 rf 2; write 80; split t; write 30; merge t")
)
APART = replace(RESIZED, script=parse_script("table t tablets 4 rf 2; write 60; merge t"))
FINALIZATION = TransitionState.tablet_resize_finalization.name


def done(plan: Plan, faults: str = "none", seed: int = 0) -> Report:
    report = run(replace(plan, seed=seed, faults=parse_faults(faults)))
    assert (report.breaches, report.refused) == ([], []), f"seed {seed}"
    return report


def test_a_table_has_twice_as_many_tablets_and_half_of_them_again() -> None:
    for script, tablets in (("split t; split t", 8), ("split t; merge t", 2), ("merge t", 1)):
        report = done(
            replace(RESIZED, script=parse_script(f"table t tablets 2 rf 2; write 60; {script}"))
        )
        assert {o.result for o in report.outcomes} == {"begun", "done"}
        assert len(report.tables["tablets"]) == tablets
        assert ("topology", "null", FINALIZATION) in report.edges
        assert ("topology", FINALIZATION, "null") in report.edges


def test_tablets_of_a_pair_come_together_before_they_are_merged() -> None:
    report = done(
        replace(RESIZED, script=parse_script("table t tablets 4 rf 2; write 60; merge t"))
    )
    assert any("it is to be merged with the tablet before it" in move for move in report.moves)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("table t tablets 1 rf 2; merge t", "ks.t has one tablet"),
        ("table t tablets 1024 rf 1; split t", "1024 are the most"),
    ],
)
def test_what_cannot_be_resized_is_refused(script: str, reason: str) -> None:
    report = done(replace(RESIZED, script=parse_script(script)))
    assert reason in report.outcomes[-1].result


PAIRS = (*OF_NODES, *OF_MESSAGES)


@pytest.mark.parametrize("kind", some_of(PAIRS, each=2))
def test_promises_survive_a_fault_while_a_resize_is_finalized(kind: str) -> None:
    for seed in range(3):
        report = done(RESIZED, f"{kind}@{FINALIZATION}", seed)
        assert report.met[FINALIZATION, "entered"]
        assert len(report.tables["tablets"]) == 4


def test_a_table_is_resized_while_nodes_come_and_go() -> None:
    script = "table t tablets 2 rf 3; write 80; join n5; split t; write 40; decommission n1; merge t; repair t"
    for seed in range(2):
        done(Plan(nodes=4, script=parse_script(script)), "all", seed)


def test_the_traces_of_topology_and_tablets_are_accepted(tmp_path: Path) -> None:
    run(replace(RESIZED, faults=parse_faults("all"), seed=3), tmp_path)
    for trace in ("tablets", "topology", "resizes"):
        path = tmp_path / f"{trace}.jsonl"
        assert run_command_line(["validate", str(path), *EMBEDDED, *_sized(path)]) == 0


EMBEDDED = ("--engine", "embedded")


def _sized(path: Path) -> list[str]:
    return ["--size", "Node=4"] if path.stem == "topology" else []


@pytest.mark.long
def test_a_wrong_build_is_refused_by_the_trace_of_resizes_that_it_wrote(tmp_path: Path) -> None:
    unprepared = frozenset({Defect.splits_are_not_prepared})
    report = run(replace(RESIZED, defects=unprepared), tmp_path)
    assert not report.breaches
    refused = [*tmp_path.glob("*.jsonl")]
    refused = [
        p for p in refused if run_command_line(["validate", str(p), *EMBEDDED, *_sized(p)]) == 1
    ]
    assert [p.stem for p in refused] == ["resizes"]


@pytest.mark.parametrize("seed", some_of([1, 2]))
def test_a_replica_that_comes_after_others_were_ready_for_a_split_is_asked_too(seed: int) -> None:
    """Whoever had been asked answered; then a node was drained, and its tablets were split unasked."""
    script = "table t tablets 4 rf 2; write 20; ask decommission n2; split t; ask decommission n1"
    plan = replace(RESIZED, script=parse_script(f"{script}; merge t"), seed=seed)
    report = run(replace(plan, faults=parse_faults("delay,action=0.2")))
    assert (report.breaches, report.refused) == ([], [])


D = Defect
ELSEWHERE = "and its rows are not"
# A node is rebuilt meanwhile: the repair cannot begin before that is over, and then the merge could come first.
ASKED = Plan(
    script=parse_script("table t tablets 4 rf 3; write 60; ask rebuild n2; ask repair t; merge t")
)
SHOWN = (
    Shown(D.halves_of_tablets_are_mixed_up, RESIZED, ELSEWHERE, oracle=True),
    Shown(D.apart_tablets_are_merged, APART, ELSEWHERE, oracle=True),
    Shown(D.splits_are_not_prepared, RESIZED, "no replica holds it up"),
    Shown(D.resizes_do_not_await_the_fence, RESIZED, "the node has acknowledged the fence"),
    Shown(D.resizes_do_not_await_requests, ASKED, "nor is to be repaired or moved"),
)


@pytest.mark.parametrize("shown", by_turns(SHOWN), ids=lambda s: s.defect.name)
def test_a_wrong_build_is_noticed(shown: Shown) -> None:
    shown.check(2)

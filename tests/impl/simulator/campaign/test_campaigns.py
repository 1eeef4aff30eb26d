"""Campaigns: a seed says all of its run, a wrong build is found and made small, and what is met is counted."""

from __future__ import annotations

import json
import shlex
from argparse import ArgumentParser
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from stagewright.commands import run_command_line
from stagewright.commands.run import configure
from stagewright.commands.running.script import plan_of
from stagewright.impl.node.defects import Defect
from stagewright.impl.simulator.campaign.drawing import NEWER, draw
from stagewright.impl.simulator.campaign.shrinking import shrink
from stagewright.impl.simulator.campaign.tally import DatabaseTally, why_not
from stagewright.impl.simulator.campaign.trial import WRITES, Result, attempt
from stagewright.impl.simulator.database.script import parse_script
from stagewright.impl.simulator.database.weather import ENTERED, faults_text, parse_faults
from stagewright.impl.simulator.database.workload import parse_workload, workload_text
from stagewright.spec.errors import InputError


@given(st.integers(0, 10**9))
def test_the_words_of_a_scenario_say_all_of_it(seed: int) -> None:
    drawn = draw(seed)
    assert draw(seed) == drawn
    assert parse_script(drawn.script_text) == drawn.script
    assert parse_faults(faults_text(drawn.faults)) == drawn.faults
    assert parse_workload(workload_text(drawn.workload, drawn.chunk)) == (
        drawn.workload,
        drawn.chunk,
    )


@pytest.mark.parametrize(
    "seed", [2, NEWER + 1, NEWER + 209]
)  # the last has more nodes and replicas
def test_the_command_of_a_scenario_asks_for_its_run(seed: int) -> None:
    drawn = draw(seed)
    parser = ArgumentParser()
    configure(parser)
    args = parser.parse_args(shlex.split(drawn.command)[2:])
    assert plan_of(args) == drawn.plan()


def test_a_wrong_build_is_found_and_made_small() -> None:
    wrong = frozenset({Defect.streaming_misses_rows})
    seed, failure = next(
        (seed, f)
        for seed in range(20)
        for f in attempt(draw(seed), wrong).failures
        if f.by == "trace"
    )
    drawn = draw(seed)
    found = shrink(drawn, failure, wrong, most=14)
    assert found.failure.sort == failure.sort
    assert len(found.scenario.script) < len(drawn.script)
    assert not attempt(found.scenario).failures  # of a sound build
    assert any(f.sort == failure.sort for f in attempt(found.scenario, wrong).failures)


def test_a_fault_that_is_aimed_at_a_state_is_met_in_it() -> None:
    scenario = replace(
        draw(0),
        script=parse_script("write 60; join n7; decommission n1"),
        faults=parse_faults("failover@write_both_read_old,loss@write_both_read_new,crash@left_token_ring"),
    )  # fmt: skip
    result = attempt(scenario)
    assert not result.failures
    lost = {"message lost", "barrier lost", "stream lost"}
    assert {s for s, kinds in result.met.items() if lost & {*kinds}} == {"write_both_read_new"}
    crashed = {s for s, kinds in result.met.items() if {"node crashes", "coordinator crashes"} & {*kinds}}  # fmt: skip
    assert crashed == {"left_token_ring"}
    assert result.met["write_both_read_old"]["coordinator deposed"] >= 1
    assert result.met["write_both_read_old"][ENTERED] >= 2


def test_a_tally_adds_up_and_says_what_was_never_met() -> None:
    tally, results = DatabaseTally(), [attempt(draw(seed)) for seed in (1, 2)]
    for one in results:
        tally.add(Result.from_json(json.loads(json.dumps(one.to_json()))))
    assert (tally.runs, tally.failed) == (2, 0)
    assert tally.counts[WRITES] == sum(r.counts[WRITES] for r in results) > 0
    for state, entered, kinds in tally.rows():
        assert entered == sum(r.met.get(state, {}).get(ENTERED, 0) for r in results)
        for kind, number in kinds.items():
            assert number == sum(r.met.get(state, {}).get(kind, 0) for r in results)
            never = entered > 0 == number and not why_not(state, kind)
            assert ((state, kind) in tally.never_met) == never
            assert not (number and why_not(state, kind))
    assert tally.never_entered == [s for s, entered, _ in tally.rows() if not entered] != []
    assert "tablet_draining" not in {s for s, _, _ in tally.rows()}  # of older releases


def test_the_command_goes_on_where_it_was_interrupted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["campaign", "--workers", "1", "--out", str(tmp_path), "--json"]
    assert run_command_line([*words, "--seeds", "1..3"]) == 0
    results = tmp_path / "results.jsonl"
    text = results.read_text("utf-8")
    results.write_text(text[:-40], "utf-8")  # the second result is cut off
    capsys.readouterr()
    assert run_command_line([*words, "--seeds", "1..4"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["runs"], printed["asked"], printed["failures"]) == (3, 3, [])
    seeds = [json.loads(line)["seed"] for line in results.read_text("utf-8").splitlines()[1:]]
    assert seeds == [1, 2, 3]
    results.write_text('{"build": "another"}\n', "utf-8")
    assert run_command_line([*words, "--seeds", "1"]) == 2
    assert "of another build" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("keys=0", "`keys=0`"),
        ("gap=5-1", "`gap=5-1`"),
        ("reads=1", "`reads=1`"),
        ("key=3", "there is no `key`"),
    ],
)
def test_a_workload_that_is_none_is_refused(words: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        parse_workload(words)


@pytest.mark.parametrize("words", ["crash@nowhere", "storm@null", "crash@null=3"])
def test_a_fault_that_cannot_be_aimed_is_refused(words: str) -> None:
    with pytest.raises(InputError, match="cannot be aimed"):
        parse_faults(words)

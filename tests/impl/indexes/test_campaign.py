"""Campaigns of indexed tables: sound runs keep every promise, and what fails is made small."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.thorough import examples

from stagewright.impl.indexes.campaign import drawing
from stagewright.impl.indexes.campaign.drawing import STRATEGIES, draw
from stagewright.impl.indexes.campaign.scenario import Scenario
from stagewright.impl.indexes.campaign.shrinking import shrink, whole
from stagewright.impl.indexes.campaign.trial import BY_TRACE, WANTED, attempt
from stagewright.impl.indexes.defects import Defect
from stagewright.impl.indexes.port import Settings
from stagewright.impl.indexes.simulated.script import parse_script
from stagewright.impl.recording.minimize import minimize
from stagewright.impl.recording.trial import Tally, Trial
from stagewright.impl.simulator.database.weather import Faults


@pytest.mark.long
def test_no_drawn_run_breaks_a_promise_and_all_that_matters_happens() -> None:
    tally = Tally[Trial](WANTED)
    for seed in range(examples(60)):
        trial = attempt(draw(seed))
        assert trial.failures == (), seed
        tally.add(trial)
    assert tally.never == []
    assert set(tally.strategies) == set(STRATEGIES)


@pytest.mark.thorough
def test_no_seed_of_many_breaks_a_promise() -> None:
    failed = [
        (seed, t.failures) for seed in range(1000, 1600) if (t := attempt(draw(seed))).failures
    ]
    assert failed == []


def test_a_late_copy_of_an_older_request_is_left_alone() -> None:
    assert attempt(draw(81)).failures == ()
    refused = attempt(draw(81), frozenset({Defect.late_requests_count})).failures
    assert {f.by for f in refused} == {BY_TRACE}  # rows that are read again harm no index


def test_a_late_copy_of_a_request_for_an_index_that_has_failed_since_is_left_alone() -> None:
    assert attempt(draw(43002496)).failures == ()


@pytest.mark.parametrize(
    "seed",
    [
        59,  # an answer to a chunk comes when all indexes of the job are gone
        568,  # an index is dropped and deleted when a tablet of it has not heard of a commit yet
        910602,  # a transaction gives a value to a row before it takes it from the one that has no entry yet
        940007,  # user-enforced writes are planned when an index of the job is gone
        371,  # an index is dropped and deleted while its job allows markers to be reclaimed
        21002689,  # a client takes the late answer of a leader that is gone; the next one has planned the statement anew
        24000048,  # the same, when the index is being removed: it was written to by the first plan alone
    ],
)
def test_a_run_that_was_wrong_once_is_right(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "INDEX_SPLIT", 0)
    scenario = draw(seed)
    settings = replace(scenario.settings, split_rows=0)  # as it was then
    assert attempt(replace(scenario, settings=settings)).failures == ()


def test_a_chunk_whose_last_batch_is_longer_than_what_was_left_of_it_is_read_again_after_a_fault() -> (
    None
):
    script = (
        "create table 7 rows; write 57; wait 8; put 24 v=4; create deferred index i on v; "
        "create deferred unique index j on v; wait 205; backfill; wait 179; await i; await j; wait 220"
    )
    assert attempt(replace(draw(829), script=parse_script(script))).failures == ()


def test_a_statement_waits_for_the_tablet_of_an_index_that_split_until_its_own_splits_too() -> None:
    """There is no master meanwhile, who knows the children of either."""
    script = (
        "create table 40 rows; write 10; wait 6; create index i on v; wait 15; split i 1; "
        "await job backfill_tablets; wait 22; fail over; split 0"
    )
    assert attempt(replace(draw(110015985), script=parse_script(script))).failures == ()


def test_a_result_is_kept_as_json() -> None:
    trial = attempt(draw(3), frozenset({Defect.only_the_first_page}))
    assert trial.failures
    assert Trial.from_json(trial.to_json()) == trial


def test_a_failure_is_made_small_and_its_command_names_all_of_it() -> None:
    wrong = frozenset({Defect.checkpoint_skips_a_row})
    scenario = Scenario(
        seed=1,
        script=parse_script(
            "create table 12 rows; write 8; create index j on w; create index i on v; fail over; await i"
        ),
        faults=Faults(loss=0.02),
        settings=Settings(tablets=1, batch=1, chunk_rows=2),
    )
    failure = next(f for f in attempt(scenario, wrong).failures if "rows up to there" in f.text)
    small = shrink(scenario, failure, wrong, most=25)
    assert small.failure.sort == failure.sort
    assert len(small.scenario.script) <= 3
    assert small.scenario.faults == Faults()
    assert small.failure in attempt(small.scenario, wrong).failures
    assert "--workload clients=" in small.scenario.command


def test_a_script_without_an_index_names_it_nowhere() -> None:
    script = parse_script(
        "create table 9 rows; await i; create index i on v; drop index i; drop index j"
    )
    assert [str(o) for o in whole(script)] == [
        "create table 9 rows",
        "create index i on v",
        "drop index i",
    ]


def test_minimize_leaves_only_what_a_failure_needs() -> None:
    tried = list[int]()

    def fails(parts: list[int]) -> bool:
        tried.append(len(parts))
        return {3, 7} <= set(parts)

    assert minimize(range(20), fails) == [3, 7]
    assert len(tried) < 100

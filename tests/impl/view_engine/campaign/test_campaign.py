"""Clusters under everything that may happen to them: every answer is map/reduce over the documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest
from tests.thorough import examples

from stagewright.commands.campaigning.logs import check_logs
from stagewright.impl.recording.trial import Tally, Trial
from stagewright.impl.view_engine.campaign.tasks import DeadlockError, Tasks
from stagewright.impl.view_engine.campaign.trial import attempt


def run(seed: int) -> Trial:
    trial = attempt(seed, check_logs)
    assert trial.failures == ()
    return trial


def counts_of(seeds: Iterable[int]) -> Counter[str]:
    total = Tally[Trial]()
    for seed in seeds:
        total.add(run(seed))
    return total.counts


@pytest.mark.long
def test_every_answer_of_a_cluster_is_map_reduce_over_the_documents() -> None:
    total = counts_of(range(examples(30)))
    assert total["answers"] > 60
    assert min(total[name] for name in ("moves", "crashes", "failovers", "compactions")) > 1
    assert min(total[name] for name in ("transfers", "coordinators died", "with errors")) > 0


@pytest.mark.thorough
def test_no_seed_is_answered_wrongly() -> None:
    assert counts_of(range(1000, 1600))["answers"] > 5000


@pytest.mark.parametrize(
    "seed",
    [
        30535,  # a failover of a partition that the replica index still cleans up: pending, and no step for ever
        44227,  # the last copy of a partition is lost
        47962,  # a key that is asked for twice: its rows come twice, and total_rows counts them once
        61080,  # a replica that waits for its transfer is frozen in a history that is left meanwhile
    ],
)
def test_run_that_was_wrong_once_is_right(seed: int) -> None:
    assert run(seed).counts["answers"] > 0


def test_run_is_repeatable_from_its_seed() -> None:
    assert run(7).counts == run(7).counts


def test_tasks_that_wait_for_each_other_are_named() -> None:
    tasks = Tasks(1)
    changed = tasks.condition()

    def wait() -> None:
        with changed:
            changed.wait()

    def first() -> None:
        other = tasks.start(wait, "other", owner="n1")
        other.join()

    with pytest.raises(DeadlockError, match="/first, n1/other"):
        tasks.run(first)


def test_killed_task_does_nothing_more_and_time_passes_without_waiting() -> None:
    tasks = Tasks(2)
    done: list[float] = []

    def works() -> None:
        while True:
            tasks.sleep(10)
            done.append(tasks.now)

    def first() -> None:
        tasks.start(works, "works", owner="n1")
        tasks.sleep(35)
        tasks.kill("n1")
        tasks.sleep(1000)

    tasks.run(first)
    assert done == [10, 20, 30]
    assert tasks.now == 1035

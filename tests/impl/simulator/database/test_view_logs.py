"""What nodes log of view building: accepted of a sound build, refused where lines say what 000 rules out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.impl.simulator.database import test_views
from tests.impl.simulator.database.test_logs import Logs, logs_of, refused
from tests.thorough import some_of

BATCHES, TASK = "LoggedBatches", "LoggedTask"
STARTS = "Starting view building batch for tasks "


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Logs:
    return logs_of(test_views.BUILT, tmp_path_factory.mktemp("sound"))


def places(logs: Logs, words: str) -> Iterator[tuple[str, int]]:
    """The node and the number of each line that has some words."""
    for node, lines in logs.items():
        yield from ((node, number) for number, text in enumerate(lines) if words in text)


def without(logs: Logs, node: str, number: int) -> Logs:
    """The logs without a line."""
    return {**logs, node: [t for n, t in enumerate(logs[node]) if n != number]}


def test_batches_that_end_before_the_next_one_and_tasks_that_were_finished_are_accepted(
    sound: Logs,
) -> None:
    assert refused(sound) == set()
    assert len([*places(sound, STARTS)]) >= 12
    assert len([*places(sound, "Removing finished task with ID: ")]) >= 12


@pytest.mark.parametrize("seed", some_of([7, 14, 18]))
@pytest.mark.thorough
def test_so_they_are_while_views_come_and_go_and_tablets_move(seed: int, tmp_path: Path) -> None:
    assert refused(logs_of(replace(test_views.CHANGED, seed=seed), tmp_path)) == set()


def test_a_batch_that_starts_beside_another_is_a_violation(sound: Logs) -> None:
    node, number = next(places(sound, STARTS))
    shard = sound[node][number].partition("[shard ")[2][0]
    ends = (
        n
        for at, n in places(sound, "finished")
        if at == node and f"[shard {shard}:" in sound[node][n] and "Batch with" in sound[node][n]
    )
    assert refused(without(sound, node, next(n for n in ends if n > number))) >= {BATCHES}


def test_batches_of_two_shards_may_run_at_once(sound: Logs) -> None:
    node, number = next(places(sound, STARTS))
    text = sound[node][number]
    other = text.replace("[shard 0:", "[shard 7:").replace("[shard 1:", "[shard 7:")
    twice = [*sound[node][: number + 1], other, *sound[node][number + 1 :]]
    assert BATCHES not in refused({**sound, node: twice})


def test_a_task_that_is_removed_before_its_batch_has_finished_is_a_violation(sound: Logs) -> None:
    """If the log of the worker goes on: what a log that was cut off would have said is not known."""
    node, number = next(places(sound, "Batch with tasks ["))
    wrong = without(sound, node, number)
    assert TASK in refused(wrong)
    assert TASK not in refused({**wrong, node: wrong[node][:number]})
    assert TASK not in refused({**wrong, node: wrong[node][5:]})

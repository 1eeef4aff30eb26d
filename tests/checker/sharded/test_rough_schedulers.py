"""Tasks that run anywhere, twice, out of order and die in between change nothing."""

from pathlib import Path

import pytest
from tests.checker.sharded.both_ways import model, on_one_machine, over_shards, timeless
from tests.checker.sharded.rough_scheduler import PLACES, RoughScheduler
from tests.thorough import by_turns

from stagewright.checker.sharded.tasks import LevelPart


@pytest.mark.parametrize(
    ("name", "shards", "seed"),
    by_turns([("broken.py:Migration", 2, 5), ("two_phase_commit.py", 3, 1)]),
)
def test_tasks_in_processes_of_their_own_that_die_and_come_again(
    name: str, shards: int, seed: int, tmp_path: Path
) -> None:
    definition, scope = model(name)
    scheduler = RoughScheduler(seed)
    again: list[int] = []
    found = over_shards(
        definition,
        scope,
        tmp_path,
        shards,
        scheduler=scheduler,
        on_level=lambda _, parts: again.append(sum(part.again for part in parts)),
    )
    assert timeless(found) == timeless(on_one_machine(definition, scope))
    assert set(scheduler.deaths) == set(PLACES)
    assert scheduler.repeated > 5
    assert sum(again) > found.states  # tables were made from files, level after level


def test_each_process_goes_on_with_the_shards_it_has(tmp_path: Path) -> None:
    levels: list[list[LevelPart]] = []
    over_shards(
        *model("two_phase_commit.py", manager=4),
        tmp_path,
        5,
        on_level=lambda _, parts: levels.append(parts),
    )
    # This process keeps 5 / 2 + 1 tables of 5: the others it makes again from files.
    assert all(part.held > 0 for part in levels[-1])
    assert sum(part.again for part in levels[-2]) > 0
    kept = [part for part in levels[-2] if part.again == 0]
    assert len(kept) == 4

"""The tables that a process keeps: what they may take, and what happens when it is not enough."""

from pathlib import Path

import numpy as np
import pytest
from tests.checker.sharded.both_ways import model, on_one_machine, over_shards

from stagewright.checker.explicit.exploration import Watch
from stagewright.checker.explicit.native.engine import NativeEngine
from stagewright.checker.limits import Limits
from stagewright.checker.sharded.files import new_file, write_states
from stagewright.checker.sharded.program import Program
from stagewright.checker.sharded.tables import SHELF, NoRoomError, ShardTable, Shelf
from stagewright.spec.grounding.lowering import ground


@pytest.fixture(scope="module")
def program() -> Program:
    """Of states of two words."""
    return Program.of(NativeEngine(ground(*model("tablet_barrier.py", tablet=5, node=4))), Watch())


def states(first: int, after: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint64]]:
    """So many distinct states."""
    numbers = np.arange(first, after, dtype=np.uint64)
    return np.stack([numbers, numbers * np.uint64(3)], axis=1)


def test_a_table_that_is_made_again_from_files_knows_the_same(
    program: Program, tmp_path: Path
) -> None:
    shelf, table = Shelf(), ShardTable(program)
    for level, (first, after) in enumerate([(0, 10), (10, 200_000), (200_000, 200_001)]):
        path = new_file(tmp_path, level, 4)
        write_states(path, states(first, after))
    table.catch_up(tmp_path, 4, 2, shelf, None)
    assert (table.filled, table.count, table.again) == (1, 200_000, 200_000)
    table.enter(states(199_990, 200_010), shelf, None)
    assert (table.since(200_000) == states(200_000, 200_010)).all()


def test_a_process_keeps_the_tables_it_used_last(program: Program) -> None:
    shelf = Shelf()
    for shard in (1, 2, 3):
        shelf.shards("run")
        shelf.put(shard, ShardTable(program), keep=2)
    assert shelf.shards("run") == [2, 3]
    assert shelf.take("run", 1) is None
    assert shelf.take("run", 2) is not None
    assert shelf.shards("run") == [3]
    assert shelf.shards("another run") == []


def test_tables_nobody_uses_make_room_before_the_limit_is_reached(program: Program) -> None:
    shelf, table = Shelf(), ShardTable(program)
    shelf.put(7, ShardTable(program), keep=9)
    limit = 3 * table.bytes
    table.enter(states(0, 100), shelf, limit)
    assert shelf.shards("") == [7]
    with pytest.raises(NoRoomError, match="the memory limit of"):
        table.enter(states(0, 1 << 20), shelf, limit)
    assert shelf.shards("") == []


def test_a_search_that_needs_more_memory_than_its_tasks_may_take_stops(tmp_path: Path) -> None:
    definition, scope = model("tablet_barrier.py", tablet=4, node=3)
    report = over_shards(definition, scope, tmp_path, 2, limits=Limits(memory=3 << 20))
    assert report.note == "not exhausted: the memory limit of 3 MiB was reached"
    until = Limits(depth=report.depth)
    assert report.states == on_one_machine(definition, scope, until).states > 10_000
    assert SHELF.bytes < 3 << 20

"""A failover: the replica index answers until the main one has caught up, whatever is interrupted."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.impl.view_engine.group.test_updates import PARTITIONS, SMALL, VIEWS, names, put_some
from tests.impl.view_engine.memory_source import MemorySource

from stagewright.impl.view_engine.campaign.map_reduce import rows_of
from stagewright.impl.view_engine.cluster.indexes import Indexes
from stagewright.impl.view_engine.cluster.messages import ViewRequest
from stagewright.impl.view_engine.design.design import DesignDocument
from stagewright.impl.view_engine.group.partitions import PartitionStateError
from stagewright.impl.view_engine.query.local import answer
from stagewright.impl.view_engine.query.params import Query

EVERY = tuple(range(PARTITIONS))


def opened(folder: Path, source: MemorySource) -> Indexes:
    return Indexes(folder, DesignDocument("d", VIEWS), source, PARTITIONS, limits=SMALL)


def assert_answers(indexes: Indexes, source: MemorySource, partitions: tuple[int, ...]) -> None:
    """Every one of these partitions is answered for once, with the documents at what is reported."""
    rows: list[tuple[object, object, str | None]] = []
    seqs: dict[int, int] = {}
    query = Query(partitions=partitions, reduce=False)
    with indexes.reading(ViewRequest("d", "names", query)) as parts:
        for part in parts:
            found = answer(part.snapshot, "names", Query(partitions=part.partitions, reduce=False))
            assert not {*found.seqs} & {*seqs}
            seqs |= found.seqs
            rows += [(row.key, row.value, row.id) for row in found]
    assert sorted(seqs) == sorted(partitions)
    expected = rows_of(source.documents(seqs), names)
    assert sorted(rows, key=str) == sorted(expected, key=str)


def with_replica(folder: Path, source: MemorySource) -> Indexes:
    put_some(source, random.Random(1), 300)
    indexes = opened(folder, source)
    indexes.set_partition_states(active=[0, 1])
    indexes.add_replicas([2, 3])
    indexes.replica.wait_until_current(passive=True)
    assert_answers(indexes, source, (0, 1))
    return indexes


def complete(indexes: Indexes) -> None:
    indexes.main.wait_until_current(passive=True)
    indexes.follow()
    indexes.replica.clean_up()
    assert (indexes.on_transfer, indexes.replica.header.cleanup) == ((), 0)


def test_failed_over_partition_is_served_by_the_replica_until_the_main_index_has_it(
    tmp_path: Path,
) -> None:
    source = MemorySource(PARTITIONS)
    indexes = with_replica(tmp_path, source)
    indexes.set_partition_states(active=[2])
    assert indexes.on_transfer == (2,)
    assert indexes.replica.header.active == 1 << 2
    assert 2 in indexes.replica.header.unindexable_seqs
    put_some(source, random.Random(2), 100)
    assert_answers(indexes, source, (0, 1, 2))
    complete(indexes)
    assert indexes.main.header.active == 0b111
    assert indexes.replicas == {3}
    assert_answers(indexes, source, (0, 1, 2))
    indexes.close()


@pytest.mark.parametrize("crash_after", range(8))
def test_transfer_goes_on_after_a_crash_between_any_two_steps(
    tmp_path: Path, crash_after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = MemorySource(PARTITIONS)
    indexes = with_replica(tmp_path, source)
    steps = 0

    class Crashed(BaseException):
        pass

    take: Callable[[str, int], None] = indexes._step

    def step(action: str, partition: int) -> None:
        nonlocal steps
        if steps == crash_after:
            raise Crashed
        steps += 1
        take(action, partition)

    monkeypatch.setattr(indexes, "_step", step)
    try:
        indexes.set_partition_states(active=[2, 3])
        complete(indexes)
    except Crashed:
        pass
    indexes.close()
    indexes = opened(tmp_path, source)
    moved = tuple(
        p for p in (2, 3) if p in indexes.on_transfer or indexes.main.header.active >> p & 1
    )
    assert bool(moved) == (crash_after > 0)
    assert_answers(indexes, source, (0, 1, *moved))
    indexes.set_partition_states(active=[2, 3])
    complete(indexes)
    assert_answers(indexes, source, EVERY)
    assert indexes.main.header.active == 0b1111
    indexes.close()


def test_request_that_the_machine_refuses_changes_nothing(tmp_path: Path) -> None:
    source = MemorySource(PARTITIONS)
    indexes = with_replica(tmp_path, source)
    indexes.set_partition_states(active=[2])
    before = indexes.main.header, indexes.replica.header
    with pytest.raises(PartitionStateError, match="on transfer"):
        indexes.mark_unindexable([2])
    indexes.add_replicas([0, 2])  # the main index has them
    indexes.remove_replicas([2])
    assert (indexes.main.header, indexes.replica.header) == before
    indexes.close()


def test_partition_on_transfer_may_go_before_it_has_come(tmp_path: Path) -> None:
    source = MemorySource(PARTITIONS)
    indexes = with_replica(tmp_path, source)
    indexes.set_partition_states(active=[2, 3])
    indexes.set_partition_states(cleanup=[2], passive=[3])
    complete(indexes)
    assert indexes.main.header.active == 0b11
    assert indexes.main.header.passive == 0b1000
    assert indexes.replicas == frozenset()
    assert_answers(indexes, source, (0, 1))
    indexes.close()

"""Partitions come, go, pause and move on as `partition-states` allows, while the index is updated."""

from __future__ import annotations

import random
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from tests.impl.view_engine.group.test_updates import (
    PARTITIONS,
    SMALL,
    VIEWS,
    assert_right,
    group_of,
    put_some,
)
from tests.impl.view_engine.memory_source import MemorySource
from tests.thorough import examples

from stagewright.impl.view_engine.design.design import DesignDocument
from stagewright.impl.view_engine.file.header import IndexHeader, contradictions
from stagewright.impl.view_engine.file.masks import mask_of, partitions_of
from stagewright.impl.view_engine.group import partitions
from stagewright.impl.view_engine.group.group import Group
from stagewright.impl.view_engine.group.partitions import PartitionStateError, request, settle
from stagewright.impl.view_engine.index.cleaner import Cleaner
from stagewright.impl.view_engine.index.compactor import CompactionStoppedError
from stagewright.impl.view_engine.query.local import answer
from stagewright.impl.view_engine.query.params import Query

REQUESTS = {
    "active": partitions.SET_ACTIVE,
    "passive": partitions.SET_PASSIVE,
    "cleanup": partitions.SET_CLEANUP,
    "unindexable": partitions.MARK_UNINDEXABLE,
    "indexable": partitions.MARK_INDEXABLE,
}


def queried(group: Group) -> list[int]:
    with group.reading() as snapshot:
        return sorted(answer(snapshot, "names", Query()).seqs)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from(sorted(REQUESTS)), st.integers(0, 3)), max_size=12))
def test_any_requests_leave_a_header_that_does_not_contradict_itself(
    wanted: list[tuple[str, int]],
) -> None:
    header = IndexHeader(bytes(16), 4, (None,), active=1, seqs={0: 9})
    for name, partition in wanted:
        try:
            header = request(header, REQUESTS[name], [partition])
        except PartitionStateError:
            continue
        assert contradictions(header) == []
    settled = settle(header)  # no tree has any row: all cleanup ends
    assert settled.cleanup == 0
    assert settled.pending.active == settled.pending.passive == ()
    assert settle(settled) == settled


def test_request_that_the_machine_refuses_names_the_requirement_and_changes_nothing(
    tmp_path: Path,
) -> None:
    group = group_of(tmp_path, MemorySource(PARTITIONS))
    before = group.header
    with pytest.raises(PartitionStateError, match=r"partition 1: .*partition is unindexable"):
        group.mark_indexable([1])
    group.mark_unindexable([2])
    with pytest.raises(PartitionStateError, match="partition is indexable"):
        group.set_partition_states(passive=[1, 2])
    with pytest.raises(PartitionStateError, match="no partition 4"):
        group.set_partition_states(active=[4])
    group.mark_indexable([2])
    assert group.header == before
    group.close()


def test_partition_moves_out_and_in_again(tmp_path: Path) -> None:
    source = MemorySource(PARTITIONS)
    put_some(source, random.Random(1), 300)
    group = group_of(tmp_path, source)
    group.wait_until_current()
    group.set_partition_states(passive=[0], cleanup=[1])
    assert queried(group) == [2, 3]
    assert_right(group, source)
    group.set_partition_states(active=[0, 1])
    assert (queried(group), group.header.pending.active) == ([0, 2, 3], (1,))
    group.clean_up()
    assert group.header.pending.active == ()
    assert group.header.seqs[1] == 0
    group.wait_until_current()
    assert queried(group) == [0, 1, 2, 3]
    assert_right(group, source)
    group.close()


def test_paused_partition_answers_with_what_it_has(tmp_path: Path) -> None:
    source = MemorySource(PARTITIONS)
    put_some(source, random.Random(2), 200)
    group = group_of(tmp_path, source)
    group.wait_until_current()
    frozen = group.header.seqs[3]
    group.mark_unindexable([3])
    put_some(source, random.Random(3), 200)
    group.wait_until_current()
    assert group.header.unindexable_seqs == {3: frozen}
    assert_right(group, source)
    group.close()
    group = group_of(tmp_path, source)  # the mark is in the header
    group.mark_indexable([3])
    group.wait_until_current()
    assert group.header.seqs[3] > frozen
    assert_right(group, source)
    group.close()


def test_updater_removes_what_it_meets_of_partitions_in_cleanup(tmp_path: Path) -> None:
    source = MemorySource(PARTITIONS)
    put_some(source, random.Random(4), 300)
    group = group_of(tmp_path, source)
    group.wait_until_current()
    group.set_partition_states(cleanup=[0, 2])
    put_some(source, random.Random(5), 300)
    group.wait_until_current()
    assert group.header.cleanup == 0
    assert queried(group) == [1, 3]
    assert_right(group, source)
    group.close()


def test_cleaner_that_is_stopped_goes_on_later_and_ends(tmp_path: Path) -> None:
    source = MemorySource(PARTITIONS)
    for number in range(4000):
        source.put(f"d{number}", {"numbers": [number, number + 1]})
    group = Group(tmp_path, DesignDocument("d", VIEWS), source, PARTITIONS)
    group.wait_until_current()
    group.set_partition_states(cleanup=[1])
    headers: list[IndexHeader] = []

    def checkpoint(header: IndexHeader) -> IndexHeader:
        headers.append(header)
        cleaner.stop()
        return group.checkpoint(header)

    shapes = group.design.shapes
    rounds = 0
    while group.header.cleanup:
        cleaner = Cleaner(group.index.file, shapes, checkpoint, step=10_000)
        cleaner.run(group.header)
        rounds += 1
    assert rounds > 3
    assert queried(group) == [0, 2, 3]
    assert_right(group, source)
    group.close()


@pytest.mark.parametrize(
    "seed",
    [
        *range(examples(12)),
        85,
        *(pytest.param(n, marks=pytest.mark.thorough) for n in range(100, 400)),
    ],
)
def test_whatever_happens_answers_are_map_reduce_over_the_documents(
    tmp_path: Path, seed: int
) -> None:
    """State changes, marks, cleanups, compactions, failovers, stops and reopenings among writes."""
    chosen = random.Random(seed)
    source = MemorySource(PARTITIONS)
    group = group_of(tmp_path, source)
    for _ in range(25):
        put_some(source, chosen, 40)
        partition = chosen.randrange(PARTITIONS)
        match chosen.randrange(9):
            case 0 | 1 | 2:
                try:
                    kind = chosen.choice(["active", "passive", "cleanup"])
                    group.set_partition_states(**{kind: [partition]})
                except PartitionStateError:
                    pass
            case 3:
                try:
                    mark = chosen.choice([group.mark_indexable, group.mark_unindexable])
                    mark([partition])
                except PartitionStateError:
                    pass
            case 4:
                group.clean_up()
            case 5:
                with suppress(CompactionStoppedError):
                    group.compact()
            case 6:
                high = source.positions()[partition].seq
                if partition not in group.header.unindexable_seqs:  # it would keep what was lost
                    source.fail_over(partition, max(high - chosen.randrange(30), 0))
                    group.wait_until_current(passive=True)
            case 7:
                group.close()
                group = group_of(tmp_path, source)
            case _:
                group.trigger()
        if chosen.random() < 0.6:
            group.wait_until_current()
            assert queried(group) == partitions_of(group.header.active)
            assert_right(group, source)
    group.close()


def test_requests_while_everything_runs(tmp_path: Path) -> None:
    source = MemorySource(PARTITIONS)
    put_some(source, random.Random(1), 500)
    group = Group(tmp_path, DesignDocument("d", VIEWS), source, PARTITIONS, limits=SMALL)
    stop = threading.Event()
    failures: list[BaseException] = []

    def repeatedly(work: object) -> None:
        while not stop.is_set():
            try:
                work()  # type: ignore[operator]
            except CompactionStoppedError:
                pass
            except BaseException as error:  # noqa: BLE001 - fails the test
                failures.append(error)
                return

    threads = [
        threading.Thread(target=repeatedly, args=(work,))
        for work in (group.compact, group.clean_up, group.trigger, group.wait_until_current)
    ]
    for thread in threads:
        thread.start()
    chosen = random.Random(2)
    for round_ in range(30):
        put_some(source, chosen, 30)
        group.set_partition_states(
            **{chosen.choice(["active", "passive", "cleanup"]): [round_ % 4]}
        )
    group.set_partition_states(active=range(PARTITIONS))
    stop.set()
    for thread in threads:
        thread.join()
    assert failures == []
    group.clean_up()
    group.wait_until_current()
    assert queried(group) == [0, 1, 2, 3]
    assert group.header.active == mask_of(range(PARTITIONS))
    assert_right(group, source)
    group.close()

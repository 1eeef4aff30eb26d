"""A manager waits for one partition at a time: until it is indexed, or removed meanwhile."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest
from tests.impl.view_engine.group.test_updates import PARTITIONS, group_of, put_some
from tests.impl.view_engine.memory_source import MemorySource

from stagewright.impl.view_engine.group.current import GroupClosedError, IndexNotReadyError
from stagewright.impl.view_engine.group.monitoring import MonitorEnd
from stagewright.impl.view_engine.group.partitions import MARK_INDEXABLE, SET_CLEANUP, request


def test_monitor_ends_when_the_partition_has_what_was_written_before(tmp_path: Path) -> None:
    source = MemorySource(PARTITIONS)
    put_some(source, random.Random(40), 40)
    group = group_of(tmp_path, source)
    group.set_partition_states(passive=[1])
    monitor = group.monitor(1)  # a passive one: no query would wait for it
    assert monitor.end() is None
    assert monitor.wait(60) is MonitorEnd.updated
    assert group.header.seqs[1] == source.positions()[1].seq > 0
    source.history[1].append(source.history[1][-1]._replace(seq=1000))
    assert monitor.end() is MonitorEnd.updated  # what came later is not waited for
    assert group.monitor(1).end() is None
    group.close()


def test_monitor_ends_when_the_partition_is_removed(tmp_path: Path) -> None:
    source = MemorySource(PARTITIONS)
    put_some(source, random.Random(40), 40)
    group = group_of(tmp_path, source)
    group.wait_until_current()
    group.mark_unindexable([2])
    put_some(source, random.Random(40), 40)
    monitor = group.monitor(2)
    found: list[MonitorEnd] = []
    waiting = threading.Thread(target=lambda: found.append(monitor.wait(60)), daemon=True)
    waiting.start()
    with pytest.raises(IndexNotReadyError, match="partition 2 is not current after"):
        group.monitor(2).wait(0.05)  # it does not move on
    group.change(lambda h: request(request(h, MARK_INDEXABLE, [2]), SET_CLEANUP, [2]))
    waiting.join(60)
    assert found == [MonitorEnd.removed]
    with pytest.raises(ValueError, match="no partition 2"):
        group.monitor(2)
    group.set_partition_states(active=[2])  # waits for the cleanup: that is to be there, too
    pending = group.monitor(2)
    assert pending.end() is None
    group.stop_updater()  # the cleaner works alone
    assert group.clean_up() > 0
    assert pending.wait(60) is MonitorEnd.updated
    group.close()


def test_monitor_says_that_the_index_ended(tmp_path: Path) -> None:
    source = MemorySource(PARTITIONS)
    put_some(source, random.Random(10), 10)
    group = group_of(tmp_path, source)
    group.wait_until_current()
    group.mark_unindexable([0])
    put_some(source, random.Random(10), 10)
    monitor = group.monitor(0)
    waiting = threading.Timer(0.2, group.close)
    waiting.start()
    with pytest.raises(GroupClosedError):
        monitor.wait(60)
    waiting.join()

"""Intents become versions without a sync: what a crash takes back of it is done again by the next leader."""

from __future__ import annotations

import pytest
from tests.impl.indexes.bulk.test_loading import Turns

from stagewright.impl.indexes.messages import AlterTable, Apply, AskFate, Fate, Write
from stagewright.impl.indexes.port import Settings
from stagewright.impl.indexes.records.known import KnownVersions
from stagewright.impl.indexes.records.notes import IntentsEnded, IntentsHeld, Opened, Stored
from stagewright.impl.indexes.schema import Schema, row_key
from stagewright.impl.indexes.table_tablet import TableTablet
from stagewright.impl.indexes.tablet import ROWS
from stagewright.impl.storage.memory import MemoryRows, ModelledDisk


def applied(disk: ModelledDisk) -> tuple[TableTablet, Turns]:
    """A tablet that has heard of the end of a transaction, which has written its row 5."""
    port = Turns()
    tablet = TableTablet(0, port, MemoryRows(disk), Settings())
    tablet.receive("master", AlterTable(Schema(1)))
    tablet.receive("client", Write("t", 0, 5, {"v": 1}, Schema(1)))
    tablet.receive("transactions", Apply("t", 70))
    return tablet, port


def test_applying_waits_for_no_disk_and_later_syncs_serve_it() -> None:
    disk = ModelledDisk()
    tablet, _ = applied(disk)
    assert tablet.store.get(ROWS, row_key(5)) is not None
    assert disk.synced == len(disk.log) - 1
    tablet.receive("client", Write("u", 0, 6, {"v": 1}, Schema(1)))
    assert disk.synced == len(disk.log)


@pytest.mark.parametrize("kept", [0, 1])
def test_after_a_crash_the_next_leader_holds_the_row_until_it_has_asked(kept: int) -> None:
    disk = ModelledDisk()
    applied(disk)
    disk.crash(kept)
    port = Turns()
    tablet = TableTablet(0, port, MemoryRows(disk), Settings())
    assert [*tablet.intents] == [row_key(5)] * (1 - kept)
    tablet.when_decided(80, lambda: None)
    assert port.sent == [AskFate("t", 80)] * (1 - kept)
    tablet.receive("transactions", Fate("t", 80, decided=True, time=70))
    found = tablet.store.get(ROWS, row_key(5))
    assert found is not None
    assert (found.time, tablet.rows) == (70, 1)
    assert tablet.intents == {}


def test_what_a_crash_takes_back_is_held_and_no_version() -> None:
    known = KnownVersions()
    known.load("table/0", {row_key(5): {"v": 1}})
    known.hear(IntentsHeld("table/0", "t", (row_key(5),)))
    known.hear(IntentsEnded("table/0", "t", 70))
    known.hear(Stored("table/0", 70, {row_key(5): b'{"v": 2}'}))
    assert known.counts("table/0") == (2, 0)
    known.hear(Opened("table/0", {row_key(5): "t"}))
    assert known.counts("table/0") == (1, 1)
    assert known.holder_of("table/0", row_key(5)) == "t"

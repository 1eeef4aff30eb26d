"""Who waits for a disk: not intents that become versions, nor requests for more intents, but all that is answered."""

from __future__ import annotations

import pytest
from tests.impl.indexes.bulk.test_loading import Turns

from stagewright.impl.indexes.campaign.drawing import draw
from stagewright.impl.indexes.messages import (
    Altered,
    AlterTable,
    Answer,
    Apply,
    AskFate,
    Fate,
    Message,
    Prepare,
    Prepared,
    Write,
    Written,
)
from stagewright.impl.indexes.port import Settings
from stagewright.impl.indexes.records.known import KnownVersions
from stagewright.impl.indexes.records.notes import IntentsEnded, IntentsHeld, Opened, Stored
from stagewright.impl.indexes.schema import IndexInfo, Schema, row_key
from stagewright.impl.indexes.simulated.run import run
from stagewright.impl.indexes.table_tablet import TableTablet
from stagewright.impl.indexes.tablet import ROWS
from stagewright.impl.storage.memory import MemoryRows, ModelledDisk
from stagewright.machines.yugabytedb.indexes.index_states import Permission


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
    assert known.has("table/0", versions=2, rows=1)
    assert known.intents("table/0") == 0
    known.hear(Opened("table/0", {row_key(5): "t"}))
    assert known.has("table/0", versions=1, rows=1)
    assert known.intents("table/0") == 1
    assert known.holder_of("table/0", row_key(5)) == "t"


def test_what_an_index_is_to_hold_is_asked_for_before_the_sync_and_nothing_is_answered_before() -> (
    None
):
    index = IndexInfo(0, "i", "v", False, Permission.write_and_delete)
    disk, port = ModelledDisk(), Early()
    tablet = TableTablet(0, port, MemoryRows(disk), Settings())
    tablet.receive("master", AlterTable(Schema(1, (index,))))
    tablet.receive("client", Write("t", 0, 5, {"v": 1}, Schema(1, (index,))))
    tablet.receive(port.asked, Prepared("t", 0, Answer.done))
    assert [(type(message), early) for message, early in port.sent_early] == [
        (Altered, False),
        (Prepare, True),
        (Written, False),
    ]


class Early(Turns):
    """It remembers what may be sent before it is on the disk."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = ""
        self.sent_early: list[tuple[Message, bool]] = []

    def send(self, to: str, message: Message, *, early: bool = False) -> None:
        self.asked = to
        self.sent_early.append((message, early))


def test_what_is_acknowledged_and_not_synced_is_lost_with_its_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The simulator's disks keep what was synced when something was sent that waits for it, and no more."""
    scenario = draw(773_053)
    assert run(scenario.plan()).kept
    monkeypatch.setattr("stagewright.impl.indexes.simulated.world._Rows.settle", lambda _: None)
    assert not run(scenario.plan()).kept

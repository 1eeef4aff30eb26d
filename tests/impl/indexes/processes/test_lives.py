"""What a life says waits for what it has synced; what may be said early does not, but the sync begins."""

from __future__ import annotations

import asyncio
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from tests.patience import within

pytest.importorskip("msgspec")
pytest.importorskip("rocksdict")

from stagewright.impl.indexes.messages import Altered, Applied, Message, Prepare
from stagewright.impl.indexes.port import Settings
from stagewright.impl.indexes.processes.host import Host
from stagewright.impl.indexes.processes.layout import IndexLayout, TableFile
from stagewright.impl.indexes.processes.lives import Led, SyncedStore
from stagewright.impl.storage.memory import MemoryRows, ModelledDisk
from stagewright.impl.storage.port import Put, StorageError, Version


class SlowRows(MemoryRows):
    """A sync ends when a test says so, or fails."""

    def __init__(self) -> None:
        super().__init__(ModelledDisk())
        self.begun, self.may_end, self.fails = Event(), Event(), False

    def sync(self) -> None:
        self.begun.set()
        self.may_end.wait()
        if self.fails:
            raise StorageError("the disk fails", help="replace it")
        super().sync()


class Hosted:
    """A leader of a tablet in a host, and what it has posted."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        layout = IndexLayout(directory)
        layout.create(TableFile(("n1",), ("m1",)))
        self.host = Host(layout, "n1", frozenset())
        self.rows = SlowRows()
        self.posted: list[Message] = []
        monkeypatch.setattr(self.host, "_post", self._post)
        self.life = Led(self.host, "table/0", SyncedStore(self.rows), -1, lambda *_: None)
        self.life.open(Settings())

    def _post(self, sender: str, to: str, at: int, message: Any) -> None:
        self.posted.append(message)

    def write(self) -> None:
        """Something that is to be synced."""
        self.life.store.write([Put("meta", Version(b"k", 1, b"v"))])
        self.life.store.sync()

    async def synced(self) -> None:
        """The disk goes on, and all that waits for it."""
        self.rows.may_end.set()
        await asyncio.gather(*self.life.busy())


def test_a_request_is_sent_early_and_an_answer_when_it_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request, answer = Prepare("t", 0, ()), Altered(0, 1)

    async def live() -> None:
        hosted = Hosted(tmp_path / "c", monkeypatch)
        hosted.write()
        hosted.life.send("index0/0", request, early=True)
        await asyncio.to_thread(hosted.rows.begun.wait)  # nobody has to ask for the sync
        hosted.life.send("master", answer)
        await asyncio.sleep(0)
        assert hosted.posted == [request]
        await hosted.synced()
        assert hosted.posted == [request, answer]
        hosted.life.send("master", answer)
        assert hosted.posted == [request, answer, answer]

    asyncio.run(within(60, live()))


def test_what_is_not_to_be_synced_holds_nothing_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def live() -> None:
        hosted = Hosted(tmp_path / "c", monkeypatch)
        hosted.life.store.write([Put("meta", Version(b"k", 1, b"v"))])
        hosted.life.send("transactions", Applied("t"))
        assert hosted.posted == [Applied("t")]
        assert not hosted.rows.begun.is_set()

    asyncio.run(within(60, live()))


def test_a_sync_that_fails_acknowledges_nothing_and_ends_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def live() -> None:
        hosted = Hosted(tmp_path / "c", monkeypatch)
        failed: list[BaseException] = []
        monkeypatch.setattr(hosted.host, "fail", failed.append)
        hosted.rows.fails = True
        hosted.write()
        hosted.life.send("master", Altered(0, 1))
        await asyncio.sleep(0)
        hosted.life.send("master", Altered(0, 2))
        await hosted.synced()
        assert hosted.posted == []
        assert [type(error) for error in failed] == [StorageError]

    asyncio.run(within(60, live()))

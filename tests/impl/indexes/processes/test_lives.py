"""What a life says waits for what it has synced; what may be said early does not, but the sync begins."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from tests.patience import PATIENCE, within

pytest.importorskip("msgspec")
pytest.importorskip("rocksdict")

from stagewright.impl.indexes.messages import (
    AllowGc,
    Altered,
    Answer,
    Applied,
    Apply,
    Message,
    Prepare,
    Prepared,
    ReadRows,
)
from stagewright.impl.indexes.port import Settings
from stagewright.impl.indexes.processes.host import Host
from stagewright.impl.indexes.processes.layout import REAL, IndexLayout, TableFile
from stagewright.impl.indexes.processes.lives import Led, SyncedStore
from stagewright.impl.indexes.schema import EntryChange, entry_key
from stagewright.impl.storage.memory import MemoryLoad, MemoryRows, ModelledDisk
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


class SlowLoads(MemoryRows):
    """What is put in is there when a test says so."""

    def __init__(self) -> None:
        super().__init__(ModelledDisk())
        self.begun, self.may_end = Event(), Event()

    def load(self, family: str, time: int) -> MemoryLoad:
        load = super().load(family, time)
        finish = load.finish

        def finish_slowly() -> None:
            self.begun.set()
            self.may_end.wait(PATIENCE)
            finish()

        load.finish = finish_slowly  # type: ignore[method-assign]
        return load


class Hosted:
    """A leader of a tablet in a host, and what it has posted."""

    def __init__(
        self,
        directory: Path,
        monkeypatch: pytest.MonkeyPatch,
        place: str = "table/0",
        loads: SlowLoads | None = None,
    ) -> None:
        layout = IndexLayout(directory)
        layout.create(TableFile(("n1",), ("m1",), replace(REAL, builder_share=7)))
        self.host = Host(layout, "n1", frozenset())
        self.rows = SlowRows()
        self.posted: list[Message] = []
        monkeypatch.setattr(self.host, "_post", self._post)
        store = SyncedStore(self.rows if loads is None else loads)
        self.life = Led(self.host, place, store, -1, lambda *_: None)
        self.life.open(Settings())
        self.host._lives[place] = self.life

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


def test_what_is_committed_is_applied_after_a_file_is_taken_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is written meanwhile would have to be put into a file before; clients do not wait for it."""
    loads = SlowLoads()

    async def live() -> None:
        hosted = Hosted(tmp_path / "c", monkeypatch, "index0/0", loads)
        host, life, over = hosted.host, hosted.life, asyncio.Event()
        keys = {name: entry_key(False, value, 1) for name, value in (("t", 5), ("u", 6))}
        prepares = {n: Prepare(n, 0, (EntryChange(0, False, k, 1),)) for n, k in keys.items()}
        host._receive("table/0", "index0/0", 1, prepares["t"])
        load = life.store.load("rows", 3)
        load.add([entry_key(False, 4, 2)], [b"2"])
        life.aside(load.finish, over.set)
        await asyncio.to_thread(loads.begun.wait)
        host._receive("transactions", "index0/0", 9, Apply("t", 9))
        host._receive("table/0", "index0/0", 9, prepares["u"])  # for which a client waits
        while Prepared("u", 0, Answer.done) not in hosted.posted:
            await asyncio.sleep(0.001)
        is_applied = loads.get("rows", keys["t"]) is not None
        assert not over.is_set()
        loads.may_end.set()
        assert not is_applied
        await over.wait()
        while loads.get("rows", keys["t"]) is None:
            await asyncio.sleep(0.001)
        host._receive("transactions", "index0/0", 11, Apply("u", 11))
        assert loads.get("rows", keys["u"]) is not None

    asyncio.run(within(60, live()))


def test_a_builder_has_a_share_while_clients_are_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def live() -> None:
        hosted = Hosted(tmp_path / "c", monkeypatch)
        share = hosted.host.builder._share
        assert share() == 100
        hosted.host._receive("index0/0", "table/0", 1, AllowGc(0))
        assert share() == 100
        hosted.host._receive("s", "table/0", 1, ReadRows("r", None, 1, 1))
        assert share() == 7

    asyncio.run(within(60, live()))

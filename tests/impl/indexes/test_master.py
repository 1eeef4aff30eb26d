"""What a master tells tablets, and when: nobody else is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stagewright.impl.indexes.bulk.work import Work
from stagewright.impl.indexes.catalog import Catalog
from stagewright.impl.indexes.master import Master
from stagewright.impl.indexes.messages import Altered, AlterTable, CreateIndex, Message
from stagewright.impl.indexes.port import Settings
from stagewright.impl.indexes.records.notes import Note
from stagewright.impl.indexes.schema import index_tablet


class Office:
    """The port of a master, whose time goes on when a test says so."""

    address = "master"

    def __init__(self) -> None:
        self.led: set[str] = set()
        self.sent: list[tuple[str, Message]] = []
        self.time = 0
        self._due: list[tuple[int, Callable[[], None]]] = []

    def send(self, to: str, message: Message, *, early: bool = False) -> None:
        self.sent.append((to, message))

    def after(self, milliseconds: int, action: Callable[..., None], *arguments: Any) -> None:
        self._due.append((self.time + milliseconds, lambda: action(*arguments)))

    def turn(self, action: Callable[..., None], *arguments: Any) -> None:
        """Nothing takes long."""

    def aside(self, work: Callable[[], None], then: Callable[..., None], *arguments: Any) -> None:
        """Nor waits for a disk."""

    def elsewhere(self, work: Work, then: Callable[..., None], *arguments: Any) -> None:
        """Nor is there anybody else."""

    def make_tablet(self, address: str) -> None:
        """No tablet splits."""

    def is_led(self, address: str) -> bool:
        return address in self.led

    def now(self) -> int:
        return self.time

    def note(self, note: Note) -> None:
        """Nobody listens."""

    def take_slot(self) -> bool:
        return False

    def free_slot(self) -> None:
        """It has none."""

    def wait(self, milliseconds: int) -> list[str]:
        """Let time pass; to whom new schemas are sent meanwhile."""
        self.sent.clear()
        for _ in range(milliseconds):
            self.time += 1
            due = [action for at, action in self._due if at <= self.time]
            self._due = [one for one in self._due if one[0] > self.time]
            for action in due:
                action()
        return [to for to, message in self.sent if isinstance(message, AlterTable)]


def test_nobody_is_to_write_to_an_index_that_has_no_leaders_yet() -> None:
    """A statement would wait until somebody leads what it has to reach."""
    port, settings = Office(), Settings(tablets=2)
    master = Master(port, Catalog(), settings)
    assert port.wait(10) == ["table/0", "table/1"]  # of no index
    master.receive("table/0", Altered(0, master.catalog.version))
    master.receive("table/1", Altered(1, master.catalog.version))
    master.receive("client", CreateIndex("i", "v"))
    assert port.wait(1_000) == []
    port.led = {index_tablet(0, 0)}
    assert port.wait(1_000) == []
    port.led |= {index_tablet(0, 1)}
    assert port.wait(20) == ["table/0", "table/1"]


def test_a_master_to_which_nothing_happens_asks_its_definitions_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    port = Office()
    master = Master(port, Catalog(), Settings(tablets=1))
    port.wait(10)
    master.receive("table/0", Altered(0, master.catalog.version))
    port.wait(20)

    def asked(*_: object, **__: object) -> bool:
        raise AssertionError("nothing has changed")

    with monkeypatch.context() as patch:
        patch.setattr(master.control, "of", asked)
        port.wait(200)
    master.receive("client", CreateIndex("i", "v"))
    port.led = {index_tablet(0, 0)}
    assert port.wait(20) == ["table/0"]

"""Delete markers are reclaimed slice by slice: nobody waits until all of an index has been looked at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stagewright.impl.indexes.bulk.work import Work
from stagewright.impl.indexes.index_tablet import IndexTablet
from stagewright.impl.indexes.messages import AllowGc, Message
from stagewright.impl.indexes.port import Settings
from stagewright.impl.indexes.records.notes import Compacted, Note
from stagewright.impl.indexes.schema import row_key
from stagewright.impl.indexes.tablet import ROWS
from stagewright.impl.storage.memory import MemoryRows, ModelledDisk
from stagewright.impl.storage.port import Put, Version

KEYS = 3_500


class Alone:
    """The port of a tablet that nobody hears: what is to be done later, is when a test says so."""

    address = "index0/0"

    def __init__(self) -> None:
        self.later: list[tuple[int, Callable[..., None], tuple[Any, ...]]] = []
        self.reclaimed: list[int] = []

    def send(self, to: str, message: Message, *, early: bool = False) -> None:
        """Nobody is there."""

    def after(self, milliseconds: int, action: Callable[..., None], *arguments: Any) -> None:
        self.later.append((milliseconds, action, arguments))

    def turn(self, action: Callable[..., None], *arguments: Any) -> None:
        """Nothing takes long."""

    def aside(self, work: Callable[[], None], then: Callable[..., None], *arguments: Any) -> None:
        """Nor waits for a disk."""

    def elsewhere(self, work: Work, then: Callable[..., None], *arguments: Any) -> None:
        """Nor is there anybody else."""

    def make_tablet(self, address: str) -> None:
        """No tablet splits."""

    def is_led(self, address: str) -> bool:
        return True

    def now(self) -> int:
        return 1_000_000

    def note(self, note: Note) -> None:
        if isinstance(note, Compacted):
            self.reclaimed.append(note.versions)

    def take_slot(self) -> bool:
        return True

    def free_slot(self) -> None:
        """It has none."""


def test_a_compaction_looks_at_some_versions_at_a_time_and_at_all_in_the_end() -> None:
    store, port = MemoryRows(ModelledDisk()), Alone()
    store.write(
        Put(ROWS, Version(row_key(k), time, value))
        for k in range(KEYS)
        for time, value in ((1, b"1"), (2, None))
    )
    settings = Settings(compaction=250)
    tablet = IndexTablet(0, port, store, settings)

    def compact() -> int:
        """Let it work once; how long it waits after that."""
        action, arguments = next((a, b) for _, a, b in port.later if "compact" in a.__name__)
        port.later.clear()
        action(*arguments)
        ((wait, _, _),) = port.later
        return wait

    assert compact() == settings.compaction  # the backfill is not over: all markers are kept
    assert port.reclaimed == []
    tablet.receive("master", AllowGc(0))
    waits = [compact() for _ in range(4)]
    assert sum(port.reclaimed) == 2 * KEYS
    assert max(port.reclaimed) <= 2_000
    assert waits[:3] == [20, 20, 20]
    assert waits[3] == settings.compaction
    snapshot = store.snapshot()
    assert list(snapshot.versions(ROWS, b"", None)) == []
    snapshot.close()

"""What tablets of the table and those of indexes have in common: how many rows or entries, and that they may split."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stagewright.impl.indexes.messages import SplitTablet
from stagewright.impl.indexes.port import Port, Settings
from stagewright.impl.indexes.splits.copying import COUNT
from stagewright.impl.indexes.splits.division import Division
from stagewright.impl.indexes.tablet import META, ROWS, Tablet
from stagewright.impl.storage.port import LAST_TIME, Put, RowStore, Version

_MASTER = "master"
_PAGE = 1_000


class DivisibleTablet(Tablet):
    """One that has rows, or entries."""

    def __init__(self, port: Port, store: RowStore, settings: Settings) -> None:
        super().__init__(port, store, settings)
        self.rows = self._stored_count()
        self.division = Division(self)
        if self.division.split is not None:
            self.forget()

    def _stored_count(self) -> int:
        """How many there are; a tablet that was filled from elsewhere counts them once."""
        found = self.store.get(META, COUNT)
        if found is not None:
            return int(found.value or b"0")
        page = self.store.page(ROWS, b"", LAST_TIME, _PAGE)
        count = len(page.values)
        while page.following is not None:
            page = self.store.page(ROWS, page.following, LAST_TIME, _PAGE)
            count += len(page.values)
        return count

    def versions(self, time: int, versions: Mapping[bytes, bytes | None]) -> list[Put]:
        for key, value in versions.items():
            before = self.store.get(ROWS, key)
            was = before is not None and before.value is not None
            more = (value is not None) - was
            self.rows += more
            self.division.count(key, more)
        count = Put(META, Version(COUNT, 1, str(self.rows).encode()))
        return [*super().versions(time, versions), count]

    def write(self, puts: list[Put]) -> None:
        super().write(puts)
        self.division.keep(puts)

    def sweep(self) -> None:
        super().sweep()
        large = 0 < self.settings.split_rows <= self.rows
        if large and self.division.split is None:  # the master may refuse it for now
            self.port.send(_MASTER, SplitTablet(self.port.address))

    def close(self) -> None:
        self.division.close()

    # -- when it splits ----------------------------------------------------------------------------------------

    def is_at_rest(self) -> bool:
        """Whether all that it writes goes through `put`; if not, it comes to rest before long."""
        return True

    def freeze(self) -> None:
        """It has split: nothing that is under way goes on here, and who waits for an answer asks another tablet."""
        self.forget()

    def inherited(self) -> Iterable[Put]:
        """What each of the two gets beside rows and intents."""
        return ()

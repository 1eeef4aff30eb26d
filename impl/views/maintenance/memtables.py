"""Which rows of a node are in memtables: written by requests since the last flush, and in no sstable yet.

The store itself knows no such difference. Who builds a view reads sstables: what was in a memtable when the view
was created has no update of its own, and is to be flushed first.
"""

from __future__ import annotations

MOST = 2_000  # versions in the memtable of a table, until it is flushed


class Memtables:
    """Versions of rows, by table. A restart replays the commit log into sstables."""

    def __init__(self) -> None:
        self._rows: dict[str, set[tuple[bytes, int]]] = {}
        self._frozen: dict[str, set[tuple[bytes, int]]] = {}  # that are being written out

    def wrote(self, table: str, key: bytes, time: int) -> None:
        """A request has written a version."""
        rows = self._rows.setdefault(table, set())
        if len(rows) >= MOST:
            self.flushed(table)
            self.freeze(table)
            rows = self._rows.setdefault(table, set())
        rows.add((key, time))

    def freeze(self, table: str) -> None:
        """A flush begins: what is written from now on is not of it."""
        self._frozen.setdefault(table, set()).update(self._rows.pop(table, ()))

    def flushed(self, table: str) -> None:
        """It is over: what was there when it began is in sstables."""
        self._frozen.pop(table, None)

    def has(self, table: str, key: bytes, time: int) -> bool:
        """Whether a version is in no sstable."""
        found = key, time
        return found in self._rows.get(table, ()) or found in self._frozen.get(table, ())

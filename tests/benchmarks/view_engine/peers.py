"""The same rows in stores that are not made for views: LMDB, SQLite and DuckDB, each if it is there."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Sequence
from importlib import import_module, util
from pathlib import Path
from typing import Any

Row = tuple[bytes, bytes]


class Lmdb:
    """One tree of rows that come in order, synced to the disk once, as an index file is."""

    def __init__(self, folder: Path, rows: Sequence[Row]) -> None:
        self._folder = folder / "lmdb"
        self._rows = sorted(rows)
        self._module: Any = import_module("lmdb")

    def _open(self) -> Any:
        return self._module.open(str(self._folder), map_size=1 << 36)

    def append(self) -> None:
        """Put the rows with MDB_APPEND."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir()
        with self._open() as base, base.begin(write=True) as writing, writing.cursor() as cursor:
            cursor.putmulti(self._rows, append=True)

    def scan(self) -> None:
        """Read all rows, each as a pair of bytes."""
        with self._open() as base, base.begin() as reading, reading.cursor() as cursor:
            assert sum(1 for _ in cursor) == len(self._rows)


def sqlite_index(folder: Path, rows: Sequence[Row]) -> Callable[[], object]:
    """CREATE INDEX over a table that has the rows in no order."""
    base = sqlite3.connect(folder / "sqlite")
    base.execute("CREATE TABLE t (key BLOB, value BLOB)")
    base.executemany("INSERT INTO t VALUES (?, ?)", rows)
    base.commit()

    def create() -> None:
        base.execute("DROP INDEX IF EXISTS i")
        base.execute("CREATE INDEX i ON t (key, value)")
        base.commit()

    return create


def duckdb_index(folder: Path, rows: Sequence[Row]) -> Callable[[], object]:
    """The same in DuckDB, on one thread."""
    duckdb: Any = import_module("duckdb")
    base = duckdb.connect(str(folder / "duck"), config={"threads": 1})
    base.execute("CREATE TABLE t (key BLOB, value BLOB)")
    listing = folder / "rows.csv"
    listing.write_text("".join(f"{key.hex()},{value.hex()}\n" for key, value in rows))
    base.execute(
        "INSERT INTO t SELECT unhex(column0), unhex(column1) FROM read_csv(?, header=false, all_varchar=true)",
        [str(listing)],
    )

    def create() -> None:
        base.execute("DROP INDEX IF EXISTS i")
        base.execute("CREATE INDEX i ON t (key)")
        base.execute("CHECKPOINT")

    return create


def is_there(module: str) -> bool:
    """Whether a peer is installed (`pip install stagewright[bench]`)."""
    return util.find_spec(module) is not None

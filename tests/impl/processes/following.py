"""A user's consumer as a process: it keeps its position in one SQLite transaction with what it made of the changes.

`python -m tests.impl.processes.following DIRECTORY TABLE DATABASE`; it may be killed at any moment and run again.
"""

from __future__ import annotations

import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

from stagewright.impl.cdc.consumer import Position
from stagewright.impl.cdc.rows import Change
from stagewright.impl.processes.errors import ClusterError
from stagewright.live.changes import following

SCHEMA = """
CREATE TABLE IF NOT EXISTS changes (place INTEGER PRIMARY KEY, key BLOB, time INTEGER, value BLOB);
CREATE TABLE IF NOT EXISTS position (one INTEGER PRIMARY KEY CHECK (one = 1), text TEXT);
"""


def follow(directory: Path, table: str, database: Path) -> None:
    """Read on for ever, from where the database says."""
    with closing(sqlite3.connect(database)) as own:
        own.executescript(SCHEMA)
        kept = own.execute("SELECT text FROM position").fetchone()
        position = None if kept is None else Position.from_json(kept[0])
        with following(directory, table, position) as consumer:
            while True:
                try:
                    found = consumer.poll()
                except ClusterError:
                    continue
                keep(own, found, consumer.position)
                time.sleep(0.05)


def keep(own: sqlite3.Connection, found: list[Change], after: Position | None) -> None:
    """What was read, and up to where, both or neither."""
    if after is None:
        return
    with own:
        rows = [(c.key, c.timestamp, c.value) for c in found]
        own.executemany("INSERT INTO changes (key, time, value) VALUES (?,?,?)", rows)
        own.execute("REPLACE INTO position VALUES (1, ?)", (after.to_json(),))


if __name__ == "__main__":
    follow(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))

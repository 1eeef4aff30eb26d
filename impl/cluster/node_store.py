"""What a node keeps on its disk: rows, which tablets have storage, and what it has learned from group0."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Protocol

from stagewright.impl.cluster.messages import DropRows, Learn, PutRows, Row
from stagewright.impl.cluster.view import View
from stagewright.impl.store import Entry

_SCHEMA = """
CREATE TABLE IF NOT EXISTS rows (
    tablet TEXT, key TEXT, value TEXT NOT NULL, timestamp INTEGER NOT NULL, PRIMARY KEY (tablet, key)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS storage (tablet TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS learned (
    position INTEGER PRIMARY KEY, entity TEXT, sequence INTEGER, action TEXT, observed TEXT, attached TEXT
);
"""


class Rows(Protocol):
    """What the logic of a node may read of its rows."""

    def row(self, tablet: str, key: str) -> Row | None:
        """The row of a key."""
        ...

    def rows_after(self, tablet: str, after: str, limit: int) -> tuple[Row, ...]:
        """The first `limit` rows of a tablet whose keys are greater than `after`, in order."""
        ...


class NodeStore:
    """One SQLite file; each effect is one transaction."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._db = sqlite3.connect(path, isolation_level=None)
        # The operating system keeps what was written when this process is killed, which is all that we need.
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = OFF")
        self._db.executescript(_SCHEMA)

    def row(self, tablet: str, key: str) -> Row | None:
        """The row of a key."""
        found = self._db.execute(
            "SELECT key, value, timestamp FROM rows WHERE tablet = ? AND key = ?", (tablet, key)
        ).fetchone()
        return None if found is None else Row(*found)

    def rows_after(self, tablet: str, after: str, limit: int) -> tuple[Row, ...]:
        """The first `limit` rows of a tablet whose keys are greater than `after`, in order."""
        found = self._db.execute(
            "SELECT key, value, timestamp FROM rows WHERE tablet = ? AND key > ? ORDER BY key LIMIT ?",
            (tablet, after, limit),
        )
        return tuple(Row(*row) for row in found)

    def tablets_at_rest(self) -> set[str]:
        """The tablets that have rows or storage here."""
        found = self._db.execute("SELECT tablet FROM rows UNION SELECT tablet FROM storage")
        return {row[0] for row in found}

    def view(self) -> View:
        """What was learned, as it was written down."""
        found = self._db.execute("SELECT * FROM learned ORDER BY position")
        return View().after_all(
            [
                Entry(
                    position, entity, sequence, action, json.loads(observed), json.loads(attached)
                )
                for position, entity, sequence, action, observed, attached in found
            ]
        )

    def carry_out(self, effect: PutRows | DropRows | Learn) -> None:
        """Change what is stored."""
        match effect:
            case PutRows(tablet, rows, _):
                self._db.executemany(
                    "INSERT INTO rows VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE "
                    "SET value = excluded.value, timestamp = excluded.timestamp "
                    "WHERE excluded.timestamp > timestamp",
                    [(tablet, r.key, r.value, r.timestamp) for r in rows],
                )
            case DropRows(tablet):
                self._db.execute("DELETE FROM rows WHERE tablet = ?", (tablet,))
            case Learn():
                self._learn(effect)

    def _learn(self, learn: Learn) -> None:
        self._db.execute("BEGIN")
        for e in learn.entries:
            values = (e.position, e.entity, e.sequence, e.action, json.dumps(e.observed))
            self._db.execute(
                "INSERT INTO learned VALUES (?, ?, ?, ?, ?, ?)", (*values, json.dumps(e.attached))
            )
        for tablet in learn.allocate:
            self._db.execute("INSERT OR IGNORE INTO storage VALUES (?)", (tablet,))
        for tablet in learn.deallocate:
            # Its rows are not deleted with it: that is what cleanup is for.
            self._db.execute("DELETE FROM storage WHERE tablet = ?", (tablet,))
        self._db.execute("COMMIT")

    def close(self) -> None:
        """Close the file."""
        self._db.close()

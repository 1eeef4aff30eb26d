"""The embedded document store: SQLite, with sequence numbers and tombstones by partition."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from stagewright.impl.view_engine.documents.changes import (
    Change,
    Changes,
    Position,
    RollbackError,
    Stream,
    rollback_point,
)
from stagewright.impl.view_engine.file.header import FailoverLog
from stagewright.impl.view_engine.file.masks import MOST_PARTITIONS

USUAL_PARTITIONS = 64
FIRST_READ = 100  # rows; later reads are of about so many bytes:
READ_SIZE = 256 << 10
MOST_READ = 1000  # rows

_SCHEMA = """
CREATE TABLE IF NOT EXISTS documents (
    partition INTEGER NOT NULL, id BLOB NOT NULL, seq INTEGER NOT NULL, body BLOB,
    PRIMARY KEY (partition, seq)
) WITHOUT ROWID;
CREATE UNIQUE INDEX IF NOT EXISTS by_id ON documents (partition, id);
CREATE TABLE IF NOT EXISTS partitions (
    partition INTEGER PRIMARY KEY, high_seq INTEGER NOT NULL, purged_seq INTEGER NOT NULL,
    failover_log TEXT NOT NULL
);
"""


def partition_of(doc_id: bytes, partitions: int) -> int:
    """The partition that a document belongs to, as Couchbase's clients compute it."""
    return ((zlib.crc32(doc_id) >> 16) & 0x7FFF) % partitions


class DocumentStore:
    """Documents in one SQLite file; each thread has its own connection."""

    def __init__(self, path: Path, partitions: int | None = None) -> None:
        """Open or create, with 64 partitions if none are named.

        Raises ValueError if the file has another number of partitions.
        """
        if partitions is not None and not 1 <= partitions <= MOST_PARTITIONS:
            raise ValueError(f"{partitions} partitions: 1 to 1024 are possible")
        self._path = path
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._lock = threading.Lock()
        with self._connection() as connection:
            connection.executescript(_SCHEMA)
            (found,) = connection.execute("SELECT count(*) FROM partitions").fetchone()
            if found == 0:
                found = partitions or USUAL_PARTITIONS
                connection.executemany(
                    "INSERT INTO partitions VALUES (?, 0, 0, ?)",
                    ((p, json.dumps([[os.urandom(8).hex(), 0]])) for p in range(found)),
                )
            elif partitions not in (None, found):
                raise ValueError(f"{path} has {found} partitions, not {partitions}")
        self.partitions: int = found

    def put(self, documents: Iterable[tuple[bytes, bytes | None]]) -> int:
        """Write documents (None deletes) in one transaction; gives how many."""
        rows = list(documents)
        with self._lock, self._connection() as connection:
            seqs = dict(connection.execute("SELECT partition, high_seq FROM partitions"))
            changed: dict[int, int] = {}
            stored: list[tuple[int, bytes, int, bytes | None]] = []
            for doc_id, body in rows:
                partition = partition_of(doc_id, self.partitions)
                changed[partition] = seqs[partition] = seqs[partition] + 1
                stored.append((partition, doc_id, changed[partition], body))
            connection.executemany("INSERT OR REPLACE INTO documents VALUES (?, ?, ?, ?)", stored)
            connection.executemany(
                "UPDATE partitions SET high_seq = ? WHERE partition = ?",
                ((seq, partition) for partition, seq in changed.items()),
            )
        return len(rows)

    def get(self, doc_id: bytes) -> bytes | None:
        """The body of a document, or None."""
        with closing(
            self._connection().execute(
                "SELECT body FROM documents WHERE partition = ? AND id = ?",
                (partition_of(doc_id, self.partitions), doc_id),
            )
        ) as found:
            row = found.fetchone()
        body: bytes | None = row[0] if row else None
        return body

    def count(self) -> int:
        """How many documents there are."""
        query = "SELECT count(*) FROM documents WHERE body IS NOT NULL"
        with closing(self._connection().execute(query)) as found:
            return int(found.fetchone()[0])

    def forget_deletions(self) -> int:
        """Remove all tombstones; indexes that have not seen them start anew. Gives how many."""
        with self._lock, self._connection() as connection:
            connection.execute(
                "UPDATE partitions SET purged_seq = max(purged_seq, coalesce((SELECT max(seq) FROM "
                "documents d WHERE d.partition = partitions.partition AND d.body IS NULL), 0))"
            )
            return connection.execute("DELETE FROM documents WHERE body IS NULL").rowcount

    def positions(self) -> Mapping[int, Position]:
        query = "SELECT partition, high_seq, json_extract(failover_log, '$[0][0]') FROM partitions"
        with closing(self._connection().execute(query)) as found:
            return {p: Position(seq, bytes.fromhex(uuid)) for p, seq, uuid in found}

    def failover_log(self, partition: int) -> FailoverLog:
        return self._log(partition)[0]

    def snapshot(self, partition: int, since: int, log: FailoverLog) -> Stream:
        now, purged = self._log(partition)
        back_to = rollback_point(since, log, now)
        if back_to < since:
            raise RollbackError(partition, back_to)
        if 0 < since < purged:
            raise RollbackError(partition, 0)
        return Stream(self.positions()[partition].seq, now, self._changes(partition, since))

    def _changes(self, partition: int, since: int) -> Iterator[Sequence[Change]]:
        query = (
            "SELECT partition, seq, id, body FROM documents WHERE partition = ? AND seq > ? "
            f"{'' if since else 'AND body IS NOT NULL '}ORDER BY seq"
        )
        with closing(self._connection().execute(query, (partition, since))) as found:
            count = FIRST_READ
            while rows := found.fetchmany(count):
                changes = Changes(*zip(*rows, strict=True))
                count = min(max(READ_SIZE * len(rows) // max(changes.size, 1), 1), MOST_READ)
                yield changes

    def close(self) -> None:
        """Close the connections of all threads."""
        with self._lock:
            for connection in self._connections:
                connection.close()
            self._connections = []
            self._local = threading.local()

    def _log(self, partition: int) -> tuple[FailoverLog, int]:
        with closing(
            self._connection().execute(
                "SELECT failover_log, purged_seq FROM partitions WHERE partition = ?", (partition,)
            )
        ) as found:
            text, purged = found.fetchone()
        log = tuple((bytes.fromhex(uuid), int(seq)) for uuid, seq in json.loads(text))
        return log, int(purged)

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = sqlite3.connect(self._path, timeout=60, check_same_thread=False)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            self._local.connection = connection
            self._connections.append(connection)
        return connection

"""The documents of one node: copies of some partitions, in SQLite, which follow the active ones of other nodes.

Changes are kept with their sequence numbers, so that a copy can go back to where a failover left history.
Which copies take writes is not kept: after a start none does until the manager says so.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from stagewright.impl.view_engine.documents.changes import (
    Change,
    Position,
    RollbackError,
    Stream,
    rollback_point,
)
from stagewright.impl.view_engine.file.header import FailoverLog

_SCHEMA = """
CREATE TABLE IF NOT EXISTS copies (partition INTEGER PRIMARY KEY, log TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS changes (
    partition INTEGER NOT NULL, seq INTEGER NOT NULL, id BLOB NOT NULL, body BLOB,
    PRIMARY KEY (partition, seq)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_id ON changes (partition, id, seq);
"""
_NEWEST = """
SELECT partition, seq, id, body FROM changes c WHERE partition = ? AND seq > ? AND seq =
    (SELECT max(seq) FROM changes d WHERE d.partition = c.partition AND d.id = c.id) ORDER BY seq
"""
READ_SIZE = 500


class Sent(NamedTuple):
    """What a copy gets: go back to `back_to`, then append; the log is the active copy's."""

    back_to: int
    changes: Sequence[tuple[int, bytes, bytes | None]]
    log: FailoverLog


class NodeDocuments:
    """The source of a node's indexes. Any thread may call it; what it acknowledged survives a crash."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.RLock()
        self._sql = sqlite3.connect(path, check_same_thread=False)
        self._sql.execute("PRAGMA journal_mode = WAL")
        self._sql.execute("PRAGMA synchronous = FULL")
        self._sql.executescript(_SCHEMA)
        self._logs: dict[int, FailoverLog] = {}
        self._seqs: dict[int, int] = {}
        for partition, log in self._sql.execute("SELECT partition, log FROM copies"):
            self._logs[partition] = _parsed(log)
            self._seqs[partition] = self._last(partition)
        self._active: set[int] = set()

    # -- what the manager wants ----------------------------------------------------------------------------

    def hold(self, partitions: Iterable[int], active: Iterable[int], anew: Iterable[int]) -> None:
        """Have copies of these, no others. The active ones take writes; of `anew` a new history begins."""
        wanted, writing, begin = {*partitions}, {*active}, {*anew}
        with self._lock, self._sql:
            for partition in self._logs.keys() - wanted:
                self._sql.execute("DELETE FROM copies WHERE partition = ?", (partition,))
                self._sql.execute("DELETE FROM changes WHERE partition = ?", (partition,))
                del self._logs[partition], self._seqs[partition]
            for partition in wanted - self._logs.keys():
                self._keep(partition, ())
                self._seqs[partition] = 0
            for partition in writing - self._active:
                log = self._logs[partition]
                if not log or partition in begin:
                    self._keep(partition, ((os.urandom(8), self._seqs[partition]), *log))
            self._active = writing

    def takes_writes(self, partition: int) -> bool:
        """Whether the active copy is here."""
        return partition in self._active

    def write(self, partition: int, doc_id: bytes, body: bytes | None) -> Position | None:
        """Where the change is, once it is durable; None if writes are taken elsewhere."""
        with self._lock, self._sql:
            if partition not in self._active:
                return None
            seq = self._seqs[partition] + 1
            self._sql.execute(
                "INSERT INTO changes VALUES (?, ?, ?, ?)", (partition, seq, doc_id, body)
            )
            self._seqs[partition] = seq
            return Position(seq, self._logs[partition][0][0])

    # -- copies --------------------------------------------------------------------------------------------

    def send(self, partition: int, since: int, log: FailoverLog) -> Sent | None:
        """What a copy at `since` that knows a history lacks; None if there is nothing to copy here."""
        with self._lock:
            mine = self._logs.get(partition, ())
            if not mine:
                return None
            back_to = min(rollback_point(since, log, mine), since, self._seqs[partition])
            query = "SELECT seq, id, body FROM changes WHERE partition = ? AND seq > ? ORDER BY seq"
            return Sent(back_to, self._sql.execute(query, (partition, back_to)).fetchall(), mine)

    def receive(self, partition: int, since: int, log: FailoverLog, sent: Sent) -> None:
        """Take over what was sent for this state of the copy; if it has another one by now, nothing."""
        with self._lock, self._sql:
            now = self._logs.get(partition), self._seqs.get(partition)
            if partition in self._active or now != (log, since):
                return
            self._sql.execute(
                "DELETE FROM changes WHERE partition = ? AND seq > ?", (partition, sent.back_to)
            )
            self._sql.executemany(
                "INSERT INTO changes VALUES (?, ?, ?, ?)",
                [(partition, *change) for change in sent.changes],
            )
            self._keep(partition, sent.log)
            self._seqs[partition] = sent.changes[-1][0] if sent.changes else sent.back_to

    def states(self) -> Mapping[int, tuple[int, FailoverLog]]:
        """Up to where each copy is, and its history."""
        with self._lock:
            return {p: (self._seqs[p], log) for p, log in self._logs.items()}

    # -- as the source of indexes --------------------------------------------------------------------------

    def positions(self) -> Mapping[int, Position]:
        with self._lock:
            return {p: Position(self._seqs[p], log[0][0]) for p, log in self._logs.items() if log}

    def failover_log(self, partition: int) -> FailoverLog:
        return self._logs.get(partition, ())

    def snapshot(self, partition: int, since: int, log: FailoverLog) -> Stream:
        with self._lock:
            now = self._logs.get(partition)
            if now is None:
                raise RollbackError(partition, 0)
            end, back_to = self._seqs[partition], rollback_point(since, log, now)
            if back_to < since or since > end:
                raise RollbackError(partition, min(back_to, end))
            changes = [*map(Change._make, self._sql.execute(_NEWEST, (partition, since)))]
        return Stream(end, now, _parts(changes))

    def close(self) -> None:
        """What was acknowledged stays."""
        with self._lock:
            self._sql.close()

    def _keep(self, partition: int, log: FailoverLog) -> None:
        text = json.dumps([[uuid.hex(), seq] for uuid, seq in log])
        self._sql.execute("INSERT OR REPLACE INTO copies VALUES (?, ?)", (partition, text))
        self._logs[partition] = log

    def _last(self, partition: int) -> int:
        query = "SELECT coalesce(max(seq), 0) FROM changes WHERE partition = ?"
        return int(self._sql.execute(query, (partition,)).fetchone()[0])


def _parts(changes: Sequence[Change]) -> Iterator[Sequence[Change]]:
    for first in range(0, len(changes), READ_SIZE):
        yield changes[first : first + READ_SIZE]


def _parsed(log: str) -> FailoverLog:
    return tuple((bytes.fromhex(uuid), int(seq)) for uuid, seq in json.loads(log))

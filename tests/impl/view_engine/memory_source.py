"""A document store in memory that keeps all history, can fail over, and tells an oracle everything."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from stagewright.impl.view_engine.documents.changes import (
    Change,
    Position,
    RollbackError,
    Stream,
    rollback_point,
)
from stagewright.impl.view_engine.documents.store import partition_of
from stagewright.impl.view_engine.file.header import FailoverLog


class MemorySource:
    """Partitions as lists of changes."""

    def __init__(self, partitions: int) -> None:
        self.history: dict[int, list[Change]] = {p: [] for p in range(partitions)}
        self._logs: dict[int, FailoverLog] = {p: ((_uuid(p, 0), 0),) for p in range(partitions)}
        self.streams = 0

    def put(self, doc_id: str, document: object) -> None:
        """Write a document; None deletes it."""
        encoded = doc_id.encode()
        partition = partition_of(encoded, len(self.history))
        body = None if document is None else json.dumps(document).encode()
        changes = self.history[partition]
        seq = changes[-1].seq + 1 if changes else 1
        changes.append(Change(partition, seq, encoded, body))

    def fail_over(self, partition: int, seq: int) -> None:
        """A replica takes over that had only the changes up to `seq`."""
        kept = [change for change in self.history[partition] if change.seq <= seq]
        self.history[partition] = kept
        log = self._logs[partition]
        self._logs[partition] = ((_uuid(partition, len(log)), kept[-1].seq if kept else 0), *log)

    def documents(self, seqs: Mapping[int, int]) -> dict[str, Any]:
        """All documents of these partitions as they were at these sequence numbers."""
        found: dict[str, Any] = {}
        for partition, seq in seqs.items():
            for change in self.history[partition]:
                if change.seq <= seq:
                    name = change.doc_id.decode()
                    found.pop(name, None)
                    if change.body is not None:
                        found[name] = json.loads(change.body)
        return found

    def positions(self) -> Mapping[int, Position]:
        return {
            partition: Position(changes[-1].seq if changes else 0, self._logs[partition][0][0])
            for partition, changes in self.history.items()
        }

    def failover_log(self, partition: int) -> FailoverLog:
        return self._logs[partition]

    def snapshot(self, partition: int, since: int, log: FailoverLog) -> Stream:
        self.streams += 1
        back_to = rollback_point(since, log, self._logs[partition])
        if back_to < since:
            raise RollbackError(partition, back_to)
        changes = [*self.history[partition]]  # of one moment: others may write
        newest = {change.doc_id: change for change in changes}
        parts = ([c] for c in changes if c.seq > since and newest[c.doc_id] is c)
        return Stream(changes[-1].seq if changes else 0, self._logs[partition], parts)


def _uuid(partition: int, generation: int) -> bytes:
    return bytes([partition, generation]) + b"\0" * 6

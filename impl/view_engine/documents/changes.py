"""What the engine needs of a document store: streams of changes by partition, which can roll back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from stagewright.impl.view_engine.file.header import FailoverLog


class Change(NamedTuple):
    """The newest version of a document: its body as JSON text, or None if it was deleted."""

    partition: int
    seq: int
    doc_id: bytes
    body: bytes | None


class Position(NamedTuple):
    """The last sequence number of a partition, and the history (its newest uuid) in which it is."""

    seq: int
    uuid: bytes


class RollbackError(Exception):
    """What a reader has of a partition after `seq` is not in the store's history: it must go back."""

    def __init__(self, partition: int, seq: int) -> None:
        super().__init__(f"partition {partition} has to go back to sequence number {seq}")
        self.partition = partition
        self.seq = seq


class Stream(NamedTuple):
    """Changes in parts of any size, up to `end` or to the last of them, in the history that `log` names."""

    end: int
    log: FailoverLog
    parts: Iterator[Sequence[Change]]


class Source(Protocol):
    """A document store. May be called by several threads."""

    def positions(self) -> Mapping[int, Position]:
        """Where each partition that the store has stands now."""
        ...

    def failover_log(self, partition: int) -> FailoverLog:
        """Which histories the partition had: the uuid and first sequence number of each, newest first."""
        ...

    def snapshot(self, partition: int, since: int, log: FailoverLog) -> Stream:
        """The changes after `since`, each document once, in the order of their sequence numbers.

        Only when all have come, the reader has what the partition had at one moment: a document that
        changed twice comes with its second change. What the store said of the partition before, it may
        not say any more: position and history are those of the stream.

        `log` is the failover log that the reader saw last, empty if none. Raises RollbackError where
        the reader's history is not the store's, or where deletions after `since` were forgotten.
        """
        ...


def rollback_point(since: int, known: FailoverLog, now: FailoverLog) -> int:
    """How far a reader at `since` that knows a history shares it with the store: `since` if wholly."""
    if not since or not known:
        return since
    uuids = [uuid for uuid, _ in now]
    for left, (uuid, _) in enumerate(known):
        if uuid in uuids:  # both had this history, until each went on to newer ones
            newer = [start for _, start in (*known[:left], *now[: uuids.index(uuid)])]
            return min(since, *newer) if newer else since
    return 0

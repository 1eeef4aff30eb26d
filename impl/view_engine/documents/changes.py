"""What the engine needs of a document store: streams of changes by partition, which can roll back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple, Protocol, overload

import numpy as np
from numpy.typing import NDArray

from stagewright.impl.view_engine.file.header import FailoverLog

Array = NDArray[Any]


class Change(NamedTuple):
    """The newest version of a document: its body as JSON text, or None if it was deleted."""

    partition: int
    seq: int
    doc_id: bytes
    body: bytes | None


class Joined(NamedTuple):
    """Several texts one after the other: where each starts, and where the last one ends."""

    data: Array
    at: Array

    @classmethod
    def of(cls, parts: Sequence[bytes]) -> Joined:
        at = np.zeros(len(parts) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)), out=at[1:])
        return cls(np.frombuffer(b"".join(parts), np.uint8), at)

    @property
    def is_text(self) -> bool:
        """Whether all of it is UTF-8."""
        data = self.data.tobytes()
        if not data.isascii():
            try:
                data.decode()
            except UnicodeDecodeError:
                return False
        return True


class Changes(Sequence[Change]):
    """Changes in columns: compiled loops take them as they are, others get one `Change` after the other."""

    def __init__(
        self,
        partitions: Sequence[int],
        seqs: Sequence[int],
        ids: Sequence[bytes],
        bodies: Sequence[bytes | None],
    ) -> None:
        """Columns of the same length."""
        self.partitions = partitions
        self.seqs = seqs
        self.ids = ids
        self.bodies = bodies

    @classmethod
    def of(cls, changes: Sequence[Change]) -> Changes:
        """In columns, if they are not yet."""
        if isinstance(changes, Changes):
            return changes
        return cls(*zip(*changes, strict=True)) if changes else cls((), (), (), ())

    @classmethod
    def joined(cls, parts: Sequence[Changes]) -> Changes:
        """One after the other."""
        if len(parts) == 1:
            return parts[0]
        columns = ([*chain.from_iterable(c)] for c in zip(*(p.columns for p in parts), strict=True))
        return cls(*columns) if parts else cls((), (), (), ())

    @property
    def columns(self) -> tuple[Sequence[Any], ...]:
        """Partitions, sequence numbers, ids and bodies."""
        return self.partitions, self.seqs, self.ids, self.bodies

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[Change]:
        return map(Change, *self.columns)

    @overload
    def __getitem__(self, at: int) -> Change: ...

    @overload
    def __getitem__(self, at: slice) -> Changes: ...

    def __getitem__(self, at: int | slice) -> Change | Changes:
        if isinstance(at, slice):
            return Changes(*(column[at] for column in self.columns))
        return Change(*(column[at] for column in self.columns))

    @cached_property
    def id_texts(self) -> Joined:
        """The ids."""
        return Joined.of(self.ids)

    @cached_property
    def body_texts(self) -> Joined:
        """The bodies, of deleted documents none."""
        return Joined.of([body or b"" for body in self.bodies])

    @property
    def size(self) -> int:
        """The bytes of all ids and bodies."""
        return len(self.id_texts.data) + len(self.body_texts.data)


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

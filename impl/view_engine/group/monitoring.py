"""Waits for one partition of an index: until it has what was written, or is removed meanwhile."""

from __future__ import annotations

from enum import Enum, auto
from typing import Protocol

from stagewright.impl.view_engine.documents.changes import Position, Source
from stagewright.impl.view_engine.file.header import IndexHeader
from stagewright.impl.view_engine.group.current import GroupClosedError, IndexNotReadyError
from stagewright.impl.view_engine.group.workers import Workers
from stagewright.impl.view_engine.index.progress import has_reached, still_wanted
from stagewright.impl.view_engine.scheduling import Condition


class Monitored(Protocol):
    """What a monitor needs of a group."""

    @property
    def header(self) -> IndexHeader: ...

    @property
    def lock(self) -> Condition: ...

    @property
    def failure(self) -> BaseException | None: ...

    workers: Workers

    def trigger(self) -> None: ...


class MonitorEnd(Enum):
    """Why a monitor ended."""

    updated = auto()  # the index has what the source had of the partition when monitoring began
    removed = auto()  # the partition was marked for cleanup


class Monitor:
    """One partition, from now on; as the manager monitors the partitions that it moves."""

    def __init__(self, group: Monitored, source: Source, partition: int) -> None:
        """Raises ValueError for a partition that the index does not have, nor gets when it is clean."""
        self._group = group
        self._source = source
        self.partition = partition
        self._wanted: dict[int, Position] = {}
        with group.lock:
            if not _is_there(group.header, partition):
                raise ValueError(f"the index has no partition {partition}: nothing to monitor")
            if (at := source.positions().get(partition)) is not None:
                self._wanted[partition] = at

    def end(self) -> MonitorEnd | None:
        """How it ended; None if it has not. Starts nothing."""
        header = self._group.header
        if not _is_there(header, self.partition):
            return MonitorEnd.removed
        self._wanted = {**still_wanted(self._wanted, self._source.positions())}
        indexed = self.partition in header.seqs
        reached = indexed and has_reached(header, self._wanted, passive=True)
        return MonitorEnd.updated if reached else None

    def wait(self, timeout: float = 3600.0) -> MonitorEnd:
        """Return when it ends; starts the updater. A partition that is unindexable does not move on.

        Raises IndexNotReadyError after `timeout` seconds without news or where the update fails, and
        GroupClosedError.
        """
        group = self._group
        with group.lock:
            while (end := self.end()) is None:
                if group.workers.closed:
                    raise GroupClosedError
                group.trigger()
                if not group.lock.wait(timeout):
                    raise IndexNotReadyError(
                        f"partition {self.partition} is not current after {timeout:g} seconds"
                    )
                if (failure := group.failure) is not None:
                    raise IndexNotReadyError(
                        f"the update of the index failed: {failure}"
                    ) from failure
            return end


def _is_there(header: IndexHeader, partition: int) -> bool:
    """Whether the index has a partition, or will once it is clean."""
    waiting = (*header.pending.active, *header.pending.passive)
    return bool((header.active | header.passive) >> partition & 1) or partition in waiting

"""The group server of one design document: owns its index file, and who may change it.

Readers get snapshots, which stay readable whatever happens to the file. One updater runs at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from stagewright.impl.view_engine.design.design import DesignDocument
from stagewright.impl.view_engine.design.mapping import MapError
from stagewright.impl.view_engine.documents.changes import Position, Source
from stagewright.impl.view_engine.file.header import IndexHeader
from stagewright.impl.view_engine.group.current import (
    CurrentIndex,
    GroupClosedError,
    GroupSnapshot,
    IndexNotReadyError,
)
from stagewright.impl.view_engine.group.monitoring import Monitor
from stagewright.impl.view_engine.group.partitions import (
    MARK_INDEXABLE,
    MARK_UNINDEXABLE,
    SET_ACTIVE,
    SET_CLEANUP,
    SET_PASSIVE,
    Request,
    request,
    settle,
)
from stagewright.impl.view_engine.group.updating import Updating
from stagewright.impl.view_engine.group.workers import Workers
from stagewright.impl.view_engine.index.cleaner import Cleaner
from stagewright.impl.view_engine.index.compactor import Compaction
from stagewright.impl.view_engine.index.progress import changes_left, has_reached, still_wanted
from stagewright.impl.view_engine.index.updater import UpdaterLimits
from stagewright.impl.view_engine.log.log import NO_LOG, GroupLog, ServerLog
from stagewright.impl.view_engine.scheduling import THREADS, Condition, Scheduler

Kind = Literal["main", "replica"]

LONGEST_WAIT = 3600.0  # seconds that a query waits for its index


class Group:
    """The index of one signature. All methods may be called from any thread."""

    def __init__(
        self,
        folder: Path,
        design: DesignDocument,
        source: Source,
        partitions: int,
        *,
        limits: UpdaterLimits | None = None,
        active: Iterable[int] | None = None,
        kind: Kind = "main",
        scheduler: Scheduler = THREADS,
        log: ServerLog = NO_LOG,
    ) -> None:
        """Open the index or create it, with all partitions active or only those that `active` names."""
        self.kind = kind
        self.design = design
        self.folder = folder
        self._source = source
        self.index = CurrentIndex(folder, self.kind, design, partitions, active)
        self.workers = Workers(scheduler)
        self._changed = self.workers.changed
        self.log = GroupLog(log, kind, design.name, design.signature)
        self._updating = Updating(
            self.index, self.workers, design, source, folder, self.checkpoint, limits, self.log
        )
        self.log.began(self.header, len(design.views), new=self.index.is_new)

    @property
    def header(self) -> IndexHeader:
        """The last header that was committed."""
        return self.index.header

    @property
    def lock(self) -> Condition:
        """Held, neither header nor file change; notified when they have."""
        return self._changed

    @property
    def number(self) -> int:
        """How many files the index had, this one included."""
        return self.index.number

    @contextmanager
    def reading(
        self, *, current: bool = False, timeout: float = LONGEST_WAIT
    ) -> Iterator[GroupSnapshot]:
        """The snapshot that is there; its file stays open meanwhile.

        With `current` one in which all active partitions have what the source has now: also those that
        become active while this waits. Raises as `wait_until_current`.
        """
        wanted = self._source.positions() if current else {}
        with self._changed:
            wanted = self._wait_for(wanted, timeout, passive=False)
            snapshot = self.held()
            self.log.trace.answered(snapshot.header, wanted, once=True)
        try:
            yield snapshot
        finally:
            snapshot.file.close()

    def is_current(self, wanted: Mapping[int, Position]) -> bool:
        """Whether all active partitions that are indexed have what is wanted."""
        return has_reached(self.header, wanted)

    def held(self) -> GroupSnapshot:
        """With the lock held: the snapshot that is there; whoever gets it closes its file."""
        if self.workers.closed:
            raise GroupClosedError
        file = self.index.file
        file.hold()
        return GroupSnapshot(file, self.header, self.design)

    # -- updates -------------------------------------------------------------------------------------------

    def wait_until_current(self, timeout: float = LONGEST_WAIT, *, passive: bool = False) -> None:
        """Return when the active partitions are indexed up to what the source has now.

        With `passive` those, too, as the manager waits for before it moves a partition.

        Starts the updater. Raises IndexNotReadyError where that failed or takes too long.
        """
        wanted = self._source.positions()
        with self._changed:
            self._wait_for(wanted, timeout, passive=passive)

    def _wait_for(
        self, wanted: Mapping[int, Position], timeout: float, *, passive: bool
    ) -> Mapping[int, Position]:
        """Gives what was wanted in the end: of a history that was left meanwhile, what there is now."""
        self._updating.failure = None
        while not has_reached(self.header, wanted, passive=passive):
            if self.workers.closed:
                raise GroupClosedError
            if (failure := self.failure) is not None:
                raise IndexNotReadyError(f"the update of the index failed: {failure}") from failure
            self._updating.start()
            if not self._changed.wait(timeout):
                raise IndexNotReadyError(f"the index is not current after {timeout:g} seconds")
            wanted = still_wanted(wanted, self._source.positions())
        return wanted

    def monitor(self, partition: int) -> Monitor:
        """Wait for one partition, active or passive. Raises ValueError for one that the index does not have."""
        return Monitor(self, self._source, partition)

    @property
    def failure(self) -> BaseException | None:
        """What the last update failed with, if it did."""
        return self._updating.failure

    def trigger(self) -> None:
        """Start the updater if it does not run and there is something to do; returns at once."""
        with self._changed:
            if not self.workers.closed:
                self._updating.start_if_behind()

    def pending_changes(self) -> int:
        """How many changes of the source the index does not have yet."""
        return changes_left(self.header, self._source.positions())

    def stop_updater(self) -> None:
        """Stop the updater at its next step and wait for it."""
        with self._changed:
            self.workers.stop_updater()

    @property
    def map_errors(self) -> list[MapError]:
        """The last documents on which a map function failed."""
        return [*self._updating.map_errors]

    @property
    def map_error_count(self) -> int:
        """On how many documents map functions failed since the group was opened."""
        return self._updating.map_error_count

    # -- partition states --------------------------------------------------------------------------------

    def set_partition_states(
        self,
        active: Iterable[int] = (),
        passive: Iterable[int] = (),
        cleanup: Iterable[int] = (),
    ) -> None:
        """Make partitions active, passive, or remove them; others stay what they are.

        Those still in cleanup become active or passive once they are clean. Raises PartitionStateError,
        and changes nothing, where the definition does not allow a request.
        """
        wanted = ((SET_ACTIVE, active), (SET_PASSIVE, passive), (SET_CLEANUP, cleanup))
        self._request([(action, [*partitions]) for action, partitions in wanted])

    def mark_unindexable(self, partitions: Iterable[int]) -> None:
        """Stop indexing them; queries go on with what is indexed."""
        self._request([(MARK_UNINDEXABLE, [*partitions])])

    def mark_indexable(self, partitions: Iterable[int]) -> None:
        """Go on indexing them where it stopped."""
        self._request([(MARK_INDEXABLE, [*partitions])])

    def _request(self, wanted: Sequence[tuple[Request, Sequence[int]]]) -> None:
        def requested(header: IndexHeader) -> IndexHeader:
            for action, partitions in wanted:
                header = request(header, action, partitions)
            return header

        self.change(requested)

    def change(self, altered: Callable[[IndexHeader], IndexHeader]) -> None:
        """Commit what `altered` makes of the header while no worker runs; nothing if that is the same.

        It is called once to see whether it changes anything, and again when the workers have stopped.
        """
        with self._changed:
            if settle(altered(self.header)) == self.header:
                return
            running = self.workers.updater is not None
            with self.workers.alone():
                before, requested = self.header, altered(self.header)
                self.index.snapshot = self.index.file.commit(settle(requested))
                self.log.trace.committed(self.header)
                self.log.requested(before, requested)
                self.log.worked(requested, self.header)
            if running:
                self._updating.start()

    # -- cleanup and compaction --------------------------------------------------------------------------

    def clean_up(self) -> int:
        """Remove the rows of partitions in cleanup; gives how many values went.

        Works alone: does nothing while updater or compactor run, and ends when one of them starts.
        """
        with self._changed:
            if not self.workers.may_clean() or not self.header.cleanup:
                return 0
            cleaner = Cleaner(self.index.file, self.design.shapes, self.checkpoint)
            self.workers.cleaner = cleaner
            self.log.cleaner_started()
        try:
            cleaner.run(self.header)
        finally:
            with self._changed:
                self.workers.cleaner = None
                if self.header.cleanup:
                    self.log.cleaner_stopped(self.header, cleaner.work.values_purged)
                self.log.trace.did("end_cleanup")
                self._changed.notify_all()
        return cleaner.work.values_purged

    def compact(self) -> Compaction:
        """Rewrite the index into a new file while queries and the updater go on, and switch to it.

        Raises CompactionStoppedError where a change of partition states or the end of the index stops
        it, or another compaction runs.
        """
        return self._updating.compacting.run()

    def file_size(self) -> int:
        """The bytes of the index file."""
        return self.index.size()

    def fragmentation(self) -> float:
        """The share of the file that belongs to none of the current trees."""
        return self.index.fragmentation()

    # -- what workers hand over ----------------------------------------------------------------------------

    def checkpoint(self, header: IndexHeader) -> IndexHeader:
        """Commit a header of a worker, and let queries see it; gives it as it was committed."""
        header = settle(header)
        snapshot = self.index.file.commit(header)
        with self._changed:
            before, self.index.snapshot = self.header, snapshot
            if (cleaner := self.workers.cleaner) is not None:
                self.log.cleaned(before, header, cleaner.work.values_purged)
            self.log.trace.committed(header)
            self.log.worked(before, header)
            self._updating.compacting.after_checkpoint()
            self._changed.notify_all()
        return header

    def close(self) -> None:
        """Stop the updater and close the file; queries that run end on their snapshots."""
        with self._changed:
            self.workers.close()
            self.log.ended()
        self.index.file.close()

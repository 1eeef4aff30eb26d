"""The group server of one design document: owns its index file, and who may change it.

Readers get snapshots, which stay readable whatever happens to the file. One updater runs at a time.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from stagewright.impl.view_engine.design.design import DesignDocument
from stagewright.impl.view_engine.design.mapping import MapError
from stagewright.impl.view_engine.documents.changes import (
    Position,
    RollbackError,
    Source,
    rollback_point,
)
from stagewright.impl.view_engine.file.header import FailoverLog, IndexHeader
from stagewright.impl.view_engine.file.index_file import IndexFile
from stagewright.impl.view_engine.file.masks import mask_of
from stagewright.impl.view_engine.index.cleaner import Cleaner
from stagewright.impl.view_engine.index.compactor import (
    Compaction,
    CompactionStoppedError,
    Compactor,
)
from stagewright.impl.view_engine.index.files import create, index_path, open_current
from stagewright.impl.view_engine.index.partitions import (
    MARK_INDEXABLE,
    MARK_UNINDEXABLE,
    SET_ACTIVE,
    SET_CLEANUP,
    SET_PASSIVE,
    Request,
    request,
    settle,
)
from stagewright.impl.view_engine.index.updater import Updater, UpdaterLimits, UpdateStoppedError

MAP_ERRORS_KEPT = 100
CATCH_UP_ROUNDS = (
    3  # then the updater is stopped for the rest: a compaction ends, however busy it is
)
LONGEST_WAIT = 3600.0  # seconds that a query waits for its index


class IndexNotReadyError(Exception):
    """A query that wanted a current index did not get one; the text says why."""


class GroupClosedError(IndexNotReadyError):
    """The group is no longer served: its design document was changed or deleted."""

    def __init__(self) -> None:
        super().__init__("the index was closed")


@dataclass(frozen=True)
class GroupSnapshot:
    """What a query reads: a file, kept open, and one of its snapshots."""

    file: IndexFile
    header: IndexHeader
    design: DesignDocument


class Group:
    """The index of one signature. All methods may be called from any thread."""

    kind = "main"

    def __init__(
        self,
        folder: Path,
        design: DesignDocument,
        source: Source,
        partitions: int,
        *,
        limits: UpdaterLimits | None = None,
        active: Iterable[int] | None = None,
    ) -> None:
        """Open the index or create it, with all partitions active or only those that `active` names."""
        self.design = design
        self.folder = folder
        self._source = source
        self._limits = limits
        self._changed = threading.Condition()
        self._updater: Updater | None = None
        self._cleaner: Cleaner | None = None
        self._compactor: Compactor | None = None
        self._attached = False  # the compactor has its snapshot, and gets all that follows
        self._requests = 0  # that wait until nothing else changes the index
        self._failure: BaseException | None = None
        self._closed = False
        self.map_errors: deque[MapError] = deque(maxlen=MAP_ERRORS_KEPT)
        self.map_error_count = 0
        found = open_current(folder, self.kind, design.signature)
        if found is None:
            self.number = 1
            self._file = create(folder, self.kind, design.signature, 1)
            self._snapshot = self._file.commit(_new_header(design, partitions, active))
        else:
            self._file, self.number, self._snapshot = found

    @property
    def header(self) -> IndexHeader:
        """The last header that was committed."""
        return self._snapshot.header

    @contextmanager
    def reading(self) -> Iterator[GroupSnapshot]:
        """The current snapshot; its file stays open meanwhile."""
        with self._changed:
            if self._closed:
                raise GroupClosedError
            file, header = self._file, self._snapshot.header
            file.hold()
        try:
            yield GroupSnapshot(file, header, self.design)
        finally:
            file.close()

    def wait_until_current(self, timeout: float = LONGEST_WAIT, *, passive: bool = False) -> None:
        """Return when the active partitions are indexed up to what the source has now.

        With `passive` those, too, as the manager waits for before it moves a partition.

        Starts the updater. Raises IndexNotReadyError where that failed or takes too long.
        """
        wanted = self._source.positions()
        with self._changed:
            self._failure = None
            while not self._has(wanted, passive=passive):
                if self._closed:
                    raise GroupClosedError
                if (failure := self._failed()) is not None:
                    raise IndexNotReadyError(
                        f"the update of the index failed: {failure}"
                    ) from failure
                self._start()
                if not self._changed.wait(timeout):
                    raise IndexNotReadyError(f"the index is not current after {timeout:g} seconds")

    def trigger(self) -> None:
        """Start the updater if it does not run; returns at once."""
        with self._changed:
            if not self._closed and not self._has(self._source.positions(), passive=True):
                self._start()

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
        with self._changed:
            if self._requested(wanted) == self.header:
                return
            running = self._updater is not None
            with self._alone():
                self._snapshot = self._file.commit(self._requested(wanted))
            if running:
                self._start()

    def _requested(self, wanted: Sequence[tuple[Request, Sequence[int]]]) -> IndexHeader:
        header = self.header
        for action, partitions in wanted:
            header = request(header, action, partitions)
        return settle(header)

    @contextmanager
    def _alone(self, *, compactor: bool = True) -> Iterator[None]:
        """With the lock held: all workers are stopped, and none starts until the end."""
        self._requests += 1
        try:
            while True:
                workers = [self._updater, self._cleaner, self._compactor if compactor else None]
                running = [worker for worker in workers if worker is not None]
                if not running:
                    break
                for worker in running:
                    worker.stop()
                self._changed.wait()
            if self._closed:
                raise GroupClosedError
            yield
        finally:
            self._requests -= 1
            self._changed.notify_all()

    # -- cleanup and compaction --------------------------------------------------------------------------

    def clean_up(self) -> int:
        """Remove the rows of partitions in cleanup; gives how many values went.

        Works alone: does nothing while updater or compactor run, and ends when one of them starts.
        """
        with self._changed:
            busy = self._updater or self._compactor or self._cleaner or self._requests
            if busy or self._closed or not self.header.cleanup:
                return 0
            cleaner = Cleaner(self._file, self.design.shapes, self._checkpoint)
            self._cleaner = cleaner
        try:
            cleaner.run(self.header)
        finally:
            with self._changed:
                self._cleaner = None
                self._changed.notify_all()
        return cleaner.work.values_purged

    def compact(self) -> Compaction:
        """Rewrite the index into a new file while queries and the updater go on, and switch to it.

        Raises CompactionStoppedError where a change of partition states or the end of the index stops
        it, or another compaction runs.
        """
        compactor = self._begin_compaction()
        try:
            compactor.copy(self._compacted.header)
            for _ in range(CATCH_UP_ROUNDS):
                if not compactor.catch_up():
                    break
            return self._switch(compactor)
        finally:
            with self._changed:
                if self._compactor is compactor:
                    self._end_compaction(compactor)

    def _begin_compaction(self) -> Compactor:
        """The compactor has the snapshot after which it gets all that the updater changes."""
        with self._changed:
            if self._compactor is not None:
                raise CompactionStoppedError("a compaction runs already")
            if self._is_about_to_change():
                raise CompactionStoppedError("the index is about to change")
            if self._cleaner is not None:
                self._cleaner.stop()
            path = index_path(self.folder, self.kind, self.design.signature, self.number + 1)
            compactor = Compactor(self._file, self.design.shapes, path)
            self._compactor = compactor
            self._attached = False
            while (self._updater or self._cleaner) and not self._attached:
                if self._is_about_to_change():
                    self._end_compaction(compactor)
                    raise CompactionStoppedError("the index is about to change")
                self._changed.wait()
            if not self._attached:
                self._attach()
            return compactor

    def _is_about_to_change(self) -> bool:
        return self._closed or self._requests > 0

    def _end_compaction(self, compactor: Compactor) -> None:
        """With the lock held: what there is of the new file is of no use."""
        compactor.give_up()
        self._compactor = None
        if self._updater is not None:
            self._updater.record = None
        self._changed.notify_all()

    def _attach(self) -> None:
        """With the lock held, where no change of the updater is half done."""
        assert self._compactor is not None
        self._attached = True
        self._compacted = self._snapshot
        if self._updater is not None:
            self._updater.record = self._compactor.deltas.record

    def _switch(self, compactor: Compactor) -> Compaction:
        """Stop the updater, apply the rest, and let the new file be the index."""
        with self._changed:
            with self._alone(compactor=False):
                compactor.catch_up()
                before, old = self.file_size(), self._file
                self._snapshot = compactor.finish(self.header)
                self._file = compactor.file
                self._compactor = None
                index_path(self.folder, self.kind, self.design.signature, self.number).unlink()
                self.number += 1
                old.close()
            if not self._has(self._source.positions(), passive=True):
                self._start()
            return Compaction(before, self.file_size(), compactor.batches)

    def file_size(self) -> int:
        """The bytes of the index file."""
        return self._file.disk.size()

    def fragmentation(self) -> float:
        """The share of the file that belongs to none of the current trees."""
        size = self.file_size()
        return max(size - self.header.tree_bytes, 0) / size if size else 0.0

    # -- the updater -------------------------------------------------------------------------------------

    def pending_changes(self) -> int:
        """How many changes of the source the index does not have yet."""
        now = self._source.positions()
        return sum(max(now[p].seq - s, 0) for p, s in self.header.seqs.items() if p in now)

    def close(self) -> None:
        """Stop the updater and close the file; queries that run end on their snapshots."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            for worker in (self._updater, self._cleaner, self._compactor):
                if worker is not None:
                    worker.stop()
            while self._updater or self._cleaner or self._compactor:
                self._changed.wait()
        self._file.close()

    def stop_updater(self) -> None:
        """Stop the updater at its next step and wait for it."""
        with self._changed:
            if self._updater is not None:
                self._updater.stop()
            while self._updater is not None:
                self._changed.wait()

    def _failed(self) -> BaseException | None:
        return self._failure

    def _has(self, wanted: Mapping[int, Position], *, passive: bool = False) -> bool:
        """Whether each active indexable partition is indexed up to what is wanted of it.

        Pointwise, and in the same history: a larger number in a history that was lost is not enough.
        """
        header = self._snapshot.header
        of = header.active | (header.passive if passive else 0)
        return all(
            seq >= wanted[partition].seq and _in_history(header, partition, wanted[partition].uuid)
            for partition, seq in header.seqs.items()
            if of >> partition & 1 and partition in wanted
        )

    def _start(self) -> None:
        if self._updater is not None or self._requests or self._closed:
            return
        if self._cleaner is not None:
            self._cleaner.stop()  # it wakes whoever waits for the updater
            return
        self._updater = Updater(
            self._file,
            self.design,
            self._source,
            self.folder,
            checkpoint=self._checkpoint,
            on_map_error=self._note_map_error,
            limits=self._limits,
        )
        if self._compactor is not None and self._attached:
            self._updater.record = self._compactor.deltas.record
        work = threading.Thread(target=self._update, args=(self._updater,), name="view-updater")
        work.daemon = True
        work.start()

    def _update(self, updater: Updater) -> None:
        failure: BaseException | None = None
        try:
            updater.run(self.header)
        except UpdateStoppedError:
            pass
        except RollbackError as error:
            failure = self._roll_back_safely(error)
        except BaseException as error:  # noqa: BLE001 - told to whoever waits
            failure = error
        with self._changed:
            self._failure = failure
            self._updater = None
            if self._compactor is not None:
                self._compactor.deltas.drop()
            self._changed.notify_all()

    def _roll_back_safely(self, rollback: RollbackError) -> BaseException | None:
        try:
            self._roll_back(rollback)
        except BaseException as error:  # noqa: BLE001 - told to whoever waits
            return error
        return None

    def _checkpoint(self, header: IndexHeader) -> IndexHeader:
        header = settle(header)
        snapshot = self._file.commit(header)
        with self._changed:
            self._snapshot = snapshot
            if self._compactor is not None:
                if self._attached:
                    self._compactor.deltas.publish()
                else:
                    self._attach()
            self._changed.notify_all()
        return header

    def _note_map_error(self, error: MapError) -> None:
        self.map_errors.append(error)
        self.map_error_count += 1

    def _roll_back(self, rollback: RollbackError) -> None:
        """Take up the newest snapshot in which the partition is old enough; else start it anew.

        Partitions keep the states that they have now; what the old snapshot has of others is cleaned up.
        """
        if self._compactor is not None:
            self._compactor.stop()  # what it copied is of a history that was lost
        now = self.header
        logs = {p: self._source.failover_log(p) for p in now.seqs}
        for snapshot in self._file.snapshots():
            old = snapshot.header
            enough = old.seqs.get(rollback.partition, rollback.seq + 1) <= rollback.seq
            if enough and not old.cleanup and _leads_back(old, now, logs):
                break
        else:
            old = _new_header(self.design, now.num_partitions, ())
        was = {**old.seqs, **old.unindexable_seqs}
        mine = now.active | now.passive
        extra = (old.active | old.passive) & ~mine
        self._checkpoint(
            replace(
                now,
                id_root=old.id_root,
                view_roots=old.view_roots,
                seqs={p: was.get(p, 0) for p in now.seqs},
                unindexable_seqs={p: was.get(p, 0) for p in now.unindexable_seqs},
                cleanup=now.cleanup | extra,
                partition_versions={
                    p: log for p, log in old.partition_versions.items() if mine >> p & 1
                },
            )
        )


def _leads_back(old: IndexHeader, now: IndexHeader, logs: Mapping[int, FailoverLog]) -> bool:
    """Whether no partition of an older snapshot is ahead of now, or in a history that was lost.

    Otherwise going back for one partition would bring back what another one had to leave.
    """
    return all(
        old.seqs.get(p, 0) <= seq
        and rollback_point(old.seqs.get(p, 0), old.partition_versions.get(p, ()), logs[p])
        == old.seqs.get(p, 0)
        for p, seq in now.seqs.items()
    )


def _in_history(header: IndexHeader, partition: int, uuid: bytes) -> bool:
    log = header.partition_versions.get(partition, ())
    return not log or log[0][0] == uuid


def _new_header(
    design: DesignDocument, partitions: int, active: Iterable[int] | None
) -> IndexHeader:
    present = sorted(range(partitions) if active is None else active)
    return IndexHeader(
        signature=design.signature,
        num_partitions=partitions,
        view_roots=(None,) * len(design.shapes),
        active=mask_of(present),
        seqs=dict.fromkeys(present, 0),
    )

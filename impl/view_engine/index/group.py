"""The group server of one design document: owns its index file, and who may change it.

Readers get snapshots, which stay readable whatever happens to the file. One updater runs at a time.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Mapping
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
from stagewright.impl.view_engine.file.header import IndexHeader
from stagewright.impl.view_engine.file.index_file import IndexFile
from stagewright.impl.view_engine.file.masks import mask_of
from stagewright.impl.view_engine.index.files import create, open_current
from stagewright.impl.view_engine.index.updater import Updater, UpdaterLimits, UpdateStoppedError

MAP_ERRORS_KEPT = 100
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
    ) -> None:
        """Open the index or create it, with all partitions active."""
        self.design = design
        self.folder = folder
        self._source = source
        self._limits = limits
        self._changed = threading.Condition()
        self._updater: Updater | None = None
        self._failure: BaseException | None = None
        self._closed = False
        self.map_errors: deque[MapError] = deque(maxlen=MAP_ERRORS_KEPT)
        self.map_error_count = 0
        found = open_current(folder, self.kind, design.signature)
        if found is None:
            self.number = 1
            self._file = create(folder, self.kind, design.signature, 1)
            self._snapshot = self._file.commit(_new_header(design, partitions))
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

    def wait_until_current(self, timeout: float = LONGEST_WAIT) -> None:
        """Return when the active partitions are indexed up to what the source has now.

        Starts the updater. Raises IndexNotReadyError where that failed or takes too long.
        """
        wanted = self._source.positions()
        with self._changed:
            self._failure = None
            while not self._has(wanted):
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

    def pending_changes(self) -> int:
        """How many changes of the source the index does not have yet."""
        now = self._source.positions()
        return sum(max(now[p].seq - s, 0) for p, s in self.header.seqs.items() if p in now)

    def close(self) -> None:
        """Stop the updater and close the file; queries that run end on their snapshots."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self.stop_updater()
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
        if self._updater is not None:
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
            self._changed.notify_all()

    def _roll_back_safely(self, rollback: RollbackError) -> BaseException | None:
        try:
            self._roll_back(rollback)
        except BaseException as error:  # noqa: BLE001 - told to whoever waits
            return error
        return None

    def _checkpoint(self, header: IndexHeader) -> IndexHeader:
        snapshot = self._file.commit(header)
        with self._changed:
            self._snapshot = snapshot
            self._changed.notify_all()
        return header

    def _note_map_error(self, error: MapError) -> None:
        self.map_errors.append(error)
        self.map_error_count += 1

    def _roll_back(self, rollback: RollbackError) -> None:
        """Take up the newest snapshot in which the partition is old enough; else start it anew.

        Partitions keep the states that they have now; what the old snapshot has of others is cleaned up.
        """
        now = self.header
        history = self._source.failover_log(rollback.partition)
        for snapshot in self._file.snapshots():
            old = snapshot.header
            seq = old.seqs.get(rollback.partition)
            log = old.partition_versions.get(rollback.partition, ())
            shared = seq is not None and rollback_point(seq, log, history) == seq <= rollback.seq
            if shared and not old.cleanup:
                break
        else:
            old = replace(now, id_root=None, view_roots=(None,) * len(now.view_roots), seqs={})
        mine = now.active | now.passive
        extra = (old.active | old.passive) & ~mine
        self._checkpoint(
            replace(
                now,
                id_root=old.id_root,
                view_roots=old.view_roots,
                seqs={p: old.seqs.get(p, 0) for p in now.seqs},
                unindexable_seqs={p: old.seqs.get(p, 0) for p in now.unindexable_seqs},
                cleanup=now.cleanup | extra,
                partition_versions={
                    p: log for p, log in old.partition_versions.items() if p in now.seqs
                },
            )
        )


def _in_history(header: IndexHeader, partition: int, uuid: bytes) -> bool:
    log = header.partition_versions.get(partition, ())
    return not log or log[0][0] == uuid


def _new_header(design: DesignDocument, partitions: int) -> IndexHeader:
    return IndexHeader(
        signature=design.signature,
        num_partitions=partitions,
        view_roots=(None,) * len(design.shapes),
        active=mask_of(range(partitions)),
        seqs=dict.fromkeys(range(partitions), 0),
    )

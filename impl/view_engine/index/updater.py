"""The updater: loader, mapper and writer in a pipeline with bounded queues, from one checkpoint to the next."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from stagewright.impl.view_engine.defects import Defect, has
from stagewright.impl.view_engine.design.design import DesignDocument
from stagewright.impl.view_engine.design.mapping import (
    MapError,
    Mapped,
    MappedBatch,
    MappingStoppedError,
)
from stagewright.impl.view_engine.documents.changes import Change, Changes, Source
from stagewright.impl.view_engine.file.header import FailoverLog, IndexHeader
from stagewright.impl.view_engine.file.index_file import IndexFile
from stagewright.impl.view_engine.index.packing import pack_batch
from stagewright.impl.view_engine.index.progress import is_behind
from stagewright.impl.view_engine.index.queues import BoundedQueue, QueueClosedError
from stagewright.impl.view_engine.index.sort_files import SORT_MEMORY, ExternalSort
from stagewright.impl.view_engine.index.writing import (
    Record,
    apply_batch,
    root_of,
)
from stagewright.impl.view_engine.scheduling import THREADS, Scheduler
from stagewright.impl.view_engine.trace.index_trace import IndexTrace
from stagewright.impl.view_engine.tree.build import build
from stagewright.impl.view_engine.tree.nodes import BACK_INDEX
from stagewright.impl.view_engine.tree.packed import Packed


@dataclass(frozen=True)
class UpdaterLimits:
    """How much the updater holds at once, in bytes and documents."""

    map_queue: int = 256 << 10
    write_queue: int = 512 << 10
    batch: int = 1 << 20  # emitted bytes after which an incremental update writes a checkpoint
    sort_memory: int = SORT_MEMORY
    documents_a_call: int = 1000  # that a mapper gets together


_NONE = Changes.of(())


class UpdateStoppedError(Exception):
    """The group stopped the updater; what was not checkpointed is done again later."""


class _End(NamedTuple):
    """Up to which sequence number of which history a snapshot is."""

    seq: int
    log: FailoverLog


class _Loaded(NamedTuple):
    """Changes of one partition; `end` where its snapshot is complete."""

    partition: int
    changes: Changes
    end: _End | None


class _Part(NamedTuple):
    """Which changes of a batch are of one partition: those before `last` that no earlier part has."""

    partition: int
    last: int
    end: _End | None


class _MappedParts(NamedTuple):
    batch: MappedBatch
    parts: list[_Part]


Checkpoint = Callable[[IndexHeader], IndexHeader]


class Updater:
    """One run: brings an index from the sequence numbers of its header to those of the source."""

    def __init__(
        self,
        file: IndexFile,
        design: DesignDocument,
        source: Source,
        folder: Path,
        *,
        checkpoint: Checkpoint,
        on_map_error: Callable[[MapError], None],
        limits: UpdaterLimits | None = None,
        scheduler: Scheduler = THREADS,
        trace: IndexTrace | None = None,
    ) -> None:
        """`checkpoint` gets each new header, commits it and hands it over; it may give back another."""
        self._file = file
        self._design = design
        self._source = source
        self._folder = folder
        self._checkpoint = checkpoint
        self._on_map_error = on_map_error
        self._limits = limits or UpdaterLimits()
        self._scheduler = scheduler
        self._trace = trace if trace is not None and trace.is_kept else None
        self._loaded: BoundedQueue[_Loaded] = BoundedQueue(self._limits.map_queue, scheduler)
        self._mapped: BoundedQueue[_MappedParts] = BoundedQueue(self._limits.write_queue, scheduler)
        self._stop = threading.Event()
        self.record: Record | None = None  # set by the group at a checkpoint, while it compacts
        self.documents = 0

    def stop(self) -> None:
        """Ask a running update to end; `run` raises UpdateStoppedError soon."""
        self._stop.set()
        self._loaded.close(UpdateStoppedError())
        self._mapped.close(UpdateStoppedError())

    def run(self, header: IndexHeader) -> IndexHeader:
        """Update; gives the last header that was checkpointed.

        Raises RollbackError where a partition has to go back first, ReduceError where a reduce function
        failed (the index stays at its last checkpoint), and UpdateStoppedError.
        """
        positions = self._source.positions()
        behind = {
            partition: seq
            for partition, seq in sorted(header.seqs.items())
            if partition in positions and is_behind(header, partition, positions[partition])
        }
        if not behind:
            return header
        load = partial(self._load, behind, header.partition_versions)
        workers = [
            self._scheduler.start(partial(self._guarded, load), "view-loader"),
            self._scheduler.start(partial(self._guarded, self._map), "view-mapper"),
        ]
        recorded = self.record is not None  # a compaction needs the changes one by one
        if has(Defect.compaction_misses_the_initial_build):
            recorded = False
        initial = not any(header.seqs.values()) and header.id_root is None and not recorded
        try:
            return self._build(header) if initial else self._update(header)
        finally:
            self._loaded.close()
            self._mapped.close()
            for worker in workers:
                worker.join()

    def _guarded(self, work: Callable[[], None]) -> None:
        """A failure of a thread reaches the writer, through the queues."""
        try:
            work()
        except (QueueClosedError, MappingStoppedError):
            pass
        except BaseException as error:  # noqa: BLE001 - raised again where the writer waits
            self._loaded.close(error)
            self._mapped.close(error)

    def _load(self, behind: Mapping[int, int], logs: Mapping[int, FailoverLog]) -> None:
        """All changes since, partition by partition."""
        for partition, since in behind.items():
            self._scheduler.step()
            stream = self._source.snapshot(partition, since, logs.get(partition, ()))
            last = stream.end  # deletions at the end may not come, if nothing was there before
            for part in stream.parts:
                last = max(last, part[-1].seq if part else last)
                for changes, size in self._in_calls(part):
                    self._loaded.put(_Loaded(partition, changes, None), size)
            self._loaded.put(_Loaded(partition, _NONE, _End(last, stream.log)), 0)
        self._loaded.end()

    def _in_calls(self, changes: Sequence[Change]) -> Iterator[tuple[Changes, int]]:
        """As many changes as a mapper gets together, and as the queue can hold twice; and their bytes."""
        columns = Changes.of(changes)
        if len(columns) <= self._limits.documents_a_call:
            size = columns.size
            if size <= self._limits.map_queue // 2 or len(columns) == 1:
                yield columns, size
                return
        if columns:
            half = len(columns) // 2
            yield from self._in_calls(columns[:half])
            yield from self._in_calls(columns[half:])

    def _map(self) -> None:
        """Changes of several partitions go through the map functions together."""
        for loaded in _together(self._loaded, self._limits.documents_a_call):
            ends = accumulate(len(one.changes) for one in loaded)
            parts = [_Part(o.partition, last, o.end) for o, last in zip(loaded, ends, strict=True)]
            changes = Changes.joined([one.changes for one in loaded])
            batch, errors = self._design.map(changes, self._stop.is_set)
            for error in errors:
                self._on_map_error(error)
            self._mapped.put(_MappedParts(batch, parts), batch.size)
        self._mapped.end()

    def _build(self, header: IndexHeader) -> IndexHeader:
        """Initial: everything into sort files, no look-ups, trees bottom up, one header."""
        memory = self._limits.sort_memory // (len(self._design.shapes) + 1)
        ids = ExternalSort(self._folder, "back", BACK_INDEX, memory)
        views = [
            ExternalSort(self._folder, f"view{number}", shape, memory)
            for number, shape in enumerate(self._design.shapes)
        ]
        reached: dict[int, _End] = {}
        try:
            for batch, parts in self._mapped:
                packed = pack_batch(batch)
                for sort, items in zip((ids, *views), packed, strict=True):
                    sort.add(*items)
                self.documents += len(batch.changes)
                reached.update((part.partition, part.end) for part in parts if part.end is not None)
            id_root = build(self._file, BACK_INDEX, self._going_on(ids.sorted()))
            roots = tuple(
                root_of(build(self._file, shape, self._going_on(view.sorted())))
                for view, shape in zip(views, self._design.shapes, strict=True)
            )
        finally:
            for sort in (ids, *views):
                sort.remove()
        built = replace(header, id_root=root_of(id_root), view_roots=roots)
        return self._checkpoint(_at(built, reached))

    def _update(self, header: IndexHeader) -> IndexHeader:
        """Incremental: batch by batch; a header follows where the snapshots of all partitions are whole.

        A header within a snapshot would claim a sequence number at which the index never was, and could
        not be gone back to.
        """
        batch: list[Mapped] = []
        size = unwritten = 0
        reached: dict[int, _End] = {}
        for part, documents in self._parts():
            if self._stop.is_set():
                raise UpdateStoppedError
            batch += documents
            size += sum(_size(document) for document in documents)
            if part.end is not None:
                reached[part.partition] = part.end
            if self._trace is not None:
                self._trace.loaded(part.partition, whole=part.end is not None)
            if size >= self._limits.batch:
                header = self._apply(header, batch)
                if has(Defect.checkpoint_within_a_snapshot):
                    header = self._checkpoint(header)
                unwritten += size
                batch, size = [], 0
            if part.end is not None and unwritten >= self._limits.batch:
                header = self._write(header, batch, reached)
                batch, size, unwritten, reached = [], 0, 0, {}
        return self._write(header, batch, reached) if reached else header

    def _parts(self) -> Iterator[tuple[_Part, list[Mapped]]]:
        for batch, parts in self._mapped:
            documents = batch.documents()
            first = 0
            for part in parts:
                yield part, documents[first : part.last]
                first = part.last

    def _apply(self, header: IndexHeader, batch: list[Mapped]) -> IndexHeader:
        self.documents += len(batch)
        self._scheduler.step()
        replaced = None if self._trace is None else self._trace.replaced
        return apply_batch(self._file, self._design.shapes, header, batch, self.record, replaced)

    def _write(
        self, header: IndexHeader, batch: list[Mapped], reached: Mapping[int, _End]
    ) -> IndexHeader:
        written = self._apply(header, batch) if batch else header
        return self._checkpoint(_at(written, reached))

    def _going_on(self, batches: Iterator[Packed]) -> Iterator[Packed]:
        for batch in batches:
            if self._stop.is_set():
                raise UpdateStoppedError
            yield batch


def _at(header: IndexHeader, reached: Mapping[int, _End]) -> IndexHeader:
    """The header at the ends of these snapshots; the histories of other partitions stay what they were."""
    logs = {**header.partition_versions, **{p: end.log for p, end in reached.items()}}
    present = {*header.seqs, *header.unindexable_seqs}
    return replace(
        header,
        seqs={**header.seqs, **{p: end.seq for p, end in reached.items()}},
        partition_versions={p: log for p, log in logs.items() if p in present},
    )


def _together(loaded: BoundedQueue[_Loaded], most: int) -> Iterator[list[_Loaded]]:
    """Parts that follow each other, up to a number of documents; an end is never held back long."""
    parts: list[_Loaded] = []
    documents = 0
    for part in loaded:
        parts.append(part)
        documents += len(part.changes)
        if documents >= most or len(parts) >= 64:
            yield parts
            parts, documents = [], 0
    if parts:
        yield parts


def _size(document: Mapped) -> int:
    rows = sum(len(key) + len(value) + 16 for of_map in document.rows for key, value in of_map)
    return rows + len(document.change.doc_id) + 32

"""The backfill of a tablet at its leader: rows are read at the time of the scan, their entries written in batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from stagewright.impl.indexes.bulk.columns import TURN, EntryColumns, by_place
from stagewright.impl.indexes.bulk.numbers import Entries, keys_of
from stagewright.impl.indexes.bulk.work import (
    Answer,
    RefusedWork,
    RemoveFiles,
    ScannedRows,
    ScanRows,
)
from stagewright.impl.indexes.defects import Defect
from stagewright.impl.indexes.messages import (
    BackfillBatch,
    BackfillChunk,
    BatchDone,
    ChunkDone,
    Violation,
)
from stagewright.impl.indexes.records.notes import ChunkBegun, ChunkEnded, RowsScanned
from stagewright.impl.indexes.schema import IndexInfo, index_tablet
from stagewright.impl.indexes.splits.tablet_map import index_table, place_parts
from stagewright.impl.indexes.tablet import ROWS
from stagewright.impl.storage.port import Page
from stagewright.machines.yugabytedb.indexes.index_states import Permission

if TYPE_CHECKING:
    from stagewright.impl.indexes.table_tablet import TableTablet

_AGAIN = 20
_TRIES = 5  # of a builder that finds files gone
_PATIENCE = 4  # times `retry`, after which a batch is sent again
_BULK = 4  # times that, for one that a builder puts in where clients are served meanwhile
_MASTER = "master"
_SCALE = 1000


@dataclass
class _Chunk:
    """A chunk under way."""

    asked: BackfillChunk
    at: bytes
    rows: int = 0
    has_slot: bool = False
    batches: dict[tuple[str, int], BackfillBatch] = field(
        default_factory=dict[tuple[str, int], BackfillBatch]
    )
    until: bytes | None = None  # after what was read last
    over: bool = False
    page: Page | None = None  # rows that were read, for which there are no tokens yet
    gathered: int = 0  # rows of the batch
    entries: EntryColumns = field(default_factory=lambda: EntryColumns(0))
    is_bulk: bool = False  # a builder reads its rows
    files: list[str] = field(default_factory=list[str])  # that it has put entries into


class BackfillWorker:
    """One chunk at a time; the answer to the last one is kept, as it may be lost."""

    def __init__(self, tablet: TableTablet) -> None:
        self._tablet = tablet
        self._chunk: _Chunk | None = None
        self._last: tuple[BackfillChunk, ChunkDone] | None = None
        self._number = 0
        self._newest = (0, 0)
        self._in_files = 0  # all versions up to this time are in files of the store
        self._buckets: dict[int, TokenBucket] = {}

    @property
    def is_busy(self) -> bool:
        """Whether a chunk is being read."""
        return self._chunk is not None

    def close(self) -> None:
        """Give up the chunk that is under way."""
        if self._chunk is not None:
            self._close(self._chunk)

    def leave(self) -> None:
        """Give it up, and say so."""
        if self._chunk is not None:
            note = ChunkEnded(self._chunk.asked.job, self._tablet.number, None, broken=True)
            self._close(self._chunk)
            self._tablet.port.note(note)

    # -- asking ------------------------------------------------------------------------------------------------

    def ask(self, asked: BackfillChunk) -> None:
        """A chunk is asked for, maybe once more, maybe by the next master."""
        taken = Defect.late_requests_count in self._tablet.settings.defects
        if asked.ask < self._newest and not taken:
            return  # it comes late: the master has gone on, or is another one
        self._newest = asked.ask
        chunk = self._chunk
        if chunk is not None and _same(chunk.asked, asked):
            chunk.asked = asked
            return
        if self._last is not None and _same(self._last[0], asked):
            done = self._last[1]
            self._tablet.port.send(_MASTER, replace(done, ask=asked.ask))
            return
        if not self._is_ready(asked):
            return  # the master asks again
        self.leave()
        if Defect.tablets_have_times_of_their_own in self._tablet.settings.defects:
            asked = replace(asked, read_time=self._tablet.clock.now())
        self._chunk = _Chunk(asked, asked.start)
        number = self._tablet.number
        self._tablet.port.note(
            ChunkBegun(asked.job, number, asked.ask, asked.start, asked.indexes, asked.read_time)
        )
        self._wait_for_slot(self._chunk)

    def _is_ready(self, asked: BackfillChunk) -> bool:
        """The tablet knows that the indexes are at DO_BACKFILL."""
        if Defect.readiness_is_not_tested in self._tablet.settings.defects:
            return True
        schema = self._tablet.schema
        return all(schema.permission(i) is Permission.do_backfill for i in asked.indexes)

    def _wait_for_slot(self, chunk: _Chunk) -> None:
        if chunk.over:
            return
        if not self._tablet.port.take_slot():
            self._tablet.port.after(_AGAIN, self._wait_for_slot, chunk)
            return
        chunk.has_slot = True
        self._tablet.when_decided(chunk.asked.read_time, lambda: self._begin(chunk))

    # -- reading -------------------------------------------------------------------------------------------------

    def _begin(self, chunk: _Chunk) -> None:
        """Nothing commits at the time of the scan or before any more: what a builder reads is in files by then."""
        tablet = self._tablet
        chunk.is_bulk = tablet.is_bulk
        if chunk.is_bulk and self._in_files < chunk.asked.read_time:
            tablet.port.aside(tablet.store.spill, self._spilled, chunk)
        else:
            self._begin_batch(chunk)

    def _spilled(self, chunk: _Chunk) -> None:
        """Those who write wait for this disk, too: it is done once for all chunks of a scan."""
        self._in_files = max(self._in_files, chunk.asked.read_time)
        self._begin_batch(chunk)

    def _begin_batch(self, chunk: _Chunk) -> None:
        """Read the next rows."""
        if chunk.over:
            return
        chunk.until, chunk.gathered = chunk.at, 0
        chunk.entries = EntryColumns(self._tablet.settings.tablets)
        if chunk.is_bulk:
            self._ask_builder(chunk, _TRIES)
        else:
            self._read(chunk)

    def _wanted(self, chunk: _Chunk) -> list[IndexInfo]:
        return [i for i in self._tablet.schema.indexes if i.number in chunk.asked.indexes]

    def _ask_builder(self, chunk: _Chunk, tries: int) -> None:
        """Have it read a batch."""
        tablet, settings = self._tablet, self._tablet.settings
        work = ScanRows(
            tablet.store.files(),
            ROWS,
            chunk.at,
            chunk.asked.read_time,
            settings.batch,
            settings.tablets,
            tuple((i.number, i.unique, i.column) for i in self._wanted(chunk)),
            tablet.store.beside(),
        )
        tablet.port.elsewhere(work, self._scanned, chunk, tries)

    def _scanned(self, chunk: _Chunk, tries: int, answer: Answer) -> None:
        if isinstance(answer, ScannedRows):
            chunk.files += [entries.file for _, entries in answer.entries if entries.file]
        if chunk.over:
            self._remove_files(chunk)
            return
        match answer:
            case ScannedRows(rows, following, found):
                chunk.until = following
                chunk.rows += rows
                places = ((index_tablet(e.index, tablet), e) for tablet, e in found)
                self._write(chunk, places)
            case RefusedWork(again=True) if tries > 1:
                self._ask_builder(chunk, tries - 1)
            case _:
                chunk.is_bulk = False  # one by one it can be done
                self._read(chunk)

    def _read(self, chunk: _Chunk) -> None:
        if chunk.over:
            return
        bucket, batch = self._bucket(chunk.asked.job), self._tablet.settings.batch
        if chunk.page is None:
            most = min(batch - chunk.gathered, bucket.burst if bucket else TURN)
            at, start = chunk.asked.read_time, chunk.until or b""
            chunk.page = self._tablet.store.page(ROWS, start, at, most)
        page = chunk.page
        if bucket is not None and page.values:
            wait = bucket.wait(len(page.values), self._tablet.port.now())
            if wait:
                self._tablet.port.after(wait, self._read, chunk)
                return
        chunk.page, chunk.until = None, page.following
        chunk.rows += len(page.values)
        chunk.gathered += len(page.values)
        self._note(chunk, page.keys)
        chunk.entries.add(keys_of(page.keys), page.values, self._wanted(chunk))
        if chunk.until is None or bucket is not None or chunk.gathered >= batch:
            self._write(chunk, chunk.entries.entries())
        else:
            self._tablet.port.turn(self._read, chunk)

    def _bucket(self, job: int) -> TokenBucket | None:
        settings = self._tablet.settings
        if not settings.rows_per_second:
            return None
        if job not in self._buckets:
            credit = Defect.waiting_is_credit in settings.defects
            self._buckets[job] = TokenBucket(
                settings.rows_per_second, settings.batch, self._tablet.port.now(), credit=credit
            )
        return self._buckets[job]

    def _note(self, chunk: _Chunk, keys: bytes) -> None:
        asked = chunk.asked
        scans = [asked.indexes]
        if Defect.one_scan_an_index in self._tablet.settings.defects:
            scans = [(i,) for i in asked.indexes]
        for indexes in scans:
            number = self._tablet.number
            note = RowsScanned(asked.job, number, keys, indexes, asked.read_time)
            self._tablet.port.note(note)

    # -- writing ---------------------------------------------------------------------------------------------------

    def _write(self, chunk: _Chunk, found: Iterable[tuple[str, Entries]]) -> None:
        asked, tablet = chunk.asked, self._tablet
        now = Defect.entries_are_written_now in tablet.settings.defects
        time = tablet.clock.now() if now else asked.read_time
        known = {i.number for i in tablet.schema.indexes}
        for created, entries in found:
            for place, some in self._by_place(created, entries) if entries.index in known else ():
                self._number += 1
                message = BackfillBatch(asked.job, self._number, time, asked.read_time, some)
                chunk.batches[place, self._number] = message
        chunk.entries = EntryColumns(0)
        self._send(chunk)
        if not chunk.batches:
            self._advance(chunk)

    def _by_place(self, created: str, entries: Entries) -> Iterator[tuple[str, Entries]]:
        """Entries of a tablet that an index was created with, by those that have them now."""
        tablets = self._tablet.maps.of(index_table(entries.index))
        wrong = Defect.entries_follow_the_first_child in self._tablet.settings.defects
        if wrong:
            yield tablets.place(tablets.heirs(place_parts(created)[1])[0]), entries
        elif tablets.splits:
            yield from by_place(entries, tablets)
        else:
            yield created, entries

    def on_refused(self, place: str) -> None:
        """A tablet of an index has split: what it was sent is for others, which the master knows."""
        chunk = self._chunk
        wrong = Defect.refused_entries_count_as_written in self._tablet.settings.defects
        if chunk is not None and wrong:
            for at, number in list(chunk.batches):
                if at == place:
                    job = chunk.batches[at, number].job
                    self.on_batch_done(at, BatchDone(job, number))

    def send_elsewhere(self) -> None:
        """Tablets of indexes have split: their batches go to those that serve now."""
        chunk = self._chunk
        if chunk is None:
            return
        for (place, number), batch in list(chunk.batches.items()):
            found = list(self._by_place(place, batch.entries))
            if [at for at, _ in found] != [place]:
                del chunk.batches[place, number]
                for at, some in found:
                    self._number += 1
                    new = replace(batch, number=self._number, entries=some)
                    chunk.batches[at, self._number] = new
                    self._tablet.port.send(at, new)

    def _send(self, chunk: _Chunk) -> None:
        if chunk.over or not chunk.batches:
            return
        for (place, _), batch in chunk.batches.items():
            self._tablet.port.send(place, batch)
        at = chunk.at
        patience = _PATIENCE * (_BULK if chunk.is_bulk else 1)
        self._tablet.port.after(patience * self._tablet.settings.retry, self._send_again, chunk, at)

    def _send_again(self, chunk: _Chunk, at: bytes) -> None:
        if chunk.at == at:
            self._send(chunk)

    def on_batch_done(self, sender: str, done: BatchDone) -> None:
        """A tablet of an index has written a batch, or not."""
        chunk = self._chunk
        if chunk is None or (sender, done.number) not in chunk.batches:
            return
        del chunk.batches[sender, done.number]
        if done.violation is not None:
            self._finish(chunk, chunk.at, done.violation)
        elif not chunk.batches:
            self._advance(chunk)

    def _remove_files(self, chunk: _Chunk) -> None:
        """Nobody needs them any more; who still has one under way has it open."""
        if chunk.files:
            self._tablet.port.elsewhere(RemoveFiles(tuple(chunk.files)), lambda _: None)
            chunk.files.clear()

    def _advance(self, chunk: _Chunk) -> None:
        self._remove_files(chunk)
        settings = self._tablet.settings
        if chunk.until is None or Defect.only_the_first_page in settings.defects:
            self._finish(chunk, None)
        elif chunk.rows >= settings.chunk_rows:
            self._finish(chunk, chunk.until)
        else:
            chunk.at = chunk.until
            self._begin_batch(chunk)

    def _finish(
        self, chunk: _Chunk, until: bytes | None, violation: Violation | None = None
    ) -> None:
        asked = chunk.asked
        skips = Defect.checkpoint_skips_a_row in self._tablet.settings.defects
        if until is not None and violation is None and skips:
            until += b"\0"
        done = ChunkDone(asked.job, asked.ask, self._tablet.number, until, violation, chunk.rows)
        self._close(chunk)
        self._last = (asked, done)
        broken = violation is not None
        self._tablet.port.note(ChunkEnded(asked.job, self._tablet.number, until, broken))
        self._tablet.port.send(_MASTER, done)

    def _close(self, chunk: _Chunk) -> None:
        chunk.over = True
        self._remove_files(chunk)
        chunk.batches.clear()
        self._chunk = None
        if chunk.has_slot:
            self._tablet.port.free_slot()


class TokenBucket:
    """It holds a burst and fills at the rest of the rate, so that any second has `rate` rows at most.

    It begins empty: who takes over from another does not add a burst to that one's.
    """

    def __init__(self, rate: int, burst: int, now: int, *, credit: bool = False) -> None:
        self.burst = max(1, min(burst, rate // 2))
        self._fill = max(rate - self.burst, 1)
        self._most = (rate if credit else self.burst) * _SCALE
        self._fill = rate if credit else self._fill
        self._tokens = 0
        self._at = now

    def wait(self, rows: int, now: int) -> int:
        """Take tokens for rows and return 0; or the milliseconds until there are enough.

        Shapes: `rows` is at most `burst`.
        """
        self._tokens = min(self._tokens + (now - self._at) * self._fill, self._most)
        self._at = now
        missing = rows * _SCALE - self._tokens
        if missing > 0:
            return -(-missing // self._fill)
        self._tokens -= rows * _SCALE
        return 0


def _same(a: BackfillChunk, b: BackfillChunk) -> bool:
    """Whether the rows and indexes are the same, whoever asks."""
    return (a.job, a.start, a.indexes, a.read_time) == (b.job, b.start, b.indexes, b.read_time)

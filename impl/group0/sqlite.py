"""Group0 in one SQLite file that any number of processes of one machine open.

A transaction is the compare-and-set; a row with a deadline is the election. A commit that was answered
survives the process, and with `synchronous` the machine, too.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar
from uuid import UUID

from stagewright.impl.group0.commands import Command
from stagewright.impl.group0.port import (
    TAIL,
    Commit,
    Committed,
    Entry,
    Group0Error,
    Leadership,
    Learned,
    Outcome,
    Reading,
    Snapshot,
    UnavailableError,
    Unknown,
    refusal_of,
)
from stagewright.impl.group0.state_ids import EMPTY, StateId

T = TypeVar("T")

_APPLICATION = 0x53_57_47_30  # "SWG0": marks the file as ours
_SCHEMA = """
CREATE TABLE IF NOT EXISTS state (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    head TEXT NOT NULL,
    term INTEGER NOT NULL,
    leader TEXT,  -- NULL: nobody leads
    deadline REAL NOT NULL,
    seconds REAL NOT NULL  -- of the lease: a deadline further away means that the clock was set back
);
CREATE TABLE IF NOT EXISTS log (
    position INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    term INTEGER NOT NULL,
    command TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS snapshot (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id TEXT NOT NULL,
    term INTEGER NOT NULL,
    content TEXT NOT NULL
);
"""
_BUSY_SECONDS = 5.0
_AGAIN = {"database is locked", "database table is locked", "disk I/O error"}


class SqliteGroup0:
    """One process's access; its calls run one after the other in a thread of its own.

    `now` is the clock of leases, in seconds; all processes must share it.

    Raises:
        Group0Error: the file is something else, or cannot be opened.
    """

    def __init__(
        self,
        path: Path,
        *,
        synchronous: bool = True,
        poll: float = 0.02,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._path = path
        self._poll = poll
        self._now = now
        self._closed = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="group0")
        try:
            self._db = sqlite3.connect(
                path, isolation_level=None, check_same_thread=False, timeout=_BUSY_SECONDS
            )
            self._prepare(synchronous)
        except sqlite3.DatabaseError as error:
            raise Group0Error(
                f"{path} is not a group0 log: {error}", help="name another file"
            ) from None

    def _prepare(self, synchronous: bool) -> None:
        # Until the log's form is read, nothing may be written: the file may be somebody else's.
        # Both are read at one moment: another process may be about to make the same file.
        self._db.execute("BEGIN")
        tables = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        mark = self._db.execute("PRAGMA application_id").fetchone()[0]
        self._db.execute("COMMIT")
        if mark != _APPLICATION and (mark or tables):
            self._db.close()
            raise Group0Error(
                f"{self._path} is a database of something else", help="name another file"
            )
        self._write_ahead()
        self._db.execute(f"PRAGMA synchronous = {'FULL' if synchronous else 'OFF'}")
        self._db.execute("BEGIN IMMEDIATE")
        for statement in _SCHEMA.split(";\n"):
            self._db.execute(statement)
        first = "INSERT OR IGNORE INTO state VALUES (1, ?, 0, NULL, 0, 0)"
        self._db.execute(first, (str(EMPTY),))
        self._db.execute(f"PRAGMA application_id = {_APPLICATION}")
        self._db.execute("COMMIT")

    def _write_ahead(self) -> None:
        """Change the journal, for which SQLite itself does not wait."""
        until = time.monotonic() + _BUSY_SECONDS
        while True:
            try:
                self._db.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if str(error) not in _AGAIN or time.monotonic() > until:
                    raise
                time.sleep(0.01)
            else:
                return

    # -- commits -------------------------------------------------------------------------------------

    async def commit(self, request: Commit) -> Outcome:
        try:
            return await self._do(lambda: self._commit(request))
        except UnavailableError as error:
            return Unknown(error.problem)

    def _commit(self, request: Commit) -> Outcome:
        head, term = self._state()
        place = request.new.position
        row = self._db.execute("SELECT id FROM log WHERE position = ?", (place,)).fetchone()
        there = None if row is None else UUID(row[0])
        now = round(self._now() * 1_000_000)
        refusal = refusal_of(request, head, term, there, self._first(head), now)
        if refusal is not None:
            return refusal
        entry = (place, str(request.id), term, request.command.encoded())
        self._db.execute("INSERT INTO log VALUES (?, ?, ?, ?)", entry)
        self._db.execute("UPDATE state SET head = ?", (str(request.new),))
        return Committed(request.new)

    def _state(self) -> tuple[StateId, int]:
        head, term = self._db.execute("SELECT head, term FROM state").fetchone()
        return StateId.parse(head), term

    def _first(self, head: StateId) -> int:
        first = self._db.execute("SELECT min(position) FROM log").fetchone()[0]
        return head.position + 1 if first is None else int(first)

    # -- reading -------------------------------------------------------------------------------------

    async def head(self) -> StateId:
        return (await self._do(self._state, reads=True))[0]

    async def read(self, after: int = 0) -> Reading:
        return await self._do(lambda: self._read(after), reads=True)

    def _read(self, after: int) -> Reading:
        head, _ = self._state()
        snapshot = None
        if after + 1 < self._first(head):
            place, term, content = self._db.execute(
                "SELECT id, term, content FROM snapshot"
            ).fetchone()
            snapshot = Snapshot(StateId.parse(place), term, content)
            after = snapshot.id.position
        rows = self._db.execute("SELECT * FROM log WHERE position > ? ORDER BY position", (after,))
        entries = tuple(
            Entry(StateId(position, UUID(text_id)), term, self._command(position, text))
            for position, text_id, term, text in rows
        )
        return Reading(snapshot, entries, head)

    def _command(self, position: int, text: str) -> Command:
        try:
            return Command.decoded(text)
        except (ValueError, KeyError, TypeError):
            raise Group0Error(
                f"{self._path}: entry {position} is damaged", help="restore a copy"
            ) from None

    async def watch(self, after: int = 0) -> AsyncIterator[Learned]:
        while True:
            try:
                if (await self.head()).position > after:
                    reading = await self.read(after)
                    if reading.snapshot is not None:
                        after = reading.snapshot.id.position
                        yield reading.snapshot
                    for entry in reading.entries:
                        after = entry.id.position
                        yield entry
            except UnavailableError:
                pass  # busy: the next look may succeed
            await asyncio.sleep(self._poll)

    async def compact(self, snapshot: Snapshot, tail: int = TAIL) -> None:
        def keep() -> None:
            held = self._db.execute("SELECT id FROM snapshot").fetchone()
            if held is not None and StateId.parse(held[0]).position >= snapshot.id.position:
                return
            row = (str(snapshot.id), snapshot.term, snapshot.content)
            self._db.execute("INSERT OR REPLACE INTO snapshot VALUES (1, ?, ?, ?)", row)
            last = snapshot.id.position - tail
            self._db.execute("DELETE FROM log WHERE position <= ?", (last,))

        await self._do(keep)

    # -- who leads -----------------------------------------------------------------------------------

    async def campaign(self, node: str, seconds: float) -> Leadership | None:
        def take() -> Leadership | None:
            if self._leads() is not None:
                return None
            term = self._state()[1] + 1
            row = (term, node, self._now() + seconds, seconds)
            self._db.execute("UPDATE state SET term=?, leader=?, deadline=?, seconds=?", row)
            return Leadership(node, term)

        return await self._do(take)

    async def keep(self, leadership: Leadership) -> bool:
        def prolong() -> bool:
            if self._leads() != Leadership(leadership.node, leadership.term):
                return False
            self._db.execute("UPDATE state SET deadline = ? + seconds", (self._now(),))
            return True

        return await self._do(prolong)

    async def resign(self, leadership: Leadership) -> None:
        where = (leadership.node, leadership.term)
        await self._do(
            lambda: self._db.execute(
                "UPDATE state SET leader = NULL WHERE leader = ? AND term = ?", where
            )
        )

    async def leader(self) -> Leadership | None:
        return await self._do(self._leads, reads=True)

    def _leads(self) -> Leadership | None:
        term, node, deadline, seconds = self._db.execute(
            "SELECT term, leader, deadline, seconds FROM state"
        ).fetchone()
        lasts = 0 < deadline - self._now() <= seconds
        return Leadership(node, term) if node is not None and lasts else None

    # -- transactions --------------------------------------------------------------------------------

    async def _do(self, work: Callable[[], T], *, reads: bool = False) -> T:
        if self._closed:
            raise Group0Error(f"{self._path} was closed", help="open the log again")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._transaction, work, reads)

    def _transaction(self, work: Callable[[], T], reads: bool) -> T:
        try:
            self._db.execute("BEGIN" if reads else "BEGIN IMMEDIATE")
            done = work()
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            self._undo()
            if str(error) in _AGAIN:
                raise UnavailableError(f"{self._path}: {error}", help="try again") from None
            raise Group0Error(f"{self._path}: {error}", help="see the disk and the file") from None
        except BaseException:
            self._undo()
            raise
        return done

    def _undo(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    async def close(self) -> None:
        self._closed = True
        await asyncio.get_running_loop().run_in_executor(self._thread, self._db.close)
        self._thread.shutdown()

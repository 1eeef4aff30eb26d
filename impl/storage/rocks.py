"""Rows in RocksDB, by the package `rocksdict` (`pip install stagewright[cluster]`).

One column family holds every family of rows, as a prefix of the key: a batch must be seen whole, and the
binding takes a view of one column family at a time.

    length of the family (1) | family | key, 00 as 00 FF | 00 00 | time, inverted (8)

Keys keep their order whatever bytes they hold, and the newest version of a key comes first. What the
binding (0.3.29) does wrong is kept out here: its snapshots show later writes when they are scanned, its
lower bound sets the upper one, its iterators do not keep their read options alive, and writes that sync
hold the interpreter's lock while the disk works.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from stagewright.impl.storage.port import LAST_TIME, Put, StorageError, Version, forgettable

_END = b"\0\0"
_PAGE = 256


class RocksRows:
    """The rows in a directory.

    Raises:
        StorageError: `rocksdict` is missing, or the directory cannot be opened.
    """

    def __init__(self, directory: Path, *, memtable: int = 8 << 20) -> None:
        try:
            rocksdict: Any = import_module("rocksdict")
        except ImportError:
            raise StorageError(
                "rows in RocksDB need the package `rocksdict`",
                help="pip install 'stagewright[cluster]'",
            ) from None
        self._rocks = rocksdict
        self._views = 0  # snapshots that are open
        options = rocksdict.Options(raw_mode=True)  # else a byte of the type leads each key
        options.create_if_missing(True)
        options.set_write_buffer_size(memtable)
        options.set_max_background_jobs(2)
        options.set_max_open_files(64)
        options.set_keep_log_file_num(1)
        # The last record of the log may be torn by a crash; anything worse is an error.
        options.set_wal_recovery_mode(rocksdict.DBRecoveryMode.tolerate_corrupted_tail_records())
        with _named(f"{directory} cannot be opened"):
            self._db: Any = rocksdict.Rdict(str(directory), options)

    def write(self, batch: Iterable[Put]) -> None:
        together = self._rocks.WriteBatch(raw_mode=True)
        for put in batch:
            value = put.version.value
            stored = _stored(put.family, put.version.key, put.version.time)
            together.put(stored, b"-" if value is None else b"+" + value)
        with _named("a batch cannot be written"):
            self._db.write(together)

    def sync(self) -> None:
        with _named("the log cannot be synced"):  # `WriteOptions.sync` holds the interpreter's lock
            self._db.flush_wal(True)

    def snapshot(self) -> RocksSnapshot:
        self._views += 1
        return RocksSnapshot(self._db.iter(), self._seen)

    def _seen(self) -> None:
        self._views -= 1

    def get(self, family: str, key: bytes) -> Version | None:
        snapshot = self.snapshot()
        try:
            return snapshot.get(family, key)
        finally:
            snapshot.close()

    def drop(self, family: str, low: bytes, high: bytes | None) -> int:
        dropped, together = 0, self._rocks.WriteBatch(raw_mode=True)
        snapshot = self.snapshot()
        for version in snapshot.versions(family, low, high):
            together.delete(_stored(family, version.key, version.time))
            dropped += 1
        snapshot.close()
        with _named("rows cannot be removed"):
            self._db.write(together)
        return dropped

    def forget(self, family: str, before: int, low: bytes = b"", high: bytes | None = None) -> int:
        dropped, together = 0, self._rocks.WriteBatch(raw_mode=True)
        snapshot = self.snapshot()
        for version in forgettable(snapshot.versions(family, low, high), before):
            together.delete(_stored(family, version.key, version.time))
            dropped += 1
        snapshot.close()
        with _named("versions cannot be dropped"):
            self._db.write(together)
        return dropped

    def close(self) -> None:
        """Give the directory back.

        Raises:
            StorageError: a snapshot is open, with which RocksDB would keep the directory without a word.
        """
        if self._views:
            raise StorageError(
                f"{self._views} snapshots are open", help="close them before the store"
            )
        self._db.close()


class RocksSnapshot:
    """One iterator, sought again and again: it shows the rows as they were when it was made."""

    def __init__(self, iterator: Any, on_close: Callable[[], None]) -> None:
        self._at: Any = iterator
        self._on_close = on_close

    def get(self, family: str, key: bytes, at: int = LAST_TIME) -> Version | None:
        sought = _stored(family, key, at)
        self._at.seek(sought)
        stored = self._at.key()  # None: past the end, or an error
        if stored is None or stored[:-8] != sought[:-8]:
            self._check()
            return None
        return _version(stored, self._at.value(), len(_prefix(family)))

    def versions(self, family: str, low: bytes, high: bytes | None) -> Iterator[Version]:
        prefix = _prefix(family)
        start = prefix + _escaped(low)
        end = None if high is None else prefix + _escaped(high)
        while True:
            page = self._page(start, prefix, end)
            for stored, value in page:
                yield _version(stored, value, len(prefix))
            if len(page) < _PAGE:
                return
            start = page[-1][0] + b"\0"

    def _page(self, start: bytes, prefix: bytes, end: bytes | None) -> list[tuple[bytes, bytes]]:
        """Some versions at once, for others may seek between them."""
        rows: list[tuple[bytes, bytes]] = []
        self._at.seek(start)
        while len(rows) < _PAGE:
            stored = self._at.key()
            if (
                stored is None
                or not stored.startswith(prefix)
                or (end is not None and stored >= end)
            ):
                self._check()
                break
            rows.append((stored, self._at.value()))
            self._at.next()
        return rows

    def _check(self) -> None:
        """An iterator that meets an error looks as if it had come to the end."""
        try:
            self._at.status()
        except Exception as error:  # noqa: BLE001 - a context costs more than the seek
            raise _failure("rows cannot be read", error) from None

    def close(self) -> None:
        if self._at is not None:
            self._at = None
            self._on_close()


@contextmanager
def _named(what: str) -> Iterator[None]:
    """The binding raises bare exceptions."""
    try:
        yield
    except Exception as error:  # noqa: BLE001
        raise _failure(what, error) from None


def _failure(what: str, error: Exception) -> StorageError:
    return StorageError(f"{what}: {error}", help="see who else uses the directory, and the disk")


@lru_cache(maxsize=256)
def _prefix(family: str) -> bytes:
    name = family.encode()
    return bytes([len(name)]) + name


def _escaped(key: bytes) -> bytes:
    return key.replace(b"\0", b"\0\xff")


def _stored(family: str, key: bytes, time: int) -> bytes:
    return _prefix(family) + _escaped(key) + _END + (LAST_TIME - time).to_bytes(8, "big")


def _version(stored: bytes, value: bytes, skip: int) -> Version:
    key = stored[skip:-10].replace(b"\0\xff", b"\0")
    time = LAST_TIME - int.from_bytes(stored[-8:], "big")
    return Version(key, time, value[1:] if value[:1] == b"+" else None)

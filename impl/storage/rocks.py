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

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from itertools import count, islice
from pathlib import Path
from typing import Any
from uuid import uuid4

from stagewright.impl.storage.port import LAST_TIME, Page, Put, StorageError, Version, forgettable
from stagewright.impl.storage.sst import FORMAT
from stagewright.spec.text.counting import counted

_END = b"\0\0"
_PAGE = 256
_STEPS = 8  # over older versions of a key, before they are skipped: a seek costs more
_SKIPPED = (
    1_000  # entries that were removed and not merged yet, until what is behind them is let be
)
_TOGETHER = 10_000  # versions that are removed with one write
_OLDEST = b"\xff" * 8
_FILES = 24  # that have not been merged, before they are
_LIVE = ord("+")  # what a value begins with; that of a tombstone is a dash
_LOAD = ".load"  # what names of files have that are made to be put in, or lie beside


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
        options.set_env(_env())
        options.set_max_open_files(64)
        options.set_keep_log_file_num(1)
        options.set_level_zero_file_num_compaction_trigger(_FILES)  # a load makes two, in order
        options.set_level_zero_slowdown_writes_trigger(4 * _FILES)  # writers do not wait for loads
        options.set_level_zero_stop_writes_trigger(8 * _FILES)
        # Files are written as they grow, and not all at their end.
        options.set_bytes_per_sync(1 << 18)
        blocks = rocksdict.BlockBasedOptions()  # as `sst/` reads files
        blocks.set_format_version(FORMAT)
        blocks.set_checksum_type(rocksdict.ChecksumType.crc32c())
        options.set_block_based_table_factory(blocks)
        options.set_compression_type(rocksdict.DBCompressionType.snappy())
        # The last record of the log may be torn by a crash; anything worse is an error.
        options.set_wal_recovery_mode(rocksdict.DBRecoveryMode.tolerate_corrupted_tail_records())
        self._near: Any = rocksdict.ReadOptions()  # its iterators do not keep it
        self._near.set_max_skippable_internal_keys(_SKIPPED)
        mine = uuid4().hex  # whoever still writes for a leader that is gone writes elsewhere
        self._loads = (directory / f"{mine}-{n}{_LOAD}" for n in count())
        with _named(f"{directory} cannot be opened"):
            self._db: Any = rocksdict.Rdict(str(directory), options)
        for left in directory.glob(f"*{_LOAD}*"):
            left.unlink()

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

    def load(self, family: str, time: int) -> RocksLoad:
        return RocksLoad(self._rocks, self._db, next(self._loads), family, time)

    def page(self, family: str, low: bytes, at: int, most: int) -> Page:
        prefix, bound = _prefix(family), (LAST_TIME - at).to_bytes(8, "big")
        found, start = _Found(prefix, bound), prefix + _escaped(low)
        while start and len(found.keys) <= most:
            wanted = most + 1 - len(found.keys)
            with _named("rows cannot be read"):  # the binding's fastest way, a view of its own
                pairs = list(islice(self._db.items(from_key=start), wanted))
            found.add(pairs)
            if len(pairs) < wanted:
                self._check_end(pairs[-1][0] + b"\0" if pairs else start)
                break
            start = pairs[-1][0] + b"\0" if pairs[-1][0].startswith(prefix) else b""
        following = None
        if len(found.keys) > most:
            following, _ = _plain(found.keys.pop()), found.values.pop()
        return Page(_plain(b"".join(found.keys)), [v[1:] for v in found.values], following)

    def spill(self) -> None:
        with _named("rows cannot be put into files"):
            self._db.flush(True)

    def files(self) -> tuple[str, ...]:
        directory = self._db.path()
        with _named("files cannot be listed"):
            return tuple(directory + file["name"] for file in self._db.live_files())

    def beside(self) -> str:
        return str(next(self._loads))

    def _check_end(self, start: bytes) -> None:
        """An iterator that meets an error looks as if it had come to the end."""
        iterator = self._db.iter()
        with _named("rows cannot be read"):
            iterator.seek(start)
            iterator.status()

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

    def value_at(self, family: str, key: bytes, time: int) -> bytes | None:
        with _named("rows cannot be read"):  # needs no iterator over all files
            stored: bytes | None = self._db.get(_stored(family, key, time))
        return stored[1:] if stored is not None and stored[0] == _LIVE else None

    def drop(self, family: str, low: bytes, high: bytes | None) -> int:
        snapshot = self.snapshot()
        gone = [_stored(family, v.key, v.time) for v in snapshot.versions(family, low, high)]
        snapshot.close()
        return self._remove(gone)

    def supersede(self, family: str, before: Mapping[bytes, int]) -> int:
        at, gone = self._db.iter(self._near), list[bytes]()
        for key in sorted(before):
            bound = (LAST_TIME - before[key]).to_bytes(8, "big")
            newest = _stored(family, key, LAST_TIME)
            at.seek(newest)
            is_older = False
            while (stored := at.key()) is not None and stored[:-8] == newest[:-8]:
                if is_older and stored[-8:] > bound:
                    gone.append(stored)
                is_older = True
                at.next()
            if stored is None:
                self._check_near(at)
        return self._remove(gone)

    @staticmethod
    def _check_near(iterator: Any) -> None:
        """Something is behind too much that was removed: nothing that was left there is looked for."""
        try:
            iterator.status()
        except Exception as error:  # noqa: BLE001 - the binding raises bare exceptions
            if not str(error).startswith("Result incomplete"):
                raise _failure("rows cannot be read", error) from None

    def forget(self, family: str, before: int, low: bytes = b"", high: bytes | None = None) -> int:
        snapshot = self.snapshot()
        found = forgettable(snapshot.versions(family, low, high), before)
        gone = [_stored(family, v.key, v.time) for v in found]
        snapshot.close()
        return self._remove(gone)

    def truncate(self, family: str, until: int) -> int:
        prefix, bound, count = _prefix(family), (LAST_TIME - until).to_bytes(8, "big"), 0
        at, gone = self._db.iter(), list[bytes]()
        at.seek(prefix)
        while (stored := at.key()) is not None and stored.startswith(prefix):
            if stored[-8:] >= bound:
                gone.append(stored)
            if len(gone) == _TOGETHER:
                count += self._remove(gone)
                gone.clear()
            at.next()
        if stored is None:
            with _named("rows cannot be read"):
                at.status()
        return count + self._remove(gone)

    def _remove(self, gone: list[bytes]) -> int:
        together = self._rocks.WriteBatch(raw_mode=True)
        for one in gone:
            together.delete(one)
        if gone:
            with _named("versions cannot be removed"):
                self._db.write(together)
        return len(gone)

    def close(self) -> None:
        """Give the directory back.

        Raises:
            StorageError: a snapshot is open, with which RocksDB would keep the directory without a word.
        """
        if self._views:
            raise StorageError(
                f"{counted(self._views, 'snapshot')} still open", help="close them before the store"
            )
        self._db.close()


@lru_cache(maxsize=1)
def _env() -> Any:
    """The threads that merge files, of all stores of a process: whoever is served goes first."""
    env: Any = import_module("rocksdict").Env()
    env.lower_thread_pool_cpu_priority()
    env.lower_thread_pool_io_priority()
    return env


class RocksLoad:
    """A file with the versions in the order of their keys, which becomes one of the store's own."""

    def __init__(self, rocksdict: Any, db: Any, path: Path, family: str, time: int) -> None:
        self._rocks = rocksdict
        self._db = db
        self._path = path
        self._prefix = _prefix(family)
        self._end = _END + (LAST_TIME - time).to_bytes(8, "big")
        self._file: Any = None

    @property
    def path(self) -> str:
        return str(self._path)

    def add(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        if not keys:
            return
        with _named("a file of rows cannot be written"):
            file = self._file = self._file or self._begun()
            prefix, end = self._prefix, self._end
            for key, value in zip(keys, values, strict=True):
                file[prefix + key.replace(b"\0", b"\0\xff") + end] = b"+" + value

    def _begun(self) -> Any:
        self._path.unlink(missing_ok=True)  # another process did not end it
        options = self._rocks.Options(raw_mode=True)
        options.set_compression_type(self._rocks.DBCompressionType.none())
        file = self._rocks.SstFileWriter(options)
        file.open(self.path)
        return file

    def finish(self) -> None:
        options = self._rocks.IngestExternalFileOptions()
        options.set_move_files(True)
        with _named("a file of rows cannot be put in"):
            if self._file is not None:
                self._file.finish()
            if self._path.exists():
                self._db.flush(True)  # what would be in the way: writers do not wait for that
                self._db.ingest_external_file([self.path], options)

    def abandon(self) -> None:
        self._file = None
        self._path.unlink(missing_ok=True)


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
            if _is_past(stored, prefix, end):
                self._check()
                break
            rows.append((stored, self._at.value()))
            self._at.next()
        return rows

    def newest(self, family: str, low: bytes, high: bytes | None) -> Iterator[Version]:
        prefix = _prefix(family)
        end = None if high is None else prefix + _escaped(high)
        start: bytes | None = prefix + _escaped(low)
        while start is not None:
            page, start = self._newest_page(start, prefix, end)
            for stored, value in page:
                yield _version(stored, value, len(prefix))

    def _newest_page(
        self, start: bytes, prefix: bytes, end: bytes | None
    ) -> tuple[list[tuple[bytes, bytes]], bytes | None]:
        """Some of them, and where the next one is; a few older versions are stepped over, many are skipped."""
        rows: list[tuple[bytes, bytes]] = []
        key, older = b"", 0
        self._at.seek(start)
        while True:
            stored = self._at.key()
            if _is_past(stored, prefix, end):
                self._check()
                return rows, None
            if stored[:-8] != key:
                if len(rows) == _PAGE:
                    return rows, stored
                key, older = stored[:-8], 0
                rows.append((stored, self._at.value()))
            else:
                older += 1
            if older < _STEPS:
                self._at.next()
            else:
                self._at.seek(key + _OLDEST + b"\0")

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


def _is_past(stored: bytes | None, prefix: bytes, end: bytes | None) -> bool:
    """Whether an iterator is behind a family, or a part of it."""
    return stored is None or not stored.startswith(prefix) or (end is not None and stored >= end)


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


def _plain(escaped: bytes) -> bytes:
    return escaped.replace(b"\0\xff", b"\0")


def _stored(family: str, key: bytes, time: int) -> bytes:
    return _prefix(family) + _escaped(key) + _END + (LAST_TIME - time).to_bytes(8, "big")


class _Found:
    """Keys and values of a page as they are stored: of each key the newest version at a bound, unless a tombstone."""

    def __init__(self, prefix: bytes, bound: bytes) -> None:
        self.keys: list[bytes] = []
        self.values: list[bytes] = []
        self._prefix = prefix
        self._bound = bound
        self._last: bytes | None = None  # a key may be empty

    def add(self, pairs: list[tuple[bytes, bytes]]) -> None:
        """What comes next in the store."""
        if not pairs or not self._add_all(pairs):
            self._add_some(pairs)

    def _add_all(self, pairs: list[tuple[bytes, bytes]]) -> bool:
        """Mostly all of them are of the page, which is found out by a few calls for all of them."""
        stored, skip = [key for key, _ in pairs], len(self._prefix)
        if stored[-1][:skip] != self._prefix or min([s[-8:] for s in stored]) < self._bound:
            return False
        keys, values = [s[skip:-10] for s in stored], [value for _, value in pairs]
        if len({*keys}) < len(keys) or keys[0] == self._last or max(values)[0] != _LIVE:
            return False
        self.keys += keys
        self.values += values
        self._last = keys[-1]
        return True

    def _add_some(self, pairs: list[tuple[bytes, bytes]]) -> None:
        skip = len(self._prefix)
        for stored, value in pairs:
            if stored[:skip] != self._prefix:
                return
            key = stored[skip:-10]
            if stored[-8:] >= self._bound and key != self._last:
                self._last = key
                if value[0] == _LIVE:
                    self.keys.append(key)
                    self.values.append(value)


def _version(stored: bytes, value: bytes, skip: int) -> Version:
    key = _plain(stored[skip:-10])
    time = LAST_TIME - int.from_bytes(stored[-8:], "big")
    return Version(key, time, value[1:] if value[:1] == b"+" else None)

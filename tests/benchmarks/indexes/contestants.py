"""Who builds an index: this database in processes, PostgreSQL's CREATE INDEX CONCURRENTLY, SQLite's CREATE INDEX."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import numpy as np
from tests.benchmarks.indexes.writers import Update
from tests.benchmarks.processes.__main__ import cpu_of_tree

from stagewright.impl.indexes.messages import Build
from stagewright.impl.indexes.processes.layout import REAL, IndexLayout
from stagewright.impl.indexes.processes.supervisor import IndexSupervisor
from stagewright.impl.indexes.schema import row_key, table_tablet, tablet_of
from stagewright.impl.indexes.tablet import ROWS
from stagewright.impl.storage.port import Put, Version
from stagewright.impl.storage.rocks import RocksRows
from stagewright.machines.yugabytedb.indexes.index_states import Status

POSTGRES = Path("/usr/lib/postgresql")
TABLETS = 2


def values_of(rows: int) -> Iterator[tuple[int, int]]:
    """Keys, and values in no order, no two of which are the same."""
    chance = np.random.default_rng(1)
    for key, value in enumerate(chance.permutation(rows)):
        yield key, int(value)


class Contestant(Protocol):
    """A table of so many rows that is written to and indexed."""

    name: str

    def connect(self) -> Update:
        """A connection that updates rows."""
        ...

    def build(self, *, unique: bool) -> None:
        """Build an index of all rows."""
        ...

    def drop(self) -> None:
        """Drop it."""
        ...

    def cpu(self) -> float:
        """CPU seconds so far of all its processes; its clients are not among them."""
        ...

    def roots(self) -> list[int]:
        """Its processes, but for those that descend from them."""
        ...

    def close(self) -> None:
        """End its processes."""
        ...


class Stagewright:
    """Two tablet servers and a master, with the rows put into their stores before they start."""

    def __init__(self, directory: Path, rows: int, share: int = REAL.builder_share) -> None:
        is_usual = share == REAL.builder_share
        self.name = "stagewright" if is_usual else f"stagewright, builders' share {share} %"
        self._supervisor = IndexSupervisor(IndexLayout(directory / f"share{share}"))
        settings = replace(REAL, tablets=TABLETS, builder_share=share)
        self._supervisor.create(2, settings, masters=1)
        stores = dict[int, RocksRows]()
        for tablet in range(TABLETS):
            self._supervisor.layout.add_tablet(table_tablet(tablet))
            path = self._supervisor.layout.tablet(table_tablet(tablet)) / "rows"
            stores[tablet] = RocksRows(path)
        batches: dict[int, list[Put]] = {tablet: [] for tablet in stores}
        for key, value in values_of(rows):
            tablet = tablet_of(row_key(key), TABLETS)
            stored = json.dumps({"v": value, "w": key % 10}).encode()
            batches[tablet].append(Put(ROWS, Version(row_key(key), 1, stored)))
            if len(batches[tablet]) == 10_000:
                stores[tablet].write(batches[tablet])
                batches[tablet] = []
        for tablet, store in stores.items():
            store.write(batches[tablet])
            store.sync()
            store.close()
        self._supervisor.start()
        self._wait_for_builders()
        self._client = self._supervisor.client(600)
        self._number = 0

    def _wait_for_builders(self) -> None:
        """What they load when they start is the servers' start, not the updates' or a build's."""
        before = -1.0
        while self.cpu() - before > 0.1:
            before = self.cpu()
            time.sleep(2)

    def connect(self) -> Update:
        """A client of its own."""
        client = self._supervisor.client(120)

        def update(key: int, value: int) -> None:
            found = client.write({key: {"v": value, "w": key % 10}})
            if found.time is None:
                raise RuntimeError(found.refused)

        return update

    def build(self, *, unique: bool) -> None:
        """CREATE INDEX, and wait."""
        self._number += 1
        self._client.create(f"i{self._number}", "v", unique=unique)
        while (build := self._build()).status in (None, Status.in_progress):
            time.sleep(0.05)
        if build.error:
            raise RuntimeError(build.error)

    def _build(self) -> Build:
        return next(b for b in self._client.builds() if b.name == f"i{self._number}")

    def drop(self) -> None:
        """DROP INDEX, and wait."""
        self._client.drop(f"i{self._number}")
        while not self._build().dropped:
            time.sleep(0.05)

    def split(self, tablet: int) -> tuple[int, ...]:
        """Have a tablet split, and wait until its children are those of the map."""
        children = self._client.split(tablet)
        while not {*children} <= {*self._client.tablets().numbers}:
            time.sleep(0.02)
        return children

    def cpu(self) -> float:
        """Of its servers, masters, and builders."""
        return sum(map(cpu_of_tree, self.roots()))

    def roots(self) -> list[int]:
        """Servers and masters."""
        running = [self._supervisor.running(n) for n in self._supervisor.names]
        return [p for p in running if p is not None]

    def close(self) -> None:
        """Stop."""
        self._client.close()
        self._supervisor.stop()


class Psql:
    """A session of PostgreSQL, by its own client: what is written to it, and a line back when that is done."""

    def __init__(self, words: list[str]) -> None:
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def run(self, statement: str) -> list[str]:
        """Its rows.

        Raises:
            RuntimeError: the session has ended.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{statement}\n\\echo done\n")
        self._process.stdin.flush()
        found: list[str] = []
        for line in self._process.stdout:
            if line == "done\n":
                return found
            found.append(line.rstrip("\n"))
        raise RuntimeError(f"psql has ended at: {statement}")

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


class Postgres:
    """A server of its own, as Debian sets it up, with one process for a build."""

    name = "PostgreSQL, CONCURRENTLY"

    def __init__(self, directory: Path, rows: int) -> None:
        self._bin = max(POSTGRES.glob("*/bin"))
        self._home = directory / "postgres"
        self._home.mkdir()
        self._as = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        if self._as:
            shutil.chown(self._home, "postgres")
            directory.chmod(0o755)
        data = str(self._home / "data")
        self._run(str(self._bin / "initdb"), "-D", data, "-A", "trust", "-U", "postgres")
        options = f"-c listen_addresses= -k {self._home} -c max_parallel_maintenance_workers=0"
        log = str(self._home / "log")
        self._run(str(self._bin / "pg_ctl"), "-D", data, "-w", "-l", log, "-o", options, "start")
        self._sessions: list[Psql] = []
        self._builder = self._session()
        self._builder.run("create table t (k bigint primary key, v bigint, w bigint);")
        listing = self._home / "rows"
        listing.write_text("".join(f"{k}\t{v}\t{k % 10}\n" for k, v in values_of(rows)), "ascii")
        self._builder.run(f"\\copy t from '{listing}'")
        self._builder.run("vacuum analyze t;")
        self._builder.run("checkpoint;")

    def _run(self, *words: str) -> None:
        subprocess.run([*self._as, *words], check=True, capture_output=True, cwd=self._home)

    def _session(self) -> Psql:
        words = [
            "-h",
            str(self._home),
            "-U",
            "postgres",
            "-qAtX",
            "-v",
            "ON_ERROR_STOP=1",
            "postgres",
        ]
        session = Psql([*self._as, str(self._bin / "psql"), *words])
        self._sessions.append(session)
        return session

    def connect(self) -> Update:
        """A session of its own."""
        session = self._session()

        def update(key: int, value: int) -> None:
            session.run(f"update t set v = {value} where k = {key};")

        return update

    def build(self, *, unique: bool) -> None:
        """CREATE INDEX CONCURRENTLY."""
        kind = "unique index" if unique else "index"
        self._builder.run(f"create {kind} concurrently i on t (v);")

    def drop(self) -> None:
        """DROP INDEX."""
        self._builder.run("drop index i;")

    def cpu(self) -> float:
        """Of the server: sessions, the writers of its pages and of its log, checkpoints."""
        return sum(map(cpu_of_tree, self.roots()))

    def roots(self) -> list[int]:
        """The postmaster."""
        first = (self._home / "data" / "postmaster.pid").read_text("ascii").splitlines()[0]
        return [int(first)]

    def close(self) -> None:
        """Stop."""
        for session in self._sessions:
            session.close()
        data = str(self._home / "data")
        self._run(str(self._bin / "pg_ctl"), "-D", data, "-m", "immediate", "stop")


class Sqlite:
    """One file with a write-ahead log; CREATE INDEX lets nobody write."""

    name = "SQLite"

    def __init__(self, directory: Path, rows: int) -> None:
        self._path = directory / "sqlite"
        self._used = 0.0
        base = self._open()
        base.execute("create table t (k integer primary key, v integer, w integer)")
        with base:
            base.execute("begin")
            base.executemany(
                "insert into t values (?, ?, ?)", ((k, v, k % 10) for k, v in values_of(rows))
            )

    def _open(self) -> sqlite3.Connection:
        base = sqlite3.connect(self._path, 600, isolation_level=None, check_same_thread=False)
        base.execute("pragma journal_mode = wal")
        base.execute("pragma synchronous = full")
        return base

    def connect(self) -> Update:
        """A connection of its own."""
        base = self._open()

        def update(key: int, value: int) -> None:
            base.execute("update t set v = ? where k = ?", (value, key))

        return update

    def build(self, *, unique: bool) -> None:
        """In a process of its own."""
        kind = "unique index" if unique else "index"
        script = f"create {kind} i on t (v);"
        code = (
            "import resource, sqlite3, sys\n"
            "base = sqlite3.connect(sys.argv[1], 600, isolation_level=None)\n"
            "base.execute(sys.argv[2])\n"
            "used = resource.getrusage(resource.RUSAGE_SELF)\n"
            "print(used.ru_utime + used.ru_stime)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, str(self._path), script],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        self._used += float(done.stdout)

    def drop(self) -> None:
        """DROP INDEX."""
        self._open().execute("drop index i")

    def cpu(self) -> float:
        """Of builds: it has no server, what updates cost is their clients'."""
        return self._used

    def roots(self) -> list[int]:
        """The last build's is gone: its memory is not looked at."""
        return []

    def close(self) -> None:
        """Nothing runs."""


def contestants(
    directory: Path, rows: int, chosen: set[str], shares: list[int]
) -> Iterator[Contestant]:
    """Those that are here, each when the one before it has ended."""
    for kind in (Stagewright, Postgres, Sqlite):
        if chosen and kind.__name__.lower() not in chosen:
            continue
        if kind is Stagewright:
            yield from (Stagewright(directory, rows, share) for share in shares)
            continue
        if kind is Postgres and not any(POSTGRES.glob("*/bin")):
            print(f"skipped: there is no PostgreSQL in {POSTGRES}")
            continue
        yield kind(directory, rows)

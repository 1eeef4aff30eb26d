"""A consumer in a process of its own, killed as nodes are, has each acknowledged change once and in order."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random
from threading import Event, Thread

import pytest

pytest.importorskip("msgspec")
pytest.importorskip("rocksdict")

from tests.impl.processes.clusters import cluster
from tests.patience import PATIENCE

from stagewright.impl.cdc.consumer import Consumer, ExpiredError, Position
from stagewright.impl.endurance.writers import kills
from stagewright.impl.node.messages.tables import Resize
from stagewright.impl.processes.client import Session
from stagewright.impl.processes.errors import ClusterError
from stagewright.impl.processes.layout import REAL, Settings
from stagewright.impl.processes.supervisor import Supervisor

TIMING = replace(REAL, horizon=4_000, request=1_000, leeway=2_000, ring_delay=1_500)
TABLE = "ks.t"
ROOT = Path(__file__).parents[3]
Seen = list[tuple[bytes, int, bytes | None]]


class Client(Thread):
    """Writes, and knows what was acknowledged, and what was sent at all."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.acknowledged: set[tuple[bytes, int]] = set()
        self.values: set[bytes | None] = {None}
        self.unsure = set[bytes]()  # keys of which the last write may be there or not
        self.stop = Event()
        self._session = session

    def run(self) -> None:
        chance, count = Random(7), 0
        while not self.stop.is_set():
            count += 1
            key = b"k%d" % chance.randrange(20)
            value = None if chance.random() < 0.1 else b"%d" % count
            self.values.add(value)
            self.unsure.add(key)
            try:
                self.acknowledged.add((key, self._session.put(key, value)))
            except ClusterError:
                continue
            self.unsure.discard(key)
            time.sleep(0.01)
        self._session.close()


def consumer(supervisor: Supervisor, database: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.impl.processes.following"]
    words = [str(supervisor.layout.directory), TABLE, str(database)]
    return subprocess.Popen([*command, *words], cwd=ROOT)


def seen(database: Path) -> tuple[Seen, int]:
    """What the consumer has made of the log, in its order, and up to where it has read."""
    with closing(sqlite3.connect(database, timeout=30)) as own:
        rows: Seen = own.execute("SELECT key, time, value FROM changes ORDER BY place").fetchall()
        kept = own.execute("SELECT text FROM position").fetchone()
    return rows, 0 if kept is None else Position.from_json(kept[0]).read


def follow_through_kills(directory: Path, rounds: int) -> None:
    chance, database = Random(rounds), directory / "changes.db"
    with (
        cluster(directory / "c", 3, Settings(timing=TIMING)) as supervisor,
        closing(supervisor.session(TABLE, waits=True)) as operator,
    ):
        operator.create(TABLE, 3, 2, cdc=True)
        client = Client(supervisor.session(TABLE, waits=True))
        client.start()
        reading = consumer(supervisor, database)
        try:
            for number in range(rounds):
                kills(supervisor, chance, 1)
                if number % 2 == 0:
                    reading.kill()
                    reading.wait()
                    reading = consumer(supervisor, database)
                if number % 5 == 1:
                    operator.resize(TABLE, (Resize.split, Resize.merge)[number % 2])
                time.sleep(chance.random())
            client.stop.set()
            client.join(PATIENCE)
            newest = max(time for _, time in client.acknowledged)
            until = time.monotonic() + PATIENCE
            while not database.exists() or seen(database)[1] <= newest:
                assert time.monotonic() < until, "the consumer does not come to the end"
                assert reading.poll() is None, "the consumer has ended"
                time.sleep(0.3)
            table = dict(operator.scan())
        finally:
            client.stop.set()
            reading.kill()
            reading.wait()
    rows, _ = seen(database)
    assert len({(key, time) for key, time, _ in rows}) == len(rows), "a change was read twice"
    assert [time for _, time, _ in rows] == sorted(time for _, time, _ in rows)
    assert client.acknowledged <= {(key, time) for key, time, _ in rows}
    made = {key: value for key, _, value in rows}  # a table of the consumer's own
    assert not {
        k: (v, table.get(k))
        for k, v in made.items()
        if k not in client.unsure and v != table.get(k)
    }
    assert {value for _, _, value in rows} <= client.values
    assert len(client.acknowledged) > 10 * rounds


@pytest.mark.long
def test_a_consumer_that_is_killed_with_nodes_has_each_change_once(tmp_path: Path) -> None:
    follow_through_kills(tmp_path, 2)


def test_who_is_slower_than_changes_expire_is_told_so(tmp_path: Path) -> None:
    timing = replace(REAL, horizon=400, request=600, leeway=400)
    with (
        cluster(tmp_path / "c", 2, Settings(timing=timing)) as supervisor,
        closing(supervisor.session(TABLE)) as session,
    ):
        with pytest.raises(ClusterError, match=r"at least 2 s, not for 1\.999 s") as refused:
            session.create(TABLE, 2, 2, cdc=True, ttl=1999)
        assert refused.value.help == "write a ttl of 2 or more, or none"
        session.create(TABLE, 2, 2, cdc=True, ttl=2000)
        written = session.put(b"a", b"1")
        first = session.generations()[0]
        until = time.monotonic() + PATIENCE
        while session.changes(first.streams, 0, written + 1):
            assert time.monotonic() < until, "the change does not expire"
            time.sleep(0.2)
        behind = Consumer(
            session, lambda: time.time_ns() // 1000, 2_000_000, Position(first.start, 0)
        )
        with pytest.raises(ExpiredError, match="have expired"):
            behind.poll()
        assert behind.position == Position(first.start, 0)


@pytest.mark.thorough
def test_a_consumer_lives_through_many_kills_and_resizes(tmp_path: Path) -> None:
    follow_through_kills(tmp_path, 40)

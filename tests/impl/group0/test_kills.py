"""Real processes that are killed with `kill -9` amid commits lose none that was answered."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.impl.group0.ports import NO_ETCD
from tests.patience import PATIENCE

from stagewright.impl.group0 import Group0, StateId
from stagewright.impl.group0.etcd import EtcdGroup0
from stagewright.impl.group0.etcd_process import EtcdCluster, find_etcd
from stagewright.impl.group0.gateway import Gateway
from stagewright.impl.group0.sqlite import SqliteGroup0

WRITER = Path(__file__).with_name("writer.py")
SOURCES = Path(__file__).resolve().parents[3] / "src"


def writer(place: str, node: int, directory: Path) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-P", str(WRITER), place, str(node), str(directory / f"n{node}")]
    return subprocess.Popen(words, env={**os.environ, "PYTHONPATH": str(SOURCES)})


def answered(directory: Path) -> list[StateId]:
    return [
        StateId.parse(line)
        for file in directory.glob("n[0-9]")
        for line in file.read_text(encoding="utf-8").splitlines()
    ]


def wait_for(directory: Path, more: int, patience: float = PATIENCE) -> None:
    """Until so many more commits were answered."""
    wanted, deadline = len(answered(directory)) + more, time.monotonic() + patience
    while len(answered(directory)) < wanted:
        assert time.monotonic() < deadline, "nothing is committed any more"
        time.sleep(0.01)


def assert_nothing_is_lost(port: Group0, directory: Path) -> None:
    async def log() -> list[StateId]:
        entries = (await port.read()).entries
        await port.close()
        return [e.id for e in entries]

    states, said = asyncio.run(log()), answered(directory)
    assert [s.position for s in states] == list(range(1, len(states) + 1))
    assert len(set(said)) == len(said)
    assert set(said) <= set(states)


def test_writers_of_one_file_are_killed(tmp_path: Path) -> None:
    rng = random.Random(1)
    place = str(tmp_path / "group0.db")
    writers = [writer(place, n, tmp_path) for n in range(3)]
    try:
        for _ in range(6):
            wait_for(tmp_path, rng.randint(1, 40))
            victim = rng.randrange(3)
            writers[victim].kill()
            writers[victim].wait()
            writers[victim] = writer(place, victim, tmp_path)
        wait_for(tmp_path, 30)
    finally:
        for one in writers:
            one.kill()
            one.wait()
    assert_nothing_is_lost(SqliteGroup0(Path(place)), tmp_path)


@pytest.mark.slow
@pytest.mark.long
def test_members_of_etcd_are_killed_the_leader_among_them(tmp_path: Path) -> None:
    if find_etcd() is None:
        pytest.skip(NO_ETCD)
    with EtcdCluster(tmp_path / "etcd", size=3) as cluster:
        writers = [writer(",".join(cluster.endpoints), n, tmp_path) for n in range(2)]
        try:
            for number in range(4):
                wait_for(tmp_path, 10)
                leader = cluster.leader()
                victim = leader if number % 2 == 0 and leader is not None else number % 3
                cluster.kill(victim, signal.SIGKILL)
                wait_for(tmp_path, 5)  # two of three go on
                cluster.start(victim)
                cluster.wait_until_ready(victim)
            wait_for(tmp_path, 10)
        finally:
            for one in writers:
                one.kill()
                one.wait()
        assert_nothing_is_lost(EtcdGroup0(Gateway(cluster.endpoints)), tmp_path)

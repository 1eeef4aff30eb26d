"""Indexes in real processes: built while clients write and processes are killed, refused, deferred, dropped."""

from __future__ import annotations

import re
import time
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("msgspec")
pytest.importorskip("rocksdict")

from tests.impl.indexes.processes.clusters import all_is_well, cluster
from tests.impl.indexes.slices import ARE_GIVEN, slice_of
from tests.patience import PATIENCE

from stagewright.commands import run_command_line
from stagewright.commands.campaigning.logs import YUGABYTE, check_logs
from stagewright.impl.endurance.index_builds import (
    KEPT,
    endure,
    filled,
    is_over,
    kill_builders,
    leader,
    until,
    writing,
)
from stagewright.impl.endurance.index_rows import Held
from stagewright.impl.endurance.index_writers import ended
from stagewright.impl.indexes.bulk.slices import SHORT
from stagewright.impl.indexes.processes.layout import MASTER
from stagewright.impl.processes.errors import ClusterError, WireError
from stagewright.machines.yugabytedb.indexes.index_states import Status
from stagewright.spec.errors import InputError


@pytest.mark.long
def test_a_build_survives_the_death_of_a_tablet_server_and_of_the_master(tmp_path: Path) -> None:
    with cluster(tmp_path / "c", rows_per_second=30) as supervisor:
        first, client = filled(supervisor), supervisor.client(PATIENCE)
        writers = writing(supervisor, range(1, 3))
        assert client.create("i", "v", unique=True).name == "i"
        client.create("i", "v", unique=True)  # which is the same index
        scanned = until(client, "i", lambda b: b.rows > 0 or is_over(b))
        if not is_over(scanned):
            assert scanned.expected >= len(KEPT)
        supervisor.kill(leader(supervisor, "table/0"))
        until(client, "i", lambda b: b.rows > scanned.rows or is_over(b))
        supervisor.kill(leader(supervisor, MASTER))
        supervisor.start()
        assert until(client, "i", is_over).status is Status.success
        assert [b.name for b in client.builds()] == ["i"]
        assert client.look_up("i", 7).rows == (7,)
        twice = client.write({7_000: {"v": 7}})
        assert (twice.time, twice.refused) == (None, "duplicate")
        ended(writers)
        all_is_well(supervisor, first, writers)


@pytest.mark.thorough
def test_a_build_survives_the_deaths_of_its_builders(tmp_path: Path) -> None:
    with cluster(tmp_path / "c", rows_per_second=0, batch=40, chunk_rows=40, bulk=1) as supervisor:
        first, client = filled(supervisor), supervisor.client(PATIENCE)
        writers = writing(supervisor, range(1, 3))
        for name in ("i", "u"):
            client.create(name, "v", unique=name == "u")
            until(client, name, lambda b: b.rows > 0 or is_over(b))
            killed = kill_builders(supervisor)
            assert until(client, name, is_over).status is Status.success
            assert killed > 0
        all_is_well(supervisor, first, writers)


@pytest.mark.long
def test_builds_are_refused_deferred_dropped_and_read_at_a_chosen_time(tmp_path: Path) -> None:
    with cluster(tmp_path / "c", rows_per_second=0, batch=50, chunk_rows=100, bulk=1) as supervisor:
        first, client = filled(supervisor), supervisor.client(PATIENCE)
        client.create("u", "w", unique=True)
        failed = until(client, "u", is_over)
        assert failed.status is Status.failed
        assert " both have w = " in failed.error
        assert client.create("d", "w", deferred=True).waits
        client.create("i", "v")
        assert until(client, "i", is_over).status is Status.success
        until(client, "d", is_over)  # of one scan, as it waited
        before = client.write({5: {"v": 50_000, "w": 1}})
        assert before.time is not None
        first.committed[before.time] = {5: {"v": 50_000, "w": 1}}
        assert client.look_up("i", 50_000).rows == (5,)
        assert client.look_up("i", 5).rows == ()
        assert client.look_up("i", 5, before.time - 1).rows == (5,)
        assert client.get(5, before.time - 1) == KEPT[5]
        assert dict(client.scan(before.time - 1)) == KEPT
        with pytest.raises(InputError, match="i has nothing from before"):
            client.look_up("i", 5, 1)
        with pytest.raises(ClusterError, match="u has failed: rows "):
            client.look_up("u", 5)
        client.drop("i")
        assert until(client, "i", lambda b: b.gone).status is Status.success
        assert client.create("e", "v", deferred=True).waits
        client.backfill()
        assert until(client, "e", is_over).status is Status.success
        deadline = time.monotonic() + PATIENCE
        while any(p.startswith("index0/") for p in supervisor.layout.places()):
            assert time.monotonic() < deadline  # the files of an index go with it
            time.sleep(0.05)
        all_is_well(supervisor, first, [])


def test_what_cannot_be_asked_is_refused_and_harms_nobody(tmp_path: Path) -> None:
    with cluster(tmp_path / "c") as supervisor:
        client = supervisor.client(PATIENCE)
        for process in filter(None, map(supervisor.running, supervisor.names)):
            assert slice_of(process) == SHORT or not ARE_GIVEN  # clients wait for it
        for changes in ({1 << 63: {"v": 1}}, {1: {"z": 1}}, {1: {"v": -(1 << 63)}}, {}):
            with pytest.raises(WireError):
                client.write(changes)
        for ask in (
            lambda: client.create("no name", "v"),
            lambda: client.create("i", "z"),
            lambda: client.look_up("i", 1 << 63),
            lambda: client.look_up("i", 1, 1 << 62),
        ):
            with pytest.raises(WireError):
                ask()
        assert client.drop("none").status is None
        assert client.write({1: {"v": 1}}).time is not None
        assert supervisor.status().is_well


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("entries_are_written_now", "i at .* without an entry"),
        pytest.param("only_the_first_page", "i at .* without an entry", marks=pytest.mark.thorough),
        pytest.param(
            "no_check_backwards", "u SUCCEEDED; at .* rows .* had ", marks=pytest.mark.thorough
        ),
    ],
)
def test_what_is_stored_shows_that_processes_are_built_wrongly(
    tmp_path: Path, wrong: str, said: str
) -> None:
    with cluster(tmp_path / "c", wrong, rows_per_second=0, batch=50) as supervisor:
        filled(supervisor)
        client = supervisor.client(PATIENCE)
        client.create("i", "v")
        until(client, "i", is_over)
        client.create("u", "w", unique=True)
        until(client, "u", is_over)
        client.close()
        supervisor.stop()
        found = Held(supervisor.layout).breaches()
    assert any(re.search(said, one) for one in found), found


def test_the_logs_in_the_directory_show_that_processes_are_built_wrongly(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong, directory = "tablets_have_times_of_their_own", tmp_path / "c"
    with cluster(directory, wrong, rows_per_second=0) as supervisor:
        filled(supervisor)
        client = supervisor.client(PATIENCE)
        client.create("i", "v")
        until(client, "i", is_over)
        client.close()
    assert run_command_line(["validate", str(directory), "--engine", "embedded"]) == 1
    assert "no other time is chosen for the job" in capsys.readouterr().out


@pytest.mark.thorough
@pytest.mark.timeout(5400)
def test_thirty_builds_survive_kills_of_random_processes(tmp_path: Path) -> None:
    done = Counter[str]()
    endure(tmp_path, 10, 16, done, 4_000, lambda logs: check_logs(logs, YUGABYTE)[1])
    assert done["kills"] >= 30
    assert min(done["plain: SUCCESS"], done["unique: FAILED"], done["tablets split"]) > 0

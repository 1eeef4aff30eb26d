"""Tablets of an indexed table split in real processes, while clients write and the processes that do it are killed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

pytest.importorskip("msgspec")
pytest.importorskip("rocksdict")

from tests.impl.indexes.processes.clusters import all_is_well, cluster
from tests.patience import PATIENCE

from stagewright.impl.endurance.index_builds import KEPT, filled, is_over, leader, until, writing
from stagewright.impl.endurance.index_writers import ended
from stagewright.impl.indexes.processes.client import IndexClient
from stagewright.impl.indexes.processes.layout import MASTER
from stagewright.impl.processes.errors import ClusterError
from stagewright.machines.yugabytedb.indexes.index_states import Status
from stagewright.spec.errors import InputError


def split(client: IndexClient, tablet: int, index: str = "") -> tuple[int, ...]:
    """Have a tablet split, and wait until its children serve; refusals are for now."""
    end, children = time.monotonic() + PATIENCE, tuple[int, ...]()
    while not children:
        try:
            children = client.split(tablet, index)
        except ClusterError:
            assert time.monotonic() < end
            time.sleep(0.1)
    while not {*children} <= {*client.tablets(index).numbers}:
        assert time.monotonic() < end
        time.sleep(0.05)
    return children


@pytest.mark.long
def test_tablets_split_while_clients_write_and_leaders_die(tmp_path: Path) -> None:
    with cluster(tmp_path / "c", rows_per_second=0, batch=50, chunk_rows=100) as supervisor:
        first, client, stale = (
            filled(supervisor),
            supervisor.client(PATIENCE),
            supervisor.client(PATIENCE),
        )
        written = dict(client.scan())
        then = client.write({70_000: {"v": 70_000, "w": 1}}).time
        assert then is not None
        first.committed[then] = {70_000: {"v": 70_000, "w": 1}}
        writers = writing(supervisor, range(1, 3))
        assert split(client, 0) == (3, 4)
        with pytest.raises(InputError, match="there is no tablet 99"):
            client.split(99)
        client.split(1)
        supervisor.kill(leader(supervisor, "table/1"))
        supervisor.kill(leader(supervisor, MASTER))
        supervisor.start()
        assert split(client, 1) == (5, 6)
        client.create("i", "v", unique=True)
        assert until(client, "i", is_over).status is Status.success
        assert split(client, 5) == (7, 8)
        assert {*client.tablets().numbers} == {3, 4, 2, 6, 7, 8}
        assert [
            k for k in KEPT if stale.get(k, at=then) != written[k]
        ] == []  # a read from before the splits
        assert {k: dict(v) for k, v in stale.scan(then)} == {
            **written,
            70_000: {"v": 70_000, "w": 1},
        }
        assert client.look_up("i", 70_000).rows == (70_000,)
        ended(writers)
        all_is_well(supervisor, first, writers)


@pytest.mark.long
def test_tablets_of_an_index_split_while_it_is_built_and_leaders_die(tmp_path: Path) -> None:
    with cluster(tmp_path / "c", rows_per_second=30, batch=20, chunk_rows=40) as supervisor:
        first, client = filled(supervisor), supervisor.client(PATIENCE)
        with pytest.raises(InputError, match="there is no index i"):
            client.split(0, "i")
        writers = writing(supervisor, range(1, 3))
        client.create("i", "v", unique=True)
        until(client, "i", lambda build: build.rows > 0)
        assert split(client, 0, "i") == (3, 4)
        client.split(1, "i")
        supervisor.kill(leader(supervisor, "index0/1"))
        supervisor.kill(leader(supervisor, MASTER))
        supervisor.start()
        assert split(client, 1, "i") == (5, 6)
        assert until(client, "i", is_over).status is Status.success
        assert split(client, 5, "i") == (7, 8)
        assert {*client.tablets("i").numbers} == {3, 4, 2, 6, 7, 8}
        assert client.tablets().splits == ()
        assert [key for key in range(9) if client.look_up("i", key).rows != (key,)] == []
        ended(writers)
        all_is_well(supervisor, first, writers)

"""DROP TABLE in real processes: its rows leave the disks, also of a node that was down, and no later table has them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

pytest.importorskip("msgspec")
pytest.importorskip("rocksdict")

from tests.impl.processes.clusters import cluster
from tests.patience import PATIENCE

from stagewright.impl.cdc.rows import log_of
from stagewright.impl.processes.client import Session
from stagewright.impl.processes.errors import ClusterError
from stagewright.impl.processes.supervisor import Supervisor
from stagewright.impl.storage.rocks import RocksRows

T = "ks.t"


def filled(supervisor: Supervisor, tablets: int, *, cdc: bool = False) -> Session:
    session = supervisor.session(T)
    session.create(T, 3, tablets, cdc=cdc)
    for i in range(30):
        session.put(b"k%d" % i, b"%d" % i)
    return session


def families(supervisor: Supervisor, name: str) -> list[str]:
    """The tables and logs of T that a node, which does not run, has rows of."""
    rows = RocksRows(supervisor.layout.node(name) / "rows")
    snapshot = rows.snapshot()
    known = [T, log_of(T), f"{T}#2", log_of(f"{T}#2")]
    found = [f for f in known if next(snapshot.versions(f, b"", None), None) is not None]
    snapshot.close()
    rows.close()
    return found


@pytest.mark.long
@pytest.mark.parametrize("tablets", [4, 0])
def test_a_node_that_was_down_has_no_row_of_a_dropped_table_nor_has_the_next_one(
    tmp_path: Path, tablets: int
) -> None:
    with cluster(tmp_path / "c", 3) as supervisor:
        session = filled(supervisor, tablets, cdc=True)
        supervisor.kill("n3")
        assert families(supervisor, "n3") == [T, log_of(T)]
        session.drop_table(T)
        session.drop_table(T)  # which is done
        began = time.monotonic()
        for refused in (
            lambda: session.get(b"k1"),
            lambda: session.put(b"k1", b"x"),
            session.generations,
        ):
            with pytest.raises(ClusterError, match=r"there is no table ks\.t"):
                refused()
        assert time.monotonic() - began < PATIENCE
        supervisor.start()
        session.create(T, 2, 2, cdc=True)
        assert list(session.scan()) == []
        session.put(b"new", b"1")
        assert dict(session.scan()) == {b"new": b"1"}
        assert session.tables() == {"ks.rows": 3, T: 2, log_of(T): 2}
        session.close()
        supervisor.stop()
        for name in ("n1", "n2", "n3"):
            assert not {T, log_of(T)} & {*families(supervisor, name)}


@pytest.mark.long
def test_the_default_table_may_be_dropped_and_nodes_still_come_and_start(tmp_path: Path) -> None:
    with cluster(tmp_path / "c", 2) as supervisor:
        session = supervisor.session("ks.rows")
        session.put(b"a", b"1")
        session.drop_table("ks.rows")
        assert supervisor.add() == "n3"
        assert session.tables() == {}
        supervisor.kill("n1")
        supervisor.start(2)
        assert session.get(b"a") is None  # it is made anew
        session.close()

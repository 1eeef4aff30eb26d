"""What lies on the disks of nodes that were all killed: rows with their log rows, and with what a view has of them."""

from __future__ import annotations

import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

pytest.importorskip("msgspec")
pytest.importorskip("rocksdict")

from tests.impl.processes.clusters import cluster
from tests.patience import PATIENCE

from stagewright.impl.cdc.rows import change_of, log_of
from stagewright.impl.endurance.view_builds import KEPT, T, V, filled
from stagewright.impl.endurance.writers import Writer, writing
from stagewright.impl.node.keys import stored_key
from stagewright.impl.processes.errors import ClusterError
from stagewright.impl.processes.layout import Layout
from stagewright.impl.processes.supervisor import Supervisor
from stagewright.impl.simulator.database.checks.view_oracle import Expected, stored_row
from stagewright.impl.storage.port import Snapshot, live
from stagewright.impl.storage.rocks import RocksRows
from stagewright.impl.views.maintenance.hints import stored_hints

REPLICAS = 3


def all_killed(supervisor: Supervisor, writers: list[Writer]) -> None:
    """Every node ends without warning, then the clients give up."""
    for writer in writers:
        writer.stop.set()
    for name in supervisor.layout.names():
        if supervisor.running(name):
            supervisor.kill(name)
    for writer in writers:
        writer.join(120)


def alone(layout: Layout, table: str) -> list[str]:
    """Rows without their log rows, and log rows without their rows, on each node by itself."""
    found, rows_there = list[str](), 0
    for name in layout.names():
        with closing(RocksRows(layout.node(name) / "rows")) as rows:
            snapshot = rows.snapshot()
            base = {(v.key, v.time) for v in snapshot.versions(table, b"", None)}
            log = {_logged(v.key, v.value) for v in snapshot.versions(log_of(table), b"", None)}
            snapshot.close()
        found += [f"{name} has the row of {one} alone" for one in base - log]
        newest = dict(sorted(base))  # what it has replaced may be gone
        left = {(key, time) for key, time in log - base if time >= newest.get(key, 0)}
        found += [f"{name} has the log row of {one} alone" for one in left]
        rows_there += len(base)
    assert rows_there  # a node may have been away all the time
    return found


def _logged(key: bytes, value: bytes | None) -> tuple[bytes, int]:
    change = change_of(key, value or b"")
    return stored_key(change.key), change.timestamp


def died_while_writing(directory: Path, deaths: int, wrong: str = "") -> list[str]:
    """What `alone` finds when nodes have died right after a write, while clients wrote and did nothing else."""
    table = "ks.l"
    with cluster(directory / "c", 3, wrong=wrong, dies=(60, table)) as supervisor:
        operator = supervisor.session(table)
        operator.create(table, REPLICAS, 2, cdc=True)
        operator.close()
        writers = writing(supervisor, 2, table)
        until = time.monotonic() + PATIENCE
        while deaths > 0:
            assert time.monotonic() < until, "no node dies"
            time.sleep(0.05)
            deaths -= sum(not supervisor.running(n) for n in supervisor.layout.names())
            with suppress(ClusterError):  # another one dies while it waits
                supervisor.start()
        all_killed(supervisor, writers)
        return alone(supervisor.layout, table)


@pytest.mark.long
def test_a_node_that_dies_has_rows_with_their_log_rows_or_neither(tmp_path: Path) -> None:
    assert died_while_writing(tmp_path, 2) == []


@pytest.mark.thorough
def test_log_rows_that_are_stored_apart_from_their_rows_are_noticed(tmp_path: Path) -> None:
    found = died_while_writing(tmp_path, 4, "log_rows_are_stored_apart")
    assert any("alone" in one for one in found), found


def lacking(layout: Layout, view: str, expected: Expected, keys: set[bytes]) -> list[str]:
    """Rows that a quorum of the nodes neither has in a view nor has an update on its way of."""
    there, held = set[bytes](), list[tuple[dict[bytes, bytes], set[bytes]]]()
    for name in layout.names():
        with closing(RocksRows(layout.node(name) / "rows")) as rows:
            snapshot: Snapshot = rows.snapshot()
            there |= {v.key for v in live(snapshot, view)}
            base = {v.key: v.value or b"" for v in live(snapshot, T)}
            snapshot.close()
            held.append((base, {u.key for u in stored_hints(rows, T) if u.view == view}))
    found: list[str] = []
    for key in sorted(keys):
        stored, good = stored_key(key), 0
        for base, hints in held:
            wanted = expected.key(base[stored]) if stored in base else None
            good += wanted is not None and stored_row(wanted, stored) in there | hints
        if good < REPLICAS // 2 + 1:
            found.append(f"{view} is built, and {key!r} is in it, or on its way, at {good} nodes")
    return found


def lacking_when_built(directory: Path, wrong: str = "") -> list[str]:
    """What a view lacks of the rows that were acknowledged when it is said to be built."""
    with cluster(directory / "c", 3, wrong=wrong) as supervisor:
        session = filled(supervisor, 4)
        writers = writing(supervisor, 1, T)
        session.create_view(V, T, 7)
        before = set[bytes]()
        while True:
            time.sleep(0.05)
            before = {k for w in writers for k, p in list(w.acknowledged.items()) if None not in p}
            build = next((b for b in session.builds() if b.name == V), None)
            if build is not None and build.status == "SUCCESS":
                break
        session.close()
        all_killed(supervisor, writers)
        still = {k for w in writers for k, p in w.acknowledged.items() if None not in p}
        return lacking(supervisor.layout, V, Expected(T, 7), {*KEPT, *(before & still)})


@pytest.mark.thorough
def test_what_was_written_before_a_view_is_built_is_in_it_or_on_its_way(tmp_path: Path) -> None:
    assert lacking_when_built(tmp_path) == []


@pytest.mark.thorough
def test_a_view_that_is_called_built_without_its_rows_is_noticed(tmp_path: Path) -> None:
    found = lacking_when_built(tmp_path, "view_building_does_not_flush")
    assert any("ks.v is built, and b'kept" in one for one in found), found

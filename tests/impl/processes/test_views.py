"""Materialized views in real processes: built while clients write and nodes are killed, dropped, and made again."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from random import Random

import pytest

pytest.importorskip("msgspec")
pytest.importorskip("rocksdict")

from tests.impl.processes.clusters import cluster
from tests.traces.databases.scylladb.scylla_evaluated import read, violations

from stagewright.impl.endurance.view_builds import (
    T,
    V,
    at_once,
    built,
    endure,
    filled,
    is_its_base,
    rows_of,
)
from stagewright.impl.endurance.writers import all_is_there, kills, writing
from stagewright.impl.processes.client import Session
from stagewright.impl.processes.errors import ClusterError, WireError


def listed(session: Session) -> list[str]:
    """The views that the nodes know of that answer."""
    while True:
        try:
            return [build.name for build in session.builds()]
        except ClusterError:
            time.sleep(0.1)  # none answered in time: the machine is busy


@pytest.mark.long
def test_a_view_is_built_while_nodes_are_killed_and_follows_its_base_table(tmp_path: Path) -> None:
    with cluster(tmp_path / "c", 3) as supervisor:
        session = filled(supervisor, 4)
        writers = writing(supervisor, 1, T)
        session.create_view(V, T, 7)
        session.create_view(V, T, 7)  # which is the same view
        with pytest.raises(ClusterError, match=r"there is a ks\.v already"):
            session.create_view(V, T, 5)
        kills(supervisor, Random(1), 2)
        found = built(session)
        assert (found.base, found.definition, found.done, found.tasks) == (
            T,
            "by value mod 7",
            1.0,
            0,
        )
        at_once(session, writers)
        all_is_there(supervisor, writers)
        is_its_base(session, writers)
        session.table = V
        of_three = [r for r in rows_of(session) if r.key == b"3"]
        assert list(session.get_view(b"3")) == of_three
        assert list(session.get_view(b"7")) == []
        session.table = T
        session.drop_view(V)
        assert listed(session) == []  # whichever node answers
        session.create_view(V, T, comparison="<", bound=100)
        built(session)
        assert {r.base_key for r in rows_of(session)} >= {b"kept%d" % i for i in range(15)}
        assert max(int(r.value) for r in rows_of(session)) < 100
        session.close()
        layout = supervisor.layout
    logged, tally = read(*(layout.node(n) / "log" for n in layout.names()))
    assert tally.unparsed == 0
    assert violations(logged) == []
    assert {e.machine for _, e in logged.events} >= {"LoggedBatches", "LoggedTask", "ViewTask"}


def test_values_that_are_no_numbers_or_no_keys_are_in_no_view_and_harm_nobody(
    tmp_path: Path,
) -> None:
    with cluster(tmp_path / "c", 1) as supervisor:
        session = supervisor.session(T)
        session.create(T, 1, 1)
        session.create_view(V, T, 7)
        session.create_view("ks.w", T)
        for key, value in {
            b"huge": b"9" * 65536,
            b"word": b"\xff\x00",
            b"long": b"x" * 4097,
            b"18": b"1" * 18,
            b"19": b"1" * 19,
            b"": b"",
            b"4096": b"y" * 4096,
        }.items():
            session.put(key, value)
        built(session)
        built(session, "ks.w")
        assert [r.base_key for r in rows_of(session)] == [b"18"]
        assert sorted(r.base_key for r in rows_of(session, "ks.w")) == [
            b"",
            b"18",
            b"19",
            b"4096",
            b"word",
        ]
        for view, table, comparison, modulus, wrong in (
            (V, T, "like", 0, "a view where values are 'like'"),
            (V, T, "<", 10**9, "numbers beyond 1000000"),
            ("ks.V", T, "", 0, "names no table"),
        ):
            with pytest.raises(WireError, match=wrong):
                session.create_view(view, table, modulus, comparison)
        for wanted, reason in (("ks.none", "there is no table"), (V, "is no table of tablets")):
            with pytest.raises(ClusterError, match=reason):
                session.create_view("ks.x", wanted)
        assert supervisor.status().is_well
        session.close()


@pytest.mark.thorough
@pytest.mark.timeout(5400)  # every kill waits until the cluster is whole again
def test_builds_survive_kills_of_random_nodes(tmp_path: Path) -> None:
    done = Counter[str]()
    endure(tmp_path, 30, 16, done)
    assert done["views: SUCCESS"] == 30

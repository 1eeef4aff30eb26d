"""Which removals of versions are looked at: each once, when it is made, and by what the node knew of other replicas."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from stagewright.impl.catalog.tablet_rows import TabletRow
from stagewright.impl.catalog.view import View
from stagewright.impl.node.node import DatabaseNode
from stagewright.impl.node.port import Supersede
from stagewright.impl.ring.tablets import Tablet, TabletReplica
from stagewright.impl.simulator.database.checks.work.version_watcher import VersionWatcher
from stagewright.impl.simulator.database.hosts import Host
from stagewright.impl.storage.memory import MemoryRows, ModelledDisk
from stagewright.impl.storage.port import Put, Version
from stagewright.machines.scylladb.tablets.tablet_stages import Kind, Stage

KEY = (1 << 63).to_bytes(8, "big") + b"key"


def view(hosts: str, then: str = "") -> View:
    """The only tablet of a table, on these hosts, which are to be others."""
    here, there = (tuple(TabletReplica(h, 0) for h in names.split()) for names in (hosts, then))
    stage = Stage.write_both_read_old if then else Stage.none
    kind = Kind.rebuild_v2 if then else None
    tablet = Tablet(here, stage, there or None)
    row = TabletRow("t", 0, (-(1 << 63), (1 << 63) - 1), tablet, kind, "", frozenset(), False)
    return cast(
        "View",
        SimpleNamespace(
            tables={"t"},
            tablets={"t": (row,)},
            views={},
            logs={},
            truncated={},
            given_up=frozenset(),
            tablet_with=lambda _table, _token: row,
        ),
    )


class Cluster:
    """Machines whose node n1 removes versions; `recorded` is whether others had newer ones."""

    def __init__(self) -> None:
        self.recorded: list[bool] = []
        self.watcher = VersionWatcher(self._take)
        self.hosts = {name: self._host(name) for name in ("n1", "n2")}
        self._last = 0

    def _take(self, _kind: str, _entity: str, _node: str, _action: str, /, **so: Any) -> None:
        self.recorded.append(so["newer"] and so["known"])

    def _host(self, name: str) -> Host:
        disk = ModelledDisk()
        host = SimpleNamespace(
            identity=SimpleNamespace(name=name),
            disk=disk,
            rows=MemoryRows(disk),
            node=object(),
            life=1,
            named=(1, f"{name}#1"),
        )
        return cast("Host", host)

    def writes(self, *names: str) -> None:
        """These nodes store the next version."""
        self._last += 1
        for name in names:
            self.hosts[name].rows.write([Put("t", Version(KEY, self._last, b""))])

    def removes(self, knows: View, committed: View) -> list[bool]:
        """The node removes what is replaced; what is recorded of that."""
        host, seen = self.hosts["n1"], len(self.recorded)
        node = SimpleNamespace(name="n1", context=SimpleNamespace(view=knows))
        self.watcher.committed(committed, self.hosts)
        host.rows.supersede("t", {KEY: self._last})
        effect = Supersede("t", ((KEY, self._last),))
        self.watcher.did(host, cast("DatabaseNode", node), effect)
        return self.recorded[seen:]


ALONE, COMES, BOTH = view("n1"), view("n1", "n1 n2"), view("n1 n2")


def test_a_removal_of_nothing_is_not_taken_for_the_one_before_it() -> None:
    cluster = Cluster()
    cluster.writes("n1")
    cluster.writes("n1")
    assert cluster.removes(ALONE, ALONE) == [True]
    assert cluster.removes(COMES, COMES) == []


def test_nor_for_one_that_a_crash_has_left() -> None:
    cluster = Cluster()
    host = cluster.hosts["n1"]
    cluster.writes("n1")
    cluster.writes("n1")
    assert cluster.removes(ALONE, ALONE) == [True]
    host.disk.sync()
    cluster.writes("n1")
    assert cluster.removes(ALONE, ALONE) == [True]
    host.disk.crash()
    host.rows = MemoryRows(host.disk)
    cluster.watcher.ends(host)
    assert cluster.removes(COMES, COMES) == []
    cluster.writes("n1")
    assert cluster.removes(COMES, COMES) == [False]


def test_who_comes_is_waited_for_if_the_node_knows_it() -> None:
    for knows, recorded in ((ALONE, True), (COMES, False), (BOTH, True)):
        cluster = Cluster()
        cluster.writes("n1")
        cluster.writes("n1")
        assert cluster.removes(knows, COMES) == [recorded]


def test_who_has_an_older_version_is_waited_for_by_all_who_know_it() -> None:
    for knows, recorded in ((ALONE, True), (COMES, False), (BOTH, False)):
        cluster = Cluster()
        cluster.writes("n1", "n2")
        cluster.writes("n1")
        assert cluster.removes(knows, COMES) == [recorded]

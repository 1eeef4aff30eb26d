"""A version that only a node had which is given up is lost; of a view, what follows from it alone is excused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from stagewright.impl.catalog.tablet_rows import TabletRow
from stagewright.impl.catalog.view import View
from stagewright.impl.node.defects import Defect
from stagewright.impl.node.node import DatabaseNode
from stagewright.impl.node.port import Identity
from stagewright.impl.ring.tablets import Tablet, TabletReplica
from stagewright.impl.simulator.database.checks.lost_versions import LostVersions
from stagewright.impl.simulator.database.checks.oracle import Oracle
from stagewright.impl.simulator.database.hosts import Host
from stagewright.impl.simulator.database.plan import Plan, host_of
from stagewright.impl.simulator.database.run import run
from stagewright.impl.simulator.database.script import parse_script
from stagewright.impl.simulator.database.weather import parse_faults
from stagewright.impl.simulator.database.workload import parse_workload
from stagewright.impl.simulator.database.world import World
from stagewright.impl.storage.memory import MemoryRows, ModelledDisk
from stagewright.impl.storage.port import Put, Version
from stagewright.machines.scylladb.tablets.tablet_stages import Stage

ONE_REPLICA_IS_REPLACED = Plan(
    nodes=4,
    seed=100070,
    script=parse_script(
        "table t tablets 4 rf 2; write 53; move t 3; join n6; create view v on t by value; "
        "replace n6 by n7; replace n3 by n8"
    ),
    faults=parse_faults("crash=10"),
    workload=parse_workload("keys=40,gap=1-6,deletes=0.05")[0],
)
"""A write fails as one of two replicas is down; the other is replaced after the view was updated from it."""

ONE_LIVES_THAT_IS_GIVEN_UP = Plan(
    nodes=5,
    seed=1500602,
    script=parse_script(
        "table t tablets 2 rf 2; write 82; remove n2; write 52; create view v on t by value mod 2; replace n3 by n6; "
        "write 45; remove n1; await v; write 46; drop view v; kill n6; wait 201; create view v on t by value mod 2; "
        "restart n6; cleanup; join n7"
    ),
    faults=parse_faults("loss=0.12,duplicate=0.12,failover=20,storm,action=0.1"),
    workload=parse_workload("clients=4,keys=40,gap=0-3,reads=0.5,deletes=0.1,chunk=3")[0],
    cdc=True,
    ttl=20_000,
    defects=frozenset(
        {Defect.readers_are_sent_back}
    ),  # as it was found: readers are answered at once
)
"""The removal of a node lasts; it starts again meanwhile, and drops the rows of a tablet that leaves it."""

ONE_WRITES_UNTIL_IT_LEARNS = Plan(
    nodes=4,
    seed=146,
    script=parse_script(
        "table t tablets 4 rf 2; create view v on t by value; write 80; suspend n1; resume n1; partition n4; ask remove n4; "
        "wait 154; move t 1; abort n4"
    ),
    faults=parse_faults("delay=0.05"),
    workload=parse_workload("clients=4,keys=3,gap=1-6,reads=0.5,deletes=0.3")[0],
)
"""A node writes a row as it is back, before it learns that it has lost the tablet; of the view it hands over what it has."""


def lost(*values: tuple[int, bytes | None]) -> LostVersions:
    """What is known when versions of `key` were lost."""
    found = LostVersions(World(1), Oracle())
    found.found[b"key"] = dict(values)
    return found


def is_x(value: bytes | None) -> bool:
    """Whether the row that is looked at is that of the value."""
    return value == b"x"


def is_y(value: bytes | None) -> bool:
    """The same of another row."""
    return value == b"y"


def test_a_view_may_show_what_a_replaced_node_alone_had() -> None:
    report = run(ONE_REPLICA_IS_REPLACED)
    assert report.kept, report.breaches + report.refused
    # One row, on each of the view's replicas.
    assert report.counted["view rows of lost versions"] == 2


@pytest.mark.long
def test_a_view_may_show_what_a_node_alone_had_that_drops_its_rows_before_its_tablet_has_left_it() -> (
    None
):
    report = run(ONE_LIVES_THAT_IS_GIVEN_UP)
    assert report.kept, report.breaches + report.refused
    assert report.counted["view rows of lost versions"] > 0


def test_a_view_may_show_what_a_node_wrote_after_it_had_lost_the_tablet() -> None:
    report = run(ONE_WRITES_UNTIL_IT_LEARNS)
    assert report.kept, report.breaches + report.refused
    assert report.counted["view rows of lost versions"] > 0


KEY = (1 << 63).to_bytes(8, "big") + b"key"


def view(hosts: str, then: str = "", *given_up: str) -> View:
    """A base table with one tablet on these hosts, which are to be others, and a view."""
    here, there = (tuple(TabletReplica(h, 0) for h in names.split()) for names in (hosts, then))
    tablet = Tablet(here, Stage.end_migration if then else Stage.none, there or None)
    row = TabletRow("t", 0, (-(1 << 63), (1 << 63) - 1), tablet, None, "", frozenset(), False)
    known = SimpleNamespace(
        views={"v": None},
        views_of=lambda _table: ("v",),
        moving=[row] if then else [],
        given_up=frozenset(given_up),
        tablet=lambda _table, _number: row,
        tablet_with=lambda _table, _token: row,
    )
    return cast("View", known)


@pytest.mark.parametrize(
    ("steps", "also", "excused"),
    [
        ("write", (), True),
        ("write drop", (), True),
        ("drop write", (), False),  # it has learned that the tablet is not its own
        ("come write", (), False),  # the tablet is its own again
        ("write come", (), True),
        ("write", ("b",), False),  # another one has it, too
    ],
)
def test_what_a_node_writes_counts_as_lost_from_when_it_loses_the_tablet_until_it_drops_it(
    steps: str, also: tuple[str, ...], *, excused: bool
) -> None:
    world = World(1)
    for name in "abc":
        disk = ModelledDisk()
        world.hosts[name] = Host(
            Identity(host_of(name)), disk, MemoryRows(disk), cast("DatabaseNode", 1)
        )
    rows = {name: host.rows for name, host in world.hosts.items()}
    rows["a"].write([Put("t", Version(KEY, 1, b"w"))])
    rows["b"].write([Put("t", Version(KEY, 1, b"w"))])
    versions = LostVersions(world, Oracle())
    versions.committed(view("a b", "c b", "a"), view("c b", "", "a"))
    for step in steps.split():
        match step:
            case "drop":
                rows["a"].drop("t", b"", None)
            case "come":
                versions.committed(view("c b"), view("c b", "a b"))
            case _:
                for name in ("a", *also):
                    rows[name].write([Put("t", Version(KEY, 20, b"x"))])
    assert versions.excuse(b"key", is_x, None, (20, b"x")) is excused


def test_a_row_of_a_lost_version_is_excused_if_nothing_newer_is_in_its_place() -> None:
    versions = lost((20, b"x"))
    assert versions.excuse(b"key", is_x, None, (20, b"x"))
    assert versions.excuse(b"key", is_x, (10, b"x"), (20, b"x"))
    assert not versions.excuse(b"key", is_x, (30, b"x"), (20, b"x"))
    assert not versions.excuse(b"key", is_x, None, (10, b"x"))
    assert not versions.excuse(b"other", is_x, None, (20, b"x"))


def test_a_lost_version_explains_its_own_row_with_its_own_value_alone() -> None:
    versions = lost((20, b"x"))
    assert not versions.excuse(b"key", is_y, None, (20, b"x"))
    assert not versions.excuse(b"key", is_x, None, (20, b"z"))


def test_a_row_is_hidden_by_a_newer_lost_version_of_another_place_alone() -> None:
    versions = lost((20, b"x"))
    assert versions.excuse(b"key", is_y, (10, b"y"), None)
    assert not versions.excuse(b"key", is_y, (30, b"y"), None)
    assert not versions.excuse(b"key", is_y, (10, b"y"), (5, b"x"))
    assert versions.excused == 1
    assert not versions.excuse(b"key", is_x, (10, b"x"), None)  # it would show itself
    assert lost((20, None)).excuse(b"key", is_x, (10, b"x"), None)

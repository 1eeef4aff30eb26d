"""Which rows of a stream wait in staging: versions that the replica lacks, and no others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from stagewright.impl.catalog.tablet_rows import TabletRow
from stagewright.impl.node.context import Context
from stagewright.impl.storage.memory import MemoryRows, ModelledDisk
from stagewright.impl.storage.port import Put, Version
from stagewright.impl.views import node_views
from stagewright.impl.views.maintenance.definition import ViewDefinition
from stagewright.impl.views.maintenance.staged import Staged, staged_in, updates_of_staged
from stagewright.impl.views.node_views import NodeViews
from stagewright.machines.scylladb.tablets.tablet_stages import Kind

KEY = b"00000001k"
VIEW = ViewDefinition("ks.v", "ks.t", 0)
HERE = [Version(KEY, time, b"%d" % time) for time in (1, 3, 5)]


def staged(time: int, kind: Kind = Kind.migration, *, repairs: bool = True) -> list[Staged]:
    """What waits of a version that a stream brings to a replica that has those of 1, 3 and 5."""
    rows = MemoryRows(ModelledDisk())
    rows.write([Put("ks.t", version) for version in HERE])
    node = SimpleNamespace(
        name="n1",
        rows=rows,
        view=SimpleNamespace(views_of=lambda _: [VIEW]),
        catalog=SimpleNamespace(tables={}),
        has=lambda _: False,
    )
    row = SimpleNamespace(table="ks.t", kind=kind, range=(0, 1))
    views = NodeViews(cast("Context", node))
    cells = [(KEY, time, b"%d" % time)]
    puts, _ = views.arrived(cast("TabletRow", row), "ks.t", cells, repairs=repairs)
    return [staged_in(put.version) for put in puts]


@pytest.fixture(autouse=True)
def _to_staging(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(node_views, "goes_to_staging", lambda *_, **__: True)


@pytest.mark.parametrize("version", HERE, ids=lambda v: f"of {v.time}")
def test_a_version_that_is_here_is_not_staged_again(version: Version) -> None:
    """Else who builds a view passes it over, and reads the one before, which nobody takes out of the view."""
    assert staged(version.time) == []


@pytest.mark.parametrize(("time", "before"), [(0, None), (2, None), (4, None), (6, HERE[2])])
def test_a_version_that_is_not_here_waits_with_the_older_one_that_it_replaces(
    time: int, before: Version | None
) -> None:
    assert staged(time) == [Staged((KEY, time, b"%d" % time), before, repaired=True)]


@pytest.mark.parametrize(
    ("kind", "repairs", "late"),
    [(Kind.migration, False, False), (Kind.migration, True, True), (Kind.rebuild_v2, False, True)],
)
def test_what_did_not_move_with_its_tablet_is_for_all_replicas_of_views(
    kind: Kind, repairs: bool, late: bool
) -> None:
    (found,) = staged(4, kind, repairs=repairs)
    assert found.repaired is late
    rows = MemoryRows(ModelledDisk())
    rows.write([Put("ks.t", Version(KEY, 4, b"4"))])
    updates = updates_of_staged([VIEW], [found], rows, "ks.t")
    assert updates
    assert {u.everyone for u in updates} == {late}

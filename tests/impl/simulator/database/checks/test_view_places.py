"""What a view's replicas had, and what is lost with them: who was given up in between, and is spared."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from stagewright.impl.catalog.tablet_rows import TabletRow
from stagewright.impl.catalog.view import View
from stagewright.impl.ring.tablets import Tablet, TabletReplica
from stagewright.impl.simulator.database.checks.rows.view_places import ViewPlaces
from stagewright.impl.storage.port import Put, Version
from stagewright.impl.views.maintenance.updates import ViewUpdate
from stagewright.machines.scylladb.tablets.tablet_stages import Kind, Role, Stage

KEY = (1 << 63).to_bytes(8, "big") + b"key"
UPDATE = ViewUpdate("v", KEY, KEY, 5, b"x")


def row(hosts: str, then: str = "", stage: Stage = Stage.none) -> TabletRow:
    """The only tablet of the view, on these hosts, which are to be others."""
    here, there = (tuple(TabletReplica(h, 0) for h in names.split()) for names in (hosts, then))
    tablet = Tablet(here, stage, there or None)
    gone = frozenset({Role.leaving} if then else set[Role]())
    kind = Kind.rebuild_v2 if then else None
    return TabletRow("v", 0, (-(1 << 63), (1 << 63) - 1), tablet, kind, "", gone, False)


def view(tablet: TabletRow, *given_up: str) -> View:
    """A view of the cluster, as far as it is looked at."""
    return cast(
        "View",
        SimpleNamespace(
            views={"v": None},
            tablets={"v": (tablet,)},
            moving=[tablet] if tablet.tablet.next else [],
            given_up=frozenset(given_up),
            tablet=lambda _table, _number: tablet,
            tablet_with=lambda _table, _token: tablet,
        ),
    )


REBUILT = row("a b", "c b", Stage.streaming)
ENDS = row("a b", "c b", Stage.end_migration)
DONE = row("c b")


@pytest.mark.parametrize(
    ("steps", "taken"),
    [
        ([view(row("a b"))], False),
        ([view(row("a b"), "a")], True),  # it is given up
        ([view(REBUILT, "a"), view(REBUILT)], True),  # and spared: it hands the row over
        ([view(REBUILT, "a"), view(REBUILT), view(ENDS)], False),  # which it has done
        ([view(REBUILT, "a"), view(REBUILT), view(DONE)], False),
        ([view(REBUILT, "a"), view(DONE, "a"), view(DONE)], True),  # it was spared too late
    ],
)
def test_a_row_may_be_lost_with_who_was_given_up(steps: list[View], taken: bool) -> None:
    places = ViewPlaces()
    places.committed(view(row("a b")))
    places.stored("a", (Put("v", Version(KEY, 5, b"x")),))
    for step in steps:
        places.committed(step)
    assert places.takes(UPDATE, steps[-1], since=0) is taken
    assert not places.takes(UPDATE, view(row("a b")), since=places.lost)
    left = "a" not in steps[-1].tablets["v"][0].holders
    assert places.has_left("a", UPDATE) is left
    assert not places.has_left("b", UPDATE)

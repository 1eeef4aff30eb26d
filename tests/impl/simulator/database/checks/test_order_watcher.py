"""What a coordinator takes for done: the last orders that it gave for a stage of a tablet, not those of an earlier one."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import cast

import pytest

from stagewright.impl.catalog.tablet_rows import TabletRow
from stagewright.impl.catalog.view import View
from stagewright.impl.group0 import Entry
from stagewright.impl.node.messages import Order, OrderDone, Work
from stagewright.impl.ring.tablets import Tablet, TabletReplica
from stagewright.impl.simulator.database.checks.work.order_watcher import OrderWatcher
from stagewright.machines.scylladb.tablets.tablet_migration import TabletMigration
from stagewright.machines.scylladb.tablets.tablet_stages import Kind, Stage

TERM = 5
STAGES = (Stage.cleanup_target, Stage.revert_migration, Stage.none, Stage.cleanup)
"""A migration turns back from n2, whose answer nobody waits for; the next one leaves a node that is given up."""


def view(stage: Stage) -> View:
    """A cluster with one tablet."""
    here, there = (TabletReplica("n1", 0),), (TabletReplica("n2", 0),)
    tablet = Tablet(here, stage, None if stage is Stage.none else there)
    row = TabletRow("t", 0, (0, 9), tablet, Kind.migration, "", frozenset(), False)
    moving = () if stage is Stage.none else (row,)
    nodes = dict.fromkeys(("n1", "n2"))
    return cast("View", SimpleNamespace(moving=moving, nodes=nodes, given_up=frozenset()))


def entry(*actions: str) -> Entry:
    """A commit with these steps of the tablet."""
    steps = [
        SimpleNamespace(machine=TabletMigration.__name__, instance="t:0", action=action)
        for action in actions
    ]
    return cast("Entry", SimpleNamespace(term=TERM, command=SimpleNamespace(steps=steps)))


@pytest.mark.parametrize(
    ("then", "recorded"),
    [
        ([], []),  # nobody is there to be asked
        ([("n1", True)], [True]),
        ([("n1", False)], [False]),
        ([("n1", True), ("n2", False)], [False]),
    ],
)
def test_orders_of_an_earlier_stage_are_not_waited_for(
    then: list[tuple[str, bool]], recorded: list[bool]
) -> None:
    found: list[bool] = []
    watcher = OrderWatcher(lambda *_, told: found.append(told), lambda: 0)
    watcher.given("n3#1", "n2", Order(TERM, 1, Work.clean_tablet, "", "t", 0))
    for before, after in pairwise(STAGES):
        watcher.committed(entry("a step"), view(before), view(after))
    for number, (name, answers) in enumerate(then, 2):
        watcher.given("n3#1", name, Order(TERM, number, Work.clean_tablet, "", "t", 0))
        if answers:
            watcher.answered(name, OrderDone(TERM, number, True))
    watcher.committed(entry("finish_operation"), view(Stage.cleanup), view(Stage.end_migration))
    assert found == recorded

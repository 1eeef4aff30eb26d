"""Watches orders: what a coordinator takes for done was told it in its term, by all whom it has asked for that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from stagewright.impl.catalog.view import View
from stagewright.impl.group0 import Entry
from stagewright.impl.node.messages import Order, OrderDone, Work
from stagewright.machines.scylladb.tablets.tablet_migration import TabletMigration
from stagewright.machines.scylladb.tablets.tablet_stages import Run

OF_RANGES = {
    "stream_ranges": Work.stream,
    "finish_rebuild": Work.stream,
    "clean_up": Work.clean,
}
"""The steps of the topology that say that nodes have done something, and what."""
OF_TABLETS = {
    Run.streaming: Work.stream_tablet,
    Run.repair: Work.repair_tablet,
    Run.cleanup: Work.clean_tablet,
}
_Job = tuple[int, Work, str, int, str]  # a term, what is done, a tablet, and its session


@dataclass
class _Asked:
    """The orders of one job that were last given, by node."""

    by: str  # the life of the coordinator
    at: int
    numbers: dict[str, int] = field(default_factory=dict[str, int])


class OrderWatcher:
    """`take` records an action of an entity."""

    def __init__(self, take: Callable[..., None], now: Callable[[], int]) -> None:
        self._take = take
        self._now = now
        self._asked: dict[_Job, _Asked] = {}
        self._given: set[tuple[int, int]] = set()  # the terms and numbers of orders
        self._told: set[tuple[int, int, str]] = set()  # those that were carried out, and by whom

    def given(self, life: str, to: str, order: Order) -> None:
        """A coordinator has sent an order: all that it sends first at the same time are one job."""
        if (order.term, order.number) in self._given:
            return
        self._given.add((order.term, order.number))
        job = order.term, order.work, order.table, order.tablet, order.session
        found = self._asked.get(job)
        if found is None or found.at != self._now():
            found = self._asked[job] = _Asked(life, self._now())
        found.numbers[to] = order.number

    def answered(self, name: str, done: OrderDone) -> None:
        """A node has said that one is carried out."""
        if done.succeeded:
            self._told.add((done.term, done.number, name))

    def committed(self, entry: Entry, before: View, after: View) -> None:
        """A commit may say that something is done."""
        for step in entry.command.steps:
            if step.machine == TabletMigration.__name__ and step.action == "finish_operation":
                self._of_tablet(entry.term, step.instance, before)
            elif step.action in OF_RANGES:
                n = step.arguments.get("n")
                only = {*before.nodes} if n is None else {str(n)}
                job = entry.term, OF_RANGES[step.action], "", -1, before.session
                self._check(job, only, before)
        self._forget(before, after)

    def _forget(self, before: View, after: View) -> None:
        """What was asked for a stage of a tablet says nothing of those after it: cleanups have no session that differs."""
        stages = {(row.table, row.number): row.tablet.stage for row in after.moving}
        for row in before.moving:
            tablet = row.table, row.number
            if stages.get(tablet) is not row.tablet.stage:
                for job in [j for j in self._asked if j[2:4] == tablet]:
                    del self._asked[job]

    def _of_tablet(self, term: int, name: str, before: View) -> None:
        row = next((r for r in before.moving if r.name == name), None)
        work = None if row is None else OF_TABLETS.get(row.tablet.stage.action)
        if row is not None and work is not None:
            job = term, work, row.table, row.number, row.session
            self._check(job, {*before.nodes}, before)

    def _check(self, job: _Job, only: set[str], view: View) -> None:
        asked = self._asked.get(job)
        if asked is None:
            return
        due = {n: k for n, k in asked.numbers.items() if n in only - view.given_up}
        told = all((job[0], number, name) in self._told for name, number in due.items())
        self._take("lives", asked.by, asked.by.partition("#")[0], "count_as_done", told=told)

"""What is refused again and again is in the log of the node that coordinates: once with its reason, and once when it is over."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest
from tests.impl.simulator.operators import Operator

from stagewright.impl.node.context import Context
from stagewright.impl.node.messages import CreateTable
from stagewright.impl.node.messages.tables import DropTable, MoveTablet, RepairTable
from stagewright.impl.tablets import holding, track
from stagewright.impl.topology.refusals import TRIES, Refusals
from stagewright.spec.errors import RefusedError

REASON = "n9 would hold no tablets, and no step may say so"
HELD_UP = "the topology coordinator is held up, and tries again and again: "
NO_MORE = "the topology coordinator is no longer held up: "


class Held(Operator):
    """A cluster whose coordinator cannot say which nodes hold tablets, for as long as there is a reason."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.reason, self.tried = "", 0
        self.change(CreateTable(1, "ks.t", 2, 2))
        taken = holding.account

        def account(*arguments: object) -> None:
            if self.reason:
                self.tried += 1
                raise RefusedError(self.reason, ())
            taken(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(track, "account", account)

    def passes(self, milliseconds: int) -> None:
        until = self.world.events.now + milliseconds
        self.world.events.run(lambda: False, until)

    @property
    def lines(self) -> list[str]:
        """What the logs of all nodes say of it."""
        logs = self.world.logs or {}
        said = (one for log in logs.values() for one in log if "held up" in one)
        return [one.partition(" stagewright - ")[2] for one in said]

    @property
    def lasting(self) -> int:
        return TRIES * self.world.timing.retry


def test_a_refusal_that_lasts_is_in_the_log_once_and_so_is_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Held(monkeypatch)
    cluster.reason = REASON
    cluster.change(RepairTable(2, "ks.t"))
    cluster.passes(cluster.lasting // 2)
    assert cluster.tried
    assert cluster.lines == []
    cluster.passes(2 * cluster.lasting)
    assert cluster.lines == [f"{HELD_UP}{REASON}"]
    cluster.reason = ""
    cluster.until(lambda: len(cluster.lines) > 1)
    assert cluster.lines[1:] == [f"{NO_MORE}{REASON}"]
    view = cluster.node("n1").context.view
    cluster.until(
        lambda: not any(r.repair for r in cluster.node("n1").context.view.tablets["ks.t"])
    )
    assert view is not cluster.node("n1").context.view
    assert len(cluster.lines) == 2


def test_it_is_over_when_nothing_is_wanted_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Held(monkeypatch)
    cluster.reason = REASON
    there = {r.host for r in cluster.node("n1").context.view.tablets["ks.t"][0].tablet.replicas}
    (free,) = {"n1", "n2", "n3"} - there
    cluster.change(MoveTablet(2, "ks.t", 0, min(there), free))
    cluster.passes(3 * cluster.lasting)
    assert cluster.lines == [f"{HELD_UP}{REASON}"]
    cluster.change(DropTable(3, "ks.t"))
    cluster.passes(cluster.lasting)
    assert cluster.lines == [f"{HELD_UP}{REASON}", f"{NO_MORE}{REASON}"]


def test_whatever_else_happens_it_is_tried_as_often_as_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Held(monkeypatch)
    cluster.reason = REASON
    cluster.change(RepairTable(2, "ks.t"))
    cluster.passes(2 * cluster.lasting)
    for number in range(20):  # each of which is an event
        cluster.change(CreateTable(number, f"ks.t{number}", 2))
    cluster.tried = 0
    cluster.passes(10 * cluster.world.timing.retry)
    assert cluster.tried <= 40


def test_a_refusal_that_changes_begins_anew() -> None:
    clock = SimpleNamespace(microseconds=0)
    timing, around = SimpleNamespace(retry=100), SimpleNamespace(now=lambda: clock.microseconds)
    node = SimpleNamespace(timing=timing, around=around)
    refusals = Refusals(cast("Context", node))

    def met(reason: str, milliseconds: int) -> str:
        clock.microseconds += 1000 * milliseconds
        refusals.met(RefusedError(reason, ()))
        return refusals.lasting

    assert met("a", 0) == met("a", 1_999) == ""
    assert met("b", 1) == met("b", 1_999) == ""
    assert met("b", 1) == "b"
    assert met("a", 1) == ""
    refusals.over()
    assert met("a", 5_000) == ""

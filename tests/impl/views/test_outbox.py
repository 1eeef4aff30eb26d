"""Updates of views on their way to a node that does not keep up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from stagewright.impl.node.context import Context
from stagewright.impl.node.messages import Outcome, ReplicaReply, ReplicaWrite
from stagewright.impl.node.port import Effect, Send, Timing
from stagewright.impl.views.maintenance import outbox as module
from stagewright.impl.views.maintenance.outbox import WINDOW, Outbox
from stagewright.impl.views.maintenance.updates import ViewUpdate

UPDATES = 5 * WINDOW


class Clock:
    """Of a node that sends updates of one view to n2, and does nothing else."""

    def __init__(self) -> None:
        self.microseconds = 1_000_000
        self.numbers = 0

    def number(self) -> int:
        self.numbers += 1
        return self.numbers


def sent(effects: list[Effect]) -> list[int]:
    """The numbers of the messages, all of them to n2."""
    found = [e for e in effects if isinstance(e, Send)]
    assert {e.to for e in found} <= {"n2"}
    return [e.message.number for e in found if isinstance(e.message, ReplicaWrite)]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def empty(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> Outbox:
    monkeypatch.setattr(module, "targets_of", lambda *_, **__: ("n2",))
    node = SimpleNamespace(
        around=SimpleNamespace(now=lambda: clock.microseconds),
        view=SimpleNamespace(views={"ks.v": None}, version=1),
        timing=Timing(),
        down=set[str](),
        number=clock.number,
        has=lambda _: False,
    )
    return Outbox(cast("Context", node))


@pytest.fixture
def outbox(empty: Outbox) -> Outbox:
    empty.load("ks.t", [ViewUpdate("ks.v", b"%d" % i, b"r%d" % i, 1, b"") for i in range(UPDATES)])
    return empty


def test_a_node_that_does_not_answer_is_sent_no_more_however_often(
    outbox: Outbox, clock: Clock
) -> None:
    first = sent(outbox.learned())
    assert len(first) == WINDOW
    for _ in range(3):
        clock.microseconds += 1000 * Timing().resend
        assert sent(outbox.again()) == first  # the same, as they may have been lost
    assert sent(outbox.again()) == []


def test_each_answer_lets_another_update_go(outbox: Outbox) -> None:
    flying = sent(outbox.learned())
    answered = 0
    while flying:
        flying += sent(outbox.reply("n2", ReplicaReply(flying.pop(0), Outcome.done)))
        answered += 1
        assert len(flying) <= WINDOW
    assert (answered, outbox.waiting) == (UPDATES, 0)


def test_a_build_sends_nothing_before_what_it_may_have_read_is_on_the_disk(empty: Outbox) -> None:
    row = ViewUpdate("ks.v", b"new", b"r", 2, b"")
    empty.store("ks.t", [row])
    assert sent(empty.build("ks.t", 1, [row])) == []
    assert len(sent(empty.synced(1))) == 2  # for the hint, and for the build

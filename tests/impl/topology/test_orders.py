"""What a coordinator has nodes do is asked for until it is answered; what failed, again after a delay and once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from stagewright.impl.node.context import Context
from stagewright.impl.node.messages import Order, OrderDone, Work
from stagewright.impl.node.port import Effect, Send, Timing, Wake
from stagewright.impl.topology.orders import Orders

KEY = ("resize", "ks.t", 1)
TERM = 3


def orders() -> Orders:
    node = SimpleNamespace(timing=Timing(), view=SimpleNamespace(session=""))
    return Orders(cast("Context", node), TERM)


def sent(effects: list[Effect]) -> list[Order]:
    return [e.message for e in effects if isinstance(e, Send) and isinstance(e.message, Order)]


def woken(coordinator: Orders, effects: list[Effect]) -> list[Effect]:
    """What comes of the wakes among some effects."""
    wakes = [e for e in effects if isinstance(e, Wake)]
    return [new for w in wakes for new in coordinator.again(cast("int", w.reason[-1]))]


def failed(coordinator: Orders, number: int, node: str) -> None:
    assert coordinator.done(node, OrderDone(TERM, number, False, "the call broke"))
    coordinator.forget(coordinator.jobs[KEY])


def test_a_job_that_failed_is_asked_for_again_after_a_delay() -> None:
    coordinator = orders()
    [first] = sent(coordinator.begin(KEY, Work.prepare_split, ("n1",)))
    failed(coordinator, first.number, "n1")
    begun = coordinator.begin(KEY, Work.prepare_split, ("n1",))
    assert not sent(begun)
    [wake] = [e for e in begun if isinstance(e, Wake)]
    assert wake.after_ms == Timing().retry
    [again] = sent(woken(coordinator, begun))
    assert again.number > first.number


def test_wakes_of_a_job_that_failed_do_not_ask_for_the_one_begun_anew() -> None:
    coordinator = orders()
    begun = coordinator.begin(KEY, Work.prepare_split, ("n1",))
    [first] = sent(begun)
    failed(coordinator, first.number, "n1")
    coordinator.begin(KEY, Work.prepare_split, ("n1",))
    assert not woken(coordinator, begun)


def test_who_has_not_answered_is_asked_once_more() -> None:
    coordinator = orders()
    begun = coordinator.begin(KEY, Work.prepare_split, ("n1", "n2"))
    numbers = {order.number for order in sent(begun)}
    assert not coordinator.done("n1", OrderDone(TERM, min(numbers), True, ""))
    assert [order.number for order in sent(woken(coordinator, begun))] == [max(numbers)]

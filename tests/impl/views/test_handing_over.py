"""Rows that a leaving replica alone has: each is sent to each heir under one number, until that one has it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from stagewright.impl.catalog.tablet_rows import TabletRow
from stagewright.impl.node.context import Context
from stagewright.impl.node.messages import Outcome, ReplicaReply, ReplicaWrite
from stagewright.impl.node.port import Drop, Effect, Send
from stagewright.impl.storage.memory import MemoryRows, ModelledDisk
from stagewright.impl.storage.port import Put, Version
from stagewright.impl.views.maintenance.handing_over import HandingOver, late_rows_of
from stagewright.machines.scylladb.tablets.tablet_stages import Role

KEYS = [(1).to_bytes(8, "big") + b"a", (2).to_bytes(8, "big") + b"b"]
OLDER = (3).to_bytes(8, "big") + b"c"  # a row without a mark
ROW = cast(
    "TabletRow",
    SimpleNamespace(
        table="ks.t",
        key=("ks.t", "0"),
        range=(-(1 << 63), 0),
        hosts={Role.pending: (), Role.staying: ("n2", "n3")},
        lost=frozenset[str](),
    ),
)
REBUILT = cast("TabletRow", SimpleNamespace(**{**vars(ROW), "lost": frozenset({"n1"})}))
"""Of a tablet that another node takes over as this one was given up, which is spared now."""


def sent(effects: list[Effect] | None) -> dict[tuple[str, bytes], int]:
    """The numbers under which rows are sent, by heir and key."""
    found = [e for e in effects or () if isinstance(e, Send)]
    assert all(isinstance(e.message, ReplicaWrite) and e.message.late for e in found)
    return {
        (e.to, e.message.cell[0]): e.message.number
        for e in found
        if isinstance(e.message, ReplicaWrite)
    }


@pytest.fixture
def node() -> SimpleNamespace:
    numbers = iter(range(1, 1000))
    rows = MemoryRows(ModelledDisk())
    rows.write([Put("ks.t", Version(key, 5, b"7")) for key in KEYS])
    rows.write([Put(late_rows_of("ks.t"), Version(key, 5, b"")) for key in KEYS])
    views = {"ks.t": ("ks.v",)}
    view = SimpleNamespace(
        given_up=set[str](), version=3, views={"ks.v": ()}, views_of=lambda t: views.get(t, ())
    )
    return SimpleNamespace(
        name="n1",
        rows=rows,
        view=view,
        down={"n3"},
        number=lambda: next(numbers),
        has=lambda _: False,
    )


def test_an_heir_that_is_down_is_waited_for_under_the_numbers_that_it_has_once(
    node: SimpleNamespace,
) -> None:
    handing = HandingOver(cast("Context", node))
    first = sent(handing.go_on(ROW))
    assert {*first} == {("n2", key) for key in KEYS}
    for number in first.values():
        assert handing.reply("n2", ReplicaReply(number, Outcome.done)) == []
    for _ in range(50):  # the coordinator asks again and again
        assert sent(handing.go_on(ROW)) == {}
    assert handing.waiting == len(KEYS)
    node.down.clear()
    second = sent(handing.go_on(ROW))
    assert {*second} == {("n3", key) for key in KEYS}
    assert sent(handing.go_on(ROW)) == second
    drops = [e for n in second.values() for e in handing.reply("n3", ReplicaReply(n, Outcome.done))]
    assert [e.low for e in drops if isinstance(e, Drop)] == KEYS
    assert handing.waiting == 0


def test_who_is_given_up_is_no_heir_any_more(node: SimpleNamespace) -> None:
    handing = HandingOver(cast("Context", node))
    for number in sent(handing.go_on(ROW)).values():
        handing.reply("n2", ReplicaReply(number, Outcome.done))
    node.view.given_up = {"n3"}
    drops = [e for e in handing.go_on(ROW) or () if isinstance(e, Drop)]
    assert [drop.low for drop in drops] == KEYS
    assert handing.waiting == 0


def test_a_refused_row_is_sent_again_and_a_tablet_that_is_gone_is_forgotten(
    node: SimpleNamespace,
) -> None:
    handing = HandingOver(cast("Context", node))
    first = sent(handing.go_on(ROW))
    for number in first.values():
        assert handing.reply("n2", ReplicaReply(number, Outcome.fenced)) == []
    assert sent(handing.go_on(ROW)) == first
    handing.forget(ROW)
    assert handing.waiting == 0
    assert not any(map(handing.owns, first.values()))


def test_who_was_left_out_hands_over_all_that_it_has_once(node: SimpleNamespace) -> None:
    node.rows.write([Put("ks.t", Version(OLDER, 4, b"6"))])
    node.down.clear()
    handing = HandingOver(cast("Context", node))
    assert {key for _, key in sent(handing.go_on(ROW))} == {*KEYS}
    numbers = sent(handing.go_on(REBUILT))
    assert {*numbers} == {(heir, key) for heir in ("n2", "n3") for key in (*KEYS, OLDER)}
    for (heir, _), number in numbers.items():
        for drop in handing.reply(heir, ReplicaReply(number, Outcome.done)):
            assert isinstance(drop, Drop)
            node.rows.drop(drop.family, drop.low, drop.high)
    assert handing.go_on(REBUILT) is None
    assert node.rows.get("ks.t", OLDER) is not None


def test_a_view_replica_that_was_left_out_hands_over_its_rows_and_leaves_no_marks(
    node: SimpleNamespace,
) -> None:
    row = cast(
        "TabletRow", SimpleNamespace(**{**vars(REBUILT), "table": "ks.v", "key": ("ks.v", "0")})
    )
    node.rows.write([Put("ks.v", Version(KEYS[0], 5, None))])
    node.down.clear()
    handing = HandingOver(cast("Context", node))
    numbers = sent(handing.go_on(row))
    assert {*numbers} == {("n2", KEYS[0]), ("n3", KEYS[0])}
    for (heir, _), number in numbers.items():
        assert handing.reply(heir, ReplicaReply(number, Outcome.done)) == []
    assert handing.go_on(row) is None


def test_what_is_not_handed_over_yet_is_sent_when_it_is_asked_again(node: SimpleNamespace) -> None:
    handing = HandingOver(cast("Context", node))
    first = sent(handing.go_on(REBUILT))
    handing.reply("n2", ReplicaReply(first["n2", KEYS[0]], Outcome.done))
    node.down.clear()
    assert sent(handing.go_on(REBUILT)).keys() == {
        ("n2", KEYS[1]),
        ("n3", KEYS[0]),
        ("n3", KEYS[1]),
    }
    handing.forget(REBUILT)
    assert handing.waiting == 0

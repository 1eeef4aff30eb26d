"""The consumer of a run that is behind goes on with what is kept, where it is certain which streams operated."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import cast

from stagewright.impl.cdc.consumer import Consumer
from stagewright.impl.node.messages import (
    ClientScan,
    GenerationsReply,
    GenerationsRequest,
    ScanReply,
)
from stagewright.impl.simulator.database.checks.changes.follower import Ask, Follower
from stagewright.impl.simulator.database.checks.changes.reader_check import ReaderCheck
from stagewright.impl.simulator.database.checks.oracle import Oracle

SECOND = 1_000_000
KEPT, CONFIDENCE = 5 * SECOND, 3 * SECOND


def test_who_is_behind_takes_up_no_position_of_which_the_streams_may_become_known_later() -> None:
    known = [(1 * SECOND, (b"old",))]
    skipped: list[int] = []
    spans: list[tuple[bytes, int, int]] = []
    clock = SimpleNamespace(at=0)
    check = SimpleNamespace(
        now=lambda: clock.at,
        confidence=CONFIDENCE,
        skip=lambda _table, to: skipped.append(to),
        read=lambda _table, streams, start, end: spans.append((streams[0], start, end)),
    )

    def answer(message: object) -> object:
        if isinstance(message, GenerationsRequest):
            return GenerationsReply(message.number, True, tuple(known), ttl=KEPT // 1000)
        assert isinstance(message, ClientScan)
        return ScanReply(message.number, True)

    ask = cast("Ask", lambda makes: answer(makes(1)))
    follower = Follower(ask, "ks.t", Oracle(), cast("ReaderCheck", check), Consumer)
    for clock.at in (10 * SECOND, 100 * SECOND, 100 * SECOND):
        follower.poll()
    assert 100 * SECOND - KEPT < skipped[-1] <= 100 * SECOND - CONFIDENCE
    known.append((99 * SECOND, (b"new",)))  # sooner than it would have been read from the future
    del spans[:]
    for clock.at in range(100 * SECOND, 106 * SECOND, SECOND // 4):
        follower.poll()
    assert spans[0][1] == skipped[-1]
    assert all(end == start for (_, _, end), (_, start, _) in itertools.pairwise(spans))
    assert {name for name, start, _ in spans if start < 99 * SECOND} == {b"old"}
    assert {name for name, start, _ in spans if start >= 99 * SECOND} == {b"new"}


def test_a_time_in_which_nothing_happened_is_read_in_a_few_spans() -> None:
    spans: list[tuple[int, int]] = []
    check = SimpleNamespace(
        now=lambda: 600 * SECOND,
        confidence=CONFIDENCE,
        skip=lambda _table, _to: None,
        read=lambda _table, _streams, start, end: spans.append((start, end)),
    )

    def answer(message: object) -> object:
        if isinstance(message, GenerationsRequest):
            return GenerationsReply(message.number, True, ((1 * SECOND, (b"all",)),))
        assert isinstance(message, ClientScan)
        return ScanReply(message.number, True)

    ask = cast("Ask", lambda makes: answer(makes(1)))
    follower = Follower(ask, "ks.t", Oracle(), cast("ReaderCheck", check), Consumer)
    while not follower.has_read(596 * SECOND):
        assert follower.poll()
    assert spans[0][1] - spans[0][0] == SECOND
    assert len(spans) < 40

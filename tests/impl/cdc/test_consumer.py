"""A consumer reads each change once and in order, whenever it is restarted and whenever it learns of generations."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, strategies as st

from stagewright.impl.cdc.consumer import (
    Consumer,
    ExpiredError,
    Generation,
    Part,
    Position,
    next_part,
    parts_between,
)
from stagewright.impl.cdc.rows import Change
from stagewright.spec.errors import InputError

CONFIDENCE = 10
STARTS = (0, 40, 70)
STREAMS = {start: tuple(b"%02d-stream-%d-----" % (start, i) for i in range(2)) for start in STARTS}


class Log:
    """A log in memory: a generation is known from a time on, a change is there from a time on."""

    def __init__(self, changes: Sequence[Change], known_from: dict[int, int]) -> None:
        self.now = 0
        self._changes = changes
        self._known_from = known_from
        self.kept = 0

    def generations(self) -> Sequence[Generation]:
        known = [g for g in STARTS if self._known_from[g] <= self.now]
        return [Generation(g, STREAMS[g]) for g in reversed(known)]

    def kept_from(self) -> int:
        return self.kept

    def changes(self, streams: Sequence[bytes], start: int, end: int) -> Sequence[Change]:
        assert end <= self.now - CONFIDENCE, "what is too young to be read was asked for"
        wanted = {*streams}
        return [c for c in self._changes if c.stream in wanted and start <= c.timestamp < end]


@st.composite
def logs(draw: st.DrawFn) -> tuple[list[Change], dict[int, int]]:
    """Changes, each in a stream of the generation that operates then, and when clients know each generation."""
    times = draw(st.lists(st.integers(0, 99), unique=True, max_size=30))
    found: list[Change] = []
    for time in times:
        generation = max(s for s in STARTS if s <= time)
        stream = draw(st.sampled_from(STREAMS[generation]))
        found.append(Change(stream, time, b"k%d" % (time % 3), b"v"))
    second = 40 + draw(st.integers(-30, 60))  # generations are published one after another
    return found, {0: 0, 40: second, 70: max(second, 70 + draw(st.integers(-30, 60)))}


@given(
    logs(), st.lists(st.tuples(st.integers(1, 25), st.booleans()), max_size=20), st.integers(3, 90)
)
def test_each_change_is_read_once_and_those_of_a_key_in_their_order(
    log: tuple[list[Change], dict[int, int]], polls: list[tuple[int, bool]], most: int
) -> None:
    written, known = log
    source = Log(written, known)
    seen: list[Change] = []

    def consumer(position: Position | None) -> Consumer:
        return Consumer(source, lambda: source.now, CONFIDENCE, position, most)

    reading = consumer(None)
    for later, restarts in (*polls, *[(20, False)] * 60):
        source.now += later
        seen += reading.poll()
        if restarts and reading.position is not None:
            reading = consumer(Position.from_json(reading.position.to_json()))
    assert sorted(c.timestamp for c in seen) == sorted(c.timestamp for c in written)
    assert [c.timestamp for c in seen] == sorted(c.timestamp for c in seen)


@given(logs(), st.lists(st.integers(1, 25), max_size=20))
def test_parts_between_positions_are_found_again_with_what_is_known_later(
    log: tuple[list[Change], dict[int, int]], waits: list[int]
) -> None:
    written, known = log
    source = Log(written, known)
    position = Position(0, 0)
    seen: list[Change] = []
    for wait in (*waits, *[60] * 6):
        source.now += wait
        begun, parts = position, list[Part]()
        while (
            part := next_part(source.generations(), position, source.now - CONFIDENCE)
        ) is not None:
            parts.append(part)
            position = part.position
        assert parts == list(
            parts_between(Log(written, dict.fromkeys(STARTS, 0)).generations(), begun, position)
        )
        for part in parts:
            seen += source.changes(part.generation.streams, part.start, part.end)
    assert sorted(c.timestamp for c in seen) == sorted(c.timestamp for c in written)


def test_a_position_moves_only_over_what_was_read() -> None:
    class Broken(Log):
        def changes(self, streams: Sequence[bytes], start: int, end: int) -> Sequence[Change]:
            raise OSError("no quorum")

    source = Broken([], dict.fromkeys(STARTS, 0))
    source.now = 60
    reading = Consumer(source, lambda: source.now, CONFIDENCE, Position(0, 5))
    with pytest.raises(OSError, match="no quorum"):
        reading.poll()
    assert reading.position == Position(0, 5)


def test_who_is_too_late_is_told_so_and_stays_where_he_is() -> None:
    source = Log([], dict.fromkeys(STARTS, 0))
    source.now, source.kept = 99, 50
    reading = Consumer(source, lambda: source.now, CONFIDENCE, Position(40, 49))
    with pytest.raises(
        ExpiredError, match="from 49 on were not read, and those before 50"
    ) as error:
        reading.poll()
    assert (error.value.read, error.value.kept_from) == (49, 50)
    assert reading.position == Position(40, 49)
    assert Consumer(source, lambda: source.now, CONFIDENCE, Position(40, 50)).poll() == []


def test_what_expires_while_it_is_read_does_not_count_as_read() -> None:
    class Expiring(Log):
        def changes(self, streams: Sequence[bytes], start: int, end: int) -> Sequence[Change]:
            self.kept = start + 1
            return super().changes(streams, start, end)

    source = Expiring([], dict.fromkeys(STARTS, 0))
    source.now = 60
    with pytest.raises(ExpiredError):
        Consumer(source, lambda: source.now, CONFIDENCE, Position(0, 5)).poll()


def test_who_begins_begins_with_what_is_kept() -> None:
    source = Log([Change(STREAMS[40][0], 55, b"k", b"v")], dict.fromkeys(STARTS, 0))
    source.now, source.kept = 99, 45  # and what is about to expire is left out
    reading = Consumer(source, lambda: source.now, CONFIDENCE)
    found = [*reading.poll(), *reading.poll(), *reading.poll()]
    assert [c.timestamp for c in found] == [55]


def test_a_position_of_another_cluster_is_refused() -> None:
    source = Log([], dict.fromkeys(STARTS, 0))
    source.now = 99
    reading = Consumer(source, lambda: source.now, CONFIDENCE, Position(33, 34))
    with pytest.raises(InputError, match="generation of 33 is not known"):
        reading.poll()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"read": 3}',
        '{"generation": "x", "read": 1}',
        '{"generation": 1, "read": 1.5}',
        '{"generation": 5, "read": 4}',  # nothing is read of a generation before it begins
        '{"generation": -2, "read": 4}',
    ],
)
def test_what_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is no position"):
        Position.from_json(text)

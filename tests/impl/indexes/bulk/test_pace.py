"""What is paced rests in proportion to what its parts took, and nothing rests for ever."""

from __future__ import annotations

import pytest

from stagewright.impl.indexes.bulk import pace
from stagewright.impl.indexes.bulk.pace import FULL, Pace


class Clock:
    """It goes on when something rests, or when a test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self.rests: list[float] = []
        monkeypatch.setattr(pace, "time", self)

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.rests.append(seconds)
        self.now += seconds


def _rests(monkeypatch: pytest.MonkeyPatch, share: int, *parts: float) -> list[float]:
    clock = Clock(monkeypatch)
    paced = Pace(share)
    for part in parts:
        clock.now += part
        paced.rest()
    return [round(rest, 6) for rest in clock.rests]


def test_rests_are_in_proportion_to_what_was_done(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _rests(monkeypatch, 50, 0.002, 0.004) == [0.002, 0.004]
    assert _rests(monkeypatch, 10, 0.002) == [0.018]


def test_what_is_short_is_rested_from_together(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _rests(monkeypatch, 50, 0.0002, 0.0002, 0.0002) == [0.0006]


def test_nothing_rests_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _rests(monkeypatch, 1, 5.0) == [0.1]


def test_at_full_speed_there_is_no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _rests(monkeypatch, FULL, 1.0, 2.0) == []
    assert Pace().is_full
    assert not Pace(99).is_full

"""Known bugs are found again, or it is said why not."""

from __future__ import annotations

import pytest
from tests.checker.mutation.machines import Crossing, Hasty

from stagewright.checker.limits import Limits
from stagewright.checker.mutation.known import rediscover_all, rediscovered
from stagewright.spec import define
from stagewright.spec.errors import UndecoratedError
from stagewright.spec.known_bugs import KnownBug, known_bug

FOUND = KnownBug("X1", "crossing #1", Hasty, Crossing, ("nobody_crosses_at_red",), "It is hasty.")
KEPT = KnownBug("X2", "crossing #2", Hasty, Crossing, ("cars_enter_one_by_one",), "It is not.")
BOTH = KnownBug("X3", "crossing #3", Hasty, Hasty, ("nobody_crosses_at_red",), "No difference.")


def test_a_bug_is_found_by_the_promise_that_it_must_break() -> None:
    found = rediscovered(FOUND, Limits())
    assert found.found
    assert found.by == ("nobody_crosses_at_red",)
    assert found.depth == 5
    assert found.states > 0


def test_a_bug_that_breaks_nothing_that_it_must_is_not_found() -> None:
    found = rediscovered(KEPT, Limits())
    assert not found.found
    assert "violates no property" in found.problem


def test_a_bug_that_the_right_machine_has_too_is_not_found() -> None:
    found = rediscovered(BOTH, Limits())
    assert not found.found
    assert "the right machine breaks nobody_crosses_at_red too" in found.problem


def test_processes_find_what_one_finds_in_the_same_order() -> None:
    bugs = [FOUND, KEPT, BOTH, FOUND]
    alone = rediscover_all(bugs, Limits())
    beside = rediscover_all(bugs, Limits(), workers=2)
    assert [f.by for f in alone] == [f.by for f in beside]
    assert [f.problem for f in alone] == [f.problem for f in beside]


def test_an_override_that_takes_an_action_away_is_refused() -> None:
    class Undecorated(Crossing):
        """The light never closes, which nobody meant."""

        def close(self) -> None:
            """Not an action any more."""

    bug = known_bug("X4", "crossing #4", breaks=Crossing.nobody_crosses_at_red)(Undecorated)
    with pytest.raises(UndecoratedError, match=r"Undecorated\.close` overrides the action `close`"):
        define(bug)

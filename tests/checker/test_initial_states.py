"""A check that has many candidates for its initial states says so, and can be stopped there."""

import pytest

from stagewright.checker.check import check
from stagewright.checker.limits import Limits, Progress
from stagewright.checker.prove import prove
from stagewright.commands.console.progress import line_of
from stagewright.spec import (
    ANY,
    Bool,
    Machine,
    NumberVar,
    ScopeError,
    action,
    define,
    initially,
    invariant,
    number,
    scope_of,
)
from stagewright.spec.verdict import Outcome


class Pair(Machine):
    """A million candidates, of which half are initial."""

    a: NumberVar = number(0, 999, init=ANY)
    b: NumberVar = number(0, 999, init=ANY)

    @initially
    def ordered(self) -> Bool:
        return self.a <= self.b

    @action
    def swap(self) -> None:
        self.a, self.b = self.b, self.a

    @invariant
    def in_range(self) -> Bool:
        return self.a + self.b <= 1998


class Impossible(Pair):
    """No candidate is initial, and to see it takes a look at all of them."""

    @initially
    def never(self) -> Bool:
        return (self.a != self.b) & ~(self.a < self.b)


def test_the_initial_states_are_counted_while_they_are_searched_for() -> None:
    seen: list[Progress] = []
    report = check(define(Pair), scope_of(define(Pair)), progress=seen.append)
    assert report.exhausted
    assert report.states == 1_000_000
    looking = [p for p in seen if p.candidates is not None]
    assert looking[-1].candidates == 1_001_000
    assert 0 < looking[-1].states <= 500_500
    assert line_of(Progress(5, 0, 5, 0, 2.0, candidates=1234)) == (
        "initial states: 5 found, 1,234 candidates looked at, 2 s"
    )


def test_a_check_that_runs_out_of_time_there_decides_nothing() -> None:
    report = check(define(Pair), scope_of(define(Pair)), limits=Limits(seconds=0.0))
    assert not report.exhausted
    assert report.note == "not all initial states were found: the time limit of 0 s was reached"
    assert {v.outcome for v in report.verdicts} == {Outcome.UNDECIDED}
    assert {v.name for v in report.verdicts} == {
        "in_range",
        "no deadlock",
        "assigned values stay in bounds",
    }


@pytest.mark.parametrize("method", [check, prove])
def test_that_there_is_no_initial_state_is_an_error_and_no_proof(method: object) -> None:
    assert callable(method)
    with pytest.raises(ScopeError, match="Impossible: no state satisfies its initial conditions"):
        method(define(Impossible), scope_of(define(Impossible)))


def test_a_proof_does_not_list_them() -> None:
    class Wide(Machine):
        a: NumberVar = number(0, 10**9, init=ANY)

        @initially
        def even(self) -> Bool:
            return self.a + self.a >= 4

        @action
        def reset(self) -> None:
            self.a = 2

        @invariant
        def two(self) -> Bool:
            return self.a >= 2

    report = prove(define(Wide), scope_of(define(Wide)))
    assert {v.outcome for v in report.verdicts} == {Outcome.HOLDS}
    with pytest.raises(ScopeError, match="1,000,000,001 candidates for the initial state"):
        check(define(Wide), scope_of(define(Wide)))

"""Makes a failing scenario small: parts are left out, then numbers made smaller, while it fails alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from stagewright.impl.recording.failure import Failure
from stagewright.impl.recording.minimize import minimize
from stagewright.spec.errors import InputError

RUNS = 150
S = TypeVar("S")
P = TypeVar("P")


@dataclass
class Shrunk(Generic[S]):
    """The smallest scenario that was found, what fails in it, and how many runs that took."""

    scenario: S
    failure: Failure
    runs: int


@dataclass(frozen=True)
class Shape(Generic[S, P]):
    """What scenarios consist of.

    `failures` runs one; `of` makes the one that has some of the parts alone; `smaller` are those in which one
    number is less.
    """

    failures: Callable[[S], Iterable[Failure]]
    parts: Callable[[S], Sequence[P]]
    of: Callable[[S, list[P]], S]
    smaller: Callable[[S], Iterable[S]]


class _Spent(Exception):  # noqa: N818 - no error: the runs that it may take are over
    pass


class _Shrinker(Generic[S, P]):
    def __init__(self, shape: Shape[S, P], best: Shrunk[S], most: int) -> None:
        self.best = best
        self._shape = shape
        self._most = most

    def fails(self, scenario: S) -> bool:
        """Whether it still shows the failure; if so it is the smallest one by now."""
        if self.best.runs >= self._most:
            raise _Spent
        self.best.runs += 1
        try:
            failures = self._shape.failures(scenario)
        except InputError:  # an operation names what was left out
            return False
        alike = next((f for f in failures if f.sort == self.best.failure.sort), None)
        if alike is not None:
            self.best.scenario, self.best.failure = scenario, alike
        return alike is not None

    def leave_out(self) -> None:
        """Do ddmin over the parts."""
        shape = self._shape
        minimize(
            shape.parts(self.best.scenario),
            lambda kept: self.fails(shape.of(self.best.scenario, kept)),
        )

    def lessen(self) -> None:
        """Make numbers less, as long as one can be."""
        while any(self.fails(less) for less in self._shape.smaller(self.best.scenario)):
            pass


def shrink(shape: Shape[S, P], scenario: S, failure: Failure, most: int = RUNS) -> Shrunk[S]:
    """A scenario as small as `most` runs can make it that shows the same failure."""
    shrinker = _Shrinker(shape, Shrunk(scenario, failure, 0), most)
    try:
        before: S | None = None
        while before != shrinker.best.scenario:
            before = shrinker.best.scenario
            shrinker.leave_out()
            shrinker.lessen()
    except _Spent:
        pass
    return shrinker.best

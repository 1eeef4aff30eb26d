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


@dataclass(frozen=True)
class Cuts(Generic[S, P]):
    """How scenarios of one kind become smaller: by parts that are left out, by numbers that are less."""

    parts: Callable[[S], Sequence[P]]
    only: Callable[[S, list[P]], S]  # of the parts, these
    smaller: Callable[[S], Iterable[S]]


@dataclass
class Shrunk(Generic[S]):
    """The smallest scenario that was found, what fails in it, and how many runs that took."""

    scenario: S
    failure: Failure
    runs: int = 0


class _Spent(Exception):  # noqa: N818 - no error: the runs that it may take are over
    pass


def shrink(
    scenario: S,
    failure: Failure,
    failures: Callable[[S], Sequence[Failure]],
    cuts: Cuts[S, P],
    most: int = RUNS,
) -> Shrunk[S]:
    """A scenario as small as `most` runs can make it that shows the same failure."""
    best = Shrunk(scenario, failure)

    def fails(tried: S) -> bool:
        """Whether it still shows the failure; if so it is the smallest one by now."""
        if best.runs >= most:
            raise _Spent
        best.runs += 1
        try:
            alike = next((f for f in failures(tried) if f.sort == failure.sort), None)
        except InputError:  # an operation names what was left out
            return False
        if alike is not None:
            best.scenario, best.failure = tried, alike
        return alike is not None

    try:
        before: S | None = None
        while before != best.scenario:
            before = best.scenario
            minimize(cuts.parts(before), lambda kept: fails(cuts.only(best.scenario, kept)))
            while any(fails(less) for less in cuts.smaller(best.scenario)):
                pass
    except _Spent:
        pass
    return best

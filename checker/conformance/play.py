"""Play a suite against an implementation, and make the first failure as short as it can be."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from stagewright.checker.conformance.adapter import AdapterFactory
from stagewright.checker.conformance.divergence import ConformanceError, Divergence, Walk
from stagewright.checker.conformance.exercised import Exercised
from stagewright.checker.conformance.oracle import Oracle, without_budgets
from stagewright.checker.conformance.shrink import WayTo, shortest
from stagewright.checker.conformance.suites import Suite
from stagewright.checker.conformance.trial import Trial
from stagewright.spec.values import State

__tracebackhide__ = True  # pytest shows a failure in the test and the implementation, not here

OnMoves = Callable[[int], None]
"""Told how many moves more have been made."""


@dataclass(frozen=True)
class SuiteResult:
    """What one suite found. `failure`: the first divergence; `stopped`: why not all of it was played."""

    name: str
    exercised: Exercised
    failure: Divergence | None = None
    covered: int | None = (
        None  # of `total` things that `of` names; None: the suite has no such count
    )
    total: int | None = None
    of: str = ""
    note: str = ""
    stopped: str = ""


def play(
    oracle: Oracle,
    factory: AdapterFactory,
    suite: Suite,
    *,
    way_to: WayTo | None = None,
    on_moves: OnMoves | None = None,
) -> SuiteResult:
    """Play the walks of a suite until one fails. A Ctrl-C ends it, and what was found is kept.

    `way_to`: the shortest way to a state, by which a failure is shown if it fails there as well.

    Raises:
        AdapterError: the adapter observes what the definition does not have.
    """
    if suite.unbudgeted:
        oracle, way_to = oracle.unbudgeted(), _unbudgeted(way_to)
    exercised = Exercised()
    failure: Divergence | None = None
    stopped = ""
    try:
        for walk in suite.walks:
            failure = failure_of(oracle, factory, walk, exercised)
            if failure is not None:
                failure = shortest(
                    oracle, lambda w: failure_of(oracle, factory, w), failure, way_to
                )
                break
            if on_moves is not None:
                on_moves(len(walk.moves))
    except KeyboardInterrupt:
        stopped = "interrupted"
    whole = failure is None and not stopped
    return SuiteResult(
        suite.name,
        exercised,
        failure,
        suite.covered if whole else None,
        suite.total,
        suite.of,
        suite.note,
        stopped,
    )


def _unbudgeted(way_to: WayTo | None) -> WayTo | None:
    """The same ways from first states without budgets."""

    def found(state: State) -> Walk | None:
        way = None if way_to is None else way_to(state)
        return None if way is None else Walk(without_budgets(way.start), way.moves)

    return found


def failure_of(
    oracle: Oracle, factory: AdapterFactory, walk: Walk, exercised: Exercised | None = None
) -> Divergence | None:
    """How an implementation fails one walk; None if it passes."""
    try:
        run_walk(oracle, factory, walk, exercised)
    except ConformanceError as error:
        return error.divergence
    return None


def run_walk(
    oracle: Oracle, factory: AdapterFactory, walk: Walk, exercised: Exercised | None = None
) -> None:
    """Drive an implementation along one walk.

    Raises:
        ConformanceError: it differs from its definition.
        AdapterError: the adapter observes what the definition does not have.
    """
    trial = Trial(oracle, factory, walk.start, Exercised() if exercised is None else exercised)
    try:
        for move in walk.moves:
            trial.make(move)
    finally:
        trial.close()


def look_at_adapter(oracle: Oracle, factory: AdapterFactory, start: State) -> None:
    """Let an adapter begin once, before much is planned for it.

    Raises:
        AdapterError: it lacks a method, or observes what the definition does not have.
    """
    with suppress(ConformanceError):  # a suite reports that, with the run
        run_walk(oracle, factory, Walk(start, ()))

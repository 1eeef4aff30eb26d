"""A Hypothesis state machine made from a definition: random runs, compared after each step, that shrink.

    TestTablet = state_machine(define(TabletMigration), scope, MyAdapter).TestCase

Only this module imports Hypothesis, which takes a third of a second.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

import hypothesis
from hypothesis import HealthCheck, Phase, strategies as st
from hypothesis.errors import Flaky
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)

from stagewright.checker.conformance.adapter import Adapter, AdapterFactory
from stagewright.checker.conformance.divergence import ConformanceError, Divergence, Move
from stagewright.checker.conformance.exercised import Exercised
from stagewright.checker.conformance.oracle import Allowed, Oracle
from stagewright.checker.conformance.play import OnMoves, SuiteResult, failure_of
from stagewright.checker.conformance.shrink import WayTo, shortest
from stagewright.checker.conformance.trial import Trial
from stagewright.spec.definition import Definition
from stagewright.spec.scope import Scope
from stagewright.spec.values import State

_TURNS = 4  # of so many turns the last tries what must be refused, the others let something happen
_REFUSALS = 8  # events tried in such a turn
_NUMBERS = 1 << 16  # more than turns, actions and parameters have combinations, in any sane machine


@dataclass(frozen=True)
class Moves:
    """What a drawn number stands for, as Hypothesis prints it: `start(migration)`, `not finish`."""

    moves: tuple[Move, ...]

    def __repr__(self) -> str:
        return " ".join(map(repr, self.moves)) or "nothing"


@dataclass(frozen=True)
class Subject:
    """An implementation under test and what it is checked by."""

    oracle: Oracle
    factory: AdapterFactory
    exercised: Exercised
    starts: tuple[State, ...]


class ConformanceMachine(RuleBasedStateMachine):
    """Base of the made machines: one run of an implementation beside its definition."""

    subject: ClassVar[Subject]

    def __init__(self) -> None:
        super().__init__()
        self._trial: Trial | None = None

    @initialize(start=st.runner().flatmap(lambda self: st.sampled_from(range(self.initial_states))))
    def begin(self, start: int) -> None:
        """Reset the implementation to an initial state."""
        subject = self.subject
        state = subject.starts[start]
        self._trial = Trial(subject.oracle, subject.factory, state, subject.exercised)

    @rule(
        now=st.builds(
            lambda self, number: self.meaning(number), st.runner(), st.integers(0, _NUMBERS - 1)
        )
    )
    def do(self, now: Moves) -> None:
        """Let something happen, or try what must be refused; compare after each move."""
        for move in now.moves:
            self._running.make(move)
            hypothesis.event(f"{'refused' if move.refused else 'took'} {move.step.action}")

    def teardown(self) -> None:
        """Release the implementation."""
        if self._trial is not None:
            self._trial.close()

    @property
    def initial_states(self) -> int:
        """How many there are."""
        return len(self.subject.starts)

    def meaning(self, number: int) -> Moves:
        """The moves that a number stands for in the present state."""
        return Moves(chosen(self.subject.oracle.allowed(self._running.state), number))

    @property
    def _running(self) -> Trial:
        assert self._trial is not None, "Hypothesis begins every run with `begin`"
        return self._trial


def chosen(allowed: Allowed, number: int) -> tuple[Move, ...]:
    """The moves that a number stands for: an enabled step, or some events that must be refused.

    Every number stands for something, whatever the state, and each turn costs one number. So none is
    wasted, and Hypothesis can leave out any turn of a failing run. (A rule an action, with
    preconditions, is drawn by rejection and switched off for whole runs: runs stay shallow, and what
    fails hardly shrinks.) An action is chosen first, then its parameters among those that are enabled.
    """
    turn, number = number % _TURNS, number // _TURNS
    if allowed.enabled and (turn < _TURNS - 1 or not allowed.refused):
        number, action = divmod(number, len(allowed.actions))
        steps = allowed.actions[action]
        return (Move(steps[number % len(steps)]),)
    size = len(allowed.refused)
    first = number % max(size, 1)
    window = range(first, first + min(_REFUSALS, size))
    return tuple(Move(allowed.refused[i % size], refused=True) for i in window)


def state_machine(
    definition: Definition,
    scope: Scope,
    adapter_factory: AdapterFactory,
    *,
    exercised: Exercised | None = None,
) -> type[RuleBasedStateMachine]:
    """A Hypothesis state machine over an implementation, made from its definition.

    Each turn takes an enabled step, or tries events that must be refused and sees that they are and that
    nothing changes. `exercised` takes up what was done. What fails raises a `ConformanceError`, whose
    text is the story of the run. `TestCase.settings` leave out the explanation of failures by the lines
    that were run: it takes many times as long as the shrinking, and the story says more.
    """
    oracle = Oracle(definition, scope)
    done = Exercised() if exercised is None else exercised
    members: dict[str, Any] = {
        "__doc__": f"Random runs of an implementation of {oracle.name}.",
        "__module__": __name__,
        "subject": Subject(oracle, adapter_factory, done, oracle.initial_states()),
    }
    name = re.sub(r"\W", "_", definition.name) + "Conformance"
    made: type[RuleBasedStateMachine] = type(name, (ConformanceMachine,), members)
    made.TestCase.settings = hypothesis.settings(
        made.TestCase.settings, phases=[p for p in Phase if p is not Phase.explain]
    )
    return made


def run_random(
    definition: Definition,
    scope: Scope,
    factory: AdapterFactory,
    *,
    seed: int,
    examples: int,
    steps: int,
    way_to: WayTo | None = None,
    on_moves: OnMoves | None = None,
) -> SuiteResult:
    """Run so many examples of so many turns each; of a failure, the shortest run that still fails.

    `way_to`: the shortest way to a state, if it is known. `on_moves` is called for each run.

    Raises:
        AdapterError: the adapter observes what the definition does not have.
    """
    exercised = Exercised()
    begun = _announcing(factory, on_moves)
    machine = hypothesis.seed(seed)(state_machine(definition, scope, begun, exercised=exercised))
    settings = hypothesis.settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        derandomize=False,
        print_blob=False,
        report_multiple_bugs=False,
        phases=[
            Phase.generate
        ],  # `shortest` knows the definition, and shrinks in a fraction of the time
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example],
    )
    failure: Divergence | None = None
    note = stopped = ""
    try:
        run_state_machine_as_test(machine, settings=settings)
    except ConformanceError as error:
        failure = error.divergence
    except Flaky as flaky:
        failure = _divergence_in(flaky)
        if failure is None:
            raise
        note = "it does not always fail: the implementation depends on more than its events"
    except KeyboardInterrupt:
        stopped = "interrupted"
    if failure is not None and not note:
        oracle = Oracle(definition, scope)
        failure = shortest(oracle, lambda walk: failure_of(oracle, factory, walk), failure, way_to)
    return SuiteResult("hypothesis", exercised, failure, note=note, stopped=stopped)


def _announcing(factory: AdapterFactory, on_moves: OnMoves | None) -> AdapterFactory:
    """The factory, which announces every run that is begun."""

    def make() -> Adapter:
        if on_moves is not None:
            on_moves(1)
        return factory()

    return make


def _divergence_in(error: BaseException) -> Divergence | None:
    """The first divergence among the errors that Hypothesis has put together."""
    if isinstance(error, ConformanceError):
        return error.divergence
    inside = list(error.exceptions) if isinstance(error, BaseExceptionGroup) else []
    inside += [e for e in (error.__cause__, error.__context__) if e is not None]
    return next((d for d in map(_divergence_in, inside) if d is not None), None)

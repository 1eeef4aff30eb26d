"""`assert_conforms`: an implementation is driven through its adapter and must do what the definition says."""

from __future__ import annotations

from collections.abc import Collection

from stagewright.checker.conformance import AdapterFactory, ConformanceError
from stagewright.checker.conformance.fault_domain.words import (
    Method,
    always_observed,
    bounded_suite,
)
from stagewright.checker.conformance.oracle import Oracle
from stagewright.checker.conformance.play import play
from stagewright.checker.conformance.space import explored
from stagewright.checker.conformance.suites import (
    MOST_STATES,
    Suite,
    refusal_suite,
    transition_tour,
)
from stagewright.spec.definition import Definition
from stagewright.spec.errors import InputError
from stagewright.spec.machine import Machine
from stagewright.testing.subject import Budgets, Sizes, resolved

__tracebackhide__ = True  # pytest shows a failure in the test and the implementation, not here

SUITES = ("tour", "refusals", "hypothesis")
"""Every transition; every event that must be refused; random runs."""

BOUNDED_SUITES = ("w", "wp")
"""Every fault of an implementation with at most so many states."""


def assert_conforms(
    machine: type[Machine] | Definition,
    adapter: AdapterFactory,
    *,
    profile: str = "",
    sizes: Sizes | None = None,
    budgets: Budgets | None = None,
    suites: Collection[str] = SUITES,
    extra_states: int = 0,
    seed: int = 0,
    examples: int = 100,
    steps: int = 100,
) -> None:
    """Play the suites against an implementation; `adapter` makes its adapter, as a class does.

    `examples` random runs of `steps` turns are made, from `seed`. A failure is shrunk to the shortest run that
    still fails. The suites `w` and `wp` find every fault of an implementation with up to `extra_states` states more
    than can be told apart by what its adapter observes.

    Raises:
        ConformanceError: the implementation differs from its definition; the text is the run.
        AdapterError: the adapter observes what the definition does not have.
    """
    for name in suites:
        if name not in (known := (*SUITES, *BOUNDED_SUITES)):
            raise InputError(f"there is no suite `{name}`", help=f"choose of {', '.join(known)}")
    definition, scope = resolved(machine, profile, sizes, budgets)
    oracle = Oracle(definition, scope)
    space = explored(definition, scope, states=MOST_STATES)
    planned: list[Suite] = []
    if "tour" in suites:
        planned.append(transition_tour(definition, scope, space=space))
    if "refusals" in suites:
        planned.append(refusal_suite(definition, scope, space=space))
    for name in BOUNDED_SUITES:
        if name in suites:
            observed = always_observed(oracle.initial_states(), adapter)
            planned.append(
                bounded_suite(space, Method(name), extra=extra_states, observed=observed)
            )
    results = [play(oracle, adapter, suite, way_to=space.way_to) for suite in planned]
    if "hypothesis" in suites and not any(r.failure for r in results):
        from stagewright.checker.conformance.stateful import run_random

        results.append(
            run_random(
                definition,
                scope,
                adapter,
                seed=seed,
                examples=examples,
                steps=steps,
                way_to=space.way_to,
            )
        )
    for result in results:
        if result.failure is not None:
            raise ConformanceError(result.failure)
        if result.stopped:
            raise KeyboardInterrupt(result.stopped)

"""The Hypothesis machine made from a definition: it runs, it finds, it shrinks, and it tells."""

from __future__ import annotations

import unittest
from collections.abc import Callable

import hypothesis
import pytest
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test
from tests.checker.conformance.faulty import SessionNotOpened
from tests.checker.conformance.hand_written import HandWrittenTablet
from tests.checker.conformance.machines import (
    Counter,
    CounterAdapter,
    Stuck,
    Votes,
    VotesAdapter,
)

from stagewright.checker.conformance import ConformanceError, Fault
from stagewright.checker.conformance.adapter import Adapter
from stagewright.checker.conformance.exercised import Exercised
from stagewright.checker.conformance.oracle import Oracle
from stagewright.checker.conformance.stateful import chosen, run_random, state_machine
from stagewright.machines.scylladb.tablets.tablet_migration import TabletMigration
from stagewright.spec import Machine, define, scope_of
from stagewright.spec.verdict import Step

FEW = hypothesis.settings(
    max_examples=20,
    stateful_step_count=20,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[hypothesis.Phase.generate, hypothesis.Phase.shrink],
)


def made(
    machine: type[Machine], factory: Callable[[], Adapter], exercised: Exercised | None = None
) -> type[RuleBasedStateMachine]:
    definition = define(machine)
    return state_machine(definition, scope_of(definition), factory, exercised=exercised)


def test_right_implementation_passes_as_a_test_case() -> None:
    machine = made(Counter, CounterAdapter)
    assert issubclass(machine, RuleBasedStateMachine)
    case = machine.TestCase
    case.settings = FEW
    result = unittest.TestResult()
    case("runTest").run(result)
    assert result.wasSuccessful()
    assert result.testsRun == 1


def test_every_initial_state_is_tried() -> None:
    exercised = Exercised()
    run_state_machine_as_test(made(Votes, VotesAdapter, exercised), settings=FEW)
    starts = {state["leads"] for state, _ in exercised.edges}
    assert len(starts) == 3


def test_state_without_anything_to_do_is_rested_in() -> None:
    class Finishes:
        def __init__(self) -> None:
            self.done = False

        def reset(self, initial: object) -> None:
            self.done = False

        def do(self, step: Step) -> None:
            self.done = True

        def observe(self) -> dict[str, object]:
            return {"done": self.done}

    exercised = Exercised()
    run_state_machine_as_test(made(Stuck, Finishes, exercised), settings=FEW)
    assert exercised.fired["finish"] > 0


def test_failure_shrinks_to_the_shortest_story() -> None:
    with pytest.raises(ConformanceError) as caught:
        run_state_machine_as_test(made(TabletMigration, SessionNotOpened), settings=FEW)
    found = caught.value.divergence
    assert [repr(move) for move in found.moves] == [
        "start(migration)",
        "pass_barrier",
        "write_both",
    ]
    assert str(found.differences[0]) == "session: expected yes, observed no"
    printed = "\n".join(caught.value.__notes__)
    assert "state.do(now=write_both)" in printed


def test_every_number_stands_for_a_move_in_every_state() -> None:
    definition = define(TabletMigration)
    oracle = Oracle(definition, scope_of(definition))
    allowed = oracle.allowed(oracle.initial_states()[0])
    for number in range(500):
        moves = chosen(allowed, number)
        assert moves
        for move in moves:
            assert move.step in (allowed.refused if move.refused else allowed.enabled)
    tried = {move for number in range(500) for move in chosen(allowed, number)}
    assert {m.step for m in tried if not m.refused} == set(allowed.enabled)
    assert {m.step for m in tried if m.refused} == set(allowed.refused)


def test_same_seed_does_the_same() -> None:
    definition = define(TabletMigration)
    scope = scope_of(definition)
    runs = [
        run_random(definition, scope, HandWrittenTablet, seed=seed, examples=10, steps=20)
        for seed in (1, 1, 2)
    ]
    assert runs[0].exercised == runs[1].exercised
    assert runs[0].exercised != runs[2].exercised


def test_implementation_that_fails_only_sometimes_is_reported_as_such() -> None:
    class Moody(CounterAdapter):
        made = 0

        def __init__(self) -> None:
            super().__init__()
            Moody.made += 1

        def do(self, step: Step) -> None:
            if Moody.made == 3:
                raise ZeroDivisionError
            super().do(step)

    definition = define(Counter)
    result = run_random(definition, scope_of(definition), Moody, seed=0, examples=20, steps=10)
    assert result.failure is not None
    assert result.failure.fault is Fault.FAILED
    assert "does not always fail" in result.note


def test_interrupt_keeps_what_was_done() -> None:
    class Interrupted(CounterAdapter):
        def do(self, step: Step) -> None:
            if self.count == 2:
                raise KeyboardInterrupt
            super().do(step)

    definition = define(Counter)
    result = run_random(
        definition, scope_of(definition), Interrupted, seed=0, examples=20, steps=10
    )
    assert (result.failure, result.stopped) == (None, "interrupted")

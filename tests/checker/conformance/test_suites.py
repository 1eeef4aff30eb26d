"""Tours and refusals cover what they promise, by the reference interpreter's own account."""

from __future__ import annotations

from hypothesis import assume, given, settings, strategies as st
from tests.checker.conformance.machines import Counter, CounterAdapter, Stuck, Votes
from tests.random_machines.definitions import RandomMachine, machines
from tests.random_machines.explored import Explored, TooLargeError
from tests.thorough import examples

from stagewright.checker.conformance import Fault, RefusedEvent
from stagewright.checker.conformance.divergence import Walk
from stagewright.checker.conformance.oracle import Oracle, without_budgets
from stagewright.checker.conformance.play import play
from stagewright.checker.conformance.space import Cover, explored
from stagewright.checker.conformance.suites import refusal_suite, transition_tour
from stagewright.machines.scylladb.tablets.tablet_migration import TabletMigration
from stagewright.spec import (
    FlagVar,
    Machine,
    NumberVar,
    RefusedError,
    action,
    bounded,
    define,
    flag,
    number,
    require,
    scope_of,
)
from stagewright.spec.errors import DomainError, ScopeError
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.trace import observation
from stagewright.spec.values import State
from stagewright.spec.verdict import Step

MOST_STATES = 60


class Sabotaged:
    """The interpreter as an implementation, but for one step in one state."""

    def __init__(self, oracle: Interpreter, state: State | None, step: Step | None) -> None:
        self._oracle = oracle
        self._bad = (state, step)
        self._state: State | None = None

    def reset(self, initial: State) -> None:
        self._state = initial

    def do(self, step: Step) -> None:
        assert self._state is not None
        if (without_budgets(self._state), step) == self._bad:
            if self._oracle.failed_requirements(step, self._state):
                return
            raise RefusedError("sabotaged", ())
        self._state = self._oracle.take(step, self._state)

    def observe(self) -> dict[str, object]:
        assert self._state is not None
        return observation(self._state)


def small(machine: RandomMachine) -> Explored:
    """The machine explored by the interpreter, if it is small and never leaves its bounds."""
    try:
        found = Explored(machine, MOST_STATES)
    except (TooLargeError, ScopeError, DomainError):
        found = None
    assume(found is not None)
    assert found is not None
    assume(not found.overflows and bool(found.initial))
    return found


@settings(max_examples=examples(40))
@given(machines(), st.data())
def test_tour_finds_any_one_step_that_is_refused_in_one_state(
    machine: RandomMachine, data: st.DataObject
) -> None:
    found = small(machine)
    assume(bool(found.edges))
    order = sorted(found.edges, key=repr)
    state, step, _ = data.draw(st.sampled_from(order))
    oracle = Oracle(machine.definition, machine.scope)
    suite = transition_tour(machine.definition, machine.scope)
    bad = without_budgets(state)
    result = play(oracle, lambda: Sabotaged(found.interpreter, bad, step), suite)
    assert result.failure is not None
    assert result.failure.fault is Fault.REFUSED
    assert result.failure.moves[-1].step == step
    assert play(oracle, lambda: Sabotaged(found.interpreter, None, None), suite).failure is None


@settings(max_examples=examples(40))
@given(machines(), st.data())
def test_refusals_find_any_one_event_that_is_accepted_in_one_state(
    machine: RandomMachine, data: st.DataObject
) -> None:
    found = small(machine)
    oracle = Oracle(machine.definition, machine.scope)
    refused = [
        (s, step) for s in sorted(found.states, key=repr) for step in oracle.allowed(s).refused
    ]
    assume(bool(refused))
    state, step = data.draw(st.sampled_from(refused))
    suite = refusal_suite(machine.definition, machine.scope)
    bad = without_budgets(state)
    result = play(oracle, lambda: Sabotaged(found.interpreter, bad, step), suite)
    assert result.failure is not None
    assert result.failure.fault is Fault.ACCEPTED
    assert result.failure.moves[-1].step == step
    assert play(oracle, lambda: Sabotaged(found.interpreter, None, None), suite).failure is None


def test_tour_takes_every_edge_and_is_the_same_each_time() -> None:
    definition = define(TabletMigration, "seed")
    scope = scope_of(definition)
    suite = transition_tour(definition, scope)
    oracle = Oracle(definition, scope)
    edges = {
        (without_budgets(state), step)
        for state in reachable(oracle)
        for step in oracle.allowed(state).enabled
    }
    assert taken(oracle, suite.walks) == edges
    assert suite.covered == suite.total == len(edges)
    assert suite == transition_tour(definition, scope)


def reachable(oracle: Oracle) -> set[State]:
    todo = list(oracle.initial_states())
    found = set(todo)
    while todo:
        state = todo.pop()
        for step in oracle.allowed(state).enabled:
            if (after := oracle.after(step, state)) not in found:
                found.add(after)
                todo.append(after)
    return found


def taken(oracle: Oracle, walks: tuple[Walk, ...]) -> set[tuple[State, Step]]:
    edges: set[tuple[State, Step]] = set()
    for walk in walks:
        state = walk.start
        for move in walk.moves:
            assert not move.refused
            edges.add((without_budgets(state), move.step))
            state = oracle.after(move.step, state)
    return edges


def test_tour_without_budgets_is_a_single_walk_where_every_state_leads_back() -> None:
    definition = define(Counter)
    suite = transition_tour(definition, scope_of(definition, budgets={"resets": None}))
    assert len(suite.walks) == 1
    assert suite.covered == suite.total == 6  # three times up, and back from each


def test_control_states_need_fewer_moves() -> None:
    definition = define(TabletMigration, "seed")
    scope = scope_of(definition)
    every = transition_tour(definition, scope)
    control = transition_tour(definition, scope, cover=Cover.CONTROL)
    assert control.of == "control edges"
    assert control.moves < every.moves / 2


def test_limit_on_moves_is_said_with_what_was_covered() -> None:
    definition = define(TabletMigration, "seed")
    suite = transition_tour(definition, scope_of(definition), moves=50)
    assert 0 < suite.covered < suite.total
    assert "stopped after" in suite.note


def test_limit_on_states_is_said() -> None:
    definition = define(TabletMigration)
    scope = scope_of(definition)
    suite = refusal_suite(definition, scope, space=explored(definition, scope, states=100))
    assert "not all states: the limit of 100 states was reached" in suite.note


def test_every_initial_state_is_begun_in() -> None:
    definition = define(Votes)
    suite = transition_tour(definition, scope_of(definition))
    assert len({walk.start for walk in suite.walks}) == 3


def test_what_has_no_requirement_need_not_be_refused() -> None:
    definition = define(Stuck)
    suite = refusal_suite(definition, scope_of(definition))
    assert (suite.covered, suite.total, suite.walks) == (0, 0, ())


def test_interrupt_keeps_what_was_found() -> None:
    class Interrupted(CounterAdapter):
        def do(self, step: Step) -> None:
            if self.count == 2:
                raise KeyboardInterrupt
            super().do(step)

    definition = define(Counter)
    scope = scope_of(definition)
    result = play(Oracle(definition, scope), Interrupted, transition_tour(definition, scope))
    assert (result.failure, result.stopped) == (None, "interrupted")
    assert result.exercised.steps >= 2


class Counted(Machine):
    """A number that grows, in a check up to three."""

    n: NumberVar = number(0, 3)
    open: FlagVar = flag(init=True)

    @action
    def grow(self) -> None:
        """One more."""
        require(self.open, "open")
        bounded(self.n < 3)
        self.n = self.n + 1

    @action
    def close(self) -> None:
        """No more."""
        require(self.open, "open")
        self.open = False


class Endless:
    """An implementation that knows no largest number."""

    def reset(self, initial: State) -> None:
        self.n, self.open = 0, True

    def do(self, step: Step) -> None:
        if not self.open:
            raise RefusedEvent("closed")
        self.n += step.action == "grow"
        self.open = step.action != "close"

    def observe(self) -> dict[str, object]:
        return {"n": self.n, "open": self.open}


def test_what_only_a_bound_of_the_check_forbids_need_not_be_refused() -> None:
    definition = define(Counted)
    scope = scope_of(definition)
    space = explored(definition, scope)
    tried = 0
    for suite in (transition_tour(definition, scope), refusal_suite(definition, scope)):
        result = play(Oracle(definition, scope), Endless, suite, way_to=space.way_to)
        assert result.failure is None
        tried += result.exercised.steps + result.exercised.refusals
    assert tried > 10

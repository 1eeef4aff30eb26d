"""Runs and states that are drawn are those of the definition."""

from hypothesis import find, given, settings
from hypothesis.vendor.pretty import pretty
from tests.models.lease import Lease, LeaseTable

from stagewright.spec.define import define
from stagewright.spec.definition import PropertyKind
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.scope import scope_of
from stagewright.spec.values import State
from stagewright.spec.verdict import Run
from stagewright.testing import initial_states, runs, states

LEASE = define(LeaseTable)
INTERPRETER = Interpreter(LEASE, scope_of(LEASE, {"node": 2}))


@given(runs(LeaseTable, sizes={"node": 2}))
@settings(max_examples=30, deadline=None)
def test_each_step_of_a_run_is_enabled_and_leads_to_its_next_state(run: Run) -> None:
    assert run.states[0] in list(INTERPRETER.initial_states())
    for state, step, after in zip(run.states, run.steps, run.states[1:], strict=False):
        assert INTERPRETER.take(step, state) == after


@given(states(LEASE, sizes={"node": 2}, max_steps=4))
@settings(max_examples=30, deadline=None)
def test_a_drawn_state_satisfies_the_invariants(state: State) -> None:
    for prop in LEASE.properties:
        if prop.kind is PropertyKind.INVARIANT:
            assert INTERPRETER.holds(prop, state)[0]


def test_a_run_shrinks_to_the_fewest_steps_and_the_first_values() -> None:
    expiring = find(runs(LEASE), lambda run: run.states[-1]["lease"] is Lease.expiring)
    assert [step.label for step in expiring.steps] == ["acquire(node0)", "go_silent"]


def test_what_fails_is_shown_as_a_person_reads_it() -> None:
    expiring = find(runs(LEASE), lambda run: run.states[-1]["lease"] is Lease.expiring)
    assert pretty(expiring).splitlines() == [
        "Run from lease = free, holder = none, epoch = 0",
        "     1  acquire(node0)   lease: free → held, holder: none → node0, epoch: 0 → 1",
        "     2  go_silent   lease: held → expiring",
    ]
    assert pretty(expiring.states[0]) == "{'lease': Lease.free, 'holder': None, 'epoch': 0}"


def test_initial_states_are_those_of_the_definition() -> None:
    drawn = find(initial_states(LEASE, sizes={"node": 2}), lambda _: True)
    assert drawn in set(INTERPRETER.initial_states())

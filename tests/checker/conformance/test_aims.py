"""Aimed suites do all that any run can do of what they aim at, by the reference interpreter's own account."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from hypothesis import assume, given, settings
from tests.checker.conformance.machines import Counter, Fragile
from tests.random_machines.definitions import RandomMachine, machines
from tests.random_machines.explored import Explored, TooLargeError
from tests.thorough import examples

from stagewright.checker.conformance.aims import aimed_refusals, aimed_tour
from stagewright.checker.conformance.divergence import Walk
from stagewright.checker.conformance.oracle import Oracle
from stagewright.checker.conformance.space import explored
from stagewright.checker.conformance.suites import transition_tour
from stagewright.checker.explicit.runs import step_of
from stagewright.machines.scylladb.tablets.tablet_migration import TabletMigration
from stagewright.spec import define, scope_of
from stagewright.spec.definition import Definition
from stagewright.spec.errors import DomainError, ScopeError
from stagewright.spec.grounding.coverable import (
    ActionOf,
    Edge,
    Move,
    RequirementOf,
    Thing,
    ValueOf,
    parts_of,
    things_of,
    value_names,
)
from stagewright.spec.grounding.ground import GroundModel
from stagewright.spec.grounding.lowering import ground
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.scope import Scope
from stagewright.spec.sorts import EnumSort
from stagewright.spec.values import State
from stagewright.spec.verdict import Step


class Doing:
    """What steps and states do of a definition, one at a time."""

    def __init__(self, definition: Definition, scope: Scope) -> None:
        self.oracle = Oracle(definition, scope)
        self.interpreter = Interpreter(definition, scope)
        self.model: GroundModel = ground(definition, scope)
        self.parts = parts_of(definition)
        self.things = list(dict.fromkeys(things_of(definition, scope, self.model.cells)))
        self.names = value_names(self.model.cells, scope)
        self.codes: dict[State, Sequence[int]] = {}
        self.updates = {step_of(s): s.updates for s in self.model.steps}

    def encoded(self, state: State) -> Sequence[int]:
        if state not in self.codes:
            self.codes[state] = self.model.encode(state)
        return self.codes[state]

    def in_state(self, state: State) -> set[Thing]:
        codes = self.encoded(state)
        return {n[codes[c] - low] for c, low, n in self.names}

    def by(self, state: State, step: Step, after: State) -> set[Thing]:
        found = self.in_state(after) | {ActionOf(step.action)}
        old, new = self.encoded(state), self.encoded(after)
        for index in self.updates[step]:
            cell = self.model.cells[index]
            if isinstance(cell.sort, EnumSort):
                source, target = (cell.sort.members[v[index]].name for v in (old, new))
                found.add(Move(cell.variable, source, target))
                found.add(Edge(cell.variable, source, target, step.action))
        for requirement, sides in self.parts.get(step.action, {}).items():
            for part, side in sides:
                values = self.oracle.values_of(step)
                if self.interpreter.evaluate(side, state, environment=values):
                    found.add(RequirementOf(step.action, requirement, part))
        return found

    def walked(self, walks: Iterable[Walk]) -> set[Thing]:
        found: set[Thing] = set()
        for walk in walks:
            state = walk.start
            found |= self.in_state(state)
            for move in walk.moves:
                assert move.step in self.oracle.allowed(state).enabled
                after = self.oracle.after(move.step, state)
                found |= self.by(state, move.step, after)
                state = after
        return found

    def refused(self, walks: Iterable[Walk]) -> Iterator[tuple[str, list[str]]]:
        """The action of each event that a walk has refused, and the requirements that refuse it."""
        for walk in walks:
            state = walk.start
            for move in walk.moves:
                if move.refused:
                    false = self.oracle.false_requirements(move.step, state)
                    yield move.step.action, [r.name for r in false]
                else:
                    state = self.oracle.after(move.step, state)


def small(machine: RandomMachine) -> Explored:
    """The machine explored by the interpreter, if it is small and never leaves its bounds."""
    try:
        found = Explored(machine, 60)
    except (TooLargeError, ScopeError, DomainError):
        found = None
    assume(found is not None and not found.overflows and bool(found.initial))
    assert found is not None
    return found


@settings(max_examples=examples(50))
@given(machines())
def test_what_any_run_does_is_reached_and_nothing_else_is(machine: RandomMachine) -> None:
    found = small(machine)
    doing = Doing(machine.definition, machine.scope)
    possible = set[Thing]().union(*map(doing.in_state, found.initial))
    for state, step, after in found.edges:
        possible |= doing.by(state, step, after)
    space = explored(machine.definition, machine.scope, parts=True)
    tour = aimed_tour(space, doing.things)
    whole = {t for t in doing.things if isinstance(t, RequirementOf) and not t.part}
    assert set(tour.reached) == {t for t in doing.things if t in possible} - whole
    assert set(tour.unreachable) == set(doing.things) - possible - whole
    assert set(tour.reached) <= doing.walked(tour.suite.walks)
    refusals = aimed_refusals(space, doing.things)
    refusing = [
        (step.action, [r.name for r in doing.oracle.false_requirements(step, state)])
        for state in found.states
        for step in doing.oracle.allowed(state).refused
    ]
    done = list(doing.refused(refusals.suite.walks))
    for requirement in whole:
        assert isinstance(requirement, RequirementOf)
        action, name = requirement.action, requirement.requirement
        may = [names for of, names in refusing if of == action and name in names]
        assert (requirement in refusals.reached) == bool(may)
        assert (requirement in refusals.unreachable) == (not may)
        if may:
            names = [names for of, names in done if of == action and name in names]
            assert ([name] in names) == ([name] in may)


def test_one_thing_is_reached_by_one_short_walk() -> None:
    definition = define(TabletMigration)
    space = explored(definition, scope_of(definition), parts=True)
    wanted = Edge("stage", "cleanup", "end_migration", "end")
    tour = aimed_tour(space, [wanted])
    assert tour.reached == (wanted,)
    (walk,) = tour.suite.walks
    assert walk.moves[-1].step.action == "end"
    assert len(walk.moves) < 20 < transition_tour(definition, scope_of(definition)).moves
    assert not aimed_refusals(space, [wanted]).suite.walks


def test_what_an_initial_state_shows_is_a_run_without_steps() -> None:
    definition = define(Counter)
    space = explored(definition, scope_of(definition), parts=True)
    tour = aimed_tour(space, [ValueOf("count", "0"), ValueOf("count", "9")])
    assert (tour.reached, tour.unreachable) == ((ValueOf("count", "0"),), (ValueOf("count", "9"),))
    assert [walk.moves for walk in tour.suite.walks] == [()]


def test_a_suite_that_ends_early_says_what_it_has_not_reached() -> None:
    definition = define(Counter)
    space = explored(definition, scope_of(definition), parts=True)
    wanted: list[Thing] = [ValueOf("count", "1"), ValueOf("count", "3"), ActionOf("reset")]
    assert set(aimed_tour(space, wanted).reached) == set(wanted)
    short = aimed_tour(space, wanted, moves=1)
    assert short.reached == (ValueOf("count", "1"),)
    assert not short.unreachable
    assert "stopped after 1 moves" in short.suite.note


def test_where_a_budget_of_zero_shuts_all_actions_nothing_more_is_reached() -> None:
    definition = define(Fragile)
    scope = scope_of(definition, budgets={"falls": 0})
    found = aimed_tour(explored(definition, scope, parts=True), Doing(definition, scope).things)
    assert found.reached == (ValueOf("up", "yes"),)

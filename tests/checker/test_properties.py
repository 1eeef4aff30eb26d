"""Witnesses, accepted actions, lemmas and wording: decided alike by every method, and told apart."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

import pytest
from tests.models.workers import OneAtATime, Task, Worker

from stagewright.checker.check import check
from stagewright.checker.counterexample import render_text
from stagewright.checker.counterexample.files import plain_text
from stagewright.checker.engines import EngineKind
from stagewright.checker.prove import prove
from stagewright.checker.tla.module import tla_module
from stagewright.spec import (
    Bool,
    DefinitionError,
    FlagVar,
    LeadsTo,
    Machine,
    OneVar,
    Term,
    accepts,
    action,
    define,
    flag,
    invariant,
    leads_to,
    lemma,
    liveness,
    one_of,
    require,
    scope_of,
    set_of,
    sometimes,
    step_property,
    wording,
)
from stagewright.spec.definition import Definition, Role
from stagewright.spec.verdict import Outcome, PropertyVerdict, Report

ENGINES = pytest.mark.parametrize("engine", [EngineKind.NUMPY, EngineKind.NATIVE])


def verdicts(report: Report) -> dict[str, PropertyVerdict]:
    return {v.name: v for v in report.verdicts}


def checked(definition: Definition, engine: EngineKind = EngineKind.NUMPY) -> Report:
    return check(definition, scope_of(definition), engine=engine, symmetry=True)


@ENGINES
def test_a_witness_is_the_nearest_run(engine: EngineKind) -> None:
    found = verdicts(checked(define(Worker), engine))
    both = found["all_tasks_at_once"]
    assert both.outcome is Outcome.HOLDS
    assert both.run is None
    assert both.witness is not None
    assert [step.action for step in both.witness.steps] == ["start", "start"]
    loses = found["a_crash_loses_work"].witness
    assert loses is not None
    assert [step.action for step in loses.steps] == ["start", "crash"]


@ENGINES
def test_a_witness_may_be_sought_at_a_scope_of_its_own(engine: EngineKind) -> None:
    three = verdicts(checked(define(Worker), engine))["three_at_once"]
    assert three.outcome is Outcome.HOLDS
    assert three.scope == "Task=3, crashes=0"
    assert three.witness is not None
    assert len(three.witness.steps) == 3


@ENGINES
def test_what_no_run_reaches_is_violated_once_all_states_are_known(engine: EngineKind) -> None:
    definition = define(OneAtATime)
    found = verdicts(checked(definition, engine))
    assert found["all_tasks_at_once"].outcome is Outcome.VIOLATED
    assert found["all_tasks_at_once"].note.startswith("no run reaches it")
    assert found["three_at_once"].outcome is Outcome.VIOLATED
    few = check(definition, scope_of(definition), properties=["a_crash_loses_work"], engine=engine)
    assert few.outcome is Outcome.HOLDS


def test_the_counterexample_names_the_requirement_that_refuses() -> None:
    definition = define(OneAtATime)
    refused = verdicts(checked(definition))["tasks_are_independent"]
    assert refused.outcome is Outcome.VIOLATED
    text = plain_text(definition, refused, scope_of(definition))
    assert "start is refused by `nothing else is under way`" in text
    assert "crashes left" not in text.partition("is refused")[2]


def test_a_witness_is_reported_as_a_run_that_reaches_it() -> None:
    definition = define(Worker)
    both = verdicts(checked(definition))["all_tasks_at_once"]
    text = plain_text(definition, both, scope_of(definition))
    assert "all_tasks_at_once is reached after 2 steps" in text
    assert "✓ all_tasks_at_once" in text
    assert render_text(definition, both, scope_of(definition))


def test_the_solver_says_the_same() -> None:
    right, wrong = define(Worker), define(OneAtATime)
    found = verdicts(prove(right, scope_of(right)))
    assert {v.outcome for v in found.values()} == {Outcome.HOLDS}
    assert "three_at_once" not in found, "a scope of its own is left to check"
    witness = found["all_tasks_at_once"].witness
    assert witness is not None
    assert len(witness.steps) == 2
    broken = verdicts(prove(wrong, scope_of(wrong)))
    assert broken["all_tasks_at_once"].outcome is Outcome.VIOLATED
    assert broken["tasks_are_independent"].outcome is Outcome.VIOLATED


def test_a_budget_is_no_refusal() -> None:
    class Crashing(Worker):
        @accepts(Worker.crash)
        def it_may_crash(self) -> Bool:
            return ~self.down

    definition = define(Crashing)
    for crashes in (0, 1):
        scope = scope_of(definition, budgets={"crashes": crashes})
        report = check(definition, scope, properties=["it_may_crash"], engine=EngineKind.NUMPY)
        assert report.outcome is Outcome.HOLDS


def test_parameters_of_one_name_are_one_and_for_the_others_some_value_will_do() -> None:
    class Chooser(Machine):
        taken = set_of(Task)

        @action
        def take(self, t: Term[Task]) -> None:
            require(~self.taken.has(t), "it is free")
            self.taken.add(t)

        @accepts(take)
        def some_can_be_taken(self) -> Bool:
            return self.taken.is_empty()

        @accepts(take)
        def the_other_can_be_taken(self, t: Term[Task], o: Term[Task]) -> Bool:
            return self.taken.has(o) & (t != o)

    found = verdicts(checked(define(Chooser)))
    assert found["some_can_be_taken"].outcome is Outcome.HOLDS
    assert found["the_other_can_be_taken"].outcome is Outcome.VIOLATED  # both are taken


def test_each_value_of_a_parameter_has_its_own_witness() -> None:
    class Lazy(Machine):
        first: OneVar[Task] = one_of(Task)
        on: FlagVar = flag()

        @action
        def begin(self) -> None:
            require(~self.on, "it is off")
            self.on = True
            self.first = self.first

        @sometimes
        def anybody_is_first(self, t: Term[Task]) -> Bool:
            return self.on & (self.first == t)

    (found,) = [v for v in checked(define(Lazy)).verdicts if v.name == "anybody_is_first"]
    assert found.outcome is Outcome.HOLDS
    assert "all 2 choices of its parameters are reached" in found.note


def test_tla_has_the_witness_as_an_invariant_to_violate() -> None:
    definition = define(Worker)
    module = tla_module(definition, scope_of(definition))
    assert "Never_all_tasks_at_once == ~all_tasks_at_once" in module.module
    assert "\\* INVARIANT Never_all_tasks_at_once" in module.config
    assert "tasks_are_independent" in module.config.partition("\\* To see")[0]


def test_a_lemma_and_wording_are_marked_and_decided_as_what_they_are() -> None:
    definition = define(Worker)
    assert definition.property("nothing_runs_when_down").role is Role.LEMMA
    words = definition.property("down_stays_down")
    assert words.role is Role.WORDING
    assert words.citation == "the manual, 2: a worker that is down stays down"
    assert verdicts(checked(definition))["nothing_runs_when_down"].outcome is Outcome.HOLDS


def test_what_is_accepted_and_where_a_witness_is_sought_are_in_the_fingerprint() -> None:
    definition = define(Worker)
    prints = {definition.fingerprint()}
    for changed in ({"action": "finish"}, {"at": None}):
        properties = tuple(replace(p, **changed) for p in definition.properties)
        prints.add(replace(definition, properties=properties).fingerprint())
    assert len(prints) == 3


def test_what_cannot_be_meant_is_refused() -> None:
    with pytest.raises(DefinitionError, match="no action"):
        accepts(Worker.down_stays_down)  # type: ignore[arg-type]
    with pytest.raises(DefinitionError, match="without a citation"):
        wording(" ")
    with pytest.raises(DefinitionError, match="above no property"):
        wording("001")(lambda self: self.down)
    with pytest.raises(DefinitionError, match="neither an entity nor a budget"):
        sometimes(at={"Task": 3})  # type: ignore[dict-item]
    with pytest.raises(DefinitionError, match="cannot be a lemma"):
        lemma(Worker.start)


def test_a_parameter_of_another_sort_than_the_actions_is_refused() -> None:
    class Mistaken(Worker):
        @accepts(Worker.start)
        def of_another_sort(self, t: Bool) -> Bool:
            return t & ~self.down

    with pytest.raises(DefinitionError, match="is a bool, and of the action"):
        define(Mistaken)


def test_lemmas_may_be_properties_of_any_kind() -> None:
    class Stated(Worker):
        @lemma
        @step_property
        def up_or_down(self, after: Self) -> Bool:
            return self.down.implies(after.down)

        @lemma
        @invariant
        def down_is_idle(self) -> Bool:
            return self.down.implies(self.busy.is_empty())

        @lemma
        @liveness
        def down_for_a_while(self) -> LeadsTo:
            return leads_to(self.down, ~self.down)

        @lemma
        @sometimes
        def goes_down(self) -> Bool:
            return self.down

    roles = {p.name: (p.kind.value, p.role) for p in define(Stated).properties}
    assert roles["up_or_down"] == ("step property", Role.LEMMA)
    assert roles["down_is_idle"] == ("invariant", Role.LEMMA)
    assert roles["down_for_a_while"][1] == roles["goes_down"][1] == Role.LEMMA

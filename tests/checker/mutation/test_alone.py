"""Which properties are needed: those that alone catch some mutant."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

import pytest
from tests.checker.mutation.machines import Crossing, Signals, mutants_of, mutated

from stagewright.checker.limits import Limits
from stagewright.checker.mutation.alone import needed
from stagewright.checker.mutation.changes.mutants import evaluated_here
from stagewright.checker.mutation.evaluation import Fate, evaluate
from stagewright.checker.mutation.report import MutationReport, Need
from stagewright.checker.mutation.run import Budget
from stagewright.spec import Bool, invariant, lemma, step_property
from stagewright.spec.define import define

FREELY = Budget()


class SaidTwice(Crossing):
    """What the first property says is said once more, in other words."""

    @invariant
    def red_means_empty(self) -> Bool:
        return super().nobody_crosses_at_red()


class SaidByALemma(Crossing):
    """The same is said to help a proof."""

    @lemma
    def red_means_empty(self) -> Bool:
        return super().nobody_crosses_at_red()


class SaidOfNothing(Crossing):
    """One property is of a step that no mutant takes."""

    @step_property
    def few_wait(self, after: Self) -> Bool:
        return after.waiting <= 1_000


@pytest.fixture(scope="module")
def crossing() -> MutationReport:
    return mutated(Crossing)


def test_each_property_of_the_crossing_is_needed_and_shows_a_mutant(
    crossing: MutationReport,
) -> None:
    needs = needed(crossing.definition, crossing.originals, crossing.findings, FREELY)
    assert {name: need.need for name, need in needs.items()} == {
        "nobody_crosses_at_red": Need.ALONE,
        "cars_enter_one_by_one": Need.ALONE,
        "the_light_turns_green": Need.ALONE,
    }
    for name, need in needs.items():
        assert need.example is not None
        assert need.caught == crossing.catches[name]
        left = [replace(o, unasked=(name,)) for o in crossing.originals]
        assert evaluate(need.example.mutant, left, Limits()).fate is Fate.SURVIVED
        assert evaluate(need.example.mutant, crossing.originals, Limits()).by == (name,)


def test_of_two_properties_that_say_the_same_neither_is_needed() -> None:
    report = mutated(SaidTwice)
    needs = needed(report.definition, report.originals, report.findings, FREELY)
    assert needs["red_means_empty"].need is Need.SHARED
    assert needs["nobody_crosses_at_red"].need is Need.SHARED
    assert needs["cars_enter_one_by_one"].need is Need.ALONE


def test_a_lemma_that_says_the_same_does_not_count() -> None:
    report = mutated(SaidByALemma)
    needs = needed(report.definition, report.originals, report.findings, FREELY)
    assert needs["nobody_crosses_at_red"].need is Need.ALONE
    assert "red_means_empty" not in needs


def test_a_property_that_catches_nothing_is_named() -> None:
    report = mutated(SaidOfNothing)
    needs = needed(report.definition, report.originals, report.findings, FREELY)
    assert needs["few_wait"].need is Need.NOTHING


def test_what_a_part_promises_is_checked_with_the_part() -> None:
    everything = mutants_of(Signals)
    here = mutated(Signals, mutants=evaluated_here(define(Signals), everything))
    needs = needed(here.definition, here.originals, here.findings, FREELY)
    assert needs["crossing.cars_enter_one_by_one"].need is Need.OF_A_PART
    with_parts = mutated(Signals, mutants=everything)
    needs = needed(with_parts.definition, with_parts.originals, with_parts.findings, FREELY)
    assert needs["crossing.cars_enter_one_by_one"].need is Need.ALONE


def test_several_processes_find_what_one_finds(crossing: MutationReport) -> None:
    arguments = (crossing.definition, crossing.originals, crossing.findings, FREELY)
    assert needed(*arguments, workers=2) == needed(*arguments)


def test_without_time_nothing_is_claimed(crossing: MutationReport) -> None:
    needs = needed(
        crossing.definition, crossing.originals, crossing.findings, Budget(seconds=0, each=0.0001)
    )
    assert {need.need for need in needs.values()} == {Need.UNDECIDED}

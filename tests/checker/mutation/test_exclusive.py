"""What a chosen property alone catches: its known bug, or the first mutant at the smallest scope that shows one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

import pytest
from tests.checker.mutation.machines import Crossing, Hasty, Light, mutants_of
from tests.checker.mutation.test_alone import SaidByALemma, SaidOfNothing, SaidTwice

from stagewright.checker.limits import Limits
from stagewright.checker.mutation.changes.mutants import Mutant
from stagewright.checker.mutation.checkpoint import Checkpoint
from stagewright.checker.mutation.evaluation import Evaluation, Fate, evaluate
from stagewright.checker.mutation.exclusive import (
    Sought,
    at_any_scope,
    bugs_alone,
    mutants_alone,
)
from stagewright.checker.mutation.original import Original, original_at
from stagewright.checker.mutation.report import Need
from stagewright.checker.mutation.run import Budget
from stagewright.spec import Bool, sometimes
from stagewright.spec.define import define
from stagewright.spec.known_bugs import KnownBug
from stagewright.spec.machine import Machine
from stagewright.spec.scope import scope_of

RED = "nobody_crosses_at_red"
ALL = (RED, "cars_enter_one_by_one", "the_light_turns_green")
HASTY = KnownBug("X1", "crossing #1", Hasty, Crossing, (RED,), "It is hasty.")


class HastyTwice(SaidTwice):
    """The same mistake where two properties forbid it."""

    close = Hasty.close


class HastyByALemma(SaidByALemma):
    """The same mistake where a property and a lemma forbid it."""

    close = Hasty.close


class Failing(Crossing):
    """A failure is looked for, which there is at a larger scope than the default one."""

    @sometimes
    def it_fails_at_red(self, after: Self) -> Bool:
        return (self.light == Light.red) & (after.light == Light.amber)


class SoughtElsewhere(Crossing):
    """The same, and the scope is named."""

    @sometimes(at={Crossing.failures: 1})
    def it_fails_at_red(self, after: Self) -> Bool:
        return (self.light == Light.red) & (after.light == Light.amber)


def originals_of(machine: type[Machine], *failures: int) -> list[Original]:
    definition = define(machine)
    return [
        original_at(definition, scope_of(definition, budgets={"failures": n}), Limits())
        for n in failures or (0,)
    ]


def sought(
    machine: type[Machine], names: Sequence[str], *failures: int, workers: int = 1
) -> dict[str, Sought]:
    return dict(
        mutants_alone(
            define(machine),
            originals_of(machine, *failures),
            mutants_of(machine),
            names,
            Budget(),
            workers=workers,
        )
    )


def test_each_property_gets_a_mutant_that_nothing_else_catches() -> None:
    found = sought(Crossing, ALL)
    by_id = {mutant.id: mutant for mutant in mutants_of(Crossing)}
    (original,) = originals_of(Crossing)
    for name in ALL:
        assert found[name].need is Need.ALONE
        assert found[name].scope == str(original.scope)
        mutant = by_id[found[name].example]
        assert evaluate(mutant, [original], Limits()).by == (name,)
        without = replace(original, broken=(name,))
        assert evaluate(mutant, [without], Limits()).fate is Fate.SURVIVED


def test_what_another_property_catches_at_a_greater_depth_is_not_caught_alone() -> None:
    names = ("red_means_empty", RED, "cars_enter_one_by_one")
    found = sought(SaidTwice, names)
    assert [found[name].need for name in names] == [Need.SHARED, Need.SHARED, Need.ALONE]


def test_a_property_that_catches_nothing_is_told_from_one_that_shares() -> None:
    assert sought(SaidOfNothing, ["few_wait"])["few_wait"].need is Need.NOTHING


def test_a_larger_scope_is_tried_where_a_smaller_one_shows_nothing() -> None:
    names = ("it_fails_at_red", RED)
    assert sought(Failing, names, 0)["it_fails_at_red"].need is Need.NOTHING
    found = sought(Failing, names, 0, 1)
    small, large = (str(original.scope) for original in originals_of(Failing, 0, 1))
    assert [(found[n].need, found[n].scope) for n in names] == [
        (Need.ALONE, large),
        (Need.ALONE, small),
    ]


def test_nothing_is_claimed_of_what_was_not_searched() -> None:
    definition = define(SaidOfNothing)
    arguments = (definition, originals_of(SaidOfNothing), mutants_of(SaidOfNothing), ["few_wait"])
    for budget in (Budget(seconds=0.0), Budget(states=1)):
        assert mutants_alone(*arguments, budget)["few_wait"].need is Need.UNDECIDED


def test_several_processes_find_mutants_too() -> None:
    found = sought(Crossing, ALL, workers=2)
    assert {one.need for one in found.values()} == {Need.ALONE}


def test_mutants_are_not_searched_again_after_a_run_was_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[str] = []

    def noted(mutant: Mutant, originals: Sequence[Original], limits: Limits) -> Evaluation:
        searched.append(mutant.id)
        return evaluate(mutant, originals, limits)

    monkeypatch.setattr("stagewright.checker.mutation.exclusive.evaluate", noted)
    definition, mutants = define(SaidTwice), mutants_of(SaidTwice)
    originals = originals_of(SaidTwice)

    def again() -> dict[str, Sought]:
        kept = [Checkpoint(tmp_path, definition, [originals[0].scope], mutants)]
        found = mutants_alone(definition, originals, mutants, [RED], Budget(), checkpoints=kept)
        return dict(found)

    first = again()
    whole = len(searched)
    searched.clear()
    assert again() == first
    assert len(searched) < whole - len(mutants) + 1  # only what looks at one property alone


def test_a_known_bug_that_nothing_else_finds_is_named() -> None:
    found = bugs_alone(define(Crossing), [HASTY], ALL, Limits())
    assert found == {RED: Sought(Need.ALONE, "known bug X1", str(scope_of(define(Crossing))))}
    assert not bugs_alone(define(Crossing), [HASTY], ["cars_enter_one_by_one"], Limits())
    assert not bugs_alone(define(Crossing), [HASTY], [RED], Limits(states=5))


def test_a_known_bug_that_two_properties_find_is_not_of_one_alone() -> None:
    bug = KnownBug("X5", "crossing #5", HastyTwice, SaidTwice, (RED,), "It is hasty.")
    assert not bugs_alone(define(SaidTwice), [bug], [RED, "red_means_empty"], Limits())
    of_another = KnownBug("X1", "crossing #1", Hasty, Crossing, (RED,), "It is hasty.")
    assert not bugs_alone(define(SaidTwice), [of_another], [RED], Limits())


def test_a_lemma_that_finds_it_too_is_left_out_unless_it_is_asked_about() -> None:
    bug = KnownBug("X6", "crossing #6", HastyByALemma, SaidByALemma, (RED,), "It is hasty.")
    assert set(bugs_alone(define(SaidByALemma), [bug], [RED], Limits())) == {RED}
    assert not bugs_alone(define(SaidByALemma), [bug], [RED, "red_means_empty"], Limits())


def test_a_witness_with_a_scope_of_its_own_is_sought_at_every_scope() -> None:
    definition = define(SoughtElsewhere)
    scope = scope_of(definition, {}, {"failures": 2})
    for asked, seen in ((definition, False), (at_any_scope(definition), True)):
        known = {p.name for p in original_at(asked, scope, Limits()).definition.properties}
        assert ("it_fails_at_red" in known) is seen

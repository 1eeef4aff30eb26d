"""Of a mutant whose promises alone are others, the original's own states and steps show what a search would."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Self

import pytest
from tests.checker.mutation.machines import mutants_of

from stagewright.checker.limits import Limits
from stagewright.checker.mutation import evaluation
from stagewright.checker.mutation.changes.kinds import Kind
from stagewright.checker.mutation.difference import Difference, difference
from stagewright.checker.mutation.engine import MutantEngine
from stagewright.checker.mutation.evaluation import Evaluation, Fate
from stagewright.checker.mutation.original import Original, original_at
from stagewright.spec import (
    Bool,
    Fairness,
    FlagVar,
    LeadsTo,
    Machine,
    NumberVar,
    OneVar,
    States,
    accepts,
    action,
    always_reachable,
    constraint,
    flag,
    invariant,
    leads_to,
    liveness,
    number,
    one_of,
    require,
    sometimes,
    step_property,
)
from stagewright.spec.define import define
from stagewright.spec.definition import NO_DEADLOCK, Definition
from stagewright.spec.scope import scope_of


class Floor(States):
    """Where a lift is, and what is promised of it there."""

    #        ajar   quiet  seen   passed home   due    takes
    cellar = False, True, False, False, False, False, False
    ground = True, False, True, True, True, True, True
    attic  = False, True,  False, False, False, False, False  # fmt: skip

    def __init__(
        self, ajar: bool, quiet: bool, seen: bool, passed: bool, home: bool, due: bool, takes: bool
    ) -> None:
        self.ajar, self.quiet, self.seen, self.passed = ajar, quiet, seen, passed
        self.home, self.due, self.takes = home, due, takes


class Lift(Machine):
    """A lift that goes up and down; somebody gets in at the ground floor. The table says what is promised."""

    floor: OneVar[Floor] = one_of(Floor, init=Floor.ground)
    inside: FlagVar = flag()

    @floor.step(Floor.ground, Floor.attic, fair=Fairness.WEAK)
    def rise(self) -> None:
        """It goes up."""

    @floor.step(Floor.ground, Floor.cellar)
    def sink(self) -> None:
        """It goes down."""

    @floor.step((Floor.attic, Floor.cellar), Floor.ground, fair=Fairness.WEAK)
    def come_back(self) -> None:
        """It comes back, and whoever is in it gets out."""
        self.inside = False

    @action
    def enter(self) -> None:
        """Somebody gets in."""
        require((self.floor == Floor.ground) & ~self.inside, "it is there, and empty")
        self.inside = True

    @invariant
    def doors_are_shut_elsewhere(self) -> Bool:
        return self.floor.column(lambda floor: floor.ajar).implies(self.floor != Floor.attic)

    @step_property
    def nobody_gets_in_where_it_is_quiet(self, after: Self) -> Bool:
        quiet = self.floor.column(lambda floor: floor.quiet)
        return (~self.inside & after.inside).implies(~quiet)

    @sometimes
    def it_is_seen(self) -> Bool:
        return self.floor.column(lambda floor: floor.seen) & self.inside

    @sometimes
    def it_is_passed(self, after: Self) -> Bool:
        return self.floor.column(lambda floor: floor.passed) & (after.floor == Floor.attic)

    @always_reachable
    def it_comes_home(self) -> Bool:
        return self.floor.column(lambda floor: floor.home) & ~self.inside

    @liveness
    def it_comes_when_it_is_due(self) -> LeadsTo:
        due = self.floor.column(lambda floor: floor.due)
        return leads_to(self.inside, due & ~self.inside)

    @accepts(enter)
    def it_takes_somebody(self) -> Bool:
        return self.floor.column(lambda floor: floor.takes) & ~self.inside


class Tally(States):
    """How far is counted."""

    low = True
    high = False

    def __init__(self, counts: bool) -> None:
        self.counts = counts


class Counting(Machine):
    """It counts, as far as anybody looks."""

    tally: OneVar[Tally] = one_of(Tally, init=Tally.low)
    count: NumberVar = number(0, 3)

    @tally.step(Tally.low, Tally.high)
    def grow(self) -> None:
        """It is much already."""

    @action
    def add(self) -> None:
        """One more."""
        require(self.count < 3, "there is room")
        self.count = self.count + 1

    @constraint
    def enough(self) -> Bool:
        return (self.count < 2) | self.tally.column(lambda tally: tally.counts)


@pytest.fixture(scope="module")
def original() -> Original:
    definition = define(Lift)
    found = original_at(definition, scope_of(definition), Limits())
    assert found.broken == ()
    return found


def evaluations(original: Original) -> dict[str, Evaluation]:
    swaps = [m for m in mutants_of(Lift) if m.kind is Kind.SWAP]
    found = {m.id: evaluation.evaluate(m, [original], Limits()) for m in swaps}
    return {name: replace(one, seconds=0.0) for name, one in found.items()}


def test_what_is_found_is_what_a_search_finds(
    original: Original, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: Counter[Difference] = Counter()

    def noted(original: Original, mutant: Definition, engine: MutantEngine) -> Difference:
        found = difference(original, mutant, engine)
        seen[found] += 1
        return found

    def searched(original: Original, mutant: Definition, engine: MutantEngine) -> Difference:
        found = difference(original, mutant, engine)
        return Difference.REAL if found is Difference.PROMISES else found

    monkeypatch.setattr(evaluation, "difference", noted)
    looked_at = evaluations(original)
    assert seen[Difference.PROMISES] == len(looked_at) >= 20
    monkeypatch.setattr(evaluation, "difference", searched)
    assert looked_at == evaluations(original)


def test_each_kind_of_promise_breaks_and_is_kept(original: Original) -> None:
    found = evaluations(original)
    kinds = ("ajar", "quiet", "seen", "passed", "home", "due", "takes")
    for column in kinds:
        mine = {one.fate for name, one in found.items() if f".{column} is" in name}
        assert mine == {Fate.CAUGHT, Fate.SURVIVED}, column
    broken = {promise for one in found.values() for promise in one.by}
    assert broken == {p.name for p in original.definition.properties}


def test_where_nobody_looks_any_more_is_no_promise() -> None:
    definition = define(Counting)
    original = original_at(definition, scope_of(definition), Limits())
    (fewer, more) = [m for m in mutants_of(Counting) if m.kind is Kind.SWAP]
    assert evaluation.evaluate(fewer, [original], Limits()).fate is Fate.SURVIVED
    assert evaluation.evaluate(more, [original], Limits()).by == (NO_DEADLOCK,)

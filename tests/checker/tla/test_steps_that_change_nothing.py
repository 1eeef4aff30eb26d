"""A step that changes nothing is none where fairness is meant, as in TLA+; of promises about steps it is one.

The export says that difference apart.
"""

from __future__ import annotations

from typing import Self

import pytest
from tests.checker.tla.tlc import Tlc
from tests.thorough import some_of

from stagewright.checker.check import check, only
from stagewright.checker.tla import tla_module
from stagewright.spec import (
    Bool,
    Fairness,
    LeadsTo,
    Machine,
    NumberVar,
    action,
    final,
    flag,
    leads_to,
    liveness,
    number,
    require,
    step_property,
)
from stagewright.spec.define import define
from stagewright.spec.scope import scope_of
from stagewright.spec.verdict import Outcome


class Climbs(Machine):
    """Every step is to go up, but one stays where it is."""

    height: NumberVar = number(0, 3)

    @action
    def climb(self) -> None:
        require(self.height < 3, "not at the top")
        self.height = self.height + 1

    @action
    def rest(self) -> None:
        require(self.height == 2, "half way")
        self.height = 2

    @step_property
    def every_step_goes_up(self, after: Self) -> Bool:
        return after.height > self.height

    @final
    def at_the_top(self) -> Bool:
        return self.height == 3


class Rests(Climbs):
    """It may rest for ever half way: nothing says that it must climb on."""

    @liveness
    def it_comes_to_the_top(self) -> LeadsTo:
        return leads_to(self.height == 1, self.height == 3)


class Dawdles(Machine):
    """It can only climb, but nothing is fair: it may stop anywhere."""

    height: NumberVar = number(0, 3)

    @action
    def climb(self) -> None:
        require(self.height < 3, "not at the top")
        self.height = self.height + 1

    @liveness
    def it_comes_to_the_top(self) -> LeadsTo:
        return leads_to(self.height == 1, self.height == 3)

    @final
    def at_the_top(self) -> Bool:
        return self.height == 3


class Hurries(Machine):
    """It can only climb, and has to."""

    height: NumberVar = number(0, 3)

    @action(fair=Fairness.WEAK)
    def climb(self) -> None:
        require(self.height < 3, "not at the top")
        self.height = self.height + 1

    @liveness
    def it_comes_to_the_top(self) -> LeadsTo:
        return leads_to(self.height == 1, self.height == 3)

    @final
    def at_the_top(self) -> Bool:
        return self.height == 3


class Swings(Machine):
    """A strongly fair step: that it is taken on the side where it changes nothing is not enough."""

    left = flag(init=True)
    done = flag()

    @action(fair=Fairness.WEAK)
    def swing(self) -> None:
        require(~self.done, "not done")
        self.left = ~self.left

    @action(fair=Fairness.STRONG)
    def let_go(self) -> None:
        require(~self.done, "not done")
        self.done = ~self.left

    @liveness
    def it_lets_go(self) -> LeadsTo:
        return leads_to(self.left, self.done)

    @final
    def all_done(self) -> Bool:
        return self.done


class SwingsLazily(Swings):
    """The same, weakly fair: there is always a side where it would change nothing."""

    @action(fair=Fairness.WEAK)
    def let_go(self) -> None:
        require(~self.done, "not done")
        self.done = ~self.left


@pytest.mark.parametrize(
    ("machine", "broken"),
    some_of(
        [
            (Climbs, ("every_step_goes_up_standing",)),
            (Dawdles, ("temporal",)),
            (Hurries, ()),
            (Swings, ()),
            (SwingsLazily, ("temporal",)),
        ]
    ),
)
def test_tlc_checks_as_check_does(
    machine: type[Machine], broken: tuple[str, ...], tlc: Tlc
) -> None:
    definition = define(machine)
    scope = scope_of(definition)
    report = check(definition, scope)
    assert (report.outcome is Outcome.VIOLATED) == bool(broken)
    run = tlc.check(definition, scope)
    assert run.broken == broken
    if not broken:
        assert run.distinct == report.states


def test_a_run_may_rest_for_ever_where_a_step_changes_nothing(tlc: Tlc) -> None:
    definition = only(define(Rests), ["it_comes_to_the_top"])
    scope = scope_of(definition)
    assert check(definition, scope).outcome is Outcome.VIOLATED
    assert tlc.check(definition, scope).broken == ("temporal",)


def test_where_every_step_plainly_changes_something_nothing_is_said_of_it() -> None:
    definition = define(Hurries)
    text = tla_module(definition, scope_of(definition)).module
    assert "/\\ WF_vars(climb)\n" in text
    assert "MayChangeNothing" not in text


class Sinks(Climbs):
    """What it promises of a step is an implication, which stands right of another one."""

    @step_property
    def who_is_half_way_and_stays_is_at_the_top(self, after: Self) -> Bool:
        half_way = (self.height == 2) & (after.height == 2)
        return half_way.implies((self.height == 3) | (after.height == 3))


def test_an_implication_right_of_another_is_in_parentheses(tlc: Tlc) -> None:
    definition = only(define(Sinks), ["who_is_half_way_and_stays_is_at_the_top"])
    run = tlc.check(definition, scope_of(definition))
    assert run.broken == ("who_is_half_way_and_stays_is_at_the_top_standing",)

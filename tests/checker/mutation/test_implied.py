"""Properties that others imply: no step can break one of them alone."""

from __future__ import annotations

from typing import Self

from tests.checker.mutation.machines import Crossing, Light
from tests.checker.mutation.test_alone import SaidTwice

from stagewright.checker.mutation.implied import implied
from stagewright.spec import (
    Bool,
    LeadsTo,
    invariant,
    leads_to,
    liveness,
    sometimes,
    step_property,
)
from stagewright.spec.define import define
from stagewright.spec.machine import Machine
from stagewright.spec.scope import scope_of

RED = "nobody_crosses_at_red"


class Implying(Crossing):
    """Three properties that follow: from two others, from those before the step, and from nothing."""

    @invariant
    def nobody_crosses_at_amber(self) -> Bool:
        return ~(self.crossing & (self.light == Light.amber))

    @invariant
    def who_crosses_has_green(self) -> Bool:
        return self.crossing.implies(self.light == Light.green)

    @step_property
    def nobody_is_on_the_crossing_until_green(self, after: Self) -> Bool:
        return (self.light == Light.red).implies(~self.crossing | after.crossing)

    @step_property
    def one_is_there_or_not(self, after: Self) -> Bool:
        return after.crossing | ~after.crossing | (self.waiting == 0)

    @sometimes
    def it_is_green(self) -> Bool:
        return self.light == Light.green


class Answered(Crossing):
    """A response that has come whenever it is asked for, and one that comes later."""

    @invariant
    def who_crosses_has_green(self) -> Bool:
        return self.crossing.implies(self.light == Light.green)

    @liveness
    def who_crosses_gets_green(self) -> LeadsTo:
        return leads_to(self.crossing, self.light == Light.green)

    @liveness
    def green_leads_to_amber(self) -> LeadsTo:
        return leads_to(self.light == Light.green, self.light == Light.amber)


def implying(machine: type[Machine], *names: str) -> dict[str, tuple[str, ...]]:
    definition = define(machine)
    return dict(implied(definition, scope_of(definition), names, None))


def test_properties_that_say_the_same_imply_each_other() -> None:
    found = implying(SaidTwice, "red_means_empty", RED, "cars_enter_one_by_one")
    assert found == {"red_means_empty": (RED,), RED: ("red_means_empty",)}


def test_all_that_is_needed_is_named_and_nothing_else() -> None:
    found = implying(Implying, "who_crosses_has_green", "cars_enter_one_by_one")
    assert found == {"who_crosses_has_green": (RED, "nobody_crosses_at_amber")}


def test_what_held_before_the_step_may_be_used() -> None:
    found = implying(Implying, "nobody_is_on_the_crossing_until_green", "one_is_there_or_not")
    assert found["one_is_there_or_not"] == ()
    assert set(found["nobody_is_on_the_crossing_until_green"]) <= {RED, "who_crosses_has_green"}
    assert found["nobody_is_on_the_crossing_until_green"]


def test_what_must_happen_is_never_implied() -> None:
    assert implying(Implying, "it_is_green", "the_light_turns_green") == {}


def test_without_time_nothing_is_implied() -> None:
    definition = define(SaidTwice)
    assert not implied(definition, scope_of(definition), [RED], 0.0)


def test_a_response_is_implied_where_it_has_come_whenever_it_is_asked_for() -> None:
    found = implying(Answered, "who_crosses_gets_green", "green_leads_to_amber", RED)
    assert found == {
        "who_crosses_gets_green": ("who_crosses_has_green",),
        RED: ("who_crosses_has_green",),
    }

"""A method whose decorator was forgotten is refused, unless it is a helper."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from stagewright.spec import define
from stagewright.spec.errors import UndecoratedError
from stagewright.spec.loading import find

Refusal = Callable[[str, str, str], Exception]
CONDITIONS = (
    "decorate it: @invariant, @step_property, @always_reachable, @sometimes; a helper that only"
)


def test_a_property_without_its_decorator(refused: Refusal) -> None:
    refused(
        """
        def it_is_ready(self) -> Bool:
            ^^^^^^^^^^^
            return self.ready
        """,
        "`Trap.it_is_ready` has no decorator, and nothing here uses it",
        CONDITIONS,
    )


def test_liveness_without_its_decorator(refused: Refusal) -> None:
    refused(
        """
        def it_gets_ready(self) -> LeadsTo:
            ^^^^^^^^^^^^^
            return leads_to(self.fresh, self.ready)
        """,
        "`Trap.it_gets_ready` has no decorator, and nothing here uses it",
        "decorate it: @liveness; a helper",
    )


def test_an_action_without_its_decorator(refused: Refusal) -> None:
    refused(
        """
        def reset(self) -> None:
            ^^^^^
            self.ready = False
        """,
        "`Trap.reset` has no decorator, and nothing here uses it",
        "decorate it: @action; a helper",
    )


def test_a_method_that_does_not_say_what_it_returns(refused: Refusal) -> None:
    refused(
        """
        def it_is_ready(self):
            ^^^^^^^^^^^
            return self.ready
        """,
        "`Trap.it_is_ready` has no decorator, and nothing here uses it",
        "decorate it: @action, @invariant; a helper",
    )


def test_an_override_without_the_decorator(refused_module: Refusal) -> None:
    refused_module(
        """
        class Right(Sound):
            @invariant
            def it_is_ready(self) -> Bool:
                return self.ready

        class Trap(Right):
            def it_is_ready(self) -> Bool:
                ^^^^^^^^^^^
                return ~self.ready
        """,
        "`Trap.it_is_ready` overrides the invariant `it_is_ready` and has no decorator",
        "without one it takes the invariant away: write `@invariant` above it",
    )


HELPED = """
from stagewright.spec import Bool, Machine, action, flag, invariant, initially


class Base(Machine):
    on = flag()

    @action
    def turn(self) -> None:
        self.on = ~self.on

    def by_a_subclass(self) -> Bool:
        return self.on

    def by_the_file(self) -> Bool:
        return self.on

    def by_a_lambda(self) -> Bool:
        return self.on


class Helped(Base):
    @invariant
    def fine(self) -> Bool:
        return (lambda: self.by_a_lambda())() | ~self.by_a_subclass()


def of_another(machine: Helped) -> Bool:
    return machine.by_the_file()
"""


def test_helpers_need_no_decorator(written: Callable[[str], Path]) -> None:
    definition = define(find(f"{written(HELPED)}:Helped", {}))
    assert [p.name for p in definition.properties] == ["fine"]
    lonely = HELPED.replace("    return machine.by_the_file()", "    return machine.on")
    with pytest.raises(UndecoratedError, match=r"`Base\.by_the_file` has no decorator"):
        define(find(f"{written(lonely)}:Helped", {}))

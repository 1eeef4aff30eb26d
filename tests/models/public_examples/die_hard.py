"""Two jugs of five and three gallons, and four gallons are wanted; after DieHard of TLA+'s public examples.

16 distinct states, as TLC finds.
"""

from __future__ import annotations

from stagewright.spec import (
    Bool,
    Machine,
    NumberVar,
    action,
    always_reachable,
    invariant,
    least,
    number,
)


class DieHard(Machine):
    """Water is poured until one of the two is full or empty."""

    big: NumberVar = number(0, 5)
    small: NumberVar = number(0, 3)

    @action
    def fill_big(self) -> None:
        """From the tap."""
        self.big = 5

    @action
    def fill_small(self) -> None:
        """From the tap."""
        self.small = 3

    @action
    def empty_big(self) -> None:
        """Into the ground."""
        self.big = 0

    @action
    def empty_small(self) -> None:
        """Into the ground."""
        self.small = 0

    @action
    def pour_into_big(self) -> None:
        """All of the small jug, or what there is room for."""
        poured = least(self.small, 5 - self.big)
        self.small = self.small - poured
        self.big = self.big + poured

    @action
    def pour_into_small(self) -> None:
        """All of the big jug, or what there is room for."""
        poured = least(self.big, 3 - self.small)
        self.big = self.big - poured
        self.small = self.small + poured

    @invariant
    def one_jug_is_full_or_empty(self) -> Bool:
        """At any time: only the other one is guessed."""
        return (self.big % 5 == 0) | (self.small % 3 == 0)

    @always_reachable
    def four_gallons(self) -> Bool:
        """They can be measured."""
        return self.big == 4

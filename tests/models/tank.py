"""A tank whose early versions overflow, two of them, and lists of what is broken that do not fit."""

from __future__ import annotations

from dataclasses import dataclass

from stagewright.spec import (
    NO_DEADLOCK,
    Bool,
    Machine,
    NumberVar,
    Profile,
    action,
    budget,
    invariant,
    known_violations,
    number,
    only_when,
    part,
    profiles,
    require,
    violated,
)

FULL = 1


@dataclass(frozen=True)
class Version(Profile):
    """What a version does."""

    looks: bool  # at the level, before water is poured in
    empties: bool


FIRST = Version("first", looks=False, empties=False)
SECOND = Version("second", looks=True, empties=False)
THIRD = Version("third", looks=True, empties=True)
FOURTH = Version("fourth", looks=True, empties=True)


class Tank(Machine):
    """Water is poured into a tank."""

    release = profiles(FIRST, SECOND, THIRD)
    pours = budget(2)
    level: NumberVar = number(0, FULL + 1)

    @action(spends=pours)
    def pour(self) -> None:
        """Water comes in."""
        if self.release.looks:
            require(self.level < FULL, "there is room")
        require(self.level <= FULL, "it is not flowing over")
        self.level = self.level + 1

    @action
    def empty(self) -> None:
        """All of it goes."""
        only_when(self.release.empties)
        self.level = 0

    @invariant
    def it_is_not_overfull(self) -> Bool:
        """There is no more in it than it holds."""
        return self.level <= FULL

    left_open = known_violations(
        violated(it_is_not_overfull, under=FIRST, because="nothing looks at the level"),
        violated(NO_DEADLOCK, under=(FIRST, SECOND), because="nothing empties it"),
    )


class Larger(Tank):
    """The same by another name."""


class Two(Machine):
    """Two of them."""

    release = profiles(FIRST, THIRD)
    left = part(Tank)
    right = part(Tank)

    @invariant
    def both_are_not_overfull(self) -> Bool:
        """Neither flows over."""
        return (self.left.level <= FULL) & (self.right.level <= FULL)

    left_open = known_violations(
        violated(both_are_not_overfull, under=FIRST, because="neither is"),
    )


class Pump(Machine):
    """It has nothing to do with a tank."""

    release = profiles(FIRST, THIRD)
    strokes: NumberVar = number(0, 1)

    @action
    def stroke(self) -> None:
        """It moves."""
        self.strokes = 1 - self.strokes


class OfAnother(Pump):
    """It says what another machine breaks."""

    left_open = known_violations(
        violated(Tank.it_is_not_overfull, under=FIRST, because="it is not its own"),
    )


class OfNoVersion(Tank):
    """It names a version that there is not."""

    left_open = known_violations(
        violated(Tank.it_is_not_overfull, under=FOURTH, because="there is no fourth"),
    )

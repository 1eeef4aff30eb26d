"""Which actions plainly always change something: no other is ever taken for one."""

from __future__ import annotations

from enum import Enum, auto

from stagewright.checker.tla.changing import always_changes
from stagewright.spec import (
    Entity,
    FlagVar,
    Machine,
    NumberVar,
    OneVar,
    OptionalVar,
    Term,
    action,
    flag,
    number,
    one_of,
    optional,
    require,
    set_of,
)
from stagewright.spec.define import define


class Colour(Enum):
    """A colour."""

    red = auto()
    green = auto()
    blue = auto()

    def is_warm(self) -> bool:
        return self is Colour.red


class Node(Entity):
    """A node."""


class Acts(Machine):
    """Actions that change something, and some that only look like it."""

    colour: OneVar[Colour] = one_of(Colour, init=Colour.red)
    other: OneVar[Colour] = one_of(Colour, init=Colour.red)
    owner: OptionalVar[Node] = optional(Node)
    members = set_of(Node)
    count: NumberVar = number(0, 3)
    more: NumberVar = number(0, 3)
    lit: FlagVar = flag()

    @action
    def may_repaint(self) -> None:
        self.other = Colour.red
        self.more = 0

    @action
    def changes_by_one(self) -> None:
        require(self.count < 3, "room")
        self.count = self.count + 1

    @action
    def changes_colour(self) -> None:
        require(self.colour.any_of(Colour.red, Colour.blue), "not green")
        self.colour = Colour.green

    @action
    def changes_what_a_column_allows(self) -> None:
        require(self.colour.column(Colour.is_warm), "warm")
        self.colour = Colour.green

    @action
    def may_keep_what_a_column_allows(self) -> None:
        require(self.colour.column(Colour.is_warm), "warm")
        self.colour = Colour.red

    @action
    def may_keep_its_number(self) -> None:
        require(self.lit & (self.colour == Colour.red), "lit and red")
        self.count = self.more

    @action
    def changes_to_the_other(self) -> None:
        require((self.colour != self.other) & ~self.lit, "they differ")
        self.colour = self.other

    @action
    def changes_by_joining(self, n: Term[Node]) -> None:
        require(~self.members.has(n), "no member")
        self.members.add(n)

    @action
    def changes_by_leaving(self, n: Term[Node]) -> None:
        require(self.members.has(n), "a member")
        self.members.discard(n)

    @action
    def changes_by_taking(self, n: Term[Node]) -> None:
        require(self.owner.is_none(), "free")
        self.owner = n

    @action
    def changes_by_giving(self, n: Term[Node]) -> None:
        require(self.owner == n, "its own")
        self.owner = None

    @action
    def changes_by_turning(self) -> None:
        self.lit = ~self.lit

    @action
    def may_add_nothing(self) -> None:
        self.count = self.count + 0

    @action
    def may_take_the_other_number(self) -> None:
        require(self.more < 3, "room")
        self.count = self.more + 1

    @action
    def may_keep_its_colour(self) -> None:
        require(self.colour.any_of(Colour.red, Colour.green), "not blue")
        self.colour = Colour.green

    @action
    def may_become_what_it_is(self) -> None:
        require(self.colour != self.other, "they differ")
        self.colour = Colour.blue

    @action
    def may_change_hands(self, n: Term[Node], to: Term[Node]) -> None:
        require(self.owner == n, "its own")
        self.owner = to

    @action
    def may_join_again(self, n: Term[Node], to: Term[Node]) -> None:
        require(~self.members.has(n), "no member")
        self.members.add(to)

    @action
    def may_stay_dark(self) -> None:
        require(~self.lit | (self.count == 0), "dark or none")
        self.lit = True


def test_the_plain_ones_are_those_that_always_change_something() -> None:
    plain = {a.name for a in define(Acts).actions if always_changes(a)}
    assert plain == {a.name for a in define(Acts).actions if a.name.startswith("changes")}

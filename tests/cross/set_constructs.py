"""Machines of the table of capabilities: sets of some members, and sets as parameters."""

from __future__ import annotations

from enum import Enum, auto

from stagewright.spec import (
    Bool,
    Entity,
    Machine,
    SetOf,
    SetVar,
    Term,
    action,
    every,
    invariant,
    per,
    require,
    set_of,
)


class Node(Entity, scope=3):
    """Interchangeable."""


class Colour(Enum):
    """A plain enum."""

    red = auto()
    green = auto()


class Literals(Machine):
    """Two nodes at a time hold what is shared."""

    holders: SetVar[Node] = set_of(Node)
    colours: SetVar[Colour] = set_of(Colour)

    @action
    def take(self, n: Term[Node], m: Term[Node]) -> None:
        require((self.holders & SetOf.of(n, m)).is_empty(), "neither holds it")
        self.holders = SetOf.of(n, m)

    @action
    def leave(self, n: Term[Node]) -> None:
        require(self.holders == self.holders | SetOf.of(n), "holds it")
        self.holders = self.holders - SetOf.of(n)

    @action
    def paint(self, c: Term[Colour]) -> None:
        self.colours = SetOf.of(c, Colour.red)

    @invariant
    def at_most_two(self) -> Bool:
        return self.holders.size() <= 2

    @invariant
    def red_alone(self) -> Bool:
        return self.colours <= SetOf.of(Colour.red)


class Groups(Machine):
    """Groups of nodes come and go together, and take sets of colours."""

    up: SetVar[Node] = set_of(Node)
    held = per(Node, set_of(Colour))

    @action
    def rise(self, group: SetOf[Node]) -> None:
        require(~group.is_empty() & (group & self.up).is_empty(), "all of the group are down")
        self.up = self.up | group

    @action
    def take(self, n: Term[Node], colours: SetOf[Colour]) -> None:
        require(self.up.has(n), "n is up")
        require(every((self.held[m] & colours).is_empty() for m in Node), "they are free")
        self.held[n] = colours

    @action
    def fall(self, group: SetOf[Node]) -> None:
        require(group <= self.up, "all of the group are up")
        for n in group:
            self.held[n] = set()
        self.up = self.up - group

    @invariant
    def who_is_down_holds_nothing(self, group: SetOf[Node]) -> Bool:
        return (group & self.up).is_empty().implies(every(self.held[n].is_empty() for n in group))

    @invariant
    def nobody_holds_all(self, colours: SetOf[Colour]) -> Bool:
        return every((self.held[n] != colours) for n in Node) | (colours.size() < 2)

"""CoffeeCan of TLA+'s public examples, with a map of colours: the beans of both are added up."""

from __future__ import annotations

from enum import Enum, auto

from stagewright.spec import (
    ANY,
    Bool,
    Machine,
    action,
    each,
    final,
    initially,
    invariant,
    number,
    per,
    require,
    step_property,
    total,
)

BEANS = 8


class Colour(Enum):
    """Of a bean."""

    black = auto()
    white = auto()


class CoffeeCanByColour(Machine):
    """Two beans are picked at a time: of one colour, a black one goes back; of two, the white one."""

    beans = per(Colour, number(0, BEANS, init=ANY))

    def left(self) -> Bool:
        """More than one bean is left."""
        return total(self.beans[c] for c in each(Colour)) > 1

    @initially
    def the_can_is_not_empty(self) -> Bool:
        """It holds some, and not more than there is room for."""
        held = total(self.beans[c] for c in each(Colour))
        return (held >= 1) & (held <= BEANS)

    @action
    def pick_two_black(self) -> None:
        """One of them goes back."""
        require(self.left() & (self.beans[Colour.black] >= 2), "there are two black beans")
        self.beans[Colour.black] = self.beans[Colour.black] - 1

    @action
    def pick_two_white(self) -> None:
        """A black one goes in."""
        require(self.left() & (self.beans[Colour.white] >= 2), "there are two white beans")
        self.beans[Colour.black] = self.beans[Colour.black] + 1
        self.beans[Colour.white] = self.beans[Colour.white] - 2

    @action
    def pick_one_of_each(self) -> None:
        """The white one goes back."""
        require((self.beans[Colour.black] > 0) & (self.beans[Colour.white] > 0), "one of each")
        self.beans[Colour.black] = self.beans[Colour.black] - 1

    @step_property
    def one_less_each_time(self, after: CoffeeCanByColour) -> Bool:
        """Whatever is picked."""
        now = total(self.beans[c] for c in each(Colour))
        return total(after.beans[c] for c in each(Colour)) == now - 1

    @step_property
    def white_stay_odd_or_even(self, after: CoffeeCanByColour) -> Bool:
        """So the last bean is white exactly if there was an odd number of white ones."""
        return after.beans[Colour.white] % 2 == self.beans[Colour.white] % 2

    @invariant
    def never_empty(self) -> Bool:
        """One bean is left in the end."""
        return total(self.beans[c] for c in each(Colour)) >= 1

    @final
    def one_is_left(self) -> Bool:
        """Nothing can be picked any more."""
        return ~self.left()

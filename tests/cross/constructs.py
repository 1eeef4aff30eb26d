"""One small machine for each construct of the language that the table of capabilities lists.

Each has an invariant that holds and one that does not, so that a backend that ignores the construct is seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto

from tests.cross.message_constructs import Bags, InOrder, MessageSets, Names, Queues
from tests.cross.set_constructs import Groups, Literals

from stagewright.spec import (
    Bool,
    Entity,
    FlagVar,
    Machine,
    NumberVar,
    OneVar,
    OptionalVar,
    Record,
    SetVar,
    States,
    Term,
    action,
    choose,
    count,
    each,
    every,
    flag,
    greatest,
    invariant,
    least,
    number,
    numbers,
    one_of,
    optional,
    per,
    record,
    require,
    set_of,
    some,
    total,
)


class Node(Entity, scope=3):
    """Interchangeable."""


class Colour(Enum):
    """A plain enum."""

    red = auto()
    green = auto()


class Stage(States):
    """An enum with columns."""

    rest = True, 0
    moving = False, 2
    done = True, 3

    def __init__(self, idle: bool, rank: int) -> None:
        self.idle, self.rank = idle, rank


class Columns(Machine):
    """A stage that moves by its rank."""

    stage: OneVar[Stage] = one_of(Stage, init=Stage.rest)
    seen = per(Node, one_of(Stage, init=Stage.rest))

    @action
    def move(self) -> None:
        self.stage = choose(self.stage.column(lambda s: s.idle), Stage.moving, Stage.done)

    @action
    def look(self, n: Term[Node]) -> None:
        require(self.seen[n] != self.stage, "not seen yet")
        require(self.seen[n].column(lambda s, t: s.rank < t.rank, self.stage), "of higher rank")
        self.seen[n] = self.stage

    @action
    def forget(self, n: Term[Node]) -> None:
        self.seen[n] = self.seen[n].column(lambda s, t: s if t.idle else Stage.rest, self.stage)

    @invariant
    def ranks_are_known(self) -> Bool:
        return self.stage.number_column(lambda s: s.rank) <= 3

    @invariant
    def nobody_is_far_behind(self, n: Term[Node]) -> Bool:
        return self.stage.number_column(lambda s, t: s.rank - t.rank, self.seen[n]) <= 2

    @invariant
    def all_are_idle(self) -> Bool:
        return every(self.seen[n].column(lambda s: s.idle) for n in Node)


class Optionals(Machine):
    """A lease with an owner, or none."""

    owner: OptionalVar[Node] = optional(Node)
    last: OptionalVar[Node] = optional(Node)

    @action
    def take(self, n: Term[Node]) -> None:
        require(self.owner.is_none(), "free")
        require(self.last != n, "another one than last time")
        self.owner = n

    @action
    def give_back(self) -> None:
        require(self.owner.is_some(), "owned")
        self.last = self.owner
        self.owner = None

    @invariant
    def owner_is_new(self) -> Bool:
        return self.owner.is_none() | (self.owner != self.last)

    @invariant
    def never_owned_again(self) -> Bool:
        return self.owner.is_none() | self.last.is_none()


class Sets(Machine):
    """Nodes that join and leave, compared as sets."""

    up: SetVar[Node] = set_of(Node)
    known: SetVar[Node] = set_of(Node)

    @action
    def join(self, n: Term[Node]) -> None:
        require(~self.up.has(n), "is down")
        self.known = self.known | self.up
        self.up.add(n)

    @action
    def leave(self, n: Term[Node]) -> None:
        require(self.up.has(n) & (self.up - self.known).is_empty(), "is known")
        self.known = self.known & self.up
        self.up.discard(n)

    @invariant
    def at_most_one_is_unknown(self) -> Bool:
        return (self.up - self.known).size() <= 3

    @invariant
    def known_are_up(self) -> Bool:
        return (self.known <= self.up) & (self.up.size() < 3)


class Row(Record):
    """A row with a version."""

    present = flag()
    version = number(0, 2)


class MapsAndRecords(Machine):
    """Rows that are copied between nodes."""

    rows = per(Node, record(Row))

    @action
    def write(self, n: Term[Node]) -> None:
        require(self.rows[n].version < 2, "not the last version")
        self.rows[n].present = True
        self.rows[n].version = self.rows[n].version + 1

    @action
    def copy(self, source: Term[Node], target: Term[Node]) -> None:
        require(source != target, "two nodes")
        require(self.rows[source].version > self.rows[target].version, "newer")
        self.rows[target] = self.rows[source]

    @invariant
    def versions_are_of_rows(self) -> Bool:
        return every((self.rows[n].version == 0) | self.rows[n].present for n in Node)

    @invariant
    def all_are_equal(self) -> Bool:
        return every(self.rows[m] == self.rows[n] for m in Node for n in Node)


class Quantifiers(Machine):
    """A vote of a majority."""

    votes = per(Node, flag())
    decided: FlagVar = flag()

    @action
    def vote(self, n: Term[Node]) -> None:
        require(~self.votes[n], "has not voted")
        self.votes[n] = True

    @action
    def decide(self) -> None:
        require(count(self.votes[n] for n in Node) >= 2, "majority")
        self.decided = True

    @action
    def start_again(self) -> None:
        require(every(self.votes[n] for n in Node), "all have voted")
        for n in Node:
            self.votes[n] = False
        self.decided = False

    @invariant
    def someone_voted(self) -> Bool:
        return (~self.decided) | some(self.votes[n] for n in Node)

    @invariant
    def everyone_voted(self) -> Bool:
        return (~self.decided) | every(self.votes[n] for n in Node)


class Products(Machine):
    """A number below zero is divided, too."""

    x: NumberVar = number(-4, 4)
    n: NumberVar = number(1, 3)

    @action
    def scale(self) -> None:
        self.x = (self.x * self.n + 2) % 9 - 4

    @action
    def halve(self) -> None:
        self.x = self.x // 2

    @action
    def turn(self) -> None:
        require(self.x % 2 == 1, "odd")
        self.n = self.n % 3 + 1

    @invariant
    def remainders_are_never_negative(self) -> Bool:
        return self.x % self.n >= 0

    @invariant
    def quotients_are_small(self) -> Bool:
        return self.x // self.n * self.n >= -3


class Extremes(Machine):
    """Clocks that follow the fastest, but not by much."""

    at = per(Node, number(0, 3))
    up: SetVar[Node] = set_of(Node)

    @action
    def tick(self, n: Term[Node]) -> None:
        require(self.at[n] <= least(self.at[m] for m in Node), "is the slowest")
        self.at[n] = least(3, self.at[n] + 2)
        self.up.add(n)

    @action
    def follow(self, n: Term[Node]) -> None:
        require(self.up.has(n), "is up")
        self.at[n] = greatest((self.at[m] for m in self.up), default=0)
        self.up.discard(n)

    @invariant
    def clocks_are_near(self) -> Bool:
        return greatest(self.at[n] for n in Node) - least(self.at[n] for n in Node) <= 3

    @invariant
    def those_that_are_up_are_early(self) -> Bool:
        return greatest((self.at[n] for n in self.up), default=0) < 3


class Sums(Machine):
    """Coins that change hands."""

    coins = per(Node, number(0, 3))
    paid: SetVar[Node] = set_of(Node)

    @action
    def earn(self, n: Term[Node]) -> None:
        require(total(self.coins[m] for m in Node) < 3, "coins are left")
        self.coins[n] = self.coins[n] + 1

    @action
    def pay(self, n: Term[Node], m: Term[Node]) -> None:
        require((n != m) & (self.coins[n] > 0), "has one to give")
        self.coins[n] = self.coins[n] - 1
        self.coins[m] = self.coins[m] + 1
        self.paid.add(n)

    @invariant
    def coins_do_not_multiply(self) -> Bool:
        return total(self.coins[n] for n in Node) <= 3

    @invariant
    def payers_are_poor(self) -> Bool:
        return total(self.coins[n] for n in self.paid) <= 1


class Tables(Machine):
    """A ring buffer: numbers are its places."""

    slots = per(number(-1, 2), one_of(Colour, init=Colour.red))
    writes = per(number(0, 1), per(Colour, number(0, 1)))
    head: NumberVar = number(0, 3)
    shade: OneVar[Colour] = one_of(Colour, init=Colour.red)

    @action
    def put(self) -> None:
        self.slots[self.head - 1] = self.shade
        self.writes[self.head % 2][self.shade] = 1
        self.head = (self.head + 1) % 4

    @action
    def turn(self) -> None:
        require(self.slots[(self.head + 1) % 4 - 1] == self.shade, "the next place has this colour")
        self.shade = choose(self.shade == Colour.red, Colour.green, Colour.red)

    @action
    def clear(self) -> None:
        require(every(self.slots[i] == Colour.green for i in numbers(-1, 2)), "all are green")
        for i in numbers(-1, 2):
            self.slots[i] = Colour.red

    @invariant
    def writes_are_counted(self) -> Bool:
        return total(self.writes[i][c] for i in numbers(0, 1) for c in each(Colour)) <= 4

    @invariant
    def first_places_are_alike(self) -> Bool:
        return self.slots[0] == self.slots[1]


class ByKey(Machine):
    """A forest: every node is its own root at first, and all but one colour have a mark."""

    parent = per(Node, one_of(Node), init=lambda n: n)
    marks = per(Node, per(Colour, number(0, 2)), init=lambda _, c: choose(c == Colour.red, 2, 1))
    places = per(number(0, 2), number(0, 4), init=lambda i: i * 2)

    @action
    def hang(self, n: Term[Node], m: Term[Node]) -> None:
        require((self.parent[n] == n) & (self.parent[m] == m), "both are roots")
        self.parent[n] = m
        self.marks[m][Colour.red] = 0

    @action
    def shift(self) -> None:
        require(self.places[0] == 0, "not shifted yet")
        self.places[0] = self.places[1]
        self.places[1] = self.places[2]

    @invariant
    def places_grow(self) -> Bool:
        return self.places[0] <= self.places[1]

    @invariant
    def all_are_marked(self) -> Bool:
        return every(self.marks[n][Colour.red] > self.marks[n][Colour.green] for n in Node)


class Defaults(Machine):
    """Work goes to the owner, or to whoever asks."""

    owner: OptionalVar[Node] = optional(Node)
    shade: OptionalVar[Colour] = optional(Colour)
    work = per(Node, number(0, 2))

    @action
    def ask(self, n: Term[Node]) -> None:
        require(self.work[self.owner.or_else(n)] < 2, "has room")
        self.work[self.owner.or_else(n)] = self.work[n] + 1 - self.work[n] // 2
        self.owner = choose(self.shade.is_none(), n, None)

    @action
    def paint(self) -> None:
        self.shade = choose(
            self.shade.or_else(Colour.green) == Colour.green, Term.of(Colour.red), None
        )

    @invariant
    def colours_are_red(self) -> Bool:
        return self.shade.or_else(Colour.red) == Colour.red

    @invariant
    def nobody_works_twice(self) -> Bool:
        return every(self.work[self.owner.or_else(n)] < 2 for n in Node)


class EnumLoops(Machine):
    """Colours that pass their numbers on, one by one and all at once."""

    held = per(Colour, number(0, 2))
    seen = per(Stage, flag())

    @action
    def earn(self, c: Term[Colour]) -> None:
        require(self.held[c] < 2, "not full")
        self.held[c] = self.held[c] + 1
        for s in each(Stage):
            self.seen[s] = self.seen[s] | s.column(lambda s: s.idle)

    @action
    def swap(self) -> None:
        for c in Colour:
            other = Colour.green if c is Colour.red else Colour.red
            self.held[c] = self.held[other]

    @action
    def look(self, t: Term[Stage]) -> None:
        require(~every(self.seen[s] for s in each(Stage)), "not all are seen")
        for s in Stage:
            self.seen[s] = (t == s) | (self.seen[Stage.rest] & (self.held[Colour.red] > 0))

    @invariant
    def little_is_held(self) -> Bool:
        return total(self.held[c] for c in each(Colour)) <= 4

    @invariant
    def both_hold_the_same(self) -> Bool:
        return every(self.held[c] == self.held[d] for c in each(Colour) for d in each(Colour))


EXAMPLES: Mapping[str, type[Machine]] = {
    "enums with columns": Columns,
    "optional values": Optionals,
    "sets": Sets,
    "maps and records": MapsAndRecords,
    "quantifiers and counts": Quantifiers,
    "products, quotients, remainders": Products,
    "the least and the greatest": Extremes,
    "sums over members": Sums,
    "tables by number": Tables,
    "initial values by key": ByKey,
    "a default for none": Defaults,
    "sets of these members": Literals,
    "sets as parameters": Groups,
    "loops over an enum": EnumLoops,
    "ordered entities and rings": InOrder,
    "members with names": Names,
    "sets of records": MessageSets,
    "bags": Bags,
    "queues": Queues,
}

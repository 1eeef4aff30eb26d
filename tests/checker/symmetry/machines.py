"""Machines for the tests of symmetry: members that refer to one another, and members that are told apart."""

from __future__ import annotations

from enum import Enum, auto
from typing import Annotated, Self

from stagewright.spec import (
    ANY,
    Bool,
    Entity,
    FlagVar,
    Machine,
    Number,
    OneVar,
    OptionalVar,
    States,
    Term,
    action,
    always_reachable,
    between,
    every,
    final,
    flag,
    initially,
    invariant,
    named,
    number,
    one_of,
    optional,
    per,
    require,
    set_of,
    some,
    step_property,
)


class Peer(Entity, scope=3):
    """Somebody who hears of others."""


class Item(Entity, scope=2):
    """Something that somebody holds."""


class Gossip(Machine):
    """Cells keyed by two members of one sort, and cells that hold a member or none."""

    knows = per(Peer, set_of(Peer))
    boss = per(Peer, optional(Peer))
    leader: OptionalVar[Peer] = optional(Peer)

    @action
    def hear(self, who: Term[Peer], of: Term[Peer]) -> None:
        require(who != of, "of somebody else")
        self.knows[who].add(of)

    @action
    def follow(self, who: Term[Peer], whom: Term[Peer]) -> None:
        require(self.knows[who].has(whom), "it is known")
        self.boss[who] = whom

    @action
    def elect(self, who: Term[Peer]) -> None:
        others = every((self.boss[p] == who) | (p == who) for p in Peer)
        require(others, "all others follow")
        self.leader = who

    @action
    def retire(self) -> None:
        require(self.leader.is_some(), "somebody leads")
        self.leader = None

    @invariant
    def no_two_follow_each_other(self, one: Term[Peer], other: Term[Peer]) -> Bool:
        """Broken after four steps."""
        return ~((self.boss[one] == other) & (self.boss[other] == one))

    @step_property
    def bosses_stay(self, after: Self, p: Term[Peer]) -> Bool:
        """Broken when somebody follows another one."""
        return (self.boss[p] == None) | (self.boss[p] == after.boss[p])  # noqa: E711


class Market(Machine):
    """Two sorts: items are held by peers, one of whom starts as the clerk, whichever it is."""

    holder = per(Item, optional(Peer))
    asked = per(Peer, per(Item, flag()))
    clerk: OneVar[Peer] = one_of(Peer, init=ANY)
    sold: FlagVar = flag()

    @action
    def ask(self, p: Term[Peer], i: Term[Item]) -> None:
        require(self.holder[i] != p, "somebody else holds it")
        self.asked[p][i] = True

    @action
    def hand(self, p: Term[Peer], i: Term[Item]) -> None:
        require(self.asked[p][i], "it was asked for")
        require(self.clerk != p, "not to the clerk")
        self.holder[i] = p
        self.asked[p][i] = False

    @action
    def sell(self, i: Term[Item]) -> None:
        require(some(self.holder[i] == p for p in Peer), "somebody holds it")
        self.holder[i] = None
        self.sold = True

    @action
    def relieve(self, p: Term[Peer]) -> None:
        require(self.sold & every(~self.asked[p][i] for i in Item), "they want nothing")
        self.clerk = p

    @invariant
    def clerk_holds_nothing(self, i: Term[Item]) -> Bool:
        """Broken: a holder may become the clerk."""
        return self.holder[i] != self.clerk


class Server(Enum):
    """A server, by name."""

    primary = auto()
    first = auto()
    second = auto()


class Pool(Machine):
    """A user's machine that singles out one member in a requirement."""

    load = per(Server, number(0, 2))
    failed_over: FlagVar = flag()

    @action
    def serve(self, s: Term[Server]) -> None:
        require(self.load[s] < 2, "it has room")
        self.load[s] = self.load[s] + 1

    @action
    def fail_over(self) -> None:
        require(self.load[Server.primary] == 2, "the primary is full")  # the distinguished one
        self.failed_over = True

    @final
    def over(self) -> Bool:
        return every(self.load[s] == 2 for s in Server) & self.failed_over


class Rack(States):
    """Where a server stands: members that differ by a column."""

    lower = 0
    upper = 1

    def __init__(self, height: int) -> None:
        self.height = height


class Racks(Machine):
    """Members that a column tells apart."""

    full = per(Rack, flag())

    @action
    def fill(self, r: Term[Rack], reach: Annotated[Number, between(0, 1)]) -> None:
        require(r.number_column(lambda rack: rack.height) <= reach, "it is within reach")
        self.full[r] = True


class Starting(Machine):
    """Its initial states are not closed: they name a member."""

    active: OneVar[Server] = one_of(Server, init=Server.primary)
    drained = per(Server, flag())

    @action
    def drain(self, s: Term[Server]) -> None:
        require(self.active != s, "it is not active")
        self.drained[s] = True

    @action
    def switch(self, s: Term[Server]) -> None:
        require(~self.drained[s], "it is not drained")
        self.active = s


class Watching(Machine):
    """A promise that singles one member out."""

    up = per(Server, flag(init=True))

    @action
    def stop(self, s: Term[Server]) -> None:
        require(self.up[s], "it is up")
        self.up[s] = False

    @final
    def all_down(self) -> Bool:
        return every(~self.up[s] for s in Server)

    @invariant
    def primary_is_up(self) -> Bool:
        return self.up[Server.primary]


class Hoping(Machine):
    """Only a goal singles one member out: no goal is decided on orbits."""

    up = per(Server, flag(init=True))

    @action
    def stop(self, s: Term[Server]) -> None:
        require(self.up[s], "it is up")
        self.up[s] = False

    @action
    def all_start(self) -> None:
        """Every member is named, each in its turn."""
        for s in Server:
            self.up[s] = True

    @invariant
    def enough(self) -> Bool:
        return some(self.up[s] for s in Server)

    @always_reachable
    def primary_up(self) -> Bool:
        return self.up[Server.primary]


class Chosen(Machine):
    """Its initial condition names a member."""

    picked = per(Server, flag(ANY))

    @initially
    def the_primary_is_picked(self) -> Bool:
        return self.picked[Server.primary] & (
            self.picked[Server.first] == self.picked[Server.second]
        )

    @action
    def unpick(self, s: Term[Server]) -> None:
        require(self.picked[s], "it is picked")
        self.picked[s] = False

    @final
    def at_any_time(self) -> Bool:
        return every((self.picked[s] | ~self.picked[s]) for s in Server)


class Amount(Machine):
    """Number parameters, which are no members of anything."""

    stock = per(Peer, number(0, 2))

    @action
    def deliver(self, p: Term[Peer], amount: Annotated[Number, between(1, 2)]) -> None:
        require(self.stock[p] + amount <= 2, "there is room")
        self.stock[p] = self.stock[p] + amount

    @action
    def use(self, p: Term[Peer]) -> None:
        require(self.stock[p] > 0, "there is some")
        self.stock[p] = self.stock[p] - 1


class Ledger(Machine):
    """Many cells for each peer, and nothing else."""

    owed = per(Peer, per(Item, flag()))

    @action
    def owe(self, p: Term[Peer], i: Term[Item]) -> None:
        require(~self.owed[p][i], "nothing is owed")
        self.owed[p][i] = True

    @action
    def pay(self, p: Term[Peer]) -> None:
        for i in Item:
            self.owed[p][i] = False


class Courtier(Entity, scope=3):
    """One of them is the king."""

    king = named()


class Court(Machine):
    """The king alone gives favour, and may lose his throne to nobody."""

    favoured: OptionalVar[Courtier] = optional(Courtier)
    bowing = set_of(Courtier)

    @action
    def bow(self, c: Term[Courtier]) -> None:
        require(c != Courtier.king, "the king does not bow")
        require(~self.bowing.has(c), "it stands")
        self.bowing.add(c)

    @action
    def favour(self, c: Term[Courtier]) -> None:
        require(self.bowing.has(c) | (c == Courtier.king), "it bows, or is the king")
        self.favoured = c

    @invariant
    def nobody_else_without_bowing(self) -> Bool:
        return every(self.bowing.has(c) for c in self.favoured)


class Seat(Entity, scope=3, ring=True):
    """Round a table."""


class Table(Machine):
    """A dish that goes round."""

    dish: OneVar[Seat] = one_of(Seat, init=Seat.first)

    @action
    def hand_on(self) -> None:
        self.dish = self.dish.next

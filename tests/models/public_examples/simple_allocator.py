"""Clients ask for sets of resources; after SimpleAllocator2 of TLA+'s public examples.

Its text says of what follows which properties do not hold: a client that holds something may keep it for
ever, for it gives back at its own will unless it got all that it asked for.
"""

from enum import Enum, auto

from stagewright.spec import (
    Bool,
    Entity,
    Fairness,
    LeadsTo,
    Machine,
    SetOf,
    Term,
    action,
    every,
    fairness,
    invariant,
    leads_to,
    liveness,
    per,
    require,
    set_of,
)


class Client(Entity, scope=3):
    """Who asks."""


class Resource(Enum):
    """What is asked for."""

    r1 = auto()
    r2 = auto()


class SimpleAllocator2(Machine):
    """An allocator whose clients need not give back what they hold before they have all."""

    wanted = per(Client, set_of(Resource))
    held = per(Client, set_of(Resource))
    grants = fairness(Fairness.STRONG, each=Client)

    def free(self, s: SetOf[Resource]) -> Bool:
        """Nobody holds any of these."""
        return every((self.held[c] & s).is_empty() for c in Client)

    @action
    def request(self, c: Term[Client], s: SetOf[Resource]) -> None:
        """A client that wants and holds nothing asks."""
        require(self.wanted[c].is_empty() & self.held[c].is_empty(), "nothing is outstanding")
        require(~s.is_empty(), "it wants something")
        self.wanted[c] = s

    @action(fair=grants)
    def allocate(self, c: Term[Client], s: SetOf[Resource]) -> None:
        """The allocator hands out what is wanted and free."""
        require(~s.is_empty() & (s <= self.wanted[c]), "it was asked for")
        require(self.free(s), "it is free")
        self.held[c] = self.held[c] | s
        self.wanted[c] = self.wanted[c] - s

    @action
    def give_back(self, c: Term[Client], s: SetOf[Resource]) -> None:
        """A client gives some of it back, if it likes."""
        require(~s.is_empty() & (s <= self.held[c]), "it holds them")
        self.held[c] = self.held[c] - s

    @action(fair=Fairness.WEAK)
    def give_all_back(self, c: Term[Client]) -> None:
        """A client that got all it wanted gives all back."""
        require(self.wanted[c].is_empty(), "it got all")
        require(~self.held[c].is_empty(), "it holds some")
        self.held[c] = set()

    @invariant
    def mutual_exclusion(self, c: Term[Client], d: Term[Client]) -> Bool:
        """No two clients hold the same."""
        return (c != d).implies((self.held[c] & self.held[d]).is_empty())

    @liveness
    def clients_will_return(self, c: Term[Client]) -> LeadsTo:
        """Who wants nothing more gives everything back."""
        return leads_to(self.wanted[c].is_empty(), self.held[c].is_empty())

    @liveness
    def clients_will_obtain(self, c: Term[Client], r: Term[Resource]) -> LeadsTo:
        """Who wants a resource gets it: not so, two clients may hold what the other one wants."""
        return leads_to(self.wanted[c].has(r), self.held[c].has(r))

    @liveness
    def often_satisfied(self, c: Term[Client]) -> LeadsTo:
        """Who wants something comes to want nothing: not so, either."""
        return leads_to(~self.wanted[c].is_empty(), self.wanted[c].is_empty())

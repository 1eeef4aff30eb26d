"""Dijkstra's termination detection in a ring (EWD 840), as in the TLA+ examples.

Known numbers of distinct states for 3 and 6 nodes: 302 and 36,990. The ring's size is the profile.
"""

from dataclasses import dataclass
from enum import Enum
from functools import partial

from stagewright.spec import (
    Bool,
    Fairness,
    FlagVar,
    Machine,
    OneVar,
    Profile,
    Term,
    action,
    every,
    final,
    flag,
    initially,
    invariant,
    leads_to,
    liveness,
    one_of,
    per,
    profiles,
    require,
)
from stagewright.spec.declarations.variables import ANY
from stagewright.spec.terms.temporal import LeadsTo


@dataclass(frozen=True)
class Ring(Profile):
    """A ring of that many nodes; the others stay asleep."""

    size: int = 6


class Node(Enum):
    """A node, by its place in the ring; the token travels downwards."""

    N0 = 0
    N1 = 1
    N2 = 2
    N3 = 3
    N4 = 4
    N5 = 5

    def is_below(self, size: int) -> bool:
        """Whether it belongs to a ring of that size."""
        return self.value < size

    def below(self) -> "Node":
        """The next node that the token visits."""
        return Node(max(self.value - 1, 0))


class Ewd840(Machine):
    """Node 0 wants to know that all nodes are inactive."""

    ring = profiles(Ring("three", 3), Ring("six", 6))
    active = per(Node, flag(ANY))
    black = per(Node, flag(ANY))
    token: OneVar[Node] = one_of(Node)
    token_black: FlagVar = flag(init=True)

    def in_ring(self, n: Term[Node]) -> Bool:
        """Whether the node takes part."""
        return n.column(partial(Node.is_below, size=self.ring.size))

    @initially
    def only_the_ring(self) -> Bool:
        """Nodes that do not take part are inactive and white."""
        size = self.ring.size
        outside = [n for n in Node if not n.is_below(size)]
        asleep = every(~self.active[n] & ~self.black[n] for n in outside) if outside else True
        return self.in_ring(self.token) & asleep

    @action(fair=Fairness.WEAK)
    def initiate_probe(self) -> None:
        """Node 0 sends a white token round."""
        require(self.token == Node.N0, "the token is at node 0")
        require(self.token_black | self.black[Node.N0], "the last round was inconclusive")
        self.token = Node(self.ring.size - 1)
        self.token_black = False
        self.black[Node.N0] = False

    @action(fair=Fairness.WEAK)
    def pass_token(self, n: Term[Node]) -> None:
        """A node hands on the token, blackened if it is black itself."""
        require(n != Node.N0, "it is not node 0")
        require(self.token == n, "the token is here")
        require(~self.active[n] | self.black[n] | self.token_black, "it is inactive, or no matter")
        self.token = n.column(Node.below)
        self.token_black = self.token_black | self.black[n]
        self.black[n] = False

    @action
    def send(self, n: Term[Node], to: Term[Node]) -> None:
        """An active node activates another one; upwards, it turns black."""
        require(self.active[n], "it is active")
        require(n != to, "the other is another")
        require(self.in_ring(to), "the other is in the ring")
        self.active[to] = True
        upwards = [(a, b) for a in Node for b in Node if b.value > a.value]
        risen = every(~((n == a) & (to == b)) for a, b in upwards)
        self.black[n] = self.black[n] | ~risen

    @action
    def deactivate(self, n: Term[Node]) -> None:
        """A node falls inactive."""
        require(self.active[n], "it is active")
        self.active[n] = False

    def detected(self) -> Bool:
        """Node 0 knows."""
        quiet = ~self.active[Node.N0] & ~self.black[Node.N0]
        return (self.token == Node.N0) & ~self.token_black & quiet

    @final
    def known(self) -> Bool:
        """Nothing is left to do once node 0 knows."""
        return self.detected()

    @invariant
    def detection_is_right(self) -> Bool:
        """What node 0 knows is so."""
        return self.detected().implies(every(~self.active[n] for n in Node))

    @liveness
    def detection_comes(self) -> LeadsTo:
        """When all are inactive, node 0 will know."""
        return leads_to(every(~self.active[n] for n in Node), self.detected())

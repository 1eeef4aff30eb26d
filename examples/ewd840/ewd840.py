"""Dijkstra's termination detection in a ring, EWD 840.

Distinct states with 3, 4 and 6 nodes: 302, 1,566 and 36,990, as TLC finds for the specification of the TLA+ examples.
"""

from __future__ import annotations

from stagewright.spec import (
    ANY,
    Bool,
    Entity,
    Fairness,
    FlagVar,
    LeadsTo,
    Machine,
    OneVar,
    Term,
    action,
    every,
    final,
    flag,
    invariant,
    leads_to,
    liveness,
    one_of,
    per,
    require,
)


class Node(Entity, scope=3, ring=True):
    """The first node starts the rounds; the token travels downwards."""


class Ewd840(Machine):
    """The first node wants to know that all nodes are inactive."""

    active = per(Node, flag(ANY))
    black = per(Node, flag(ANY))
    token: OneVar[Node] = one_of(Node)
    token_black: FlagVar = flag(init=True)

    @action(fair=Fairness.WEAK)
    def initiate_probe(self) -> None:
        """The first node sends a white token round."""
        require(self.token.is_first, "the token is at the first node")
        require(self.token_black | self.black[Node.first], "the last round was inconclusive")
        self.token = Node.last
        self.token_black = False
        self.black[Node.first] = False

    @action(fair=Fairness.WEAK)
    def pass_token(self, n: Term[Node]) -> None:
        """A node hands on the token, blackened if it is black itself."""
        require(~n.is_first, "it is not the first")
        require(self.token == n, "the token is here")
        require(~self.active[n] | self.black[n] | self.token_black, "it is inactive, or no matter")
        self.token = n.previous
        self.token_black = self.token_black | self.black[n]
        self.black[n] = False

    @action
    def send(self, n: Term[Node], to: Term[Node]) -> None:
        """An active node activates another one; upwards, it turns black."""
        require(self.active[n], "it is active")
        require(n != to, "the other is another")
        self.active[to] = True
        self.black[n] = self.black[n] | (n < to)

    @action
    def deactivate(self, n: Term[Node]) -> None:
        """A node falls inactive."""
        require(self.active[n], "it is active")
        self.active[n] = False

    def detected(self) -> Bool:
        """The first node knows."""
        quiet = ~self.active[Node.first] & ~self.black[Node.first]
        return self.token.is_first & ~self.token_black & quiet

    @final
    def known(self) -> Bool:
        """Nothing is left to do once the first node knows."""
        return self.detected()

    @invariant
    def detection_is_right(self) -> Bool:
        """What the first node knows is so."""
        return self.detected().implies(every(~self.active[n] for n in Node))

    @liveness
    def detection_comes(self) -> LeadsTo:
        """When all are inactive, the first node will know."""
        return leads_to(every(~self.active[n] for n in Node), self.detected())


class ForgetfulSender(Ewd840):
    """The bug: a node that activates one above it stays white."""

    @action
    def send(self, n: Term[Node], to: Term[Node]) -> None:
        """An active node activates another one."""
        require(self.active[n], "it is active")
        require(n != to, "the other is another")
        self.active[to] = True

"""Termination detection where messages take time, EWD 998: the token counts what was sent and not received.

The TLA+ examples bound counters by a constraint; here, a node is at most one message ahead or behind.
"""

from __future__ import annotations

import stagewright.spec as sw

AHEAD = 1  # messages that a node may have sent and not received, or the other way round


class Node(sw.Entity, scope=3, ring=True):
    """The first node starts the rounds; the token travels downwards."""


class Ewd998(sw.Machine):
    """The first node wants to know that all nodes are at rest and nothing is under way."""

    active = sw.per(Node, sw.flag(sw.ANY))
    black = sw.per(Node, sw.flag(sw.ANY))
    counter = sw.per(Node, sw.number(-AHEAD, AHEAD, init=0))  # messages sent, less those received
    pending = sw.per(Node, sw.number(0, 2))  # messages under way to a node
    token: sw.OneVar[Node] = sw.one_of(Node, init=Node.first)
    token_black: sw.FlagVar = sw.flag(init=True)
    token_count: sw.NumberVar = sw.number(-3 * AHEAD, 3 * AHEAD, init=0)

    @sw.action(fair=sw.Fairness.WEAK)
    def initiate_probe(self) -> None:
        """The first node sends a white token round."""
        sw.require(self.token.is_first, "the token is at the first node")
        sw.require(~self.detected(), "the last round was inconclusive")
        self.token = Node.last
        self.token_black = False
        self.token_count = 0
        self.black[Node.first] = False

    @sw.action(fair=sw.Fairness.WEAK)
    def pass_token(self, n: sw.Term[Node]) -> None:
        """A node at rest hands on the token, with what it has counted."""
        sw.require(~n.is_first, "it is not the first")
        sw.require(self.token == n, "the token is here")
        sw.require(~self.active[n], "it is at rest")
        self.token = n.previous
        self.token_count = self.token_count + self.counter[n]
        self.token_black = self.token_black | self.black[n]
        self.black[n] = False

    @sw.action
    def send(self, n: sw.Term[Node], to: sw.Term[Node]) -> None:
        """An active node sends work to another one."""
        sw.require(self.active[n], "it is active")
        sw.require(n != to, "the other is another")
        sw.bounded((self.counter[n] < AHEAD) & (self.pending[to] < 2))
        self.counter[n] = self.counter[n] + 1
        self.pending[to] = self.pending[to] + 1

    @sw.action(fair=sw.Fairness.WEAK)
    def receive(self, n: sw.Term[Node]) -> None:
        """Work arrives: the node is active again, and black."""
        sw.require(self.pending[n] > 0, "work is under way to it")
        sw.bounded(self.counter[n] > -AHEAD)
        self.active[n] = True
        self.black[n] = True
        self.counter[n] = self.counter[n] - 1
        self.pending[n] = self.pending[n] - 1

    @sw.action
    def deactivate(self, n: sw.Term[Node]) -> None:
        """A node is done."""
        sw.require(self.active[n], "it is active")
        self.active[n] = False

    def detected(self) -> sw.Bool:
        """The first node knows."""
        quiet = ~self.active[Node.first] & ~self.black[Node.first] & ~self.token_black
        nothing_under_way = self.token_count + self.counter[Node.first] == 0
        return self.token.is_first & quiet & nothing_under_way

    def terminated(self) -> sw.Bool:
        """All nodes are at rest, and nothing is under way."""
        return sw.every(~self.active[n] & (self.pending[n] == 0) for n in Node)

    @sw.final
    def known(self) -> sw.Bool:
        """Nothing is left to do once the first node knows."""
        return self.detected()

    @sw.invariant
    def detection_is_right(self) -> sw.Bool:
        """What the first node knows is so."""
        return self.detected().implies(self.terminated())

    @sw.invariant
    def counters_tell_what_is_under_way(self) -> sw.Bool:
        """All counters together are the number of messages under way."""
        return sw.total(self.counter[n] for n in Node) == sw.total(self.pending[n] for n in Node)

    @sw.liveness
    def detection_comes(self) -> sw.LeadsTo:
        """When all is at rest, the first node will know."""
        return sw.leads_to(self.terminated(), self.detected())


class WhiteReceiver(Ewd998):
    """The bug: a node that receives work stays white, and the token has passed it already."""

    @sw.action(fair=sw.Fairness.WEAK)
    def receive(self, n: sw.Term[Node]) -> None:
        """Work arrives: the node is active again."""
        sw.require(self.pending[n] > 0, "work is under way to it")
        sw.bounded(self.counter[n] > -AHEAD)
        self.active[n] = True
        self.counter[n] = self.counter[n] - 1
        self.pending[n] = self.pending[n] - 1

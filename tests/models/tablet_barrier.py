"""Tablets whose stages advance behind barriers, while nodes crash: the model of the design's anchors.

Known numbers of distinct states for (tablets, nodes) = (3, 3), (3, 4), (4, 3): 171,458, 1,486,150 and
7,024,760; steps 1,263,210, 14,142,718 and 63,722,136.
"""

from stagewright.spec import (
    Bool,
    Entity,
    Machine,
    Term,
    action,
    always_reachable,
    every,
    flag,
    invariant,
    number,
    per,
    require,
    some,
)

LAST = 6


class Tablet(Entity, scope=3):
    """A tablet."""


class Node(Entity, scope=3):
    """A node."""


class TabletBarrier(Machine):
    """A stage per tablet; what each node has learned of it; nodes that are up or down."""

    stage = per(Tablet, number(0, LAST))
    learned = per(Node, per(Tablet, number(0, LAST)))
    up = per(Node, flag(init=True))

    @action
    def advance(self, t: Term[Tablet]) -> None:
        """A tablet moves on once every live node has learned where it is."""
        require(self.stage[t] < LAST, "it is not at its last stage")
        require(some(self.up[n] for n in Node), "some node is up")
        learned = every(self.up[n].implies(self.learned[n][t] == self.stage[t]) for n in Node)
        require(learned, "every live node has learned the stage")
        self.stage[t] = self.stage[t] + 1

    @action
    def learn(self, n: Term[Node], t: Term[Tablet]) -> None:
        """A node takes the committed stage."""
        require(self.up[n], "it is up")
        require(self.learned[n][t] != self.stage[t], "there is something to learn")
        self.learned[n][t] = self.stage[t]

    @action
    def crash(self, n: Term[Node]) -> None:
        """A node goes down and forgets."""
        require(self.up[n], "it is up")
        self.up[n] = False
        for t in Tablet:
            self.learned[n][t] = 0

    @action
    def restart(self, n: Term[Node]) -> None:
        """A node comes up and learns everything."""
        require(~self.up[n], "it is down")
        self.up[n] = True
        for t in Tablet:
            self.learned[n][t] = self.stage[t]

    @invariant
    def at_most_one_behind(self, n: Term[Node], t: Term[Tablet]) -> Bool:
        """A live node is at most one stage behind."""
        return self.up[n].implies(self.stage[t] <= self.learned[n][t] + 1)

    @always_reachable
    def all_done(self) -> Bool:
        """Every tablet can come to its last stage."""
        return every(self.stage[t] == LAST for t in Tablet)

"""Chang and Roberts' election of a leader in a ring: the least node wins. 564 distinct states with four nodes.

`chang_roberts.tla` is the same written by hand.
"""

from __future__ import annotations

from enum import Enum, auto

from stagewright.spec import (
    ANY,
    Bool,
    Entity,
    Machine,
    Term,
    action,
    constant,
    every,
    final,
    flag,
    invariant,
    one_of,
    per,
    require,
    set_of,
)


class Node(Entity, scope=4, ring=True):
    """Its place in the ring is its identity."""


class Role(Enum):
    """What a node thinks of itself."""

    CANDIDATE = auto()
    LOST = auto()
    WON = auto()


class ChangRoberts(Machine):
    """Some nodes stand for election; each sends its identity round, which only lesser ones survive."""

    standing = constant(per(Node, flag(ANY)))
    stood = per(Node, flag())
    role = per(Node, one_of(Role, init=Role.CANDIDATE))
    inbox = per(Node, set_of(Node))

    @action
    def stand(self, n: Term[Node]) -> None:
        """A node sends its identity to the next."""
        require(self.standing[n], "it stands for election")
        require(~self.stood[n], "it has not said so")
        self.stood[n] = True
        self.inbox[n.next].add(n)

    @action
    def hand_on(self, n: Term[Node], who: Term[Node]) -> None:
        """A node hands on the identity of one that beats it, or of anyone if it does not stand."""
        require(n.next != n, "there are others")
        require(self.inbox[n].has(who), "it has heard of it")
        require(~self.standing[n] | (self.stood[n] & (who < n)), "it does not beat it")
        self.inbox[n].discard(who)
        self.inbox[n.next].add(who)
        self.role[n] = Role.LOST

    @action
    def drop(self, n: Term[Node], who: Term[Node]) -> None:
        """A node that stands itself drops the identity of a greater one."""
        require(self.inbox[n].has(who), "it has heard of it")
        require(self.standing[n] & self.stood[n] & (n < who), "it beats it")
        self.inbox[n].discard(who)

    @action
    def win(self, n: Term[Node]) -> None:
        """A node whose own identity has come round has won."""
        require(self.inbox[n].has(n), "its own identity has come round")
        self.inbox[n].discard(n)
        self.role[n] = Role.WON

    @final
    def nothing_is_under_way(self) -> Bool:
        """Everything that was sent has arrived."""
        return every(self.inbox[n].is_empty() & (self.stood[n] | ~self.standing[n]) for n in Node)

    @invariant
    def the_least_wins(self, n: Term[Node]) -> Bool:
        """Who has won is less than all others that stand."""
        beaten = every((m == n) | ~self.standing[m] | (n < m) for m in Node)
        return (self.role[n] == Role.WON).implies(beaten)


class ModestRing(ChangRoberts):
    """The bug: a node hands on whatever identity it hears, also one that it beats."""

    @action
    def hand_on(self, n: Term[Node], who: Term[Node]) -> None:
        """A node hands on every identity but its own."""
        require(n != who, "it is another one's")
        require(self.inbox[n].has(who), "it has heard of it")
        require(~self.standing[n] | self.stood[n], "it has said that it stands")
        self.inbox[n].discard(who)
        self.inbox[n.next].add(who)
        self.role[n] = Role.LOST

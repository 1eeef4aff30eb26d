"""Dijkstra's self-stabilising token ring; after TokenRing of TLA+'s public examples, whose fairness is WF(Next)."""

from stagewright.spec import (
    ANY,
    Bool,
    Entity,
    Eventually,
    Fairness,
    Machine,
    Term,
    action,
    count,
    eventually,
    fairness,
    invariant,
    liveness,
    number,
    per,
    require,
)

VALUES = 4  # more than there are processes: then it stabilises


class Process(Entity, scope=3, ring=True):
    """One of the ring; the first one is special."""


class TokenRing(Machine):
    """Each process compares its number with its predecessor's; who may move holds a token."""

    progress = fairness(Fairness.WEAK, all_actions=True)

    c = per(Process, number(0, VALUES - 1, init=ANY))

    def has_token(self, p: Term[Process]) -> Bool:
        """The first holds one if its number equals its predecessor's, the others if theirs differs."""
        equal = self.c[p] == self.c[p.previous]
        return (p.is_first & equal) | (~p.is_first & ~equal)

    @action
    def move_first(self, p: Term[Process]) -> None:
        """The first process makes a new number."""
        require(p.is_first, "it is the first")
        require(self.has_token(p), "it holds a token")
        self.c[p] = (self.c[p] + 1) % VALUES

    @action
    def move(self, p: Term[Process]) -> None:
        """Another process takes its predecessor's number."""
        require(~p.is_first, "it is not the first")
        require(self.has_token(p), "it holds a token")
        self.c[p] = self.c[p.previous]

    @invariant
    def some_token(self) -> Bool:
        """There is always a token."""
        return count(self.has_token(p) for p in Process) >= 1

    @liveness
    def one_token(self) -> Eventually:
        """In the end there is one token."""
        return eventually(count(self.has_token(p) for p in Process) == 1)

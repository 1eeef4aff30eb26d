"""Paxos with sets of messages, one for each kind. Three acceptors, two values; a ballot is one of a row.

`paxos.tla` is the same written by hand, with quorums as sets of acceptors.
"""

from __future__ import annotations

from enum import Enum, auto

from stagewright.spec import (
    Bool,
    Entity,
    Machine,
    Maybe,
    Record,
    Term,
    action,
    count,
    every,
    final,
    invariant,
    one_of,
    optional,
    per,
    require,
    set_of,
    some,
)


class Acceptor(Entity, scope=3):
    """Two of three are a majority."""


class Ballot(Entity, scope=2, ordered=True):
    """An attempt to get a value chosen; each is led by another proposer."""


class Value(Enum):
    """What may be chosen."""

    RED = auto()
    BLUE = auto()


class Prepare(Record):
    """Message 1a: a proposer asks for promises."""

    ballot = one_of(Ballot)


class Promise(Record):
    """Message 1b: an acceptor takes part in no earlier ballot, and reports how it voted last."""

    acceptor = one_of(Acceptor)
    ballot = one_of(Ballot)
    voted_in = optional(Ballot)
    voted_for = optional(Value)


class Proposal(Record):
    """Message 2a: a proposer asks for votes."""

    ballot = one_of(Ballot)
    value = one_of(Value)


class Vote(Record):
    """Message 2b: an acceptor votes."""

    acceptor = one_of(Acceptor)
    ballot = one_of(Ballot)
    value = one_of(Value)


def no_later(voted_in: Maybe[Ballot], latest: Term[Ballot] | None) -> Bool:
    """Whether there was no vote after a ballot, or none at all."""
    return voted_in.is_none() if latest is None else every(b <= latest for b in voted_in)


class Paxos(Machine):
    """Messages are never lost and never removed; whoever wants may hear them, at any time."""

    prepared = set_of(Prepare)
    promises = set_of(Promise)
    proposals = set_of(Proposal)
    votes = set_of(Vote)
    latest = per(Acceptor, optional(Ballot))
    voted_in = per(Acceptor, optional(Ballot))
    voted_for = per(Acceptor, optional(Value))

    def is_free(self, a: Term[Acceptor], ballot: Term[Ballot]) -> Bool:
        """Whether an acceptor takes part in no later ballot."""
        return every(known <= ballot for known in self.latest[a])

    @action
    def prepare(self, b: Term[Ballot]) -> None:
        """A proposer begins a ballot."""
        self.prepared.add(Prepare(ballot=b))

    @action
    def promise(self, a: Term[Acceptor], b: Term[Ballot]) -> None:
        """An acceptor promises to take part in no earlier ballot."""
        require(self.prepared.has(Prepare(ballot=b)), "the ballot has begun")
        require(self.is_free(a, b) & (self.latest[a] != b), "it is later than all it knows")
        self.latest[a] = b
        voted = Promise(
            acceptor=a, ballot=b, voted_in=self.voted_in[a], voted_for=self.voted_for[a]
        )
        self.promises.add(voted)

    @action
    def propose(self, b: Term[Ballot], value: Term[Value]) -> None:
        """A proposer asks for votes for the value of the latest vote that a majority reports."""
        require(~some(p.ballot == b for p in self.proposals), "it has proposed nothing")
        no_vote = self.most_promise(b, None)
        a_vote = some(
            self.most_promise(b, latest)
            & some(
                (p.ballot == b) & (p.voted_in == latest) & (p.voted_for == value)
                for p in self.promises
            )
            for latest in Ballot
        )
        require(no_vote | a_vote, "a majority leaves it free, or binds it to this value")
        self.proposals.add(Proposal(ballot=b, value=value))

    def most_promise(self, b: Term[Ballot], latest: Term[Ballot] | None) -> Bool:
        """Whether a majority has promised a ballot, and of these nobody has voted later than in `latest`."""
        promised = count(
            some(
                (p.acceptor == a) & (p.ballot == b) & no_later(p.voted_in, latest)
                for p in self.promises
            )
            for a in Acceptor
        )
        return promised >= 2

    @action
    def vote(self, a: Term[Acceptor], proposal: Proposal) -> None:
        """An acceptor votes for a proposal, unless it has promised a later ballot."""
        require(self.proposals.has(proposal), "it was proposed")
        require(self.is_free(a, proposal.ballot), "it knows of no later ballot")
        self.latest[a] = proposal.ballot
        self.voted_in[a] = proposal.ballot
        self.voted_for[a] = proposal.value
        self.votes.add(Vote(acceptor=a, ballot=proposal.ballot, value=proposal.value))

    def chosen(self, value: Term[Value]) -> Bool:
        """Whether a majority has voted for a value in one ballot."""
        return some(
            count(self.votes.has(Vote(acceptor=a, ballot=b, value=value)) for a in Acceptor) >= 2
            for b in Ballot
        )

    @final
    def at_any_time(self) -> Bool:
        """Proposers may give up."""
        return every(self.prepared.has(Prepare(ballot=b)) for b in Ballot)

    @invariant
    def one_value_is_chosen(self, one: Term[Value], other: Term[Value]) -> Bool:
        """No two values are chosen."""
        return (self.chosen(one) & self.chosen(other)).implies(one == other)


class ForgetfulPaxos(Paxos):
    """The bug: a proposer asks for votes for its own value, whatever the acceptors have voted for before."""

    @action
    def propose(self, b: Term[Ballot], value: Term[Value]) -> None:
        """A proposer asks for votes for a value of its own."""
        require(~some(p.ballot == b for p in self.proposals), "it has proposed nothing")
        promised = count(
            some((p.acceptor == a) & (p.ballot == b) for p in self.promises) for a in Acceptor
        )
        require(promised >= 2, "a majority has promised")
        self.proposals.add(Proposal(ballot=b, value=value))

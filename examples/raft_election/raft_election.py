"""Raft's election of a leader: terms, votes that are stored, and nodes that crash.

After Ongaro and Ousterhout's "In Search of an Understandable Consensus Algorithm", 5.2, without logs.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Self

import stagewright.spec as sw

LAST = 2  # terms that a check goes through


class Node(sw.Entity, scope=3):
    """A server; two of three are a majority."""


class Role(Enum):
    """The role that a server believes it has."""

    follower = auto()
    candidate = auto()
    leader = auto()


class Request(sw.Record):
    """A candidate asks for votes."""

    term = sw.number(1, LAST)
    candidate = sw.one_of(Node)


class Vote(sw.Record):
    """A server votes for a candidate."""

    term = sw.number(1, LAST)
    voter = sw.one_of(Node)
    candidate = sw.one_of(Node)


class Heartbeat(sw.Record):
    """A leader says that it leads."""

    term = sw.number(1, LAST)
    leader = sw.one_of(Node)


class RaftElection(sw.Machine):
    """Messages may be lost, late and repeated: they stay in their sets, and need not be heard."""

    crashes = sw.fault_budget(1, doc="servers that lose what they have not stored")
    deadlock = sw.allowed(because="a term may pass without a leader, and a check has a last term")

    term = sw.per(Node, sw.number(0, LAST))  # stored
    voted_for = sw.per(Node, sw.optional(Node))  # in that term; stored
    role = sw.per(Node, sw.one_of(Role, init=Role.follower))
    requests = sw.set_of(Request)
    votes = sw.set_of(Vote)
    heartbeats = sw.set_of(Heartbeat)

    @sw.action
    def time_out(self, n: sw.Term[Node]) -> None:
        """A server has heard of no leader for too long: it stands for election in a new term."""
        sw.require(self.role[n] != Role.leader, "it does not lead")
        sw.bounded(self.term[n] < LAST)
        new = self.term[n] + 1
        self.term[n] = new
        self.voted_for[n] = n
        self.role[n] = Role.candidate
        self.requests.add(Request(term=new, candidate=n))
        self.votes.add(Vote(term=new, voter=n, candidate=n))

    @sw.action
    def vote(self, n: sw.Term[Node], request: Request) -> None:
        """A server votes for the first candidate of a term that it hears of."""
        sw.require(self.requests.has(request), "the request is under way")
        newer = request.term > self.term[n]
        free = (request.term == self.term[n]) & self.voted_for[n].is_none()
        sw.require(newer | free, "it has not voted in that term, which is not over")
        self.term[n] = request.term
        self.voted_for[n] = request.candidate
        self.role[n] = Role.follower
        self.votes.add(Vote(term=request.term, voter=n, candidate=request.candidate))

    @sw.action
    def win(self, n: sw.Term[Node]) -> None:
        """A candidate has the votes of a majority in its term."""
        sw.require(self.role[n] == Role.candidate, "it is a candidate")
        votes = sw.count(self.has_vote(n, v) for v in Node)
        sw.require(votes > sw.count(~self.has_vote(n, v) for v in Node), "a majority voted for it")
        self.role[n] = Role.leader
        self.heartbeats.add(Heartbeat(term=self.term[n], leader=n))

    @sw.action
    def follow(self, n: sw.Term[Node], heartbeat: Heartbeat) -> None:
        """A server hears of a leader whose term is not over."""
        sw.require(self.heartbeats.has(heartbeat), "the heartbeat is under way")
        newer = heartbeat.term > self.term[n]
        waits = (heartbeat.term == self.term[n]) & (self.role[n] == Role.candidate)
        sw.require(newer | waits, "it tells something new")
        self.voted_for[n] = sw.choose(newer, None, self.voted_for[n])
        self.term[n] = heartbeat.term
        self.role[n] = Role.follower

    @sw.action(spends=crashes)
    def crash(self, n: sw.Term[Node]) -> None:
        """A server restarts; its term and its vote are stored."""
        self.role[n] = Role.follower

    def has_vote(self, n: sw.Term[Node], voter: sw.Term[Node]) -> sw.Bool:
        """Whether a candidate has heard of a vote for it, in its own term."""
        return sw.some(
            (v.term == self.term[n]) & (v.voter == voter) & (v.candidate == n) for v in self.votes
        )

    @sw.invariant
    def one_leader_a_term(self, n: sw.Term[Node], m: sw.Term[Node]) -> sw.Bool:
        """No two servers lead in one term."""
        both = (self.role[n] == Role.leader) & (self.role[m] == Role.leader)
        return (both & (n != m)).implies(self.term[n] != self.term[m])

    @sw.invariant
    def one_vote_a_term(self, one: Vote, other: Vote) -> sw.Bool:
        """A server votes once in a term."""
        same = (one.term == other.term) & (one.voter == other.voter)
        both = self.votes.has(one) & self.votes.has(other)
        return (both & same).implies(one.candidate == other.candidate)

    @sw.step_property
    def terms_grow(self, after: Self, n: sw.Term[Node]) -> sw.Bool:
        """A server never goes back to an older term."""
        return after.term[n] >= self.term[n]

    @sw.sometimes
    def two_lead(self) -> sw.Bool:
        """An old leader has not heard of the new one."""
        return sw.count(self.role[n] == Role.leader for n in Node) == 2


class ForgetfulServer(RaftElection):
    """The bug: the vote is not stored, and a server votes again after a crash."""

    @sw.action(spends=RaftElection.crashes)
    def crash(self, n: sw.Term[Node]) -> None:
        """A server restarts; only its term is stored."""
        self.role[n] = Role.follower
        self.voted_for[n] = None

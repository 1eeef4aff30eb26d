"""Servers that elect a leader, and the adapter that is the network between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stagewright.testing import RefusedEvent, State, Step

SERVERS = ("node0", "node1", "node2")


@dataclass
class Disk:
    """What survives a crash."""

    term: int = 0
    voted_for: str | None = None


class Server:
    """One server; `disk` is all that a restarted one has."""

    def __init__(self, name: str, disk: Disk) -> None:
        self.name, self.disk = name, disk
        self.role = "follower"

    def time_out(self) -> int | None:
        """Stand for election: the new term, in which it votes for itself; None if it leads."""
        if self.role == "leader":
            return None
        self.disk.term += 1
        self.disk.voted_for = self.name
        self.role = "candidate"
        return self.disk.term

    def vote(self, term: int, candidate: str) -> bool:
        """Whether it votes for a candidate."""
        has_voted = term == self.disk.term and self.disk.voted_for is not None
        if term < self.disk.term or has_voted:
            return False
        self.disk.term, self.disk.voted_for = term, candidate
        self.role = "follower"
        return True

    def win(self, voters: set[str]) -> bool:
        """Whether it leads from now on."""
        if self.role != "candidate" or 2 * len(voters) <= len(SERVERS):
            return False
        self.role = "leader"
        return True

    def follow(self, term: int) -> bool:
        """Whether a heartbeat tells it something new."""
        newer = term > self.disk.term
        waits = term == self.disk.term and self.role == "candidate"
        if not (newer or waits):
            return False
        if newer:
            self.disk.term, self.disk.voted_for = term, None
        self.role = "follower"
        return True


class Adapter:
    """The definition's steps as calls; messages stay under way, and can be heard at any time."""

    def reset(self, initial: State) -> None:
        self.servers = {name: Server(name, Disk()) for name in SERVERS}
        self.requests: set[tuple[int, str]] = set()
        self.votes: set[tuple[int, str, str]] = set()
        self.heartbeats: set[tuple[int, str]] = set()

    def do(self, step: Step) -> None:
        server = self.servers[str(step.arguments["n"])]
        match step.action:
            case "time_out":
                term = server.time_out()
                done = term is not None
                if term is not None:
                    self.requests.add((term, server.name))
                    self.votes.add((term, server.name, server.name))
            case "vote":
                term, candidate = _message(step.arguments["request"], "candidate")
                done = (term, candidate) in self.requests and server.vote(term, candidate)
                if done:
                    self.votes.add((term, server.name, candidate))
            case "win":
                term = server.disk.term
                done = server.win({v for t, v, c in self.votes if (t, c) == (term, server.name)})
                if done:
                    self.heartbeats.add((term, server.name))
            case "follow":
                term, leader = _message(step.arguments["heartbeat"], "leader")
                done = (term, leader) in self.heartbeats and server.follow(term)
            case _:
                self.servers[server.name] = Server(server.name, server.disk)
                done = True
        if not done:
            raise RefusedEvent("it does nothing of the kind")

    def observe(self) -> Mapping[str, object]:
        seen: dict[str, object] = {}
        for name, server in self.servers.items():
            seen[f"term[{name}]"] = server.disk.term
            seen[f"voted_for[{name}]"] = server.disk.voted_for
            seen[f"role[{name}]"] = server.role
        return seen


def _message(message: object, sender: str) -> tuple[int, str]:
    assert isinstance(message, Mapping)
    return int(str(message["term"])), str(message[sender])

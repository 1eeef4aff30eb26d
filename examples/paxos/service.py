"""Acceptors and proposers in plain Python, and the adapter that is the network between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stagewright.testing import RefusedEvent, State, Step

ACCEPTORS = ("acceptor0", "acceptor1", "acceptor2")
MAJORITY = 2


@dataclass(frozen=True)
class Promise:
    """What an acceptor answers to a ballot that begins."""

    acceptor: str
    voted_in: int | None
    voted_for: str | None


class Acceptor:
    """Remembers the latest ballot that it knows, and its last vote."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.latest: int | None = None
        self.voted_in: int | None = None
        self.voted_for: str | None = None

    def promise(self, ballot: int) -> Promise | None:
        """Take part in no earlier ballot; None if it knows of one as late."""
        if self.latest is not None and self.latest >= ballot:
            return None
        self.latest = ballot
        return Promise(self.name, self.voted_in, self.voted_for)

    def vote(self, ballot: int, value: str) -> bool:
        """Vote, unless it has promised a later ballot."""
        if self.latest is not None and self.latest > ballot:
            return False
        self.latest = self.voted_in = ballot
        self.voted_for = value
        return True


class Proposer:
    """Leads one ballot."""

    def __init__(self) -> None:
        self.begun = False
        self.promises: dict[str, Promise] = {}
        self.proposed: str | None = None

    def propose(self, value: str) -> bool:
        """Ask for votes for a value; refused if the promises bind it to another one.

        The majority that answers may be any: a proposer is bound by the latest vote of the majority that it chooses.
        """
        if self.proposed is not None or not any(self._allows(value, m) for m in self._majorities()):
            return False
        self.proposed = value
        return True

    def _majorities(self) -> list[list[Promise]]:
        answers = list(self.promises.values())
        subsets = [
            [p for i, p in enumerate(answers) if n >> i & 1] for n in range(1 << len(answers))
        ]
        return [chosen for chosen in subsets if len(chosen) >= MAJORITY]

    def _allows(self, value: str, majority: list[Promise]) -> bool:
        votes = [(p.voted_in, p.voted_for or "") for p in majority if p.voted_in is not None]
        return not votes or max(votes)[1] == value


class Adapter:
    """The definition's steps as calls; every message can be heard at any time, by whoever wants."""

    def reset(self, initial: State) -> None:
        self.acceptors = {name: Acceptor(name) for name in ACCEPTORS}
        self.proposers = [Proposer(), Proposer()]

    def do(self, step: Step) -> None:
        match step.action:
            case "prepare":
                self.proposers[_number(step.arguments["b"])].begun = True
            case "promise":
                self._promise(str(step.arguments["a"]), _number(step.arguments["b"]))
            case "propose":
                proposer = self.proposers[_number(step.arguments["b"])]
                if not proposer.propose(getattr(step.arguments["value"], "name", "")):
                    raise RefusedEvent("it is bound, or nobody listens")
            case _:
                self._vote(step)

    def _promise(self, acceptor: str, ballot: int) -> None:
        if not self.proposers[ballot].begun:
            raise RefusedEvent("the ballot has not begun")
        promise = self.acceptors[acceptor].promise(ballot)
        if promise is None:
            raise RefusedEvent("it knows of a later ballot")
        self.proposers[ballot].promises[acceptor] = promise

    def _vote(self, step: Step) -> None:
        proposal = step.arguments["proposal"]
        assert isinstance(proposal, Mapping)
        ballot, value = _number(proposal["ballot"]), getattr(proposal["value"], "name", "")
        if self.proposers[ballot].proposed != value:
            raise RefusedEvent("nobody has proposed that")
        if not self.acceptors[str(step.arguments["a"])].vote(ballot, value):
            raise RefusedEvent("it knows of a later ballot")

    def observe(self) -> Mapping[str, object]:
        seen: dict[str, object] = {}
        for name, acceptor in self.acceptors.items():
            seen[f"latest[{name}]"] = _ballot(acceptor.latest)
            seen[f"voted_in[{name}]"] = _ballot(acceptor.voted_in)
            seen[f"voted_for[{name}]"] = acceptor.voted_for
        return seen


def _number(ballot: object) -> int:
    return int(str(ballot).removeprefix("ballot"))


def _ballot(number: int | None) -> str | None:
    return None if number is None else f"ballot{number}"

"""Nodes that elect a leader in a ring, and the adapter that is the network between them."""

from __future__ import annotations

from collections.abc import Mapping

from stagewright.spec.trace import observation
from stagewright.testing import RefusedEvent, State, Step

SIZE = 4


class Node:
    """Knows its own number and whether it stands; hears numbers of others."""

    def __init__(self, number: int, stands: bool) -> None:
        self.number, self.stands = number, stands
        self.has_stood = False
        self.role = "CANDIDATE"

    def stand(self) -> bool:
        """Whether its number goes round now."""
        if not self.stands or self.has_stood:
            return False
        self.has_stood = True
        return True

    def hear(self, number: int) -> bool | None:
        """Whether to hand the number on; None: it cannot tell yet, since it has not said that it stands."""
        if self.stands and not self.has_stood and number != self.number:
            return None
        if number == self.number:
            self.role = "WON"
            return False
        if self.stands and self.number < number:
            return False
        self.role = "LOST"
        return True


class Adapter:
    """The definition's steps as calls; an inbox is the network's."""

    def reset(self, initial: State) -> None:
        seen = observation(initial)
        self.nodes = [Node(i, bool(seen[f"standing[node{i}]"])) for i in range(SIZE)]
        self.inboxes: list[set[int]] = [set() for _ in self.nodes]

    def do(self, step: Step) -> None:
        number = _number(step.arguments["n"])
        node = self.nodes[number]
        if step.action == "stand":
            if not node.stand():
                raise RefusedEvent("it does not stand, or has said so")
            self._send(number, number)
            return
        who = _number(step.arguments.get("who", step.arguments["n"]))
        if who not in self.inboxes[number] or (step.action == "win") != (who == number):
            raise RefusedEvent("nothing of the kind has arrived")
        before = node.role
        goes_on = node.hear(who)
        if goes_on is None or (step.action != "win" and goes_on != (step.action == "hand_on")):
            node.role = before
            raise RefusedEvent("it does something else with it")
        self.inboxes[number].remove(who)
        if goes_on:
            self._send(number, who)

    def observe(self) -> Mapping[str, object]:
        seen: dict[str, object] = {}
        for node, inbox in zip(self.nodes, self.inboxes, strict=True):
            name = f"[node{node.number}]"
            seen[f"standing{name}"] = node.stands
            seen[f"stood{name}"] = node.has_stood
            seen[f"role{name}"] = node.role
            seen[f"inbox{name}"] = [f"node{number}" for number in sorted(inbox)]
        return seen

    def _send(self, sender: int, number: int) -> None:
        self.inboxes[(sender + 1) % SIZE].add(number)


def _number(node: object) -> int:
    return int(str(node).removeprefix("node"))

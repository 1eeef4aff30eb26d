"""Workers in a ring that count their messages, and the adapter that is the network between them."""

from __future__ import annotations

from collections.abc import Mapping

from stagewright.spec.trace import observation
from stagewright.testing import RefusedEvent, State, Step

SIZE = 3


class Worker:
    """Counts what it sends and receives; black once it has received work since the token was here."""

    def __init__(self, active: bool, black: bool) -> None:
        self.active, self.black = active, black
        self.counter = 0

    def send(self) -> bool:
        """Whether it has work to give away."""
        self.counter += self.active
        return self.active

    def receive(self) -> None:
        """Work arrives."""
        self.active = self.black = True
        self.counter -= 1


class Ring:
    """The token: who has it, its colour, and what it has counted."""

    def __init__(self, workers: list[Worker]) -> None:
        self.workers = workers
        self.holder, self.black, self.count = 0, True, 0

    def knows(self) -> bool:
        """Whether the first worker knows that all is at rest."""
        first = self.workers[0]
        white = not (first.active or first.black or self.black)
        return self.holder == 0 and white and self.count + first.counter == 0

    def start_round(self) -> bool:
        """The first worker asks once more."""
        if self.holder != 0 or self.knows():
            return False
        self.holder, self.black, self.count = SIZE - 1, False, 0
        self.workers[0].black = False
        return True

    def pass_on(self, number: int) -> bool:
        """A worker at rest hands the token downwards."""
        worker = self.workers[number]
        if number == 0 or self.holder != number or worker.active:
            return False
        self.holder, self.black = number - 1, self.black or worker.black
        self.count += worker.counter
        worker.black = False
        return True


class Adapter:
    """The definition's steps as calls; messages under way are the network's."""

    def reset(self, initial: State) -> None:
        seen = observation(initial)
        self.ring = Ring(
            [
                Worker(bool(seen[f"active[node{i}]"]), bool(seen[f"black[node{i}]"]))
                for i in range(SIZE)
            ]
        )
        self.under_way = [0] * SIZE

    def do(self, step: Step) -> None:
        number = _number(step.arguments.get("n", "node0"))
        worker = self.ring.workers[number]
        match step.action:
            case "initiate_probe":
                done = self.ring.start_round()
            case "pass_token":
                done = self.ring.pass_on(number)
            case "send":
                to = _number(step.arguments["to"])
                done = to != number and worker.send()
                self.under_way[to] += done
            case "receive":
                done = self.under_way[number] > 0
                if done:
                    self.under_way[number] -= 1
                    worker.receive()
            case _:
                done, worker.active = worker.active, False
        if not done:
            raise RefusedEvent("it cannot happen now")

    def observe(self) -> Mapping[str, object]:
        seen: dict[str, object] = {
            "token": f"node{self.ring.holder}",
            "token_black": self.ring.black,
            "token_count": self.ring.count,
        }
        for i, worker in enumerate(self.ring.workers):
            seen[f"active[node{i}]"] = worker.active
            seen[f"black[node{i}]"] = worker.black
            seen[f"counter[node{i}]"] = worker.counter
            seen[f"pending[node{i}]"] = self.under_way[i]
        return seen


def _number(node: object) -> int:
    return int(str(node).removeprefix("node"))

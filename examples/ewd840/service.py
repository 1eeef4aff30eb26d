"""Workers in a ring that hand on a token, and the adapter through which tests drive them."""

from __future__ import annotations

from collections.abc import Mapping

from stagewright.spec.trace import observation
from stagewright.testing import RefusedEvent, State, Step

SIZE = 3


class Worker:
    """Works when it is sent work; keeps in mind whether it has sent work upwards since the token was here."""

    def __init__(self, number: int, active: bool, black: bool) -> None:
        self.number, self.active, self.black = number, active, black

    def send(self, to: Worker) -> bool:
        """Hand work to another one."""
        if not self.active or to is self:
            return False
        to.active = True
        self.black = self.black or to.number > self.number
        return True

    def finish(self) -> bool:
        """No work is left here."""
        was_active, self.active = self.active, False
        return was_active


class Ring:
    """The token, and who has it."""

    def __init__(self, workers: list[Worker], holder: int, black: bool) -> None:
        self.workers, self.holder, self.black = workers, holder, black

    def start_round(self) -> bool:
        """The first worker asks once more, unless the last round found all at rest."""
        first = self.workers[0]
        if self.holder != 0 or not (self.black or first.black):
            return False
        self.holder, self.black, first.black = SIZE - 1, False, False
        return True

    def pass_on(self, number: int) -> bool:
        """A worker hands the token downwards; one that works does so only where the round is lost anyway."""
        worker = self.workers[number]
        if number == 0 or self.holder != number:
            return False
        if worker.active and not (worker.black or self.black):
            return False
        self.holder, self.black, worker.black = number - 1, self.black or worker.black, False
        return True


class Adapter:
    """The definition's steps as calls."""

    def reset(self, initial: State) -> None:
        seen = observation(initial)
        workers = [
            Worker(i, bool(seen[f"active[node{i}]"]), bool(seen[f"black[node{i}]"]))
            for i in range(SIZE)
        ]
        self.ring = Ring(workers, _number(seen["token"]), bool(seen["token_black"]))

    def do(self, step: Step) -> None:
        workers = self.ring.workers
        number = _number(step.arguments.get("n", "node0"))
        match step.action:
            case "initiate_probe":
                done = self.ring.start_round()
            case "pass_token":
                done = self.ring.pass_on(number)
            case "send":
                done = workers[number].send(workers[_number(step.arguments["to"])])
            case _:
                done = workers[number].finish()
        if not done:
            raise RefusedEvent("it cannot happen now")

    def observe(self) -> Mapping[str, object]:
        seen: dict[str, object] = {
            "token": f"node{self.ring.holder}",
            "token_black": self.ring.black,
        }
        for worker in self.ring.workers:
            seen[f"active[node{worker.number}]"] = worker.active
            seen[f"black[node{worker.number}]"] = worker.black
        return seen


def _number(node: object) -> int:
    return int(str(node).removeprefix("node"))

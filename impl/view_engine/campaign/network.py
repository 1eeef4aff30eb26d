"""Calls between nodes: they take a while, get lost on either way, and may be carried out late."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TypeVar

from stagewright.impl.view_engine.campaign.tasks import Tasks
from stagewright.impl.view_engine.cluster.messages import NodeUnavailableError

_Result = TypeVar("_Result")
TIMEOUT = 20.0  # seconds that a caller waits


class Network:
    """Between the nodes that are up."""

    def __init__(self, tasks: Tasks, seed: str, loss: float) -> None:
        """`loss`: how likely a request gets lost, an answer does, or a request comes late."""
        self._tasks = tasks
        self._random = random.Random(seed)
        self.loss = loss
        self.up: dict[str, int] = {}  # node to how often it was started

    def call(self, node: str, work: Callable[[], _Result], timeout: float = TIMEOUT) -> _Result:
        """Carry out work at a node. Raises what it raises, or NodeUnavailableError after a while."""
        tasks, chosen = self._tasks, self._random
        changed = tasks.condition()
        done: list[Callable[[], _Result]] = []
        lost_request, late, lost_answer = (chosen.random() < self.loss for _ in range(3))
        delay = timeout + chosen.random() * 60 if late else chosen.random() * 0.02
        start = self.up.get(node)

        def carried_out() -> None:
            tasks.sleep(delay)
            if start is None or self.up.get(node) != start:
                return
            tasks.current.owner = node
            answer = _outcome(work)
            if not lost_answer:
                with changed:
                    done.append(answer)
                    changed.notify_all()

        if not lost_request:
            tasks.start(carried_out, "call", owner="network")
        ends = tasks.now + timeout
        with changed:
            while not done:
                left = ends - tasks.now
                if left <= 0 or not changed.wait(left):
                    break
        if not done:
            raise NodeUnavailableError(f"{node} did not answer")
        return done[0]()


def _outcome(work: Callable[[], _Result]) -> Callable[[], _Result]:
    try:
        result = work()
    except Exception as error:  # noqa: BLE001 - raised at the caller
        failure = error

        def raising() -> _Result:
            raise failure

        return raising
    return lambda: result

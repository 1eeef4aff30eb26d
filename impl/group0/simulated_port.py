"""A modelled group0 behind the port: who waits for an answer lets the virtual time pass."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Protocol

from stagewright.impl.group0.port import (
    TAIL,
    Commit,
    Leadership,
    Learned,
    Outcome,
    Reading,
    Snapshot,
    UnavailableError,
)
from stagewright.impl.group0.simulated import Clock, ModelledLog
from stagewright.impl.group0.state_ids import StateId

_HOUR = 3_600_000


class RunningClock(Clock, Protocol):
    """A clock that can be run."""

    def run(self, until: Callable[[], bool], deadline: int) -> bool:
        """Let time pass until a condition holds (True), or the deadline or the last event is over."""
        ...


class SimulatedGroup0:
    """One node's access to a modelled log."""

    def __init__(self, log: ModelledLog, clock: RunningClock, node: str) -> None:
        self.log = log
        self._clock = clock
        self._node = node

    async def commit(self, request: Commit) -> Outcome:
        answers: list[Outcome] = []
        self.log.commit(self._node, request, answers.append)
        await self._wait(lambda: bool(answers))
        return answers[0]

    async def head(self) -> StateId:
        answers: list[StateId | None] = []
        self.log.ask_head(self._node, answers.append)
        await self._wait(lambda: bool(answers))
        if answers[0] is None:
            raise UnavailableError("group0 has no leader now", help="try again")
        return answers[0]

    async def read(self, after: int = 0) -> Reading:
        await self.head()
        return self.log.read(after)

    async def watch(self, after: int = 0) -> AsyncIterator[Learned]:
        learned: deque[Learned] = deque()
        end = self.log.subscribe(self._node, after, learned.append)
        try:
            while True:
                while learned:
                    yield learned.popleft()
                await self._wait(lambda: bool(learned))
        finally:
            end()

    async def compact(self, snapshot: Snapshot, tail: int = TAIL) -> None:
        self.log.compact(snapshot, tail)

    async def campaign(self, node: str, seconds: float) -> Leadership | None:
        await self.head()
        return self.log.campaign(node, round(seconds * 1000))

    async def keep(self, leadership: Leadership) -> bool:
        return self.log.keep(leadership)

    async def resign(self, leadership: Leadership) -> None:
        self.log.resign(leadership)

    async def leader(self) -> Leadership | None:
        return self.log.leader

    async def close(self) -> None:
        """Nothing is held."""

    async def _wait(self, until: Callable[[], bool]) -> None:
        while not until():
            await asyncio.sleep(0)  # the others that wait
            self._clock.run(until, self._clock.now + _HOUR)

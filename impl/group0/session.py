"""A member of group0 in a real process: its effects carried out over a port, its ends awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from stagewright.impl.group0.member import AskHead, Effect, Ended, Member, Plan, SendCommit, Wake
from stagewright.impl.group0.port import Group0, UnavailableError, Unknown
from stagewright.impl.group0.state_ids import StateId


class Session:
    """Use as `async with`: while it is open, the member learns what is committed."""

    def __init__(self, port: Group0, member: Member) -> None:
        self.port = port
        self.member = member
        self._ends: dict[int, asyncio.Future[StateId]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._broken: BaseException | None = None

    async def commit(self, plan: Plan, term: int | None = None) -> StateId:
        """Commit what a plan makes of what is learned; the state after it, which is learned, too.

        Raises:
            StagewrightError: the plan's refusal; RaceLostError, DeposedError, CommitUnknownError.
        """
        number, effects = self.member.propose(plan, term)
        return await self._end_of(number, effects)

    async def read_barrier(self) -> StateId:
        """Learn all that is committed by now."""
        number, effects = self.member.barrier()
        return await self._end_of(number, effects)

    async def _end_of(self, number: int, effects: list[Effect]) -> StateId:
        if self._broken is not None:
            raise self._broken
        self._ends[number] = asyncio.get_running_loop().create_future()
        self._carry_out(effects)
        try:
            return await self._ends[number]
        finally:
            del self._ends[number]

    def _carry_out(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case Ended(number, state, error):
                    waiting = self._ends.get(number)
                    if waiting is None or waiting.done():
                        continue  # its caller was cancelled
                    if error is None:
                        waiting.set_result(state)
                    else:
                        waiting.set_exception(error)
                case SendCommit() | AskHead() | Wake():
                    self._start(effect)

    def _start(self, effect: SendCommit | AskHead | Wake | None) -> None:
        """Carry out an effect; without one, learn."""
        task = asyncio.create_task(self._learn() if effect is None else self._do(effect))
        self._tasks.add(task)
        task.add_done_callback(self._over)

    def _over(self, task: asyncio.Task[None]) -> None:
        """An error that is nobody's answer ends all that wait: this process can go on no longer."""
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._broken = error
            for waiting in self._ends.values():
                if not waiting.done():
                    waiting.set_exception(error)

    async def _do(self, effect: SendCommit | AskHead | Wake) -> None:
        match effect:
            case SendCommit(request):
                try:
                    outcome = await self.port.commit(request)
                except UnavailableError as error:
                    outcome = Unknown(error.problem)
                self._carry_out(self.member.answered(request, outcome))
            case AskHead(number):
                try:
                    head = await self.port.head()
                except UnavailableError:
                    head = None
                self._carry_out(self.member.head_is(number, head))
            case Wake(number, milliseconds):
                await asyncio.sleep(milliseconds / 1000)
                self._carry_out(self.member.wake(number))

    async def _learn(self) -> None:
        async for item in self.port.watch(self.member.head.position):
            self._carry_out(self.member.learned(item))

    async def __aenter__(self) -> Session:
        self._start(None)
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

"""Long work of a process is done in turns: messages are handled between two of them, and a slow turn makes a long pause."""

from __future__ import annotations

import asyncio
import time

from tests.patience import within

from stagewright.impl.indexes.processes.turns import Turns


def test_what_comes_during_a_turn_is_handled_before_the_next_one() -> None:
    done: list[str] = []

    async def live() -> None:
        turns, loop, over = Turns(), asyncio.get_running_loop(), asyncio.Event()

        def first() -> None:
            loop.call_soon(done.append, "a message")
            done.append("first")
            turns.add(second)

        def second() -> None:
            done.append("second")

        def last() -> None:
            done.append("last")
            over.set()

        turns.add(first)
        turns.add(last)
        await over.wait()
        turns.add(over.set)  # it begins again when nothing was to be done for a while
        over.clear()
        await over.wait()

    asyncio.run(within(60, live()))
    assert done == ["first", "a message", "last", "second"]


def test_a_pause_is_in_proportion_to_the_turn_before_it() -> None:
    began: list[float] = []

    async def live() -> None:
        turns, over = Turns(), asyncio.Event()

        def slow() -> None:
            began.append(time.monotonic())
            time.sleep(0.03)
            if len(began) == 2:
                over.set()

        turns.add(slow)
        turns.add(slow)
        await over.wait()

    asyncio.run(within(60, live()))
    assert began[1] - began[0] > 3 * 0.03

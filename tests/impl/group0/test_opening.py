"""Whoever opens the log in SQLite first makes it; that others do so at the same moment hurts nobody."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

from stagewright.impl.group0.sqlite import SqliteGroup0
from stagewright.impl.group0.state_ids import EMPTY, StateId

OPENERS, FILES = 4, 60


def test_a_new_file_may_be_opened_by_many_at_once(tmp_path: Path) -> None:
    together = Barrier(OPENERS)

    def open_one(number: int) -> SqliteGroup0:
        together.wait()
        return SqliteGroup0(tmp_path / f"{number}.sqlite", synchronous=False)

    async def heads(opened: list[SqliteGroup0]) -> set[StateId]:
        found = {await one.head() for one in opened}
        for one in opened:
            await one.close()
        return found

    with ThreadPoolExecutor(OPENERS) as pool:
        for number in range(FILES):
            opened = list(pool.map(open_one, [number] * OPENERS))
            assert asyncio.run(heads(opened)) == {EMPTY}

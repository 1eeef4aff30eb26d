"""A process that commits to a group0 without end, and writes down each commit that was answered.

`python writer.py PLACE NODE ANSWERED`: PLACE is an SQLite file, or endpoints of etcd with commas between.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from pathlib import Path

from stagewright.impl.group0 import Command, Commit, Committed, Group0, UnavailableError, id_after
from stagewright.impl.group0.etcd import EtcdGroup0
from stagewright.impl.group0.gateway import Gateway
from stagewright.impl.group0.sqlite import SqliteGroup0


def opened(place: str) -> Group0:
    if place.startswith("http"):
        return EtcdGroup0(Gateway(tuple(place.split(",")), patience=1.0))
    return SqliteGroup0(Path(place), synchronous=False)


async def write(port: Group0, node: int, answered: Path) -> None:
    with answered.open("a", encoding="utf-8") as file:
        while True:
            try:
                state = await port.head()
            except UnavailableError:
                continue
            now = time.time_ns() // 1000
            request = Commit(
                state, id_after(state.id, now, node, random.getrandbits(14)), Command("x")
            )
            while True:
                outcome = await port.commit(request)
                if isinstance(outcome, Committed):
                    file.write(f"{outcome.id}\n")
                    file.flush()
                if outcome.__class__.__name__ != "Unknown":
                    break
                await asyncio.sleep(random.random() / 10)


if __name__ == "__main__":
    asyncio.run(write(opened(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])))

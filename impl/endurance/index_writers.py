"""Clients that write an indexed table while its processes are killed, and know what was committed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from random import Random
from threading import Event, Thread

from stagewright.impl.endurance.broken import PATIENCE, BrokenError
from stagewright.impl.indexes.processes.client import IndexClient
from stagewright.impl.processes.errors import ClusterError

Changes = Mapping[int, Mapping[str, int] | None]


class Writer(Thread):
    """It has keys and values of `v` of its own: no two rows have one. Of `w` there are ten."""

    def __init__(self, client: IndexClient, number: int) -> None:
        super().__init__(daemon=True)  # a check that fails ends, though it writes
        self.committed: dict[int, Changes] = {}  # by hybrid time
        self.unknown: list[Changes] = []  # they may have been
        self.stop = Event()
        self._client = client
        self._number = number

    def run(self) -> None:
        chance, count = Random(self._number), 0
        while not self.stop.is_set():
            first = 10_000 * self._number
            changes: dict[int, Mapping[str, int] | None] = {}
            for key in {first + chance.randrange(30) for _ in range(chance.randint(1, 2))}:
                count += 1
                values = {"v": 1_000_000 * self._number + count, "w": chance.randrange(10)}
                changes[key] = None if chance.random() < 0.1 else values
            try:
                found = self._client.write(changes)
            except ClusterError:
                self.unknown.append(changes)
                continue
            if found.time is not None:
                self.committed[found.time] = changes
            time.sleep(0.02)  # the processes of the cluster want to work, too
        self._client.close()


def ended(writers: list[Writer]) -> list[Writer]:
    """The writers, which write no more.

    Raises:
        BrokenError: one of them still waits for an answer.
    """
    for writer in writers:
        writer.stop.set()
    for writer in writers:
        writer.join(PATIENCE)
        if writer.is_alive():
            raise BrokenError("a client waits for an answer without end")
    return writers

"""Clients that write while nodes are killed, come and go, and what must be there afterwards."""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random
from threading import Event, Thread

from stagewright.impl.endurance.broken import PATIENCE, BrokenError, refuse
from stagewright.impl.processes.client import Session
from stagewright.impl.processes.errors import ClusterError
from stagewright.impl.processes.supervisor import TABLE, Supervisor

_KEEPS = 20


class Writer(Thread):
    """A client that writes to keys of its own and knows what was acknowledged.

    Of so many writes, one `keeps` its row: nobody writes it again, so that a loss is seen however late one looks.
    """

    def __init__(self, session: Session, name: str, keeps: int = 0) -> None:
        super().__init__(daemon=True)  # a check that fails ends, though it writes
        self.session = session
        self.key_prefix = name
        self.keeps = keeps
        self.acknowledged: dict[bytes, list[bytes | None]] = {}  # what a key may hold
        self.count = 0
        self.stop = Event()

    def run(self) -> None:
        chance = Random(self.key_prefix)
        while not self.stop.is_set():
            kept = self.keeps > 0 and self.count % self.keeps == 0
            place = f"kept{self.count}" if kept else chance.randrange(30)
            key = f"{self.key_prefix}/{place}".encode()
            value = None if chance.random() < 0.1 and not kept else b"%d" % self.count
            before = self.acknowledged.get(key, [None])
            self.acknowledged[key] = [*before, value]  # until it is known
            try:
                self.session.put(key, value)
            except ClusterError:
                continue
            self.acknowledged[key] = [value]
            self.count += 1
            time.sleep(0.005)  # the processes of the cluster want to work, too
        self.session.close()


def writing(supervisor: Supervisor, count: int, table: str = TABLE) -> list[Writer]:
    """So many clients, each with keys of its own."""
    writers = [Writer(supervisor.session(table, waits=True), f"w{i}", _KEEPS) for i in range(count)]
    for writer in writers:
        writer.start()
    return writers


def all_is_there(supervisor: Supervisor, writers: list[Writer]) -> None:
    """Every write that was acknowledged is read, or a later one of the same client.

    Raises:
        BrokenError: one is not.
    """
    for writer in writers:
        writer.stop.set()
    for writer in writers:
        writer.join(60)
    session = supervisor.session(writers[0].session.table, waits=True)
    for writer in writers:
        for key, possible in writer.acknowledged.items():
            if (found := session.get(key)) not in possible:
                raise BrokenError(f"{key!r} is {found!r}, which is none of {possible}")
    expected = {k for w in writers for k, p in w.acknowledged.items() if None not in p}
    lost = expected - dict(session.scan()).keys()
    refuse(f"a scan has no {key!r}" for key in sorted(lost))
    session.close()


def kills(supervisor: Supervisor, chance: Random, count: int) -> None:
    """Kill a node at random, start it again; a majority is always there."""
    for _ in range(count):
        time.sleep(chance.random() * 0.5)
        names = supervisor.layout.names()
        supervisor.kill(chance.choice([n for n in names if not supervisor.layout.stopped(n)]))
        time.sleep(chance.random() * 0.2)
        supervisor.start()


def add_node(supervisor: Supervisor) -> int:
    """A node joins; where one seemed down, its joining is undone, and another one is added; how often that was so.

    Raises:
        BrokenError: none can join, although nobody has been killed for a while.
    """
    return asked_again(supervisor.add, "no node can join")


def decommission_oldest(supervisor: Supervisor) -> int:
    """The node that has been there longest leaves; asked again while it seems down; how often that was so.

    Raises:
        BrokenError: it cannot leave, although nobody has been killed for a while.
    """
    layout = supervisor.layout
    name = next(n for n in layout.names() if not layout.stopped(n))
    return asked_again(lambda: supervisor.decommission(name), f"{name} cannot leave")


def asked_again(ask: Callable[[], object], problem: str) -> int:
    """Ask as an operator would, who looks for who is down and asks again; how often it was refused before."""
    until, refused = time.monotonic() + PATIENCE, 0
    while True:
        try:
            ask()
        except ClusterError as error:
            if time.monotonic() > until:
                raise BrokenError(f"{problem}: {error}") from error
            refused += 1
            time.sleep(0.2)
        else:
            return refused

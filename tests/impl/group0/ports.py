"""The places where a group0 log can lie, each set up for a test; one etcd serves all tests of a process."""

from __future__ import annotations

import atexit
import functools
import itertools
import shutil
import tempfile
from pathlib import Path
from typing import Protocol

import pytest

from stagewright.impl.group0 import (
    EMPTY,
    Command,
    Commit,
    Group0,
    MachineStep,
    Mutation,
    Outcome,
    StateId,
    Unknown,
    id_after,
)
from stagewright.impl.group0.dice import Dice
from stagewright.impl.group0.etcd import EtcdGroup0
from stagewright.impl.group0.etcd_process import EtcdCluster, find_etcd
from stagewright.impl.group0.gateway import Gateway
from stagewright.impl.group0.simulated import CALM, STORM, ModelledLog, Weather
from stagewright.impl.group0.simulated_port import SimulatedGroup0
from stagewright.impl.group0.sqlite import SqliteGroup0
from stagewright.impl.simulator.database.events import Events

NO_ETCD = "no etcd was found: install Debian's etcd-server, or name a binary by STAGEWRIGHT_ETCD"
numbers = itertools.count(1)


class Place(Protocol):
    """One log: `open` gives a node access to it, `wait` lets time pass where that costs none."""

    def open(self, node: str) -> Group0: ...

    def wait(self, seconds: float) -> bool:
        """Whether time could be made to pass."""
        ...


class Simulated:
    def __init__(self, weather: Weather = CALM, seed: int = 1) -> None:
        self.clock = Events()
        self.log = ModelledLog(self.clock, Dice(seed), weather)

    def open(self, node: str) -> Group0:
        return SimulatedGroup0(self.log, self.clock, node)

    def wait(self, seconds: float) -> bool:
        until = self.clock.now + round(seconds * 1000)
        self.clock.after(round(seconds * 1000), lambda: None)
        return self.clock.run(lambda: self.clock.now >= until, until)


class Sqlite:
    def __init__(self, directory: Path) -> None:
        self.path = directory / f"group0-{next(numbers)}.db"
        self.now = 1_000.0

    def open(self, node: str) -> Group0:
        return SqliteGroup0(self.path, synchronous=False, poll=0.001, now=lambda: self.now)

    def wait(self, seconds: float) -> bool:
        self.now += seconds
        return True


class Etcd:
    def __init__(self, endpoints: tuple[str, ...]) -> None:
        self.endpoints = endpoints
        self.prefix = f"/test/{next(numbers)}/"

    def open(self, node: str) -> Group0:
        return EtcdGroup0(Gateway(self.endpoints), self.prefix)

    def wait(self, seconds: float) -> bool:
        return False  # it would really have to pass


@functools.cache
def shared_etcd() -> EtcdCluster:
    directory = Path(tempfile.mkdtemp(prefix="etcd-"))
    cluster = EtcdCluster(directory)
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    atexit.register(cluster.__exit__, None, None, None)
    return cluster.__enter__()


def place_of(kind: str, directory: Path) -> Place:
    """A new log of a kind; skips the test where it needs an etcd and there is none."""
    match kind:
        case "simulated":
            return Simulated()
        case "simulated-storm":
            return Simulated(STORM)
        case "sqlite":
            return Sqlite(directory)
        case _:
            if find_etcd() is None:
                pytest.skip(NO_ETCD)
            return Etcd(shared_etcd().endpoints)


def command(text: str = "set", **columns: object) -> Command:
    """A command with a step and two mutations, one of which deletes a row."""
    step = MachineStep("TabletMigration", "t1", text, {"node": "n1", "many": [1, None, True]})
    changed = Mutation("tablets", ("t1", "0"), columns or {"stage": "streaming"})
    return Command(text, (step,), (changed, Mutation("tablets", ("t0", "0"), None)))


def after(
    state: StateId, said: Command | None = None, *, term: int | None = None, node: int = 1
) -> Commit:
    """A request with an id of its own."""
    new = id_after(state.id, 0, node, next(numbers))
    return Commit(state, new, said or command(), term)


async def settled(port: Group0, request: Commit) -> Outcome:
    """The definite answer to a request."""
    for _ in range(60):
        outcome = await port.commit(request)
        if not isinstance(outcome, Unknown):
            return outcome
    raise AssertionError("no definite answer")


async def committed(port: Group0, request: Commit) -> StateId:
    outcome = await settled(port, request)
    assert outcome.__class__.__name__ == "Committed", outcome
    return request.new


async def filled(port: Group0, count: int, state: StateId = EMPTY) -> list[StateId]:
    """The states after so many commits."""
    states: list[StateId] = []
    for number in range(count):
        state = await committed(port, after(state, command(f"step {number}")))
        states.append(state)
    return states

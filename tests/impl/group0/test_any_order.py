"""Whatever is asked of a group0 in whatever order, it answers as a list of commands would."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test
from tests.impl.group0.ports import Place, after, command, place_of, settled

from stagewright.impl.group0 import (
    EMPTY,
    Commit,
    Committed,
    Conflict,
    Deposed,
    Entry,
    Forgotten,
    Group0,
    Leadership,
    Snapshot,
    StateId,
)

LEASE = 60.0
NODES = ("n1", "n2", "n3")
node_names = st.sampled_from(NODES)


class AnyOrder(RuleBasedStateMachine):
    """The model: a list of entries, how many of them are gone, a term, and who leads."""

    kind = "simulated"

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.directory = tempfile.TemporaryDirectory()
        self.place: Place = place_of(self.kind, Path(self.directory.name))
        self.ports: dict[str, Group0] = {n: self.place.open(n) for n in NODES}
        self.entries: list[Entry] = []
        self.asked: list[Commit] = []
        self.gone = 0
        self.snapshot: Snapshot | None = None
        self.term = 0
        self.leader: Leadership | None = None

    def state(self, position: int) -> StateId:
        return self.entries[position - 1].id if position else EMPTY

    @rule(node=node_names, back=st.integers(0, 3), term=st.none() | st.integers(0, 2))
    def commit(self, node: str, back: int, term: int | None) -> None:
        expected = self.state(max(0, len(self.entries) - back))
        said = command(f"of {node}, number {len(self.asked)}")
        wanted = None if term is None else max(0, self.term - term)
        request = after(expected, said, term=wanted)
        self.asked.append(request)
        self.ask(node, request)

    @precondition(lambda self: self.asked)
    @rule(node=node_names, data=st.data())
    def repeat(self, node: str, data: st.DataObject) -> None:
        self.ask(node, data.draw(st.sampled_from(self.asked[-6:])))

    def ask(self, node: str, request: Commit) -> None:
        head, place = self.state(len(self.entries)), request.new.position
        answer = self.runner.run(settled(self.ports[node], request))
        if place <= self.gone:
            assert answer == Forgotten(head)
        elif place <= len(self.entries):
            mine = self.state(place) == request.new
            assert answer == (Committed(request.new) if mine else Conflict(head))
        elif request.term not in (None, self.term):
            assert answer == Deposed(self.term)
        else:
            assert answer == Committed(request.new)
            self.entries.append(Entry(request.new, self.term, request.command))

    @rule(node=node_names)
    def campaign(self, node: str) -> None:
        led = self.runner.run(self.ports[node].campaign(node, LEASE))
        if self.leader is not None:
            assert led is None
            return
        assert led is not None
        assert (led.node, led.term) == (node, self.term + 1)
        self.term, self.leader = led.term, led

    @precondition(lambda self: self.leader)
    @rule()
    def resign(self) -> None:
        assert self.leader is not None
        self.runner.run(self.ports[self.leader.node].resign(self.leader))
        assert not self.runner.run(self.ports[self.leader.node].keep(self.leader))
        self.leader = None

    @rule(node=node_names, seconds=st.sampled_from([LEASE / 2, 2 * LEASE]), keeps=st.booleans())
    def let_time_pass(self, node: str, seconds: float, keeps: bool) -> None:
        if self.leader is not None and keeps:
            assert self.runner.run(self.ports[node].keep(self.leader))
            if self.place.wait(seconds) and seconds > LEASE:
                self.leader = None
        assert self.runner.run(self.ports[node].leader()) == self.leader

    @rule(node=node_names, data=st.data())
    def read(self, node: str, data: st.DataObject) -> None:
        start = data.draw(st.integers(0, len(self.entries)))
        reading = self.runner.run(self.ports[node].read(start))
        if start < self.gone:
            assert self.snapshot is not None
            assert reading.snapshot == self.snapshot
            start = self.snapshot.id.position
        else:
            assert reading.snapshot is None
        assert list(reading.entries) == self.entries[start:]
        assert reading.head == self.state(len(self.entries))
        assert self.runner.run(self.ports[node].head()) == reading.head

    @precondition(lambda self: self.entries)
    @rule(node=node_names, tail=st.integers(0, 3), data=st.data())
    def compact(self, node: str, tail: int, data: st.DataObject) -> None:
        position = data.draw(st.integers(1, len(self.entries)))
        snapshot = Snapshot(self.state(position), self.term, f"up to {position}")
        self.runner.run(self.ports[node].compact(snapshot, tail))
        if self.snapshot is None or position > self.snapshot.id.position:
            self.snapshot = snapshot
            self.gone = max(self.gone, position - tail)

    @rule(node=node_names)
    def open_again(self, node: str) -> None:
        self.runner.run(self.ports[node].close())
        self.ports[node] = self.place.open(node)

    def teardown(self) -> None:
        for port in self.ports.values():
            self.runner.run(port.close())
        self.runner.close()
        self.directory.cleanup()


class InStorm(AnyOrder):
    kind = "simulated-storm"


class InSqlite(AnyOrder):
    kind = "sqlite"


class InEtcd(AnyOrder):
    kind = "etcd"


@pytest.mark.parametrize(
    ("machine", "examples"), [(AnyOrder, 40), (InStorm, 40), (InSqlite, 15), (InEtcd, 4)]
)
def test_it_answers_as_a_list_would(machine: type[AnyOrder], examples: int) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )

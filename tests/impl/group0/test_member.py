"""Nodes that commit at the same time: no update is lost, refusals are on the newest state, all ends come."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from functools import partial
from pathlib import Path
from uuid import UUID

import pytest
from tests.impl.group0.ports import place_of

from stagewright.impl.group0 import (
    Command,
    Commit,
    Committed,
    Entry,
    Group0Error,
    Mutation,
    Outcome,
    Snapshot,
    id_after,
)
from stagewright.impl.group0.dice import Dice
from stagewright.impl.group0.member import (
    AskHead,
    CommitUnknownError,
    DeposedError,
    Effect,
    Ended,
    Member,
    Plan,
    RaceLostError,
    SendCommit,
    Wake,
)
from stagewright.impl.group0.session import Session
from stagewright.impl.group0.simulated import STORM, ModelledLog
from stagewright.impl.simulator.database.events import Events
from stagewright.spec.errors import InputError

LIMIT = 12


class Counter:
    """One row with one number; who adds to it commits the sum, so that a lost update shows."""

    def __init__(self) -> None:
        self.value = 0
        self.by: list[str] = []

    def apply(self, entry: Entry) -> None:
        (mutation,) = entry.command.mutations
        assert mutation.columns is not None
        self.value = int(str(mutation.columns["value"]))
        self.by.append(entry.command.description)

    def restore(self, snapshot: Snapshot) -> None:
        self.value = int(snapshot.content)

    def add(self, who: str, limit: int = 10**6) -> Plan:
        def plan() -> Command:
            if self.value >= limit:
                raise InputError(f"{self.value} is enough", help="stop")
            mutation = Mutation("counter", ("1",), {"value": self.value + 1})
            return Command(who, (), (mutation,))

        return plan


def ids_of(node: int, clock: Events | None = None) -> Callable[[UUID], UUID]:
    numbers = itertools.count(1)

    def ids(previous: UUID) -> UUID:
        return id_after(previous, clock.now * 1000 if clock else 0, node, next(numbers))

    return ids


class Node:
    """A member whose effects a modelled log carries out."""

    def __init__(self, name: str, log: ModelledLog, clock: Events) -> None:
        self.name, self.log, self.clock = name, log, clock
        self.counter = Counter()
        self.ended: dict[int, Ended] = {}
        self.member = Member(
            self.counter, ids_of(int(name[1:]), clock), lambda: log.dice.throw("jitter", name)
        )
        log.subscribe(name, 0, lambda item: self.carry_out(self.member.learned(item)))

    def add(self, who: str, term: int | None = None, limit: int = 10**6) -> int:
        number, effects = self.member.propose(self.counter.add(who, limit), term)
        self.carry_out(effects)
        return number

    def barrier(self) -> int:
        number, effects = self.member.barrier()
        self.carry_out(effects)
        return number

    def carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case SendCommit(request):
                    self.log.commit(self.name, request, self._answer(request))
                case AskHead(number):
                    self._ask(number)
                case Wake(number, milliseconds):
                    self._wake(number, milliseconds)
                case Ended(number):
                    assert number not in self.ended
                    self.ended[number] = effect

    def _answer(self, request: Commit) -> Callable[[Outcome], None]:
        return lambda outcome: self.carry_out(self.member.answered(request, outcome))

    def _ask(self, number: int) -> None:
        self.log.ask_head(self.name, lambda head: self.carry_out(self.member.head_is(number, head)))

    def _wake(self, number: int, milliseconds: int) -> None:
        self.clock.after(milliseconds, lambda: self.carry_out(self.member.wake(number)))


def cluster(seed: int, log: type[ModelledLog] = ModelledLog) -> tuple[Events, list[Node]]:
    clock = Events()
    shared = log(clock, Dice(seed), STORM)
    return clock, [Node(f"n{i}", shared, clock) for i in range(3)]


def settle(clock: Events, nodes: list[Node], ends: int) -> None:
    """Let time pass until so many proposals and barriers have ended and every node has learned all."""

    def is_over() -> bool:
        heads = {n.member.head for n in nodes}
        return sum(len(n.ended) for n in nodes) == ends and heads == {nodes[0].log.head}

    assert clock.run(is_over, clock.now + 600_000), "something never ends"


def lost_updates(seed: int, log: type[ModelledLog] = ModelledLog) -> int:
    """Three nodes add in a storm with elections; how many acknowledged additions the sum lacks."""
    clock, nodes = cluster(seed, log)
    for round_ in range(4):
        for node in nodes:
            node.add(f"{node.name} {round_}")
        clock.after(40 * round_, nodes[0].log.elect)
    settle(clock, nodes, 12)
    acknowledged = sum(e.error is None for n in nodes for e in n.ended.values())
    unknown = sum(isinstance(e.error, CommitUnknownError) for n in nodes for e in n.ended.values())
    assert len({n.counter.value for n in nodes}) == 1
    value = nodes[0].counter.value
    assert value <= acknowledged + unknown
    return acknowledged - value


def test_no_addition_is_lost_in_a_storm() -> None:
    assert all(lost_updates(seed) <= 0 for seed in range(40))


class NoCompareAndSet(ModelledLog):
    """A wrong log: a request goes wherever the head is."""

    def append(self, request: Commit) -> Outcome:
        if self.at(request.new.position) and request.expected != self.head:
            return super().append(Commit(self.head, request.id, request.command))
        return super().append(request)


def test_a_log_that_ignores_the_expected_state_is_caught() -> None:
    def is_caught(seed: int) -> bool:
        try:
            return lost_updates(seed, NoCompareAndSet) > 0
        except AssertionError:
            return True

    assert any(is_caught(seed) for seed in range(5))


def test_a_seed_decides_a_run() -> None:
    def history(seed: int) -> list[str]:
        clock, nodes = cluster(seed)
        for _ in range(3):
            for node in nodes:
                node.add(node.name)
        clock.after(30, nodes[0].log.elect)
        settle(clock, nodes, 9)
        return [f"{clock.now} {nodes[0].log.head}", *nodes[1].counter.by]

    assert history(5) == history(5)
    assert len({tuple(history(seed)) for seed in range(8)}) > 4


def test_storms_bring_every_fate_of_a_request() -> None:
    """Unknown and applied, unknown and not applied, unknown and applied later."""
    fates: set[str] = set()
    for seed in range(60):
        clock = Events()
        log = ModelledLog(clock, Dice(seed), STORM)
        outcomes: list[Outcome] = []
        request = Commit(log.head, id_after(log.head.id, 0, 1, seed), Command("x"))
        log.commit("n1", request, outcomes.append)
        clock.run(partial(bool, outcomes), 10_000)
        if not isinstance(outcomes[0], Committed):
            then = log.head == request.new
            clock.run(lambda: False, 10_000)
            now = log.head == request.new
            fates.add("applied" if then else "later" if now else "lost")
    assert fates == {"applied", "later", "lost"}


def test_a_refusal_is_of_the_newest_state() -> None:
    clock, nodes = cluster(3)
    for _ in range(LIMIT):
        nodes[0].add("n0")
    settle(clock, nodes[:1], LIMIT)
    number = nodes[1].add("n1", limit=LIMIT)  # it may not have learned the sum yet
    settle(clock, nodes, LIMIT + 1)
    assert isinstance(nodes[1].ended[number].error, InputError)


def test_a_barrier_ends_when_all_that_was_committed_is_learned() -> None:
    clock, nodes = cluster(4)
    nodes[0].add("n0")
    settle(clock, nodes[:1], 1)
    head = nodes[0].log.head
    nodes[0].log.elect()  # nobody answers for a while
    number = nodes[2].barrier()
    assert clock.run(lambda: number in nodes[2].ended, clock.now + 60_000)
    assert nodes[2].member.head.position >= head.position


def test_a_deposed_coordinator_is_refused_by_name() -> None:
    clock, nodes = cluster(1)
    log = nodes[0].log
    old = log.campaign("n0", 1_000)
    assert old is not None
    log.resign(old)
    assert log.campaign("n1", 1_000) is not None
    number = nodes[0].add("n0", term=old.term)
    settle(clock, nodes, 1)
    error = nodes[0].ended[number].error
    assert isinstance(error, DeposedError)
    assert "the coordinator of term 1 was deposed: the term is 2" in str(error)


def test_races_are_given_up_after_many() -> None:
    member = Member(Counter(), lambda previous: id_after(previous, 0, 1, 1), lambda: 0.0)
    counter = Counter()
    number, effects = member.propose(counter.add("n1"))
    for position in itertools.count(1):
        sends = [e for e in effects if isinstance(e, SendCommit)]
        if not sends:
            break
        state = sends[0].request.expected
        other = Commit(state, id_after(state.id, 0, 2, 2), sends[0].request.command)
        effects = member.learned(Entry(other.new, 0, other.command))
        assert position < 100
    (end,) = (e for e in effects if isinstance(e, Ended))
    assert end.number == number
    assert isinstance(end.error, RaceLostError)


@pytest.mark.parametrize("kind", ["sqlite", "etcd"])
def test_real_sessions_lose_no_addition(kind: str, tmp_path: Path) -> None:
    place = place_of(kind, tmp_path)

    async def add(session: Session, counter: Counter, who: str) -> None:
        for _ in range(5):
            await session.commit(counter.add(who))

    async def run() -> None:
        counters = [Counter() for _ in range(3)]
        members = [Member(c, ids_of(i), lambda: 0.1) for i, c in enumerate(counters)]
        ports = [place.open(f"n{i}") for i in range(3)]
        async with (
            Session(ports[0], members[0]) as a,
            Session(ports[1], members[1]) as b,
            Session(ports[2], members[2]) as c,
        ):
            await asyncio.gather(
                add(a, counters[0], "a"), add(b, counters[1], "b"), add(c, counters[2], "c")
            )
            await a.read_barrier()
            assert counters[0].value == 15
            with pytest.raises(InputError, match="15 is enough"):
                await b.commit(counters[1].add("b", limit=15))
        for port in ports:
            await port.close()

    asyncio.run(run())


def test_a_broken_store_ends_a_session_by_name(tmp_path: Path) -> None:
    place = place_of("sqlite", tmp_path)

    async def run() -> None:
        port = place.open("n1")
        counter = Counter()
        member = Member(counter, lambda p: id_after(p, 0, 1, 1), lambda: 0.1)
        async with Session(port, member) as session:
            await session.commit(counter.add("n1"))
            await port.close()
            with pytest.raises(Group0Error, match="was closed"):
                await session.commit(counter.add("n1"))

    asyncio.run(run())

"""What every group0 promises, asked of each: simulated in calm and in storm, SQLite, etcd."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from tests.impl.group0.ports import Place, after, command, committed, filled, place_of, settled

from stagewright.impl.group0 import (
    EMPTY,
    Committed,
    Conflict,
    Deposed,
    Entry,
    Forgotten,
    Group0,
    Leadership,
    Learned,
    Snapshot,
    StateId,
)

LEASE = 5.0


@pytest.fixture(params=["simulated", "simulated-storm", "sqlite", "etcd"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return place_of(request.param, tmp_path)


async def watched(port: Group0, start: int, until: int) -> list[Learned]:
    """What a watch says up to a position."""
    found: list[Learned] = []
    async with asyncio.timeout(20):
        async for item in port.watch(start):
            found.append(item)
            if item.id.position >= until:
                break
    return found


def test_a_command_is_read_as_it_was_committed(place: Place) -> None:
    async def run() -> None:
        port, other = place.open("n1"), place.open("n2")
        said = command("naïve „quotes“\n", tokens=["-1", "2"], session=None, version=3)
        state = await committed(port, after(EMPTY, said))
        for one in (port, other):
            reading = await one.read()
            assert reading.entries == (Entry(state, 0, said),)
            assert (reading.head, reading.snapshot) == (state, None)
            assert await one.head() == state
            await one.close()

    asyncio.run(run())


def test_of_two_commits_on_one_state_one_counts(place: Place) -> None:
    async def run() -> None:
        first, second = place.open("n1"), place.open("n2")
        state = await committed(first, after(EMPTY))
        assert await settled(second, after(EMPTY)) == Conflict(state)
        future = StateId(9, state.id)
        assert await settled(second, after(future)) == Conflict(state)
        assert [e.id for e in (await second.read()).entries] == [state]
        await first.close()
        await second.close()

    asyncio.run(run())


def test_a_command_whose_time_is_over_is_refused_unless_it_was_committed_in_time(
    place: Place,
) -> None:
    async def run() -> None:
        port = place.open("n1")
        late, early = replace(command("late"), until=-1), replace(command("early"), until=10**18)
        assert await settled(port, after(EMPTY, late)) == Conflict(EMPTY)
        request = after(EMPTY, early)
        state = await committed(port, request)
        over = replace(request, command=replace(early, until=-1))
        assert await settled(port, over) == Committed(state)
        assert [e.command for e in (await port.read()).entries] == [early]
        await port.close()

    asyncio.run(run())


def test_a_request_that_is_repeated_counts_once(place: Place) -> None:
    async def run() -> None:
        port, other = place.open("n1"), place.open("n2")
        request = after(EMPTY)
        state = await committed(port, request)
        assert await settled(other, request) == Committed(state)
        later = await committed(other, after(state))
        assert await settled(port, request) == Committed(state)
        assert [e.id for e in (await port.read()).entries] == [state, later]
        await port.close()
        await other.close()

    asyncio.run(run())


def test_a_deposed_leader_cannot_commit_and_an_api_call_can(place: Place) -> None:
    async def run() -> None:
        port = place.open("n1")
        old = await port.campaign("n1", LEASE)
        assert old is not None
        state = await committed(port, after(EMPTY, term=old.term))
        await port.resign(old)
        state = await committed(port, after(state, term=old.term))  # until another one leads
        new = await port.campaign("n2", LEASE)
        assert new is not None
        assert new.term == old.term + 1
        head = await port.head()
        assert await settled(port, after(head, term=old.term)) == Deposed(new.term)
        assert await settled(port, after(head, term=new.term + 1)) == Deposed(new.term)
        by_api = await committed(port, after(head))
        last = await committed(port, after(by_api, term=new.term))
        terms = [(e.id, e.term) for e in (await port.read(1)).entries]
        assert terms == [(head, old.term), (by_api, new.term), (last, new.term)]
        await port.close()

    asyncio.run(run())


def test_one_node_leads_at_a_time(place: Place) -> None:
    async def run() -> None:
        port, other = place.open("n1"), place.open("n2")
        assert await port.leader() is None
        led = await port.campaign("n1", LEASE)
        assert led is not None
        assert await other.leader() == led
        assert await other.campaign("n2", LEASE) is None
        assert await port.keep(led)
        await other.resign(Leadership("n2", led.term + 1, 1))  # it never led
        assert await port.keep(led)
        await port.resign(led)
        assert not await port.keep(led)
        next_one = await other.campaign("n2", LEASE)
        assert next_one is not None
        assert next_one.term == led.term + 1
        assert not await port.keep(led)
        await port.resign(led)
        assert await port.leader() == next_one
        await port.close()
        await other.close()

    asyncio.run(run())


def test_who_does_not_keep_the_lease_leads_no_longer(place: Place) -> None:
    async def run() -> None:
        port, other = place.open("n1"), place.open("n2")
        led = await port.campaign("n1", LEASE)
        assert led is not None
        if not place.wait(LEASE - 1):
            pytest.skip("time would really have to pass")
        assert await port.keep(led)
        place.wait(LEASE - 1)
        assert await other.leader() == led
        place.wait(2)
        assert await other.leader() is None
        assert not await port.keep(led)
        assert await settled(port, after(EMPTY, term=led.term)) == Committed(await port.head())
        assert await other.campaign("n2", LEASE) is not None
        await port.close()
        await other.close()

    asyncio.run(run())


def test_a_watch_says_everything_once_and_in_order(place: Place) -> None:
    async def run() -> None:
        port, other = place.open("n1"), place.open("n2")
        states = await filled(port, 3)
        watching = asyncio.create_task(watched(other, 1, 8))
        await asyncio.sleep(0.01)
        states += await filled(port, 5, states[-1])
        assert [item.id for item in await watching] == states[1:]
        await port.close()
        await other.close()

    asyncio.run(run())


def test_a_snapshot_stands_for_what_is_compacted(place: Place) -> None:
    async def run() -> None:
        port, other = place.open("n1"), place.open("n2")
        states = await filled(port, 6)
        snapshot = Snapshot(states[3], 0, "ä" * 400_000)
        await port.compact(snapshot, tail=1)
        await port.compact(Snapshot(states[1], 0, "older"), tail=0)  # changes nothing
        reading = await other.read()
        assert reading.snapshot == snapshot
        assert [e.id for e in reading.entries] == states[4:]
        near = await other.read(3)
        assert near.snapshot is None  # the tail holds entry 4
        assert [e.id for e in near.entries] == states[3:]
        assert [item.id for item in await watched(other, 0, 6)] == states[3:]
        assert [item.id for item in await watched(other, 4, 6)] == states[4:]
        await port.compact(Snapshot(states[5], 0, "all of it"), tail=0)
        assert await other.read(6) == await other.read(7)
        assert (await other.read(6)).snapshot is None
        assert (await other.read(5)).snapshot == Snapshot(states[5], 0, "all of it")
        await committed(other, after(states[5]))
        await port.close()
        await other.close()

    asyncio.run(run())


def test_a_repeat_is_answered_while_the_log_reaches_back(place: Place) -> None:
    async def run() -> None:
        port = place.open("n1")
        request = after(EMPTY)
        states = [await committed(port, request)]
        states += await filled(port, 3, states[0])
        await port.compact(Snapshot(states[2], 0, "x"), tail=3)
        assert await settled(port, request) == Committed(states[0])
        assert await settled(port, after(EMPTY)) == Conflict(states[3])
        await port.compact(Snapshot(states[3], 0, "x"), tail=0)
        assert await settled(port, request) == Forgotten(states[3])
        assert await settled(port, after(states[1])) == Forgotten(states[3])
        await port.close()

    asyncio.run(run())


def test_a_command_may_be_larger_than_a_request(place: Place) -> None:
    async def run() -> None:
        port, other = place.open("n1"), place.open("n2")
        large = command("generation", streams="é" * 2_000_000)
        state = await committed(port, after(EMPTY, large))
        assert (await other.read()).entries == (Entry(state, 0, large),)
        assert [item.id for item in await watched(other, 0, 1)] == [state]
        await port.close()
        await other.close()

    asyncio.run(run())


def test_writers_that_race_lose_no_commit(place: Place) -> None:
    async def add(port: Group0, node: int, count: int) -> list[StateId]:
        mine: list[StateId] = []
        state = await port.head()
        while len(mine) < count:
            request = after(state, command(f"n{node} {len(mine)}"), node=node)
            outcome = await settled(port, request)
            if isinstance(outcome, Committed):
                mine.append(outcome.id)
            assert isinstance(outcome, Committed | Conflict)
            state = outcome.id if isinstance(outcome, Committed) else outcome.head
        return mine

    async def run() -> None:
        ports = [place.open(f"n{i}") for i in range(3)]
        done = await asyncio.gather(*(add(p, i, 6) for i, p in enumerate(ports)))
        entries = (await ports[0].read()).entries
        assert [e.id.position for e in entries] == list(range(1, 19))
        assert sorted(s.position for states in done for s in states) == list(range(1, 19))
        times = [e.id.id.time for e in entries]
        assert times == sorted(set(times))  # later states have later ids
        for port in ports:
            await port.close()

    asyncio.run(run())

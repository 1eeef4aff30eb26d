"""etcd is gone: who watches its log asks now and then, and ends as soon as it is to."""

from __future__ import annotations

import asyncio
import socket

from stagewright.impl.group0.etcd import EtcdGroup0
from stagewright.impl.group0.gateway import Gateway

TICKS = 60  # of the event loop: a refused connection takes fewer
SECONDS = 0.5
MOST = 40  # connections in that time; without a pause there are thousands


async def watch(group0: EtcdGroup0) -> None:
    """As a node does."""
    async for _ in group0.watch():
        pass


async def end(task: asyncio.Task[None]) -> None:
    """However often it takes."""
    while not task.done():
        task.cancel()
        await asyncio.sleep(0)


def free_port() -> int:
    """A port at which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def test_who_watches_can_be_ended_at_any_moment() -> None:
    """A cancellation that came as a connection was refused was lost, and the node never ended."""

    async def ended(ticks: int) -> bool:
        group0 = EtcdGroup0(Gateway((f"http://127.0.0.1:{free_port()}",)))
        task = asyncio.create_task(watch(group0))
        for _ in range(ticks):
            await asyncio.sleep(0)
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=5)
        await end(task)
        await group0.close()
        return task in done

    assert [n for n in range(TICKS) if not asyncio.run(ended(n))] == []


def test_who_watches_does_not_ask_without_a_pause() -> None:
    """A node of which etcd was down took a core."""
    connections = 0

    def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        writer.close()

    async def asked() -> None:
        server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        group0 = EtcdGroup0(Gateway((f"http://127.0.0.1:{port}",)))
        task = asyncio.create_task(watch(group0))
        await asyncio.sleep(SECONDS)
        await end(task)
        await group0.close()
        server.close()

    asyncio.run(asked())
    assert 0 < connections <= MOST

"""Hosts a node in a process: carries its effects out on sockets, files, clocks and group0."""

from __future__ import annotations

import asyncio
import logging
import random
import sys
import time
from collections.abc import Callable, Coroutine
from typing import Any
from uuid import uuid4

from stagewright.impl.group0 import Commit, Group0, UnavailableError, Unknown
from stagewright.impl.group0.member import AskHead, SendCommit
from stagewright.impl.node.defects import Defect
from stagewright.impl.node.messages import Message
from stagewright.impl.node.node import DatabaseNode
from stagewright.impl.node.port import (
    Campaign,
    Compact,
    Drop,
    Effect,
    Keep,
    Learn,
    Resign,
    Send,
    Stop,
    Store,
    Supersede,
    Surroundings,
    Timing,
    Truncate,
    Wake,
)
from stagewright.impl.node.removals import remove
from stagewright.impl.processes.admission import admit
from stagewright.impl.processes.codec import codec
from stagewright.impl.processes.errors import ClusterError
from stagewright.impl.processes.handshake import Calling
from stagewright.impl.processes.layout import NodeFile
from stagewright.impl.processes.links import Accepted, Link, split
from stagewright.impl.server_log import ServerLog
from stagewright.impl.storage.group_sync import GroupSync
from stagewright.impl.storage.port import RowStore
from stagewright.machines.scylladb.topology.topology_states import NodeState

_LOG = logging.getLogger("stagewright.host")


class Host:
    """One life of a node in this process. `run` returns when it is over, with the reason if for good."""

    def __init__(
        self,
        file: NodeFile,
        secret: bytes,
        timing: Timing,
        rows: RowStore,
        group0: Group0,
        defects: frozenset[Defect] = frozenset(),
    ) -> None:
        self.name = file.identity.name
        self._address = file.identity.host.address
        self._secret = secret
        self._rows = rows
        self._sync = GroupSync(rows)
        self._group0 = group0
        self._book = {**file.book}
        self._book.update({h.name: h.address for h in file.identity.founders})
        self._links: dict[str, Link] = {}
        self._accepted: dict[str, Accepted] = {}  # by sender: the newest connection of each
        self._connections: set[Accepted] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._over: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        around = Surroundings(lambda: time.time_ns() // 1000, random.random)
        self._node = DatabaseNode(file.identity, rows, around, timing, defects=defects)
        self._log = ServerLog(_write)
        self._log.starts(self._node)

    async def run(self) -> str:
        """Listen and live, until the node stops for good or `end` is called; the reason, or nothing.

        Raises:
            ClusterError: the address cannot be had.
            StagewrightError: a disk or group0 has failed for good.
        """
        host, port = split(self._address)
        loop = asyncio.get_running_loop()
        try:
            server = await loop.create_server(self._accept, host, port)
        except OSError as error:
            raise ClusterError(
                f"{self.name} cannot listen at {self._address}: {error.strerror}",
                help="another program has the port: end it, and start the node again",
            ) from None
        try:
            self._call(self._node.start)
            self._meet()
            return await self._over
        finally:
            server.close()
            await self._close()

    def end(self, reason: str = "") -> None:
        """Let `run` return."""
        if not self._over.done():
            self._over.set_result(reason)

    async def _close(self) -> None:
        for link in self._links.values():
            link.close()
        for connection in list(self._connections):
            connection.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # -- calls of the node, and what they cause --------------------------------------------------------

    def _call(self, call: Callable[..., list[Effect]], *arguments: Any) -> None:
        """Call the node, and carry out what it wants before anything else happens."""
        if self._over.done():
            return
        try:
            for effect in call(*arguments):
                if self._over.done():
                    return
                self._log.did(effect)
                self._carry_out(effect)
        except Exception as error:  # noqa: BLE001 - half a change must not be lived with
            self._fail(error)

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Send(to, message):
                self._send(to, message)
            case Store(batch, number):
                self._rows.write(batch)
                if number:
                    self._begin(self._stored(number))
            case Drop() | Supersede() | Truncate():
                remove(self._rows, effect)
            case Wake(milliseconds, reason):
                loop = asyncio.get_running_loop()
                loop.call_later(milliseconds / 1000, self._call, self._node.wake, reason)
            case Stop(reason):
                # What it sent before must arrive: the coordinator waits for the last answer.
                asyncio.get_running_loop().call_soon(self.end, reason)
            case _:
                self._begin(self._ask_group0(effect))

    async def _stored(self, number: int) -> None:
        await self._sync()
        self._call(self._node.stored, number)

    async def _ask_group0(self, effect: Effect) -> None:
        node, group0 = self._node, self._group0
        match effect:
            case Learn(after):
                async for item in group0.watch(after):
                    self._call(node.learned, item)
                    self._log.learned()
                    self._meet()
            case SendCommit(request):
                outcome = await self._commit(request)
                self._log.answered(request, outcome)
                self._call(node.answered, request, outcome)
            case AskHead(number):
                self._call(node.head_is, number, await _or_none(group0.head()))
            case Campaign(milliseconds):
                seconds = milliseconds / 1000
                won = await _or_none(group0.campaign(self.name, seconds))
                self._call(node.campaigned, won)
            case Keep(leadership):
                kept = await _or_none(group0.keep(leadership))
                self._call(node.kept, leadership, bool(kept))
            case Resign(leadership):
                await _or_none(group0.resign(leadership))
            case Compact(snapshot):
                await _or_none(group0.compact(snapshot))
            case _:
                raise AssertionError(f"nobody carries out {effect}")

    async def _commit(self, request: Commit) -> Any:
        try:
            return await self._group0.commit(request)
        except UnavailableError as error:
            return Unknown(error.problem)

    # -- messages --------------------------------------------------------------------------------------

    def _send(self, to: str, message: Message) -> None:
        if to == self.name:
            asyncio.get_running_loop().call_soon(self._heard, to, message)
        elif to in self._book:
            self._link(to).send(message)
        elif to in self._accepted:
            self._accepted[to].send(message)

    def _link(self, peer: str) -> Link:
        link = self._links.get(peer)
        if link is not None and link.address != self._book[peer]:
            link.close()
            link = None
        if link is None:
            link = Link(
                codec(), peer, self._book[peer], self._greeting, self._heard, self._peer_seen
            )
            self._links[peer] = link
        return link

    def _greeting(self) -> Calling:
        return Calling(self._secret, self.name, self._address)

    def _heard(self, sender: str, message: Message) -> None:
        self._log.heard(sender, message)
        self._call(self._node.handle, sender, message)

    def _peer_seen(self, peer: str, up: bool) -> None:
        _LOG.info("%s is %s", peer, "up" if up else "down")
        self._call(self._node.seen, peer, up)

    def _accept(self) -> Accepted:
        return Accepted(codec(), self._secret, self.name, self._greeted, self._asked, self._hung_up)

    def _greeted(self, connection: Accepted) -> None:
        """Somebody who knows the secret: a node by its address, else a client with a name of its own."""
        self._connections.add(connection)
        if connection.address:
            self._book[connection.name] = connection.address
        else:
            connection.name = f"client {uuid4()}"
            self._accepted[connection.name] = connection

    def _asked(self, connection: Accepted, message: Message) -> None:
        if not connection.address:
            admit(message)
        self._heard(connection.name, message)

    def _hung_up(self, connection: Accepted) -> None:
        self._connections.discard(connection)
        if self._accepted.get(connection.name) is connection:
            del self._accepted[connection.name]

    def _meet(self) -> None:
        """Keep a link to each node that is in the cluster, as far as is learned."""
        known = self._node.context.view.nodes
        for name, member in known.items():
            if member.address:
                self._book[name] = member.address
            if member.state is NodeState.left:
                if name in self._links:
                    loop = asyncio.get_running_loop()
                    loop.call_later(1.0, self._links.pop(name).close)  # let it hear that
            elif name != self.name and name in self._book:
                self._link(name)

    # -- work in the background ------------------------------------------------------------------------

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        """A process whose disk or log has failed, or that is wrong, does not go on."""
        if not self._over.done():
            self._over.set_exception(error)


def _write(text: str) -> None:
    """A line of the node's log, between those of this process."""
    print(text, file=sys.stderr, flush=True)


async def _or_none(asked: Coroutine[Any, Any, Any]) -> Any:
    """What group0 answers, or None if it does not answer now."""
    try:
        return await asked
    except UnavailableError:
        return None

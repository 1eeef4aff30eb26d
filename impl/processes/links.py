"""Connections between processes: accepted ones, and links to peers that are kept up and watched.

What is sent while one loop of events runs is written at once. Nothing that arrives may end the process:
who does not speak the protocol, or does not know the secret, is refused and cut off.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from stagewright.impl.processes.codec import Codec
from stagewright.impl.processes.errors import WireError
from stagewright.impl.processes.frames import Frames, framed
from stagewright.impl.processes.handshake import SECONDS, Called, Calling, refusal

BEAT = 0.5  # seconds between heartbeats
SILENCE = 3.0  # seconds without one after which a peer counts as down
AGAIN = 0.2  # seconds between attempts to connect
MOST_UNSENT = 64 << 20  # bytes that wait for a peer that does not read: more are lost

_BEAT = b""  # an empty frame: it is answered by one
_LOG = logging.getLogger("stagewright.links")


class Connection(asyncio.Protocol):
    """One connection, from the handshake on. Subclasses say which side of it this process is."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._frames = Frames()
        self._transport: asyncio.Transport | None = None
        self._unsent: list[bytes] = []
        self._deadline: asyncio.TimerHandle | None = None

    @property
    def is_open(self) -> bool:
        """Whether both sides know each other and can speak."""
        return self._frames.trusts and self._transport is not None

    # -- what the loop calls ---------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._deadline = asyncio.get_running_loop().call_later(SECONDS, self._too_late)

    def data_received(self, data: bytes) -> None:
        try:
            bodies = self._frames.feed(data)
            while bodies:
                for body in bodies:
                    if self._transport is None:
                        return
                    self._take(body)
                bodies = self._frames.feed(b"") if self._frames.trusts else []
        except WireError as error:
            self._refuse(error.problem, error.help)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - as asyncio has it
        self._transport = None
        if self._deadline is not None:
            self._deadline.cancel()
        self.lost()

    # -- sending ---------------------------------------------------------------------------------------

    def send(self, message: Any) -> None:
        """Send a message, if the connection lasts; nobody says whether it arrives."""
        if self.is_open:
            try:
                self._write(framed(self._codec.encode(message)))
            except WireError as error:
                _LOG.warning("lost a %s: %s", type(message).__name__, error.problem)

    def beat(self) -> None:
        """Send a heartbeat."""
        if self.is_open:
            self._write(framed(_BEAT))

    def close(self) -> None:
        """End it after what was sent."""
        self._flush()
        if self._transport is not None:
            self._transport.close()

    def _write(self, frame: bytes) -> None:
        if not self._unsent:
            asyncio.get_running_loop().call_soon(self._flush)
        self._unsent.append(frame)

    def _flush(self) -> None:
        unsent, self._unsent = b"".join(self._unsent), []
        transport = self._transport
        if transport is None or not unsent:
            return
        if transport.get_write_buffer_size() > MOST_UNSENT:
            transport.abort()  # who does not read gets no more
            return
        transport.write(unsent)

    # -- what arrives ----------------------------------------------------------------------------------

    def _take(self, body: bytes) -> None:
        if not self._frames.trusts:
            self.greeted(body)
        elif body == _BEAT:
            self.beaten()
        else:
            self.heard(self._codec.decode(body))

    def _trust(self) -> None:
        self._frames.trusts = True
        if self._deadline is not None:
            self._deadline.cancel()

    def _too_late(self) -> None:
        self._refuse("no greeting came in time")

    def _refuse(self, reason: str, help: str = "") -> None:
        transport = self._transport
        if transport is not None:
            _LOG.warning("refused %s: %s", transport.get_extra_info("peername"), reason)
            transport.write(framed(refusal(reason, help)))
            transport.close()
            self._transport = None

    def greeted(self, body: bytes) -> None:
        """A frame of the handshake."""
        raise NotImplementedError

    def heard(self, message: Any) -> None:
        """A message."""
        raise NotImplementedError

    def beaten(self) -> None:
        """A heartbeat."""
        raise NotImplementedError

    def lost(self) -> None:
        """It is over."""


class Accepted(Connection):
    """A connection that somebody else made."""

    def __init__(
        self,
        codec: Codec,
        secret: bytes,
        node: str,
        begun: Callable[[Accepted], None],
        heard: Callable[[Accepted, Any], None],
        ended: Callable[[Accepted], None],
    ) -> None:
        super().__init__(codec)
        self._handshake = Called(secret, node)
        self._begun, self._heard, self._ended = begun, heard, ended
        self.name = ""  # of who calls
        self.address = ""  # where a node that calls listens

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._write(framed(self._handshake.opening()))

    def greeted(self, body: bytes) -> None:
        self._write(framed(self._handshake.answer(body)))
        hello = self._handshake.hello
        assert hello is not None
        self.name, self.address = hello.name, hello.address
        self._trust()
        self._begun(self)

    def heard(self, message: Any) -> None:
        self._heard(self, message)

    def beaten(self) -> None:
        self.beat()

    def lost(self) -> None:
        self._ended(self)


class _Call(Connection):
    """A connection that this process makes."""

    def __init__(self, codec: Codec, handshake: Calling, link: Link) -> None:
        super().__init__(codec)
        self._handshake = handshake
        self._link = link
        self.ended = False

    def greeted(self, body: bytes) -> None:
        answer = self._handshake.answer(body)
        if answer is not None:
            self._write(framed(answer))
            return
        if self._handshake.node != self._link.peer:
            raise WireError(
                f"{self._handshake.node} listens at {self._link.address}, not {self._link.peer}",
                help="see which node has which address",
            )
        self._trust()
        self._link.opened(self)

    def heard(self, message: Any) -> None:
        self._link.heard(message)

    def beaten(self) -> None:
        self._link.beaten()

    def lost(self) -> None:
        self.ended = True
        self._link.lost(self)


class Link:
    """The way to a peer: it connects again and again, and says when the peer answers and when not.

    Until it has tried once, what is sent waits; after that, what cannot be sent is lost.
    """

    def __init__(
        self,
        codec: Codec,
        peer: str,
        address: str,
        greeting: Callable[[], Calling],
        heard: Callable[[str, Any], None],
        seen: Callable[[str, bool], None],
    ) -> None:
        self.peer = peer
        self.address = address
        self._codec = codec
        self._greeting = greeting
        self._heard = heard
        self._seen = seen
        self._call: _Call | None = None
        self._up = True  # as a node believes before it is said otherwise
        self._early: list[Any] | None = []
        self._last = 0.0
        self._task = asyncio.get_running_loop().create_task(self._keep_up())

    def send(self, message: Any) -> None:
        """Try once."""
        if self._call is not None and self._call.is_open:
            self._call.send(message)
        elif self._early is not None:
            self._early.append(message)

    def close(self) -> None:
        """Leave the peer alone from now on."""
        self._task.cancel()
        self._early = None
        if self._call is not None:
            self._call.close()

    async def _keep_up(self) -> None:
        loop = asyncio.get_running_loop()
        host, port = split(self.address)
        while True:
            began = loop.time()
            try:
                _, call = await loop.create_connection(self._new_call, host, port)
            except OSError:
                self._say(False)
                self._early = None
            else:
                self._last = loop.time()
                await self._watch(call)
            await asyncio.sleep(max(0.0, AGAIN - (loop.time() - began)))

    def _new_call(self) -> _Call:
        return _Call(self._codec, self._greeting(), self)

    async def _watch(self, call: _Call) -> None:
        """Until the connection ends, or the peer is silent for too long."""
        loop = asyncio.get_running_loop()
        while not call.ended:
            began = loop.time()
            await asyncio.sleep(BEAT)
            call.beat()
            if loop.time() - began > SILENCE:  # this process was suspended, and could hear nobody
                self._last = loop.time()
            if loop.time() - self._last > SILENCE:
                call.close()
                self.lost(call)
                return

    # -- what the connection says ----------------------------------------------------------------------

    def opened(self, call: _Call) -> None:
        self._call = call
        early, self._early = self._early, None
        self._last = asyncio.get_running_loop().time()
        for message in early or ():
            self.send(message)
        self._say(True)

    def beaten(self) -> None:
        self._last = asyncio.get_running_loop().time()
        self._say(True)

    def heard(self, message: Any) -> None:
        self._last = asyncio.get_running_loop().time()
        self._heard(self.peer, message)

    def lost(self, call: _Call) -> None:
        if self._call in (None, call):
            self._call = None
            self._early = None
            self._say(False)

    def _say(self, up: bool) -> None:
        if up != self._up and not self._task.cancelled():
            self._up = up
            self._seen(self.peer, up)


def split(address: str) -> tuple[str, int]:
    """The host and the port of an address `HOST:PORT`.

    Raises:
        WireError: it is none.
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise WireError(f"{address!r} is no address", help="write HOST:PORT")
    return host.strip("[]"), int(port)

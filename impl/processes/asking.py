"""What clients of both kinds of cluster do alike: they ask one node after the other until an answer counts."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Sequence
from typing import Any

from stagewright.impl.processes.codec import Codec, codec
from stagewright.impl.processes.errors import ClusterError, WireError
from stagewright.impl.processes.frames import Frames, framed
from stagewright.impl.processes.handshake import Calling, refused
from stagewright.impl.processes.links import split

FIRST_PAUSE, LAST_PAUSE = 0.02, 0.5  # seconds between two attempts
NONE_RUNS = "no node runs"
STARTS = "`stagewright cluster start` starts them"


class RefusedRequestError(WireError):
    """A node takes no such request, from whoever it comes."""


class Conversation:
    """A connection to one node, which answers one question at a time.

    Raises:
        OSError: it cannot be reached, or hangs up.
        RefusedRequestError: it never takes such a question.
        WireError: it does not know the secret, or is something else.
    """

    def __init__(
        self, address: str, secret: bytes, seconds: float = 5.0, speaks: Codec | None = None
    ) -> None:
        """`speaks`: what is said after the greeting, if not what nodes of tablets say."""
        self._codec = speaks or codec()
        self._frames = Frames()
        self._bodies: list[bytes] = []
        self._until = time.monotonic() + seconds
        self._socket = socket.create_connection(split(address), timeout=seconds)
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            handshake = Calling(secret, "", "")
            while (answer := handshake.answer(self._next())) is not None:
                self._socket.sendall(framed(answer))
            self._frames.trusts = True
        except BaseException:
            self._socket.close()
            raise
        self.node = handshake.node

    def ask(self, message: Any, seconds: float = 5.0) -> Any:
        """The answer to a question, which has the question's number."""
        self._until = time.monotonic() + seconds
        self._socket.settimeout(seconds)
        self._socket.sendall(framed(self._codec.encode(message)))
        while True:
            answer = self._decoded(self._next())
            if answer.number == message.number:
                return answer

    def _decoded(self, body: bytes) -> Any:
        try:
            return self._codec.decode(body)
        except WireError as error:
            if (cut := refused(body)) is not None:
                raise RefusedRequestError(cut.reason, help=cut.help) from None
            raise error from None

    def _next(self) -> bytes:
        while True:
            if not self._bodies:
                self._bodies = self._frames.feed(b"")
            while self._bodies:
                body = self._bodies.pop(0)
                if body:  # else a heartbeat
                    return body
            # A node that only shows that it lives must not be waited for longer than one that is silent.
            self._socket.settimeout(max(0.01, self._until - time.monotonic()))
            data = self._socket.recv(1 << 16)
            if not data:
                raise ConnectionResetError("the node has hung up")
            self._bodies = self._frames.feed(data)

    def close(self) -> None:
        """Hang up."""
        self._socket.close()


class Asking:
    """One client; it has one question under way. `repeated` says how often one was sent once more."""

    def __init__(
        self,
        addresses: Callable[[], Sequence[str]],
        secret: bytes,
        seconds: float,
        connecting: float = 2.0,
        speaks: Codec | None = None,
    ) -> None:
        """`addresses`: of the nodes that run, asked for at each connection; `seconds` for an answer."""
        self.repeated = 0
        self._in_doubt = False  # the question was sent to a node that did not say what became of it
        self._addresses = addresses
        self._secret = secret
        self._seconds = seconds
        self._connecting = connecting
        self._speaks = speaks
        self._conversation: Conversation | None = None
        self._turn = 0
        self._number = 0

    def close(self) -> None:
        """Hang up."""
        if self._conversation is not None:
            self._conversation.close()
            self._conversation = None

    def _numbered(self) -> int:
        self._number += 1
        return self._number

    def _answer(
        self,
        question: Any,
        fault: Callable[[Any], str],
        how: str = "",
        advice: str = "",
        *,
        once: bool = False,
    ) -> Any:
        """The first answer in which `fault` finds none; `once`: it may be sent to one node alone.

        Raises:
            ClusterError: there is none in time, or no node runs, and none did before.
            RefusedRequestError: no node ever takes such a question.
        """
        until, why, pause = time.monotonic() + self._seconds, NONE_RUNS, FIRST_PAUSE
        self._in_doubt = False
        while time.monotonic() < until:
            sent = False
            try:
                if self._conversation is None:
                    self._conversation = self._connect()
                sent = True
                reply = self._conversation.ask(question, max(0.1, until - time.monotonic()))
                why = fault(reply)
                if not why:
                    return reply
                sent = False  # it is known that it has done nothing
            except RefusedRequestError:
                self.close()
                raise
            except TimeoutError as error:  # what a node has said before is worth more
                why = str(error) if why == NONE_RUNS else why
            except OSError as error:
                why = str(error) or type(error).__name__
            except WireError as error:
                why = error.problem
            self.close()
            self._in_doubt |= sent
            if once and sent:
                break
            self.repeated += 1
            time.sleep(pause)
            pause = min(2 * pause, LAST_PAUSE)
        raise ClusterError(
            f"not answered within {self._seconds:g} s{how}: {why}",
            help=STARTS if why == NONE_RUNS else f"see `stagewright cluster status`{advice}",
        )

    def _connect(self, seconds: float | None = None) -> Conversation:
        """`seconds`: until a node must have answered the greeting, if not as for any."""
        addresses = self._addresses()
        if (
            not addresses and not self._turn
        ):  # whoever has seen nodes run waits for them to come back
            raise ClusterError(NONE_RUNS, help=STARTS)
        if not addresses:
            raise ConnectionRefusedError(NONE_RUNS)
        self._turn += 1
        address = addresses[self._turn % len(addresses)]
        return Conversation(address, self._secret, seconds or self._connecting, self._speaks)

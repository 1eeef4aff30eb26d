"""The builder of a tablet server: a process of its own, which is there from the first work on.

Long work in the server's interpreter would make clients wait. If the builder dies, another one does what it had to do.
"""

from __future__ import annotations

import asyncio
import logging
import pickle
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from typing import Any

from stagewright.impl.indexes.bulk.pace import FULL
from stagewright.impl.indexes.bulk.work import Answer, RefusedWork, Work
from stagewright.impl.processes.frames import Frames, framed

_PROGRAM = ("-P", "-m", "stagewright.impl.indexes.bulk.program")
ROOM = 1 << 20  # bytes
_TRIES = 3  # of a work, with a builder that dies of it
_LOG = logging.getLogger("stagewright.indexes")
Then = Callable[[Answer], None]


class BuilderProcess:
    """Works are done one after the other; each is answered, be it with a refusal."""

    def __init__(self, share: Callable[[], int] = lambda: FULL) -> None:
        """`share`: the percentage of its time that it may work now."""
        self._share = share
        self._works: deque[tuple[Work, Then]] = deque()
        self._process: subprocess.Popen[bytes] | None = None
        self._link: _Link | None = None
        self._tries = 0
        self._is_closed = False

    def do(self, work: Work, then: Then) -> None:
        """Have a work done, unless it is closed."""
        if self._is_closed:
            return
        self._works.append((work, then))
        if len(self._works) == 1:
            self._send()

    def close(self) -> None:
        """End it; what it has to do is not done, and not answered."""
        self._is_closed = True
        self._works.clear()
        self._end()

    def _send(self) -> None:
        if not self._works:
            return
        if self._link is None:
            self._begin()
        assert self._link is not None
        self._link.send(pickle.dumps((self._share(), self._works[0][0]), 5))

    def _begin(self) -> None:
        ours, theirs = socket.socketpair()
        for end in (ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, ROOM)
        ours.setblocking(False)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, *_PROGRAM, "--fd", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Linux shares processors out among sessions, then within each
            )
        self._link = _Link(ours, self._answered, self._lost)

    def _answered(self, link: _Link, answer: Any) -> None:
        if link is not self._link:
            return
        self._end_first(answer)

    def _end_first(self, answer: Answer) -> None:
        self._tries = 0
        _, then = self._works.popleft()
        self._send()  # before what follows asks for more
        then(answer)

    def _lost(self, link: _Link) -> None:
        """It has died: what it was doing is begun again, unless it dies of that."""
        if link is not self._link:
            return
        self._end()
        self._tries += 1
        _LOG.warning("the builder has died")
        if self._tries < _TRIES:
            self._send()
        elif self._works:
            self._end_first(RefusedWork("the builder dies of it"))

    def _end(self) -> None:
        link, self._link = self._link, None
        process, self._process = self._process, None
        if link is not None:
            link.close()
        if process is not None:
            process.kill()  # a work may be left at any place
            asyncio.get_running_loop().run_in_executor(None, process.wait)


class _Link:
    """One end of a pair of sockets, in the server's loop."""

    def __init__(
        self,
        end: socket.socket,
        heard: Callable[[_Link, Any], None],
        lost: Callable[[_Link], None],
    ) -> None:
        self._end = end
        self._heard, self._lost = heard, lost
        self._frames = Frames()
        self._frames.trusts = True
        self._unsent = memoryview(b"")
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(end, self._read)

    def send(self, body: bytes) -> None:
        """The one before must have been answered."""
        self._unsent = memoryview(framed(body))
        self._write()

    def close(self) -> None:
        self._loop.remove_reader(self._end)
        self._loop.remove_writer(self._end)
        self._end.close()

    def _write(self) -> None:
        try:
            sent = self._end.send(self._unsent)
        except BlockingIOError:
            sent = 0
        except ConnectionError:
            self._loop.remove_writer(self._end)
            return  # `_read` sees it, too
        self._unsent = self._unsent[sent:]
        if self._unsent:
            self._loop.add_writer(self._end, self._write)
        else:
            self._loop.remove_writer(self._end)

    def _read(self) -> None:
        try:
            received = self._end.recv(ROOM)
        except BlockingIOError:
            return
        except ConnectionError:
            received = b""
        if not received:
            self._lost(self)
            return
        # What follows from a large one is a turn of its own.
        for body in self._frames.feed(received):
            self._loop.call_soon(self._heard, self, pickle.loads(body))

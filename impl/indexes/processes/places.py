"""Who leads what: the first server that lives, in an order that begins with another one for each tablet of a table."""

from __future__ import annotations

import os
import time
from collections.abc import Container, Iterable, Iterator
from zlib import crc32

from stagewright.impl.indexes.processes.layout import IndexLayout
from stagewright.impl.processes.held_files import hold

ELECTION = 0.6  # seconds after which others lead what a server has led that is gone
SETTLED = 3.0  # seconds after which a server that is back gets its tablets again
FRESH = 0.2  # seconds for which what files say is believed


class Places:
    """As one process sees them. A file of a tablet that a process holds makes it the leader, until it ends."""

    def __init__(self, layout: IndexLayout, name: str, servers: tuple[str, ...]) -> None:
        self._layout = layout
        self._name = name
        self._servers = servers
        self._known: dict[str, tuple[float, str]] = {}
        self._lives: dict[str, bool] = {}
        self._changed: dict[str, float] = {}  # since when a server lives, or does not
        self._grown: set[str] = set()
        self._gone: set[str] = set()

    # -- leading -----------------------------------------------------------------------------------------------

    def to_be_led(self, led: Container[str]) -> Iterator[str]:
        """The tablets that this server is to lead and does not."""
        for place in sorted(p for p in self._layout.places() if p not in led):
            order = self._order(place)
            if next((s for s in order if not self._is_dead(s)), None) == self._name:
                yield place

    def to_be_given(self, led: Iterable[str]) -> Iterator[str]:
        """Of what this server leads, that which another one is to lead that lives again."""
        for place in led:
            first = self._order(place)[0]
            since = self._changed[first]
            if first != self._name and self._lives[first] and time.monotonic() - since > SETTLED:
                yield place

    def look(self) -> None:
        """See which servers live."""
        now = time.monotonic()
        for server in self._servers:
            lives = server == self._name or self._layout.layout.running(server) is not None
            if lives != self._lives.get(server):
                self._lives[server] = lives
                self._changed[server] = now

    def _is_dead(self, server: str) -> bool:
        """Whether it has been so for long enough to be believed: at first others are only about to start."""
        since = self._changed[server]
        return not self._lives[server] and time.monotonic() - since > ELECTION

    def _order(self, place: str) -> list[str]:
        kind, _, tablet = place.partition("/")
        first = (crc32(kind.encode()) + int(tablet or 0)) % len(self._servers)
        return [*self._servers[first:], *self._servers[:first]]

    def claim(self, place: str) -> int | None:
        """Lead a tablet, or all as the master; None if another process does, or the tablet is gone."""
        path = self._layout.leader_file(place)
        try:
            handle = hold(path, self._name)
            if handle is None:
                return None
            if os.fstat(handle).st_ino == path.stat().st_ino:
                return handle
            os.close(handle)
        except FileNotFoundError:
            pass
        return None

    def grow(self, places: Iterable[str]) -> None:
        """These tablets are to be there."""
        for place in places:
            if place not in self._grown:
                self._layout.add_tablet(place)
                self._grown.add(place)

    def shrink(self, places: Iterable[str]) -> None:
        """These are not."""
        for place in places:
            if place not in self._gone:
                self._layout.mark_deleted(place)
                self._gone.add(place)

    # -- finding -----------------------------------------------------------------------------------------------

    def server_of(self, to: str) -> str:
        """The process that a message is for; empty if nobody knows."""
        kind, _, rest = to.partition("/")
        if kind == "client":
            return rest.partition("/")[0]
        return self._fresh(to)

    def address_of(self, server: str) -> str:
        """Where a process listens; empty if nobody knows."""
        return self._fresh(f"@{server}")

    def _fresh(self, name: str) -> str:
        now = time.monotonic()
        since, known = self._known.get(name, (-1.0, ""))
        if now - since > FRESH or not known:
            found = self._layout.address(name[1:]) if name[:1] == "@" else self._layout.leader(name)
            self._known[name] = now, found
            return found
        return known

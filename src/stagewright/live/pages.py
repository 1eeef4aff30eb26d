"""Serves the page of a running cluster, of whichever kind, on the loopback."""

from __future__ import annotations

from importlib.resources import files
from typing import Any, ClassVar, Protocol

from stagewright.loopback import LoopbackServer, Query

Document = dict[str, Any]


class Watched(Protocol):
    """What a page shows."""

    page: ClassVar[str]
    """Its file; it asks for `/api/look`."""

    def look(self, query: Query, /) -> Document:
        """All that it shows; from one thread at a time."""
        ...

    def close(self) -> None:
        """Watch no longer."""
        ...


def server(watched: Watched, port: int = 0) -> LoopbackServer:
    """The page; `port` 0 takes any that is free."""
    here = files("stagewright.live")
    head, page = (here.joinpath(name).read_text("utf-8") for name in ("head.html", watched.page))
    return LoopbackServer(head + page, {"/api/look": watched.look}, port)

"""How far a run is: one live line on a terminal, else a plain line every few seconds."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TextIO

_LIVE_SECONDS, _PLAIN_SECONDS = 0.2, 5.0


class Progress:
    """Prints what a run does, while the `with` block lasts."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._live = stream.isatty()
        self._last = time.monotonic()

    def __enter__(self) -> Progress:
        return self

    def __call__(self, simulated_ms: int, doing: str) -> None:
        """At a simulated time, something goes on."""
        now = time.monotonic()
        if now - self._last < (_LIVE_SECONDS if self._live else _PLAIN_SECONDS):
            return
        self._last = now
        text = f"{simulated_ms / 1000:.1f} s simulated: {doing}"
        end = "" if self._live else "\n"
        print(f"\r\x1b[K{text}" if self._live else text, end=end, file=self._stream, flush=True)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live:
            print("\r\x1b[K", end="", file=self._stream, flush=True)

"""What is reported to somebody who waits for a build."""

from __future__ import annotations

import time

from stagewright.commands.clusters.kinds import show

EVERY = 5.0  # seconds


class Waiting:
    """Says on standard error what is waited for: after some seconds, then as often, if it has changed."""

    def __init__(self) -> None:
        self._next = time.monotonic() + EVERY
        self._said = ""

    def report(self, text: str) -> None:
        """How far it is now."""
        if time.monotonic() < self._next or text == self._said:
            return
        show(text)
        self._next, self._said = time.monotonic() + EVERY, text

"""A process that works a share of its time: after each short part of a work it rests, in proportion to what that took.

Whoever wakes while it works waits for it, also where the system lets others go first: not before they have it preempted,
which Linux does at the end of a slice or of a tick. So the parts are short, rather than few.
"""

from __future__ import annotations

import time

_LEAST, _MOST = 0.0005, 0.1  # seconds: of a part after which it rests, and of a rest
FULL = 100  # percent


class Pace:
    """Of one work; `share`: percent of its time that it goes on. At all of it, it does not rest."""

    def __init__(self, share: int = FULL) -> None:
        self._rest = FULL / max(share, 1) - 1  # for each second of work
        self._since = time.monotonic()

    @property
    def is_full(self) -> bool:
        """Whether it never rests."""
        return self._rest <= 0

    def rest(self) -> None:
        """A part is done. Its wall time counts: where others want the machine, or the disk, it is longer."""
        took = time.monotonic() - self._since
        if self.is_full or took < _LEAST:
            return
        time.sleep(min(self._rest * took, _MOST))
        self._since = time.monotonic()

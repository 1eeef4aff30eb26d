"""A token bucket: so many rows in every second, wherever that second begins."""

from __future__ import annotations

_SCALE = 1000


class TokenBucket:
    """It holds a burst and fills at the rest of the rate, so that any second has `rate` rows at most.

    It begins empty: who takes over from another does not add a burst to that one's.
    """

    def __init__(self, rate: int, burst: int, now: int, *, credit: bool = False) -> None:
        self.burst = max(1, min(burst, rate // 2))
        self._fill = max(rate - self.burst, 1)
        self._most = (rate if credit else self.burst) * _SCALE
        self._fill = rate if credit else self._fill
        self._tokens = 0
        self._at = now

    def wait(self, rows: int, now: int) -> int:
        """Take tokens for rows and return 0; or the milliseconds until there are enough.

        Shapes: `rows` is at most `burst`.
        """
        self._tokens = min(self._tokens + (now - self._at) * self._fill, self._most)
        self._at = now
        missing = rows * _SCALE - self._tokens
        if missing > 0:
            return -(-missing // self._fill)
        self._tokens -= rows * _SCALE
        return 0

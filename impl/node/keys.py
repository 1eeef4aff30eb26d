"""Keys as rows are stored under them: the token first, so that a token range is a range of stored keys."""

from __future__ import annotations

from functools import lru_cache

from stagewright.impl.ring.partitioner import LAST_TOKEN, token_of

LOCAL = "system.local"  # the family of what a node keeps for itself
_SHIFT = 1 << 63


@lru_cache(maxsize=65536)
def stored_key(key: bytes) -> bytes:
    """A partition key as it is stored."""
    return start_of(token_of(key)) + key


def token_in(stored: bytes) -> int:
    """The token of a stored key."""
    return int.from_bytes(stored[:8], "big") - _SHIFT


def start_of(token: int) -> bytes:
    """What no stored key of a token is less than."""
    return (token + _SHIFT).to_bytes(8, "big")


def bounds(low: int, high: int) -> tuple[bytes, bytes | None]:
    """The stored keys of a token range (low, high]: from the first on, up to the second or to the end."""
    return start_of(low + 1), None if high >= LAST_TOKEN else start_of(high + 1)

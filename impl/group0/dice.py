"""Randomness by name: what one link decides does not depend on what others did before, so that runs shrink."""

from __future__ import annotations

import hashlib
from collections import Counter


class Dice:
    """The n-th throw of a kind for a key is a function of the seed, the kind, the key and n."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._thrown: Counter[tuple[str, str]] = Counter()

    def throw(self, kind: str, key: str = "") -> float:
        """A number from 0 up to 1."""
        self._thrown[kind, key] += 1
        text = f"{self._seed}/{kind}/{key}/{self._thrown[kind, key]}"
        digest = hashlib.blake2b(text.encode(), digest_size=7).digest()
        return int.from_bytes(digest, "big") / (1 << 56)

    def chance(self, probability: float, kind: str, key: str = "") -> bool:
        """Whether something happens that does so with this probability."""
        return self.throw(kind, key) < probability

    def between(self, low: int, high: int, kind: str, key: str = "") -> int:
        """A whole number from `low` to `high`, both possible."""
        return low + int(self.throw(kind, key) * (high - low + 1))

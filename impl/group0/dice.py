"""Randomness by name: what one link decides does not depend on what others did before, so that runs shrink."""

from __future__ import annotations

from hashlib import blake2b


class Dice:
    """The n-th throw of a kind for a key is a function of the seed, the kind, the key and n."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._thrown: dict[str, int] = {}

    def throw(self, kind: str, key: str = "") -> float:
        """A number from 0 up to 1."""
        name = f"{self._seed}/{kind}/{key}/"
        self._thrown[name] = number = self._thrown.get(name, 0) + 1
        digest = blake2b(f"{name}{number}".encode(), digest_size=7).digest()
        return int.from_bytes(digest, "big") / (1 << 56)

    def chance(self, probability: float, kind: str, key: str = "") -> bool:
        """Whether something happens that does so with this probability."""
        return self.throw(kind, key) < probability

    def between(self, low: int, high: int, kind: str, key: str = "") -> int:
        """A whole number from `low` to `high`, both possible."""
        return low + int(self.throw(kind, key) * (high - low + 1))

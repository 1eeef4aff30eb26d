"""Shards in the order of their loads, which change by one at a time."""

from __future__ import annotations

from collections.abc import Iterator


class Levels:
    """Shards by load. Within a load, the one that came first comes first."""

    __slots__ = ("_at", "_highest", "_lowest", "_size")

    def __init__(self) -> None:
        self._at: list[dict[int, None]] = []
        self._lowest = 0  # no shard is lower; of an empty one it means nothing
        self._highest = -1  # no shard is higher
        self._size = 0

    def put(self, shard: int, load: int) -> None:
        while len(self._at) <= load:
            self._at.append({})
        self._at[load][shard] = None
        self._lowest = min(self._lowest, load) if self._size else load
        self._highest = max(self._highest, load)
        self._size += 1

    def drop(self, shard: int, load: int) -> None:
        del self._at[load][shard]
        self._size -= 1

    def lowest(self) -> int | None:
        """The least load of all."""
        if not self._size:
            return None
        while not self._at[self._lowest]:
            self._lowest += 1
        return self._lowest

    def highest(self) -> int | None:
        """A shard with the greatest load of all."""
        if not self._size:
            return None
        while not self._at[self._highest]:
            self._highest -= 1
        return next(iter(self._at[self._highest]))

    def below(self, load: int) -> Iterator[int]:
        """The shards that have less, the least loaded first; nothing may change meanwhile."""
        first = self.lowest()
        if first is not None:
            for level in range(first, min(load, self._highest + 1)):
                yield from self._at[level]

"""A cache with leases and its readers, and the adapter through which tests drive them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from stagewright.testing import RefusedEvent, State, Step

READERS = ("reader0", "reader1")


class Cache:
    """One entry; whoever misses it is given a lease, and only a valid lease fills it."""

    def __init__(self) -> None:
        self.value: int | None = None
        self.valid: set[int] = set()
        self._numbers = itertools.count(1)

    def miss(self) -> int | None:
        """A new lease; None if there is a value."""
        if self.value is not None:
            return None
        lease = next(self._numbers)
        self.valid.add(lease)
        return lease

    def fill(self, value: int, lease: int) -> bool:
        """Whether the value is taken."""
        if lease not in self.valid:
            return False
        self.valid.remove(lease)
        self.value = value
        return True

    def invalidate(self) -> None:
        """Forget the value, and take back all leases."""
        self.value = None
        self.valid.clear()


class Reader:
    """Looks into the cache, then into the database."""

    def __init__(self) -> None:
        self.at = "idle"
        self.lease = 0
        self.loaded = 0

    def rest(self) -> None:
        """The value has been handed to whoever asked."""
        self.at, self.loaded = "idle", 0


class Adapter:
    """The definition's steps as calls; invalidations under way are the network's."""

    def reset(self, initial: State) -> None:
        self.version = self.invalidations = 0
        self.cache = Cache()
        self.readers = {name: Reader() for name in READERS}

    def do(self, step: Step) -> None:
        match step.action:
            case "write":
                self.version += 1
                self.invalidations += 1
            case "invalidate":
                self._only_if(self.invalidations > 0)
                self.invalidations -= 1
                self.cache.invalidate()
            case _:
                self._read(step.action, self.readers[str(step.arguments["r"])])

    def observe(self) -> Mapping[str, object]:
        seen: dict[str, object] = {
            "version": self.version,
            "invalidations": self.invalidations,
            "filled": self.cache.value is not None,
            "cached": self.cache.value or 0,
            "leases": [n for n, r in self.readers.items() if r.lease in self.cache.valid],
        }
        for name, reader in self.readers.items():
            seen[f"at[{name}]"] = reader.at
            seen[f"loaded[{name}]"] = reader.loaded
        return seen

    def _read(self, action: str, reader: Reader) -> None:
        match action:
            case "miss":
                self._only_if(reader.at == "idle")
                lease = self.cache.miss()
                self._only_if(lease is not None)
                reader.at, reader.lease = "missed", lease or 0
            case "load":
                self._only_if(reader.at == "missed")
                reader.at, reader.loaded = "loaded", self.version
            case _:
                self._only_if(reader.at == "loaded")
                self._only_if((action == "fill") == (reader.lease in self.cache.valid))
                self.cache.fill(reader.loaded, reader.lease)
                reader.rest()

    def _only_if(self, possible: bool) -> None:
        if not possible:
            raise RefusedEvent("it cannot happen now")

"""What every row store does: versions of a key by hybrid time, written in atomic batches.

What is written survives the process at once, and the machine after the next `sync`. A store keeps every version until it
is asked to remove it: whoever has written it knows who may still want it (`impl.node.superseding`, `impl.indexes`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from stagewright.spec.errors import StagewrightError

LAST_TIME = (1 << 64) - 1


class StorageError(StagewrightError):
    """Rows cannot be read or written: the directory is damaged or belongs to another program, or the disk fails."""

    code = "SW416"


@dataclass(frozen=True, slots=True)
class Version:
    """A value of a key from a hybrid time on; None is a tombstone. Of equal times the last written counts."""

    key: bytes
    time: int
    value: bytes | None


@dataclass(frozen=True, slots=True)
class Put:
    """A version of a key in a family, which is a space of keys of its own."""

    family: str
    version: Version


@dataclass(frozen=True, slots=True)
class Page:
    """Rows of a family as of a time, in the order of their keys, and the key of the row after them, if there is one.

    The keys are one after the other: whoever reads pages has keys of one width.
    """

    keys: bytes
    values: list[bytes]
    following: bytes | None


class Snapshot(Protocol):
    """A consistent view: nothing that is written later shows. To be closed."""

    def get(self, family: str, key: bytes, at: int = LAST_TIME) -> Version | None:
        """The newest version no later than a time, a tombstone too."""
        ...

    def versions(self, family: str, low: bytes, high: bytes | None) -> Iterator[Version]:
        """Every version of low <= key < high in the order of the keys, the newest first within one."""
        ...

    def newest(self, family: str, low: bytes, high: bytes | None) -> Iterator[Version]:
        """The newest version of each key, a tombstone too, however many older ones it has."""
        ...

    def close(self) -> None:
        """Let the store drop what only this view held."""
        ...


class Load(Protocol):
    """Versions of one time that are put in together, beside the log: all of them show when they are on the disk."""

    @property
    def path(self) -> str:
        """Where another process may write them instead, as a file that the store takes in; empty: it may not."""
        ...

    def add(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        """More of them: the keys are in their order, and after those that were added before."""
        ...

    def finish(self) -> None:
        """They are there, on the disk, when this returns; they count as written now. May be called from any thread."""
        ...

    def abandon(self) -> None:
        """None of them is to be there."""
        ...


class RowStore(Protocol):
    """A node's rows."""

    def write(self, batch: Iterable[Put]) -> None:
        """Write all of a batch or, after a crash, none of it; batches are kept in their order."""
        ...

    def sync(self) -> None:
        """Everything written before is on the disk when this returns. May be called from any thread."""
        ...

    def load(self, family: str, time: int) -> Load:
        """Begin to put in many versions of one time."""
        ...

    def page(self, family: str, low: bytes, at: int, most: int) -> Page:
        """What `live` has from a key on as of a time, as it is now: so many rows, and fast."""
        ...

    def spill(self) -> None:
        """Put what is in memory alone into files. May be called from any thread."""
        ...

    def files(self) -> tuple[str, ...]:
        """Files that have what was written before the last `spill`, at least; any of them may soon be gone."""
        ...

    def beside(self) -> str:
        """What paths begin with of files that are none of its own, and gone when it is opened again; empty: there are none."""
        ...

    def snapshot(self) -> Snapshot:
        """The rows as they are now."""
        ...

    def get(self, family: str, key: bytes) -> Version | None:
        """The newest version of a key as it is now, a tombstone too."""
        ...

    def value_at(self, family: str, key: bytes, time: int) -> bytes | None:
        """What was written of a key with this very time, which is found faster; None: nothing, or a tombstone."""
        ...

    def drop(self, family: str, low: bytes, high: bytes | None) -> int:
        """Remove every version of low <= key < high, as if it had never been there; how many."""
        ...

    def supersede(self, family: str, before: Mapping[bytes, int]) -> int:
        """Of each key, drop the versions that are older than its time and have a newer one here; how many.

        The newest stays, a tombstone too: a replica that has missed it may still have what it replaced. One that came
        late, behind many that were dropped before, may stay, too.
        """
        ...

    def forget(self, family: str, before: int, low: bytes = b"", high: bytes | None = None) -> int:
        """Drop the versions of low <= key < high that no read at or after a time can see; how many."""
        ...

    def truncate(self, family: str, until: int) -> int:
        """Remove every version that is no later than a time, also tombstones, as if it had never been there; how many."""
        ...

    def close(self) -> None:
        """Give the directory back. Snapshots must be closed before."""
        ...


def live(
    snapshot: Snapshot,
    family: str,
    low: bytes = b"",
    high: bytes | None = None,
    at: int = LAST_TIME,
) -> Iterator[Version]:
    """The rows of low <= key < high as of a time, in the order of the keys; without what is deleted."""
    last: bytes | None = None
    found = snapshot.newest if at == LAST_TIME else snapshot.versions
    for version in found(family, low, high):
        if version.time <= at and version.key != last:
            last = version.key
            if version.value is not None:
                yield version


def forgettable(versions: Iterable[Version], before: int) -> Iterator[Version]:
    """Of all versions of a family, those that no read at or after a time can see."""
    last: bytes | None = None
    for version in versions:
        if version.time > before:
            continue
        if version.key == last or version.value is None:
            yield version
        last = version.key

"""Many texts side by side in one array, and their numbering: `Interner` gives equal texts one number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stagewright.compiled import compiled, copy_bytes, read_only
from stagewright.traces.events.column_packing import Packed, packed, unpacked

if TYPE_CHECKING:
    import pyarrow as pa

Ints = NDArray[Any]


@dataclass(frozen=True)
class Names:
    """Texts in UTF-8: text i is ``data[begin[i] : end[i]]``."""

    data: Ints  # (bytes,) uint8
    begin: Ints  # (n,) int64
    end: Ints  # (n,) int64

    def __len__(self) -> int:
        return len(self.begin)

    def __reduce__(self) -> tuple[Any, ...]:
        apart = self if self._side_by_side else self.take(np.arange(len(self)))
        return _side_by_side, (apart.data, packed(apart.end - apart.begin))

    @property
    def _side_by_side(self) -> bool:
        begin, end = self.begin, self.end
        if not len(self):
            return not len(self.data)
        return not begin[0] and end[-1] == len(self.data) and bool((begin[1:] == end[:-1]).all())

    def text(self, index: int) -> str:
        """One text."""
        return self.bytes_of(index).decode("utf-8", "surrogatepass")

    def texts(self) -> list[str]:
        """All of them."""
        data = self.data.tobytes()
        bounds = zip(self.begin.tolist(), self.end.tolist(), strict=True)
        return [data[begin:end].decode("utf-8", "surrogatepass") for begin, end in bounds]

    def bytes_of(self, index: int) -> bytes:
        """One text as it is."""
        found: bytes = self.data[self.begin[index] : self.end[index]].tobytes()
        return found

    def take(self, indices: Ints) -> Names:
        """Some of the texts, in an array of their own."""
        data, ends = _gather(
            read_only(self.data), self.begin, self.end, read_only(indices, np.int64)
        )
        return Names(data, ends[:-1], ends[1:])


def _side_by_side(data: Ints, lengths: Packed) -> Names:
    ends = np.zeros(len(lengths.more) + 1, np.int64)
    np.cumsum(unpacked(lengths), out=ends[1:])
    return Names(data, ends[:-1], ends[1:])


def names_of(texts: Iterable[str]) -> Names:
    """The texts of a list."""
    coded = [text.encode("utf-8", "surrogatepass") for text in texts]
    ends = np.zeros(len(coded) + 1, np.int64)
    np.cumsum([len(c) for c in coded], out=ends[1:])
    return Names(np.frombuffer(b"".join(coded), np.uint8), ends[:-1], ends[1:])


def names_of_arrow(texts: pa.Array) -> Names:
    """The texts of a binary or string array without nulls, without a copy."""
    import pyarrow as pa

    large = pa.types.is_large_binary(texts.type) or pa.types.is_large_string(texts.type)
    _, offsets, data = texts.buffers()
    if not len(texts):
        return names_of(())
    bounds = np.frombuffer(offsets, np.int64 if large else np.int32)
    bounds = bounds[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    content = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return Names(content, bounds[:-1], bounds[1:])


def joined(parts: Sequence[Names]) -> Names:
    """All texts of several lists, in order."""
    sizes = [len(p.data) for p in parts]
    shift = np.cumsum([0, *sizes])[:-1]
    if not parts:
        return names_of(())
    return Names(
        np.concatenate([p.data for p in parts]),
        np.concatenate([p.begin + s for p, s in zip(parts, shift, strict=True)]),
        np.concatenate([p.end + s for p, s in zip(parts, shift, strict=True)]),
    )


class Interner:
    """Numbers (group, text) pairs from 0 in the order in which they come; equal pairs have one number.

    The hash of a pair is the same in every process, so that it can decide where an entity is evaluated.
    """

    def __init__(self, capacity: int = 1 << 12, *, most: int = 1 << 62) -> None:
        self._most = most
        self._count = 0
        self._slots = np.full(2 * capacity, -1, np.int32)
        self._hashes = np.zeros(capacity, np.uint64)
        self._groups = np.zeros(capacity, np.int32)
        self._ends = np.zeros(capacity + 1, np.int64)
        self._arena = np.zeros(32 * capacity, np.uint8)

    def __len__(self) -> int:
        return self._count

    @property
    def full(self) -> bool:
        """Whether no further pair should be taken before a new start."""
        return self._count >= self._most

    @property
    def names(self) -> Names:
        """The texts, by number."""
        ends = self._ends[: self._count + 1]
        return Names(self._arena, ends[:-1], ends[1:])

    @property
    def groups(self) -> Ints:
        """The groups, by number."""
        return self._groups[: self._count]

    @property
    def hashes(self) -> Ints:
        """The hashes, by number: uint64."""
        return self._hashes[: self._count]

    def number(self, names: Names, group: Ints, salt: Ints) -> Ints:
        """The number of each (group, text); `salt` is what each group adds to the hash, uint64.

        Returns:
            (n,) int32, the number of each pair; new pairs are numbered on.
        """
        found = np.empty(len(names), np.int32)
        done = 0
        while True:
            done, self._count = _intern(
                read_only(names.data), names.begin, names.end, np.asarray(group, np.int32), salt, done,
                self._slots, self._hashes, self._groups, self._ends, self._arena, self._count,
                found, True,
            )  # fmt: skip
            if done == len(names):
                return found
            self._grow(int(names.end[done] - names.begin[done]))

    def find(self, names: Names, group: Ints, salt: Ints) -> Ints:
        """As `number`, but -1 for pairs that are not known yet."""
        found = np.empty(len(names), np.int32)
        _intern(
            read_only(names.data), names.begin, names.end, np.asarray(group, np.int32), salt, 0,
            self._slots, self._hashes, self._groups, self._ends, self._arena, self._count,
            found, False,
        )  # fmt: skip
        return found

    def _grow(self, next_size: int) -> None:
        used = int(self._ends[self._count])
        if used + next_size > len(self._arena):
            bigger = np.zeros(2 * len(self._arena) + next_size, np.uint8)
            bigger[:used] = self._arena[:used]
            self._arena = bigger
        if self._count >= len(self._hashes):
            self._hashes = np.concatenate([self._hashes, np.zeros_like(self._hashes)])
            self._groups = np.concatenate([self._groups, np.zeros_like(self._groups)])
            self._ends = np.concatenate([self._ends, np.zeros_like(self._ends)])
            self._slots = np.full(2 * len(self._hashes), -1, np.int32)
            _rehash(self._hashes, self._count, self._slots)


@compiled
def _hash(data: Ints, begin: int, end: int, salt: np.uint64) -> np.uint64:
    """FNV-like over eight bytes at a time, with a final mix: the upper bits are as good as the lower."""
    prime = np.uint64(0x9E3779B97F4A7C15)
    value = (salt ^ np.uint64(end - begin)) * prime
    # Unsigned places: an index that cannot be negative lets eight bytes be loaded at once.
    at = np.uint64(begin)
    for _ in range((end - begin) >> 3):
        word = (
            np.uint64(data[at])
            | (np.uint64(data[at + np.uint64(1)]) << np.uint64(8))
            | (np.uint64(data[at + np.uint64(2)]) << np.uint64(16))
            | (np.uint64(data[at + np.uint64(3)]) << np.uint64(24))
            | (np.uint64(data[at + np.uint64(4)]) << np.uint64(32))
            | (np.uint64(data[at + np.uint64(5)]) << np.uint64(40))
            | (np.uint64(data[at + np.uint64(6)]) << np.uint64(48))
            | (np.uint64(data[at + np.uint64(7)]) << np.uint64(56))
        )
        value = (value ^ word) * prime
        value ^= value >> np.uint64(29)
        at += np.uint64(8)
    word = np.uint64(0)
    shift = np.uint64(0)
    for _ in range((end - begin) & 7):
        word |= np.uint64(data[at]) << shift
        shift += np.uint64(8)
        at += np.uint64(1)
    value = (value ^ word) * prime
    value ^= value >> np.uint64(32)
    value *= np.uint64(0xD6E8FEB86659FD93)
    return value ^ (value >> np.uint64(32))


@compiled
def same_bytes(one: Ints, at: int, other: Ints, begin: int, size: int) -> bool:
    """Whether so many bytes are equal; the loop has no way out before its end, so it is vectorised."""
    here, there = np.uint64(at), np.uint64(begin)
    different = np.uint8(0)
    for i in range(np.uint64(size)):
        different |= one[here + i] ^ other[there + i]
    return bool(different == 0)


@compiled
def _intern(
    data: Ints, begin: Ints, end: Ints, group: Ints, salt: Ints, first: int,
    slots: Ints, hashes: Ints, groups: Ints, ends: Ints, arena: Ints, count: int,
    found: Ints, add: bool,
) -> tuple[int, int]:  # fmt: skip
    """Number the texts from `first` on; stops where the tables are full: (how far it came, count)."""
    mask = np.uint64(len(slots) - 1)
    for i in range(first, len(begin)):
        size = end[i] - begin[i]
        kind: int = group[i]
        key = _hash(data, begin[i], end[i], salt[kind])
        slot = key & mask
        number = -1
        while slots[slot] >= 0:
            other: int = slots[slot]
            alike = hashes[other] == key and groups[other] == group[i]
            if (
                alike
                and ends[other + 1] - ends[other] == size
                and same_bytes(arena, ends[other], data, begin[i], size)
            ):
                number = other
                break
            slot = (slot + np.uint64(1)) & mask
        if number < 0 and add:
            if count >= len(hashes) or ends[count] + size > len(arena):
                return i, count
            slots[slot] = count
            hashes[count] = key
            groups[count] = group[i]
            ends[count + 1] = copy_bytes(arena, ends[count], data, begin[i], end[i])
            number = count
            count += 1
        found[i] = number
    return len(begin), count


@compiled
def _rehash(hashes: Ints, count: int, slots: Ints) -> None:
    mask = np.uint64(len(slots) - 1)
    for number in range(count):
        slot = hashes[number] & mask
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = number


@compiled
def _gather(data: Ints, begin: Ints, end: Ints, indices: Ints) -> tuple[Ints, Ints]:
    ends = np.zeros(len(indices) + 1, np.int64)
    for i in range(len(indices)):
        ends[i + 1] = ends[i] + end[indices[i]] - begin[indices[i]]
    copy = np.empty(ends[-1], np.uint8)
    for i in range(len(indices)):
        copy_bytes(copy, ends[i], data, begin[indices[i]], end[indices[i]])
    return copy, ends

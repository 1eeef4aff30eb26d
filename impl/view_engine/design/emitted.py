"""What a map function emitted for a batch of documents: rows in columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Emitted = tuple[bytes, bytes]  # key and value, as JSON


@dataclass(frozen=True)
class EmittedRows:
    """Row i has the key and value that end at `key_ends[i]` and `value_ends[i]`, where the next begin.

    The rows of document d end before row `ends[d]`.
    """

    keys: Array
    key_ends: Array
    values: Array
    value_ends: Array
    ends: Array

    def __post_init__(self) -> None:
        for part in (self.keys, self.values):
            part.flags.writeable = False  # loops are compiled for the one kind of array

    @classmethod
    def of(cls, rows: Sequence[Sequence[Emitted]]) -> EmittedRows:
        """From the rows of each document."""
        flat = [row for of_document in rows for row in of_document]
        return cls(
            np.frombuffer(b"".join([key for key, _ in flat]), np.uint8),
            _ends([len(key) for key, _ in flat]),
            np.frombuffer(b"".join([value for _, value in flat]), np.uint8),
            _ends([len(value) for _, value in flat]),
            _ends([len(of_document) for of_document in rows]),
        )

    def __iter__(self) -> Iterator[Sequence[Emitted]]:
        """The rows of each document."""
        keys, values = self.keys.tobytes(), self.values.tobytes()
        rows: list[Emitted] = []
        k = v = 0
        for key_end, value_end in zip(
            self.key_ends.tolist(), self.value_ends.tolist(), strict=True
        ):
            rows.append((keys[k:key_end], values[v:value_end]))
            k, v = key_end, value_end
        first = 0
        for end in self.ends.tolist():
            yield rows[first:end]
            first = end

    @property
    def size(self) -> int:
        """How many bytes all keys and values have."""
        return len(self.keys) + len(self.values)


def _ends(sizes: Sequence[int]) -> Array:
    return np.cumsum(np.array(sizes, np.int64))

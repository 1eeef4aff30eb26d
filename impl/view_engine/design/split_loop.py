"""The compiled loop that takes what JavaScript emitted apart: one text for a batch of documents."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stagewright.compiled import compiled

Array = NDArray[Any]


@compiled
def split_emitted(data: Array) -> tuple[Array, Array, Array, Array, Array, Array]:
    """Keys, where each ends, values, where each ends, before which row each document ends, and failures.

    A key ends with byte 31, its value with 30, a document with 29; JSON text has none of them. What
    follows a byte 27 is why a document failed: its number, and from where to where that stands.
    """
    rows = 0
    documents = 0
    failures = 0
    for byte in data:
        rows += byte == 30
        documents += byte == 29
        failures += byte == 27
    keys = np.empty(len(data), np.uint8)
    values = np.empty(len(data), np.uint8)
    key_ends = np.empty(rows, np.int64)
    value_ends = np.empty(rows, np.int64)
    ends = np.empty(documents, np.int64)
    failed = np.empty((failures, 3), np.int64)
    k = v = row = document = failure = 0
    in_value = False
    failed_at = -1
    for p in range(len(data)):
        byte = data[p]
        if byte == 31:
            key_ends[row] = k
            in_value = True
        elif byte == 30:
            value_ends[row] = v
            row += 1
            in_value = False
        elif byte == 29:
            if failed_at >= 0:
                failed[failure, 0] = document
                failed[failure, 1] = failed_at
                failed[failure, 2] = p
                failure += 1
                failed_at = -1
            ends[document] = row
            document += 1
        elif byte == 27:
            failed_at = p + 1
        elif failed_at >= 0:
            pass
        elif in_value:
            values[v] = byte
            v += 1
        else:
            keys[k] = byte
            k += 1
    return keys[:k], key_ends, values[:v], value_ends, ends, failed

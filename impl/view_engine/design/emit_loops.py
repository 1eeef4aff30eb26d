"""The compiled loop that runs a declared map over a batch of documents in JSON text."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stagewright.compiled import compiled, copy_bytes
from stagewright.impl.view_engine.design.scan_loops import (
    after_space,
    find_path,
    is_kept,
    value_end,
)
from stagewright.impl.view_engine.tree.loops import compare

Array = NDArray[Any]

NONE, ROW, SLOW = 0, 1, 2  # what a document became
LITERAL, PLACE, DOCUMENT_ID = 0, 1, 2  # what a piece of a key or value is


@compiled
def write_pieces(
    pieces: Array,
    text: Array,
    data: Array,
    spans: Array,
    ids: Array,
    id0: int,
    id1: int,
    out: Array,
    q: int,
) -> int:
    """Write a key or value at `q`; gives its end, or -1 where Python must write it."""
    for i in range(len(pieces)):
        kind, a, b = pieces[i, 0], pieces[i, 1], pieces[i, 2]
        if kind == 0:
            q = copy_bytes(out, q, text, a, b)
        elif kind == 1:
            q = copy_bytes(out, q, data, spans[a, 0], spans[a, 1])
        else:
            out[q] = 34
            q += 1
            for p in range(id0, id1):
                c = ids[p]
                if c < 32 or c == 34 or c == 92 or c > 126:
                    return -1
                out[q] = c
                q += 1
            out[q] = 34
            q += 1
    return q


@compiled
def run_declared(
    data: Array,
    at: Array,
    ids: Array,
    id_at: Array,
    text: Array,
    names: Array,
    name_at: Array,
    paths: Array,
    where: Array,
    key: Array,
    value: Array,
) -> tuple[Array, Array, Array, Array, Array]:
    """Keys, where each ends, values, where each ends, and NONE, ROW or SLOW for each document.

    Document i lies at `at[i]` … `at[i + 1]` of `data`; `paths` are ranges of names. `where` has path,
    part of `text`, and whether they must be equal. `key` and `value` are pieces (kind and what).
    """
    n = len(at) - 1
    status = np.zeros(n, np.uint8)
    key_ends = np.zeros(n, np.int64)
    value_ends = np.zeros(n, np.int64)
    room = len(data) + len(ids) + n * (len(text) + 2) + 64
    keys = np.empty(room * max(len(key), 1), np.uint8)
    values = np.empty(room * max(len(value), 1), np.uint8)
    spans = np.empty((len(paths), 2), np.int64)
    found = np.empty(len(paths), np.int64)
    k = 0
    v = 0
    for i in range(n):
        start = after_space(data, at[i], at[i + 1])
        end = value_end(data, start, at[i + 1])
        slow = end < 0 or after_space(data, end, at[i + 1]) != at[i + 1]
        for j in range(len(paths)):
            if slow:
                break
            a, b, how = find_path(data, start, end, names, name_at, paths[j, 0], paths[j, 1])
            spans[j, 0], spans[j, 1], found[j] = a, b, how
            slow = how == 2 or (how == 0 and not is_kept(data, a, b))
        wanted = True
        for j in range(len(where)):
            if slow:
                break
            p = where[j, 0]
            same = (
                found[p] == 0
                and compare(data, spans[p, 0], spans[p, 1], text, where[j, 1], where[j, 2]) == 0
            )
            wanted = wanted and same == (where[j, 3] == 1)
        for j in range(len(key)):
            wanted = wanted and not (key[j, 0] == 1 and found[key[j, 1]] != 0)
        if not slow and wanted:
            missing = False
            for j in range(len(value)):
                missing = missing or (value[j, 0] == 1 and found[value[j, 1]] != 0)
            q = write_pieces(key, text, data, spans, ids, id_at[i], id_at[i + 1], keys, k)
            r = v
            if missing:
                r = copy_bytes(values, v, text, 0, 4)
            else:
                r = write_pieces(value, text, data, spans, ids, id_at[i], id_at[i + 1], values, v)
            if q < 0 or r < 0:
                slow = True
            else:
                k, v = q, r
                status[i] = 1
        if slow:
            status[i] = 2
        key_ends[i], value_ends[i] = k, v
    return keys[:k], key_ends, values[:v], value_ends, status

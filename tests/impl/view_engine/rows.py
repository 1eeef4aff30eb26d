"""Rows for tests of trees: documents spread over partitions, each with one key and a number."""

from __future__ import annotations

import json
import random
import zlib

from stagewright.impl.view_engine.file.header import IndexHeader
from stagewright.impl.view_engine.file.masks import mask_of
from stagewright.impl.view_engine.tree.entries import back_key, back_value, view_key, view_value
from stagewright.impl.view_engine.tree.nodes import Shape
from stagewright.impl.view_engine.tree.reducers import BUILTIN

Row = tuple[bytes, bytes]
SUMMED = Shape(is_view=True, reducers=(BUILTIN["_sum"],))


def document_rows(
    count: int, *, partitions: int = 64, seed: int = 1, first: int = 0
) -> tuple[list[Row], list[Row]]:
    """Rows of the back index and of one view, unsorted; keys are hexadecimal strings."""
    chosen = random.Random(seed)
    ids: list[Row] = []
    rows: list[Row] = []
    for number in range(first, first + count):
        doc = b"doc%06d" % number
        partition = zlib.crc32(doc) % partitions
        key = json.dumps(f"{chosen.getrandbits(32):08x}").encode()
        rows.append((view_key(key, doc), view_value(partition, [b"%d" % chosen.randrange(1000)])))
        ids.append((back_key(partition, doc), back_value(partition, {0: [key]})))
    return ids, rows


def empty_header(partitions: int = 64, views: int = 1) -> IndexHeader:
    """An index whose partitions are all active, without rows."""
    return IndexHeader(
        signature=bytes(range(16)),
        num_partitions=partitions,
        view_roots=(None,) * views,
        active=mask_of(range(partitions)),
        seqs=dict.fromkeys(range(partitions), 7),
    )

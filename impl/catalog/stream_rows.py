"""The streams of tables of tablets as `system.cdc_streams_history` has them: one stream a tablet, a set a resize.

A set operates from its timestamp on until the next one does. Its streams lie where their tablets lie: each has the
last token of one. Sets follow each other as tablets are split or merged; a node joins without a new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random

from stagewright.impl.catalog.columns import Row, Rows, microseconds_in
from stagewright.impl.group0 import Mutation
from stagewright.machines.scylladb.cdc.cdc_streams import (
    RANDOM_BITS,
    StreamId,
    TokenRange,
    TopologyDescription,
)

STREAMS = "cdc_streams_history"
_MILLISECOND = 1_000  # microseconds


def stream_set(table: str, last_tokens: Iterable[int], wanted: str, known: Rows) -> Mutation:
    """The streams of tablets with these last tokens, from a time on that is later than that of any set before.

    `wanted`: the time as a column has it; `known`: the sets that there are.
    """
    starts = [start for start, _ in _times(table, known)]
    start = max([microseconds_in(wanted), *(s + _MILLISECOND for s in starts)])
    seconds, rest = divmod(start // _MILLISECOND, 1_000)
    timestamp = f"{seconds}.{rest:03d}"
    dice = Random(f"{table}/{timestamp}")
    streams = [
        StreamId(last, dice.getrandbits(RANDOM_BITS), index)
        for index, last in enumerate(last_tokens)
    ]
    texts = [f"0x{stream.to_bytes().hex()}" for stream in streams]
    return Mutation(STREAMS, (table, timestamp), {"streams": texts})


def stream_sets(table: str, rows: Rows) -> Iterator[tuple[int, TopologyDescription]]:
    """The sets of a table, each with the time (microseconds since 1970) from which on it operates."""
    for start, row in _times(table, rows):
        streams = [StreamId.from_bytes(bytes.fromhex(text[2:])) for text in row["streams"]]
        yield start, TopologyDescription(tuple(TokenRange(s.token, (s,)) for s in streams))


def _times(table: str, rows: Rows) -> list[tuple[int, Row]]:
    return sorted(
        ((microseconds_in(key[1]), row) for key, row in rows.items() if key[0] == table),
        key=lambda found: found[0],
    )

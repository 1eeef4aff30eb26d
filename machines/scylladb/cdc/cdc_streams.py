"""CDC stream ids and the mapping from tokens to streams, as bits and numbers of the real size.

Sources: design document 003 (cdc), sections "Stream IDs" and "The generation's mapping"; where its words
and its code differ (the marks of the bit diagram, the ends of a range) ScyllaDB's `cdc/generation.cc`.
`cdc_mapping.py` is the same mapping as a machine, on a small ring.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, total_ordering

from stagewright.spec.errors import InputError

VERSION = 1  # of the layout of a stream id
VERSION_BITS, INDEX_BITS, RANDOM_BITS = 4, 22, 38  # of the lower 64 bits, the lowest first
IGNORE_MSB = 12  # the default of `murmur3_partitioner_ignore_msb_bits`
FIRST_TOKEN, LAST_TOKEN = -(2**63) + 1, 2**63 - 1
RING = 2**64


@total_ordering
@dataclass(frozen=True)
class StreamId:
    """The partition key of a CDC log row: a token, and bits that make it unique.

    003, "Stream IDs": "The id is stored as bytes, and sorted on string ordering, i.e. the high qword (token) is
    msb in ordering". So ids with negative tokens come last.
    """

    token: int
    random: int
    index: int  # of the vnode that owns the end of the id's range
    version: int = VERSION

    def __post_init__(self) -> None:
        _fits("the token", self.token, -(2**63), LAST_TOKEN)
        _fits("the random part", self.random, 0, 2**RANDOM_BITS - 1)
        _fits("the vnode index", self.index, 0, 2**INDEX_BITS - 1)
        _fits("the version", self.version, 0, 2**VERSION_BITS - 1)

    def __lt__(self, other: StreamId) -> bool:
        return self.to_bytes() < other.to_bytes()

    def to_bytes(self) -> bytes:
        """16 bytes, big-endian: the token, then `random | index | version`."""
        low = (self.random << INDEX_BITS | self.index) << VERSION_BITS | self.version
        return (self.token % RING).to_bytes(8, "big") + low.to_bytes(8, "big")

    @classmethod
    def from_bytes(cls, key: bytes) -> StreamId:
        """The stream id of a log table's partition key.

        Raises:
            InputError: the key is not 16 bytes long.
        """
        if len(key) != 16:
            raise InputError(
                f"a CDC stream id of {len(key)} bytes",
                help="give the 16 bytes of the column cdc$stream_id",
            )
        low = int.from_bytes(key[8:], "big")
        rest = low >> VERSION_BITS
        return cls(
            int.from_bytes(key[:8], "big", signed=True),
            rest >> INDEX_BITS,
            rest % 2**INDEX_BITS,
            low % 2**VERSION_BITS,
        )


@dataclass(frozen=True)
class Sharding:
    """How a node divides the token ring among its shards (`static_sharder`)."""

    shard_count: int
    ignore_msb: int = IGNORE_MSB

    def __post_init__(self) -> None:
        _fits("the shard count", self.shard_count, 1, 2**31)
        _fits("the number of ignored bits", self.ignore_msb, 0, 63)

    @property
    def shift(self) -> int:
        """The most significant bits that do not count; all do for a single shard."""
        return self.ignore_msb if self.shard_count > 1 else 0

    def shard_of(self, token: int) -> int:
        """The shard that owns a token: the top of the biased token, its ignored bits shifted out."""
        biased = (token + 2**63) % RING
        return ((biased << self.shift) % RING * self.shard_count) >> 64

    def next_token(self, token: int, shard: int) -> int | None:
        """The first token from `token` on that the shard owns; None beyond the last token."""
        period = RING >> self.shift
        start = -(-shard * RING // (self.shard_count << self.shift))  # of the shard, in each period
        biased = token + 2**63
        if self.shard_of(token) == shard:
            return token
        found = biased - biased % period + start
        found += period if found < biased else 0
        return found - 2**63 if found < RING else None

    def first_token(self, start: int, end: int, shard: int) -> int:
        """The first token of the shard in the range (start, end], which may wrap around; else its end.

        The else is why streams may share a token, and a log row may be on another shard than its base row.
        """
        pieces = [(start, end)] if start < end else [(start, LAST_TOKEN), (FIRST_TOKEN - 1, end)]
        for low, high in pieces:
            found = self.next_token(low + 1, shard) if low < high else None
            if found is not None and found <= high:
                return found
        return end


@dataclass(frozen=True)
class TokenRange:
    """An entry of a generation (`token_range_description`): the range that ends at `end`, and its streams."""

    end: int
    streams: tuple[StreamId, ...]  # one for each shard of the node that owns the end
    ignore_msb: int = IGNORE_MSB

    def stream(self, token: int) -> StreamId:
        """The stream of a token of this range: that of the token's shard at the owner."""
        return self.streams[Sharding(len(self.streams), self.ignore_msb).shard_of(token)]


@dataclass(frozen=True)
class TopologyDescription:
    """The mapping of a generation: ranges sorted by their ends, which refine the vnodes of the ring."""

    ranges: tuple[TokenRange, ...]

    def __post_init__(self) -> None:
        if not self.ranges or any(a >= b for a, b in zip(self.ends, self.ends[1:], strict=False)):
            raise InputError(
                "the ranges of a CDC generation are not sorted by their ends",
                help="give at least one, each end once, the smallest first",
            )

    @cached_property
    def ends(self) -> tuple[int, ...]:
        """The ends of the ranges."""
        return tuple(r.end for r in self.ranges)

    def range_of(self, token: int) -> int:
        """The entry of a token: the first one that ends at or after it, else the first of all.

        003 gives (end[i], end[i+1]] for entry i in one sentence, and the range ending with end[i] in the
        next; the code is this, and so is the next sentence.
        """
        return bisect_left(self.ends, token) % len(self.ranges)

    def stream(self, token: int) -> StreamId:
        """The stream into which changes of a base partition with that token go."""
        return self.ranges[self.range_of(token)].stream(token)


def generate(
    ring: Sequence[tuple[int, Sharding]], randomness: random.Random
) -> TopologyDescription:
    """The mapping for a token ring (`make_new_generation_description`): one range for each vnode.

    `ring` has the vnodes' ends, sorted, and the sharding of the node that owns each.
    """
    ends = [end for end, _ in ring]
    ranges: list[TokenRange] = []
    for i, (end, sharding) in enumerate(ring):
        streams = tuple(
            StreamId(
                sharding.first_token(ends[i - 1], end, shard),
                randomness.getrandbits(RANDOM_BITS),
                i,
            )
            for shard in range(sharding.shard_count)
        )
        ranges.append(TokenRange(end, streams, sharding.ignore_msb))
    return TopologyDescription(tuple(ranges))


def _fits(what: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise InputError(
            f"{what} of a CDC stream is {value}", help=f"it must be in {low} .. {high}"
        )

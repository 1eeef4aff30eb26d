"""CDC stream ids, sharding and the mapping agree with what ScyllaDB computed, and with the document's laws."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from stagewright.machines.scylladb.cdc.cdc_streams import (
    FIRST_TOKEN,
    LAST_TOKEN,
    Sharding,
    StreamId,
    TokenRange,
    TopologyDescription,
    generate,
)
from stagewright.spec.errors import InputError

VECTORS = Path(__file__).parent / "vectors"
TOKENS = st.integers(FIRST_TOKEN, LAST_TOKEN)


def vectors(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((VECTORS / f"{name}_vectors.json").read_text())
    return found


def test_every_shard_that_upstream_expects_is_computed() -> None:
    found = vectors("shard_of")
    assert len(found) == 135
    for vector in found:
        sharding = Sharding(vector["shard_count"], vector["ignore_msb"])
        assert sharding.shard_of(vector["token"]) == vector["shard"], vector


def test_every_real_stream_id_is_taken_apart_and_put_together() -> None:
    found = vectors("stream_id")
    assert len(found) == 20
    for vector in found:
        key = bytes.fromhex(vector["hex"])
        stream = StreamId.from_bytes(key)
        wanted = (vector["token"], vector["random"], vector["index"], vector["version"])
        assert (stream.token, stream.random, stream.index, stream.version) == wanted
        assert stream.to_bytes() == key


@given(TOKENS, st.integers(0, 2**38 - 1), st.integers(0, 2**22 - 1))
def test_packing_a_stream_id_loses_nothing(token: int, noise: int, index: int) -> None:
    stream = StreamId(token, noise, index)
    assert StreamId.from_bytes(stream.to_bytes()) == stream
    assert stream.to_bytes()[:8] == (token % 2**64).to_bytes(8, "big")


def test_real_stream_ids_are_sorted_as_the_bytes_that_are_stored() -> None:
    """003: "stored as bytes, and sorted on string ordering": negative tokens come after the others."""
    keys = sorted(bytes.fromhex(vector["hex"]) for vector in vectors("stream_id"))
    assert [s.to_bytes() for s in sorted(StreamId.from_bytes(key) for key in keys)] == keys
    assert StreamId(0, 0, 0) < StreamId(-1, 0, 0)


@given(st.lists(st.tuples(TOKENS, st.integers(0, 2**38 - 1), st.integers(0, 2**22 - 1))))
def test_stream_ids_and_their_bytes_have_one_order(parts: list[tuple[int, int, int]]) -> None:
    streams = sorted(StreamId(*each) for each in parts)
    assert [s.to_bytes() for s in streams] == sorted(s.to_bytes() for s in streams)


@pytest.mark.parametrize("broken", [(2**63, 0, 0), (0, 2**38, 0), (0, 0, 2**22), (0, -1, 0)])
def test_what_does_not_fit_the_bits_is_refused(broken: tuple[int, int, int]) -> None:
    with pytest.raises(InputError, match="it must be in"):
        StreamId(*broken)


def test_a_key_of_another_length_is_no_stream_id() -> None:
    with pytest.raises(InputError, match="16 bytes"):
        StreamId.from_bytes(b"\0" * 15)


shardings = st.builds(Sharding, st.integers(1, 9), st.sampled_from([0, 1, 4, 12]))


@given(TOKENS, shardings, st.data())
def test_the_next_token_of_a_shard_is_its_own_and_none_before_it_is(
    token: int, sharding: Sharding, data: st.DataObject
) -> None:
    shard = data.draw(st.integers(0, sharding.shard_count - 1))
    found = sharding.next_token(token, shard)
    last = LAST_TOKEN if found is None else found - 1
    if found is not None:
        assert found >= token
        assert sharding.shard_of(found) == shard
    if token <= last:
        skipped = data.draw(st.integers(token, last))
        assert sharding.shard_of(skipped) != shard


@st.composite
def rings(draw: st.DrawFn) -> list[tuple[int, Sharding]]:
    """Vnodes, some of them small, with owners of different shard counts."""
    near = st.integers(0, 2000).map(lambda x: FIRST_TOKEN + x)
    ends = sorted(draw(st.sets(st.one_of(TOKENS, near), min_size=1, max_size=8)))
    return [(end, draw(shardings)) for end in ends]


def vnode(ring: list[tuple[int, Sharding]], token: int) -> int:
    return next((i for i, (end, _) in enumerate(ring) if end >= token), 0)


@given(rings(), TOKENS)
def test_a_log_row_falls_into_the_vnode_of_its_base_row(
    ring: list[tuple[int, Sharding]], token: int
) -> None:
    """003: "we map each token tok to a stream whose token falls into the same vnode as tok"."""
    generation = generate(ring, random.Random(1))
    stream = generation.stream(token)
    assert vnode(ring, stream.token) == vnode(ring, token) == stream.index


@given(rings(), TOKENS)
def test_a_log_row_falls_onto_the_shard_of_its_base_row_where_the_range_has_a_token_of_it(
    ring: list[tuple[int, Sharding]], token: int
) -> None:
    """003: base writes of shard j "will have their corresponding log table entries also written to" it.

    At the node that the range's streams were made for; so each range that has a base token of a shard has
    a stream of it: the exception, a stream on the range's end, is of shards without base tokens.
    """
    sharding = ring[vnode(ring, token)][1]
    stream = generate(ring, random.Random(1)).stream(token)
    assert sharding.shard_of(stream.token) == sharding.shard_of(token)


def test_two_streams_of_a_small_vnode_share_its_end_as_in_a_real_generation() -> None:
    """Real ids: the third stream of a vnode has the token of its end, which shard 0 owns."""
    real = sorted(
        (StreamId.from_bytes(bytes.fromhex(v["hex"])) for v in vectors("stream_id")),
        key=lambda s: s.token,
    )
    first, _, end = (s for s in real if s.index == 1)
    start = max(s.token for s in real if s.index == 0 and s.token < first.token)
    assert start < first.token < end.token
    two = Sharding(2, 12)
    assert two.shard_of(end.token) == 0
    assert two.first_token(end.token - 3, end.token, 1) == end.token
    assert {two.shard_of(t) for t in range(end.token - 2, end.token + 1)} == {0}


@given(rings(), rings(), TOKENS)
def test_the_generation_of_a_joined_ring_keeps_colocation_in_the_old_ring_too(
    old: list[tuple[int, Sharding]], joining: list[tuple[int, Sharding]], token: int
) -> None:
    """003: ranges that refine the new vnodes "also refine the old vnodes"."""
    new = sorted({**dict(joining), **dict(old)}.items())
    stream = generate(new, random.Random(1)).stream(token)
    assert vnode(new, stream.token) == vnode(new, token)
    assert vnode(old, stream.token) == vnode(old, token)


def test_the_generation_of_the_old_ring_loses_colocation_in_the_joined_one() -> None:
    """That is why there are generations at all."""
    old = [(1000, Sharding(1))]
    new = [(500, Sharding(1)), *old]
    stream = generate(old, random.Random(1)).stream(700)
    assert vnode(new, stream.token) != vnode(new, 700)


def test_tokens_beyond_the_last_range_wrap_around_to_the_first() -> None:
    ends = (-100, 0, 100)
    made = TopologyDescription(tuple(TokenRange(e, (StreamId(e, 0, 0),)) for e in ends))
    owners = {-101: 0, -100: 0, -99: 1, 0: 1, 1: 2, 100: 2, 101: 0, LAST_TOKEN: 0}
    assert {token: made.range_of(token) for token in owners} == owners


def test_ranges_out_of_order_are_refused() -> None:
    pair = tuple(TokenRange(e, (StreamId(e, 0, 0),)) for e in (1, 0))
    with pytest.raises(InputError, match="not sorted"):
        TopologyDescription(pair)

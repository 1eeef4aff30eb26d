"""Blocks, chunks and headers are written and read back, at any place of a file, and damage is noticed."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings, strategies as st
from tests.impl.view_engine.recording_disk import MemoryDisk
from tests.impl.view_engine.rows import empty_header

from stagewright.impl.view_engine.file.chunks import (
    BLOCK,
    chunks,
    header_blocks,
    in_blocks,
    read_chunk,
    read_chunks,
    read_header,
)
from stagewright.impl.view_engine.file.errors import CorruptFileError
from stagewright.impl.view_engine.file.header import (
    IndexHeader,
    Pending,
    Root,
    contradictions,
    decode_header,
    encode_header,
)
from stagewright.impl.view_engine.file.masks import mask_of, partitions_of

PARTITIONS = st.sets(st.integers(0, 1023), max_size=20)
SEQS = st.dictionaries(st.integers(0, 1023), st.integers(0, (1 << 48) - 1), max_size=8)
LISTS = PARTITIONS.map(sorted).map(tuple)
ROOTS = st.none() | st.builds(
    Root, st.integers(0, (1 << 48) - 1), st.integers(0, (1 << 48) - 1), st.binary(max_size=200)
)
LOGS = st.lists(
    st.tuples(st.binary(min_size=8, max_size=8), st.integers(0, 1 << 63)), max_size=3
).map(tuple)
HEADERS = st.builds(
    IndexHeader,
    signature=st.binary(min_size=16, max_size=16),
    num_partitions=st.integers(1, 1024),
    view_roots=st.lists(ROOTS, max_size=4).map(tuple),
    id_root=ROOTS,
    active=PARTITIONS.map(mask_of),
    passive=PARTITIONS.map(mask_of),
    cleanup=PARTITIONS.map(mask_of),
    seqs=SEQS,
    unindexable_seqs=SEQS,
    has_replica=st.booleans(),
    replicas_on_transfer=LISTS,
    pending=st.builds(Pending, LISTS, LISTS, LISTS),
    partition_versions=st.dictionaries(st.integers(0, 1023), LOGS, max_size=3),
)


@given(HEADERS)
def test_header_is_read_as_it_was_written(header: IndexHeader) -> None:
    assert decode_header(encode_header(header)) == header


@given(st.binary(max_size=400), st.integers(0, 3 * BLOCK))
def test_blocks_start_with_zero_and_hold_the_rest_in_order(raw: bytes, position: int) -> None:
    stored = in_blocks(raw, position)
    kept = bytes(byte for at, byte in enumerate(stored, position) if at % BLOCK)
    assert kept == raw
    assert all(byte == 0 for at, byte in enumerate(stored, position) if at % BLOCK == 0)


@settings(max_examples=40)
@given(st.integers(0, 30_000), st.integers(0, 2 * BLOCK), st.randoms(use_true_random=False))
def test_chunk_is_read_where_it_was_written(size: int, position: int, chosen: Random) -> None:
    payload = chosen.randbytes(size)
    disk = MemoryDisk()
    disk.write(position, chunks([payload], position)[0])
    disk.write(disk.size(), b"what follows")
    assert read_chunk(disk.read, position) == payload


@settings(max_examples=40)
@given(
    st.lists(st.integers(0, 9000), max_size=8),
    st.integers(0, 2 * BLOCK),
    st.randoms(use_true_random=False),
)
def test_chunks_that_are_written_together_are_those_written_one_by_one(
    sizes: list[int], position: int, chosen: Random
) -> None:
    payloads = [chosen.randbytes(size) for size in sizes]
    stored, places = chunks(payloads, position)
    end = position
    for payload, place in zip(payloads, places, strict=True):
        alone, [expected] = chunks([payload], end)
        assert place == expected
        assert stored[end - position :].startswith(alone)
        end += len(alone)
    assert end == position + len(stored)
    assert [*read_chunks(stored, position, [at for at, _ in places])] == payloads
    assert [*read_chunks(stored[:-1], position, [at for at, _ in places])][-1:] in ([None], [])


def test_every_changed_byte_of_a_chunk_is_noticed() -> None:
    stored, _ = chunks([b"abc" * 20], 17)
    for at in range(len(stored)):
        damaged = bytearray(stored)
        damaged[at] ^= 0x40
        disk = MemoryDisk(bytearray(17) + damaged)
        with pytest.raises(CorruptFileError, match="at byte 17"):
            read_chunk(disk.read, 17)


def test_header_longer_than_a_block_is_read_and_every_changed_byte_noticed() -> None:
    header = empty_header(1024, views=40)
    body = encode_header(
        IndexHeader(
            signature=header.signature,
            num_partitions=1024,
            view_roots=tuple(
                Root(i, i, bytes((i * j) % 251 for j in range(300))) for i in range(40)
            ),
            active=header.active,
            seqs={i: i * i * 7919 for i in range(1024)},
        )
    )
    stored = header_blocks(body)
    assert len(stored) > BLOCK
    assert read_header(MemoryDisk(bytearray(stored)).read, 0) == body
    for at in range(0, len(stored), 97):
        damaged = bytearray(stored)
        damaged[at] ^= 1
        if at % BLOCK or at == 0:
            with pytest.raises(CorruptFileError):
                read_header(MemoryDisk(damaged).read, 0)


@given(PARTITIONS)
def test_masks_hold_sets_of_partitions(partitions: set[int]) -> None:
    assert partitions_of(mask_of(partitions)) == sorted(partitions)


def test_header_that_contradicts_itself_is_described() -> None:
    fine = empty_header(4)
    assert contradictions(fine) == []
    assert "active and cleanup" in contradictions(IndexHeader(**{**vars(fine), "cleanup": 1}))[0]
    assert "no sequence number" in contradictions(IndexHeader(**{**vars(fine), "seqs": {0: 1}}))[0]
    assert "beyond" in contradictions(IndexHeader(**{**vars(fine), "num_partitions": 2}))[0]

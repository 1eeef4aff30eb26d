"""The Murmur3 partitioner: the token of a partition key, as Cassandra and ScyllaDB compute it.

It is MurmurHash3 x64-128 with seed 0, of which the token is the first half; with Cassandra's deviation, which
takes the bytes after the last full block as signed.
"""

from __future__ import annotations

FIRST_TOKEN = -(1 << 63) + 1  # the hash value before it is what stands before all tokens
LAST_TOKEN = (1 << 63) - 1
TOKENS = (1 << 64) - 1

_MASK = (1 << 64) - 1
_C1 = 0x87C37B91114253D5
_C2 = 0x4CF5AD432745937F


def token_of(key: bytes) -> int:
    """The token of a serialized partition key, from FIRST_TOKEN to LAST_TOKEN."""
    h1 = h2 = 0
    blocks = len(key) // 16 * 16
    for start in range(0, blocks, 16):
        k1 = int.from_bytes(key[start : start + 8], "little")
        k2 = int.from_bytes(key[start + 8 : start + 16], "little")
        h1 ^= _mixed(k1, _C1, 31, _C2)
        h1 = ((_rotated(h1, 27) + h2) * 5 + 0x52DCE729) & _MASK
        h2 ^= _mixed(k2, _C2, 33, _C1)
        h2 = ((_rotated(h2, 31) + h1) * 5 + 0x38495AB5) & _MASK
    rest = key[blocks:]
    h2 ^= _mixed(_signed_bytes(rest[8:]), _C2, 33, _C1)
    h1 ^= _mixed(_signed_bytes(rest[:8]), _C1, 31, _C2)
    h1 ^= len(key)
    h2 ^= len(key)
    h1 = (h1 + h2) & _MASK
    h2 = (h2 + h1) & _MASK
    h1 = (_final(h1) + _final(h2)) & _MASK
    token = h1 - (1 << 64) if h1 >> 63 else h1
    return LAST_TOKEN if token < FIRST_TOKEN else token


def _signed_bytes(rest: bytes) -> int:
    """The bytes one above the other, combined by XOR: a negative one reaches into all above it."""
    found = 0
    for index, byte in enumerate(rest):
        found ^= ((byte - 256 if byte > 127 else byte) << 8 * index) & _MASK
    return found


def _mixed(k: int, first: int, bits: int, second: int) -> int:
    return _rotated((k * first) & _MASK, bits) * second & _MASK


def _rotated(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (64 - bits))) & _MASK


def _final(h: int) -> int:
    h ^= h >> 33
    h = h * 0xFF51AFD7ED558CCD & _MASK
    h ^= h >> 33
    h = h * 0xC4CEB9FE1A85EC53 & _MASK
    return h ^ (h >> 33)

"""Tokens are those of the real databases."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from stagewright.impl.ring.partitioner import FIRST_TOKEN, LAST_TOKEN, token_of


@pytest.mark.parametrize(
    ("key", "token"),
    [
        (b"123", -7468325962851647638),
        (b"\x00\xff\x10\xfa\x99" * 10, 5837342703291459765),
        (b"\xfe" * 8, -8927430733708461935),
        (b"\x10" * 8, 1446172840243228796),
        (b"9223372036854775807", 7162290910810015547),
        (b"", 0),
    ],
)
def test_a_token_is_that_of_cassandra(key: bytes, token: int) -> None:
    assert token_of(key) == token


@given(st.binary(max_size=80))
def test_every_key_has_a_token_in_the_ring(key: bytes) -> None:
    assert FIRST_TOKEN <= token_of(key) <= LAST_TOKEN

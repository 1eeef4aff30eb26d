"""Tokens that a node asks for: a list is read as it is written, and what is none is refused with its place."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from stagewright.impl.ring.initial_tokens import parse_tokens, tokens_text
from stagewright.impl.ring.partitioner import FIRST_TOKEN, LAST_TOKEN
from stagewright.spec.errors import InputError


@given(st.sets(st.integers(FIRST_TOKEN, LAST_TOKEN), min_size=1, max_size=20))
def test_a_list_is_read_as_it_is_written(tokens: set[int]) -> None:
    assert parse_tokens(tokens_text(tuple(tokens))) == tuple(sorted(tokens))


@pytest.mark.parametrize(
    ("text", "problem", "fix"),
    [
        ("", "`` is not a list of tokens", "TOKEN,TOKEN"),
        ("5,x", "`5,x` is not a list of tokens", "TOKEN,TOKEN"),
        ("7,5,7", "the token 7 is listed twice", "once"),
        (f"0,{LAST_TOKEN + 1}", f"{LAST_TOKEN + 1} is no token", f"from {FIRST_TOKEN}"),
        (f"{FIRST_TOKEN - 1},0", f"{FIRST_TOKEN - 1} is no token", f"to {LAST_TOKEN}"),
    ],
)
def test_what_is_no_list_of_tokens_is_refused(text: str, problem: str, fix: str) -> None:
    with pytest.raises(InputError) as found:
        parse_tokens(text, "--tokens: ")
    assert found.value.problem == f"--tokens: {problem}"
    assert fix in found.value.help

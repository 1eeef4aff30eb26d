"""Tokens that a node asks for when it joins (`initial_token`), instead of as many as it is given."""

from __future__ import annotations

from itertools import pairwise

from stagewright.impl.ring.partitioner import FIRST_TOKEN, LAST_TOKEN
from stagewright.spec.errors import InputError

FORM = "TOKEN,TOKEN…"


def parse_tokens(text: str, place: str = "") -> tuple[int, ...]:
    """The tokens of a list with commas between, in their order; `place`: where it stands.

    Raises:
        InputError: one is no token, or is listed twice.
    """
    try:
        found = sorted(map(int, text.split(",")))
    except ValueError:
        raise InputError(f"{place}`{text}` is not a list of tokens", help=f"write {FORM}") from None
    if found[0] < FIRST_TOKEN or found[-1] > LAST_TOKEN:
        wrong = found[0] if found[0] < FIRST_TOKEN else found[-1]
        raise InputError(f"{place}{wrong} is no token", help=f"from {FIRST_TOKEN} to {LAST_TOKEN}")
    if len({*found}) < len(found):
        twice = next(a for a, b in pairwise(found) if a == b)
        raise InputError(f"{place}the token {twice} is listed twice", help="list each once")
    return tuple(found)


def tokens_text(tokens: tuple[int, ...]) -> str:
    """The list of which `parse_tokens` makes these."""
    return ",".join(map(str, tokens))

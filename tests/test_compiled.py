"""A loop gives the same as plain Python and as machine code, alone and called by another loop."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from stagewright.compiled import compiled, interpreted


@compiled
def doubled(value: Any) -> Any:
    return 2 * value


@compiled
def twice_doubled(value: Any) -> Any:
    return doubled(doubled(value))


def test_a_loop_calls_another_one_in_both_ways() -> None:
    with interpreted():
        assert twice_doubled(5) == 20
    assert twice_doubled(5) == 20


def test_a_loop_travels_by_name() -> None:
    assert pickle.loads(pickle.dumps(doubled)) is doubled


def test_numbers_wrap_around_in_plain_python_too() -> None:
    largest = np.uint64(2**64 - 1)
    with interpreted():
        assert doubled(largest) == 2**64 - 2

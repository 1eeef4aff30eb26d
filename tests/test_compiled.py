"""A loop gives the same as plain Python and as machine code, alone and called by another loop."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from stagewright.compiled import compiled, copy_bytes, interpreted


@compiled
def doubled(value: Any) -> Any:
    return 2 * value


@compiled
def twice_doubled(value: Any) -> Any:
    return doubled(doubled(value))


@compiled
def twice(data: Any) -> Any:
    out = np.zeros(2 * len(data) + 1, np.uint8)
    return out, copy_bytes(out, copy_bytes(out, 1, data, 0, len(data)), data, 0, len(data))


def test_bytes_are_copied_in_both_ways() -> None:
    data = np.frombuffer(b"abc", np.uint8)
    found = [twice(data)]
    with interpreted():
        found.append(twice(data))
    assert [(out.tobytes(), int(end)) for out, end in found] == 2 * [(b"\0abcabc", 7)]
    out = np.zeros(4, np.uint8)
    assert copy_bytes(out, 2, data, 1, 3) == 4  # outside of a loop it is Python
    assert out.tobytes() == b"\0\0bc"


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

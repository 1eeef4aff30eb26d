"""The tables of visited states are exact: every kind, while they grow, under several workers."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from tests.thorough import some_of

from stagewright.checker.explicit.native.visited_set import buckets, visited as visited_module
from stagewright.checker.explicit.native.visited_set.buckets import Storage, kind_for
from stagewright.checker.explicit.native.visited_set.visited import Visited
from stagewright.checker.explicit.native.worker import OWN_SIZE, SPARE
from stagewright.checker.explicit.packing import Words, layout_of
from stagewright.spec.grounding.ground import Cell
from stagewright.spec.sorts import IntSort

CASES = [
    pytest.param((20,), False, id="a bitmap"),
    pytest.param((31,), False, id="quotients of 32 bits"),
    pytest.param((40,), False, id="quotients of 32 bits, more bits"),
    pytest.param((60,), False, id="quotients of 64 bits"),
    pytest.param((32, 32), False, id="quotients of a full word"),
    pytest.param((40,), True, id="places, one word"),
    pytest.param((60, 60), False, id="places, two words"),
    pytest.param((60, 60, 3, 60), False, id="places, three words"),
]


def visited_of(bits: tuple[int, ...], *, ids: bool, workers: int = 1) -> Visited:
    cells = [
        Cell(i, f"c{i}", f"c{i}", (), IntSort(0, (1 << b) - 1), 0, 1 << b)
        for i, b in enumerate(bits)
    ]
    return Visited(layout_of(cells), ids=ids, workers=workers)


def some_states(bits: tuple[int, ...], count: int, seed: int, *, close: bool = False) -> Words:
    """States by chance; `close`: all in a small range, as counters make them."""
    chance = np.random.default_rng(seed)
    words = layout_of(
        [Cell(i, "c", "c", (), IntSort(0, 1), 0, 1 << b) for i, b in enumerate(bits)]
    ).words
    widths = [sum(bits)] if words == 1 else [min(64, b) for b in bits][:words]
    return np.stack(
        [
            chance.integers(0, 1 << min(width, 17 if close else 63), count, dtype=np.uint64)
            for width in widths
        ]
    )


def as_set(states: Words) -> set[tuple[int, ...]]:
    return set(zip(*states.tolist(), strict=True))


@pytest.mark.parametrize(("bits", "ids"), CASES)
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32), close=st.booleans())
def test_what_was_entered_is_in_the_log_once(
    bits: tuple[int, ...], ids: bool, seed: int, close: bool
) -> None:
    visited = visited_of(bits, ids=ids)
    expected: set[tuple[int, ...]] = set()
    for part in range(3):
        states = some_states(bits, 400, seed + part, close=close)
        visited.add(np.concatenate((states, states[:, ::2]), axis=1))
        expected |= as_set(states)
        assert visited.count == len(expected)
        assert as_set(visited.states(0, visited.count)) == expected


@pytest.mark.parametrize(("bits", "ids"), some_of(CASES))
@pytest.mark.parametrize("workers", [1, 3])
def test_a_table_that_grows_forgets_and_invents_nothing(
    bits: tuple[int, ...], ids: bool, workers: int
) -> None:
    visited = visited_of(bits, ids=ids, workers=workers)
    states = some_states(bits, 300_000, seed=1)
    before = int(visited.shared[buckets.BITS])
    for part in np.array_split(states, 7, axis=1):
        visited.add(part)
    if visited.kind.storage is not Storage.BITMAP:
        visited.grow()
        visited.grow()
        assert int(visited.shared[buckets.BITS]) > before + 2
    count = visited.count
    assert count == len(as_set(states))
    visited.add(states[:, ::-1])
    assert visited.count == count
    if visited.kind.knows_places:
        places = visited.places(states)
        assert (visited.states(0, count)[:, places] == states).all()


@pytest.mark.parametrize(("bits", "ids"), CASES)
def test_workers_that_enter_the_same_states_at_once_lose_none(
    bits: tuple[int, ...], ids: bool
) -> None:
    visited = visited_of(bits, ids=ids, workers=4)
    states = some_states(bits, 40_000, seed=2)
    while visited.capacity < 50_000:
        visited.grow()
    owns = [np.zeros(OWN_SIZE, dtype=np.int64) for _ in range(4)]
    orders = [np.random.default_rng(i).permutation(states.shape[1]) for i in range(4)]
    given_states = [np.ascontiguousarray(states[:, order].T) for order in orders]
    for own in owns:
        own[SPARE] = -1

    def enter(i: int) -> int:
        own, mine = owns[i], given_states[i]
        return visited.code.enter_all(
            visited.shared.ctypes.data, own.ctypes.data, mine.ctypes.data, mine.shape[0]
        )

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(enter, range(4))) == [0, 0, 0, 0]
    visited.settle(owns)
    assert visited.count == len(as_set(states))
    assert as_set(visited.states(0, visited.count)) == as_set(states)
    if visited.kind.knows_places:
        assert (visited.places(states) >= 0).all()


def test_small_states_take_four_bytes_and_large_ones_their_places() -> None:
    assert kind_for(1, 40, 12).slot == 32
    assert kind_for(1, 45, 12).slot == 64
    assert kind_for(1, 64, 12).storage is Storage.QUOTIENTS
    assert kind_for(2, 80, 12).storage is Storage.PLACES
    assert kind_for(1, 20, 12, ids=True).storage is Storage.PLACES
    assert kind_for(1, 20, 12).storage is Storage.BITMAP
    assert kind_for(1, 30, 12, memory=100 << 20).storage is Storage.QUOTIENTS


@pytest.mark.parametrize("bits", [30, 47, 64])
def test_a_table_begins_within_the_address_space_there_is(
    monkeypatch: pytest.MonkeyPatch, bits: int
) -> None:
    monkeypatch.setattr(visited_module, "_ADDRESS_SPACE", 1 << 21)
    half = bits // 2
    sizes = (1 << half, 1 << bits - half)
    cells = [Cell(i, f"c{i}", f"c{i}", (), IntSort(0, n - 1), 0, n) for i, n in enumerate(sizes)]
    layout = layout_of(cells)
    visited = Visited(layout)
    assert visited.table_bytes <= visited.table.size == 1 << 21
    visited.add(layout.pack([(n - 1, n // 3) for n in (2, 1 << half)]))
    assert visited.count == 2
    with pytest.raises(MemoryError, match="no address space is left"):
        Visited.of_states(layout, np.arange(200_000, dtype=np.uint64)[np.newaxis])

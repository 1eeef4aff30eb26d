"""The table of visited states is exact, whatever the hash does."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from stagewright.checker.explicit import states as states_module
from stagewright.checker.explicit.packing import Words
from stagewright.checker.explicit.states import StateTable

batches = st.lists(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3)), max_size=60), max_size=6
)


def words(rows: list[tuple[int, int]], count: int) -> Words:
    return np.array([[row[w] for row in rows] for w in range(count)], dtype=np.uint64)


@given(batches, st.sampled_from([1, 2]))
def test_equal_states_have_one_id_and_different_ones_never(
    rows: list[list[tuple[int, int]]], count: int
) -> None:
    table = StateTable(count)
    known: dict[tuple[int, ...], int] = {}
    for batch in rows:
        before = table.count
        ids = table.add(words(batch, count)).tolist()
        for row, number in zip(batch, ids, strict=True):
            assert known.setdefault(row[:count], number) == number
        assert sorted(set(known.values())) == list(range(table.count))
        assert before <= table.count
    for state, number in known.items():
        assert tuple(table.states[:, number].tolist()) == state


def test_states_whose_hashes_collide_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        states_module, "_hash", lambda words: np.zeros(words.shape[1], dtype=np.uint64)
    )
    table = StateTable(1)
    ids = table.add(np.array([[7, 8, 7, 9]], dtype=np.uint64))
    assert ids.tolist() == [0, 1, 0, 2]
    assert table.add(np.array([[9, 10, 8]], dtype=np.uint64)).tolist() == [2, 3, 1]


def test_growing_keeps_every_state_and_its_id() -> None:
    table = StateTable(1)
    values = np.arange(300_000, dtype=np.uint64)
    parts = [table.add(part[np.newaxis]) for part in np.split(values, 6)]
    first = np.concatenate(parts)
    assert table.count == 300_000
    assert (table.states[0][first] == values).all()
    assert (table.add(values[np.newaxis, ::-1]) == first[::-1]).all()
    assert table.count == 300_000

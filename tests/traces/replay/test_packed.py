"""What travels is narrow, and the same when it arrives."""

import pickle

import numpy as np
from hypothesis import given, strategies as st

from stagewright.traces.events.column_packing import packed, packed_table, unpacked, unpacked_table
from stagewright.traces.events.string_pool import names_of

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)


@given(st.lists(INT64 | st.integers(-3, 400)), st.integers(1, 4))
def test_any_numbers_arrive_as_they_were(numbers: list[int], width: int) -> None:
    column = np.array(numbers, np.int64)
    assert unpacked(packed(column)).tolist() == numbers
    table = column[: len(numbers) // width * width].reshape(-1, width)
    assert np.array_equal(unpacked_table(packed_table(table)), table)


def test_a_column_is_as_narrow_as_its_values_allow() -> None:
    large = 1 << 60
    for more, size in ((255, 1), (256, 2), (65_535, 2), (65_536, 4), (1 << 32, 8)):
        assert packed(np.array([large, large + more])).more.itemsize == size


@given(st.lists(st.text(max_size=5)), st.data())
def test_texts_arrive_with_no_others(texts: list[str], data: st.DataObject) -> None:
    names = names_of(texts)
    assert pickle.loads(pickle.dumps(names)).texts() == texts
    first = data.draw(st.integers(0, len(texts)))
    some = type(names)(names.data, names.begin[first:], names.end[first:])
    arrived = pickle.loads(pickle.dumps(some))
    assert arrived.texts() == texts[first:]
    assert len(arrived.data) == sum(len(t.encode("utf-8", "surrogatepass")) for t in texts[first:])

"""Columns say what rows and entries say one by one; what was put into a sieve never falls through."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, strategies as st

from stagewright.impl.indexes.bulk import columns
from stagewright.impl.indexes.bulk.columns import (
    EntryColumns,
    by_place,
    changes_of,
    keys_of_entries,
    tablets_of,
)
from stagewright.impl.indexes.bulk.numbers import Entries, keys_of
from stagewright.impl.indexes.bulk.sieve import Sieve
from stagewright.impl.indexes.processes.admission import LARGEST
from stagewright.impl.indexes.schema import (
    EntryChange,
    IndexInfo,
    by_tablet,
    entry_key,
    row_key,
    tablet_of,
)
from stagewright.impl.indexes.splits.tablet_map import TabletMap, TabletMaps
from stagewright.machines.yugabytedb.indexes.index_states import Permission

numbers = st.integers(-3, 3) | st.integers(-LARGEST, LARGEST)
rows = st.dictionaries(numbers, st.dictionaries(st.sampled_from(["v", "class", "w2"]), numbers))
AT = Permission.do_backfill
INDEXES = (
    IndexInfo(3, "i", "v", False, AT),
    IndexInfo(4, "u", "class", True, AT),
    IndexInfo(5, "j", "v", True, AT),
)


@given(rows=rows, tablets=st.integers(1, 5), cut=st.integers(0, 5), packaged=st.booleans())
def test_entries_of_pages_are_those_of_their_rows(
    rows: dict[int, dict[str, int]], tablets: int, cut: int, packaged: bool
) -> None:
    keys = sorted(rows)
    found = EntryColumns(tablets)
    with pytest.MonkeyPatch.context() as patch:
        if not packaged:
            patch.setattr(columns, "_decoder", lambda names: lambda t: columns._decoded(t, names))
        for some in (keys[:cut], keys[cut:]):
            stored = b"".join(row_key(k) for k in some)
            texts = [json.dumps(rows[k]).encode() for k in some]
            found.add(keys_of(stored), texts, INDEXES)
    expected = by_tablet(
        (
            EntryChange(i.number, i.unique, entry_key(i.unique, rows[k][i.column], k), k)
            for k in keys
            for i in INDEXES
            if i.column in rows[k]
        ),
        TabletMaps(tablets),
    )
    said = {(place, e.index): tuple(changes_of(e)) for place, e in found.entries()}
    assert {place: some for (place, _), some in said.items()} == expected
    assert len(said) == len(expected)


@given(values=st.lists(numbers), unique=st.booleans(), tablets=st.integers(1, 9))
def test_keys_and_tablets_are_those_of_one_entry(
    values: list[int], unique: bool, tablets: int
) -> None:
    array = np.array(values, np.int64)
    expected = [entry_key(unique, v, r) for v, r in zip(values, values[::-1], strict=True)]
    assert keys_of_entries(unique, array, array[::-1].copy()) == expected
    assert tablets_of(array, tablets).tolist() == [tablet_of(row_key(v), tablets) for v in values]


@given(values=st.lists(numbers, min_size=1), halved=st.lists(st.integers(0, 9), max_size=4))
def test_entries_go_to_the_tablets_that_others_have_split_into(
    values: list[int], halved: list[int]
) -> None:
    tablets = TabletMap(2, (), "index3")
    for number in halved:
        split = tablets.halves(number) if number in tablets.ranges else None
        tablets = tablets if split is None else tablets.after(split)
    array = np.array(values, np.int64)
    found = dict(by_place(Entries(3, True, array.tobytes(), array.tobytes()), tablets))
    assert {p: e.columns()[0].tolist() for p, e in found.items()} == {
        place: [v for v in values if tablets.place_of(row_key(v)) == place]
        for place in {tablets.place_of(row_key(v)) for v in values}
    }


@given(batches=st.lists(st.lists(numbers), max_size=4), others=st.lists(numbers, max_size=20))
def test_a_sieve_holds_all_that_was_put_in(batches: list[list[int]], others: list[int]) -> None:
    sieve, seen = Sieve(), set[int]()
    for batch in batches:
        sieve.add(np.array(batch, np.int64))
        seen.update(batch)
        asked = [*seen, *others]
        held = sieve.holds(np.array(asked, np.int64)).tolist()
        assert all(h for h, value in zip(held, asked, strict=True) if value in seen)


def test_a_sieve_holds_few_others() -> None:
    """Each one that it holds is looked up in the store."""
    sieve = Sieve()
    sieve.add(np.arange(0, 2_000_000, 2, dtype=np.int64))
    assert np.count_nonzero(sieve.holds(np.arange(1, 200_001, 2, dtype=np.int64))) < 1_000

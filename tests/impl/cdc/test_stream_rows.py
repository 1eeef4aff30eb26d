"""The streams of tablets: one for each, where it lies, in sets of which each begins after the one before."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from stagewright.impl.catalog.columns import Rows, microseconds_in
from stagewright.impl.catalog.stream_rows import STREAMS, stream_set, stream_sets
from stagewright.impl.cdc.metadata import Metadata
from stagewright.impl.ring.tablets import Tablet, TabletMap

TABLE = "ks.t"


def tablets(count: int) -> TabletMap:
    return TabletMap((Tablet(()),) * count)


def ends(count: int) -> list[int]:
    return [tablets(count).last_token(i) for i in range(count)]


def with_set(known: Rows, count: int, wanted: str) -> Rows:
    made = stream_set(TABLE, ends(count), wanted, known)
    assert made.table == STREAMS
    assert made.columns is not None
    return {**known, made.key: dict(made.columns)}


@given(st.integers(0, 6), st.integers(-(1 << 63), (1 << 63) - 1))
def test_a_token_has_the_stream_that_lies_in_its_tablet(bits: int, token: int) -> None:
    ((_, description),) = stream_sets(TABLE, with_set({}, 1 << bits, "5.000"))
    layout = tablets(1 << bits)
    assert layout.tablet_of(description.stream(token).token) == layout.tablet_of(token)


def test_a_set_begins_after_the_one_before_whatever_the_clock_says() -> None:
    rows = with_set(with_set(with_set({}, 2, "9.500"), 4, "3.000"), 2, "20.000")
    found = [*stream_sets(TABLE, rows)]
    assert [start for start, _ in found] == [9_500_000, 9_501_000, 20_000_000]
    assert [len(d.ranges) for _, d in found] == [2, 4, 2]
    streams = [s for _, d in found for r in d.ranges for s in r.streams]
    assert len({*streams}) == len(streams), "no two sets have a stream in common"
    assert Metadata(found).operating(9_500_999) == 0
    assert Metadata(found).operating(9_501_000) == 1


def test_the_sets_of_another_table_are_not_its_own() -> None:
    rows = with_set({}, 2, "1.000")
    assert [*stream_sets("ks.u", rows)] == []


@pytest.mark.parametrize("text", ["7", "7.1", "7.12"])
def test_times_are_kept_to_the_millisecond(text: str) -> None:
    ((start, _),) = stream_sets(TABLE, with_set({}, 1, text))
    assert start == microseconds_in(text)

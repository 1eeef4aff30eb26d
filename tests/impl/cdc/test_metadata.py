"""Which stream a write goes to, at each edge of the three windows; log rows are read as they were written."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, strategies as st

from stagewright.impl.cdc.metadata import Metadata, Refused, Window
from stagewright.impl.cdc.rows import UNKNOWN, Change, Image, change_of, start_of_time, stored
from stagewright.machines.scylladb.cdc.cdc_streams import Sharding, generate
from stagewright.spec.errors import InputError

WINDOW = Window(leeway=5, horizon=60)
OLD, NEW = (
    generate([(-100, Sharding(1)), (100, Sharding(2))], Random(1)),
    generate([(-100, Sharding(1)), (0, Sharding(1)), (100, Sharding(2))], Random(2)),
)
METADATA = Metadata([(100, NEW), (0, OLD)])
TOKEN = -50


@pytest.mark.parametrize(
    ("timestamp", "now", "of"),
    [
        (0, 3, OLD),
        (99, 99, OLD),
        (99, 96, OLD),
        (100, 96, NEW),  # the next generation is known, and its time is less than the leeway away
        (101, 96, "too far ahead"),
        (100, 100, NEW),
        (99, 103, OLD),  # the generation has ended, less than the leeway ago
        (98, 103, "has ended"),
        (140, 200, NEW),
        (139, 200, "too old"),
        (-1, 3, "no CDC generation operated"),
    ],
)
def test_a_write_goes_to_the_generation_that_operates_at_its_timestamp_or_nowhere(
    timestamp: int, now: int, of: object
) -> None:
    found = METADATA.stream(timestamp, TOKEN, now, WINDOW)
    if isinstance(of, str):
        assert isinstance(found, Refused)
        assert of in found.reason
    else:
        assert of in (OLD, NEW)
        assert found == (OLD if of is OLD else NEW).stream(TOKEN)


CHANGES = st.builds(
    Change,
    st.binary(min_size=16, max_size=16),
    st.integers(0, (1 << 63) - 1),
    st.binary(max_size=12),
    st.none() | st.binary(max_size=9),
    st.none() | st.just(UNKNOWN) | st.builds(Image, st.none() | st.binary(max_size=9)),
)


@given(CHANGES)
def test_a_change_is_read_as_it_was_written(change: Change) -> None:
    assert change_of(*stored(change)) == change


@given(CHANGES, CHANGES)
def test_a_stream_is_stored_in_the_order_of_time(one: Change, other: Change) -> None:
    moved = Change(one.stream, other.timestamp, other.key, other.value)
    if one.timestamp < moved.timestamp:
        assert stored(one)[0] < start_of_time(one.stream, moved.timestamp) <= stored(moved)[0]


@pytest.mark.parametrize(("key", "value"), [(b"", b"\x01"), (b"x" * 31, b"\x01"), (b"x" * 40, b"")])
def test_what_is_no_change_is_refused(key: bytes, value: bytes) -> None:
    with pytest.raises(InputError, match="no change"):
        change_of(key, value)

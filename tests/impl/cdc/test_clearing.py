"""What is cleared of generations and sets of streams: nothing that a write or a reader may need."""

from __future__ import annotations

import pytest

from stagewright.impl.catalog.catalog import Catalog
from stagewright.impl.catalog.columns import ALL, GENERATIONS, TABLES, TIMESTAMPS, TOPOLOGY
from stagewright.impl.catalog.stream_rows import STREAMS
from stagewright.impl.cdc.clearing import obsolete
from stagewright.impl.cdc.rows import log_of
from stagewright.impl.group0 import Mutation

SECOND = 1_000_000  # microseconds
LATE, CLOCKS = 3 * SECOND, SECOND


def catalog(*, ttl: int | None, unpublished: tuple[str, ...] = ()) -> Catalog:
    """Generations begin at 10, 20 and 30 seconds; a table of the ring is logged, unless `ttl` is None."""
    starts = {"10.000": "a", "20.000": "b", "30.000": "c"}
    found = Catalog()
    static = {
        "committed_cdc_generations": [[t, g] for t, g in starts.items()],
        "unpublished_cdc_generations": [[t, g] for t, g in starts.items() if g in unpublished],
        "new_cdc_generation_data_uuid": None,
        "transition_state": None,
        "version": 1,
        "fence_version": 1,
        "session": None,
    }
    found.mutate([Mutation(TOPOLOGY, ALL, static)])
    for start, generation in starts.items():
        columns = {"streams": ["0x" + "00" * 16], "ignore_msb": 12}
        found.mutate([Mutation(GENERATIONS, (generation, "0"), columns)])
        if generation not in unpublished:
            found.mutate([Mutation(TIMESTAMPS, (start,), {"generation": generation})])
    if ttl is not None:
        log = {"replicas": 3, "tablets": 0, "log_of": "t", "preimage": False, "ttl": ttl}
        found.mutate([Mutation(TABLES, ("t",), {"replicas": 3, "tablets": 0})])
        found.mutate([Mutation(TABLES, (log_of("t"),), log)])
    return found


@pytest.mark.parametrize(
    ("seconds", "cleared"), [(19, ()), (22, ()), (23, ("a",)), (32, ("a",)), (33, ("a", "b"))]
)
def test_a_generation_is_cleared_when_the_next_one_has_operated_for_long_enough(
    seconds: int, cleared: tuple[str, ...]
) -> None:
    found = obsolete(catalog(ttl=0), seconds * SECOND, LATE, CLOCKS)
    assert found.generations == cleared
    assert found.rows == ()  # the log keeps all changes, so readers need all streams


def test_what_waits_to_be_published_is_kept_with_all_that_follows() -> None:
    found = obsolete(catalog(ttl=0, unpublished=("b", "c")), 99 * SECOND, LATE, CLOCKS)
    assert found.generations == ()


def test_readers_have_the_streams_of_what_is_kept() -> None:
    kept = catalog(ttl=60_000)
    assert obsolete(kept, 80 * SECOND, LATE, CLOCKS).rows == ()  # clocks may differ
    assert obsolete(kept, 81 * SECOND, LATE, CLOCKS).rows == (
        (TIMESTAMPS, ("10.000",)),
        (GENERATIONS, ("a", "0")),
    )


def test_without_logs_nothing_is_kept_but_what_writes_may_need() -> None:
    found = obsolete(catalog(ttl=None), 40 * SECOND, LATE, CLOCKS)
    assert found.generations == ("a", "b")
    assert {key for table, key in found.rows if table == GENERATIONS} == {("a", "0"), ("b", "0")}


def test_the_data_of_a_generation_that_was_given_up_goes() -> None:
    kept = catalog(ttl=0)
    kept.mutate([Mutation(GENERATIONS, ("given up", "0"), {"streams": [], "ignore_msb": 12})])
    assert obsolete(kept, 0, LATE, CLOCKS).rows == ((GENERATIONS, ("given up", "0")),)
    kept.mutate([Mutation(TOPOLOGY, ALL, {"new_cdc_generation_data_uuid": "given up"})])
    assert not obsolete(kept, 0, LATE, CLOCKS)


def test_sets_of_streams_of_tablets_go_when_their_changes_have_expired() -> None:
    kept = catalog(ttl=None)
    log = {"replicas": 3, "tablets": 0, "log_of": "t", "preimage": False, "ttl": 60_000}
    kept.mutate([Mutation(TABLES, ("t",), {"replicas": 3, "tablets": 1})])
    kept.mutate([Mutation(TABLES, (log_of("t"),), log)])
    for start in ("10.000", "20.000"):
        kept.mutate([Mutation(STREAMS, ("t", start), {"streams": []})])
    sets = [(STREAMS, ("t", "10.000"))]
    assert [r for r in obsolete(kept, 80 * SECOND, LATE, CLOCKS).rows if r[0] == STREAMS] == []
    assert [r for r in obsolete(kept, 81 * SECOND, LATE, CLOCKS).rows if r[0] == STREAMS] == sets

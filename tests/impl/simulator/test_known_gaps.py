"""What the older profiles leave open happens in their runs, and not in the newest one."""

from collections.abc import Callable

import pytest

from stagewright.impl.simulator.counters import Report
from stagewright.impl.simulator.oracle import Promise
from stagewright.machines.scylladb.tablets.tablet_stages import Kind

BUSY = {
    "migrations": 6,
    "writes": 400,
    "gap_ms": (0, 2),
    "keys_a_tablet": 20,
    "chunk_rows": 1,
    "kinds": (Kind.migration,),
}
SEEDS = 12


def broken(report: Report) -> set[Promise]:
    return {breach.promise for breach in report.breaches}


def test_seed_leaves_rows_behind_because_its_cleanup_stage_cleans_nothing(
    small_run: Callable[..., Report],
) -> None:
    assert broken(small_run(profile="seed")) == {Promise.rest}


def test_seed_has_no_way_back_from_a_replica_that_is_gone(small_run: Callable[..., Report]) -> None:
    report = small_run("dead@streaming", profile="seed", nodes=4, migrations=1, writes=20)
    assert Promise.ends in broken(report)
    assert any("still in streaming" in b.text for b in report.breaches)


def test_2025_4_cleans_up_a_target_that_is_still_written_to(
    small_run: Callable[..., Report],
) -> None:
    """Scylladb #26512: no barrier before the cleanup of the pending replica."""
    faults = "unwanted@streaming,delay"
    for seed in range(SEEDS):
        found = broken(small_run(faults, seed=seed, profile="scylla-2025.4", **BUSY))
        if found:
            assert found == {Promise.storage}
            assert small_run(faults, seed=seed, profile="scylla-2026.2", **BUSY).kept
            return
    pytest.fail(f"not seen in {SEEDS} seeds")

"""What an older release leaves open happens in its runs, and not in those of the newest one."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from stagewright.impl.simulator.database.plan import Plan
from stagewright.impl.simulator.database.run import run
from stagewright.impl.simulator.database.script import parse_script
from stagewright.impl.simulator.database.weather import parse_faults
from stagewright.impl.simulator.database.workload import parse_workload
from stagewright.spec.errors import InputError

GIVEN_UP = Plan(
    nodes=3,
    replicas=2,
    script=parse_script("table t tablets 8 rf 2; write 1500; decommission n1"),
    faults=parse_faults("action@tablet.streaming,delay=0.6"),
    workload=parse_workload("clients=10,keys=60,gap=0-2,reads=0.05")[0],
)
"""Streams break while writes are late, and the node that tablets leave is asked to leave."""
SEEDS = 8


def test_2025_4_cleans_up_a_target_that_is_still_written_to() -> None:
    """Scylladb #26512: no barrier before the cleanup of the pending replica."""
    for seed in range(SEEDS):
        refused = run(replace(GIVEN_UP, seed=seed, profile="scylla-2025.4")).refused
        if refused:
            assert all("there are no rows" in r or "there is storage" in r for r in refused)
            assert run(replace(GIVEN_UP, seed=seed)).kept
            return
    pytest.fail(f"not seen in {SEEDS} seeds")


def test_the_page_names_a_seed_that_shows_it() -> None:
    """Whatever changes the order of events changes which seeds do."""
    page = (Path(__file__).parents[4] / "docs/language/simulated-clusters.md").read_text("utf-8")
    (seed,) = re.findall(r"stagewright run --seed (\d+) --profile scylla-2025.4", page)
    shown = run(replace(GIVEN_UP, seed=int(seed), profile="scylla-2025.4")).refused
    assert shown, f"take another seed below {SEEDS} in docs/language/simulated-clusters.md"


def test_the_design_of_2023_has_no_sessions_for_nodes_to_stream_in() -> None:
    with pytest.raises(InputError, match="nodes stream in sessions"):
        run(Plan(profile="seed"))

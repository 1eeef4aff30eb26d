"""What a run records is a run of the definition, complete and in order."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from stagewright.impl.simulator.counters import Report

Judge = Callable[[Path, str], str | None]


@pytest.mark.parametrize("profile", ["seed", "scylla-2025.4", "scylla-2026.2"])
def test_reference_interpreter_explains_every_event(
    profile: str, small_run: Callable[..., Report], judged: Judge
) -> None:
    report = small_run("all", seed=2, profile=profile, nodes=4, tablets=3, migrations=6)
    assert report.trace is not None
    assert judged(report.trace, profile) is None


def test_every_step_is_recorded_with_where_it_was_taken(small_run: Callable[..., Report]) -> None:
    report = small_run("failover", seed=1, migrations=6)
    assert report.trace is not None
    events = [json.loads(line) for line in report.trace.read_text("utf-8").splitlines()]
    steps = [e for e in events if e["action"] is not None]
    assert len(steps) == sum(report.counters.steps.values()) > 50
    assert {e["node"] for e in steps} <= {"node0", "node1", "node2"}
    for tablet in ("tablet0", "tablet1"):
        own = [e for e in events if e["entity"] == tablet]
        assert [e["seq"] for e in own] == list(range(len(own)))
        assert own[0]["action"] is None
        assert own[-1]["end"] is True
    assert {e["trace"] for e in events} == {"run-1"}
    assert {e["machine"] for e in events} == {"TabletMigration"}


def test_trace_that_leaves_out_a_step_is_not_explained(
    small_run: Callable[..., Report], judged: Judge, tmp_path: Path
) -> None:
    report = small_run(seed=1)
    assert report.trace is not None
    lines = report.trace.read_text("utf-8").splitlines()
    lines.remove(next(line for line in lines if '"pass_barrier"' in line))
    shortened = tmp_path / "shortened.jsonl"
    shortened.write_text("\n".join(lines))
    assert "not (barrier done)" in str(judged(shortened, ""))

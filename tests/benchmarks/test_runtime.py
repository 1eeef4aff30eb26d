"""The runtime's benchmark measures what it says: the same steps, taken by both, at the sizes it prints."""

import argparse
from pathlib import Path

from tests.benchmarks.runtime.cases import CASES, recorded
from tests.benchmarks.runtime.suite import RuntimeReport, names, run

from stagewright.impl.runtime import Program
from stagewright.spec.define import define


def test_cases_have_the_sizes_that_they_name() -> None:
    assert names() == ["partitions", "views", "backfill", "topology", "migrations"]
    sizes = {c.name: (len(c.entities), c.instances) for c in CASES}
    assert sizes["partitions"] == (1024, 1)
    assert sizes["views"] == (16, 100)


def test_a_walk_is_the_same_each_time_and_goes_somewhere() -> None:
    case = next(c for c in CASES if c.name == "migrations")
    program = Program(define(case.definition()))
    walk = recorded(case, program)
    assert walk == recorded(case, program)
    assert len(walk) == case.steps
    assert len({step.action for _, step in walk}) > 10


def test_figures_are_reported(tmp_path: Path) -> None:
    said: list[str] = []
    args = argparse.Namespace(only=["migrations"], repeats=1, quick=True)
    report = run(args, tmp_path, said.append)
    assert said == ["tablet-migration, 1 tablet"]
    assert "slowest step" in report.text()
    assert isinstance(report, RuntimeReport)
    (figures,) = report.figures
    assert figures.steps == 5_000
    assert figures.speed > figures.interpreted
    assert set(report.record({}, "runtime")) >= {"suite", "figures"}

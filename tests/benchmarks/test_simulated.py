"""The benchmark of simulated runs counts whole runs, and no run that broke a promise."""

from __future__ import annotations

import pytest
from tests.benchmarks.simulated import __main__ as benchmark

from stagewright.impl.simulator.database.run import run


def test_each_row_has_the_time_of_a_run_and_its_inverse(capsys: pytest.CaptureFixture[str]) -> None:
    benchmark.main(["--runs", "2"])
    _, *rows = capsys.readouterr().out.splitlines()
    assert len(rows) == len(benchmark.ROWS)
    for row in rows:
        each, inverse = map(float, row.split()[-2:])
        assert each * inverse == pytest.approx(1, rel=0.05)


def test_the_measured_run_writes_what_it_says_and_is_checked() -> None:
    plan = benchmark.plan_of(1, "none", "")
    report = run(plan, records=False)
    assert report.counted["writes acknowledged"] == 200
    assert report.counted["reads checked"] > 0
    assert (report.breaches, report.refused) == ([], [])

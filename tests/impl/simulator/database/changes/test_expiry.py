"""Log rows expire; a consumer who is behind by less reads each change, one who is behind by more learns that some are gone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.impl.simulator.database.changes.test_cdc_wrong_builds import BEHIND, EXPIRING
from tests.thorough import some_of

from stagewright.impl.simulator.database.run import run
from stagewright.impl.simulator.database.weather import parse_faults


@pytest.mark.parametrize("seed", some_of([0, 1, 2]))
def test_who_keeps_up_reads_each_change_though_old_rows_go(seed: int) -> None:
    report = run(replace(EXPIRING, seed=seed, faults=parse_faults("crash=3,skew=40")))
    assert (report.breaches, report.refused) == ([], [])
    assert (
        report.counted["changes read from the log"] >= report.counted["writes acknowledged"] > 250
    )


def test_who_is_behind_goes_on_with_what_is_kept() -> None:
    report = run(replace(BEHIND, seed=1))
    assert (report.breaches, report.refused) == ([], [])
    assert 40 <= report.counted["changes read from the log"] < 100

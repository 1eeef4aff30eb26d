"""Servers write logs in YugabyteDB's form: `validate` accepts those of sound runs, and refuses what a wrong build writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.thorough import by_turns, examples

from stagewright.commands import run_command_line
from stagewright.commands.campaigning.logs import YUGABYTE, check_logs
from stagewright.impl.indexes.campaign.drawing import draw
from stagewright.impl.indexes.defects import Defect
from stagewright.impl.indexes.simulated.run import LOGS, Run, run

SHOWN: dict[Defect, tuple[int, str]] = {
    Defect.tablets_have_times_of_their_own: (0, "LoggedReadTime: job1"),
}
"""A seed, and what the definitions say of its logs."""


def checked(seed: int, folder: Path, *defects: Defect) -> tuple[int, str]:
    """How many events the logs of a run tell, and what is wrong."""
    made = Run(draw(seed).plan(frozenset(defects)))
    made.report()
    return check_logs(made.logs.write(folder), YUGABYTE)


def test_the_logs_of_sound_runs_are_accepted(tmp_path: Path) -> None:
    total = 0
    for seed in range(examples(24)):
        events, problem = checked(seed, tmp_path / str(seed))
        assert problem == "", seed
        total += events
    assert total > 200


@pytest.mark.parametrize("defect", by_turns(SHOWN), ids=lambda d: d.name)
def test_the_logs_of_a_wrong_build_are_refused(defect: Defect, tmp_path: Path) -> None:
    seed, says = SHOWN[defect]
    assert says in checked(seed, tmp_path, defect)[1]


def test_validate_reads_the_logs_of_all_servers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    run(draw(0).plan(), right)
    run(draw(0).plan(frozenset({Defect.tablets_have_times_of_their_own})), wrong)
    names = {path.name.rpartition("-")[0] for path in (right / LOGS).iterdir()}
    assert names == {"yb-master", "yb-tserver"}
    assert run_command_line(["validate", str(right / LOGS), "--engine", "embedded"]) == 0
    capsys.readouterr()
    assert run_command_line(["validate", str(wrong / LOGS), "--engine", "embedded"]) == 1
    assert "no other time is chosen for the job" in capsys.readouterr().out

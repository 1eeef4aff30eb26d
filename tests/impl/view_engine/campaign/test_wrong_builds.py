"""Each known way to build the engine wrongly is caught by the campaign's oracle, and by its trace alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.thorough import by_turns

from stagewright.commands import run_command_line
from stagewright.commands.campaigning.logs import check_logs
from stagewright.impl.view_engine.campaign.runs import Run
from stagewright.impl.view_engine.campaign.trial import attempt
from stagewright.impl.view_engine.defects import Defect, built_with

SOON = {  # within so few runs that every test run can afford it
    Defect.merge_ignores_order,
    Defect.merge_keeps_equal_groups_apart,
    Defect.merge_skips_at_each_node,
    Defect.merge_limits_nodes_to_the_page,
    Defect.node_is_left_out,
    Defect.repeated_batch_goes_on,
    Defect.outdated_is_ignored,
    Defect.old_rows_stay,
    Defect.back_index_keeps_deleted,
    Defect.stale_false_does_not_wait,
    Defect.compaction_forgets_batches,
    Defect.compaction_misses_new_updaters,
    Defect.cleanup_ends_at_once,
    Defect.rollback_keeps_the_trees,
}
NOT_FROM_0 = {Defect.rollback_keeps_the_trees: 12}
"""Seeds to begin with, where the first few runs have nothing that the defect could show in."""

BY_LOG = {Defect.cleanup_is_not_waited_for}  # `tests/impl/view_engine/log` shows it
IN_A_TEST_OF_ITS_OWN = {Defect.rollback_looks_at_one_partition}
"""It takes two rollbacks, a cleanup between them and a header before both: no run of 600 has had that."""
FIRST_RUN_WITH_A_WRONG_TRACE = {
    Defect.merge_keeps_equal_groups_apart: 2,
    Defect.late_batch_goes_on: 4,
    Defect.pending_is_forgotten: 2,
    Defect.rows_in_cleanup_are_returned: 2,
    Defect.positions_compare_as_lists: 14,
    Defect.rollback_forgets_what_was_there: 140,
    Defect.compaction_misses_the_initial_build: 4,
    Defect.transfer_does_not_start: 2,
    Defect.transfer_is_answered_twice: 9,
    Defect.replica_is_not_paused: 2,
    Defect.replica_is_not_cleaned_up: 2,
}
"""Seeds, where the trace of neither the first nor the second run is wrong."""
BY_TRACE = [d for d in Defect if d not in BY_LOG | IN_A_TEST_OF_ITS_OWN]


def trace_is_wrong(defect: Defect, seed: int, folder: Path) -> bool:
    """Whether a step of a run is refused, however the run ends and whatever its answers are."""
    folder.mkdir()
    made = Run(seed, folder)
    with built_with(defect):
        made.end_somehow()
    return bool(made.recording.problems)


def caught(defect: Defect, runs: int) -> int | None:
    """The first seed whose run fails."""
    first = NOT_FROM_0.get(defect, 0)
    for seed in range(first, first + runs):
        if attempt(seed, check_logs, [defect]).failures:
            return seed
    return None


@pytest.mark.parametrize("defect", by_turns(defect for defect in Defect if defect in SOON))
def test_wrong_build_is_caught_soon(defect: Defect) -> None:
    assert caught(defect, 6) is not None


@pytest.mark.thorough
@pytest.mark.parametrize(
    "defect", [defect for defect in Defect if defect not in SOON | IN_A_TEST_OF_ITS_OWN]
)
def test_wrong_build_is_caught(defect: Defect) -> None:
    assert caught(defect, 300) is not None


@pytest.mark.parametrize(
    "defect",
    [
        pytest.param(defect, marks=() if number % 4 == 0 else pytest.mark.thorough)
        for number, defect in enumerate(BY_TRACE)
    ],
)
def test_wrong_build_is_caught_by_its_trace_alone(defect: Defect, tmp_path: Path) -> None:
    first = FIRST_RUN_WITH_A_WRONG_TRACE.get(defect, 0)
    assert any(trace_is_wrong(defect, s, tmp_path / str(s)) for s in range(first, first + 20))


def test_validate_accepts_the_trace_of_a_run_and_refuses_that_of_a_wrong_build(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("right", "wrong"):
        (tmp_path / name).mkdir()
    right, wrong = Run(3, tmp_path / "right"), Run(0, tmp_path / "wrong")
    assert right.end_somehow() is None
    files = [str(path) for path in right.recording.write(tmp_path / "right", "run 3")]
    assert run_command_line(["validate", *files, "--engine", "embedded"]) == 0
    with built_with(Defect.old_rows_stay):
        wrong.end_somehow()
    files = [str(path) for path in wrong.recording.write(tmp_path / "wrong", "run 0")]
    capsys.readouterr()
    assert run_command_line(["validate", *files, "--engine", "embedded"]) == 1
    assert "the rows that the documents had before are removed" in capsys.readouterr().out


def test_defects_are_off_outside() -> None:
    with built_with(Defect.old_rows_stay):
        pass
    trial = attempt(0, check_logs)
    assert (trial.failures, trial.counts["answers"] > 0) == ((), True)

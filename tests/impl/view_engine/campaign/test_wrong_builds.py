"""Each known way to build the engine wrongly is caught by the campaign's oracle."""

from __future__ import annotations

import pytest
from tests.impl.view_engine.campaign.runs import run

from stagewright.impl.view_engine.cluster import indexes
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


def caught(defect: Defect, runs: int) -> int | None:
    """The first seed whose run fails."""
    first = NOT_FROM_0.get(defect, 0)
    for seed in range(first, first + runs):
        indexes._due_steps.clear()
        try:
            with built_with(defect):
                run(seed)
        except Exception:  # noqa: BLE001 - however it shows
            return seed
    return None


@pytest.mark.parametrize("defect", [defect for defect in Defect if defect in SOON])
def test_wrong_build_is_caught_soon(defect: Defect) -> None:
    assert caught(defect, 6) is not None


@pytest.mark.thorough
@pytest.mark.parametrize("defect", [defect for defect in Defect if defect not in SOON])
def test_wrong_build_is_caught(defect: Defect) -> None:
    assert caught(defect, 300) is not None


def test_defects_are_off_outside() -> None:
    with built_with(Defect.old_rows_stay):
        pass
    assert run(0).answers > 0

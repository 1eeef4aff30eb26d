"""Rows on the disks of replicas show a promise that is broken before anybody reads them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.impl.simulator.database.test_defects import CHANGES, GROWN, TABLETS

from stagewright.impl.node.defects import Defect
from stagewright.impl.simulator.database.plan import Plan
from stagewright.impl.simulator.database.run import run

D = Defect
WRITTEN = replace(GROWN, workload=replace(GROWN.workload, reads=0.0))
QUORUM, STREAMED, PENDING = "a quorum of", "has streamed", "were pending"
SHOWN = (
    (D.one_answer_less, WRITTEN, QUORUM),
    (D.pending_is_not_awaited, CHANGES, QUORUM),
    (D.pending_is_not_awaited, CHANGES, PENDING),
    (D.writes_skip_pending, CHANGES, PENDING),
    (D.writes_use_the_new_ring_early, CHANGES, QUORUM),
    (D.streaming_is_skipped, WRITTEN, STREAMED),
    (D.streaming_misses_rows, WRITTEN, STREAMED),
    (D.tombstones_are_not_streamed, WRITTEN, STREAMED),
    (D.rows_between_chunks_are_lost, WRITTEN, STREAMED),
    (D.tablet_streaming_is_skipped, TABLETS, STREAMED),
)


def breaches(plan: Plan, *defects: Defect) -> list[str]:
    return run(replace(plan, defects=frozenset(defects))).breaches


@pytest.mark.parametrize(
    ("defect", "plan", "says"), SHOWN, ids=[f"{d.name}: {s}" for d, _, s in SHOWN]
)
def test_a_wrong_build_is_noticed_by_its_rows(defect: Defect, plan: Plan, says: str) -> None:
    assert any(says in text for text in breaches(plan, defect))


def test_of_each_key_it_is_said_once_that_a_quorum_lacks_it() -> None:
    found = [text for text in breaches(WRITTEN, D.one_answer_less) if QUORUM in text]
    assert len({text.partition(" at ")[0] for text in found}) == len(found) > 1


def test_a_sound_build_has_each_row_on_enough_replicas() -> None:
    for seed in range(3):
        assert breaches(replace(WRITTEN, seed=seed)) == []

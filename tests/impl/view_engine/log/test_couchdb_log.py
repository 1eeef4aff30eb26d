"""`couchdb.log` as the engine writes it is read and evaluated as Couchbase's own is."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.traces.readers.evaluated_log import EvaluatedLog, evaluated

from stagewright.commands.campaigning.logs import check_logs
from stagewright.impl.view_engine import View, ViewEngine, doc, emit
from stagewright.impl.view_engine.campaign.runs import Run
from stagewright.impl.view_engine.defects import Defect, built_with
from stagewright.impl.view_engine.file.header import IndexHeader
from stagewright.impl.view_engine.log import texts

BY_LOG_ALONE = {Defect.cleanup_is_not_waited_for: 2, Defect.rollback_keeps_the_trees: 2}
"""Wrong builds, and a run whose log shows them, whatever its answers are."""


def log_of_a_life(folder: Path) -> EvaluatedLog:
    log = folder / "couchdb.log"
    for _ in range(2):
        with ViewEngine(folder / "data", partitions=4, log=log) as engine:
            engine.put_many({f"d{n}": {"n": n} for n in range(50)})
            engine.define("d", {"v": View(emit(doc.n), "_count")})
            engine.query("d", "v")
            group = engine.group("d")
            group.set_partition_states(passive=[1], cleanup=[0])
            group.mark_unindexable([1])
            group.set_partition_states(active=[0])  # once it is clean
            assert group.clean_up()
            group.mark_indexable([1])
            group.set_partition_states(active=[1], cleanup=[2])
            engine.compact("d")
            group.set_partition_states(active=[2])
    return evaluated("couchbase-log", [log])


def test_every_record_of_an_index_is_read_and_accepted(tmp_path: Path) -> None:
    found = log_of_a_life(tmp_path)
    assert not found.wrong
    assert not found.reasons
    actions = [action for _, action, _ in found.recorded("PartitionStates")]
    assert {"set_active", "set_passive", "set_cleanup", "clean"} <= {*actions}
    assert {"mark_unindexable", "mark_indexable", "apply_pending_transition"} <= {*actions}


def test_record_says_where_what_is_paused_stays() -> None:
    header = IndexHeader(b"", 8, (), active=0b1011, seqs={0: 5, 1: 7}, unindexable_seqs={3: 17})
    text = texts.updated(header, header, [5, 6, 7])
    assert "active partitions before:    [0-1,3]\n" in text
    assert "unindexable partitions:      [{3,17}]\n" in text
    assert "replica partitions after:    [5-7]\n" in text


@pytest.mark.parametrize(("defect", "seed"), BY_LOG_ALONE.items())
def test_wrong_build_is_caught_by_its_log_alone(defect: Defect, seed: int, tmp_path: Path) -> None:
    made = Run(seed, tmp_path)
    with built_with(defect):
        made.end_somehow()
    events, problem = check_logs(made.write_logs(tmp_path))
    assert events > 0
    assert "no run explains" in problem

"""An index goes back to a state in which nobody gets back what was lost before."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from stagewright.impl.view_engine.defects import Defect, built_with
from stagewright.impl.view_engine.documents.changes import RollbackError
from stagewright.impl.view_engine.file.header import FailoverLog, IndexHeader
from stagewright.impl.view_engine.file.index_file import Snapshot
from stagewright.impl.view_engine.group.rollback import rolled_back
from stagewright.impl.view_engine.trace.index_trace import IndexTrace
from stagewright.impl.view_engine.trace.trace import Trace

OLD: FailoverLog = ((b"old", 0),)
NEW: FailoverLog = ((b"new", 1), (b"old", 0))  # partition 0 went back to 1


def header(first: int, second: int, log: FailoverLog, cleanup: int = 0) -> IndexHeader:
    seqs: Mapping[int, int] = {0: first, 1: second}
    logs: Mapping[int, FailoverLog] = {0: log, 1: OLD}
    return IndexHeader(
        b"", 3, (None,), active=0b11, cleanup=cleanup, seqs=seqs, partition_versions=logs
    )


def after_two_rollbacks() -> tuple[IndexHeader, IndexHeader]:
    """Partition 0 went back from 8 to 1, with something to clean up; now partition 1 goes back from 9 to 5."""
    now = header(2, 9, NEW)
    then = [header(1, 9, NEW, cleanup=0b100), header(8, 3, OLD), header(1, 1, OLD)]
    found = [Snapshot(4096 * at, of) for at, of in enumerate(then)]
    return now, rolled_back(now, found, RollbackError(1, 5), {0: NEW, 1: OLD})


def test_rollback_of_one_partition_brings_nothing_back_to_another() -> None:
    _, back = after_two_rollbacks()
    assert back.seqs == {0: 1, 1: 1}


def test_wrong_build_that_looks_at_one_partition_is_seen_and_its_trace_is_wrong() -> None:
    with built_with(Defect.rollback_looks_at_one_partition):
        now, back = after_two_rollbacks()
    assert back.seqs == {0: 8, 1: 3}
    taken: list[dict[str, bool]] = []

    def take(_kind: str, _entity: str, _node: str, _action: str, /, **arguments: bool) -> None:
        taken.append(arguments)

    IndexTrace(Trace(take), "main d").went_back(1, 5, now, back)
    assert taken == [{"old_enough": True, "none_ahead": False}]


@pytest.mark.parametrize("seq", [0, 2])
def test_index_begins_anew_where_no_header_is_old_enough(seq: int) -> None:
    now = header(2, 9, NEW)
    back = rolled_back(
        now, [Snapshot(0, header(2, 8, NEW))], RollbackError(1, seq), {0: NEW, 1: OLD}
    )
    assert back.seqs == {0: 0, 1: 0}
    assert back.id_root is None

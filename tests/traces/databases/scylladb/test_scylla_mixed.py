"""Lines of several nodes in one file that says of none which node it is of: what seems wrong is undecided."""

from pathlib import Path

import pytest
from tests.traces.databases.scylladb.test_scylla_end_to_end import evaluated

from stagewright.spec.trace import TraceVerdict
from stagewright.traces.report.results import TraceReport

TABLE = "5a1f4c30-9d0e-11ef-8b4e-2f1a6d3c7e90"
SELF = "aaaaaaaa-000{}-4000-8000-000000000000"


def line(second: int, text: str, logger: str = "raft_topology") -> str:
    return f"DEBUG 2026-06-03 08:00:{second:02},000 [shard 0: gms] {logger} - {text}"


def leads(second: int, node: int | None) -> list[str]:
    started = [line(second, "start topology coordinator fiber")]
    if node is not None:
        host = SELF.format(node)
        started.append(
            line(second, f"updating topology state: Starting new topology coordinator {host}")
        )
    return started


def enters(second: int, stage: str) -> list[str]:
    return [
        line(second, f"Will set tablet {TABLE}:0 stage to {stage}"),
        line(second, "updating topology state: Tablet migration"),
    ]


def report_on(tmp_path: Path, lines: list[str]) -> TraceReport:
    path = tmp_path / "both.log"
    path.write_text("\n".join(lines) + "\n")
    return evaluated(path)


def deposed(first: int | None, second: int | None) -> list[str]:
    """The second coordinator is at work when the first, which is deposed, says a last word."""
    return [
        *leads(1, first),
        *enters(2, "write_both_read_old"),
        *leads(3, second),
        *enters(4, "streaming"),
        *enters(5, "write_both_read_new"),
        *enters(6, "streaming"),
    ]


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        (1, 2, TraceVerdict.UNDECIDED),
        (None, None, TraceVerdict.UNDECIDED),
        (1, 1, TraceVerdict.VIOLATION),  # one node, which leads once more
    ],
)
def test_of_what_nobody_can_tell_who_did_it_nothing_is_wrong(
    tmp_path: Path, first: int | None, second: int | None, verdict: TraceVerdict
) -> None:
    report = report_on(tmp_path, deposed(first, second))
    assert {e.verdict for e in report.entities} == {verdict}
    assert any("lines of several nodes" in n for n in report.notes) is (
        first != second or not first
    )


def test_a_coordinator_that_ended_and_begins_again_is_one_node(tmp_path: Path) -> None:
    lines = deposed(None, None)
    lines.insert(3, line(2, "losing leadership", "raft_group0"))
    assert {e.verdict for e in report_on(tmp_path, lines).entities} == {TraceVerdict.VIOLATION}


def test_what_was_wrong_before_stays_wrong(tmp_path: Path) -> None:
    lines = [*leads(0, 1), *enters(0, "streaming"), *enters(0, "use_new"), *deposed(1, 2)[2:]]
    report = report_on(tmp_path, lines)
    assert TraceVerdict.VIOLATION in {e.verdict for e in report.entities}


def test_lines_that_name_their_nodes_are_told_apart(tmp_path: Path) -> None:
    lines = deposed(1, 2)
    late = [f"scylla-node1-1  | {text}" for text in (*lines[:4], *lines[-2:])]
    others = [f"scylla-node2-1  | {text}" for text in lines[4:-2]]
    report = report_on(tmp_path, [*late[:4], *others, *late[4:]])
    assert report.entities == ()


def test_a_fence_that_rises_twice_is_that_of_two_nodes(tmp_path: Path) -> None:
    rises = "update_fence_version: new fence_version {} is set, prev fence_version {}"
    versions = enumerate((4, 4, 5, 5), start=4)
    lines = [line(second, rises.format(v, v - 1), "storage_proxy") for second, v in versions]
    report = report_on(tmp_path, [*leads(1, 1), *lines])
    assert all(e.verdict is TraceVerdict.UNDECIDED for e in report.entities)
    assert any("lines of several nodes" in n for n in report.notes)

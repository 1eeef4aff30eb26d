"""What a ScyllaDB log says of tablets: its prefixes, its races, its resizes and changes of coordinator."""

import random
from pathlib import Path

import pytest

from stagewright.spec.errors import InputError
from stagewright.traces.databases.scylladb.lines.tablets import (
    DEBUG_RECORDING,
    INFO_RECORDING,
    MACHINE,
    WILL_SET,
)
from stagewright.traces.databases.scylladb.log import log
from stagewright.traces.databases.scylladb.log.line import LogRecord, parse_log_line
from stagewright.traces.readers.protocol import Interpreted, Part, Tally

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
TABLE = "5a1f4c30-9d0e-11ef-8b4e-2f1a6d3c7e90"
FORWARD = [
    "write_both_read_old",
    "streaming",
    "write_both_read_new",
    "use_new",
    "cleanup",
    "end_migration",
]


def extract(path: Path) -> tuple[list[LogRecord], Tally]:
    tally = Tally()
    (bounds,) = log.parts(path)
    return log.extract(Part(0, str(path), "scylla-log", *bounds), tally), tally


def interpret(*files: list[str]) -> Interpreted:
    records = []
    for number, texts in enumerate(files):
        parsed = [parse_log_line(t, i, f"file{number}") for i, t in enumerate(texts, start=1)]
        records.append([(number, r) for r in parsed if isinstance(r, LogRecord)])
        assert len(records[-1]) == len(texts)
    return log.interpret(records)


def line(message: str, second: int = 0, host: str = "h") -> str:
    return (
        f"2025-03-01T10:00:{second:02}.000+00:00 {host} !DEBUG | scylla[7]: "
        f"[shard 0: gms] raft_topology - {message}"
    )


def will_set(stage: str, second: int = 0, tablet: int = 0, host: str = "h") -> str:
    return line(f"Will set tablet {TABLE}:{tablet} stage to {stage}", second, host)


COMMIT = line("updating topology state: Tablet migration")
RACE = line("race while changing state: std::runtime_error (x). Retrying")


def recorded(found: Interpreted) -> list[tuple[str, int, object]]:
    return [
        (e.entity.removeprefix(TABLE), e.sequence, e.observed["stage"])
        for _, e in found.events
        if e.machine == MACHINE
    ]


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("prefix-*.log")), ids=lambda p: p.stem)
def test_every_style_of_prefix_is_read(path: Path) -> None:
    records, tally = extract(path)
    assert [r.words["stage"] for r in records if r.says == WILL_SET] == FORWARD
    assert tally.lines == len(records) == 12
    assert not tally.unparsed
    times = [r.time for r in records]
    assert times == sorted(times)
    assert all(times)


def test_lines_of_other_matters_are_counted_and_broken_ones_refused(tmp_path: Path) -> None:
    path = tmp_path / "scylla.log"
    texts = [
        will_set("streaming"),
        "",
        line("something else"),
        "  at 0x1234",
        line(f"Will set tablet {TABLE}"),
        f"Will set tablet {TABLE}:1 stage to streaming",
    ]
    path.write_text("\n".join(texts))
    records, tally = extract(path)
    assert len(records) == 1
    assert (tally.lines, tally.blank, tally.other, tally.unparsed) == (6, 1, 3, 2)
    assert [number for number, _ in tally.reasons] == [5, 6]


def test_a_race_cancels_the_commit_before_it() -> None:
    found = interpret(
        [will_set("streaming"), COMMIT, RACE, will_set("cleanup_target"), COMMIT, COMMIT]
    )
    assert recorded(found) == [(":0", 0, "cleanup_target")]
    assert found.notes == ["1 changes were cancelled by a race"]


def test_a_resize_begins_the_tablets_of_its_table_anew() -> None:
    resize = line(f"Finalizing resize decision for table {TABLE}: split")
    split = line(f"Split tablets for table {TABLE}, increasing tablet count from 1 to 2")
    found = interpret([will_set("use_new"), COMMIT, resize, split, will_set("streaming"), COMMIT])
    assert recorded(found) == [(":0", 0, "use_new"), (":0@1", 0, "streaming")]


def test_an_open_commit_at_a_change_of_coordinator_may_have_happened_or_not() -> None:
    first = [will_set("streaming", 1, host="a"), line("updating topology state: x", 2, "a")]
    late = [will_set("use_new", 5, host="a")]
    second = [
        line("start topology coordinator fiber", 3, "b"),
        will_set("write_both_read_new", 4, host="b"),
        will_set("use_new", 6, host="b"),
    ]
    found = interpret([*first, *late], second)
    assert recorded(found) == [(":0#1", 0, "write_both_read_new"), (":0#1", 1, "use_new")]
    assert sorted(found.notes)[:2] == [
        "1 changes were left open by a change of coordinator",
        "1 lines are of a node that was not the coordinator then",
    ]
    assert "the topology coordinator changed 1 time" in found.notes[2]


def test_what_is_hidden_depends_on_the_level_of_the_log() -> None:
    streaming = line(f"Initiating tablet streaming (migration) of {TABLE}:0 to {TABLE}:1")
    assert interpret([streaming]).recordings[MACHINE] == INFO_RECORDING
    assert interpret([streaming, will_set("use_new")]).recordings[MACHINE] == DEBUG_RECORDING


def test_files_are_merged_by_time_whatever_their_order() -> None:
    random.seed(4)
    one = [will_set(stage, second, 0) for second, stage in enumerate(FORWARD)]
    two = [will_set(stage, second, 1) for second, stage in enumerate(FORWARD)]
    by_entity = [
        sorted((e.entity, e.sequence, str(e.observed)) for _, e in interpret(*files).events)
        for files in ((one, two), (two, one))
    ]
    assert by_entity[0] == by_entity[1]
    assert len(by_entity[0]) == 12


def test_a_file_that_is_no_log_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.log"
    path.write_text("hello\n" * 10)
    with pytest.raises(InputError, match="does not look like a ScyllaDB log"):
        log.check(path)


def test_a_fence_that_comes_between_a_plan_and_its_commit_carries_no_plan() -> None:
    fence = line("updating topology state: advance fence version to 7")
    assert recorded(interpret([will_set("streaming"), fence, COMMIT, RACE])) == []
    lost = line("race while changing state: advance fence version to 7. Retrying")
    planned_anew = [will_set("streaming"), fence, lost, will_set("cleanup_target"), COMMIT]
    assert recorded(interpret(planned_anew)) == [(":0", 0, "cleanup_target")]


def test_what_was_planned_anew_without_a_commit_counts_once() -> None:
    plans = [will_set("write_both_read_new"), will_set("cleanup_target"), COMMIT]
    assert recorded(interpret(plans)) == [(":0", 0, "cleanup_target")]


def test_lines_of_replicas_about_streaming_are_not_the_coordinators() -> None:
    of_replica = line(f"Streaming for tablet migration of {TABLE}:0 failed: std::x", 2, "b")
    of_file = line("stream_sstables[x] Streaming for tablet migration of y finished table=z", 3)
    assert parse_log_line(of_replica, 1, "b") is None
    assert parse_log_line(of_file.replace("raft_topology", "storage_service"), 1, "b") is None


def test_the_reason_of_a_rollback_follows_its_stage() -> None:
    text = f"Will set tablet {TABLE}:0 stage to cleanup_target: critical disk utilization on h"
    assert recorded(interpret([line(text), COMMIT])) == [(":0", 0, "cleanup_target")]

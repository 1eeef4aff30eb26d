"""A recording checks each step as it is taken, and its traces say the same to `validate`."""

from __future__ import annotations

from pathlib import Path

import pytest

from stagewright.commands import run_command_line
from stagewright.impl.recording.recording import Recording
from stagewright.impl.recording.transition_table import tables_of
from stagewright.machines.recorded import OF_NODES

NOT_SYNCED = "the row is on the disk"
REFUSED = f"lives {{}}: `answer_write(no)` cannot happen now; unmet: {NOT_SYNCED}"


def recorded(*synced: bool) -> Recording:
    """A node answers writes, of each of which it is said whether the row is on its disk."""
    times = iter(range(100))
    recording = Recording(tables_of(OF_NODES), lambda: next(times))
    for durable in synced:
        recording.take("lives", "n1#0", "n1", "answer_write", durable=durable)
    return recording


def test_a_refused_step_is_a_problem_and_the_entity_is_left_alone_from_then_on() -> None:
    recording = recorded(True, False, False, True)
    assert recording.problems == [REFUSED.format("n1#0")]
    assert len(recording) == 2
    recording.take("lives", "n2#0", "n2", "answer_write", durable=False)
    assert recording.problems[1:] == [REFUSED.format("n2#0")]


def test_an_entity_begins_once_with_what_is_known_of_it() -> None:
    recording = Recording(tables_of(OF_NODES))
    known = {"staying": 3, "leaving": 0, "pending": 0, "given_up": 0}
    begun = recording.start("writes", "write1", "n1", **known)
    assert begun is not None
    assert recording.start("writes", "write1", "n1") == begun
    assert recording.start("writes", "write2", "n1", **{**known, "staying": 1}) != begun
    assert len(recording) == 0


@pytest.mark.parametrize(("synced", "code"), [((True, True), 0), ((True, False), 1)])
def test_validate_says_of_the_traces_what_the_recording_says(
    synced: tuple[bool, ...], code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = recorded(*synced)
    paths = [str(path) for path in recording.write(tmp_path, "made up")]
    assert run_command_line(["validate", *paths, "--engine", "embedded"]) == code
    assert (NOT_SYNCED in capsys.readouterr().out) == bool(recording.problems) == bool(code)


def test_of_a_kind_without_events_there_is_no_file_not_even_an_older_one(tmp_path: Path) -> None:
    (tmp_path / "writes.jsonl").write_text("of an earlier run")
    written = recorded(True).write(tmp_path, "made up")
    assert [path.name for path in written] == ["lives.jsonl"]
    assert [*tmp_path.iterdir()] == [*written]

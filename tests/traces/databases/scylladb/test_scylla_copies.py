"""Exports of ScyllaDB's logs: newest line first, twice the same lines, lines that overlap."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.traces.databases.scylladb.scylla_evaluated import interpret, violations

LINES = (Path(__file__).parents[2] / "samples" / "topology.log").read_text("utf-8").splitlines()
JOURNAL = [
    f"Nov 05 10:{number // 60:02}:{number % 60:02}.000000 host1 scylla[123]:  {line[line.index('[shard') :]}"
    for number, line in enumerate(LINES)
    if "[shard" in line
]


def events(*files: Sequence[str]) -> list[tuple[str, str, str | None]]:
    """What the logs come to, in order."""
    found = interpret(*map(list, files))
    assert violations(found) == []
    return [(event.machine, event.entity, event.action) for _, event in found.events]


def notes(*files: Sequence[str]) -> str:
    return " ".join(interpret(*map(list, files)).notes)


def test_a_log_with_its_newest_line_first_is_read_from_the_end() -> None:
    assert events(LINES[::-1]) == events(LINES)
    assert "1 file with the newest line first" in notes(LINES[::-1])


@pytest.mark.parametrize("again", [0, 40, 70], ids=["the whole", "a half", "the end"])
def test_lines_that_stand_twice_in_a_file_count_once(again: int) -> None:
    assert events([*LINES[:60], *LINES[min(again, 40) :]]) == events(LINES)
    assert events([*LINES, *LINES[again:]]) == events(LINES)


def test_two_exports_of_one_node_that_overlap_count_once() -> None:
    assert events(JOURNAL[:60], JOURNAL[40:]) == events(JOURNAL)
    assert "copies" not in notes(JOURNAL)
    assert "copies of lines that were read before" in notes(JOURNAL[:60], JOURNAL[40:])


def test_what_is_said_twice_at_one_time_is_no_copy() -> None:
    twice = [line for line in LINES for _ in range(2 if "executing global" in line else 1)]
    assert len(events(twice)) > len(events(LINES))
    assert "copies" not in notes(twice)


def test_a_clock_that_was_set_back_turns_no_log_round() -> None:
    set_back = [*LINES[:20], *(line.replace(" 10:00:", " 09:00:") for line in LINES[20:])]
    assert "newest line first" not in notes(set_back)
    assert events(set_back) == events(LINES)

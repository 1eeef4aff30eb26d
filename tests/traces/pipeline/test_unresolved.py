"""Events of machines that nobody knows: named with their lines and set aside, unless there are no others."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stagewright.spec.errors import InputError
from stagewright.spec.trace import Event, TraceVerdict
from stagewright.traces.engines.engine import Embedded
from stagewright.traces.inputs import unresolved
from stagewright.traces.report.results import TraceReport
from stagewright.traces.validate import validate


def write(path: Path, events: list[Event]) -> Path:
    path.write_text("".join(e.to_json() + "\n" for e in events))
    return path


def evaluated(lease: Any, *paths: Path, **more: Any) -> TraceReport:
    return validate(list(paths), lease.definition, engine=Embedded(2), **more)


@pytest.mark.parametrize("change", [{"machine": "Leasf"}, {"profile": "v0"}, {"definition": "8f"}])
def test_one_changed_name_is_one_event_that_is_not_checked(
    lease: Any, tmp_path: Path, change: dict[str, str]
) -> None:
    events = [event for i in range(20) for event in lease.walk(f"lease{i}", i, 9)]
    at = 47
    strange = [*events[:at], replace(events[at], **change), *events[at + 1 :]]
    report = evaluated(lease, write(tmp_path / "a.jsonl", strange))
    assert report.exit_code == 3
    assert report.verdicts[TraceVerdict.OK] == 19
    (gap,) = report.entities
    assert (gap.key.entity, gap.verdict) == (events[at].entity, TraceVerdict.GAP)
    assert gap.sequence == events[at].sequence
    (line,) = report.unparsed
    assert (line.where.line, line.where.file) == (at + 1, str(tmp_path / "a.jsonl"))
    assert next(iter(change.values())) in line.reason
    assert (report.totals.not_understood, report.totals.events) == (1, len(events))


def test_where_nothing_is_known_the_run_is_refused_with_the_first_line(
    lease: Any, tmp_path: Path
) -> None:
    events = [replace(e, machine="Other") for e in lease.walk("lease0", 1, 9)]
    path = write(tmp_path / "a.jsonl", events)
    with pytest.raises(InputError, match=r"a.jsonl:1: .*`Other`") as caught:
        evaluated(lease, path)
    assert caught.value.help


def test_a_whole_file_of_another_machine_is_counted_and_noted(lease: Any, tmp_path: Path) -> None:
    good = [event for i in range(5) for event in lease.walk(f"lease{i}", i, 9)]
    other = [replace(e, machine="Other") for e in good]
    paths = [write(tmp_path / "a.jsonl", other), write(tmp_path / "b.jsonl", good)]
    report = evaluated(lease, *paths)
    assert report.verdicts[TraceVerdict.OK] == 5
    assert report.totals.not_understood == len(other)
    assert any(note.startswith(f"{len(other)} events not checked") for note in report.notes)
    assert report.exit_code == 3
    assert evaluated(lease, *paths[::-1]).notes == report.notes


def test_a_later_run_goes_on_beside_strange_events(lease: Any, tmp_path: Path) -> None:
    events = lease.walk("lease0", 1, 9)
    a = write(tmp_path / "a.jsonl", events[:5])
    b = write(tmp_path / "b.jsonl", [*events[5:], replace(events[0], machine="Other")])
    assert evaluated(lease, a, state=tmp_path / "state").exit_code == 0
    report = evaluated(lease, a, b, state=tmp_path / "state")
    assert report.verdicts[TraceVerdict.OK] == 1
    assert [line.where.line for line in report.unparsed] == [len(events) - 4]


def test_a_field_that_holds_something_else_is_refused(
    lease: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unresolved, "KINDS_MAX", 50)
    events = lease.walk("lease0", 1, 9)
    lines = [event.to_json() for event in events]
    lines += [json.dumps({**json.loads(lines[0]), "profile": f"id{i}"}) for i in range(60)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    with pytest.raises(InputError, match="more than 50 different machines"):
        evaluated(lease, tmp_path / "a.jsonl")

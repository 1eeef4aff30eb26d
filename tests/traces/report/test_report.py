"""What a report says: whose mistake it is, which events are missing, who contradicts whom, and sums that are clear."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from stagewright.spec import FlagVar, Machine, action, flag, require
from stagewright.spec.define import define
from stagewright.spec.definition import Definition
from stagewright.spec.errors import InputError
from stagewright.spec.scope import Scope, scope_of
from stagewright.spec.trace import Event
from stagewright.traces.engines.engine import Embedded
from stagewright.traces.inputs.discover import find_inputs
from stagewright.traces.options import Options
from stagewright.traces.report.page import render_page
from stagewright.traces.report.results import TraceReport
from stagewright.traces.report.text import as_json, print_report
from stagewright.traces.validate import validate

START: dict[str, object] = {"phase": "free", "watchers": []}


class Lamp(Machine):
    """A lamp, which has no scope at all."""

    on: FlagVar = flag()

    @action
    def switch_on(self) -> None:
        """It is dark."""
        require(~self.on, "lamp is off")
        self.on = True


def report_of(lease: Any, tmp_path: Path, *events: Event) -> TraceReport:
    path = tmp_path / "trace.jsonl"
    path.write_text("".join(e.to_json() + "\n" for e in events))
    lamp = define(Lamp)

    def resolve(machine: str, _: str) -> Definition:
        return lamp if machine == "Lamp" else lease.definition

    def scope(definition: Definition) -> Scope:
        return lease.scope if definition is lease.definition else scope_of(definition)

    return validate([path], resolve, Options(scope=scope), engine=Embedded(1))


def text_of(report: TraceReport) -> str:
    sink = io.StringIO()
    print_report(report, Console(file=sink, width=100))
    return sink.getvalue()


def lamp_event(entity: str, sequence: int, name: str | None = None, *, end: bool = False) -> Event:
    observed: dict[str, object] = {} if sequence else {"on": False}
    return Event("run", "Lamp", "", "", entity, sequence, action=name, observed=observed, end=end)


def test_of_several_machines_each_has_its_counts_and_mistakes_name_theirs(
    lease: Any, tmp_path: Path
) -> None:
    good = [lamp_event("good", 0), lamp_event("good", 1, end=True)]
    twice = [lamp_event("a", 0), lamp_event("a", 1, "switch_on"), lamp_event("a", 2, "switch_on")]
    wrong = [lease.event("a", 0, None, {}, START), lease.event("a", 1, "give_back", {}, {})]
    report = report_of(lease, tmp_path, *good, *twice, *wrong)
    text = text_of(report)
    assert "machine   Lamp: 1 ok, 1 violation\n" in text
    assert f"machine   Lease, {lease.scope}: 1 violation\n" in text
    assert "VIOLATION run/a of Lamp at event 2" in text
    assert "VIOLATION run/a of Lease at event 1" in text
    data: Any = as_json(report)
    assert data["machines"] == ["Lamp", f"Lease, {lease.scope}"]
    assert data["entities_by_machine"]["Lamp"] == {
        "ok": 1, "violation": 1, "gap": 0, "unparsed": 0, "undecided": 0
    }  # fmt: skip
    alone = text_of(report_of(lease, tmp_path, *good, *twice))
    assert "machine   Lamp\n" in alone
    assert "VIOLATION run/a at event 2" in alone


def test_missing_events_are_reported_from_the_first_to_the_last(lease: Any, tmp_path: Path) -> None:
    some = [lamp_event("some", 0), lamp_event("some", 4, end=True)]
    one = [lamp_event("one", 0), lamp_event("one", 2, "switch_on"), lamp_event("one", 9)]
    # Read twice, so that only the events themselves can tell.
    again = [lamp_event("twice", 0)] * 2 + [lamp_event("twice", 3)] * 2
    report = report_of(lease, tmp_path, *some, *one, *again)
    assert {e.key.entity: e.note for e in report.entities} == {
        "some": "the events with sequence numbers 1 to 3 are missing",
        "one": "the event with sequence number 1 is missing",
        "twice": "the events with sequence numbers 1 to 2 are missing",
    }


def test_events_that_contradict_each_other_are_both_reported(lease: Any, tmp_path: Path) -> None:
    events = [
        lease.event("a", 0, None, {}, START),
        lease.event("a", 1, "take", {"node": "node0"}, {}),
        lease.event("a", 1, "take", {"node": "node0"}, {}),
        lease.event("a", 1, "watch", {"node": "node1"}, {}),
        lease.event("a", 2, None, {}, {}, end=True),
    ]
    report = report_of(lease, tmp_path, *events)
    (entity,) = report.entities
    path = tmp_path / "trace.jsonl"
    assert str(entity.where) == f"{path}:2"
    assert entity.note == f"the other one is watch(node1), at {path}:4"
    assert entity.note in text_of(report)
    assert entity.note in render_page(report)


def test_an_event_of_no_machine_is_not_called_an_unparsed_line(lease: Any, tmp_path: Path) -> None:
    events = [lamp_event("a", 0), lamp_event("a", 1, "explode")]
    report = report_of(lease, tmp_path, *events)
    line = "events that no machine knows (their lines count as having events): 1"
    text = text_of(report)
    assert f"\n{line}\n" in text
    assert "unparsed lines" not in text
    assert "lines     2 = 2 with events" in text
    assert line.capitalize() in render_page(report)


def test_the_page_counts_what_can_be_and_tells_verdicts_apart(lease: Any, tmp_path: Path) -> None:
    events = [lease.event("a", 0, None, {}, START), lease.event("a", 2, None, {}, {}, end=True)]
    report = report_of(lease, tmp_path, *events)
    page = render_page(report)
    data: Any = as_json(report)
    for kind in ("edges", "values"):
        assert f"All {sum(data['coverage'][0][kind].values()):,} {kind}" in page
    assert 'class="unsure" style="width: 100.0%"' in page


def test_a_wrong_profile_is_called_one(lease: Any, tmp_path: Path) -> None:
    right = lease.event("a", 0, None, {}, START)
    wrong = replace(lease.event("a", 1, None, {}, {}), profile="v9")
    lamp = define(Lamp)
    path = tmp_path / "t.jsonl"
    path.write_text(f"{right.to_json()}\n{wrong.to_json()}\n")

    def resolve(_: str, profile: str) -> Definition:
        return lamp if profile == "v9" else lease.definition

    report = validate([path], resolve, Options(scope=scope_of), engine=Embedded(1))
    (note,) = (note for note in report.notes if "v9" in note)
    assert "the traces of Lease with the profile `v9` were recorded under the definition" in note
    assert "other events of this definition have no profile: mend the profile" in note


def test_no_ending_is_listed_twice(tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        find_inputs([tmp_path])
    line = raised.value.help.partition(" (")[0].removeprefix("traces end in ").split(", ")
    assert ".json" in line
    assert len(set(line)) == len(line)

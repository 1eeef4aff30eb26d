"""`stagewright validate --together` tells which properties over several entities hold, and who broke them."""

import json
from pathlib import Path

import pytest

from stagewright.commands import run_command_line

_SYSTEM = '''
from enum import Enum, auto
from stagewright.spec import *

class Slot(Entity, scope=2):
    """A place."""

class Phase(Enum):
    idle = auto()
    busy = auto()

class Worker(Machine):
    """It works."""
    phase = one_of(Phase, init=Phase.idle)

    @action
    def turn(self, to: Term[Phase]) -> None:
        """It does something else."""
        require(self.phase != to, "it does not yet")
        self.phase = to

class Office(Machine):
    """Workers."""
    workers = many(Worker, over=Slot)

    @invariant
    def one_is_busy(self) -> Bool:
        """Only one works at a time."""
        return count(self.workers[s].phase == Phase.busy for s in Slot) <= 1

class Other(Machine):
    """It has nothing to do with them."""
    on = flag()

    @action
    def switch(self) -> None:
        """It goes on or off."""
        self.on = ~self.on
'''


@pytest.fixture
def office(tmp_path: Path) -> Path:
    """A file with a machine and a system of it; and a trace beside it."""
    path = tmp_path / "office.py"
    path.write_text(_SYSTEM)
    rows = [("w0", 0, 1), ("w1", 0, 1), ("w0", 1, 2), ("w1", 1, 3), ("w0", 2, 4), ("w1", 2, 5)]
    events = [
        {"v": 1, "trace": "run", "machine": "Worker", "profile": "", "definition": "",
         "entity": entity, "seq": number, "time": time, "node": "",
         "action": "turn" if number == 1 else None,
         "params": {"to": "busy"} if number == 1 else {},
         "observed": {} if number == 2 else {"phase": "busy" if number else "idle"},
         **({"end": True} if number == 2 else {})}
        for entity, number, time in rows
    ]  # fmt: skip
    (tmp_path / "trace.jsonl").write_text("".join(json.dumps(e) + "\n" for e in events))
    return path


def command(office: Path, system: str, *more: str) -> list[str]:
    trace = office.with_name("trace.jsonl")
    return [
        "validate", str(trace), "--machine", f"{office}:Worker", "--engine", "embedded",
        "--together", f"{office}:{system}", *more,
    ]  # fmt: skip


def test_who_broke_a_property_is_named(office: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(command(office, "Office")) == 1
    text = capsys.readouterr().out
    assert "violation Office.one_is_busy: by group, in a total order; 1 groups checked" in text
    assert "Only one works at a time." in text
    assert f"by         w1 since {office.with_name('trace.jsonl')}:4" in text
    assert f"by         w0 since {office.with_name('trace.jsonl')}:3" in text


def test_groups_and_json(office: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(command(office, "Office", "--group", "..", "--json")) == 0
    printed = json.loads(capsys.readouterr().out)["together"]
    assert printed["properties"][0]["verdict"] == "ok"
    assert printed["properties"][0]["checked"] == 2
    assert printed["properties"][0]["needs_total_order"] is True


def test_a_group_that_is_no_expression_is_refused(
    office: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(command(office, "Office", "--group", "(")) == 2
    assert "is no regular expression" in capsys.readouterr().err


def test_a_system_of_other_machines_is_refused(
    office: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(command(office, "Other")) == 2
    assert "the traces are of Worker: Other has no part of them" in capsys.readouterr().err

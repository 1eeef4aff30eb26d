"""Thousands of names of members, in a log of an invented lock service: each event costs what it says, not what could be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stagewright import spec as sw
from stagewright.spec.define import define
from stagewright.spec.trace import TraceVerdict
from stagewright.traces.engines.engine import Embedded
from stagewright.traces.options import Options
from stagewright.traces.report.results import TraceReport
from stagewright.traces.report.text import entity_lines
from stagewright.traces.validate import validate

CLIENTS = 1_200
MAPPING = f"""machine = "Lock"
entity = "{{lock}}"
members = {{who = "Client"}}
[source]
form = "jsonl"
[recording]
sizes = {{Client = {CLIENTS}}}
[[event]]
action = {{from = "{{op}}"}}
parameters = {{c = "{{who}}"}}
"""


class Client(sw.Entity, scope=3):
    """Who may hold the lock."""


class Lock(sw.Machine):
    """A lock and who holds it."""

    holder: sw.OptionalVar[Client] = sw.optional(Client)

    @sw.action
    def take(self, c: sw.Term[Client]) -> None:
        """A client takes it."""
        sw.require(self.holder.is_none(), "the lock is free")
        self.holder = c

    @sw.action
    def release(self, c: sw.Term[Client]) -> None:
        """Its holder gives it back."""
        sw.require(self.holder == c, "the holder releases")
        self.holder = None


def rows(*held: int) -> list[str]:
    """Takes and releases of the lock, client by client."""
    return [
        json.dumps({"lock": "a", "op": op, "who": f"host-{client}"})
        for client in held
        for op in ("take", "release")
    ]


def checked(lines: list[str], folder: Path) -> TraceReport:
    """What is found in these lines."""
    (folder / "m.toml").write_text(MAPPING)
    (folder / "a.jsonl").write_text("\n".join(lines) + "\n")
    options = Options(mapping=folder / "m.toml")
    return validate([folder / "a.jsonl"], define(Lock), options, engine=Embedded(1))


def test_more_than_a_thousand_clients_hold_a_lock_in_turn(tmp_path: Path) -> None:
    report = checked(rows(*range(CLIENTS)), tmp_path)
    assert report.verdicts[TraceVerdict.OK] == 1
    assert report.totals.evaluated == 2 * CLIENTS + 1


def test_of_many_names_a_finding_has_those_that_it_mentions(tmp_path: Path) -> None:
    report = checked([*rows(*range(CLIENTS)), rows(7)[0], rows(9)[0]], tmp_path)
    (entity,) = report.entities
    assert entity.verdict is TraceVerdict.VIOLATION
    (names,) = [line for line in entity_lines(entity) if line.startswith("  names")]
    assert "client7 = host-7, client9 = host-9" in names
    assert names.endswith(f"… and {CLIENTS - names.count('='):,} more")
    assert len(entity.names) == CLIENTS


def test_no_step_is_tried_that_an_event_does_not_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stagewright.traces.automaton.subset_automaton import Determinised
    from stagewright.traces.coverage import exercised

    monkeypatch.setattr(exercised, "TRIES_MAX", 0)  # what is reachable is looked up beside
    monkeypatch.setattr(exercised, "_remembered", {})
    tried = 0
    take = Determinised._take

    def counted(self: Determinised, step: int, state: int) -> int:
        nonlocal tried
        tried += 1
        return take(self, step, state)

    monkeypatch.setattr(Determinised, "_take", counted)
    checked(rows(*range(CLIENTS)), tmp_path)
    # A few an event, and those of the first state once.
    assert tried <= 4 * 2 * CLIENTS + 2 * CLIENTS


def test_a_word_for_nobody_is_no_name(tmp_path: Path) -> None:
    """Etcd writes `"vote": "0"` where there is no vote."""
    (tmp_path / "m.toml").write_text(
        """machine = "Lock"
entity = "{lock}"
members = {who = "Client"}
[source]
form = "jsonl"
[recording]
hidden = "all"
visible = ["holder"]
[[event]]
observed = {holder = {from = "{who}", values = {"0" = "none"}}}
"""
    )
    held = ["0", "host-1", "0", "host-2", "0"]
    lines = [json.dumps({"lock": "a", "who": who}) for who in held]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines) + "\n")
    options = Options(mapping=tmp_path / "m.toml")
    report = validate([tmp_path / "rows.jsonl"], define(Lock), options, engine=Embedded(1))
    assert report.verdicts[TraceVerdict.OK] == 1

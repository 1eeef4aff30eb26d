"""What the page on instrumenting a service shows is a trace that `validate` accepts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stagewright.commands import run_command_line

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE = (DOCS / "how-to" / "instrument-a-service.md").read_text("utf-8")


@pytest.fixture
def lease(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    tutorial = (DOCS / "tutorial.md").read_text("utf-8")
    found = re.search(
        r"<!-- file: lease.py -->\n```python\n(.*?)^```$", tutorial, re.MULTILINE | re.DOTALL
    )
    assert found is not None
    (tmp_path / "lease.py").write_text(found[1], "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def validate(file: str) -> int:
    return run_command_line(["validate", file, "--machine", "lease.py"])


def test_the_events_shown_are_a_run(lease: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = re.search(r"```json\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    (lease / "events.jsonl").write_text(found[1])
    assert validate("events.jsonl") == 0, capsys.readouterr().out
    wrong = found[1].replace('"token": 1', '"token": 2')
    (lease / "events.jsonl").write_text(wrong)
    assert validate("events.jsonl") == 1


def test_the_recorder_writes_a_run(lease: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = re.search(r"<!-- file: recorder.py -->\n```python\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    (lease / "record.py").write_text(
        f"{found[1]}\n\n"
        "recorder = Recorder(Path('events.jsonl'))\n"
        "recorder.event('orders', None, {}, {'holder': None, 'token': 0})\n"
        "recorder.event('orders', 'grant', {'n': 'node1'}, {'holder': 'node1', 'token': 1})\n"
        "recorder.event('orders', 'give_back', {'n': 'node1'}, {'holder': None})\n"
        "recorder.end('orders')\n"
    )
    exec(compile((lease / "record.py").read_text(), "record.py", "exec"), {"__name__": "record"})  # noqa: S102 - the page's own text
    assert validate("events.jsonl") == 0, capsys.readouterr().out


def test_numbers_go_farther_in_production_than_in_a_check(
    lease: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A check bounds its tokens; what is recorded has as many as it has."""
    assert "bounded(self.token < LAST)" in (lease / "lease.py").read_text("utf-8")
    steps = [
        step
        for n in range(1, 40)
        for step in (
            f'{{"action": "grant", "params": {{"n": "node0"}}, "observed": {{"token": {n}}}',
            '{"action": "give_back", "params": {"n": "node0"}, "observed": {}',
        )
    ]
    events = ['{"action": null, "params": {}, "observed": {}', *steps, '{"end": true']
    lines = [f'{event}, "entity": "orders", "seq": {n}}}\n' for n, event in enumerate(events)]
    (lease / "events.jsonl").write_text("".join(lines), "utf-8")
    assert validate("events.jsonl") == 0, capsys.readouterr().out

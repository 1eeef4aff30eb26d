"""An exported suite is a pytest file that runs by itself, and says when its definition has changed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.checker.conformance.machines import Counter, CounterAdapter, Votes, VotesAdapter

from stagewright.checker.conformance.oracle import Oracle
from stagewright.checker.conformance.script import Origin, Script, exported
from stagewright.checker.conformance.suites import refusal_suite, transition_tour
from stagewright.spec import ScopeError, define, scope_of
from stagewright.spec.errors import InputError

ROOT = Path(__file__).resolve().parents[3]
DEFINITION = define(Counter)
SCOPE = scope_of(DEFINITION)

ADAPTER = """
from stagewright.checker.conformance import RefusedEvent


class Adapter:
    def reset(self, initial):
        self.count = 0

    def do(self, step):
        if self.count == ({"up": 3, "reset": 0}[step.action]):
            raise RefusedEvent
        self.count = self.count + 1 if step.action == "up" else 0

    def observe(self):
        return {"count": self.count}


class AcceptsReset(Adapter):
    def do(self, step):
        if step.action == "up" or self.count:
            super().do(step)
"""


def text_of(machine: str, adapter: str) -> str:
    suites = [plan(DEFINITION, SCOPE) for plan in (transition_tour, refusal_suite)]
    origin = Origin(machine, adapter, "stagewright test counter.py")
    return exported(Oracle(DEFINITION, SCOPE), suites, origin)


def run_pytest(file: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", file.name]
    return subprocess.run(
        command,
        cwd=file.parent,
        env={"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )


def test_exported_file_passes_for_a_right_implementation_and_fails_for_a_wrong_one(
    tmp_path: Path,
) -> None:
    machine = "tests.checker.conformance.machines:Counter"
    (tmp_path / "adapter.py").write_text(ADAPTER, encoding="utf-8")
    right, wrong = tmp_path / "test_right.py", tmp_path / "test_wrong.py"
    right.write_text(text_of(machine, "adapter.py:Adapter"), encoding="utf-8")
    wrong.write_text(text_of(machine, "adapter.py:AcceptsReset"), encoding="utf-8")
    passed, failed = run_pytest(right), run_pytest(wrong)
    assert passed.returncode == 0, passed.stdout + passed.stderr
    assert failed.returncode == 1, failed.stdout + failed.stderr
    assert "the implementation accepts what must be refused" in failed.stdout
    assert "not empty: count > 0" in failed.stdout


def test_text_reads_as_what_happens() -> None:
    text = text_of("counter.py", "adapter.py:Adapter")
    assert '"""Conformance tests of Counter, made by:' in text
    assert "tour: 6 of 6 edges in" in text
    assert "        ! reset\n        up\n" in text


def test_walks_of_parameters_and_several_initial_states_are_read_back() -> None:
    definition = define(Votes)
    scope = scope_of(definition)
    script = Script(definition, fingerprint=definition.fingerprint(), sizes={"Node": 2}, budgets={})
    assert script.scope == scope
    for start in range(3):
        script.run(VotesAdapter, start, "vote(node1)\n! vote(node1); ! vote(node1)\nvote(node0)")


def test_changed_definition_is_said_before_anything_is_run() -> None:
    with pytest.raises(InputError, match="Counter has changed since these tests were made"):
        Script(DEFINITION, fingerprint="0", sizes={}, budgets={})


def test_unknown_step_or_scope_is_refused() -> None:
    fingerprint = DEFINITION.fingerprint()
    script = Script(DEFINITION, fingerprint=fingerprint, sizes={}, budgets={})
    with pytest.raises(InputError, match="`down` is no step of Counter"):
        script.run(CounterAdapter, 0, "up\ndown")
    with pytest.raises(ScopeError):
        Script(DEFINITION, fingerprint=fingerprint, sizes={"Node": 1}, budgets={})

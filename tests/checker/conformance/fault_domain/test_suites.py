"""W and Wp suites of definitions: played, exported, with the bound that they state."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.checker.conformance.machines import Counter

from stagewright.checker.conformance.fault_domain.mealy import projection
from stagewright.checker.conformance.fault_domain.words import Method, bounded_suite
from stagewright.checker.conformance.oracle import Oracle
from stagewright.checker.conformance.play import play
from stagewright.checker.conformance.space import explored
from stagewright.commands import run_command_line
from stagewright.spec import FlagVar, Machine, NumberVar, action, flag, number, require, scope_of
from stagewright.spec.define import define
from stagewright.spec.values import State
from stagewright.spec.verdict import Step
from stagewright.testing import ConformanceError, RefusedEvent, assert_conforms

EXAMPLES = Path(__file__).resolve().parents[4] / "examples"


class Door(Machine):
    """Bells count the openings, modulo three; only the door is seen."""

    open: FlagVar = flag()
    bells: NumberVar = number(0, 2)

    @action
    def enter(self) -> None:
        """The door opens."""
        require(~self.open, "the door is closed")
        self.open = True
        self.bells = (self.bells + 1) % 3

    @action
    def leave(self) -> None:
        """The door closes, but not with two bells."""
        require(self.open, "the door is open")
        require(self.bells != 2, "there are not two bells")
        self.open = False

    @action
    def silence(self) -> None:
        """No bell rings any more."""
        require(self.bells == 2, "there are two bells")
        self.bells = 0


class Hidden:
    """A door that does not show its bells; after `good` right rounds, silence is forgotten once."""

    good: int | None = None

    def reset(self, initial: State) -> None:
        self.open, self.bells, self.rounds = False, 0, 0

    def do(self, step: Step) -> None:
        match step.action:
            case "enter" if not self.open:
                self.open, self.bells = True, (self.bells + 1) % 3
            case "leave" if self.open and self.bells != 2:
                self.open = False
            case "silence" if self.bells == 2:
                self.rounds += 1
                self.bells = 1 if self.rounds - 1 == self.good else 0
            case _:
                raise RefusedEvent(step.label)

    def observe(self) -> Mapping[str, object]:
        return {"open": self.open}


class LateFault(Hidden):
    """Wrong in the second round: as many states again are needed for that."""

    good = 1


def test_a_hidden_fault_is_found_with_enough_states_more() -> None:
    for suite in ("w", "wp"):
        assert_conforms(Door, Hidden, suites=[suite], extra_states=2)
        assert_conforms(Door, LateFault, suites=[suite])
        with pytest.raises(ConformanceError, match="silence"):
            assert_conforms(Door, LateFault, suites=[suite], extra_states=4)


def test_what_is_not_seen_decides_how_many_states_there_are() -> None:
    definition = define(Door)
    space = explored(definition, scope_of(definition))
    assert space.states == 5
    whole = projection(space).mealy.minimized()
    blind = projection(space, frozenset({"open"})).mealy.minimized()
    assert (whole.states, blind.states) == (5, 5)
    suite = bounded_suite(space, Method.WP, extra=1, observed={"open"})
    assert suite.of == "tests, for implementations with up to 6 states"
    assert suite.covered == suite.total
    assert play(Oracle(definition, scope_of(definition)), Hidden, suite).failure is None


class Counted:
    """An implementation of `machines.Counter` that knows no budget; `Forgetful` does not reset after the first time."""

    resets_right = 100

    def reset(self, initial: State) -> None:
        self.count = self.resets = 0

    def do(self, step: Step) -> None:
        match step.action:
            case "up" if self.count < 3:
                self.count += 1
            case "reset" if self.count > 0:
                self.resets += 1
                self.count = 0 if self.resets <= self.resets_right else self.count
            case _:
                raise RefusedEvent(step.label)

    def observe(self) -> Mapping[str, object]:
        return {"count": self.count}


class Forgetful(Counted):
    """Resets rightly once in a run, as often as a check's budget has it."""

    resets_right = 1


@pytest.mark.parametrize("method", ["w", "wp"])
def test_a_fault_may_be_spent_more_often_than_a_check_has_it(method: str) -> None:
    assert_conforms(Counter, Counted, suites=[method], extra_states=2)
    with pytest.raises(ConformanceError, match="reset"):
        assert_conforms(Counter, Forgetful, suites=[method], extra_states=2)


def test_a_suite_that_is_cut_short_states_no_bound() -> None:
    definition = define(Door)
    suite = bounded_suite(explored(definition, scope_of(definition)), Method.W, extra=1, moves=20)
    assert (suite.of, suite.note) == ("tests", f"stopped after {suite.moves} moves")
    assert suite.covered < suite.total


def test_the_command_plays_and_exports_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = EXAMPLES / "saga"
    monkeypatch.chdir(folder)
    file = tmp_path / "test_saga.py"
    words = ["test", "saga.py:Saga", "--adapter", "service.py:Adapter", "--suite", "wp"]
    assert run_command_line([*words, "--extra-states", "0", "--export", str(file)]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "for implementations with up to" in printed
    run = subprocess.run(
        [sys.executable, "-P", "-m", "pytest", "-q", "-x", str(file), "-p", "no:cacheprovider"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout
    assert run_command_line(["test", "saga.py:Saga", "--extra-states", "1"]) == 2
    assert "--suite wp" in capsys.readouterr().err

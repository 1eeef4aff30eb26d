"""What a check at the default scope does not exercise needs a reason, and a reason needs such a thing."""

from __future__ import annotations

from pathlib import Path

import pytest

from stagewright.checker.check import check
from stagewright.checker.exercise import EXERCISED, exercised
from stagewright.commands import run_command_line
from stagewright.spec import (
    Bool,
    FlagVar,
    Machine,
    NumberVar,
    action,
    define,
    flag,
    invariant,
    never_happens,
    number,
    part,
    require,
    scope_of,
    unexercised,
    vacuous,
)
from stagewright.spec.errors import ReasonError
from stagewright.spec.verdict import Outcome, PropertyVerdict


class Door(Machine):
    """A door that is never locked."""

    open: FlagVar = flag()
    locked: FlagVar = flag()

    @action
    def turn(self) -> None:
        """It opens or closes."""
        require(~self.locked, "it is not locked")
        self.open = ~self.open

    @action
    def lock(self) -> None:
        """Nobody has a key."""
        require(self.open & ~self.open, "somebody has a key")
        self.locked = True

    @action
    def unlock(self) -> None:
        """Likewise."""
        require(self.locked, "it is locked")
        self.locked = False

    @invariant
    def locked_doors_are_closed(self) -> Bool:
        """What is locked is closed."""
        return self.locked.implies(~self.open)


class KnownDoor(Door):
    """The same, with reasons."""

    left_out = unexercised(
        never_happens(Door.lock, Door.unlock, because="there is no key"),
        vacuous(Door.locked_doors_are_closed, because="nothing locks it"),
    )


class WrongDoor(Door):
    """One reason too many, and one too few."""

    left_out = unexercised(
        never_happens(Door.turn, Door.lock, because="there is no key"),
        vacuous(Door.locked_doors_are_closed, because="nothing locks it"),
    )


class House(Machine):
    """Two doors: names of parts are those of their class."""

    front = part(Door)
    back = part(Door, without=(Door.unlock,))
    visits: NumberVar = number(0, 1)

    left_out = unexercised(
        never_happens(Door.lock, Door.unlock, because="there is no key"),
        vacuous(Door.locked_doors_are_closed, because="nothing locks them"),
    )

    @action
    def visit(self) -> None:
        """Somebody comes."""
        require(self.visits < 1, "it is the first visit")
        self.visits = self.visits + 1


def verdict_on(machine: type[Machine]) -> PropertyVerdict:
    definition = define(machine)
    report = check(definition, scope_of(definition))
    assert report.coverage is not None
    return exercised(report, report.coverage)


def test_what_is_idle_or_vacuous_without_a_reason_is_a_violation() -> None:
    verdict = verdict_on(Door)
    assert verdict.outcome is Outcome.VIOLATED
    assert verdict.note.splitlines() == [
        "never happen, and no reason is given: lock, unlock",
        "vacuous, and no reason is given: locked_doors_are_closed",
    ]


def test_with_reasons_it_holds() -> None:
    verdict = verdict_on(KnownDoor)
    assert verdict.outcome is Outcome.HOLDS
    assert verdict.note == "but for 2 actions and 1 property, for the reasons given"


def test_a_reason_for_what_happens_is_a_violation() -> None:
    verdict = verdict_on(WrongDoor)
    assert verdict.outcome is Outcome.VIOLATED
    missing, wrong = verdict.note.splitlines()
    assert missing == "never happen, and no reason is given: unlock"
    assert wrong.startswith("a reason is given for turn, and it happens (")
    assert "test_exercise.py" in wrong


def test_a_system_names_what_its_parts_say_once_for_all_of_them() -> None:
    said = define(House).unexercised
    assert said is not None
    names = {s.name for s in said}
    assert names == {
        "front.lock",
        "back.lock",
        "front.unlock",
        "back.unlock",
        "front.locked_doors_are_closed",
        "back.locked_doors_are_closed",
    }
    verdict = verdict_on(House)
    assert verdict.outcome is Outcome.VIOLATED
    assert "back.unlock, and it is no step of its own" in verdict.note


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (lambda: never_happens(because="why"), "never_happens(...) is given what is no action"),
        (
            lambda: never_happens(Door.locked_doors_are_closed, because="why"),
            "never_happens(...) is given what is no action",
        ),
        (lambda: vacuous(Door.lock, because="why"), "vacuous(...) is given what is no property"),
        (lambda: never_happens(Door.lock, because=" "), "never_happens(...) without a reason"),
    ],
)
def test_a_list_that_cannot_mean_what_it_says_is_refused(said: object, problem: str) -> None:
    assert callable(said)
    with pytest.raises(ReasonError) as refused:
        said()
    assert problem in str(refused.value)


def test_a_method_of_another_machine_is_refused() -> None:
    class Garden(Machine):
        """It has no door."""

        wet: FlagVar = flag()
        left_out = unexercised(never_happens(Door.lock, because="there is no door"))

        @action
        def water(self) -> None:
            """It gets wet."""
            self.wet = True

    with pytest.raises(ReasonError, match="`lock` belongs to no part of Garden"):
        define(Garden)


HERE = Path(__file__)


def test_check_decides_it_of_a_machine_that_gives_reasons_at_its_default_scope(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_command_line(["check", f"{HERE}:KnownDoor"]) == 0
    text = capsys.readouterr().out
    assert EXERCISED in text
    assert "  lock: there is no key\n" in text
    assert run_command_line(["check", f"{HERE}:WrongDoor"]) == 1
    assert "a reason is given for turn, and it happens" in " ".join(capsys.readouterr().out.split())
    assert run_command_line(["check", f"{HERE}:Door"]) == 0
    assert EXERCISED not in capsys.readouterr().out


def test_check_all_decides_it_of_every_machine(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = {name: f"{__name__}:{name}" for name in ("KnownDoor", "Door")}
    monkeypatch.setattr("stagewright.machines.SHIPPED", shipped)
    assert run_command_line(["check", "--all"]) == 1
    text = capsys.readouterr().out
    assert "vacuous, and no reason is given: locked_doors_are_closed" in " ".join(text.split())
    assert "2 checks: 1 hold, 1 violated" in text


def test_show_lists_what_is_left_out_and_why(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["show", f"{HERE}:KnownDoor"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "never happens at the default scope: lock, unlock; there is no key" in text
    assert "vacuous at the default scope: locked_doors_are_closed; nothing locks it" in text

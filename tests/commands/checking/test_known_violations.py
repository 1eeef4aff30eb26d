"""A machine says which promises its older versions break; that must be promises and versions that it has."""

from __future__ import annotations

import json

import pytest
from tests.models import tank

from stagewright.commands import run_command_line
from stagewright.commands.console.exit_codes import ExitCode
from stagewright.spec import NO_DEADLOCK, define, known_violations, violated
from stagewright.spec.errors import ReasonError

FILE = f"{tank.__file__}:"


def known(machine: type[tank.Tank], profile: str) -> dict[str, str]:
    return {k.promise: k.reason.text for k in define(machine, profile).known_violations}


def test_each_version_has_its_own() -> None:
    assert known(tank.Tank, "first") == {
        "it_is_not_overfull": "nothing looks at the level",
        NO_DEADLOCK: "nothing empties it",
    }
    assert known(tank.Tank, "second") == {NO_DEADLOCK: "nothing empties it"}
    assert known(tank.Tank, "third") == {}


def test_a_part_says_what_it_breaks_in_each_system() -> None:
    definition = define(tank.Two, "first")
    found = {k.promise: k.reason.text for k in definition.known_violations}
    assert found == {
        "left.it_is_not_overfull": "nothing looks at the level",
        "right.it_is_not_overfull": "nothing looks at the level",
        "both_are_not_overfull": "neither is",
    }, "that a part comes to an end is no deadlock of the system"


def test_a_subclass_has_what_it_inherits() -> None:
    assert known(tank.Larger, "first") == known(tank.Tank, "first")


def test_meaning_does_not_change() -> None:
    """A definition is the same with and without: mutants and proofs that were kept stay valid."""

    class Tank(tank.Tank):
        left_open = known_violations()

    first, again = define(tank.Tank, "first"), define(Tank, "first")
    assert first.fingerprint() == again.fingerprint()


def test_check_reports_it_as_known_and_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["check", f"{FILE}Tank", "--profile", "first"]) == ExitCode.VIOLATED
    printed = " ".join(capsys.readouterr().out.split())
    assert "as known: nothing looks at the level" in printed
    assert "as known: nothing empties it" in printed


def test_what_does_not_show_at_a_scope_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["check", f"{FILE}Tank", "--profile", "first", "--budget", "pours=0"]
    run_command_line(arguments)
    printed = " ".join(capsys.readouterr().out.split())
    assert "known to be violated, though not at this scope: nothing looks at the level" in printed


def test_programs_read_it(capsys: pytest.CaptureFixture[str]) -> None:
    run_command_line(["check", f"{FILE}Tank", "--profile", "first", "--json"])
    (report,) = json.loads(capsys.readouterr().out)["reports"]
    found = {v["name"]: (v["outcome"], v["known"]) for v in report["verdicts"]}
    assert found["it_is_not_overfull"] == ("violated", "nothing looks at the level")
    assert found["assigned values stay in bounds"][1] == ""


def test_show_compares_what_is_mended(capsys: pytest.CaptureFixture[str]) -> None:
    run_command_line(["show", f"{FILE}Tank", "--profile", "third", "--compare", "first"])
    printed = capsys.readouterr().out
    assert "known to break" in printed
    assert "- it_is_not_overfull" in printed


@pytest.mark.parametrize(
    ("machine", "message"),
    [
        (tank.OfAnother, "`it_is_not_overfull` belongs to no part of OfAnother"),
        (tank.OfNoVersion, "OfNoVersion has no profile `fourth`"),
    ],
)
def test_what_the_machine_does_not_have_is_refused(machine: type[tank.Tank], message: str) -> None:
    for profile in ("first", "third"):
        with pytest.raises(ReasonError) as refused:
            define(machine, profile)
        assert refused.value.code == "SW115"
        assert message in str(refused.value)


def test_what_is_no_promise_no_version_or_no_reason_is_refused() -> None:
    with pytest.raises(ReasonError, match="what is no property"):
        violated(tank.Tank.pour, under=tank.FIRST, because="…")
    with pytest.raises(ReasonError, match="what is no property"):
        violated(under=tank.FIRST, because="…")
    with pytest.raises(ReasonError, match="what is no profile"):
        violated(tank.Tank.it_is_not_overfull, under=(), because="…")
    with pytest.raises(ReasonError, match="without a reason"):
        violated(tank.Tank.it_is_not_overfull, under=tank.FIRST, because=" ")

"""`check` at the other scopes that a definition names: what breaks only there is found without asking."""

import json
from pathlib import Path
from typing import Any

import pytest

from stagewright.checker.limits import Limits
from stagewright.commands import run_command_line
from stagewright.commands.checking.other_scopes import check_at
from stagewright.commands.reports.result import Result

MIRROR = """\
from stagewright.spec import *


class Disk(Entity, scope=2):
    pass


class Mirror(Machine):
    losses = budget(1)
    repairs = budget(0)
    exercised_at = scopes({}, {losses: 2, Disk: 3}, {losses: 0, repairs: 1})

    lost: SetVar[Disk] = set_of(Disk)

    @action(spends=losses)
    def lose(self, d: Term[Disk]) -> None:
        require(~self.lost.has(d), "there is a copy on it")
        self.lost.add(d)

    @action(spends=repairs)
    def repair(self, d: Term[Disk]) -> None:
        require(self.lost.has(d), "it has none")
        self.lost.discard(d)

    @invariant
    def few_are_lost(self) -> Bool:
        return self.lost.size() <= MOST

    @sometimes
    def one_of_two_is_lost(self) -> Bool:
        return self.lost.size() == 1

    deadlock = allowed(because="disks may never be lost")
"""


def mirror(directory: Path, most: int) -> str:
    """A mirror that promises that no more than so many disks are ever lost."""
    file = directory / "mirror.py"
    file.write_text(MIRROR.replace("MOST", str(most)), "utf-8")
    return str(file)


def test_the_other_scopes_are_searched_too_and_get_a_line_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What nobody loses at one of them is no witness that is missing."""
    assert run_command_line(["check", mirror(tmp_path, 2)]) == 0
    lines = capsys.readouterr().out.splitlines()
    at = lines.index("also at the other scopes that the definition names:")
    assert [line.split(",")[0].strip() for line in lines[at + 1 :]] == [
        "✓  Disk=3",
        "✓  losses=0",
    ]


def test_what_breaks_only_at_another_scope_is_found_with_the_command_that_finds_it_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = mirror(tmp_path, 1)
    assert run_command_line(["check", machine, "--default-scope"]) == 0
    capsys.readouterr()
    assert run_command_line(["check", machine]) == 1
    out = capsys.readouterr().out
    assert "violated after 2 steps" in out
    again = next(line for line in reversed(out.splitlines()) if line.startswith("reproduce: "))
    assert again.endswith("--size disk=3 --budget losses=2 --budget repairs=0")
    assert run_command_line(again.removeprefix("reproduce: stagewright ").split()) == 1


@pytest.mark.parametrize(
    ("words", "searched"),
    [
        ([], 3),
        (["--default-scope"], 1),
        (["--size", "disk=2"], 1),
        (["--budget", "losses=1"], 1),
        (["--property", "one_of_two_is_lost"], 1),
        (["--property", "few_are_lost"], 3),
    ],
)
def test_who_names_a_scope_gets_that_one(
    words: list[str], searched: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_command_line(["check", mirror(tmp_path, 2), "--json", *words])
    reports = json.loads(capsys.readouterr().out)["reports"]
    assert len(reports) == searched
    assert (reports[0]["sizes"], reports[0]["budgets"]["losses"]) == ({"Disk": 2}, 1)


def test_a_time_limit_that_the_default_scope_uses_up_leaves_none_for_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run_command_line(["check", mirror(tmp_path, 2), "--timeout", "0.000001"])
    assert code == 3
    assert "also at" not in capsys.readouterr().out


def test_a_time_limit_is_one_for_all_scopes_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What each scope has used of it is gone for the next."""
    given: list[float | None] = []

    def noted(*arguments: Any) -> Result:
        given.extend(a.seconds for a in arguments if isinstance(a, Limits))
        return check_at(*arguments)

    monkeypatch.setattr("stagewright.commands.checking.check.check_at", noted)
    assert run_command_line(["check", mirror(tmp_path, 2), "--timeout", "1000"]) == 0
    first, second = (seconds for seconds in given if seconds is not None)
    assert 1000 > first > second > 0

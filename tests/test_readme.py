"""What the README shows is so: its definition is the shipped one, its commands exist, its figures hold."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stagewright.checker.check import check
from stagewright.checker.prove import prove
from stagewright.commands import COMMANDS, run_command_line
from stagewright.commands.console.exit_codes import ExitCode
from stagewright.machines import SHIPPED
from stagewright.machines.known_bugs import KNOWN_BUGS
from stagewright.machines.scylladb.tablets.tablet_migration import TabletMigration
from stagewright.spec.define import define
from stagewright.spec.machine import profile_names
from stagewright.spec.scope import scope_of
from stagewright.spec.verdict import Outcome, Report

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_definition_it_shows_is_the_shipped_one() -> None:
    (shown,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    lines = [line for line in shown.splitlines() if line.strip() and line.strip() != "..."]
    assert len(lines) <= 25
    shipped = "".join(
        (ROOT / "machines" / "scylladb" / "tablets" / f"tablet_{name}.py").read_text()
        for name in ("stages", "migration")
    )
    assert [line for line in lines if line not in shipped.splitlines()] == []


def test_every_command_it_names_exists_and_none_is_left_out() -> None:
    named = set(re.findall(r"`stagewright ([\w-]+)", README)) | {"demo"}
    assert named == {command.name for command in COMMANDS}


def test_it_names_every_machine() -> None:
    section = README.partition("## The machines")[2].partition("## ")[0]
    assert sorted(re.findall(r"`([a-z][a-z0-9]*(?:-[a-z]+)*)`", section)) == sorted(SHIPPED)
    assert f"as {len(SHIPPED)} machines" in section
    assert f"| all {len(SHIPPED)} |" in README
    historical = sum(bug.is_historical for bug in KNOWN_BUGS)
    assert f"{historical} historical bugs" in section
    assert f"{len(KNOWN_BUGS) - historical} mistakes" in section


def test_every_file_it_links_to_exists() -> None:
    links = [link for link in re.findall(r"\]\(([^)]+)\)", README) if "://" not in link]
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def figures_of_one_tablet() -> list[tuple[str, int]]:
    """The profiles of tablet migration, and how many states the README gives each: it is the one place."""
    (row,) = re.findall(r"\| `tablet-migration` \| each \|.* holds \((.*) states\) \|", README)
    numbers = [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*\d", row)]
    return list(zip(profile_names(TabletMigration), numbers, strict=True))


@pytest.mark.parametrize(("profile", "states"), figures_of_one_tablet())
def test_its_figures_for_one_tablet_hold(profile: str, states: int) -> None:
    definition = define(TabletMigration, profile)
    scope = scope_of(definition)
    report = check(definition, scope)
    assert (report.states, report.outcome) == (states, Outcome.HOLDS)
    proof: Report = prove(definition, scope, max_k=1)
    assert proof.outcome is Outcome.HOLDS


def test_the_counterexample_it_shows_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    section = README.partition("## A counterexample")[2].partition("## Commands")[0]
    (command,) = re.findall(r"`stagewright (check .*)` prints", section)
    (shown,) = re.findall(r"```text\n(.*?)```", section, re.DOTALL)
    # The shortest violation is found without what lies deeper.
    assert run_command_line([*command.split(), "--max-depth", "16"]) == ExitCode.VIOLATED
    printed = iter(capsys.readouterr().out.splitlines())
    assert [line for line in shown.splitlines() if line and line not in printed] == []

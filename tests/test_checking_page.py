"""The examples of the page on checking are definitions, and do what the page says of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stagewright.checker.check import check
from stagewright.checker.exercise import exercised
from stagewright.checker.tla import tla_module
from stagewright.spec import scope_of
from stagewright.spec.declarations.exercised import exercising_scopes
from stagewright.spec.loading import load
from stagewright.spec.verdict import Outcome

PAGE = Path(__file__).resolve().parents[1] / "docs" / "language" / "checking.md"
HEAD = """\
from stagewright.spec import *


class Node(Entity, scope=2): ...


"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    blocks = re.findall(
        r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    assert len(blocks) == 5
    path = tmp_path / "page.py"
    path.write_text(HEAD + "\n\n".join(blocks))
    return path


def test_the_bakery_is_bounded(file: Path) -> None:
    definition = load(f"{file}:Bakery")
    report = check(definition, scope_of(definition))
    assert {v.outcome for v in report.verdicts} == {Outcome.HOLDS}
    assert report.exhausted
    assert "bounded by `a_short_day`" in report.note
    init = tla_module(definition, scope_of(definition)).module.partition("Init ==\n")[2]
    shown = re.search(r"```tla\nInit ==\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert shown is not None
    assert init.startswith(shown[1])


def test_the_mirror_holds_at_each_of_its_scopes(file: Path) -> None:
    definition = load(f"{file}:Mirror")
    scopes = exercising_scopes(definition)
    assert [str(scope) for scope in scopes] == ["Disk=2, losses=1", "Disk=3, losses=2"]
    for scope in scopes:
        assert {v.outcome for v in check(definition, scope).verdicts} == {Outcome.HOLDS}


def test_the_client_may_leave(file: Path) -> None:
    definition = load(f"{file}:Client")
    names = {v.name for v in check(definition, scope_of(definition)).verdicts}
    assert names == {"assigned values stay in bounds"}


def test_the_door_gives_reasons_for_what_its_default_scope_leaves_out(file: Path) -> None:
    for keys, outcome in ((0, Outcome.HOLDS), (1, Outcome.VIOLATED)):
        definition = load(f"{file}:Door")
        report = check(definition, scope_of(definition, budgets={"keys": keys}))
        assert report.coverage is not None
        assert exercised(report, report.coverage).outcome is outcome


def test_the_tank_says_which_version_flows_over(file: Path) -> None:
    for profile, broken in (("first", {"it_does_not_flow_over"}), ("second", set[str]())):
        definition = load(f"{file}:Tank", profile)
        report = check(definition, scope_of(definition))
        assert {v.name for v in report.verdicts if v.outcome is Outcome.VIOLATED} == broken
        assert {known.promise for known in definition.known_violations} == broken

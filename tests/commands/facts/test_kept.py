"""Facts of shipped machines are kept on disk: the same words, no definition, and nothing that no longer holds."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from stagewright.commands import run_command_line
from stagewright.commands.facts import kept
from stagewright.commands.facts.facts import COMMITTED, MachineFacts
from stagewright.commands.facts.kept import keep_facts, kept_facts
from stagewright.commands.facts.of_definition import facts_of
from stagewright.machines import SHIPPED
from stagewright.spec.definition import Kept
from stagewright.spec.loading import load

NAME = "topology-request"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the user."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "stagewright" / "facts"


def facts() -> MachineFacts:
    """The facts of a machine, from its definition."""
    return facts_of(load(NAME, "", SHIPPED), ("one", "another"))


@pytest.mark.parametrize("name", [NAME, "tablet-migration", "index-build", "view-server"])
def test_what_is_kept_is_what_was_said(name: str) -> None:
    made = facts_of(load(name, "", SHIPPED), ("one", "another"))
    assert kept_facts(name, "") is None
    keep_facts(name, "", made)
    assert kept_facts(name, "") == made


def test_profiles_are_kept_apart() -> None:
    keep_facts(NAME, "", facts())
    keep_facts(NAME, "old", replace(facts(), profile="old"))
    first, second = kept_facts(NAME, ""), kept_facts(NAME, "old")
    assert first is not None
    assert second is not None
    assert (first.profile, second.profile) == (facts().profile, "old")


@pytest.mark.parametrize("form", ["text", "markdown", "json"])
def test_show_prints_the_same_from_what_is_kept(
    form: str, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = list[str]()
    for _ in range(2):
        assert run_command_line(["show", "tablet-migration", "--to", form]) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]
    assert [file.name for file in cache.iterdir()] == ["tablet-migration@.json"]


def test_the_second_time_nothing_is_defined() -> None:
    run = (
        "import sys; from stagewright.commands import run_command_line as run; code = run(['show', "
        f"'{NAME}']); sys.exit(code or 9 * ('stagewright.spec' in sys.modules))"
    )
    codes = [
        subprocess.run([sys.executable, "-c", run], stdout=subprocess.DEVNULL, check=False)
        for _ in range(2)
    ]
    assert [ended.returncode for ended in codes] == [9, 0]


def test_a_changed_source_ends_what_was_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = tmp_path / "machines" / "inner" / "machine.py"
    machine.parent.mkdir(parents=True)
    machine.write_text("x = 1\n")
    monkeypatch.setattr(kept, "_PACKAGE", tmp_path)
    keep_facts(NAME, "", facts())
    assert kept_facts(NAME, "") is not None
    machine.write_text("x = 10\n")
    assert kept_facts(NAME, "") is None
    keep_facts(NAME, "", facts())
    assert kept_facts(NAME, "") is not None
    machine.with_name("new.py").touch()
    assert kept_facts(NAME, "") is None


def test_all_that_a_definition_is_made_of_is_looked_at() -> None:
    looked_at = {entry.rsplit(" ", 2)[0] for entry in map(str, kept._sources())}
    assert all(any(file.endswith(end) for file in looked_at) for end in ENDS)


ENDS = (
    "spec/define.py",
    "spec/text/words.py",
    "topology/topology_request.py",
    "facts/of_definition.py",
)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"sources": 1}', "null"])
def test_a_damaged_file_is_none(text: str, cache: Path) -> None:
    keep_facts(NAME, "", facts())
    (cache / f"{NAME}@.json").write_text(text)
    assert kept_facts(NAME, "") is None


def test_facts_of_another_form_are_none(cache: Path) -> None:
    keep_facts(NAME, "", facts())
    file = cache / f"{NAME}@.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    content["facts"]["mood"] = "good"
    file.write_text(json.dumps(content), encoding="utf-8")
    assert kept_facts(NAME, "") is None


def test_without_a_place_to_keep_them_nothing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "no-folder").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "no-folder"))
    assert run_command_line(["show", NAME]) == 0
    assert "properties" in capsys.readouterr().out


@pytest.mark.parametrize("profile", ["../up", "a/b", "dawn"])
def test_only_names_of_profiles_name_files(
    profile: str, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["show", "tablet-migration", "--profile", profile]) == 2
    assert f"`{profile}`" in capsys.readouterr().err
    assert not cache.exists()


def test_what_is_not_said_of_variables_is_that_they_are_committed() -> None:
    assert Kept.COMMITTED.value == COMMITTED

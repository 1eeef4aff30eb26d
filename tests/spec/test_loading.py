"""A user's file is read as it is now, where it lies now, beside what lies beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from stagewright.spec.define import define
from stagewright.spec.definition import Definition
from stagewright.spec.errors import DefinitionError
from stagewright.spec.loading import find, load

COUNTER = '''"""Counts."""

{blank}from stagewright.spec import Machine, NumberVar, action, number, require


class Counter(Machine):
    """Counts up to three."""

    count: NumberVar = number(0, 3)

    @action
    def up(self) -> None:
        require({guard}, "not full")
        self.count = self.count + 1
'''


def written(folder: Path, *, lines_more: int = 0, guard: str = "self.count < 3") -> Path:
    folder.mkdir(exist_ok=True)
    file = folder / "counter.py"
    file.write_text(COUNTER.format(blank="\n" * lines_more, guard=guard), "utf-8")
    return file


def place_of_the_action(definition: Definition) -> tuple[int, str]:
    where = definition.actions[0].where
    assert where is not None
    return where.line, where.text()


def test_two_files_of_one_relative_name_have_their_own_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, more in (("one", 0), ("two", 7)):
        written(tmp_path / name, lines_more=more)
        monkeypatch.chdir(tmp_path / name)
        found = load("counter.py")
        assert place_of_the_action(found) == (12 + more, "    def up(self) -> None:")


def test_a_file_that_was_edited_has_its_new_lines(tmp_path: Path) -> None:
    for more in (0, 5):
        file = written(tmp_path, lines_more=more)
        assert place_of_the_action(load(str(file))) == (12 + more, "    def up(self) -> None:")


def test_the_error_of_an_edited_file_shows_the_new_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for guard in ("self.count < 3 and True", "self.count < 2 and True"):
        written(tmp_path, guard=guard)
        with pytest.raises(DefinitionError) as raised:
            load("counter.py")
        assert guard.removesuffix(" and True") in str(raised.value)


def test_a_machine_may_import_what_lies_beside_its_file(tmp_path: Path) -> None:
    (tmp_path / "limits_beside_the_counter.py").write_text("MOST = 2\n", "utf-8")
    file = tmp_path / "importing.py"
    text = COUNTER.format(
        blank="from limits_beside_the_counter import MOST\n", guard="self.count < MOST"
    )
    file.write_text(text, "utf-8")
    assert [a.name for a in define(find(str(file), {})).actions] == ["up"]


def test_what_lies_beside_a_file_hides_nothing_that_is_installed(tmp_path: Path) -> None:
    (tmp_path / "wave.py").write_text("raise AssertionError('not this one')\n", "utf-8")
    file = tmp_path / "importing_too.py"
    file.write_text(COUNTER.format(blank="import wave\n", guard="self.count < 3"), "utf-8")
    assert load(str(file)).name == "Counter"

"""Every error of a definition says where it is and what to write instead."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import stagewright.spec
from stagewright.spec import DefinitionError, Entity, Machine, Term, action, define, flag, per


def of_definitions(kind: type[DefinitionError] = DefinitionError) -> set[str]:
    """The names of the error classes that speak of definitions."""
    inner = [of_definitions(c) for c in kind.__subclasses__()]
    return {kind.__name__}.union(*inner)


NAMES = of_definitions()
FILES = sorted(Path(stagewright.spec.__file__).parent.rglob("*.py"))


def raised(file: Path) -> list[ast.Call]:
    return [
        node
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in NAMES
    ]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_no_definition_error_lacks_a_place_or_a_mend(file: Path) -> None:
    lacking = [
        call.lineno
        for call in raised(file)
        if not {"where", "help"} <= {k.arg for k in call.keywords}
    ]
    assert lacking == []


def test_there_are_errors_to_look_at() -> None:
    assert sum(len(raised(file)) for file in FILES) > 40


def test_sorts_and_machines_may_be_defined_inside_of_a_function() -> None:
    class Disk(Entity, scope=3): ...

    class Disks(Machine):
        full = per(Disk, flag())

        @action
        def fill(self, disk: Term[Disk]) -> None:
            self.full[disk] = True

    definition = define(Disks)
    assert [str(p.sort) for p in definition.action("fill").params] == ["Disk"]
    assert definition.entities == (Disk,)


def test_machines_inside_of_a_function_are_shown_at_their_place() -> None:
    class Disks(Machine):
        full = flag()

        @action
        def fill(self, disk: Term[Disk]) -> None:  # type: ignore[name-defined]  # noqa: F821
            self.full = True

    with pytest.raises(DefinitionError) as caught:
        define(Disks)
    place = caught.value.where
    assert place is not None
    assert place.file == __file__
    assert "def fill(self, disk: Term[Disk])" in place.text()
    assert "name 'Disk' is not defined" in caught.value.problem


def test_a_machine_whose_source_is_gone_is_still_refused() -> None:
    names: dict[str, object] = {
        "Machine": Machine,
        "action": action,
        "flag": flag,
        "__name__": "gone",
    }
    text = (
        "class Gone(Machine):\n  x = flag()\n  @action\n  def go(self):\n    self.x = not self.x\n"
    )
    exec(compile(text, "<gone>", "exec"), names)  # noqa: S102 a definition without a file
    gone = names["Gone"]
    assert isinstance(gone, type)
    with pytest.raises(DefinitionError, match=r"needs True or False.*\n  --> <gone>:5, in go"):
        define(gone)

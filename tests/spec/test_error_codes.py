"""Every kind of error has a code of its own; errors name the line and the fix."""

from __future__ import annotations

from pathlib import Path

import pytest

import stagewright.spec as language
from stagewright.spec.errors import InputError, StagewrightError, UnknownNameError
from stagewright.spec.loading import find, load
from stagewright.spec.text.suggestions import did_you_mean, nearest


def test_every_public_name_of_the_language_is_exported() -> None:
    public = {
        name
        for name, value in vars(language).items()
        if not name.startswith("_") and not hasattr(value, "__path__") and not is_module(value)
    }
    missing = public - set(language.__all__)
    assert missing == set(), "add it to `__all__` in spec/__init__.py"
    assert set(language.__all__) <= public


def is_module(value: object) -> bool:
    return type(value).__name__ == "module"


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("tablt", ["fencing", "tablet"], "did you mean `tablet`? "),
        ("TABLET", ["fencing", "tablet"], "did you mean `tablet`? "),
        ("zzz", ["fencing", "tablet"], ""),
        ("tablet", [], ""),
    ],
)
def test_the_nearest_name_is_suggested(name: str, known: list[str], hint: str) -> None:
    assert did_you_mean(name, known) == hint
    assert (nearest(name, known) is None) == (not hint)


def test_a_machine_that_is_not_there_is_answered_by_the_nearest_name() -> None:
    with pytest.raises(UnknownNameError, match=r"did you mean `tablet`\? `stagewright list` names"):
        find("tablt", {"tablet": "x:Y"})


NAMES = """\
from enum import Enum
import stagewright.spec as sw
class Replica(Enum):
    one = 1
class M(sw.Machine):
    seen = sw.per(Replica, sw.flag())
    @sw.action
    def go(self, r: sw.Term[Replica]) -> None:
        sw.require(~self.seen[r], "new")
        self.seen[r] = True
    @sw.invariant
    def fine(self) -> sw.Bool:
        return sw.every(self.seen[r] for r in Replica)
"""


@pytest.mark.parametrize(
    ("old", "new", "code", "mend"),
    [
        ("sw.invariant", "sw.invarient", "SW400", "did you mean `invariant`?"),
        ("sw.invariant", "sw.always", "SW400", "did you mean `invariant`?"),
        ("Term[Replica]", "Term[Replika]", "SW400", "did you mean `Replica`?"),
        (
            "import stagewright.spec as sw",
            "",
            "SW400",
            "import the language: `import stagewright.spec as sw`",
        ),
        (
            "sw.action",
            "action",
            "SW400",
            "import it: `from stagewright.spec import action`, or write `sw.action`",
        ),
        ("from enum import Enum", "", "SW400", "import it: `from enum import Enum`"),
        ("def fine(self)", "def fine(self: Self)", "SW400", "import it: `from typing import Self`"),
        (
            "sw.invariant",
            "sw.Self",
            "SW400",
            "import it: `from typing import Self`, and write `Self`",
        ),
        ("sw.require", "sw.requires", "SW105", "did you mean `require`?"),
        ("sw.every", "sw.all", "SW105", "did you mean `every`?"),
        ("for r in Replica)", "for r in Replika)", "SW105", "did you mean `Replica`?"),
    ],
)
def test_a_name_that_is_misspelt_or_not_imported(
    tmp_path: Path, old: str, new: str, code: str, mend: str
) -> None:
    file = tmp_path / "machine.py"
    file.write_text(NAMES.replace(old, new))
    with pytest.raises(StagewrightError) as caught:
        load(str(file))
    assert (caught.value.code, caught.value.help) == (code, mend)


def test_a_misspelt_name_in_a_postponed_annotation(tmp_path: Path) -> None:
    file = tmp_path / "machine.py"
    postponed = f"from __future__ import annotations\n{NAMES}"
    file.write_text(postponed.replace("Term[Replica]", "Term[Replika]"))
    with pytest.raises(StagewrightError) as caught:
        load(str(file))
    assert caught.value.code == "SW106"
    assert caught.value.help.startswith("did you mean `Replica`? or import the sort at run time")


POOR = """\
from stagewright import spec as sw
class Node(sw.Entity, scope=2): ...
class M(sw.Machine):
    crashes = sw.budget(1)
    seen{annotation} = sw.per(Node, sw.flag())
    @sw.action{option}
    def go(self, n: sw.Term[Node]) -> None:
        self.seen[n] = True
{rest}
"""


@pytest.mark.parametrize(
    ("annotation", "option", "rest", "code", "problem", "mend", "line"),
    [
        ("", "(budget=crashes)", "", "SW110", "`action` takes no `budget`", "`spends`?", 6),
        ("", "(fiar=sw.Fairness.WEAK)", "", "SW110", "`action` takes no `fiar`", "`fair`?", 6),
        ("", "", "", "SW107", "budget `crashes` is spent by no action", "spends=crashes", 4),
        (": sw.MapOf[Node, bool]", "", "", "SW109", "wrong number of sorts", "annotation", 5),
        ("", "(spends=crashes)", "1 / 0", "SW400", "ZeroDivisionError", "correct this line", 9),
    ],
)
def test_a_definition_that_fails_names_the_line_and_the_mend(
    tmp_path: Path,
    annotation: str,
    option: str,
    rest: str,
    code: str,
    problem: str,
    mend: str,
    line: int,
) -> None:
    file = tmp_path / "machine.py"
    file.write_text(POOR.format(annotation=annotation, option=option, rest=rest))
    with pytest.raises(StagewrightError) as caught:
        load(str(file))
    error = caught.value
    assert error.code == code
    assert problem in error.problem
    assert mend in error.help
    assert error.where is not None
    assert error.where.line == line
    assert isinstance(error, InputError) == (code == "SW400")

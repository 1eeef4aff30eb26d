"""What mypy and pyright see in a definition: a table of types, and a table of lines that they refuse."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

PRELUDE = """\
from __future__ import annotations

from enum import Enum, auto
from typing import reveal_type

from stagewright.spec import *


class Colour(Enum):
    red = auto()
    blue = auto()


class Stage(States):
    rest = {Colour.red}, 1, True, Colour.red, None
    moving = {Colour.red, Colour.blue}, 2, False, Colour.blue, Colour.red

    def __init__(
        self, writes: set[Colour], rank: int, idle: bool, shade: Colour, other: Colour | None
    ) -> None:
        self.writes, self.rank, self.idle, self.shade, self.other = writes, rank, idle, shade, other


class Node(Entity): ...


class Row(Record):
    present: FlagVar = flag()
    owner: OptionalVar[Node] = optional(Node)


class Inner(Machine):
    stage: OneVar[Stage] = one_of(Stage, init=Stage.rest)

    @action
    def move(self, stage: Term[Stage]) -> None:
        self.stage = stage


class Release(Profile):
    fenced: bool = False


class Base(Machine):
    release = profiles(Release("one"))
    crashes = budget(1)
    stage: OneVar[Stage] = one_of(Stage, init=Stage.rest)
    token: OneVar[Node] = one_of(Node)
    plain = one_of(Stage)
    learned = per(Node, one_of(Stage, init=Stage.rest))
    seen = per(Node, per(Colour, flag()))
    views = per(Colour, optional(Node))
    ready: FlagVar = flag()
    fresh: FlagVar = flag(init=ANY)
    copies: NumberVar = number(0, 3)
    leader: OptionalVar[Node] = optional(Node)
    up: SetVar[Node] = set_of(Node)
    colours = set_of(Colour)
    row: Var[Row, Row] = record(Row)
    rows = per(Node, record(Row))
    size = constant(number(1, 3, init=ANY))
    inner = part(Inner)
    many = many(Inner, over=Node)

    @action(spends=crashes)
    def crash(self, node: Term[Node], colour: Term[Colour]) -> None:
        self.stage = Stage.rest
        self.ready = True
        self.copies = 2
        self.copies += 1
        self.leader = None
        self.leader = node
        self.up = self.up - self.up
        self.row = self.rows[node]
        self.rows[node] = self.row
        self.learned[node] = Stage.rest
        self.learned[node] = self.stage
        self.seen[node][colour] = True
        self.views[colour] = node
        self.views[colour] = None
        self.inner.stage = Stage.rest
        self.many[node].stage = self.stage


"""

REVEALED = {
    "self.release": "Release",
    "self.stage": "Term[Stage]",
    "self.token": "Term[Node]",
    "self.plain": "Term[Stage]",
    "self.learned": "MapOf[Node, Term[Stage], Stage]",
    "self.learned[node]": "Term[Stage]",
    "self.seen[node]": "MapOf[Colour, Bool, bool]",
    "self.seen[node][Colour.red]": "Bool",
    "self.views[Colour.red]": "Maybe[Node]",
    "self.ready": "Bool",
    "self.fresh": "Bool",
    "self.copies": "Number",
    "self.leader": "Maybe[Node]",
    "self.up": "SetOf[Node]",
    "self.colours": "SetOf[Colour]",
    "self.row": "Row",
    "self.row.present": "Bool",
    "self.row.owner": "Maybe[Node]",
    "self.rows[node].owner": "Maybe[Node]",
    "self.size": "Number",
    "self.inner": "Inner",
    "self.inner.stage": "Term[Stage]",
    "self.many": "Family[Node, Inner]",
    "self.many[node]": "Inner",
    "self.many[node].stage": "Term[Stage]",
    "self.stage == Stage.rest": "Bool",
    "self.stage != self.learned[node]": "Bool",
    "self.leader == node": "Bool",
    "node == self.leader": "Bool",
    "self.leader == None": "Bool",
    "self.copies < 3": "Bool",
    "3 >= self.copies": "Bool",
    "self.copies + 1": "Number",
    "1 + self.copies - self.size": "Number",
    "1 - self.copies": "Number",
    "self.ready & ~self.fresh": "Bool",
    "self.ready | True": "Bool",
    "self.ready == self.fresh": "Bool",
    "self.ready.implies(self.fresh)": "Bool",
    "self.row == self.rows[node]": "Bool",
    "self.learned == self.learned": "Bool",
    "self.stage.any_of(Stage.rest, Stage.moving)": "Bool",
    "self.leader.is_some()": "Bool",
    "self.up.has(node)": "Bool",
    "self.up | self.up": "SetOf[Node]",
    "self.colours - {Colour.red}": "SetOf[Colour]",
    "self.colours & self.colours": "SetOf[Colour]",
    "self.up.is_empty()": "Bool",
    "self.up.size()": "Number",
    "self.colours <= {Colour.red}": "Bool",
    "self.stage.column(lambda s: s.writes)": "SetOf[Colour]",
    "self.stage.number_column(lambda s: s.rank)": "Number",
    "self.stage.column(lambda s: s.idle)": "Bool",
    "self.stage.column(lambda s: s.shade)": "Term[Colour]",
    "self.stage.optional_column(lambda s: s.other)": "Maybe[Colour]",
    "self.stage.optional_column(lambda s: s.shade)": "Maybe[Colour]",
    "self.stage.column(lambda s: s is Stage.rest)": "Bool",
    "self.stage.column(lambda s, t: s.rank < t.rank, self.stage)": "Bool",
    "self.stage.column(lambda s, t: s.shade if t.idle else t.shade, self.stage)": "Term[Colour]",
    "self.stage.column(lambda s, t: s.writes | t.writes, self.stage)": "SetOf[Colour]",
    "self.stage.number_column(lambda s, t: s.rank + t.rank, self.stage)": "Number",
    "self.stage.optional_column(lambda s, t: s.other or t.other, self.stage)": "Maybe[Colour]",
    "choose(self.ready, self.stage, Stage.rest)": "Term[Stage]",
    "choose(self.ready, Stage.rest, self.stage)": "Term[Stage]",
    "choose(self.ready, Stage.rest, Stage.moving)": "Term[Stage]",
    "choose(self.ready, self.token, node)": "Term[Node]",
    "choose(self.ready, self.leader, None)": "Maybe[Node]",
    "choose(self.ready, None, self.leader)": "Maybe[Node]",
    "choose(self.ready, node, self.leader)": "Maybe[Node]",
    "choose(self.ready, node, None)": "Maybe[Node]",
    "choose(self.ready, self.fresh, False)": "Bool",
    "choose(self.ready, True, self.fresh)": "Bool",
    "choose(self.ready, self.copies + 1, 0)": "Number",
    "choose(self.ready, 1, 2)": "Number",
    "choose(self.ready, self.up, self.up)": "SetOf[Node]",
    "choose(self.ready, self.colours, {Colour.red})": "SetOf[Colour]",
    "choose(self.ready, self.row, self.rows[node])": "Row",
    "every(self.up.has(n) for n in Node)": "Bool",
    "some(self.seen[n][c] for n in self.up for c in Colour)": "Bool",
    "count(self.up.has(n) for n in Node)": "Number",
    "every(n == node for n in self.leader)": "Bool",
    "[n for n in Node]": "list[Term[Node]]",
    "[c for c in self.colours]": "list[Term[Colour]]",
    "Base.stage": "Var[Term[Stage], Stage]",
    "Base.ready": "Var[Bool, bool]",
    "Base.learned": "Var[MapOf[Node, Term[Stage], Stage], Stage]",
    "Base.inner": "Part[Inner]",
    "Base.many": "Many[Node, Inner]",
    "leads_to(self.ready, self.fresh)": "LeadsTo",
    "Term.of(Stage.rest)": "Term[Stage]",
    "Node(1)": "Node",
}

BOTH = ("mypy", "pyright")

REFUSED: dict[str, tuple[str, ...]] = {
    "require(self.stage == Colour.red, 'x')": BOTH,
    "require(self.stage != 'rest', 'x')": BOTH,
    "require(self.stage == self.leader, 'x')": BOTH,
    "require(self.leader == Stage.rest, 'x')": BOTH,
    "require(self.copies < Stage.rest, 'x')": BOTH,
    "require(self.copies == 'a', 'x')": BOTH,
    "require(self.ready == self.copies, 'x')": BOTH,
    "require(self.ready & self.stage, 'x')": BOTH,
    "require(self.stage, 'x')": BOTH,
    "require('x', self.ready)": BOTH,
    "require(self.stage < Stage.moving, 'x')": BOTH,
    "require(self.row == self.leader, 'x')": BOTH,
    "self.stage = Colour.red": BOTH,
    "self.stage = self.leader": BOTH,
    "self.ready = 3": BOTH,
    "self.ready = self.copies": BOTH,
    "self.copies = 'a'": BOTH,
    "self.leader = Stage.rest": BOTH,
    "self.up = {Colour.red}": BOTH,
    "self.row = True": BOTH,
    "self.row.present = Stage.rest": BOTH,
    "self.learned[node] = Colour.red": BOTH,
    "self.learned[Colour.red] = Stage.rest": BOTH,
    "require(self.learned[Colour.red] == Stage.rest, 'x')": BOTH,
    "require(self.learned[self.leader] == Stage.rest, 'x')": BOTH,
    "self.seen[node][Stage.rest] = True": BOTH,
    "self.views[Colour.red] = Colour.red": BOTH,
    "self.inner.stage = Colour.red": BOTH,
    "self.many[node].stage = Colour.red": BOTH,
    "require(self.many[Colour.red].stage == Stage.rest, 'x')": BOTH,
    "self.up.add(Colour.red)": BOTH,
    "self.up.add(self.leader)": BOTH,
    "require(self.up.has(Colour.red), 'x')": BOTH,
    "require(self.up == self.colours, 'x')": BOTH,
    "require(self.stagee == Stage.rest, 'x')": BOTH,
    "require(self.row.presnt, 'x')": BOTH,
    "require(self.stage.rank == 1, 'x')": BOTH,
    "require(self.stage.column(lambda s: s.colour), 'x')": BOTH,
    "require(every(self.stage for n in Node), 'x')": BOTH,
    "self.inner.move(Colour.red)": BOTH,
    "self.inner.move(self.leader)": BOTH,
    "self.inner.move()": BOTH,
    "choose(self.ready, Stage.rest, self.colours)": BOTH,
    "choose(self.stage, True, False)": BOTH,
    "leads_to(self.ready, self.stage)": BOTH,
    "Base.stage.step(Stage.rest, Colour.red)": BOTH,
    "Base.learned.step(Colour.red, Stage.rest)": BOTH,
    "Base.ready.step(True, False)": BOTH,
    "action(spends='crashes')": BOTH,
    "action(fair=True)": BOTH,
    "a: OneVar[Stage] = one_of(Stage, init=Colour.red); print(a)": BOTH,
    "one_of(str)": BOTH,
    "flag(init=3)": BOTH,
    "number(0, 3, init='a')": BOTH,
    "a: OptionalVar[Node] = optional(Node, init=Colour.red); print(a)": BOTH,
    "a: SetVar[Colour] = set_of(Colour, init={Stage.rest}); print(a)": BOTH,
    "require(self.stage.column(lambda s: s.rank) == 1, 'x')": BOTH,
    "require(self.stage.column(lambda s: s.other) == None, 'x')": BOTH,
    "require(self.stage.number_column(lambda s: s.shade) == 1, 'x')": BOTH,
    "per(Stage, Stage)": BOTH,
    "record(Node)": BOTH,
    "part(Node)": BOTH,
    "require(not self.ready, 'x')": BOTH,
    "require(self.stage in (Stage.rest,), 'x')": BOTH,
    "require(Stage.rest == self.stage == Stage.rest, 'x')": BOTH,
    "require(1 <= self.copies <= 2, 'x')": (),  # only the definition itself refuses this
    "require(self.ready and self.fresh, 'x')": ("mypy",),
    "require(self.ready or self.fresh, 'x')": ("mypy",),
    "require(all([self.ready]), 'x')": BOTH,
    "self.stage = Stage.rest if self.ready else Stage.moving": ("pyright",),
    "if self.ready: print()": ("pyright",),
    "while self.ready: print()": ("pyright",),
    "assert self.ready": ("pyright",),
}

WRONG_COLUMN = """
class Table(States):
    first = {Colour.red}, 1
    second = {Stage.rest}, 1

    def __init__(self, writes: set[Colour], rank: int) -> None:
        self.writes, self.rank = writes, rank
"""

Lines = dict[str, dict[int, list[str]]]  # by file, then by line: what a checker says


def mypy(files: list[Path]) -> Lines:
    """What mypy says, as a user runs it: strict, with warnings of code that cannot be reached."""
    command = [
        *(sys.executable, "-m", "mypy", "--strict", "--warn-unreachable", "--no-error-summary"),
        *("--cache-dir", str(files[0].parent / "cache"), "--config-file", ""),
    ]
    run = subprocess.run(
        [*command, *map(str, files)],
        capture_output=True,
        text=True,
        check=False,
        env={"MYPYPATH": str(ROOT / "src"), "PATH": ""},
        cwd=files[0].parent,
    )
    assert run.returncode in {0, 1}, run.stdout + run.stderr
    said: Lines = {}
    for line in run.stdout.splitlines():
        match = re.match(r"(.+?):(\d+): (error|note): (.*)", line)
        assert match is not None, line
        file, number, kind, text = match.groups()
        if kind == "error" or text.startswith("Revealed"):
            said.setdefault(Path(file).name, {}).setdefault(int(number), []).append(text)
    return said


def pyright(files: list[Path]) -> Lines:
    """What pyright says in its strict mode."""
    folder = files[0].parent
    config = {"include": [f.name for f in files], "extraPaths": [str(ROOT / "src")]}
    config |= {"typeCheckingMode": "strict"}  # type: ignore[dict-item]
    (folder / "pyrightconfig.json").write_text(json.dumps(config))
    command = (sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable)
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    said: Lines = {}
    for found in json.loads(run.stdout)["generalDiagnostics"]:
        if found["severity"] == "warning":
            continue
        place = found["range"]["start"]["line"] + 1
        said.setdefault(Path(found["file"]).name, {}).setdefault(place, []).append(found["message"])
    return said


CHECKERS: dict[str, Callable[[list[Path]], Lines]] = {"mypy": mypy, "pyright": pyright}


def written(lines: list[str], *, before: str) -> tuple[str, dict[str, int]]:
    """A module with a method for each line, and the number of each line in it."""
    text, numbers = before, {}
    for index, line in enumerate(lines):
        text += (
            f"    @action\n    def m{index}(self, node: Term[Node]) -> None:\n        {line}\n\n"
        )
        numbers[line] = text.count("\n") - 1
    return text, numbers


@pytest.fixture(scope="module", params=list(CHECKERS))
def said(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Lines, dict[str, int], dict[str, int]]:
    """One run of a checker over all files: its name, what it says, and where each line stands."""
    folder = tmp_path_factory.mktemp(request.param)
    user = folder / "user_machine.py"
    user.write_text((ROOT / "tests" / "models" / "user_machine.py").read_text())
    header = "class {}(Base):\n"
    reveals, revealed_at = written(
        [f"reveal_type({e})" for e in REVEALED], before=PRELUDE + header.format("Reveals")
    )
    refuses, refused_at = written(list(REFUSED), before=PRELUDE + header.format("Refuses"))
    refused_at["wrong column"] = (
        refuses.count("\n") + WRONG_COLUMN[: WRONG_COLUMN.index("second")].count("\n") + 1
    )
    files = [folder / "revealed.py", folder / "refused.py", user]
    files[0].write_text(reveals)
    files[1].write_text(refuses + WRONG_COLUMN)
    return request.param, CHECKERS[request.param](files), revealed_at, refused_at


pytestmark = pytest.mark.slow


def test_types_are_revealed_precisely(
    said: tuple[str, Lines, dict[str, int], dict[str, int]],
) -> None:
    _, lines, at, _ = said
    wrong = {}
    for expression, wanted in REVEALED.items():
        texts = lines["revealed.py"].get(at[f"reveal_type({expression})"], ["nothing"])
        found = texts[-1].rpartition(' is "')[2].rstrip('"')
        found = re.sub(r"\b(?:\w+\.)+", "", found)
        if len(texts) != 1 or found != wanted:
            wrong[expression] = texts
    assert wrong == {}


def test_nothing_else_is_said_of_a_sound_machine(
    said: tuple[str, Lines, dict[str, int], dict[str, int]],
) -> None:
    _, lines, at, _ = said
    expected = set(at.values())
    assert {n: t for n, t in lines["revealed.py"].items() if n not in expected} == {}


def test_wrong_lines_are_refused(said: tuple[str, Lines, dict[str, int], dict[str, int]]) -> None:
    checker, lines, _, at = said
    wanted = {line for line, checkers in REFUSED.items() if checker in checkers}
    refused = {line for line in REFUSED if at[line] in lines["refused.py"]}
    assert sorted(wanted - refused) == []
    assert (at["wrong column"] in lines["refused.py"]) == (checker == "pyright")


def test_a_users_file_of_sixty_lines_is_clean(
    said: tuple[str, Lines, dict[str, int], dict[str, int]],
) -> None:
    _, lines, _, _ = said
    assert lines.get("user_machine.py", {}) == {}

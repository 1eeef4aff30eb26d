"""What type checkers see in a user's definition: one table of revealed types, one of refused lines, for both.

mypy and pyright run once each, over one generated file.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

DEFINITION = """
from collections.abc import Set
from enum import Enum, auto
from typing import Self, reveal_type
from stagewright.spec import *

class Replica(Enum):
    old = auto()
    new = auto()

class Stage(States):
    rest = {Replica.old}, 0
    moving = {Replica.old, Replica.new}, 1
    def __init__(self, writes: set[Replica], rank: int) -> None:
        self.writes = writes
        self.rank = rank
    @property
    def after(self) -> "Stage | None":
        return None

class Other(Enum):
    x = auto()

class Node(Entity, scope=2):
    pass

class Row(Record):
    present = flag()
    value = number(0, 3)

class Lifecycle(Machine):
    up: FlagVar = flag(init=True)
    @action
    def crash(self) -> None:
        self.up = False
    @action
    def move_to(self, stage: Term[Stage]) -> None:
        require(stage == Stage.rest, "rest")

class System(Machine):
    stage: OneVar[Stage] = one_of(Stage, init=Stage.rest)
    learned = per(Node, one_of(Stage, init=Stage.rest))
    matrix = per(Node, per(Replica, flag()))
    leader: OptionalVar[Node] = optional(Node)
    epoch: NumberVar = number(0, 3)
    ok: FlagVar = flag()
    replicas: SetVar[Node] = set_of(Node)
    row = per(Node, record(Row))
    main = part(Lifecycle)
    nodes = many(Lifecycle, over=Node)

    @action
    def act(self, n: Term[Node], r: Term[Replica]) -> None:
"""

REVEALED = {
    "self.stage": "Term[Stage]",
    "self.learned[n]": "Term[Stage]",
    "self.matrix[n][r]": "Bool",
    "self.matrix[n][Replica.old]": "Bool",
    "self.leader": "Maybe[Node]",
    "self.epoch": "Number",
    "self.epoch + 1": "Number",
    "self.epoch >= 1": "Bool",
    "self.ok": "Bool",
    "self.ok & ~self.ok": "Bool",
    "self.replicas": "SetOf[Node]",
    "self.replicas | self.replicas": "SetOf[Node]",
    "self.replicas.has(n)": "Bool",
    "self.replicas.size()": "Number",
    "self.row[n]": "Row",
    "self.row[n].value": "Number",
    "self.main": "Lifecycle",
    "self.main.up": "Bool",
    "self.nodes[n]": "Lifecycle",
    "self.nodes[n].up": "Bool",
    "self.stage == Stage.rest": "Bool",
    "self.stage != self.learned[n]": "Bool",
    "self.leader == n": "Bool",
    "self.leader == None": "Bool",
    "self.stage.any_of(Stage.rest, Stage.moving)": "Bool",
    "self.stage.column(lambda s: s.writes)": "SetOf[Replica]",
    "self.stage.column(lambda s: s.writes).has(r)": "Bool",
    "self.stage.column(lambda s: s is Stage.rest)": "Bool",
    "self.stage.column(lambda s: Stage.rest)": "Term[Stage]",
    "self.stage.number_column(lambda s: s.rank)": "Number",
    "self.stage.optional_column(lambda s: s.after)": "Maybe[Stage]",
    "choose(self.ok, self.stage, Stage.rest)": "Term[Stage]",
    "choose(self.ok, Stage.moving, Stage.rest)": "Term[Stage]",
    "choose(self.ok, self.epoch, 0)": "Number",
    "choose(self.ok, 1, 0)": "Number",
    "choose(self.ok, self.ok, False)": "Bool",
    "choose(self.ok, None, self.leader)": "Maybe[Node]",
    "choose(self.ok, n, self.leader)": "Maybe[Node]",
    "choose(self.ok, self.replicas, frozenset())": "SetOf[Node]",
    "every(self.learned[m] == self.stage for m in Node)": "Bool",
    "some(self.learned[m] == self.stage for m in self.replicas)": "Bool",
    "count(self.row[m].present for m in Node)": "Number",
    "[m for m in Node]": "list[Term[Node]]",
    "[m for m in self.replicas]": "list[Term[Node]]",
    "[m for m in self.leader]": "list[Term[Node]]",
    "Term.of(Stage.rest)": "Term[Stage]",
}

# Each line with the checkers that refuse it. (A misuse that only one of them sees is refused when the
# definition is made as well: tests/spec/test_truth_traps.py.)
BOTH = frozenset({"mypy", "pyright"})
REFUSED = {
    "require(self.stage == Other.x, 'x')": BOTH,
    "require(self.stage == 'rest', 'x')": BOTH,
    "require(self.epoch == Stage.rest, 'x')": BOTH,
    "require(self.leader == Stage.rest, 'x')": BOTH,
    "require(self.stage, 'x')": BOTH,
    "require(self.ok)(1)": BOTH,
    "require(not self.ok, 'x')": BOTH,
    "require(self.stage in (Stage.rest,), 'x')": BOTH,
    "require(self.ok and self.ok, 'x')": frozenset({"mypy"}),  # as unreachable code
    "if self.ok: self.epoch = 1": BOTH,
    "assert self.ok": frozenset({"pyright"}),
    "self.stage = Other.x": BOTH,
    "self.stage = 'rest'": BOTH,
    "self.ok = 3": BOTH,
    "self.epoch = Stage.rest": BOTH,
    "self.learned[n] = Other.x": BOTH,
    "self.learned[Replica.old] = Stage.rest": BOTH,
    "self.learned[0] = Stage.rest": BOTH,
    "self.learned[r]": BOTH,
    "self.row[n].value = 'three'": BOTH,
    "self.leader = Stage.rest": BOTH,
    "self.replicas.add(r)": BOTH,
    "self.replicas.has(Stage.rest)": BOTH,
    "self.stagee": BOTH,
    "self.row[n].valu": BOTH,
    "self.nodes[n].upp": BOTH,
    "self.nodes[r].up": BOTH,
    "self.stage == Stage.nope": BOTH,
    "self.nodes[n].move_to(n)": BOTH,
    "self.nodes[n].crash(1)": BOTH,
    "choose(self.ok, self.stage, Replica.old)": BOTH,
    "self.stage.column(lambda s: s.write)": BOTH,
    "self.epoch + self.ok": BOTH,
    "System.stage.step(Stage.rest, Other.x)": BOTH,
    "action(by='me')": BOTH,
}


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[int, list[str]]]:
    """What each checker says, by line of the generated file: mypy and pyright."""
    folder = tmp_path_factory.mktemp("types")
    lines = DEFINITION.splitlines()
    lines += [f"        reveal_type({expression})" for expression in REVEALED]
    for number, line in enumerate(
        REFUSED
    ):  # one method each: what follows a mistake may be unreachable
        lines += [
            f"    def m{number}(self, n: Term[Node], r: Term[Replica]) -> None:",
            f"        {line}",
        ]
    file = folder / "definition.py"
    file.write_text("\n".join(lines) + "\n")
    (folder / "mypy.ini").write_text(
        f"[mypy]\nstrict = True\nwarn_unreachable = True\nmypy_path = {ROOT / 'src'}\n"
    )
    (folder / "pyrightconfig.json").write_text(
        json.dumps({"typeCheckingMode": "strict", "extraPaths": [str(ROOT / "src")]})
    )
    return {"mypy": _mypy(file), "pyright": _pyright(file)}


def _mypy(file: Path) -> dict[int, list[str]]:
    command = [sys.executable, "-m", "mypy", "--config-file", str(file.parent / "mypy.ini")]
    ran = subprocess.run([*command, str(file)], capture_output=True, text=True, check=False)
    found: dict[int, list[str]] = {}
    for line, kind, text in re.findall(r"definition\.py:(\d+): (error|note): (.*)", ran.stdout):
        if kind == "error" or "Revealed" in text:
            found.setdefault(int(line), []).append(text)
    assert found, ran.stdout + ran.stderr
    return found


def _pyright(file: Path) -> dict[int, list[str]]:
    command = [sys.executable, "-m", "pyright", "--outputjson", "-p", str(file.parent)]
    ran = subprocess.run(
        [*command, "--pythonpath", sys.executable], capture_output=True, text=True, check=False
    )
    found: dict[int, list[str]] = {}
    for one in json.loads(ran.stdout)["generalDiagnostics"]:
        # What is only unused or partly unknown here says nothing of the line itself.
        rule = one.get("rule", "")
        if rule in {"reportUnusedExpression", "reportUnusedImport", "reportUnusedCallResult"}:
            continue
        found.setdefault(one["range"]["start"]["line"] + 1, []).append(one["message"])
    return found


FIRST = len(DEFINITION.splitlines()) + 1


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
@pytest.mark.parametrize(("number", "expression"), [*enumerate(REVEALED)], ids=REVEALED)
def test_both_checkers_reveal_the_same_type(
    said: dict[str, dict[int, list[str]]], checker: str, number: int, expression: str
) -> None:
    texts = said[checker].get(FIRST + number, [])
    revealed = [re.search(r'is "(.*)"$', text) for text in texts]
    types = [re.sub(r"\b(?:\w+\.)+(\w)", r"\1", m.group(1)) for m in revealed if m]
    assert types == [REVEALED[expression]], texts


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
@pytest.mark.parametrize(("number", "line"), [*enumerate(REFUSED)], ids=REFUSED)
def test_a_wrong_line_is_refused(
    said: dict[str, dict[int, list[str]]], checker: str, number: int, line: str
) -> None:
    refused = bool(said[checker].get(FIRST + len(REVEALED) + 2 * number + 1))
    assert refused == (checker in REFUSED[line])


def test_a_table_of_states_with_a_wrong_column_is_refused(tmp_path: Path) -> None:
    """Pyright checks the columns against `__init__`."""
    file = tmp_path / "columns.py"
    file.write_text(
        "from stagewright.spec import States\n\n\nclass Stage(States):\n    good = True, 1\n"
        "    bad = True, 'one'\n    short = True\n\n"
        "    def __init__(self, flag: bool, rank: int) -> None: ...\n"
    )
    (tmp_path / "pyrightconfig.json").write_text(
        json.dumps({"typeCheckingMode": "strict", "extraPaths": [str(ROOT / "src")]})
    )
    assert {6, 7} <= set(_pyright(file))

"""Traps: short wrong definitions with a line of carets under what the error must point at."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from stagewright.spec import DefinitionError, define
from stagewright.spec.loading import find

PRELUDE = '''\
"""A sound machine, to which a trap adds what is wrong."""

from __future__ import annotations

from enum import Enum, auto
from typing import Annotated, Self

from stagewright.spec import *


class Colour(Enum):
    red = auto()
    blue = auto()


class Stage(States):
    rest = {Colour.red}, 1
    moving = {Colour.red, Colour.blue}, 2

    def __init__(self, writes: set[Colour], rank: int) -> None:
        self.writes, self.rank = writes, rank


class Node(Entity): ...


class Row(Record):
    present = flag()
    owner = optional(Node)


class Sound(Machine):
    stage = one_of(Stage, init=Stage.rest)
    learned = per(Node, one_of(Stage, init=Stage.rest))
    seen = per(Node, per(Colour, flag()))
    views = per(Node, optional(Stage))
    ready = flag()
    fresh = flag()
    copies = number(0, 3)
    leader = optional(Node)
    up = set_of(Node)
    colours = set_of(Colour)
    row = record(Row)
    rows = per(Node, record(Row))

    @action
    def churn(self, node: Term[Node]) -> None:
        self.learned[node] = self.stage
        self.stage = Stage.moving
        self.seen[node][Colour.red] = True
        self.views[node] = Stage.rest
        self.ready = ~self.fresh
        self.fresh = True
        self.copies = choose(self.copies < 3, self.copies + 1, 0)
        self.leader = node
        self.up.add(node)
        self.colours.add(Colour.red)
        self.row.present = True
        self.rows[node].owner = node


'''

Refusal = Callable[[str, str, str], DefinitionError]


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str], Path]:
    """Writes text to a file of its own and says where."""

    def write(text: str) -> Path:
        path = tmp_path / "trap.py"
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def refused_module(written: Callable[[str], Path]) -> Refusal:
    """`refused_module(definitions, problem, help)`: the class `Trap` is refused as said, where marked.

    The text stands below the sound machine. Its line of carets is not part of it: the error must point at
    exactly what it marks in the line above it. Without carets the error must have no place in the file.
    """

    def refuse(text: str, problem: str, help: str) -> DefinitionError:
        lines = (PRELUDE + textwrap.dedent(text)).splitlines()
        marks = [i for i, line in enumerate(lines) if line.strip() and not line.strip(" ^")]
        assert len(marks) == 1, "mark one place with carets"
        caret = lines.pop(marks[0])
        path = written("\n".join(lines) + "\n")
        with pytest.raises(DefinitionError) as caught:
            define(find(f"{path}:Trap", {}))
        error = caught.value
        assert error.problem == problem
        assert help in error.help
        shown = str(error).splitlines()
        place = shown[1].partition(", in ")[0]
        assert [shown[0], place] == [problem, f"  --> {path}:{marks[0]}"]
        assert shown[2] == f"   | {lines[marks[0] - 1]}"
        if sys.version_info < (3, 13):
            assert shown[3] == f"   | {caret}"
        else:  # newer releases report a part of a `for` statement
            assert {i for i, c in enumerate(shown[3]) if c == "^"} <= {
                i + 5 for i, c in enumerate(caret) if c == "^"
            }
        assert shown[4] == f"  help: {error.help}"
        return error

    return refuse


@pytest.fixture
def refused(refused_module: Refusal) -> Refusal:
    """The same for members of a class `Trap` that inherits from the sound machine."""

    def refuse(text: str, problem: str, help: str) -> DefinitionError:
        members = textwrap.indent(textwrap.dedent(text).strip("\n"), "    ")
        return refused_module(f"class Trap(Sound):\n{members}\n", problem, help)

    return refuse

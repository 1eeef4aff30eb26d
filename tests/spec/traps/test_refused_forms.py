"""The page's table of conditions: each form on its right is refused, and the error has the form on the left."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from stagewright.spec import DefinitionError, define
from stagewright.spec.loading import find

PAGE = Path(__file__).parents[3] / "docs" / "language" / "README.md"
MACHINE = '''\
"""A machine with one condition."""

from enum import Enum

from stagewright.spec import *


class Role(Enum):
    low = 1
    high = 2


class Node(Entity): ...


class Trap(Machine):
    role = one_of(Role, init=Role.low)
    last = optional(Node)
    of_role = set_of(Role)
    of_node = set_of(Node)
    n = number(0, 3)
    a = flag()
    b = flag()

    @action
    def go(self, r: Term[Role], m: Term[Node]) -> None:
        {statement}
        self.n = 1
'''
# By the form on the right, as the page has it: conditions of that form, and what the error says instead.
FORMS: dict[str, tuple[list[str], str]] = {
    "a and b": (["self.a and self.b"], "write `(a) & (b)`"),
    "a or b": (["self.a or self.b"], "write `(a) | (b)`"),
    "not a": (["not self.a"], "write `~(a)`"),
    "if a:": (["True if self.a else False"], "write `choose(condition, one, other)`"),
    "a == b & c == d": (
        ["self.role == r & self.role == r", "self.n == 1 & self.n == 2"],
        "(a == b)",
    ),
    "0 < n < 3": (["0 < self.n < 3"], "write `(a <= b) & (b <= c)`"),
    "all(…)": (
        ["all(self.of_role.has(x) for x in Role)", "all(self.of_node.has(x) for x in Node)"],
        "every(…",
    ),
    "any(…)": (
        ["any(self.of_role.has(x) for x in Role)", "any(self.of_node.has(x) for x in Node)"],
        "some(…",
    ),
    "sum(…)": (
        [
            "sum(self.of_role.has(x) for x in Role) > 1",
            "sum(self.of_node.has(x) for x in Node) > 1",
        ],
        "`count(",
    ),
    "r in s": (["r in self.of_role", "m in self.of_node"], "`set.has(x)`"),
    "stage in (A, B)": (["self.role in (Role.low, Role.high)"], "`x.any_of(A, B)`"),
    "x is None": (["self.last is None"], "write `self.last.is_none()`"),
    "this if condition else that": (["self.a if self.b else self.a"], "write `choose("),
    "a dictionary": (["{Role.low: True}[self.role]"], "`x.column(table.__getitem__)`"),
}
CASES = [(text, help) for conditions, help in FORMS.values() for text in conditions]


def test_every_form_of_the_page_is_tried() -> None:
    table = PAGE.read_text("utf-8").split("| write | instead of |")[1].split("\n\n")[0]
    rows = [re.split(r"(?<!\\)\|", row)[2].strip() for row in table.splitlines()[2:]]
    listed = [form for row in rows for form in re.findall(r"`([^`]+)`", row) or [row]]
    assert sorted(listed) == sorted(FORMS)


@pytest.mark.parametrize(("condition", "help"), CASES)
def test_form_of_python_in_a_guard(
    written: Callable[[str], Path], condition: str, help: str
) -> None:
    path = written(MACHINE.format(statement=f'require({condition}, "so")'))
    with pytest.raises(DefinitionError) as caught:
        define(find(f"{path}:Trap", {}))
    error = caught.value
    assert error.where is not None
    assert error.where.text().strip() == f'require({condition}, "so")'
    assert help in error.help

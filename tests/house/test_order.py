"""What is simulated depends on a seed alone: no loop goes through a set in the order in which the process hashes it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SIMULATED = (
    *("cdc", "catalog", "group0", "indexes", "node", "recording", "ring", "simulator", "storage"),
    *("tablets", "topology", "views", "view_engine"),
)
ANY_ORDER = {"all", "any", "frozenset", "len", "max", "min", "set", "sorted", "sum", "Counter"}
"""What comes to the same in any order."""


def loops_over_sets(tree: ast.AST) -> Iterator[int]:
    """The lines of loops whose order a process makes up."""
    free = {
        id(argument)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if node.func.id in ANY_ORDER
        for argument in node.args
    }
    for node in ast.walk(tree):
        match node:
            case ast.For(iter=over):
                loops = [over]
            case ast.ListComp() | ast.GeneratorExp() | ast.DictComp() if id(node) not in free:
                loops = [g.iter for g in node.generators]
            case _:
                continue
        yield from (over.lineno for over in loops if is_a_set(over))


def is_a_set(node: ast.AST) -> bool:
    """Whether an expression is written as a set; what a name stands for is not known."""
    match node:
        case ast.Set() | ast.SetComp() | ast.Call(func=ast.Name(id="set" | "frozenset")):
            return True
        case ast.BinOp(left, ast.BitOr() | ast.BitAnd() | ast.Sub() | ast.BitXor(), right):
            return is_a_set(left) or is_a_set(right)
        case _:
            return False


@pytest.mark.parametrize("room", SIMULATED)
def test_no_loop_goes_through_a_set(room: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sorted((ROOT / "impl" / room).rglob("*.py"))
        for line in loops_over_sets(ast.parse(path.read_text("utf-8")))
    ]
    assert not found, f"write sorted(...): {', '.join(found)}"


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("for a in {1, 2}: print(a)", [1]),
        ("x = {}\ny = {t: scan(t) for t in {*x, *z}}", [2]),
        ("for a in {b for b in c} - {d}: print(a)", [1]),
        ("for a in sorted({1, 2}): print(a)", []),
        ("x = sum(f(a) for a in {1, 2})", []),
        ("x = {f(a) for a in {1, 2}}", []),
    ],
)
def test_a_loop_over_a_set_is_found(source: str, lines: list[int]) -> None:
    assert [*loops_over_sets(ast.parse(source))] == lines

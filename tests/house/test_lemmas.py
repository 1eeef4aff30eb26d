"""A property that calls itself a lemma is one: `@lemma`, by which it is listed and counted apart from promises."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CALLED_SO = re.compile(r"^Lemma\b|\bA lemma\b")


def called_lemmas(source: str) -> Iterator[tuple[int, str]]:
    """The lines and names of methods whose docstrings say so and whose decorators don't."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.FunctionDef):
            continue
        marked = {ast.unparse(d).rpartition(".")[2] for d in node.decorator_list}
        if CALLED_SO.search(ast.get_docstring(node) or "") and "lemma" not in marked:
            yield node.lineno, node.name


@pytest.mark.parametrize("folder", ["machines", "examples", "tests/models"])
def test_what_is_called_a_lemma_is_one(folder: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}, {name}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, name in called_lemmas(path.read_text("utf-8"))
    ]
    assert not found, (
        "write @lemma above it, or word it as a promise of the document: " + "; ".join(found)
    )


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ('@invariant\ndef f(self):\n    """Lemma: it is so."""', ["f"]),
        ('@invariant\ndef f(self):\n    """001: "it is so". A lemma: g says it."""', ["f"]),
        ('@lemma\n@step_property\ndef f(self):\n    """It is so. A lemma: g says it."""', []),
        ('@sw.lemma\ndef f(self):\n    """Lemma: it is so."""', []),
        ('@invariant\ndef f(self):\n    """It helps no lemma."""', []),
    ],
)
def test_a_lemma_without_its_decorator_is_found(source: str, names: list[str]) -> None:
    assert [name for _, name in called_lemmas(source)] == names

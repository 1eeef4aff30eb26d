"""Which refinements a module declares, read off its source: to import it imports every machine that it names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path


@dataclass(frozen=True)
class Declared:
    """A refinement by its names: its own, and those of the two classes."""

    name: str
    concrete: str
    seen: str


def declared_in(place: str) -> Iterator[Declared]:
    """The functions of a module that are marked `@refinement` or `@projection`, in their order."""
    spec = find_spec(place)
    assert spec is not None
    assert spec.origin is not None
    tree = ast.parse(Path(spec.origin).read_text("utf-8"))
    imported = {
        alias.asname or alias.name: alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and any(map(_marks, node.decorator_list)):
            classes = [ast.unparse(a.annotation) for a in node.args.args[:2] if a.annotation]
            concrete, seen = (imported.get(name, name) for name in classes)
            yield Declared(node.name, concrete, seen)


def _marks(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(called, ast.Name) and called.id in ("refinement", "projection")

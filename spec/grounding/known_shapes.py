"""Remembers what expressions were lowered to: with the same values of its parameters, one is not lowered again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stagewright.spec.grounding.ground_sequences import Shape
from stagewright.spec.nodes import Bound, Node, Quantified, children
from stagewright.spec.values import Value

Environment = Mapping[Bound, Shape]
Key = tuple[int, ...]


class KnownShapes:
    """By expression and the shapes of its free parameters; constants and variables are one shape each.

    Expressions and shapes are told apart by `id`: whatever has a key here is alive as long as the key is.
    """

    def __init__(self) -> None:
        self.constants: dict[tuple[Bound, Value], Shape] = {}
        self.reads: dict[tuple[str, bool], Shape] = {}
        self.shapes: dict[Key, Shape] = {}
        self._free: dict[int, tuple[Node, tuple[Bound, ...]]] = {}
        self._kept: tuple[int, ...] = ()

    def key(self, node: Node, env: Environment) -> Key:
        """What decides the shape of an expression."""
        return (id(node), *[id(env[bound]) for bound in self._free_in(node)])

    def _free_in(self, node: Node) -> tuple[Bound, ...]:
        """The parameters that an expression does not quantify itself, in a fixed order."""
        known = self._free.get(id(node))
        if known is None:
            found = [node] if isinstance(node, Bound) else []
            for child in children(node):
                found += self._free_in(child)
            if isinstance(node, Quantified):
                found = [bound for bound in found if bound != node.bound]
            known = self._free[id(node)] = node, tuple(dict.fromkeys(found))
        return known[1]

    def keep(self) -> None:
        """Remember what is known so far when `forget` is called."""
        self._kept = tuple(len(known) for known in self._all)

    def forget(self) -> None:
        """Forget what became known since `keep`."""
        for known, number in zip(self._all, self._kept, strict=True):
            for _ in range(len(known) - number):
                known.popitem()  # the youngest, as dictionaries keep their order

    @property
    def _all(self) -> tuple[dict[Any, Any], ...]:
        return self.constants, self.reads, self.shapes, self._free

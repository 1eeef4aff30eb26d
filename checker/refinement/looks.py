"""What states look like: the conditions by which a refinement's two machines are compared, and who meets which.

A condition is a pair, one over the seen machine's cells and one over the concrete machine's: "this cell holds
that value" for each value of each cell that the mapping assigns, and those of `alike`. Two states look the same
if the same conditions hold in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from stagewright.checker.explicit.arrays import Bools
from stagewright.checker.explicit.exploration import Exploration
from stagewright.spec.grounding.domains import values_of
from stagewright.spec.grounding.ground import Cell, GroundNode
from stagewright.spec.grounding.lowering import Lowering, leaves
from stagewright.spec.nodes import Bound, Node, bounds_in
from stagewright.spec.refinement import Mapped
from stagewright.spec.scope import Scope, scope_of
from stagewright.spec.text.words import words
from stagewright.spec.values import FrozenMap, Value, show

Numbers = NDArray[np.int64]
Arguments = Mapping[str, Value]
Look = Mapping[str, str]
"""What is seen of a state: place by place its value, conditions of `alike` with `yes` and `no`."""


@dataclass(frozen=True)
class Condition:
    """One pair: over the cells of the seen machine, and over those of the concrete one."""

    seen: GroundNode
    concrete: GroundNode
    place: str  # as a person reads it
    value: str


class Comparison:
    """The conditions of a refinement at a scope, for each choice of its parameters."""

    def __init__(self, mapped: Mapped, scope: Scope) -> None:
        above = scope_of_seen(mapped, scope)
        # A loop of the body may be over an entity that only the seen machine has.
        self.mapped = mapped
        self.scope = replace(scope, sizes=FrozenMap({**above.sizes, **scope.sizes}))
        self.below = Lowering(mapped.concrete, self.scope)
        self.above = Lowering(mapped.seen, above)
        named = {
            f"{mapped.prefix}{name}": place for name, place in self.above.layout.places.items()
        }
        self.above.layout.places.update(named)

    def choices(self) -> Iterator[dict[Bound, Value]]:
        """Every choice of the parameters: a view each."""
        return self._instances(self.mapped.params)

    def _instances(self, params: tuple[Bound, ...]) -> Iterator[dict[Bound, Value]]:
        for chosen in product(*(values_of(p.sort, self.scope) for p in params)):
            yield dict(zip(params, chosen, strict=True))

    def conditions(self, chosen: Mapping[Bound, Value]) -> list[Condition]:
        """What is compared in one view."""
        return [*self._assigned(chosen), *self._alike(chosen)]

    def _assigned(self, chosen: Mapping[Bound, Value]) -> Iterator[Condition]:
        below, above = self.below.expressions, self.above.expressions
        for said in self.mapped.assignments:
            for more in self._instances(said.binders):
                env = below.constants({**chosen, **more})
                value = below.lower(said.value, env)
                value = below.fit(value, said.value.sort, said.place.sort)
                outer = above.constants(_of({**chosen, **more}, said.place))
                for _, place in above.places_of(said.place, outer):
                    for index, node in leaves(place, value):
                        yield from self._cell(self.above.cells[index], node)

    def _cell(self, cell: Cell, node: GroundNode) -> Iterator[Condition]:
        below, above = self.below.builder, self.above.builder
        at = above.cell(cell.index)
        values = values_of(cell.sort, self.above.scope)
        for code, value in zip(range(cell.low, cell.high + 1), values, strict=True):
            yield Condition(
                above.eq(at, above.const(code, boolean=at.boolean)),
                below.eq(node, below.const(code, boolean=node.boolean)),
                cell.name,
                show(value),
            )

    def _alike(self, chosen: Mapping[Bound, Value]) -> Iterator[Condition]:
        for pair in self.mapped.alike:
            for more in self._instances(pair.binders):
                values = {**chosen, **more}
                above, below = self.above.expressions, self.below.expressions
                seen = above.scalar(pair.seen, above.constants(_of(values, pair.seen)))
                concrete = below.scalar(pair.concrete, below.constants(values))
                said = words(pair.seen, values).replace(self.mapped.prefix, "")
                yield Condition(seen, concrete, said, "yes")


def _of(values: Mapping[Bound, Value], node: Node) -> dict[Bound, Value]:
    """Of what the node mentions: the other machine may not have the other sorts."""
    mentioned = bounds_in(node)
    return {bound: value for bound, value in values.items() if bound in mentioned}


def scope_of_seen(mapped: Mapped, scope: Scope) -> Scope:
    """Of the seen machine: as many of the entities that both have, and every budget without bound if not said."""
    known = {kind.__name__ for kind in mapped.seen.entities}
    sizes = {kind.__name__: n for kind, n in scope.sizes.items() if kind.__name__ in known}
    budgets: dict[str, int | None] = {b.name: None for b in mapped.seen.budgets}
    if (said := mapped.refinement.seen_at) is not None:
        sizes |= {name: n for name, n in said.sizes.items() if name in known}
        budgets |= {name: n for name, n in said.budgets.items() if name in budgets}
    return scope_of(mapped.seen, sizes, budgets)


class Looks:
    """The looks of all explored states of two machines, numbered alike."""

    def __init__(
        self, conditions: list[Condition], concrete: Exploration, seen: Exploration
    ) -> None:
        self.conditions = conditions
        bits = np.concatenate(
            [
                _holding(concrete, [c.concrete for c in conditions]),
                _holding(seen, [c.seen for c in conditions]),
            ]
        )
        packed = np.packbits(bits, axis=1)
        distinct, numbers = np.unique(packed, axis=0, return_inverse=True)
        self._bits = np.unpackbits(distinct, axis=1, count=len(conditions)).astype(np.bool_)
        self.of_concrete: Numbers
        self.of_seen: Numbers
        self.of_concrete, self.of_seen = np.split(
            numbers.ravel().astype(np.int64), [concrete.states]
        )

    @property
    def count(self) -> int:
        return len(self._bits)

    def look(self, number: int) -> Look:
        """A look in words."""
        return self._looks[number]

    @cached_property
    def _looks(self) -> list[Look]:
        return [self._said(bits) for bits in self._bits]

    def _said(self, bits: Bools) -> Look:
        found: dict[str, str] = {}
        for condition, holds in zip(self.conditions, bits.tolist(), strict=True):
            if holds:
                found[condition.place] = condition.value
            else:
                no = "no" if condition.value == "yes" else "out of bounds"
                found.setdefault(condition.place, no)
        return FrozenMap(found)


def _holding(found: Exploration, nodes: list[GroundNode]) -> Bools:
    """A row for each state, a column for each condition."""
    ask, batch = found.engine.state_conditions(nodes), found.engine.batch
    rows = [np.zeros((0, len(nodes)), dtype=np.bool_)]
    rows += [
        np.stack(ask(found.words[:, first : first + batch]), axis=1)
        for first in range(0, found.states, batch)
    ]
    return np.concatenate(rows)
